"""What the kernels share: loading a tile, who sees whom inside it, and the scores in powers of two."""

import torch
import triton
import triton.language as tl

ACCUMULATORS = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def load_rows(matrix_ptr, start, stop, stride, N_ROWS: tl.constexpr, D: tl.constexpr, D_PAD: tl.constexpr, CHECKED: tl.constexpr):
    """Load the rows start .. start + N_ROWS - 1 of a matrix with D features, as (N_ROWS, D_PAD); D_PAD is a power of two.

    Features from D on are 0, and if CHECKED so are the rows from `stop` on: what is masked is never read, not even a NaN.
    Row numbers times strides may pass 2**31, so the start of the tile is computed in 64 bits.
    """
    rows = tl.arange(0, N_ROWS)
    dims = tl.arange(0, D_PAD)
    tile_ptrs = matrix_ptr + tl.cast(start, tl.int64) * stride + rows[:, None] * stride + dims[None, :]
    if CHECKED:
        return tl.load(tile_ptrs, mask=(start + rows[:, None] < stop) & (dims[None, :] < D), other=0.0)
    elif D < D_PAD:
        return tl.load(tile_ptrs, mask=(dims[None, :] < D) & (rows[:, None] >= 0), other=0.0)
    else:
        return tl.load(tile_ptrs)


@triton.jit
def store_rows(matrix_ptr, tile, start, stop, stride, N_ROWS: tl.constexpr, D: tl.constexpr, D_PAD: tl.constexpr):
    """Store a tile where `load_rows` would have read it; rows from `stop` on and features from D on are left alone."""
    rows = tl.arange(0, N_ROWS)
    dims = tl.arange(0, D_PAD)
    tile_ptrs = matrix_ptr + tl.cast(start, tl.int64) * stride + rows[:, None] * stride + dims[None, :]
    tl.store(tile_ptrs, tile.to(matrix_ptr.dtype.element_ty), mask=(start + rows[:, None] < stop) & (dims[None, :] < D))


@triton.jit
def per_head(table_ptr, pair, default):
    """Return entry `pair` = batch * n_heads + head of a table of integers, or the default where there is no table."""
    if table_ptr is None:
        return default
    else:
        return tl.load(table_ptr + pair)


@triton.jit
def tanh(x):
    """Hyperbolic tangent from 2**x, for which the GPU has an instruction; +-1 where 2**x overflows or vanishes."""
    return 1.0 - 2.0 / (tl.exp2(x * 2.8853900817779268) + 1.0)  # 2 log2(e)


@triton.jit
def capped(products, SCALE: tl.constexpr, SOFTCAP: tl.constexpr):
    """Return the scores in units of ln 2, Eq. (12.13), before the mask: SCALE q . k, or SOFTCAP tanh(SCALE q . k / SOFTCAP)."""
    if SOFTCAP is None:
        return products * (SCALE * 1.4426950408889634)  # log2(e)
    else:
        return tanh(products * (SCALE / SOFTCAP)) * (SOFTCAP * 1.4426950408889634)


@triton.jit
def cap_slope(products, SCALE: tl.constexpr, SOFTCAP: tl.constexpr):
    """Return the derivative of the capped score by the uncapped one: 1 - tanh**2."""
    if SOFTCAP is None:
        return 1.0
    else:
        t = tanh(products * (SCALE / SOFTCAP))
        return 1.0 - t * t


@triton.jit
def is_visible(rows, cols, offset, left, right, kv_stop, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Say which pairs the band allows: row + offset - left <= col <= row + offset + right, and col < kv_stop.

    A side that is not bounded has its flag off; a causal mask is the band without LEFT and with right = 0. `rows` and
    `cols` are columns and rows of numbers that broadcast to the tile, either way round.
    """
    visible = (cols < kv_stop) & (rows >= 0)
    if LEFT:
        visible = visible & (cols >= rows + offset - left)
    if RIGHT:
        visible = visible & (cols <= rows + offset + right)
    return visible


@triton.jit
def masked(scores, visible, mask_ptr, row_start, col_start, rows, cols, q_len, kv_len, stride_row, stride_col, MASK: tl.constexpr):
    """Apply band and mask to a tile of scores in units of ln 2: -inf where a row may not see a column.

    MASK says what the mask holds: "none", "bool" (one byte each, not 0 = may attend) or "float" (added; -inf removes).
    Only the start of the tile is computed in 64 bits: wide pointers would fill the registers.
    """
    if MASK != "none":
        tile_ptr = mask_ptr + tl.cast(row_start, tl.int64) * stride_row + tl.cast(col_start, tl.int64) * stride_col
        places = (rows - row_start) * stride_row + (cols - col_start) * stride_col
        mask = tl.load(tile_ptr + places, mask=(rows < q_len) & (cols < kv_len), other=0)
        if MASK == "bool":
            visible = visible & (mask != 0)
        else:
            bias = mask.to(scores.dtype)
            visible = visible & (bias != float("-inf"))
            scores = scores + bias * 1.4426950408889634
    return tl.where(visible, scores, float("-inf"))


@triton.jit
def tile_range(start, stop, offset, left, right, end, BLOCK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, MASK: tl.constexpr):
    """Return first <= full_start <= full_stop <= last: the keys of the rows start .. stop - 1, in tiles cut at multiples of BLOCK.

    Some row sees some key before `end` in each tile of [first, last); every row sees every key of the tiles in [full_start,
    full_stop). With offset, left and right turned round it gives the rows of a block of keys: j - o - right <= i <= j - o + left.
    """
    first = 0
    full_start = 0
    last = end
    full_stop = end
    if LEFT:
        first = tl.maximum(start + offset - left, 0)
        full_start = tl.maximum(stop - 1 + offset - left, 0)
    if RIGHT:
        last = tl.minimum(end, stop + offset + right)
        full_stop = tl.minimum(end, tl.maximum(start + offset + right + 1, 0))
    first = first // BLOCK * BLOCK
    full_start = (full_start + BLOCK - 1) // BLOCK * BLOCK
    full_stop = full_stop // BLOCK * BLOCK
    if MASK != "none":  # any pair may be hidden
        full_stop = first
    none_full = full_stop <= full_start
    return first, tl.where(none_full, first, full_start), tl.where(none_full, first, full_stop), last


@triton.jit
def edge_tile(edge, first, full_start, full_stop, BLOCK: tl.constexpr):
    """Return where the edge-th tile outside [full_start, full_stop) begins: first those on the left, then those on the right."""
    n_left = (full_start - first) // BLOCK
    return tl.where(edge < n_left, first + edge * BLOCK, full_stop + (edge - n_left) * BLOCK)


@triton.jit
def edge_tiles(first, full_start, full_stop, last, BLOCK: tl.constexpr):
    """Return how many tiles lie outside [full_start, full_stop)."""
    return (full_start - first) // BLOCK + tl.cdiv(tl.maximum(last - full_stop, 0), BLOCK)


INTERPRETED = not isinstance(load_rows, triton.JITFunction)  # TRITON_INTERPRET=1 when Triton was imported: NumPy plays the GPU
