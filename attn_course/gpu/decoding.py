"""Few queries for many keys: into how many parts the keys are cut, and the launch of the kernels of `flash_decode`.

No choice looks at the batch, so that a request has the same bits alone and beside others.
"""

from functools import cache

import torch

from attn_course.gpu.arguments import Options, arguments, rows_of, sizes
from attn_course.gpu.configurations import LARGE, Configuration, configuration
from attn_course.gpu.layout import aligned, steps_of

MOST_PARTS = 128  # which `flash_merge` loads at once
LEAST_TILES = 4  # of a part: with 8 query heads for a key head, what it writes and the merge reads is a 16th of what it reads
LONGER = 8  # times as many keys as queries: a cache, not the triangle of self-attention
PROGRAMS = 2  # on a multiprocessor, side by side
MERGED = 32  # features that one program merges


def number_of_parts(programs: int, keys: int, block_kv: int, multiprocessors: int) -> int:
    """Return into how many parts the keys of each program are cut: as many as all multiprocessors hold of one sequence, at least 1.

    `programs` of it there are without any cut; `keys` is how many keys one of them meets at most, in tiles of `block_kv`.

    >>> number_of_parts(8, 65536, 64, 132)  # 8 key heads, an H100
    33
    >>> number_of_parts(128, 65536, 64, 132), number_of_parts(8, 512, 64, 132), number_of_parts(1024, 65536, 64, 132)
    (2, 2, 1)
    """
    tiles = -(-keys // block_kv)
    return max(1, min(PROGRAMS * multiprocessors // max(programs, 1), tiles // LEAST_TILES, MOST_PARTS))


def tile_for(
    rows: int, d_k: int, d_v: int, dtype: torch.dtype, *, masked: bool, shared: int = LARGE, interpreted: bool = False
) -> Configuration:
    """Return the tile for `rows` queries that share their keys: all in one, up to half a tile of the general kernel."""
    most = configuration("forward", d_k, d_v, dtype, shared=shared, interpreted=interpreted).block_q // 2
    block_q = 16 if masked else max(16, min(most, 1 << (rows - 1).bit_length()))  # a mask takes registers: 16 rows
    return configuration("decode", d_k, d_v, dtype, shared=shared, interpreted=interpreted)._replace(block_q=block_q)


def is_for(q_len: int, heads: int, group: int, keys: int, general: Configuration, device: torch.device) -> bool:
    """Return whether the keys of a call are split: if the queries that share them fill half a tile of the general kernel at most.

    Or if they are a chunk behind a long cache, for which the general kernel has a program for half of the multiprocessors at most.
    """
    programs = heads * -(-q_len // general.block_q)
    return 2 * q_len * group <= general.block_q or (keys >= LONGER * q_len and 2 * programs <= multiprocessors(device))


def keys_met(low: int | None, high: int | None, q_len: int, kv_len: int) -> int:
    """Return how many keys the queries of a head meet, by the band i + low <= j <= i + high; None where it is open, or a table."""
    stop = kv_len if high is None else min(kv_len, q_len + high)
    return max(0, stop - max(0, low or 0))


@cache
def multiprocessors(device: torch.device) -> int:
    """Return how many programs a device runs side by side, at one for each multiprocessor; a few where NumPy plays the GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def launch(
    tensors: tuple[torch.Tensor, ...],  # query, key, value
    options: Options,  # no mask of floats
    tile: Configuration,
    keys: int,
    output: torch.Tensor,
    lse: torch.Tensor,
    d_latent: int = 0,
) -> bool:
    """Compute output (batch, heads, q_len, d_v) and lse (batch, heads, q_len), as `flash_decode` has them; return whether in natural units.

    With `d_latent` the value of a key is its first so many features, and `value` is not looked at.
    """
    from attn_course.gpu import flash_decode as kernels

    rows = [aligned(tensor, unit=1) for tensor in tensors]
    unit = steps_of(*rows)  # no copy of a cache whose rows begin anywhere
    call, counts, kind = arguments(rows, options, unit)
    rest = d_latent and kind.D_K - d_latent
    if d_latent:
        kind = kind._replace(D_K=d_latent, D_V=d_latent)
    heads, d_v = output.shape[1], output.shape[3]
    batch, q_len, _ = sizes(tensors[0], tensors[1], options)
    programs = heads // kind.GROUP * -(-kind.GROUP * q_len // tile.block_q)
    parts = number_of_parts(programs, keys, tile.block_kv, multiprocessors(output.device))
    partial, partial_lse = output[..., None, :], lse
    if parts > 1:
        partial = lse.new_empty(*lse.shape, parts, d_v + -d_v % 8)[..., :d_v]
        partial_lse = lse.new_empty(*lse.shape, parts)
    kernels.flash_decode[(batch * programs * parts,)](
        call, rows_of(partial, starts=call.starts), partial_lse, *counts, parts, KIND=kind, **tile.launch_options, UNIT=unit, REST=rest
    )
    if parts > 1:
        kernels.flash_merge[(lse.numel() * -(-d_v // MERGED),)](
            *(rows_of(partial), partial_lse, rows_of(output), lse, *lse.shape[1:], parts),
            D_V=d_v, PARTS=max(2, 1 << (parts - 1).bit_length()), BLOCK_D=MERGED,
        )  # fmt: skip
    return kind.NATURAL
