"""Few queries for many keys: into how many parts the keys are cut, and the launch of the kernels of `flash_decode`."""

from functools import cache
from typing import Any

import torch

from attn_course.gpu.configurations import LARGE, Configuration, configuration
from attn_course.gpu.layout import row_strides

MOST_PARTS = 128  # which `flash_merge` loads at once
LEAST_TILES = 2  # of a part: so many that one can be loaded ahead
PROGRAMS = 2  # on a multiprocessor, side by side
MERGED = 32  # features that one program merges


def number_of_parts(programs: int, keys: int, block_kv: int, multiprocessors: int) -> int:
    """Return into how many parts the keys of each program are cut: as many as all multiprocessors hold at once, at least 1.

    `programs` is their number without any cut; `keys` how many keys one of them meets at most, in tiles of `block_kv`.

    >>> number_of_parts(8, 65536, 64, 132)  # 8 key heads, an H100
    33
    >>> number_of_parts(16 * 8, 65536, 64, 132), number_of_parts(8, 256, 64, 132), number_of_parts(1024, 65536, 64, 132)
    (2, 2, 1)
    """
    tiles = -(-keys // block_kv)
    return max(1, min(PROGRAMS * multiprocessors // max(programs, 1), tiles // LEAST_TILES, MOST_PARTS))


def tile_for(
    rows: int, d_k: int, d_v: int, dtype: torch.dtype, *, masked: bool, shared: int = LARGE, interpreted: bool = False
) -> Configuration | None:
    """Return the tile for `rows` queries that share their keys; None if they fill more than half of a tile of the general kernel."""
    if 2 * rows > configuration("forward", d_k, d_v, dtype, shared=shared, interpreted=interpreted).block_q:
        return None
    block_q = 16 if masked else max(16, 1 << (rows - 1).bit_length())  # a mask takes registers: several tiles of 16 rows, if need be
    return configuration("decode", d_k, d_v, dtype, shared=shared, interpreted=interpreted)._replace(block_q=block_q)


def keys_met(low: int | None, high: int | None, q_len: int, kv_len: int) -> int:
    """Return how many keys the queries of a head meet at most, by the band i + low <= j <= i + high; None where it is open, or a table."""
    return kv_len if low is None or high is None else max(0, min(kv_len, high - low + q_len))


@cache
def multiprocessors(device: torch.device) -> int:
    """Return how many programs a device runs side by side, at one for each multiprocessor; a few where NumPy plays the GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def launch(
    tensors: tuple[Any, ...],  # query, key, value, mask as bytes, lows, highs, lengths
    strides: tuple[tuple[int, ...], ...],  # of query, key, value and mask
    numbers: tuple[Any, ...],  # n_heads, q_len, kv_len, low, high, slope, bound
    constants: dict[str, Any],
    tile: Configuration,
    keys: int,
    output: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """Compute output (batch, heads, q_len, d_v) and lse (batch, heads, q_len) from checked arguments, as `flash_decode` has them."""
    from attn_course.gpu import flash_decode as kernels

    batch, heads, q_len, d_v = output.shape
    group = constants["GROUP"]
    programs = batch * (heads // group) * -(-group * q_len // tile.block_q)
    parts = number_of_parts(programs, keys, tile.block_kv, multiprocessors(output.device))
    partial, partial_lse = output[..., None, :], lse
    if parts > 1:
        partial = lse.new_empty(batch, heads, q_len, parts, d_v + -d_v % 8)[..., :d_v]
        partial_lse = lse.new_empty(batch, heads, q_len, parts)
    kernels.flash_decode[(programs * parts,)](
        *tensors, partial, partial_lse, *strides, row_strides(partial), *numbers, parts,
        **constants, BLOCK_Q=tile.block_q, BLOCK_KV=tile.block_kv, **tile.launch_options,
    )  # fmt: skip
    if parts > 1:
        kernels.flash_merge[(batch * heads * q_len * -(-d_v // MERGED),)](
            *(partial, partial_lse, output, lse, row_strides(partial), row_strides(output), heads, q_len, parts),
            D_V=d_v, PARTS=max(2, 1 << (parts - 1).bit_length()), BLOCK_D=MERGED,
        )  # fmt: skip
