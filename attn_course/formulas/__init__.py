r"""Formulas as they are printed: LaTeX read, evaluated and judged.

    formula = Formula.of(r"J = \mathrm{diag}(s) - s\,s^\top", names_of(givens))
    judge(formula, givens)        # Refuted: left 0.22, right 0.45 at row = 3, column = 3 (or Malformed, with the place)

`read` gives the tree, `write` the LaTeX of a tree, `Formula` makes it ready once, `judge` evaluates it on givens. What a formula
means:

**Names.** A name is what the givens say, the longest match first, cut out before anything is parsed: `W_Q`, `d_k`, `dO`, `\bar{x}`,
`s_{\max}`, `\text{FLOPs}_{\text{RNN}}`. `W_Q^{(h)}` is a family: any index may stand for h. A given always wins: `\pi`, `e`, `I` and
`\sigma` are what they usually are unless given, but `e^` is always the exponential. Any other subscript is an index. Every symbol is a
given, a definition of the same formula, an index or a known function; an unknown symbol is malformed, and so is a given that is not
used, under one of its names at least: P may be the matrix and p its entries.

**Orientation** is declared, never read off a shape: `row`, `column`, `rows` and `columns` (lists of them), `matrix`, `vector` (none: its
transpose is malformed). One index of a matrix is a row. A list stands only with an index, or as the argument of a function.
`\mathbf{1}`, `I` and tuples in parentheses take length and orientation from their neighbour.

**Indices.** Free ones run over all positions, and the formula must hold at each. A range comes from the bounds, else from what the index
subscripts: two different lengths are malformed, but `states` may be longer; else from a declared `index`, for which one other letter may
stand, also in a set. `x^{(i)}` is x_i. Positions count from the `start` of the given. Conditions (`j \ne i`, `j \in A`) restrict; `\quad
(i \ne j)` belongs to its clause; beneath `\sum` the first letter of a condition is bound that is not in use elsewhere, or j of `1 \le j
\le n`. A letter in use cannot be bound again. `x_{ij}` has two indices, `x_{i,2j}` too, `x_{i-1}` one, and so has `x_{n m}` of two
givens. An index at the end of a slice, `K_{1:t}`, is tried value by value.

**Products.** Side by side: of numbers, of a number and anything, of rows, columns and matrices as declared. `\cdot` is the dot product
of two vectors of one orientation (or a product with a number), `\odot` is entrywise; unlike operations need parentheses, and behind `/`
stands one factor. `A^2` and `A^{-1}` are powers of a matrix, `t^2` of a vector and `e^A` are entrywise. A printed number may be added to
a vector, not to a matrix; a variable one to neither.

**Functions** bind the parenthesis behind them, then subscripts: `\sigma(z)_i`. Without one they take exactly one factor, and `\cos
\omega t` is malformed. `\sigma_l(...)` is the softmax over a running index; softmax of a matrix runs over its rows. `|x|` is an absolute
value, a length, the size of a set, the degree of exponents. `\arg\max` is a set: ties count. `[condition]` is 1 or 0; `[A, B; C]` are
blocks, `[A\; B]` with a visible space too, `Z_1 \cdots Z_H` a run of them.

**Definitions** are clauses `name = ...`, `W_h = ...`, `f(x) = ...` whose name is not given, also from right to left. They are closed,
with letters of their own; only one without an index may use the free letters of where it stands (`r = \lfloor h / g \rfloor`). A claim
must use them; else they would never be tested.

**Statements** are separated by `\qquad`; arrows bind less than commas with smaller spaces; `premise: \qquad` governs up to the next
colon, `premise:\;` one statement. Remarks, `\text{decode:}` and `\text{(linear)}`, belong to their clause. Behind an arrow or a premise
only the cases count in which it holds, index by index; letters that only the premise has are meant for all their values. `judge_draws`
wants one such case at least.

**Relations.** See `judge`. `0` stands for zeros of any form, `-\infty` is minus infinity, `\approx` means to the digits printed, `\in
\mathbb{R}^{m \times n}` is a shape, `[0, 1]` and `(0, 1)` behind `\in` are intervals. Identical sides are malformed.

**Derivatives and limits** change a given and make what is computed `of` it again. What runs in a limit has no value outside. Vector by
vector is the Jacobian, a number by anything has the form of that thing, more needs indices. A limit goes along 2^k and between.

**E, Var, Cov** are exact sums over the `outcomes` of random givens, those of different groups independent. A random given beneath them
means its group only; a probability vector is their weights.

Errors are `Malformed` (with the place) or `Refuted` (with the counterexample); a Python exception is neither.
"""

from attn_course.formulas.changes import Change, changes
from attn_course.formulas.compiled import Formula
from attn_course.formulas.errors import FormulaError, Malformed, Refuted
from attn_course.formulas.givens import (
    alike,
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
from attn_course.formulas.judge import Judged, formula_of, has_symbols, judge, judge_draws, parts, sides
from attn_course.formulas.read import read, read_expression
from attn_course.formulas.sizes import size_sets
from attn_course.formulas.tree import Node, write

__all__ = [
    "Change",
    "Formula",
    "FormulaError",
    "Judged",
    "Malformed",
    "Node",
    "Refuted",
    "alike",
    "changes",
    "column",
    "columns",
    "count",
    "derivative",
    "formula_of",
    "function",
    "has_symbols",
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
    "vector",
    "write",
]
