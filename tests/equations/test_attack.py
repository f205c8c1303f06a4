"""What becomes of a changed formula: it means the same, says less, or survives."""

import numpy as np
import pytest

from attn_course.equations.attack import Unrelated, mutants
from attn_course.equations.saying import made
from attn_course.formulas import vector


def copied(rng, n):
    x = rng.normal(size=n)
    return {"x": vector(x), "y": vector(x)}


@pytest.mark.parametrize(
    ("before", "after", "fate"),
    [
        (r"y_i = x_i \quad (i > 2)", r"y_i = x_i \quad (2 < i)", "equivalent"),
        (r"y_i = x_i \quad (i > 2)", r"y_i = x_i \quad (i \ge 2)", "survived"),
        (r"y_i = x_i \quad (i > 2)", r"y_i = x_i \quad (i > 3)", "weaker"),
        ("y_i = x_i", r"y_i \ne x_i", "survived"),
        ("y_i = x_i", "y_i = 1 x_i", "equivalent"),
        (r"\ln(y_i) = \ln(x_i)", r"\ln(y_i) = \ln(1 x_i)", "equivalent"),
    ],
)
def test_a_changed_formula_is_compared_where_its_givens_have_nothing_to_do_with_each_other(toy, before, after, fate):
    equation = toy.add("first", before, copied)
    assert Unrelated(equation, equation.read()).meaning(equation.read(after)) == fate


def squares(rng, n, m):
    A, B = rng.normal(size=(n, m)), rng.normal(size=(m, n))
    return {"A": A, "B": B, "S": np.array([[sum(A[i, k] * B[k, j] for k in range(m)) for j in range(n)] for i in range(n)])}


def test_of_a_sample_the_changes_that_the_equation_names_are_judged_too(toy):
    named = r"A_{i k}\, B_{k j} -> B_{k j}\, A_{i k}"
    equation = toy.add("first", r"S_{ij} = \sum_k A_{ik} B_{kj}", squares, equivalent={named: "numbers commute"})
    assert named in [str(mutant.change) for mutant in mutants(equation, every=10_000)][1:]


def test_a_given_of_which_a_part_alone_was_drawn_is_made():
    def make(rng):
        x = rng.normal(size=3)
        return {"x": x, "longer": np.append(x, x.sum())}

    assert made(make) == {"longer"}
