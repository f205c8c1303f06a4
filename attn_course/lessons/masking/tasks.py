"""The graded tasks on masking: weights, masks, counts."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.masking.tasks_formulas import FINITE_FILL, MASKED_SOFTMAX
from attn_course.lessons.masking.tasks_leaks import FILL, LEAKS, SCORE_GRADIENT
from attn_course.lessons.masking.tasks_repairs import CACHED, PADDED
from attn_course.reference import causal_mask, padding_mask, softmax, window_mask
from attn_course.tasks.core import Case, Task, Wrong

# --- 7.1 weights under a mask --------------------------------------------------------------------------


def _masked_weights(scores: np.ndarray, mask: np.ndarray, hidden: float = -np.inf) -> np.ndarray:
    return softmax(np.where(mask, scores, hidden))


def _empty_rows_nan(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    kept = np.where(mask, scores, -np.inf)
    unnormalised = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)


def _renormalised_late(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    struck = softmax(scores) * mask
    total = struck.sum(axis=-1, keepdims=True)
    return struck / np.where(total == 0.0, 1.0, total)


def _shifted_by_hidden(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    unnormalised = np.where(mask, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    total = unnormalised.sum(axis=-1, keepdims=True)
    return unnormalised / np.where(total == 0.0, 1.0, total)


def _shifted_by(scores: np.ndarray, mask: np.ndarray, shift: float) -> np.ndarray:
    """Right for moderate scores: one number is subtracted from all of them, whatever their row."""
    unnormalised = np.exp(np.where(mask, scores - shift, -np.inf))
    total = unnormalised.sum(axis=-1, keepdims=True)
    return unnormalised / np.where(total == 0.0, 1.0, total)


def _small_fill(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return _masked_weights(scores, mask, -50.0) * mask


def _weights_cases(rng: np.random.Generator) -> list[Case]:
    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    def mask(*shape: int) -> np.ndarray:
        allowed = rng.random(shape) < 0.6
        allowed[..., 0] = ~allowed.any(axis=-1) | allowed[..., 0]  # every row sees something
        allowed[..., -1] = False
        return allowed

    empty = mask(5, 7)
    empty[2] = False
    far, strange = draw(3, 5), draw(5, 7)
    far[:, -1] += 1000.0
    hidden = mask(5, 7)
    strange[:, -1], strange[1, -1], strange[3, -1] = 800.0, np.nan, np.inf
    levels = draw(3, 7) + np.array([[1000.0], [0.0], [-1000.0]])
    far_levels = np.round(8.0 * draw(3, 11)) / 8.0 + np.array([[1e5], [0.0], [-1e5]])  # exact in float32
    nothing = draw(2, 3, 5)
    nothing[0, 1] = [np.nan, np.inf, -np.inf, 1e30, -1000.0]
    return [
        Case("a mask of its own for each query", scores=draw(5, 7), mask=mask(5, 7)),
        Case("one mask for all queries", scores=draw(5, 3), mask=mask(1, 3)),
        Case("two leading axes", scores=draw(2, 3, 5, 7), mask=mask(2, 1, 5, 7)),
        Case("one mask for all leading axes", scores=draw(2, 3, 5, 7), mask=mask(5, 7)),
        Case("a query that sees nothing", scores=draw(5, 7), mask=empty),
        Case("a hidden score a thousand above the others", scores=far, mask=mask(3, 5)),
        Case("hidden scores that are no numbers", scores=strange, mask=hidden),
        Case("visible scores near a thousand and minus a thousand", scores=levels, mask=mask(3, 7)),
        Case("visible scores near 100 000 and -100 000", scores=far_levels, mask=mask(3, 11)),
        Case("one query, a mask of one axis", scores=draw(1, 7), mask=mask(7)),
        Case("nobody sees anything", scores=nothing, mask=np.zeros((2, 1, 5), dtype=bool)),
    ]


MASKED_WEIGHTS = Task(
    id="masked-weights",
    title="Weights under a mask",
    entry="my_masked_weights",
    kind="write",
    equation="masked-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="minus infinity before the softmax, and rows without any key",
    answer=_masked_weights,
    exact_zeros=True,
    cases=_weights_cases,
    wrong=[
        Wrong(
            "the mask after the softmax",
            lambda scores, mask: softmax(scores) * mask,
            "the hidden scores are still in the normaliser, so rows do not sum to 1: mask the scores, then take the softmax",
        ),
        Wrong(
            "the maximum taken over hidden scores too",
            _shifted_by_hidden,
            "a hidden score must have no influence, nor must it be what is subtracted: far above the visible ones, it makes them all "
            "underflow. Take the maximum after masking",
        ),
        Wrong(
            "struck out and renormalised afterwards",
            _renormalised_late,
            "equal on paper, {eq}`masking-renormalises-weights`; but a hidden score a thousand above the others makes all visible "
            "weights underflow before you "
            "renormalise, and a NaN spreads",
        ),
        Wrong(
            "the mask added as zeros and ones",
            lambda scores, mask: softmax(scores + mask),
            "adding 1 multiplies a share by e and hides nothing, {eq}`score-bias-is-factor`: the number to add is 0 or minus infinity",
        ),
        Wrong(
            "the scores multiplied by the mask",
            lambda scores, mask: softmax(scores * mask),
            "a score of 0 is a score like any other, with the share e^0 = 1: hidden keys need minus infinity",
        ),
        Wrong(
            "True hides",
            lambda scores, mask: _masked_weights(scores, ~mask),
            "the polarity is inverted: True means that the query may attend to the key",
        ),
        Wrong(
            "equal weights where nothing is visible",
            lambda scores, mask: _masked_weights(scores, mask, -1e9),
            "in a row where everything is hidden, all weights must be 0; a large finite number in the place of minus infinity gives equal "
            "weights there, {eq}`filled-row-hides-nothing`",
        ),
        Wrong(
            "a low row measured from too high a number",
            _small_fill,
            "where all visible scores of a row are near -1000, the largest of them must be subtracted: measured from a fill of -50, or "
            "from 0, every term underflows",
        ),
        Wrong(
            "no maximum subtracted",
            lambda scores, mask: _shifted_by(scores, mask, 0.0),
            "e^1000 overflows and e^-1000 underflows: subtract the largest visible score of the row first",
        ),
        Wrong(
            "one maximum for all rows",
            lambda scores, mask: _shifted_by(scores, mask, float(np.where(mask, scores, -np.inf).max())),
            "in a row far below the largest score of all, every term underflows: each row needs its own maximum",
        ),
        Wrong(
            "NaN where nothing is visible",
            _empty_rows_nan,
            "a row without any key is 0 / 0, after -inf - (-inf): let the maximum and the sum of such a row be harmless numbers, "
            "{eq}`empty-row-is-zero`",
        ),
    ],
    hints=[
        "Which number, put in place of a score, gives exactly zero after `exp`? And what is the maximum of a row of such numbers?",
        "`np.where(mask, scores, -np.inf)` removes anything strange in hidden places too. Then a softmax, with care in empty rows.",
        "With `top` the row maximum, subtract `np.where(top == -np.inf, 0, top)`; divide by the sum where it is not 0, else by 1.",
    ],
)

# --- 7.2 a map to read ---------------------------------------------------------------------------------


def _map_to_read() -> dict[str, Any]:
    mask = causal_mask(7, 7)
    mask[:, 4] = False  # padding
    mask[3] = False  # sees nothing
    for leak in ((0, 2), (0, 5), (1, 3), (2, 6), (4, 5), (5, 6)):
        mask[leak] = True
    scores = np.random.default_rng(72).normal(size=(7, 7))
    weights = softmax(np.where(mask, scores, -np.inf))
    rows = " ".join(
        f"Row {i}: " + (", ".join(f"key {j} {weights[i, j]:.2f}" for j in np.flatnonzero(mask[i])) or "nothing") + "." for i in range(7)
    )
    return {
        "matrix": weights,
        "mask": mask,
        "title": "Weights of seven queries over seven keys, hidden pairs hatched",
        "alt": f"Heatmap of attention weights, queries in rows and keys in columns, both counted from 0; the visible pairs are: {rows}",
    }


READ_MASK = Task(
    id="read-mask",
    title="Read a mask off a map of weights",
    entry="my_reading",
    kind="figure",
    equation="causal-mask",
    points=1,
    difficulty=1,
    minutes=5,
    trains="telling leaks, padding and empty rows apart",
    answer=lambda: (6.0, 4.0, 3.0),
    tolerance=1e-3,
    figure_data=_map_to_read,
    wrong=[
        Wrong(
            "rows and columns exchanged",
            lambda: (6.0, 3.0, 4.0),
            "rows are queries, columns are keys: padding is a hidden column, a query that sees nothing a hidden row",
        ),
        Wrong("counted from one", lambda: (6.0, 5.0, 4.0), "queries and keys are counted from 0, as the axes of the figure are"),
        Wrong(
            "hidden pairs of the past counted",
            lambda: (5.0, 4.0, 3.0),
            "a hidden pair below the diagonal is a loss, not a leak: count the visible pairs whose key is later than the query",
        ),
        Wrong(
            "visible pairs of the past counted",
            lambda: (16.0, 4.0, 3.0),
            "those pairs may be visible: the key is earlier than the query. A leak lies above the diagonal",
        ),
        Wrong(
            "the diagonal counted as future",
            lambda: (11.0, 4.0, 3.0),
            "a token may see itself: only keys later than the query are the future",
        ),
    ],
    hints=[
        "Where is the diagonal? Visible cells to the right of it have a key that is later than the query.",
        "Padding is hidden from every query; a query that sees nothing has every key hidden.",
        "Go through the rows from the top, and count the cells with a number to the right of the diagonal.",
    ],
)

# --- 7.3 three masks in one ----------------------------------------------------------------------------


def _hide(scores: np.ndarray, past: int, window: int, length: int) -> np.ndarray:
    q_len, kv_len = scores.shape
    visible = window_mask(q_len, kv_len, window, 0, past) & padding_mask(np.array(length), kv_len)
    return np.where(visible, scores, -np.inf)


def _hide_but_not_all(scores: np.ndarray, past: int, window: int, length: int) -> np.ndarray:
    masked = _hide(scores, past, window, length)
    return np.where(np.isinf(masked).all(axis=1, keepdims=True), scores, masked)


def _hide_instead(rule: Any, *, combine: Any = np.logical_and, padding: bool = True) -> Any:
    """Make a wrong answer from another rule for the position of the query, the keys and the window."""

    def answer(scores: np.ndarray, past: int, window: int, length: int) -> np.ndarray:
        at, j = np.arange(len(scores))[:, None] + past, np.arange(scores.shape[1])
        return np.where(combine(rule(at, j, window), (j < length) | (not padding)), scores, -np.inf)

    return answer


COMBINED_MASK = Task(
    id="combined-masks",
    title="Three masks in one",
    entry="my_masked_scores",
    kind="write",
    equation="added-masks-intersect",
    points=3,
    difficulty=3,
    minutes=12,
    trains="positions with a cache, windows, padding, and how they combine",
    answer=_hide,
    cases=lambda rng: [
        Case("two new tokens, nothing else", scores=rng.normal(size=(2, 7)), past=5, window=7, length=7),
        Case("one new token after six", scores=rng.normal(size=(1, 7)), past=6, window=7, length=7),
        Case("three new tokens and a window", scores=rng.normal(size=(3, 11)), past=8, window=2, length=11),
        Case("a window of 0", scores=rng.normal(size=(5, 7)), past=2, window=0, length=7),
        Case("the first tokens, no past", scores=rng.normal(size=(3, 7)), past=0, window=7, length=7),
        Case("padding", scores=rng.normal(size=(5, 7)), past=2, window=7, length=4),
        Case("rows in which all is hidden", scores=rng.normal(size=(5, 11)), past=3, window=2, length=4),
        Case("no key is real", scores=rng.normal(size=(3, 5)), past=2, window=5, length=0),
        Case("all three", scores=rng.normal(size=(5, 11)), past=3, window=2, length=6),
        Case("room in the cache behind the queries", scores=rng.normal(size=(2, 11)), past=3, window=11, length=11),
    ],
    wrong=[
        Wrong(
            "aligned at the top left",
            lambda scores, past, window, length: _hide(scores, 0, window, length),
            "query i stands at position i + past, {eq}`causal-mask`; you forgot the past",
        ),
        Wrong(
            "always aligned at the bottom right",
            lambda scores, past, window, length: _hide(scores, scores.shape[1] - scores.shape[0], window, length),
            "kv_len - q_len is the past only if the last query stands at the last key, {eq}`bottom-right-offset`: here the past is given",
        ),
        Wrong(
            "the token itself hidden",
            _hide_instead(lambda at, j, window: (j < at) & (j >= at - window)),
            "a query may see its own position: the comparison is <=, not <",
        ),
        Wrong(
            "one column too wide",
            _hide_instead(lambda at, j, window: (j <= at + 1) & (j >= at - window)),
            "the next token is visible: a model trained like this copies it and learns nothing else",
        ),
        Wrong(
            "the window counts the token itself",
            _hide_instead(lambda at, j, window: (j <= at) & (j > at - window)),
            "the window holds `window` earlier keys and the token itself: window + 1 keys in all",
        ),
        Wrong(
            "the window forgotten",
            _hide_instead(lambda at, j, window: j <= at),
            "keys more than `window` positions back are still visible",
        ),
        Wrong(
            "the padding forgotten",
            _hide_instead(lambda at, j, window: (j <= at) & (j >= at - window), padding=False),
            "keys from `length` on are padding and must be hidden, from every query",
        ),
        Wrong(
            "one rule is enough",
            _hide_instead(lambda at, j, window: (j <= at) & (j >= at - window), combine=np.logical_or),
            "a key must pass every rule, {eq}`added-masks-intersect`: combine by and, not by or",
        ),
        Wrong(
            "empty rows left as they were",
            _hide_but_not_all,
            "a row whose keys are all hidden is minus infinity throughout: what the softmax makes of it is settled later, "
            "{eq}`empty-row-is-zero`",
        ),
        Wrong(
            "hidden scores set to 0",
            lambda scores, past, window, length: np.where(np.isinf(_hide(scores, past, window, length)), 0.0, scores),
            "a score of 0 is a score like any other, with the share e^0 = 1: hidden keys need minus infinity",
        ),
    ],
    hints=[
        "Write the position of query i as a column, the index of the keys as a row, and compare them: NumPy makes the matrix.",
        "Three comparisons: not later than the query, not more than `window` earlier, before the padding. All three must hold.",
        "`at = np.arange(len(scores))[:, None] + past`, `j = np.arange(scores.shape[1])`, `np.where(... & ... & ..., scores, -np.inf)`.",
    ],
)

# --- 7.4 counting --------------------------------------------------------------------------------------


def _window(
    T: int, w: int, *, own: int = 1, full: bool = False, rounded: Callable[[float], float] = math.ceil, step: int = 0
) -> tuple[float, ...]:
    """Visible pairs where a row sees w keys before its own, and the layers that reach from the last token to the first."""
    keys = w + own
    return T * keys - (0 if full else keys * (keys - 1) // 2), rounded((T - 1) / (w + step))


COUNT_PAIRS = Task(
    id="window-counts",
    title="What a window leaves",
    entry="my_count",
    kind="predict",
    equation="window-pair-count",
    points=1,
    difficulty=2,
    minutes=6,
    trains="counting pairs and layers",
    variants=[{"T": T, "w": w} for T, w in ((100, 7), (120, 9), (90, 8), (80, 6), (140, 9), (125, 7), (95, 7), (135, 8))],
    answer=_window,
    wrong=[
        Wrong(
            "the first rows counted as full",
            partial(_window, full=True),
            "the first rows have fewer keys: there is nothing before the text",
        ),
        Wrong(
            "the token itself forgotten",
            lambda T, w: (_window(T, w)[0] - T, _window(T, w)[1]),
            "each query also sees its own position: one more key in each row",
        ),
        Wrong(
            "the window taken to hold the token itself",
            partial(_window, own=0),
            "a full row has the token itself and w more",
        ),
        Wrong(
            "no window",
            lambda T, w: (T * (T + 1) // 2, _window(T, w)[1]),
            "that is the whole triangle of a causal mask; most of it lies outside of the window",
        ),
        Wrong("not rounded", partial(_window, rounded=float), "there are whole layers only: how many are needed to go back far enough?"),
        Wrong("rounded down", partial(_window, rounded=math.floor), "the last layer is needed even if it goes only a part of its way"),
        Wrong(
            "the token itself counted as a step",
            partial(_window, step=1),
            "a window of w earlier keys reaches w back in one layer, {eq}`reach-of-stacked-windows`; seeing oneself brings nobody further",
        ),
    ],
    hints=[
        "A full row has the window and the token itself; the first rows have fewer. Then: how far back does one layer reach?",
        "The rows lack as many keys as the numbers from the window down to one, summed up. The last token is T - 1 after the first.",
        "Use {eq}`window-pair-count`; then divide T - 1 by w and round up.",
    ],
)

TASKS = [MASKED_WEIGHTS, READ_MASK, COMBINED_MASK, COUNT_PAIRS, FILL, CACHED, PADDED, SCORE_GRADIENT, LEAKS, MASKED_SOFTMAX, FINITE_FILL]
