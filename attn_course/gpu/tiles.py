"""What the kernels share: loading a tile, who sees whom inside it, and its scores."""

import torch
import triton
import triton.language as tl

ACCUMULATORS = {torch.float32: tl.float32, torch.float64: tl.float64}
COUNTS = ["n_heads", "q_len", "kv_len", "low", "high"]  # arguments that a kernel is not compiled for: they change from call to call


@triton.jit
def load_rows(
    matrix_ptr, start, stop, stride,
    N_ROWS: tl.constexpr, D: tl.constexpr, D_PAD: tl.constexpr, CHECKED: tl.constexpr, UNIT: tl.constexpr = 8,
):  # fmt: skip
    """Load the rows start .. start + N_ROWS - 1 of a matrix with D features, as (N_ROWS, D_PAD); D_PAD is a power of two.

    A row begins UNIT * stride features after the one before: 8, so that 16 bytes can be loaded at a time. Features from D on are 0, and if
    CHECKED so are the rows from `stop` on: what is masked is never read, not even a NaN. Row numbers times strides may pass
    2**31, so the start of the tile is computed in 64 bits; the launcher sees to it that a tile itself is not that large.
    """
    rows = tl.arange(0, N_ROWS)
    dims = tl.arange(0, D_PAD)
    tile_ptrs = matrix_ptr + tl.cast(start, tl.int64) * stride * UNIT + rows[:, None] * (stride * UNIT) + dims[None, :]
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
    tile_ptrs = matrix_ptr + tl.cast(start, tl.int64) * stride * 8 + rows[:, None] * (stride * 8) + dims[None, :]
    tl.store(tile_ptrs, tile.to(matrix_ptr.dtype.element_ty), mask=(start + rows[:, None] < stop) & (dims[None, :] < D))


@triton.jit
def of_head(matrix_ptr, batch, head, strides, UNIT: tl.constexpr = 8):
    """Return where the rows of one head begin; strides (batch, head, row) count UNIT features."""
    return matrix_ptr + (tl.cast(batch, tl.int64) * strides[0] + tl.cast(head, tl.int64) * strides[1]) * UNIT


@triton.jit
def per_head(table_ptr, pair, default):
    """Return entry `pair` = batch * n_heads + head of a table of integers, or the default where there is no table."""
    if table_ptr is None:
        return default
    else:
        return tl.load(table_ptr + pair)


@triton.jit
def matmul(left, right, ACC: tl.constexpr, acc=None):
    """Return left @ right, on top of `acc` if there is one; sums and what they add up are in ACC, never in tf32."""
    return tl.dot(left, right, acc, out_dtype=ACC, input_precision="ieee")


@triton.jit
def tanh(x):
    """Hyperbolic tangent; no digits cancel where it is small.

    Below 1/2 Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))), cut after 13: the relative error is below 1e-15.
    Beyond it 1 - 2 / (e^(2x) + 1) from powers of 2, for which the GPU has an instruction; +-1 where they overflow or vanish.
    """
    square = x * x
    numerator = ((square + 378.0) * square + 17325.0) * square + 135135.0
    denominator = ((28.0 * square + 3150.0) * square + 62370.0) * square + 135135.0
    far = 1.0 - 2.0 / (tl.exp2(x * 2.8853900817779268) + 1.0)  # 2 log2(e)
    return tl.where(square < 0.25, x * (numerator / denominator), far)


@triton.jit
def capped(products, slope, bound, CAPPED: tl.constexpr):
    """Return scores from q . k, before the mask: slope q . k, or bound tanh(slope q . k). See `flash_operators.scores_by`."""
    return bound * tanh(products * slope) if CAPPED else products * slope


@triton.jit
def cap_slope(products, slope, CAPPED: tl.constexpr):
    """Return the derivative of the capped score by the uncapped one: 1 - tanh**2."""
    if CAPPED:
        t = tanh(products * slope)
        return 1.0 - t * t
    else:
        return 1.0


@triton.jit
def is_visible(rows, cols, low, high, kv_stop, LOW: tl.constexpr, HIGH: tl.constexpr):
    """Say which pairs the band allows: low <= col - row <= high, and col < kv_stop.

    A side that is not bounded has its flag off; a causal mask is HIGH alone. `rows` and `cols` are columns and rows of
    numbers that broadcast to the tile, either way round.
    """
    if HIGH:
        visible = cols < tl.minimum(rows + high + 1, kv_stop)  # one comparison for each pair
    else:
        visible = (cols < kv_stop) & (rows >= 0)
    if LOW:
        visible = visible & (cols >= rows + low)
    return visible


@triton.jit
def masked(scores, visible, mask_ptr, row_start, col_start, rows, cols, q_len, kv_len, mask_strides, MASK: tl.constexpr):
    """Apply band and mask to a tile of scores: -inf where a row may not see a column.

    MASK says what the mask holds: "none", "bool" (one byte each, not 0 = may attend) or "float" (added; -inf removes).
    Only the start of the tile is computed in 64 bits: wide pointers would fill the registers.
    """
    if MASK != "none":
        tile_ptr = mask_ptr + tl.cast(row_start, tl.int64) * mask_strides[2] + tl.cast(col_start, tl.int64) * mask_strides[3]
        places = (rows - row_start) * mask_strides[2] + (cols - col_start) * mask_strides[3]
        mask = tl.load(tile_ptr + places, mask=(rows < q_len) & (cols < kv_len), other=0)
        if MASK == "bool":
            visible = visible & (mask != 0)
        else:
            bias = mask.to(scores.dtype)
            visible = visible & (bias != float("-inf"))  # also where NaN + -inf is NaN
            scores += bias
    return tl.where(visible, scores, float("-inf"))


@triton.jit
def is_spoilt(tile):
    """Say whether a tile holds NaN or infinity."""
    return tl.max((tile - tile != 0.0).to(tl.int32)) > 0


@triton.jit
def keep_apart(p, value, scores):
    """Return weights and values whose product gives NaN to exactly the rows that see a spoilt value, and 0 * NaN to nobody."""
    is_finite = value - value == 0.0
    spoilt = tl.min(is_finite.to(tl.int32), 1) == 0
    return tl.where(spoilt[None, :] & (scores > float("-inf")), float("nan"), p), tl.where(is_finite, value, 0.0)


@triton.jit
def shrunk(value):
    """Return values so small that no sum of as many as there may be is infinite, times 2**-32; sums of float16 are finite anyway."""
    return value if value.dtype == tl.float16 else (value * 2.3283064365386963e-10).to(value.dtype)


@triton.jit
def grown(mean, of):
    """Return the mean of values from that of `shrunk` ones, whose dtype `of` is."""
    return mean if of == tl.float16 else mean * 4294967296.0


@triton.jit
def tile_range(start, stop, low, high, end, BLOCK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, WHOLE: tl.constexpr):
    """Return first <= full_start <= full_stop <= last: the keys of the rows start .. stop - 1, in tiles cut at multiples of BLOCK.

    Some row sees some key before `end` in each tile of [first, last); every row sees every key of the tiles in [full_start,
    full_stop), of which there are none unless WHOLE. With low and high turned round and negated it gives the rows of a block of
    keys: j - high <= i <= j - low.
    """
    first = 0
    full_start = 0
    last = end
    full_stop = end
    if LOW:
        first = tl.maximum(start + low, 0)
        full_start = tl.maximum(stop - 1 + low, 0)
    if HIGH:
        last = tl.minimum(end, stop + high)
        full_stop = tl.minimum(end, tl.maximum(start + high + 1, 0))
    first = first // BLOCK * BLOCK
    full_start = (full_start + BLOCK - 1) // BLOCK * BLOCK
    full_stop = full_stop // BLOCK * BLOCK
    if not WHOLE:
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
