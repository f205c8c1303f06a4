"""The tasks on masking: weights, masks, counts."""

from typing import Any

import numpy as np

from attn_course.reference import causal_mask, padding_mask, softmax, window_mask
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import Case


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


@asked(
    "masked-weights",
    "Weights under a mask",
    kind="write",
    equation="masked-attention",
    points=3,
    difficulty=2,
    minutes=12,
    trains="minus infinity before the softmax, and rows without any key",
    judged_by=lambda scores, mask: softmax(np.where(mask, scores, -np.inf)),
    exact_zeros=True,
    cases=_weights_cases,
    slips="""
        the mask after the softmax
                kept = np.where(mask, scores, -np.inf) -> kept = scores
                ;;
                np.where(total == 0.0, 1.0, total) -> np.where(total == 0.0, 1.0, total) * mask
            the hidden scores are still in the normaliser, so rows do not sum to 1: mask the scores, then take the softmax
        the maximum taken over hidden scores too
                top = kept.max -> top = scores.max
                ;;
                np.exp(kept - np.where(top == -np.inf, 0.0, top)) -> np.where(mask, np.exp(scores - top), 0.0)
            a hidden score must have no influence, nor must it be what is subtracted: far above the visible ones, it makes them all
            underflow. Take the maximum after masking
        struck out and renormalised afterwards
                kept = np.where(mask, scores, -np.inf) -> kept = scores
                ;;
                return unnormalised / np.where(total == 0.0, 1.0, total)
                ->
                struck = unnormalised / np.where(total == 0.0, 1.0, total) * mask
                left = struck.sum(axis=-1, keepdims=True)
                return struck / np.where(left == 0.0, 1.0, left)
            equal on paper, {eq}`masking-renormalises-weights`; but a hidden score a thousand above the others makes all visible weights
            underflow before you renormalise, and a NaN spreads
        the mask added as zeros and ones
            np.where(mask, scores, -np.inf) -> scores + mask
            adding 1 multiplies a share by e and hides nothing, {eq}`score-bias-is-factor`: the number to add is 0 or minus infinity
        the scores multiplied by the mask
            np.where(mask, scores, -np.inf) -> scores * mask
            a score of 0 is a score like any other, with the share e^0 = 1: hidden keys need minus infinity
        True hides
            np.where(mask, scores, -np.inf) -> np.where(mask, -np.inf, scores)
            the polarity is inverted: True means that the query may attend to the key
        equal weights where nothing is visible
            np.where(mask, scores, -np.inf) -> np.where(mask, scores, -1e9)
            in a row where everything is hidden, all weights must be 0; a large finite number in the place of minus infinity gives equal
            weights there, {eq}`softmax-shift-invariance`
        a low row measured from too high a number
                np.where(mask, scores, -np.inf) -> np.where(mask, scores, -50.0)
                ;;
                np.where(total == 0.0, 1.0, total) -> np.where(total == 0.0, 1.0, total) * mask
            where all visible scores of a row are near -1000, the largest of them must be subtracted: measured from a fill of -50, or
            from 0, every term underflows
        no maximum subtracted
            kept - np.where(top == -np.inf, 0.0, top) -> kept
            e^1000 overflows and e^-1000 underflows: subtract the largest visible score of the row first
        one maximum for all rows
            kept.max(axis=-1, keepdims=True) -> kept.max()
            in a row far below the largest score of all, every term underflows: each row needs its own maximum
        NaN where nothing is visible
            np.where(top == -np.inf, 0.0, top) -> top ;; np.where(total == 0.0, 1.0, total) -> total
            a row without any key is 0 / 0, after -inf - (-inf): let the maximum and the sum of such a row be harmless numbers,
            {eq}`empty-row-is-zero`
        the maximum of a column
            kept.max(axis=-1 -> kept.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        softmax over the queries
            kept.max(axis=-1 -> kept.max(axis=-2 ;; unnormalised.sum(axis=-1 -> unnormalised.sum(axis=-2
            the weights of a query sum to 1 over its visible keys, the last axis
    """,
    hints="""
        Which number, put in place of a score, gives exactly zero after `exp`? And what is the maximum of a row of such numbers?
        `np.where(mask, scores, -np.inf)` removes anything strange in hidden places too. Then a softmax, with care in empty rows.
        With `top` the row maximum, subtract `np.where(top == -np.inf, 0, top)`; divide by the sum where it is not 0, else by 1.
    """,
    why=r"""
        `where` chooses; it never multiplies what is hidden, so no NaN survives. In a row without keys the maximum is
        $-\infty$, and $-\infty - (-\infty)$ would be NaN: with 0 in its place all exponentials are 0, and dividing by 1 keeps them so.
    """,
)
def my_masked_weights(scores, mask):
    """(..., q_len, kv_len) scores and a mask that broadcasts to them -> weights of
    the shape of the scores.

    Write `my_masked_weights(scores, mask)`: it takes float64 scores of shape `(..., q_len, kv_len)` and a boolean mask that
    broadcasts to them, perhaps with fewer axes {case}`one query, a mask of one axis`, and returns weights of the shape of the
    scores: a softmax over the keys (last axis).

    Hidden keys get the weight 0, exactly, and so does **everything in a row without visible keys**. Visible scores may be near
    100 000 in one row, near -100 000 in the next {case}`visible scores near 100 000 and -100 000` {lowest}`-100000`; a *hidden* score
    may be anything, even NaN or infinite {case}`hidden scores that are no numbers`, and must not matter.
    """
    kept = np.where(mask, scores, -np.inf)
    top = kept.max(axis=-1, keepdims=True)
    unnormalised = np.exp(kept - np.where(top == -np.inf, 0.0, top))
    total = unnormalised.sum(axis=-1, keepdims=True)
    return unnormalised / np.where(total == 0.0, 1.0, total)


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


@asked(
    "read-mask",
    "Read a mask off a map of weights",
    kind="figure",
    equation="causal-mask",
    points=1,
    difficulty=1,
    minutes=5,
    trains="telling leaks, padding and empty rows apart",
    figure="charts.heatmap",
    tolerance=1e-3,
    figure_data=_map_to_read,
    slips="""
        rows and columns exchanged
            4, 3 -> 3, 4
            rows are queries, columns are keys: padding is a hidden column, a query that sees nothing a hidden row
        counted from one
            4, 3 -> 5, 4
            queries and keys are counted from 0, as the axes of the figure are
        not every pair that leaks
            (6, -> (5,
            count the visible pairs, not the rows, whose key is later than the query; a hidden pair below the diagonal is a loss, not a leak
        visible pairs of the past counted
            (6, -> (16,
            those pairs may be visible: the key is earlier than the query. A leak lies above the diagonal
        the diagonal counted as future
            (6, -> (11,
            a token may see itself: only keys later than the query are the future
    """,
    hints="""
        Where is the diagonal? Visible cells to the right of it have a key that is later than the query.
        Padding is hidden from every query; a query that sees nothing has every key hidden.
        Go through the rows from the top, and count the cells with a number to the right of the diagonal.
    """,
    why="""
        To the right of the diagonal there are numbers in the rows 0 (twice), 1, 2, 4 and 5. Column 4 and row 3 are hatched from
        end to end. That rows still sum to 1 shows nothing: the leaks were normalised along with the rest.
    """,
)
def my_reading():
    """Run the cell below. It shows the weights of seven queries over seven keys; the mask was meant to be causal, with some
    padding. Hidden pairs are hatched. Write three numbers as `my_reading = (a, b, c)`:

    - `a`: how many pairs leak, that is, let a query attend to a later token?
    - `b`: which key is padding, hidden from all queries?
    - `c`: which query sees nothing at all?
    """
    return (6, 4, 3)


def _reference(scores, past, window, length):
    q_len, kv_len = scores.shape
    visible = window_mask(q_len, kv_len, window, 0, past) & padding_mask(np.array(length), kv_len)
    return np.where(visible, scores, -np.inf)


def _scores(normal, q_len, kv_len, past, window, length):
    return {"scores": normal(q_len, kv_len), "past": past, "window": window, "length": length}


SCORES = """
two new tokens, nothing else: 2 7 5 7 7
one new token after six: 1 7 6 7 7
three new tokens and a window: 3 11 8 2 11
a window of 0: 5 7 2 0 7
the first tokens, no past: 3 7 0 7 7
padding: 5 7 2 7 4
rows in which all is hidden: 3 11 8 6 4
no key is real: 3 5 2 5 0
all three: 5 11 3 2 6
room in the cache behind the queries: 2 11 3 11 11
"""


@asked(
    "combined-masks",
    "Three masks in one",
    kind="write",
    equation="added-masks-intersect",
    points=3,
    difficulty=3,
    minutes=12,
    trains="positions with a cache, windows, padding, and how they combine",
    judged_by=_reference,
    cases=tried(_scores, SCORES),
    slips="""
        aligned at the top left
            ` + past` ->
            query i stands at position i + past, {eq}`causal-mask`; you forgot the past
        always aligned at the bottom right
            + past -> + scores.shape[1] - scores.shape[0]
            kv_len - q_len is the past only if the last query stands at the last key, {eq}`bottom-right-offset`: here the past is given
        the token itself hidden
            j <= at -> j < at
            a query may see its own position: the comparison is <=, not <
        one column too wide
            (j <= at) -> (j <= at + 1)
            the next token is visible: a model trained like this copies it and learns nothing else
        the window counts the token itself
            j >= at - window -> j > at - window
            the window holds `window` earlier keys and the token itself: window + 1 keys in all
        the window forgotten
            ` & (j >= at - window)` ->
            keys more than `window` positions back are still visible
        the padding forgotten
            ` & (j < length)` ->
            keys from `length` on are padding and must be hidden, from every query
        one rule is enough
            & (j < length) -> | (j < length)
            a key must pass every rule, {eq}`added-masks-intersect`: combine by and, not by or
        empty rows left as they were
                return np.where((j <= at) & (j >= at - window) & (j < length), scores, -np.inf)
                ->
                visible = (j <= at) & (j >= at - window) & (j < length)
                return np.where(visible | ~visible.any(axis=1, keepdims=True), scores, -np.inf)
            a row whose keys are all hidden is minus infinity throughout: what the softmax makes of it is settled later,
            {eq}`empty-row-is-zero`
        hidden scores set to 0
            -np.inf -> 0.0
            a score of 0 is a score like any other, with the share e^0 = 1: hidden keys need minus infinity
        one key of the padding too many
            j < length -> j <= length
            the key with the number `length` is padding already: compare with <, not <=
        an inverted mask
            scores, -np.inf -> -np.inf, scores
            minus infinity belongs to the keys that fail a rule; yours keeps just these
        one key too far back
            j >= at - window -> j >= at - window - 1
            the first key of the window is `window` positions before the query, not one more
        the past counted twice
            + past -> + 2 * past
            query i stands at position i + past; the keys of the past are counted in its number once
        no causal rule
            `(j <= at) & ` ->
            a key later than its query must be hidden, also inside of the window and before the padding
        a finite fill
            -np.inf -> -1e9
            hidden scores must be minus infinity itself, so that whatever comes after leaves them nothing
        the past cut at the padding
            + past -> + min(past, length)
            padding may begin within the past: query i stands at i + past all the same
        length counted from the past
            j < length -> j < past + length
            `length` counts the real keys from key 0 on, those of the past included
    """,
    hints="""
        Write the position of query i as a column, the index of the keys as a row, and compare them: NumPy makes the matrix.
        Three comparisons: not later than the query, not more than `window` earlier, before the padding. All three must hold.
        `at = np.arange(len(scores))[:, None] + past`, `j = np.arange(scores.shape[1])`, `np.where(... & ... & ..., scores, -np.inf)`.
    """,
    why=r"""
        A pair must pass every rule, so the conditions are joined by `&`, which is the same as adding three masks of 0 and
        $-\infty$, {eq}`added-masks-intersect`. Position, not row number, decides: `past` is added once, and both comparisons use it.
    """,
)
def my_masked_scores(scores, past, window, length):
    r"""(q_len, kv_len) scores -> the same with -inf where query i may not attend to
    key j.

    Write `my_masked_scores(scores, past, window, length)`: a copy of the `(q_len, kv_len)` float64 scores with $-\infty$ wherever
    the key is hidden. The other arguments are integers. Query $i$ stands at position $i + \text{past}$ among the keys, and sees
    key $j$ if **all three** hold:

    - the key is not later than the query;
    - it is at most `window` positions earlier (0: only the query's own) {case}`a window of 0`;
    - it is not padding: only keys $0, \ldots, \text{length} - 1$ are real.

    A row may end up all hidden: then it is $-\infty$ throughout.
    """
    at = np.arange(scores.shape[0])[:, None] + past
    j = np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (j < length), scores, -np.inf)


@asked(
    "window-counts",
    "What a window leaves",
    kind="predict",
    equation="window-pair-count",
    points=1,
    difficulty=2,
    minutes=6,
    trains="counting pairs and layers",
    variants=[{"T": T, "w": w} for T, w in ((100, 7), (120, 9), (90, 8), (80, 6), (140, 9), (125, 7), (95, 7), (135, 8))],
    slips="""
        the first rows counted as full
            ` - w * (w + 1) // 2` ->
            the first rows have fewer keys: there is nothing before the text
        the token itself forgotten
            T * (w + 1) - -> T * w -
            each query also sees its own position: one more key in each row
        the window taken to hold the token itself
            T * (w + 1) - w * (w + 1) // 2 -> T * w - w * (w - 1) // 2
            a full row has the token itself and w more
        no window
            T * (w + 1) - w * (w + 1) // 2 -> T * (T + 1) // 2
            that is the whole triangle of a causal mask; most of it lies outside of the window
        not rounded
            -((1 - T) // w) -> (T - 1) / w
            there are whole layers only: how many are needed to go back far enough?
        rounded down
            -((1 - T) // w) -> (T - 1) // w
            the last layer is needed even if it goes only a part of its way
        the token itself counted as a step
            // w) -> // (w + 1))
            a window of w earlier keys reaches w back in one layer, {eq}`reach-of-stacked-windows`; seeing oneself brings nobody further
        a window on both sides
            T * (w + 1) - w * (w + 1) // 2 -> T * (2 * w + 1) - w * (w + 1)
            the mask is causal: the window holds earlier tokens only
    """,
    hints="""
        A full row has the window and the token itself; the first rows have fewer. Then: how far back does one layer reach?
        The rows lack as many keys as the numbers from the window down to one, summed up. The last token is T - 1 after the first.
        Use {eq}`window-pair-count`; then divide T - 1 by w and round up.
    """,
    why=r"""
        Here full rows have 8 keys; the first seven lack $7 + 6 + \dots + 1 = 28$. The first token is 99 positions before the
        last, one layer goes back 7 of them, and $99 / 7 = 14.1$, so fourteen layers do not quite reach it.
    """,
)
def my_count(T, w):
    """A text of $T$ tokens, a causal mask with a window of $w$: each token sees itself and at most the $w$ tokens before it. The cell
    below prints your $T$ and $w$. Write two numbers as `my_count = (a, b)`:

    - `a`: how many pairs of query and key are visible in one layer?
    - `b`: how many such layers, stacked, does it take until the last token can depend on the first?
    """
    return (T * (w + 1) - w * (w + 1) // 2, -((1 - T) // w))


ORDER = [
    note(
        "title",
        """
        Each stands for itself, so take them in any order.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs. Rows are queries,
        columns are keys, both counted from 0. A boolean mask is True where the query may attend to the key.
    """,
    ),
    "masked-weights",
    "read-mask",
    "combined-masks",
    "window-counts",
    "large-enough-fill",
    "repair-cached-causal-mask",
    "repair-padded-batch",
    "masked-score-gradient",
    "leak-test",
    note(
        "answers-in-latex",
        r"""
        ## Answers in LaTeX
        The last two answers are LaTeX, between `r"` and `"`. Any form counts that has the right value in every case. To see how
        yours is understood, `from attn_course import read` and call `read("masked-softmax", my_derivation)`; what cannot be read is
        no attempt. `[j \in A]` is 1 if $j$ is in the set $A$, else 0. `\sum_{l \in A}` sums over the members of $A$, and
        `\sum_{l \notin A}` over all others.
    """,
    ),
    "masked-softmax",
    "weight-behind-finite-fill",
    "slope-behind-late-mask",
    "who-moves-whom",
]
