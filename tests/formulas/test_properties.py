"""Random trees: what is written back reads the same; a second evaluator agrees with the first."""

import numpy as np
from hypothesis import HealthCheck, given, settings

from attn_course.formulas import Formula, judge, read, read_expression, write
from attn_course.formulas.evaluate import Evaluator
from tests.formulas import trees, twin

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
SOME = settings(MANY, max_examples=120)

RNG = np.random.default_rng(0)
ARRAYS = {name: RNG.uniform(-1, 1, size=shape) for name, shape in twin.LENGTHS.items()}
LISTS = {name: array.tolist() for name, array in ARRAYS.items()}
TABLES = {name: RNG.normal(size=shape) for name, shape in {"A": (3, 4), "B": (4, 3), "S": (3, 3), "T": (4, 4)}.items()}


@MANY
@given(trees.EXPRESSIONS)
def test_an_expression_that_is_written_back_reads_the_same(tree):
    assert read_expression(write(tree), trees.NAMES) == tree


@SOME
@given(trees.formulas())
def test_a_formula_that_is_written_back_reads_the_same(tree):
    assert read(write(tree), trees.NAMES) == tree


def evaluated(tree, givens):
    """The value of a tree for all i up to 3 and j up to 4: an evaluation, and the data with all its axes."""
    claim = twin.relation(twin.node("entry", twin.node("name", value="C"), twin.letter("i"), twin.letter("j")), "=", tree)
    formula = Formula(twin.node("formula", claim), ["C", *givens])
    evaluation = Evaluator(formula, {**givens, "C": np.zeros((3, 4))})
    for letter in evaluation.ordered(("i", "j"), claim):
        evaluation.enter(letter, claim)
    with np.errstate(all="ignore"):
        data = evaluation.value(tree).data
    lengths = {formula.letters["i"]: 3, formula.letters["j"]: 4}
    return lengths, np.broadcast_to(data, [lengths.get(axis, 1) for axis in range(evaluation.axes)])


@MANY
@given(twin.scalars())
def test_nested_loops_over_plain_floats_agree(tree):
    (i_axis, j_axis), data = evaluated(tree, ARRAYS)
    for i in range(3):
        for j in range(4):
            wanted = twin.value(tree, LISTS, {"i": i + 1, "j": j + 1})
            at = [0] * data.ndim
            at[i_axis], at[j_axis] = i, j
            np.testing.assert_allclose(data[tuple(at)], wanted, rtol=1e-9, atol=1e-12)


@MANY
@given(twin.tables(3, 4))
def test_loops_over_rows_and_columns_agree(pair):
    tree, by_loops = pair
    used = {node.value: TABLES[node.value] for node in tree.walk() if node.kind == "name"}
    claim = twin.relation(twin.node("name", value="C"), "=", tree)
    wanted = by_loops({name: table.tolist() for name, table in TABLES.items()})
    judge(Formula(twin.node("formula", claim), ["C", *used]), {**used, "C": np.array(wanted)})


def test_the_second_evaluator_can_disagree():
    tree = twin.node("entry", twin.node("name", value="A"), twin.letter("i"), twin.letter("j"))
    _, data = evaluated(tree, {**ARRAYS, "A": ARRAYS["A"] + 1e-6})
    assert abs(data.ravel()[0] - twin.value(tree, LISTS, {"i": 1, "j": 1})) > 1e-7
