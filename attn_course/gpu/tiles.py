"""What the kernels share: what they are launched with, loading a tile, who sees whom inside it, and its scores."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from attn_course.gpu import configurations

ACCUMULATORS = {torch.float32: tl.float32, torch.float64: tl.float64}
COUNTS = [
    "n_heads",
    "q_len",
    "kv_len",
    "low",
    "high",
    "together",
]  # arguments that a kernel is not compiled for: they change from call to call
padded = triton.constexpr_function(configurations.padded)


class Rows(NamedTuple):
    """A tensor (batch, head, row, feature), and its strides of (batch, head, row) / 8: rows are aligned, features lie side by side."""

    strides: Any
    ptr: Any


class Call(NamedTuple):
    """What all kernels are launched with.

    ============  ==================================  ======================  ===============================================
    field         shape                               dtype                   strides
    ============  ==================================  ======================  ===============================================
    query         (batch, n_heads, q_len, D_K)        float16, bfloat16, ...  those of `Rows`
    key           (batch, n_heads/GROUP, kv_len, D_K) that of query           those of `Rows`
    value         (batch, n_heads/GROUP, kv_len, D_V) that of query           those of `Rows`
    mask          (batch, n_heads, q_len, kv_len)     uint8 or float          (batch, head, row, column), 0 to broadcast
    lows, highs   (batch, n_heads) or None            int32                   contiguous; else low, high for all
    lengths       (batch, n_heads) or None            int32                   contiguous; else kv_len for all
    starts        (sequences + 2, 2) or None          int32                   contiguous; see `sequence_of`
    ============  ==================================  ======================  ===============================================

    With starts the tensors have one batch entry, in which all sequences lie one behind the other; a batch entry of a kernel is a sequence.
    Row i sees the columns i + low .. i + high as far as LOW and HIGH say. slope, bound: see `capped`; scale is that of the scores.
    """

    query: Rows
    key: Rows
    value: Rows
    mask: Rows
    lows: Any
    highs: Any
    lengths: Any
    starts: Any
    slope: float
    bound: float
    scale: float


class Kind(NamedTuple):
    """What kernels are compiled for besides their tiles: the heads that share a key head, widths, and how scores are made."""

    GROUP: int
    D_K: int
    D_V: int
    CAPPED: bool
    NATURAL: bool
    MASK: str  # "none", "bool" or "float"
    LOW: bool
    HIGH: bool
    ACC: Any  # dtype of sums


@triton.jit
def load_rows(matrix, start, stop, N_ROWS: tl.constexpr, D: tl.constexpr, CHECKED: tl.constexpr, UNIT: tl.constexpr = 8):
    """Load the rows start .. start + N_ROWS - 1 of a matrix of D features, as (N_ROWS, padded(D)); from `of_head`.

    A row begins UNIT * stride features after the one before: 8, so that 16 bytes can be loaded at a time. Features from D on are 0, and if
    CHECKED so are the rows from `stop` on: what is masked is never read, not even a NaN. Row numbers times strides may pass
    2**31, so the start of the tile is computed in 64 bits; the launcher sees to it that a tile itself is not that large.
    """
    rows = tl.arange(0, N_ROWS)
    dims = tl.arange(0, padded(D))
    stride = matrix.strides[2]
    tile_ptrs = matrix.ptr + tl.cast(start, tl.int64) * stride * UNIT + rows[:, None] * (stride * UNIT) + dims[None, :]
    if CHECKED:
        return tl.load(tile_ptrs, mask=(start + rows[:, None] < stop) & (dims[None, :] < D), other=0.0)
    elif padded(D) > D:
        return tl.load(tile_ptrs, mask=(dims[None, :] < D) & (rows[:, None] >= 0), other=0.0)
    else:
        return tl.load(tile_ptrs)


@triton.jit
def store_rows(matrix, tile, start, stop, N_ROWS: tl.constexpr, D: tl.constexpr):
    """Store a tile where `load_rows` would have read it; rows from `stop` on and features from D on are left alone."""
    rows = tl.arange(0, N_ROWS)
    dims = tl.arange(0, padded(D))
    stride = matrix.strides[2]
    tile_ptrs = matrix.ptr + tl.cast(start, tl.int64) * stride * 8 + rows[:, None] * (stride * 8) + dims[None, :]
    tl.store(tile_ptrs, tile.to(matrix.ptr.dtype.element_ty), mask=(start + rows[:, None] < stop) & (dims[None, :] < D))


@triton.jit
def of_head(matrix, batch, head, UNIT: tl.constexpr = 8):
    """Return the rows of one head; strides count UNIT features."""
    start = (tl.cast(batch, tl.int64) * matrix.strides[0] + tl.cast(head, tl.int64) * matrix.strides[1]) * UNIT
    return Rows(matrix.strides, matrix.ptr + start)


@triton.jit
def own_block(n_blocks, together):
    """Return which of the n_blocks of a head the program owns, and which head: `together` of them go side by side, block by block."""
    line = tl.program_id(0) // together
    return line % n_blocks, line // n_blocks * together + tl.program_id(0) % together


@triton.jit
def block_of_rows(n_heads, q_len, together, BLOCK_Q: tl.constexpr):
    """Return the first row that the program owns, batch * n_heads + head, batch and head. The last rows, which see most, come first."""
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    block, pair = own_block(n_blocks, together)
    return (n_blocks - 1 - block) * BLOCK_Q, pair, pair // n_heads, pair % n_heads


@triton.jit
def sequence_of(starts_ptr, batch, q_len, kv_len):
    """Return which batch entry of queries and which of keys `of_head` is to take, and how many rows they have.

    Without starts all have q_len and kv_len rows. With them a batch entry is one of several packed sequences, and none has more rows than
    that. starts holds, for queries and keys, how many rows all have together; then the first row of each; then where the last one ends.
    `Rows` step from batch entry to batch entry as from row to row here: the entry to take is the first row.
    """
    if starts_ptr is None:
        return batch, batch, q_len, kv_len
    else:
        starts_ptr += 2 + 2 * batch
        q_start = tl.load(starts_ptr)
        kv_start = tl.load(starts_ptr + 1)
        return q_start, kv_start, tl.load(starts_ptr + 2) - q_start, tl.load(starts_ptr + 3) - kv_start


@triton.jit
def numbers_of(starts_ptr, pair, n_heads, q_len):
    """Return where the numbers of rows of a head begin, which lie (batch, n_heads, q_len), or (n_heads, rows of all packed sequences)."""
    if starts_ptr is None:
        return tl.cast(pair, tl.int64) * q_len
    else:
        return tl.cast(pair % n_heads, tl.int64) * tl.load(starts_ptr) + tl.load(starts_ptr + 2 + pair // n_heads * 2)


@triton.jit
def is_idle(starts_ptr, spoilt_ptr, start, stop, CAREFUL: tl.constexpr):
    """Say whether a program has nothing to do: its sum was finite, if CAREFUL, or its packed sequence ends before the rows it would own."""
    if starts_ptr is None:
        return tl.load(spoilt_ptr + tl.program_id(0)) == 0
    elif CAREFUL:
        return (start >= stop) | (tl.load(spoilt_ptr + tl.program_id(0)) == 0)
    else:
        return start >= stop


@triton.jit
def per_head(table_ptr, pair, default):
    """Return entry `pair` = batch * n_heads + head of a table of integers, or the default where there is no table."""
    if table_ptr is None:
        return default
    else:
        return tl.load(table_ptr + pair)


@triton.jit
def band_of(call, pair, low, high, kv_len):
    """Return the band of a head, and how many keys it has."""
    kv_stop = tl.minimum(per_head(call.lengths, pair, kv_len), kv_len)
    return per_head(call.lows, pair, low), per_head(call.highs, pair, high), kv_stop


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
def capped(products, call, KIND: tl.constexpr):
    """Return scores from q . k, before the mask: slope q . k, or bound tanh(slope q . k). See `arguments.scores_by`."""
    return call.bound * tanh(products * call.slope) if KIND.CAPPED else products * call.slope


@triton.jit
def cap_slope(products, call, KIND: tl.constexpr):
    """Return the derivative of the capped score by the uncapped one: 1 - tanh**2."""
    if KIND.CAPPED:
        t = tanh(products * call.slope)
        return 1.0 - t * t
    else:
        return 1.0


@triton.jit
def is_visible(rows, cols, low, high, kv_stop, KIND: tl.constexpr):
    """Say which pairs the band allows: low <= col - row <= high, and col < kv_stop.

    A side that is not bounded has its flag off; a causal mask is HIGH alone. `rows` and `cols` are columns and rows of
    numbers that broadcast to the tile, either way round.
    """
    if KIND.HIGH:
        visible = cols < tl.minimum(rows + high + 1, kv_stop)  # one comparison for each pair
    else:
        visible = (cols < kv_stop) & (rows >= 0)
    if KIND.LOW:
        visible = visible & (cols >= rows + low)
    return visible


@triton.jit
def masked(scores, visible, mask, row_start, col_start, rows, cols, q_len, kv_len, KIND: tl.constexpr):
    """Apply band and mask to a tile of scores: -inf where a row may not see a column.

    MASK says what the mask holds: "none", "bool" (one byte each, not 0 = may attend) or "float" (added; -inf removes).
    Only the start of the tile is computed in 64 bits: wide pointers would fill the registers.
    """
    if KIND.MASK != "none":
        tile_ptr = mask.ptr + tl.cast(row_start, tl.int64) * mask.strides[2] + tl.cast(col_start, tl.int64) * mask.strides[3]
        places = (rows - row_start) * mask.strides[2] + (cols - col_start) * mask.strides[3]
        held = tl.load(tile_ptr + places, mask=(rows < q_len) & (cols < kv_len), other=0)
        if KIND.MASK == "bool":
            visible = visible & (held != 0)
        else:
            bias = held.to(scores.dtype)
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
