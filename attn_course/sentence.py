"""The sentence of the course: seven tokens, small whole numbers, and two heads made by hand.

`the cat sat because it was tired`. Head 0 asks **who** is meant ("it" looks at "cat"), head 1 looks **one back**. What was weighed:

- **Three features for content, two for the position.** `alive`: is a living thing (only the living are tired). `tells`: says what
  somebody does or is. `open`: waits for another word to mean something; below 0, it has found one. "because" has none of the three,
  so its query in head 0 is zero, and its row of weights uniform.
- **No two sizes are equal**, so that no wrong axis fits: 7 tokens, d_model 5, d_k 4, d_v 3, 2 heads (side by side: 8, and 6 values).
- **d_k = 4 makes the scale exactly 1/2.** All scores stay within -9 and 9. Where one token has the best score, 8, it stands 4 or more
  above the others, so that its weight is between 0.7 and 0.98: clear, and still far enough from 1 that gradients flow.
- **The position is a clock of six hours.** (cos, sin) is (2, 0), (1, 1), (-1, 1), ...: a circle of radius 2, its sine counted in units
  of sqrt(3), which makes all of it whole. Keys of head 1 are (cos, sin, sin, sin): three ones have the length sqrt(3), so their dot
  product is 4 cos(60 degrees times the distance). Queries are the keys turned back one hour, twice as long: 8, 4, -4, -8 for the
  distances 0, 1, 2, 3 from the token before. Eight integer points of radius sqrt(5) need no unit, but leave 7 against 5, and a
  weight of 0.55. The price: the last token has the hour of the first, so that without a mask "cat" looks at both of them, and "the"
  at the hour before its own, "was".
- **Every token a head wants stands earlier**, except for "the" and "cat" in head 0 ("the" wants its noun, "cat" what is told of it):
  there the causal mask has something to hide.
- **Outputs can be read.** Head 0 hands on alive, tells, and alive - open; W_O subtracts the third from `open`. Head 1 hands on the three
  features of the word before. Added to its own features, "it" is afterwards nearly (2, 0, 0), which is what "cat" was: alive, not open.

Rows are positions. All arrays are float64, whole, and read-only.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

TOKENS = ("the", "cat", "sat", "because", "it", "was", "tired")
FEATURES = ("alive", "tells", "open", "cos", "sin")


def _whole(rows: ArrayLike) -> NDArray[np.float64]:
    matrix = np.array(rows, dtype=np.float64)
    matrix.flags.writeable = False
    return matrix


CONTENT = _whole(
    [
        # alive, tells, open
        [0, 0, 1, 0, 0],  # the: its noun is still to come
        [2, 0, 0, 0, 0],  # cat
        [0, 2, 0, 0, 0],  # sat
        [0, 0, 0, 0, 0],  # because
        [0, 0, 2, 0, 0],  # it: stands for a noun
        [0, 1, 0, 0, 0],  # was
        [1, 2, 0, 0, 0],  # tired
    ]
)
POSITIONS = _whole(
    [
        #         cos, sin
        [0, 0, 0, 2, 0],
        [0, 0, 0, 1, 1],
        [0, 0, 0, -1, 1],
        [0, 0, 0, -2, 0],
        [0, 0, 0, -1, -1],
        [0, 0, 0, 1, -1],
        [0, 0, 0, 2, 0],
    ]
)
X = _whole(CONTENT + POSITIONS)  # (7, 5)

W_QUERY = _whole(  # (heads, d_model, d_k)
    [
        [
            [0, 1, 0, 0],  # who is alive asks for what is told
            [1, 0, 0, 1],  # who tells asks for somebody alive, who does not tell
            [1, 0, -1, 1],  # who is open asks the same, and for nobody who is open too
            [0, 0, 0, 0],
            [0, 0, 0, 0],
        ],
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, -1, -1, -1], [3, 1, 1, 1]],  # back one hour, and twice as long
    ]
)
W_KEY = _whole(  # (heads, d_model, d_k)
    [
        [[1, 0, 0, 1], [0, 1, 0, -1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]],  # alive, tells, open, alive - tells
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]],  # cos, sin, sin, sin
    ]
)
W_VALUE = _whole(  # (heads, d_model, d_v)
    [
        [[1, 0, 1], [0, 1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 0]],  # alive, tells, alive - open
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],  # alive, tells, open
    ]
)
W_OUTPUT = _whole(  # (heads * d_v, d_model)
    [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, -1, 0, 0],  # who has found somebody is open no longer
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
)
QUERY, KEY, VALUE = (_whole(X @ weights) for weights in (W_QUERY, W_KEY, W_VALUE))  # (heads, 7, d_k or d_v)


def labelled(matrix: ArrayLike, rows: Sequence[str] = TOKENS, columns: Sequence[str] = (), digits: int = 2) -> str:
    """Return a matrix as text, its rows (and its columns, if they have names) labelled, its columns aligned at the right.

    Whole matrices are written without a point, all others with `digits` digits behind it; a number that rounds to zero has no sign.

    Raises ValueError if the matrix has not two axes, or not as many rows or columns as labels.

    >>> print(labelled(X[:2], rows=TOKENS[:2], columns=FEATURES))
         alive  tells  open  cos  sin
    the      0      0     1    2    0
    cat      2      0     0    1    1
    """
    table = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(rows) or (columns and table.shape[1] != len(columns)):
        width = len(columns) or "any width"
        raise ValueError(f"matrix must have the shape of its labels, ({len(rows)}, {width}); got {table.shape}")
    places = 0 if np.array_equal(table, np.trunc(table), equal_nan=True) else digits
    cells = [[f"{value:z.{places}f}" for value in row] for row in table]
    lines = [[label, *row] for label, row in zip(rows, cells, strict=True)]
    if columns:
        lines.insert(0, ["", *columns])
    first, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join([f"{label:{first}}", *map(str.rjust, row, others)]) for label, *row in lines)
