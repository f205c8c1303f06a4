"""A step of decoding with absorbed latent attention: all heads share one short vector for each past position, key and value at once."""

from typing import Any

import torch
from torch import Tensor

from attn_course.gpu import decoding
from attn_course.gpu.arguments import accumulator
from attn_course.gpu.call import validate
from attn_course.gpu.configurations import LARGE, MEDIUM, Configuration, shared_bytes
from attn_course.gpu.flash import prepared, unsupported
from attn_course.gpu.layout import laid_out

MOST_LATENT, MOST_ROTATED = 512, 64  # features of DeepSeek-V2 and V3: one tile of keys fills the shared memory


def latent_decode(
    query: Tensor,
    latents: Tensor,
    d_latent: int,
    *,
    scale: float,
    is_causal: bool = False,
    q_offset: int | Tensor = 0,
    kv_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return attention of all heads to one cache of latent vectors, Eq. absorbed-latent-attention, and its log-sum-exp.

    Each cached vector is a latent c and a rotated part; its score with a query takes all features, its value is c. So a tile of the
    cache is read once for both products; the cache is split over programs, and what they find is merged, Eq. merge-of-finished-outputs.

    `query` (batch, heads, q_len, d_latent + d_rotated): queries with the key's matrix absorbed, then their rotated parts; float16
    or bfloat16.
    `latents` (batch, kv_len, d_latent + d_rotated): the cache.
    `d_latent`: features of c, up to 512; 1 to 64 rotated ones follow.
    `scale`: factor of the scores. No default: it belongs to the width of the keys that were absorbed, not to these.
    `is_causal`, `q_offset`: as in `attn_course.gpu.attention`; several queries of a step need them. `q_offset` may be a (batch,
    1) Tensor.
    `kv_lengths` (batch, 1), integers: from this position on the cache of a sequence is padding, which nobody sees.

    Returns `output` (batch, heads, q_len, d_latent): weighted latent vectors, for the absorbed matrix of values and outputs; in
    the common dtype; `lse` (batch, heads, q_len): natural, float32 (float64 for float64, which Triton's interpreter takes too).

    Raises TypeError or ValueError as `attn_course.gpu.attention` does, if shapes do not fit, if the kernel cannot run here, or if
    a gradient is wanted: there is none.

    DeepSeek-V2, arXiv:2405.04434; Flash-Decoding (Dao, Haziza, Massa and Sizov, 2023). Not for `torch.compile`.
    """
    if query.ndim != 4 or latents.ndim != 3 or query.shape[0] != latents.shape[0]:
        shapes = f"{tuple(query.shape)} and {tuple(latents.shape)}"
        raise ValueError(f"query and latents must be (batch, heads, q_len, d) and (batch, kv_len, d); got {shapes}")
    rotated = latents.shape[-1] - d_latent
    if not (1 <= d_latent <= MOST_LATENT and 1 <= rotated <= MOST_ROTATED):
        raise ValueError(f"d_latent must be 1 to {MOST_LATENT}, and 1 to {MOST_ROTATED} features follow; got {d_latent} and {rotated}")
    if torch.is_grad_enabled() and (query.requires_grad or latents.requires_grad):
        raise ValueError("latent_decode has no backward pass; call it under torch.no_grad(), or detach query and latents")
    shared_key = latents[:, None]
    call = validate(
        query, shared_key, shared_key[..., :d_latent], is_causal=is_causal, q_offset=q_offset, scale=scale, enable_gqa=True
    )  # fmt: skip
    reason = unsupported(call.query[..., :1], call.key[..., :1], call.value[..., :1]) or _too_small(call.query)
    if reason is not None:
        raise ValueError(f"latent_decode cannot compute this call: it {reason}")
    query, key, _, _, *options = prepared(call, kv_lengths)
    return _launch(query, key, d_latent, *options)


def _too_small(query: Tensor) -> str | None:
    if query.is_cuda and (query.dtype == torch.float32 or shared_bytes(query.device) < MEDIUM):
        return "takes float16 and bfloat16, and needs 99 kB of shared memory for a block of threads (RTX 30, L4, A100 or newer)"
    return None


def tile_for(rows: int, shared: int) -> Configuration:
    """Return the tile for `rows` queries of all heads together; several tiles, if they are more than fit.

    >>> tile_for(128, LARGE)
    Configuration(block_q=64, block_kv=32, num_warps=8, num_stages=2, max_registers=None)
    """
    return Configuration(max(16, min(64 if shared >= LARGE else 32, 1 << (rows - 1).bit_length())), 32, 8, 2)


def _launch(query: Tensor, key: Tensor, d_latent: int, *options: Any) -> tuple[Tensor, Tensor]:
    """Output and lse from `prepared` arguments, but for a mask."""
    from attn_course.gpu import tiles

    if tiles.INTERPRETED and query.dtype == torch.bfloat16:  # the interpreter multiplies the bits of a bfloat16
        output, lse = _launch(query.float(), key.float(), d_latent, *options)
        return output.to(query.dtype), lse
    batch, heads, q_len, _ = query.shape
    output, lse = laid_out(query, d_latent), query.new_empty(batch, heads, q_len, dtype=accumulator(query.dtype))
    if output.numel() == 0 or key.shape[2] == 0:
        return output.zero_(), lse.fill_(-torch.inf)
    tile = tile_for(heads * q_len, shared_bytes(query.device))
    with torch.cuda.device_of(query):
        keys = decoding.keys_met(None, options[5], q_len, key.shape[2])
        decoding.launch((query, key, key), (None, *options), tile, keys, output, lse, d_latent)
    return output, lse
