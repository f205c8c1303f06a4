"""Each gate can fail: a toy registry that breaks one rule at a time."""

import numpy as np

from attn_course import numbers
from attn_course.equations import gates
from attn_course.equations.attack import mutants
from attn_course.equations.core import Equation, Registry
from attn_course.equations.retyped import retyped
from attn_course.formulas import matrix, row, rows, vector
from attn_course.reference import softmax
from tests.equations.test_special import jacobian
from tests.toy_numbers import toy_numbers

SQUARE = "(x + y)^2 = x^2 + 2 x y + y^2"


def two_numbers(normal):
    return {"x": normal(), "y": normal()}


def register(registry: Registry, label: str, latex: str = SQUARE, make=two_numbers, says: str = "\nMultiply out.", **options) -> Equation:
    return registry.add(label, latex + says, make, **{"serves": "A1", **options})


def test_an_equation_without_a_wrong_form_is_reported(toy: Registry):
    assert gates.wrong_form_problems(register(toy, "first")) == ["Eq. first has no planted wrong form"]


def test_a_wrong_form_that_is_right_is_reported(toy: Registry):
    equation = register(toy, "first", says="\nMultiply out.\n    factored: (x + y)^2 = x (x + 2 y) + y^2\n    the sign: + 2 -> - 2")
    assert gates.wrong_form_problems(equation) == ['Eq. first: the wrong form "factored" holds']


def blind(rng, n):
    # all weights are alike, so that no index matters
    p, v = np.full((n, n), 1 / n), np.full(n, rng.normal())
    return {"p": matrix(p), "v": vector(v), "z": vector([sum(p[i, j] * v[j] for j in range(n)) for i in range(n)])}


def seeing(rng, n):
    p, v = rng.normal(size=(n, n)), rng.normal(size=n)
    return {"p": matrix(p), "v": vector(v), "z": vector([sum(p[i, j] * v[j] for j in range(n)) for i in range(n)])}


def test_givens_that_cannot_tell_a_change_from_the_formula_are_reported(toy: Registry):
    formula = r"z_i = \sum_j p_{ij} v_j"
    problems = gates.mutant_problems(register(toy, "first", formula, blind))
    assert "Eq. first: what is given cannot tell it from the change p_{i j} -> p_{j i}" in problems
    assert gates.mutant_problems(register(toy, "second", formula, seeing)) == []


def test_a_change_that_means_the_same_is_told_by_machine(toy: Registry):
    judged = list(mutants(register(toy, "first", r"z_i = \sum_j p_{ij} v_j", seeing)))
    fates = {str(mutant.change): mutant.fate for mutant in judged}
    assert fates["p_{i j}\\, v_{j} -> v_{j}\\, p_{i j}"] == "equivalent"
    assert fates["p_{i j} -> p_{j i}"] == "refuted"
    assert set(fates.values()) == {"equivalent", "refuted", "malformed"}


def test_a_change_that_rests_on_a_property_is_named_with_it_and_only_then(toy: Registry):
    formula = r"\sum_j J_{ij} = 0"
    named = dict.fromkeys(("J_{i j} -> J_{j i}", "j -> i"), "the Jacobian of softmax is symmetric")

    def make(rng, n):
        return {"J": jacobian(rng, n)["J"]}

    assert gates.mutant_problems(register(toy, "first", formula, make))
    problems = gates.mutant_problems(register(toy, "second", formula, make, equivalent=named))
    assert problems == []
    stale = register(toy, "third", formula, make, equivalent={**named, "0 -> 7": "no such thing"})
    assert gates.mutant_problems(stale) == ["Eq. third: equivalent={...} names 0 -> 7, which does not survive"]


def test_of_a_sample_of_the_changes_those_that_were_tried_are_judged(toy: Registry):
    equation = register(toy, "first", r"z_i = \sum_j p_{ij} v_j", blind)
    assert len([*mutants(equation, every=2)]) == -(-len([*mutants(equation)]) // 2)
    assert 0 < len(gates.mutant_problems(equation, every=2)) < len(gates.mutant_problems(equation))


def false_gradient(rng, n, m):
    P, dO = softmax(rng.normal(size=(n, m))), rng.normal(size=(m, 3))
    return {"P": P, "dO": dO, "dV": P @ dO}


def test_a_false_formula_with_matching_givens_is_refused(toy: Registry):
    """DV = P dO without the transpose holds for such givens; what refuses it is that they retype it."""
    equation = register(toy, "first", "dV = P dO", false_gradient, says="\nIt would fit.\n    the other way: dV = dO P")
    equation.check()
    (problem,) = gates.retyping_problems(equation)
    assert problem.startswith("Eq. first: dV is only operators on the other givens")
    assert gates.retyping_problems(register(toy, "second", "dV = P dO", false_gradient, kind="definition")) == []


def test_names_of_a_premise_are_no_claim(toy: Registry):
    def make(rng, n):
        k = rng.normal(size=(n, 3))
        return {"q": row(k[1]), "k": rows(k), "s": vector([sum(k[1] * one) for one in k]), "i": 2}

    assert retyped(register(toy, "first", r"q = k_2: \quad s_j = q \cdot k_j", make)) == []


def test_a_few_definitions_and_no_more(toy: Registry):
    for label, kind in (("first", "definition"), ("second", "transcribed"), ("third", "claim")):
        register(toy, label, kind=kind, equivalent={"x -> y": "", "y -> x": "", "2 -> 3": "", "+ -> -": ""} if label == "third" else None)
    assert gates.share_problems(toy) == [
        "1 equations are definitions; at most 0 are allowed",
        "1 equations are transcribed; at most 0 are allowed",
        "4 changes are excused by hand; at most 1 are allowed",
    ]


def test_using_an_unknown_or_later_equation_is_reported(toy: Registry):
    first = register(toy, "first", rests_on="second nowhere")
    second = register(toy, "second", make=dict, says="", rests_on="first")
    unknown = "Eq. first uses an unknown equation: there is no equation 'nowhere'"
    assert gates.reference_problems(first, toy) == ["Eq. first uses Eq. second, which does not come before it", unknown]
    assert gates.reference_problems(second, toy)[:1] == ["Eq. second does not say why it holds: wanted a line below the formula"]


def test_unknown_topics_and_traps_and_a_tag_in_the_latex_are_reported(toy: Registry):
    says = "\nMultiply out.\n    X99: a trap nobody knows: x = y"
    equation = register(toy, "first", r"\bigl( x = y \tag{1.1}", says=says, serves="Z9")
    assert gates.reference_problems(equation, toy) == [
        "Eq. first names the unknown topic 'Z9'; topics go from A1 to N1",
        "Eq. first names the unknown trap 'X99'",
        "Eq. first: the LaTeX holds its own \\tag or \\label; the lesson adds it",
        r"Eq. first: the LaTeX opens and closes \bigl \bigr unequally often",
    ]
    assert gates.reference_problems(register(toy, "second", serves=""), toy) == [
        "Eq. second serves no topic: wanted one or more in serves="
    ]


def test_an_equation_that_does_not_hold_is_reported_and_no_more_is_asked(toy: Registry):
    def breaks(rng):
        return {"x": nowhere}  # the name that is missing

    (problem,) = gates.equation_problems(register(toy, "first", "(x + y)^2 = x^2 + y^2"), toy)
    assert problem.startswith("Eq. (1.1) is not confirmed: left ")
    (problem,) = gates.equation_problems(register(toy, "second", make=breaks), toy)
    assert problem == "Eq. second cannot be evaluated: NameError: name 'nowhere' is not defined"


def test_everything_that_is_wrong_with_an_equation_is_said(toy: Registry):
    equation = register(toy, "first", "y = 2 x", lambda normal: {"x": (x := normal()), "y": 2 * x}, says="", serves="Z9")
    assert gates.equation_problems(equation, toy) == [
        "Eq. first names the unknown topic 'Z9'; topics go from A1 to N1",
        "Eq. first does not say why it holds: wanted a line below the formula",
        "Eq. first has no planted wrong form",
        "Eq. first: y is only operators on the other givens: take another way, or call it a definition",
    ]


def test_a_topic_that_no_equation_of_its_lessons_deals_with_is_owed_by_each(monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: toy_numbers(softmax=["weights"]))
    registry = Registry()
    registry.add("weights", "x = y", two_numbers, serves="B1")
    owed = gates.coverage_problems("softmax", registry)
    assert owed[0].startswith("no equation deals with B2 (softmax in practice: ")
    assert gates.coverage_problems("lookup", registry) == []
