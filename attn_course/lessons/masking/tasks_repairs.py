"""Tasks of lesson masking: two repairs, a decoder with a cache and a padded batch."""

import math

import numpy as np

from attn_course.reference import attention, causal_mask, padding_mask, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong

# --- 7.6 decoding with a cache -------------------------------------------------------------------------


def _cached_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
) -> np.ndarray:
    """Causal attention of the newest q_len positions to all kv_len positions."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key)) > 0
    scores = np.where(visible, scores, 0.0)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value


def _cached(query: np.ndarray, key: np.ndarray, value: np.ndarray, shift: int = 0) -> np.ndarray:
    return attention(query, key, value, is_causal=True, q_offset=len(key) - len(query) + shift)


def _cached_filled(query: np.ndarray, key: np.ndarray, value: np.ndarray, offset: int, fill: float = 0.0) -> np.ndarray:
    scores = query @ key.T / math.sqrt(query.shape[1])
    return softmax(np.where(causal_mask(len(query), len(key), offset), scores, fill)) @ value


def _cached_unshifted(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    visible = causal_mask(len(query), len(key), len(key) - len(query))
    unnormalised = np.where(visible, np.exp(query @ key.T / math.sqrt(query.shape[1])), 0.0)
    return unnormalised @ value / unnormalised.sum(axis=1, keepdims=True)


def _cached_after(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    weights = softmax(query @ key.T / math.sqrt(query.shape[1]))
    return (weights * causal_mask(len(query), len(key), len(key) - len(query))) @ value


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


CACHED = Task(
    id="repair-cached-causal-mask",
    title="Repair a decoder that looks at the wrong end",
    entry="cached_attention",
    kind="repair",
    equation="bottom-right-offset",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the causal mask with a cache, and what a hidden score must be",
    answer=_cached,
    broken=_cached_broken,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("one new position", **_draw(rng, 1, 7, 5, 3)),
        Case("two new positions", **_draw(rng, 2, 5, 3, 7)),
        Case("all positions are new", **_draw(rng, 7, 7, 5, 3)),
        Case("five new positions after six", **_draw(rng, 5, 11, 2, 3)),
        Case(
            "scores near minus a thousand, those of the newest key near a thousand",
            **_newest_key_high(_at_level(_draw(rng, 3, 7, 5, 2), -1000.0)),
        ),
        Case("scores near -2^40", **_far_down(_draw(rng, 3, 5, 4, 7), -(2.0**40), 2.0**20)),
    ],
    wrong=[
        Wrong(
            "aligned at the top left",
            lambda query, key, value: attention(query, key, value, is_causal=True),
            "the first query is not the first position: it stands at kv_len - q_len, {eq}`bottom-right-offset`",
        ),
        Wrong(
            "a hidden score of 0",
            lambda query, key, value: _cached_filled(query, key, value, len(key) - len(query)),
            "the triangle is right; but e^0 = 1, so hidden keys keep a share: fill with minus infinity",
        ),
        Wrong(
            "a fill that is not low enough",
            lambda query, key, value: _cached_filled(query, key, value, len(key) - len(query), -50.0),
            "a fill of -50 is the highest score of a row whose visible scores are near -1000: minus infinity is below everything",
        ),
        Wrong(
            "a finite fill",
            lambda query, key, value: _cached_filled(query, key, value, len(key) - len(query), -1e9),
            "a hidden score of -1e4 or -1e9 is higher than a visible one near -10^12: only minus infinity is below every score",
        ),
        Wrong(
            "no maximum subtracted",
            _cached_unshifted,
            "e^1000 overflows and e^-1000 underflows: the broken function subtracted the row maximum, and that was right",
        ),
        Wrong(
            "both at once",
            lambda query, key, value: _cached_filled(query, key, value, 0),
            "two mistakes are left: where the triangle lies, and what a hidden score is set to",
        ),
        Wrong(
            "one column too wide",
            lambda query, key, value: _cached(query, key, value, 1),
            "each position sees the one after it: the last visible key of query i is i + kv_len - q_len",
        ),
        Wrong(
            "everything visible",
            attention,
            "this hides nothing: right for one new position, but of several new ones the earlier see the later",
        ),
        Wrong(
            "the mask after the softmax",
            _cached_after,
            "the future is still in the normaliser, so rows do not sum to 1: mask the scores",
        ),
    ],
    hints=[
        "Take one new position and five keys. Which keys may it see, and which does `np.tri(1, 5)` leave?",
        "`np.tri` has a third argument that moves the diagonal. And what is the exponential of a score of 0?",
        "`np.tri(len(query), len(key), k=len(key) - len(query))`, and `-np.inf` in place of `0.0`.",
    ],
)

# --- 7.7 a padded batch --------------------------------------------------------------------------------


def _padded_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """Attention of each example to its first `lengths[b]` keys; the keys behind are
    padding.
    """
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(query.shape[1])[:, None] < lengths[:, None, None]
    scores = scores + np.where(real, 0.0, -1e9)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value


def _padded(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return attention(query, key, value, mask=padding_mask(lengths, key.shape[1]))


def _padded_rows(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return attention(query, key, value, mask=np.arange(query.shape[1])[:, None] < lengths[:, None, None])


def _padded_finite(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return attention(query, key, value, mask=np.where(padding_mask(lengths, key.shape[1]), 0.0, -1e9))


def _padded_filled(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray, *, add: float = 0.0, replace: float | None = None
) -> np.ndarray:
    """Hide by a finite number, but set the outputs of empty sequences to zero."""
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    real = padding_mask(lengths, key.shape[1])
    weights = softmax(np.where(real, scores, scores + add if replace is None else replace))
    return (weights @ value) * (lengths > 0)[:, None, None]


def _padded_nan(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    output = _padded(query, key, value, lengths)
    return np.where(lengths[:, None, None] == 0, np.nan, output)


def _padded_after(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    weights = softmax(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]))
    return (weights * padding_mask(lengths, key.shape[1])) @ value


def _zeroed(query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    real = padding_mask(lengths, key.shape[1]).swapaxes(-1, -2)
    return attention(query, key * real, value * real)


def _wild_padding(arrays: dict[str, np.ndarray], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Fill the padding, two rows or more, with numbers up to 1e30."""
    for name in ("key", "value"):
        kv_len = arrays[name].shape[1]
        padding = np.arange(kv_len)[:, None] >= lengths[:, None, None]
        wild = np.linspace(-1e30, 1e30, arrays[name].size).reshape(arrays[name].shape)
        arrays[name] = np.where(padding, wild, arrays[name])
    arrays["key"][:, -1] = -arrays["key"][:, -2]  # one of the two is far above all others, whatever asks
    return arrays | {"lengths": lengths}


PADDED = Task(
    id="repair-padded-batch",
    title="Repair a batch that attends to its padding",
    entry="padded_attention",
    kind="repair",
    equation="key-padding-changes-nothing",
    points=2,
    difficulty=3,
    minutes=12,
    trains="which axis padding hides, and sequences of length 0",
    answer=_padded,
    broken=_padded_broken,
    exact_zeros=True,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("three sequences", **_draw(rng, 5, 7, 2, 11, 3), lengths=np.array([4, 7, 1])),
        Case("more queries than keys", **_draw(rng, 11, 5, 3, 7, 2), lengths=np.array([5, 2])),
        Case("one of them is empty", **_draw(rng, 2, 5, 7, 11, 3), lengths=np.array([3, 0, 5])),
        Case("an empty one and a single query", **_draw(rng, 1, 7, 5, 3, 2), lengths=np.array([0, 6])),
        Case("scores near minus a thousand", **_at_level(_draw(rng, 3, 5, 11, 7, 2), -1000.0), lengths=np.array([2, 4])),
        Case("scores near -2^15", **_far_down(_draw(rng, 3, 7, 4, 5, 2), -(2.0**15), 1.0), lengths=np.array([6, 3])),
        Case("only empty sequences", **_draw(rng, 5, 3, 2, 7, 2), lengths=np.array([0, 0])),
        Case("padding up to 1e30", **_wild_padding(_draw(rng, 3, 7, 5, 11, 2), np.array([3, 5]))),
    ],
    wrong=[
        Wrong(
            "the queries hidden instead of the keys",
            _padded_rows,
            "padding is a property of the keys: hide columns, from every query, not rows",
        ),
        Wrong(
            "a finite number in place of minus infinity",
            _padded_finite,
            "an empty sequence has only equally hidden keys, and then a finite fill hides none of them, "
            "{eq}`filled-row-hides-nothing`: its output must be 0",
        ),
        Wrong(
            "a fill that is not low enough",
            lambda query, key, value, lengths: _padded_filled(query, key, value, lengths, replace=-100.0),
            "a fill of -100 is the highest score of a row whose real scores are near -1000: minus infinity is below everything",
        ),
        Wrong(
            "a finite number added, empty sequences set to zero",
            lambda query, key, value, lengths: _padded_filled(query, key, value, lengths, add=-1e9),
            "the padding may hold any finite number: a score of 1e30 is still far above all others after 1e9 is subtracted",
        ),
        Wrong(
            "NaN for the empty sequence",
            _padded_nan,
            "where no key is visible, maximum and sum must be replaced by harmless numbers, so that the output becomes 0, "
            "{eq}`empty-row-is-zero`",
        ),
        Wrong(
            "the padding attended to, the text hidden",
            lambda query, key, value, lengths: attention(query, key, value, mask=~padding_mask(lengths, key.shape[1])),
            "the polarity is inverted: the first `lengths[b]` keys are the real ones",
        ),
        Wrong(
            "keys and values of the padding set to zero",
            _zeroed,
            "a key of zeros has the score 0 and keeps a share of e^0 = 1: only minus infinity removes it",
        ),
        Wrong(
            "the mask after the softmax",
            _padded_after,
            "the padding is still in the normaliser, so rows do not sum to 1: mask the scores",
        ),
        Wrong(
            "no mask",
            lambda query, key, value, lengths: attention(query, key, value),
            "the lengths are not used: every query attends to the padding as well",
        ),
    ],
    hints=[
        "Change a key of the padding. Which outputs may move? And which shape must `real` have, to say the same to every query?",
        "`np.arange(key.shape[1]) < lengths[:, None, None]` is (batch, 1, kv_len). With `-np.inf`, the row of an empty sequence is 0 / 0.",
        "Fill with `-np.inf`; replace a maximum of -inf by 0 and a sum of 0 by 1 with `np.where`.",
    ],
)
