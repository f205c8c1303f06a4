"""Somewhere to put a weight that nothing deserves: sink logits, gates on the output, and windows that keep the first keys."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from attn_course.reference.arrays import checked_floats, narrowed, require_integer
from attn_course.reference.attention import attention
from attn_course.reference.feed_forward import logistic
from attn_course.reference.masks import causal_mask, window_mask
from attn_course.reference.softmax import softmax


def sink_attention(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    sink_logits: Float[np.ndarray, "*#heads"],
    **options: Any,
) -> np.ndarray:
    r"""Let each row of weights sum to less than 1: the rest goes to a learned sink that has no value, Eq. sink-shrinks-output.

    .. math:: z' = \frac{\sum_j e^{s_j} v_j}{e^b + \sum_j e^{s_j}} = \frac{z}{1 + e^{b - \mathrm{lse}(s)}}

    `sink_logits`: b, one for each head, or for all that the leading axes of the output list; -inf is plain attention.
    `options`: those of `attention`, but for the ones that return more.

    Returns `output` (*batch, q_len, d_v).

    Raises TypeError, ValueError as in `attention`; ValueError if `sink_logits` do not fit the leading axes.

    The share of the keys is a softmax of two numbers, lse and b, so nothing overflows however large b is. Miller, "Attention is off
    by one" (2023), has b = 0; gpt-oss learns b, model card (2025), arXiv:2508.10925.

    >>> query, key, value = np.zeros((1, 1)), np.zeros((3, 1)), np.array([[4.0], [8.0], [12.0]])
    >>> sink_attention(query, key, value, np.array(0.0))
    array([[6.]])
    """
    q, k, v, b = checked_floats(query=query, key=key, value=value, sink_logits=sink_logits)
    output, lse = attention(q, k, v, **options, return_weights=False, return_lse=True)
    if b.ndim > lse.ndim - 1 or any(have not in (1, want) for have, want in zip(b.shape[::-1], lse.shape[-2::-1], strict=False)):
        raise ValueError(f"sink_logits must broadcast to the leading axes {lse.shape[:-1]}; got shape {b.shape}")
    share = softmax(np.stack(np.broadcast_arrays(lse, b[..., None].astype(lse.dtype)), axis=-1))[..., 0]
    return narrowed(share[..., None] * output, np.result_type(query, key, value))


def gate_output(
    output: Float[np.ndarray, "*batch q_len d_v"], gate_scores: Float[np.ndarray, "*#batch q_len #d_v"]
) -> Float[np.ndarray, "*batch q_len d_v"]:
    r"""Multiply what a query got by gates between 0 and 1 that it makes itself, Eq. gate-equals-sink.

    .. math:: z' = \frac{1}{1 + e^{-x W}} \odot z

    `gate_scores`: x W, one for each feature of the output, or one for the whole head.

    Returns `gated`: in the dtype of `output`.

    Raises TypeError if an argument is not floating; ValueError if the two do not fit.

    Qiu et al. (2025), the gate behind attention of each head ("G1"), arXiv:2505.06708.

    >>> gate_output(np.array([[2.0, 4.0]]), np.array([[0.0, np.inf]]))
    array([[1., 4.]])
    """
    z, scores = checked_floats(output=output, gate_scores=gate_scores)
    fits = scores.ndim <= z.ndim and all(a in (1, b) for a, b in zip(scores.shape[::-1], z.shape[::-1], strict=False))
    if not fits:
        raise ValueError(f"gate_scores must broadcast to the shape of output, {z.shape}; got {scores.shape}")
    return narrowed(logistic(scores) * z, output.dtype)


def sink_window_mask(
    q_len: int, kv_len: int, n_sinks: int, left: int, q_offset: int | Integer[np.ndarray, "*batch"] = 0
) -> Bool[np.ndarray, "*batch q_len kv_len"]:
    """Let each query see itself, `left` keys before it, and the first `n_sinks` keys of the sequence, Eq. sink-window-keys.

    `n_sinks`: number of first keys that stay; 0 is a plain window.
    `left`: number of keys before its own; so a window "of w" is left = w - 1, or w, as its authors count.
    `q_offset`: position of the first query among the keys.

    Returns `mask`: True where the query may attend to the key.

    Raises TypeError if an argument is not an integer; ValueError if one is negative.

    Xiao et al. (2024), StreamingLLM, arXiv:2309.17453; they use 4 first keys, and count positions for RoPE inside the cache.

    >>> sink_window_mask(4, 4, n_sinks=1, left=1).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [1, 1, 1, 0],
           [1, 0, 1, 1]])
    """
    first = np.arange(require_integer("kv_len", kv_len, 0)) < require_integer("n_sinks", n_sinks, 0)
    near = window_mask(q_len, kv_len, require_integer("left", left, 0), 0, q_offset)
    return near | (causal_mask(q_len, kv_len, q_offset) & first)
