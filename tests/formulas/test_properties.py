"""Random trees: what is written back reads the same."""

from hypothesis import HealthCheck, given, settings

from attn_course.formulas import read, read_expression, write
from tests.formulas import trees

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@MANY
@given(trees.EXPRESSIONS)
def test_an_expression_that_is_written_back_reads_the_same(tree):
    assert read_expression(write(tree), trees.NAMES) == tree


@settings(MANY, max_examples=120)
@given(trees.formulas())
def test_a_formula_that_is_written_back_reads_the_same(tree):
    assert read(write(tree), trees.NAMES) == tree
