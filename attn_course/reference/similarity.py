"""How well a query and a key fit: one score for each pair, before any softmax."""

import math

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import (
    broadcast_batch,
    checked_floats,
    narrowed,
    require_axes,
    require_positive,
    require_shape,
    within_range,
)


def dot_scores(
    query: Float[np.ndarray, "*#batch q_len d_k"], key: Float[np.ndarray, "*#batch kv_len d_k"]
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    """Return q . k for every pair, Eq. scaled-score without its scale.

    Returns `scores`: rows are queries. Computed in at least float32, returned in the common dtype of the inputs.

    Raises TypeError if an argument is not a floating ndarray; ValueError if the two differ in d_k, or their leading
    axes do not broadcast.

    Multiplicative attention: Luong et al. (2015), section 3.1 ("dot"), arXiv:1508.04025.

    >>> dot_scores(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.,  2.]])
    """
    wide_query, wide_key = _pair(query, key)
    return narrowed(_product(wide_query, wide_key), np.result_type(query, key))


def scaled_dot_scores(
    query: Float[np.ndarray, "*#batch q_len d_k"], key: Float[np.ndarray, "*#batch kv_len d_k"], scale: float | None = None
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    """Return q . k times a scale, Eq. scaled-score, which keeps the variance of the scores at 1 by default.

    `scale`: the factor; 1 / sqrt(d_k) if left out.

    Returns `scores`: rows are queries.

    Raises TypeError if an argument is not a floating ndarray, or `scale` not a number; ValueError if the two differ in
    d_k, their leading axes do not broadcast, or `scale` is not finite.

    Vaswani et al. (2017), section 3.2.1, arXiv:1706.03762; the variance: Eq. scaled-score-variance.

    >>> scaled_dot_scores(np.ones((1, 4)), np.ones((1, 4)))
    array([[2.]])
    """
    wide_query, wide_key = _pair(query, key)
    return narrowed(_product(wide_query, wide_key, checked_scale(scale, query.shape[-1])), np.result_type(query, key))


def cosine_scores(
    query: Float[np.ndarray, "*#batch q_len d_k"], key: Float[np.ndarray, "*#batch kv_len d_k"]
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    """Return the cosine of the angle between every query and key, Eq. cosine-similarity.

    Returns `scores`: in [-1, 1]; 0 where either vector is zero, which has no direction.

    Raises TypeError if an argument is not a floating ndarray; ValueError if the two differ in d_k, or their leading
    axes do not broadcast.

    Unlike the scaled dot product it ignores both lengths. Query-key normalisation builds on it: Henry et al. (2020),
    arXiv:2010.04245.

    >>> cosine_scores(np.array([[2.0, 0.0]]), np.array([[5.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    array([[1., 0., 0.]])
    """
    wide_query, wide_key = _pair(query, key)
    return narrowed(np.clip(_product(_unit(wide_query), _unit(wide_key)), -1.0, 1.0), np.result_type(query, key))


def gaussian_scores(
    query: Float[np.ndarray, "*#batch q_len d_k"], key: Float[np.ndarray, "*#batch kv_len d_k"], bandwidth: float
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    r"""Return the logarithm of a Gaussian kernel for every pair, the left side of Eq. equal-length-gaussian-weights.

    .. math:: -\|q - k\|^2 / (2\,\mathrm{bandwidth}^2)

    `bandwidth`: distance at which the kernel has fallen to exp(-1/2); positive and finite.

    Returns `scores`: at most 0. The softmax of a row gives the Nadaraya-Watson weights.

    Raises TypeError if `query` or `key` is not a floating ndarray, or `bandwidth` not a number; ValueError if the two
    differ in d_k, their leading axes do not broadcast, or `bandwidth` is not positive and finite.

    Nadaraya (1964) and Watson (1964). For keys of equal length the weights are those of the dot product. The squared
    distance is taken from differences, not from |q|^2 + |k|^2 - 2 q . k, which loses digits when q is close to k.

    >>> gaussian_scores(np.array([[0.0]]), np.array([[0.0], [2.0]]), bandwidth=1.0)
    array([[ 0., -2.]])
    """
    wide_query, wide_key = _pair(query, key)
    width = within_range(require_positive("bandwidth", bandwidth), wide_query.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = (wide_query[..., :, None, :] - wide_key[..., None, :, :]) / width
        scores = 0.0 - 0.5 * (difference**2).sum(axis=-1)  # 0.0 -, because -0.0 reads oddly
    return narrowed(scores, np.result_type(query, key))


def additive_scores(
    query: Float[np.ndarray, "*#batch q_len d_q"],
    key: Float[np.ndarray, "*#batch kv_len d_k"],
    w_query: Float[np.ndarray, "d_q d_hidden"],
    w_key: Float[np.ndarray, "d_k d_hidden"],
    w_score: Float[np.ndarray, "d_hidden"],
) -> Float[np.ndarray, "*batch q_len kv_len"]:
    r"""Return the score of a network with one hidden layer for every pair, Eq. additive-score.

    .. math:: w^\top \tanh(q W_q + k W_k)

    `key`: one row per position that may answer; d_k may differ from d_q.
    `w_score`: turns the hidden vector into a number; without it there is no score.

    Returns `scores`: between -sum |w_score| and +sum |w_score|, Eq. additive-score-bound.

    Raises TypeError if an argument is not a floating ndarray; ValueError if shapes do not fit.

    Bahdanau et al. (2014), appendix A.1.2, arXiv:1409.0473; columns there, rows here. The hidden layer takes q_len x
    kv_len x d_hidden numbers.

    >>> one = np.ones((1, 1))
    >>> additive_scores(one, one, one, -one, np.ones(1))
    array([[0.]])
    """
    q, k, w_q, w_k, w_s = checked_floats(query=query, key=key, w_query=w_query, w_key=w_key, w_score=w_score)
    require_axes(2, "(..., len, features)", query=query, key=key)
    broadcast_batch(query=query.shape[:-2], key=key.shape[:-2])
    if w_score.ndim != 1:
        raise ValueError(f"w_score must have the one axis d_hidden; got shape {w_score.shape}")
    require_shape("w_query", w_query, (query.shape[-1], len(w_score)), "(d_q of query, d_hidden of w_score)")
    require_shape("w_key", w_key, (key.shape[-1], len(w_score)), "(d_k of key, d_hidden of w_score)")
    with np.errstate(over="ignore", invalid="ignore"):
        hidden = np.tanh((q @ w_q)[..., :, None, :] + (k @ w_k)[..., None, :, :])  # (..., q_len, kv_len, d_hidden)
        scores = hidden @ w_s
    return narrowed(scores, np.result_type(query, key, w_query, w_key, w_score))


def checked_scale(scale: float | None, d_k: int) -> float:
    """Return the scale of the scores, 1 / sqrt(d_k) for None, or raise the error that names it."""
    if scale is None:
        if d_k == 0:
            raise ValueError("scale must be given when d_k is 0; got None")
        return 1.0 / math.sqrt(d_k)
    if isinstance(scale, bool) or not isinstance(scale, (int, float, np.integer, np.floating)):
        raise TypeError(f"scale must be a number or None; got {type(scale).__name__}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite; got {scale!r}")
    return float(scale)


def _pair(query: np.ndarray, key: np.ndarray) -> list[np.ndarray]:
    wide = checked_floats(query=query, key=key)
    require_axes(2, "(..., len, d_k)", query=query, key=key)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_k, the last axis; got {query.shape[-1]} and {key.shape[-1]}")
    broadcast_batch(query=query.shape[:-2], key=key.shape[:-2])
    return wide


@np.errstate(over="ignore", invalid="ignore")  # NaN and inf in, NaN and inf out, and no warning
def _product(query: np.ndarray, key: np.ndarray, scale: float = 1.0) -> np.ndarray:
    return query @ key.swapaxes(-1, -2) * scale


@np.errstate(invalid="ignore")
def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; the largest entry is divided out first, so that squares neither overflow nor vanish."""
    largest = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest == 0.0, 1.0, largest)
    norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(norm == 0.0, 1.0, norm)
