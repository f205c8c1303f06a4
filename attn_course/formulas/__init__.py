r"""Formulas as they are printed: LaTeX read, evaluated and judged.

    formula = Formula.of(r"J = \mathrm{diag}(s) - s\,s^\top", names_of(givens))
    judge(formula, givens)        # Refuted: left 0.22, right 0.45 at row = 3, column = 3 (or Malformed, with the place)

`read` gives the tree, `write` the LaTeX of a tree, `Formula` makes it ready once, `judge` evaluates it on givens. What can be written,
and what it means, is said in docs/formulas.md, whose examples a test runs.

Errors are `Malformed` (with the place) or `Refuted` (with the counterexample); a Python exception is neither.
"""

from attn_course.formulas.changes import Change, changes
from attn_course.formulas.compiled import Formula
from attn_course.formulas.errors import FormulaError, Malformed, Refuted
from attn_course.formulas.givens import (
    Open,
    Size,
    alike,
    as_given,
    column,
    columns,
    count,
    derivative,
    function,
    independent,
    index,
    is_range,
    matrices,
    matrix,
    names_of,
    normal_nodes,
    of,
    opaque,
    outcomes,
    powers,
    row,
    rows,
    subset,
    unrelated,
    vector,
)
from attn_course.formulas.judge import Judged, formula_of, has_symbols, judge, judge_draws, parts, sides, values_of
from attn_course.formulas.read import read, read_expression
from attn_course.formulas.sizes import in_products, size_sets
from attn_course.formulas.tree import Node, write

__all__ = [
    "Change",
    "Formula",
    "FormulaError",
    "Judged",
    "Malformed",
    "Node",
    "Open",
    "Refuted",
    "Size",
    "alike",
    "as_given",
    "changes",
    "column",
    "columns",
    "count",
    "derivative",
    "formula_of",
    "function",
    "has_symbols",
    "in_products",
    "independent",
    "index",
    "is_range",
    "judge",
    "judge_draws",
    "matrices",
    "matrix",
    "names_of",
    "normal_nodes",
    "of",
    "opaque",
    "outcomes",
    "parts",
    "powers",
    "read",
    "read_expression",
    "row",
    "rows",
    "sides",
    "size_sets",
    "subset",
    "unrelated",
    "values_of",
    "vector",
    "write",
]
