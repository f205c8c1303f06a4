"""Tasks on gradients, split keys and a first kernel; tasks.py lists them."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.flash.tasks_blocks import Result
from attn_course.reference import logsumexp, merge_partial_attention, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every

# ---- 12.7 the gradient of one tile of scores


def _tile_gradient(
    scores: np.ndarray, value: np.ndarray, d_output: np.ndarray, output: np.ndarray, lse: np.ndarray, d_lse: np.ndarray
) -> np.ndarray:
    """Eqs. weights-from-lse, row-delta-from-output and score-gradient-with-lse on one tile."""
    delta = (d_output * output).sum(axis=1) - d_lse
    return np.exp(scores - lse[:, None]) * (d_output @ value.T - delta[:, None])


def _tile(
    scores: np.ndarray,
    value: np.ndarray,
    d_output: np.ndarray,
    output: np.ndarray,
    lse: np.ndarray,
    d_lse: np.ndarray,
    *,
    delta: str = "output",
    sign: float = -1.0,
    weights: str = "lse",
) -> np.ndarray:
    """The gradient with one step done differently."""
    shares = {
        "lse": np.exp(scores - lse[:, None]),
        "tile": softmax(scores),
        "maximum": np.exp(scores - scores.max(axis=1, keepdims=True)),
        "none": np.ones_like(scores),
    }[weights]
    d_weights = d_output @ value.T
    sums = {
        "output": (d_output * output).sum(axis=1),
        "tile": (np.exp(scores - lse[:, None]) * d_weights).sum(axis=1),
        "none": 0.0 * lse,
        "d_output": d_output.sum(axis=1),
    }[delta]
    return shares * (d_weights - (sums + sign * d_lse)[:, None])


def _tile_case(rng: np.random.Generator, name: str, sizes: tuple[int, int, int, int, int], spread: float, offset: float = 0.0) -> Case:
    """A tile (rows, columns) out of rows of kv_len scores, with what the forward pass kept of the whole rows."""
    rows, columns, kv_len, d_v, start = sizes
    whole, values = spread * rng.normal(size=(rows, kv_len)) + offset, rng.normal(size=(kv_len, d_v))
    inputs = {
        "scores": whole[:, start : start + columns].copy(),
        "value": values[start : start + columns].copy(),
        "d_output": rng.normal(size=(rows, d_v)),
        "output": softmax(whole) @ values,
        "lse": logsumexp(whole),
        "d_lse": rng.normal(size=rows),
    }
    return Case(name, **inputs)


TILE_GRADIENT = Task(
    id="tile-score-gradient",
    title="The gradient of a tile",
    entry="my_score_gradient",
    kind="write",
    equation="score-gradient-with-lse",
    points=3,
    difficulty=4,
    minutes=12,
    trains="the delta trick",
    answer=_tile_gradient,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=lambda rng: [
        _tile_case(rng, "the first 3 of 7 keys", (5, 3, 7, 2, 0), 1.0),
        _tile_case(rng, "2 keys in the middle of 11", (3, 2, 11, 5, 4), 2.0),
        _tile_case(rng, "scores near -900", (7, 5, 11, 3, 6), 1.0, -900.0),
        _tile_case(rng, "one column", (5, 1, 3, 2, 2), 1.0),
    ],
    wrong=[
        Wrong(
            "delta summed over the tile", lambda *i: _tile(*i, delta="tile"), "delta sums over all keys, and your tile has few: use dO . O"
        ),
        Wrong("no delta", lambda *i: _tile(*i, delta="none"), "delta is missing: raising one score takes weight from all others"),
        Wrong(
            "delta from d_output alone",
            lambda *i: _tile(*i, delta="d_output"),
            "delta_i is the dot product of dO_i with O_i, {eq}`row-delta-from-output`",
        ),
        Wrong("d_lse added", lambda *i: _tile(*i, sign=1.0), "the bracket holds dP - (delta - dL): your sign of dL is the other one"),
        Wrong("d_lse left out", lambda *i: _tile(*i, sign=0.0), "the loss reads L as well: use delta - dL for delta"),
        Wrong(
            "weights normalised in the tile", lambda *i: _tile(*i, weights="tile"), "weights are exp(S - L), with the L of the whole row"
        ),
        Wrong("the maximum instead of L", lambda *i: _tile(*i, weights="maximum"), "exp(S - max) is not yet a weight: subtract L instead"),
        Wrong(
            "not multiplied by the weights", lambda *i: _tile(*i, weights="none"), "the bracket is still to be multiplied by the weights P"
        ),
    ],
    hints=[
        "Three steps: weights from scores and lse, the gradient of the weights from d_output and value, delta from d_output and output.",
        "delta = (d_output * output).sum(axis=1); the gradient of the log-sum-exp is subtracted from it.",
        "np.exp(scores - lse[:, None]) * (d_output @ value.T - (delta - d_lse)[:, None])",
    ],
)

# ---- 12.8 outputs of splits


def _splits(outputs: np.ndarray, lses: np.ndarray) -> Result:
    return merge_partial_attention(list(outputs), list(lses))


def _weighted(outputs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.where(weights[..., None] == 0.0, 0.0, weights[..., None] * outputs).sum(axis=0)


def _safe(lses: np.ndarray) -> np.ndarray:
    return np.exp(lses - np.where(np.isneginf(lses.max(axis=0)), 0.0, lses.max(axis=0)))


def _splits_without_care(outputs: np.ndarray, lses: np.ndarray) -> Result:
    m = lses.max(axis=0)
    shares = np.exp(lses - m)
    return (shares[..., None] * outputs).sum(axis=0) / shares.sum(axis=0)[:, None], m + np.log(shares.sum(axis=0))


def _splits_overflow(outputs: np.ndarray, lses: np.ndarray) -> Result:
    sums = np.exp(lses)
    total = sums.sum(axis=0)
    weights = sums / np.where(total == 0.0, 1.0, total)
    return (weights[..., None] * outputs).sum(axis=0), np.log(total)


def _splits_from_one_maximum(outputs: np.ndarray, lses: np.ndarray) -> Result:
    shares = np.exp(lses - lses.max())
    total = shares.sum(axis=0)
    return _weighted(outputs, shares / np.where(total == 0.0, 1.0, total)), lses.max() + np.log(total)


def _split_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_splits, q_len, d_v, spread, empty in (
        ("three splits", 3, 5, 2, 1.0, ()),
        ("log-sum-exps far apart", 4, 3, 7, 900.0, ()),
        ("splits without a visible key", 3, 5, 2, 1.0, ((0, 1), (2, 1), (1, 3), (0, 4), (1, 4), (2, 4))),
        ("one split", 1, 2, 3, 1.0, ()),
        ("one query", 3, 1, 5, 1.0, ()),
        ("no visible key at all", 2, 3, 5, 1.0, tuple((split, row) for split in range(2) for row in range(3))),
    ):
        outputs, lses = rng.normal(size=(n_splits, q_len, d_v)), spread * rng.normal(size=(n_splits, q_len))
        if spread > 1.0:  # e^950 overflows, whatever was drawn; query 1 lies far below query 0
            lses[:, 0] = 900.0 + rng.normal(size=n_splits)
            lses[:, 1] = -900.0 + rng.normal(size=n_splits)
        for split, row in empty:
            outputs[split, row], lses[split, row] = 0.0, -np.inf
        cases.append(Case(name, outputs=outputs, lses=lses))
    return cases


SPLITS = Task(
    id="merge-decoding-splits",
    title="Decoding in splits",
    entry="my_gather",
    kind="write",
    equation="merge-of-finished-outputs",
    points=2,
    difficulty=3,
    minutes=12,
    trains="merging finished outputs by their log-sum-exp",
    answer=_splits,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=_split_cases,
    wrong=[
        Wrong("the mean", lambda o, s: (o.mean(axis=0), _splits(o, s)[1]), "splits count by exp(L), not all the same"),
        Wrong(
            "the sum of outputs",
            lambda o, s: (o.sum(axis=0), _splits(o, s)[1]),
            "each output is already an average: the weights of the splits must sum to 1",
        ),
        Wrong(
            "shares that are not normalised",
            lambda o, s: (_weighted(o, _safe(s)), _splits(o, s)[1]),
            "exp(L_c - max) are shares of the largest split; divide by their sum, or subtract L instead of the maximum",
        ),
        Wrong(
            "the largest split only",
            lambda o, s: (_splits(o, s)[0], s.max(axis=0)),
            "the output is right; L of all keys is the log-sum-exp of the L_c, not their maximum",
        ),
        Wrong(
            "the log-sum-exps added",
            lambda o, s: (_splits(o, s)[0], s.sum(axis=0)),
            "the output is right; sums of exponentials are added, not their logarithms",
        ),
        Wrong("no maximum subtracted", _splits_overflow, "exp(L) overflows near 710: subtract the largest L of each query first"),
        Wrong(
            "one maximum for all queries",
            _splits_from_one_maximum,
            "subtract the largest L of EACH query: far below the largest of all, every exponential of a query becomes 0",
        ),
        Wrong("no care for queries without keys", _splits_without_care, "-inf - (-inf) is NaN: such a query has output 0 and L = -inf"),
        Wrong(
            "normalised over the queries",
            lambda o, s: (_weighted(o, softmax(s, axis=1)), _splits(o, s)[1]),
            "the weights compare splits for one query: normalise over axis 0",
        ),
    ],
    hints=[
        "A split with log-sum-exp L stands for e^L of unnormalised weight. What share of the whole is that?",
        "Subtract the largest L of each query before you take exponentials; what if all are -inf?",
        "shares = np.exp(lses - shift); output = (shares[..., None] * outputs).sum(0) / shares.sum(0)[:, None], with 0 / 0 read as 0.",
    ],
)

# ---- 12.9 read a schedule


def _schedule_to_read(t_1: float, t_2: float) -> dict[str, Any]:
    return {"products": t_1, "exponentials": t_2, "tiles": 3, "overlap": False}


def _read(
    t_1: float, t_2: float, *, tiles: int = 10, between: Callable[..., float] = max, more: int = -1, ends: bool = True
) -> list[float]:
    """Ticks of a tile on each unit, of all tiles with overlap, and how many times as long they take without."""
    overlapped = ends * (t_1 + t_2) + (tiles + more) * between(t_1, t_2)
    return [t_1, t_2, overlapped, tiles * (t_1 + t_2) / overlapped]


READ_SCHEDULE = Task(
    id="read-overlap-schedule",
    title="Read a schedule",
    entry="my_schedule",
    kind="figure",
    equation="overlapped-tile-time",
    points=2,
    difficulty=2,
    minutes=6,
    trains="what overlap can gain",
    variants=every(t_1=(3.0, 4.0, 5.0), t_2=(2.0, 1.0)),
    answer=_read,
    tolerance=2e-4,
    figure_data=_schedule_to_read,
    wrong=[
        Wrong(
            "the two units exchanged",
            lambda t_1, t_2: _read(t_2, t_1),
            "the upper row is the matrix unit, the lower one the exponentials",
        ),
        Wrong(
            "no overlap",
            lambda t_1, t_2: (t_1, t_2, 10 * (t_1 + t_2), 1.0),
            "with overlap the slower unit never waits: the steps of the other are hidden behind it",
        ),
        Wrong("nothing but the slower unit", partial(_read, more=0, ends=False), "the last tile's exponentials still follow its products"),
        Wrong(
            "the faster unit sets the pace",
            partial(_read, between=min),
            "the slower unit sets the pace, {eq}`overlapped-tile-time`",
        ),
        Wrong(
            "the tiles of the figure",
            partial(_read, tiles=3),
            "the last two questions are about ten tiles, the figure shows three",
        ),
        Wrong("a tile too many", partial(_read, more=0), "one of the products is the first term already: n - 1 more follow"),
        Wrong(
            "the limit of many tiles",
            lambda t_1, t_2: (*_read(t_1, t_2)[:3], (t_1 + t_2) / max(t_1, t_2)),
            "that is the factor for very many tiles; with ten of them the first products and the last exponentials still count",
        ),
        Wrong(
            "the factor turned round",
            lambda t_1, t_2: (*_read(t_1, t_2)[:3], 1 / _read(t_1, t_2)[3]),
            "how many times as long it takes WITHOUT overlap: a number above 1",
        ),
    ],
    hints=[
        "Where does the first block of each row begin and end?",
        "With overlap only the first products and the last exponentials stand alone; in between the slower unit works without a break.",
        "t_1 + 9 max(t_1, t_2) + t_2 against 10 (t_1 + t_2).",
    ],
)

# ---- 12.10 a first kernel

BLOCK = 16


def _padded(scores: np.ndarray, fill: float) -> np.ndarray:
    columns = -scores.shape[1] % BLOCK
    return np.concatenate([scores, np.full((len(scores), columns), fill)], axis=1)


def _without_rescale(scores: np.ndarray) -> np.ndarray:
    """The sum keeps each block's share from the maximum of its time."""
    m, row_sum = np.full(len(scores), -np.inf), np.zeros(len(scores))
    for start in range(0, scores.shape[1], BLOCK):
        block = scores[:, start : start + BLOCK]
        m = np.maximum(m, block.max(axis=1))
        row_sum = row_sum + np.exp(block - m[:, None]).sum(axis=1)
    return m + np.log(row_sum)


def _full_blocks(scores: np.ndarray) -> np.ndarray:
    kept = scores[:, : scores.shape[1] // BLOCK * BLOCK]
    return logsumexp(kept) if kept.shape[1] else np.full(len(scores), -np.inf)


def _from_zero(scores: np.ndarray) -> np.ndarray:
    top = np.maximum(scores.max(axis=1), 0.0)
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1))


def _sum_of_last_block(scores: np.ndarray) -> np.ndarray:
    return logsumexp(scores[:, (scores.shape[1] - 1) // BLOCK * BLOCK :])


FIRST_KERNEL = Task(
    id="row-lse-kernel",
    title="A first kernel of your own",
    entry="my_row_lse",
    kind="write",
    equation="row-lse-and-output",
    points=4,
    difficulty=4,
    minutes=25,
    trains="a Triton program: rows, blocks, tails",
    answer=logsumexp,
    tolerance=1e-7,  # of float64 results: a constant in a kernel may be float32 on a GPU
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.EXPONENTIALS, forbidden.KERNEL_LAUNCHED),
    cases=lambda rng: [
        Case("three full blocks", scores=rng.normal(size=(5, 48)) - 2.0),
        Case("two blocks and a tail", scores=rng.normal(size=(3, 37)) - 4.0),
        Case("fewer columns than a block", scores=rng.normal(size=(7, 5)) - 3.0),
        Case("rising scores, up to 300", scores=np.sort(rng.uniform(-60.0, 299.0, size=(2, 67)), axis=1)),
        Case("falling scores, down to -300", scores=-np.sort(60.0 * rng.normal(size=(3, 35)).clip(-3.0, 3.0) + 120.0, axis=1)),
        Case("scores near -290", scores=rng.normal(size=(5, 21)) - 290.0),
        Case("one row", scores=rng.normal(size=(1, 19)) - 3.0),
        Case("one score a row", scores=rng.normal(size=(3, 1)) - 1.0),
    ],
    wrong=[
        Wrong(
            "the tail read as 0",
            lambda s: logsumexp(_padded(s, 0.0)),
            "columns past the end count as scores of 0; load them with other=-inf",
        ),
        Wrong(
            "the last block dropped when it is not full",
            _full_blocks,
            "the loop must also run for a block that is not full: range(0, n, BLOCK)",
        ),
        Wrong("the sum not rescaled", _without_rescale, "when the maximum grows, the old sum shrinks by exp(old - new)"),
        Wrong(
            "no maximum",
            lambda s: np.log(np.exp(s.astype(np.float32)).sum(axis=1)),
            "exp overflows in float32 near 88.7: subtract the running maximum",
        ),
        Wrong(
            "a maximum that starts at 0",
            lambda s: _from_zero(s.astype(np.float32)),
            "below -104 every exp(s - 0) is 0 in float32: before the first block the maximum is -inf",
        ),
        Wrong(
            "only the first row written",
            lambda s: np.where(np.arange(len(s)) == 0, logsumexp(s), np.nan),
            "the first row is right and the others are no numbers: does one program run for each row, and does it store at lse_ptr + row?",
        ),
        Wrong("the maximum returned", lambda s: s.max(axis=1), "the maximum is only the first part of m + ln(l)"),
        Wrong("the logarithm of the sum alone", lambda s: logsumexp(s) - s.max(axis=1), "ln(l) is measured from the maximum: add m again"),
        Wrong(
            "a logarithm to base 2",
            lambda s: s.max(axis=1) + (logsumexp(s) - s.max(axis=1)) / math.log(2.0),
            "the sum is of powers of e, so its logarithm is natural: tl.log, not tl.log2",
        ),
        Wrong("only the last block", _sum_of_last_block, "maximum and sum must live through the loop: you start afresh in every block"),
        Wrong(
            "one number for all rows",
            lambda s: np.full(len(s), logsumexp(s[0])),
            "each program reads its own row: the start is row * n_columns",
        ),
    ],
    hints=[
        "One program, one row. What do `row_max` and `row_sum` hold before the loop, and what does one block change?",
        "`columns = start + tl.arange(0, BLOCK)`; the load needs `mask=columns < n_columns, other=float('-inf')`; the grid is `(n_rows,)`.",
        "new_max = tl.maximum(row_max, tl.max(x, 0)); row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), 0).",
    ],
)
