"""Mutants: small changes of the right side, and what becomes of them."""

import ast

import numpy as np
import pytest
import sympy

from attn_course.equations.claims import Chain
from attn_course.equations.core import Registry
from attn_course.equations.mutants import mutants
from attn_course.equations.mutations import mutations

x, y = sympy.symbols("x y", real=True)


def changed(formula: str) -> set[str]:
    return {ast.unparse(ast.fix_missing_locations(mutated)) for _, mutated in mutations(ast.parse(formula, mode="eval").body)}


@pytest.mark.parametrize(
    ("formula", "some"),
    [
        ("a + b", {"a - b", "a", "b"}),
        ("a - b", {"a + b", "a", "-b"}),
        ("a * b", {"a", "b"}),
        ("a / b", {"a", "b", "b / a"}),
        ("a @ b", {"a", "b", "b @ a"}),
        ("a ** 2", {"a", "a ** 3"}),
        ("-a", {"a"}),
        ("log(a)", {"a"}),
        ("kl(p, s)", {"kl(s, p)"}),
        ("a.T", {"a"}),
        ("int(i == j)", {"int(i != j)", "i == j"}),
        ("np.max(a, b)", {"np.min(a, b)", "np.max(b, a)"}),
        ("lambda i, j: s[i]", {"lambda i, j: s[j]"}),
        ("[z[i] for i in r for j in r]", {"[z[j] for i in r for j in r]"}),
        ("a if b else c", {"c if b else a"}),
        ("0.5", {"1.5"}),
    ],
)
def test_each_kind_of_change_is_made(formula: str, some: set[str]):
    assert changed(formula) >= some


def test_a_change_leaves_the_original_alone_and_none_is_made_twice():
    formula = ast.parse("a + a", mode="eval").body
    before = ast.dump(formula)
    found = [ast.dump(mutated) for _, mutated in mutations(formula)]
    assert ast.dump(formula) == before
    assert len(found) == len(set(found)) == 2  # a - a, and a


def fates(statement, kind="symbolic") -> dict[str, str]:
    equation = Registry().equation("toy", "?", rows=["A1"], kind=kind)(statement)
    return {mutant.change: mutant.fate for mutant in mutants(equation)}


def test_mutants_of_a_symbolic_equation_are_rejected_or_recognised_as_equivalent():
    def statement():
        return (x + y) ** 2, x**2 + y**2 + 2 * x * y + 0 * sympy.Max(x, y)

    found = fates(statement)
    assert found["x ** 2 -> x (statement 1)"] == "rejected"
    assert found["sign of the right side (equation 1 of the line)"] == "rejected"
    assert found["sympy.Max(x, y) -> sympy.Min(x, y) (statement 1)"] == "equivalent"
    assert "survived" not in found.values()


def test_a_mutant_that_cannot_be_evaluated_does_not_count():
    def statement():
        return sympy.Matrix([x, y]), sympy.Matrix(2, 1, lambda i, _: (x, y)[i])

    assert fates(statement)["1 -> 2 (statement 1)"] == "invalid"


def test_a_right_side_behind_a_local_name_is_mutated_without_the_left_side():
    def statement():
        square = x**2 + 2 * x
        return (x + 1) ** 2 - 1 + 0 * square, square

    assert fates(statement)["x ** 2 + 2 * x -> x ** 2 - 2 * x (statement 1)"] == "rejected"


def test_a_weaker_bound_is_no_mistake_unless_the_bound_is_attained():
    def loose(rng):
        for z in rng.normal(size=(5, 3)):
            yield Chain(np.tanh(z), "<", 1.0)

    def sharp(rng):
        for z in (np.zeros(3), *rng.normal(size=(5, 3))):
            yield Chain(1 - z**2, "<=", 1.0, tight=(not z.any(),))

    assert fates(loose, "numeric")["1.0 -> 2.0 (statement 1)"] == "weaker"
    assert fates(sharp, "numeric")["1.0 -> 2.0 (statement 1)"] == "rejected"


def test_a_mutant_that_no_point_can_tell_apart_survives():
    def blind(rng):
        z = rng.uniform(0.1, 0.2, size=3)
        yield Chain(0.0, "<=", np.sin(z), "<=", 1.0)

    assert fates(blind, "numeric")["np.sin(z) -> z (statement 1)"] == "survived"


def test_mutants_see_the_same_random_numbers_as_the_original():
    def statement(rng):
        for _ in range(3):
            z = rng.normal(size=3)
            yield z + z + 0 * rng.normal(), 2 * z

    assert fates(statement, "numeric")["2 -> 3 (statement 1)"] == "rejected"
    assert "survived" not in fates(statement, "numeric").values()
