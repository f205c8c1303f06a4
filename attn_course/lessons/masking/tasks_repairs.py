"""Tasks on masking: two repairs, a decoder with a cache and a padded batch."""

import math

import numpy as np

from attn_course.reference import attention, padding_mask
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import Case


def _draw(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int, *batch: int) -> dict[str, np.ndarray]:
    return {
        "query": rng.normal(size=(*batch, q_len, d_k)),
        "key": rng.normal(size=(*batch, kv_len, d_k)),
        "value": rng.normal(size=(*batch, kv_len, d_v)),
    }


def _at_level(arrays: dict[str, np.ndarray], level: float) -> dict[str, np.ndarray]:
    """Give all scores about the same level, by the first feature."""
    arrays["query"][..., 0] = 30.0
    arrays["key"][..., 0] = level * math.sqrt(arrays["query"].shape[-1]) / 30.0
    return arrays


def _far_down(arrays: dict[str, np.ndarray], score: float, step: float) -> dict[str, np.ndarray]:
    """Give the first key this score, for every query, and each later one a score that is a step higher, exactly in every precision.

    `arrays`: with `query` and `key`, whose rows have 4 features, so that the scale is 1/2. They are changed.
    `score`, `step`: powers of two but for their signs.
    """
    arrays["query"][...] = np.array([2.0**20, 0.0, 0.0, 0.0])
    arrays["key"][..., 0] = 2.0 * (score + step * np.arange(arrays["key"].shape[-2])) / 2.0**20
    return arrays


def _newest_key_high(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    arrays["key"][-1, 0] *= -1.0
    return arrays


def _far_from_zero(rng):
    high = _newest_key_high(_at_level(_draw(rng, 3, 7, 5, 2), -1000.0))
    return [
        Case("scores near minus a thousand, those of the newest key near a thousand", **high),
        Case("scores near -2^40", **_far_down(_draw(rng, 3, 5, 4, 7), -(2.0**40), 2.0**20)),
    ]


CACHED = """
one new position: 1 7 5 3
two new positions: 2 5 3 7
all positions are new: 7 7 5 3
five new positions after six: 5 11 2 3
"""


@asked(
    "repair-cached-causal-mask",
    "Repair a decoder that looks at the wrong end",
    kind="repair",
    equation="bottom-right-offset",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the causal mask with a cache, and what a hidden score must be",
    judged_by=lambda query, key, value: attention(query, key, value, is_causal=True, q_offset=len(key) - len(query)),
    broken=["both at once"],
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_draw, CACHED), _far_from_zero],
    slips="""
        aligned at the top left
            `, k=len(key) - len(query)` ->
            the first query is not the first position: it stands at kv_len - q_len, {eq}`bottom-right-offset`
        a hidden score of 0
            -np.inf -> 0.0
            the triangle is right; but e^0 = 1, so hidden keys keep a share: fill with minus infinity
        a fill that is not low enough
            -np.inf -> -50.0
            a fill of -50 is the highest score of a row whose visible scores are near -1000: minus infinity is below everything
        a finite fill
            -np.inf -> -1e9
            a hidden score of -1e4 or -1e9 is higher than a visible one near -10^12: only minus infinity is below every score
        no maximum subtracted
            scores - scores.max(axis=1, keepdims=True) -> scores
            e^1000 overflows and e^-1000 underflows: the broken function subtracted the row maximum, and that was right
        both at once
            `, k=len(key) - len(query)` -> ;; -np.inf -> 0.0
            two mistakes are left: where the triangle lies, and what a hidden score is set to
        one column too wide
            len(query)) > 0 -> len(query) + 1) > 0
            each position sees the one after it: the last visible key of query i is i + kv_len - q_len
        everything visible
            scores = np.where(visible, scores, -np.inf) ->
            this hides nothing: right for one new position, but of several new ones the earlier see the later
        the mask after the softmax
            scores = np.where(visible, scores, -np.inf) -> ;; keepdims=True) @ value -> keepdims=True) * visible @ value
            the future is still in the normaliser, so rows do not sum to 1: mask the scores
        a maximum that is never below 0
            scores.max(axis=1, keepdims=True) -> np.maximum(scores.max(axis=1, keepdims=True), 0.0)
            where all scores of a row are far below 0, every term underflows and the row is 0 / 0: subtract the largest score, whatever
            its sign
        an inverted mask
            visible, scores, -np.inf -> visible, -np.inf, scores
            `np.where` takes its second argument where the condition holds: keep the scores that are visible
        the token itself hidden
            len(query)) > 0 -> len(query) - 1) > 0
            each position sees itself: the last visible key of query i is i + kv_len - q_len
        the offset turned round
            k=len(key) - len(query) -> k=len(query) - len(key)
            the diagonal moves to the right, by the positions that are in the cache already: kv_len - q_len
    """,
    hints="""
        Take one new position and five keys. Which keys may it see, and which does `np.tri(1, 5)` leave?
        `np.tri` has a third argument that moves the diagonal. And what is the exponential of a score of 0?
        `np.tri(len(query), len(key), k=len(key) - len(query))`, and `-np.inf` in place of `0.0`.
    """,
    why="""
        (1) `np.tri(q_len, kv_len)` is aligned at the top left; the last query stands at the last key, so the diagonal
        moves by $p = T_k - T_q$, {eq}`bottom-right-offset`. (2) A hidden score of 0 is a score like any other, and so is one of
        $-10^9$ beside visible ones of $-10^{12}$. With `q_len = kv_len` the first mistake is invisible, which is why it survives in
        code that was only tested in training.
    """,
)
def cached_attention(query, key, value):
    """Causal attention of the newest q_len positions to all kv_len positions.

    The function below should decode with a cache: `query`, `(q_len, d_k)`, belongs to the **newest** `q_len` positions, `key`,
    `(kv_len, d_k)`, and `value`, `(kv_len, d_v)`, to all positions so far; `q_len` is at most `kv_len`
    {every}`len(query) <= len(key)`. Each query may see itself {case}`any` and all earlier ones; the result is `(q_len, d_v)`. A row
    may hold scores near 1000 and near -1000 {case}`scores near minus a thousand, those of the newest key near a thousand`, or only
    scores near $-10^{12}$ {case}`scores near -2^40`. Shapes are right, numbers are not: repair two mistakes.
    """
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key), k=len(key) - len(query)) > 0
    scores = np.where(visible, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value


def _wild_padding(arrays: dict[str, np.ndarray], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Fill the padding, two rows or more, with numbers up to 1e30."""
    for name in ("key", "value"):
        kv_len = arrays[name].shape[1]
        padding = np.arange(kv_len)[:, None] >= lengths[:, None, None]
        wild = np.linspace(-1e30, 1e30, arrays[name].size).reshape(arrays[name].shape)
        arrays[name] = np.where(padding, wild, arrays[name])
    arrays["key"][:, -1] = -arrays["key"][:, -2]  # one of the two is far above all others, whatever asks
    return arrays | {"lengths": lengths}


def _batch(rng, q_len, kv_len, d_k, d_v, *lengths):
    return {**_draw(rng, q_len, kv_len, d_k, d_v, len(lengths)), "lengths": np.array(lengths)}


def _hard_to_hide(rng):
    near, far = _batch(rng, 3, 5, 11, 7, 2, 4), _batch(rng, 3, 7, 4, 5, 6, 3)
    return [
        Case("scores near minus a thousand", **_at_level(near, -1000.0)),
        Case("scores near -2^15", **_far_down(far, -(2.0**15), 1.0)),
        Case("padding up to 1e30", **_wild_padding(_draw(rng, 3, 7, 5, 11, 2), np.array([3, 5]))),
    ]


BATCHES = """
three sequences: 5 7 2 11 4 7 1
more queries than keys: 11 5 3 7 5 2
one of them is empty: 2 5 7 11 3 0 5
an empty one and a single query: 1 7 5 3 0 6
only empty sequences: 5 3 2 7 0 0
"""


@asked(
    "repair-padded-batch",
    "Repair a batch that attends to its padding",
    kind="repair",
    equation="empty-row-is-zero",
    points=2,
    difficulty=3,
    minutes=12,
    trains="which axis padding hides, and sequences of length 0",
    judged_by=lambda query, key, value, lengths: attention(query, key, value, mask=padding_mask(lengths, key.shape[1])),
    broken="""
        np.arange(key.shape[1]) -> np.arange(query.shape[1])[:, None]
        ;;
        scores = np.where(real, scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        unnormalised = np.exp(scores - np.where(top == -np.inf, 0.0, top))
        total = unnormalised.sum(axis=-1, keepdims=True)
        weights = unnormalised / np.where(total == 0.0, 1.0, total)
        ->
        scores = scores + np.where(real, 0.0, -1e9)
        unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    """,
    exact_zeros=True,
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_batch, BATCHES), _hard_to_hide],
    slips="""
        the queries hidden instead of the keys
            np.arange(key.shape[1]) -> np.arange(query.shape[1])[:, None]
            padding is a property of the keys: hide columns, from every query, not rows
        a finite number in place of minus infinity
            np.where(real, scores, -np.inf) -> scores + np.where(real, 0.0, -1e9)
            an empty sequence has only equally hidden keys, and then a finite fill hides none of them, {eq}`softmax-shift-invariance`:
            its output must be 0
        a fill that is not low enough
            scores, -np.inf -> scores, -100.0 ;; weights @ value -> weights @ value * (lengths > 0)[:, None, None]
            a fill of -100 is the highest score of a row whose real scores are near -1000: minus infinity is below everything
        a finite number added, empty sequences set to zero
            scores, -np.inf -> scores, scores - 1e9 ;; weights @ value -> weights @ value * (lengths > 0)[:, None, None]
            the padding may hold any finite number: a score of 1e30 is still far above all others after 1e9 is subtracted
        NaN for the empty sequence
            np.where(top == -np.inf, 0.0, top) -> top ;; np.where(total == 0.0, 1.0, total) -> total
            where no key is visible, maximum and sum must be replaced by harmless numbers, so that the output becomes 0,
            {eq}`empty-row-is-zero`
        the padding attended to, the text hidden
            np.where(real, scores, -np.inf) -> np.where(real, -np.inf, scores)
            the polarity is inverted: the first `lengths[b]` keys are the real ones
        keys and values of the padding set to zero
                scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
                ->
                kept = (np.arange(key.shape[1]) < lengths[:, None])[..., None]
                scores = query @ (key * kept).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
                ;;
                scores = np.where(real, scores, -np.inf) ->
                ;;
                weights @ value -> weights @ (value * kept)
            a key of zeros has the score 0 and keeps a share of e^0 = 1: only minus infinity removes it
        the mask after the softmax
            scores = np.where(real, scores, -np.inf) -> ;; weights @ value -> weights * real @ value
            the padding is still in the normaliser, so rows do not sum to 1: mask the scores
        no mask
            scores = np.where(real, scores, -np.inf) ->
            the lengths are not used: every query attends to the padding as well
        a maximum that is never below 0
            scores.max(axis=-1, keepdims=True) -> scores.max(axis=-1, keepdims=True, initial=0.0)
            where all real scores of a row are far below 0, every term underflows and the output is 0: start the maximum at minus infinity
        one key of the padding too many
            < lengths[ -> <= lengths[
            the first `lengths[b]` keys are those with the numbers 0 to `lengths[b] - 1`: compare with <, not <=
        the longest sequence for all
            lengths[:, None, None] -> lengths.max() ;; weights @ value -> weights @ value * (lengths > 0)[:, None, None]
            each example has a length of its own: key j of example b is real if j < lengths[b]
    """,
    hints="""
        Change a key of the padding. Which outputs may move? And which shape must `real` have, to say the same to every query?
        `np.arange(key.shape[1]) < lengths[:, None, None]` is (batch, 1, kv_len). With `-np.inf`, the row of an empty sequence is 0 / 0.
        Fill with `-np.inf`; replace a maximum of -inf by 0 and a sum of 0 by 1 with `np.where`.
    """,
    why=r"""
        (1) The mask had the shape `(batch, q_len, 1)` and hid *queries*; with $-10^9$ that even looked harmless, since a row that is hidden
        as a whole attends as if it were not, {eq}`softmax-shift-invariance`. Padding hides columns: `(batch, 1, kv_len)`. (2) $-10^9$ hides
        nothing in an empty sequence; with $-\infty$ its row is 0 / 0 and needs the definition of {eq}`empty-row-is-zero`.
    """,
)
def padded_attention(query, key, value, lengths):
    """Attention of each example to its first `lengths[b]` keys; the keys behind are
    padding.

    Attention in a padded batch: `query` is `(batch, q_len, d_k)`, `key` `(batch, kv_len, d_k)`, `value` `(batch, kv_len, d_v)`;
    `lengths`, `(batch,)`, holds integers from 0 to `kv_len`. In example $b$ only the first `lengths[b]` keys are real; the others
    hold any finite numbers, even $10^{30}$ {case}`padding up to 1e30`. Scores of real keys may be near -30 000
    {case}`scores near -2^15` {lowest}`-30000`. All queries are real. **A length may be 0 {case}`only empty sequences`: then all
    outputs of that example are 0.** The result is `(batch, q_len, d_v)`. Repair it.
    """
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    scores = np.where(real, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = unnormalised.sum(axis=-1, keepdims=True)
    weights = unnormalised / np.where(total == 0.0, 1.0, total)
    return weights @ value
