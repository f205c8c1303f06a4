"""Latent attention: keys and values are rebuilt from one small vector per token, which is all that is cached."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from attn_course.reference.absorption import absorb_query_key, absorb_value_output
from attn_course.reference.arrays import checked_floats, described, narrowed, require_axes, require_integer
from attn_course.reference.attention import attention
from attn_course.reference.cache import KeyValueCache
from attn_course.reference.heads import merge_heads, split_heads
from attn_course.reference.latent_weights import LatentWeights
from attn_course.reference.positions import rope

Norm = Callable[[np.ndarray], np.ndarray]


def latent_attention(
    x: Float[np.ndarray, "*batch len d_model"],
    weights: LatentWeights,
    *,
    n_heads: int,
    positions: Shaped[np.ndarray, "*#batch_positions len"],
    cache: KeyValueCache | None = None,
    norm_q: Norm | None = None,
    norm_kv: Norm | None = None,
) -> Float[np.ndarray, "*batch len d_output"]:
    r"""Attend causally with keys and values that are rebuilt, for each head, from the cached latent vectors.

    .. math:: k_{j,i} = [c_j W^{UK}_i;\; k^R_j], \qquad v_{j,i} = c_j W^{UV}_i, \qquad
              o_{t,i} = \sum_{j \le t} \mathrm{softmax}_j\!\left(\frac{q_{t,i} \cdot k_{j,i}}{\sqrt{d_h + d_h^R}}\right) v_{j,i}

    A score has a part without position and a part with it, Eq. decoupled-rope-score.

    `cache`: holds the past, and receives the new tokens: for each its latent vector (after `norm_kv`) in the place of a
    key, and the rotated shared key in the place of a value.
    `norm_q`, `norm_kv`: applied to the latent vectors of queries and of keys and values, in practice an RMSNorm; must
    keep the shape.

    Returns `output`: in the common dtype of `x` and the weights, computed in at least float32.

    Raises TypeError if an array is not floating, or an argument is of the wrong type; ValueError if shapes and
    `n_heads` do not fit, or a norm changes the shape.

    DeepSeek-V2, appendix C, Eqs. 37 to 47, arXiv:2405.04434; the norms: section 3.1.2. New tokens see all cached ones,
    and each other causally. RoPE pairs halves, which another order of the columns of `w_query_rope` and `w_key_rope`
    makes interleaved.

    >>> one = np.ones((1, 1))
    >>> weights = LatentWeights(one, one, np.zeros((1, 2)), one, one, np.zeros((1, 2)), one, one)
    >>> latent_attention(np.array([[0.0], [3.0]]), weights, n_heads=1, positions=np.arange(2)).round(4)
    array([[0.    ],
           [2.9835]])
    """
    made = _latents(x, weights, n_heads, positions, cache, norm_q, norm_kv)
    wide = made.weights
    query = np.concatenate([split_heads(made.query_latent @ wide.w_query_up, n_heads), made.query_rope], axis=-1)
    key_content = split_heads(made.latent @ wide.w_key_up, n_heads)
    key_rope = np.broadcast_to(made.key_rope[..., None, :, :], (*key_content.shape[:-1], made.key_rope.shape[-1]))
    key = np.concatenate([key_content, key_rope], axis=-1)
    value = split_heads(made.latent @ wide.w_value_up, n_heads)
    heads = attention(query, key, value, is_causal=True, q_offset=made.past, scale=made.scale)
    return narrowed(merge_heads(heads) @ wide.w_output, made.dtype)


def latent_attention_absorbed(
    x: Float[np.ndarray, "*batch len d_model"],
    weights: LatentWeights,
    *,
    n_heads: int,
    positions: Shaped[np.ndarray, "*#batch_positions len"],
    cache: KeyValueCache | None = None,
    norm_q: Norm | None = None,
    norm_kv: Norm | None = None,
) -> Float[np.ndarray, "*batch len d_output"]:
    r"""Return the same as `latent_attention`, with no key or value ever rebuilt, Eq. absorbed-latent-attention.

    All heads share the latent vectors.

    .. math:: q^C_{t,i} \cdot k^C_{j,i} = \bigl(c^Q_t\,W^{UQ}_i {W^{UK}_i}^\top\bigr) \cdot c_j, \qquad
              o_{t,i} W^O_i = \Bigl(\sum_{j \le t} p_{tj,i}\,c_j\Bigr) W^{UV}_i W^O_i

    The left is Eq. absorbed-latent-keys, the right Eq. absorbed-latent-values.

    `cache`: as in `latent_attention`; each form can go on with the cache of the other.
    `norm_q`, `norm_kv`: applied to the latent vectors.

    Returns `output`: that of `latent_attention` up to rounding.

    Raises TypeError, ValueError as in `latent_attention`.

    DeepSeek-V2, appendix C, arXiv:2405.04434. The absorbed matrices are larger than their factors, so this pays at
    decoding, where rebuilding the past would cost more, and not where all positions are new. The rotary part is not
    absorbed: a rotation that depends on both positions would stand between the two matrices.

    >>> one = np.ones((1, 1))
    >>> weights = LatentWeights(one, one, np.zeros((1, 2)), one, one, np.zeros((1, 2)), one, one)
    >>> latent_attention_absorbed(np.array([[0.0], [3.0]]), weights, n_heads=1, positions=np.arange(2)).round(4)
    array([[0.    ],
           [2.9835]])
    """
    made = _latents(x, weights, n_heads, positions, cache, norm_q, norm_kv)
    wide = made.weights
    w_query_key = absorb_query_key(wide.w_query_up, wide.w_key_up, n_heads)  # (n_heads, d_query_latent, d_latent)
    w_value_output = absorb_value_output(wide.w_value_up, wide.w_output, n_heads)  # (n_heads, d_latent, d_model)
    query = np.concatenate([made.query_latent[..., None, :, :] @ w_query_key, made.query_rope], axis=-1)
    key = np.concatenate([made.latent, made.key_rope], axis=-1)[..., None, :, :]  # one head for all
    heads = attention(query, key, made.latent[..., None, :, :], is_causal=True, q_offset=made.past, scale=made.scale)
    return narrowed((heads @ w_value_output).sum(axis=-3), made.dtype)


class _Latents(NamedTuple):
    """What both forms share, in at least float32."""

    query_latent: np.ndarray  # (*batch, len, d_query_latent)
    query_rope: np.ndarray  # (*batch, n_heads, len, d_rope)
    latent: np.ndarray  # (*batch, past + len, d_latent)
    key_rope: np.ndarray  # (*batch, past + len, d_rope)
    past: int
    scale: float
    weights: LatentWeights
    dtype: np.dtype


def _latents(
    x: np.ndarray,
    given: LatentWeights,
    n_heads: int,
    positions: np.ndarray,
    cache: KeyValueCache | None,
    norm_q: Norm | None,
    norm_kv: Norm | None,
) -> _Latents:
    """Check the arguments, compress the new tokens, rotate what RoPE rotates, and fetch the past."""
    if not isinstance(given, LatentWeights):
        raise TypeError(f"weights must be LatentWeights; got {described(given)}")
    if cache is not None and not isinstance(cache, KeyValueCache):
        raise TypeError(f"cache must be a KeyValueCache or None; got {described(cache)}")
    named = {field.name: getattr(given, field.name) for field in fields(given)}
    wide, *matrices = checked_floats(x=x, **named)
    weights = LatentWeights(*matrices)
    require_axes(2, "(..., len, d_model)", x=x)
    if x.shape[-1] != weights.w_query_down.shape[0]:
        raise ValueError(f"x must have d_model = {weights.w_query_down.shape[0]} features, the rows of w_query_down; got {x.shape[-1]}")
    width = _check_heads(weights, require_integer("n_heads", n_heads, 1))

    query_latent = _normed("norm_q", norm_q, wide @ weights.w_query_down)
    latent = _normed("norm_kv", norm_kv, wide @ weights.w_latent_down)
    key_rope = rope(wide @ weights.w_key_rope, positions)
    if key_rope.shape[:-1] != x.shape[:-1]:
        raise ValueError(f"positions must broadcast to {x.shape[:-1]}, the axes of x but for its features; got {positions.shape}")
    query_rope = rope(split_heads(query_latent @ weights.w_query_rope, n_heads), positions[..., None, :])
    past = 0 if cache is None else len(cache)
    if cache is not None:
        latent, key_rope = cache.append(latent, key_rope)
    return _Latents(query_latent, query_rope, latent, key_rope, past, 1.0 / math.sqrt(width), weights, np.result_type(x, *named.values()))


def _check_heads(weights: LatentWeights, n_heads: int) -> int:
    """Return d_head + d_rope, the width of a whole query, if the matrices hold that many heads."""
    d_rope = weights.w_key_rope.shape[1]
    for name in ("w_query_up", "w_value_up"):
        columns = getattr(weights, name).shape[1]
        if columns % n_heads:
            raise ValueError(f"n_heads must divide the columns of {name}; got {n_heads} and {columns}")
    if d_rope % 2:
        raise ValueError(f"w_key_rope must have an even number of columns, for RoPE; got {d_rope}")
    if weights.w_query_rope.shape[1] != n_heads * d_rope:
        raise ValueError(f"w_query_rope must have n_heads * d_rope = {n_heads * d_rope} columns; got {weights.w_query_rope.shape[1]}")
    width = weights.w_query_up.shape[1] // n_heads + d_rope
    if width == 0:
        raise ValueError("w_query_up and w_query_rope must not both be without columns")
    return width


def _normed(name: str, norm: Norm | None, latent: np.ndarray) -> np.ndarray:
    if norm is None:
        return latent
    if not callable(norm):
        raise TypeError(f"{name} must be callable or None; got {described(norm)}")
    normed = norm(latent)
    if not isinstance(normed, np.ndarray) or normed.shape != latent.shape:
        raise ValueError(f"{name} must return an ndarray of shape {latent.shape}; got {getattr(normed, 'shape', described(normed))}")
    return normed.astype(latent.dtype)
