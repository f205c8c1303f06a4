"""FlashAttention, forward: one pass over the keys, and no score ever leaves the chip.

The NumPy form of the same loop is `attn_course.reference.flash_attention`.
"""

import triton
import triton.language as tl

from attn_course.gpu.tiles import capped, edge_tile, edge_tiles, is_visible, load_rows, masked, per_head, store_rows, tile_range


@triton.jit
def _seen(scores, row_max, row_sum, UNIT: tl.constexpr):
    """Take a tile of scores into the maximum and sum of each row, Eq. (12.9), with powers of 2 for those of e, Eq. (12.13).

    Returns the new maximum, the new sum, the factor that older sums need, and 2**(scores * UNIT - maximum). A row that has
    seen nothing but -inf keeps the maximum -inf and the sum 0; UNIT joins the subtraction in one instruction.
    """
    new_max = tl.maximum(row_max, tl.max(scores, 1) * UNIT)
    shift = tl.where(new_max == float("-inf"), 0.0, new_max)  # never -inf - -inf
    rescale = tl.exp2(row_max - shift)
    p = tl.exp2(scores * UNIT - shift[:, None])
    return new_max, row_sum * rescale + tl.sum(p, 1), rescale, p


@triton.jit
def flash_forward(
    query_ptr, key_ptr, value_ptr, mask_ptr, offsets_ptr, lengths_ptr, output_ptr, lse_ptr,
    query_strides, key_strides, value_strides, mask_strides, output_strides,
    n_heads, q_len, kv_len, q_offset, left, right,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    SCALE: tl.constexpr, SOFTCAP: tl.constexpr, MASK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_Q rows of the output of one head. Dao (2023), Algorithm 1, arXiv:2307.08691.

    ============  ==================================  ======================  ==========================================
    pointer       shape                               dtype                   strides
    ============  ==================================  ======================  ==========================================
    query         (batch, n_heads, q_len, D_K)        float16, bfloat16, ...  (batch, head, row); features lie together
    key           (batch, n_heads/GROUP, kv_len, D_K) that of query           (batch, head, row)
    value         (batch, n_heads/GROUP, kv_len, D_V) that of query           (batch, head, row)
    mask          (batch, n_heads, q_len, kv_len)     uint8 or float          (batch, head, row, column), 0 to broadcast
    offsets       (batch, n_heads) or None            int32                   contiguous; else q_offset for all
    lengths       (batch, n_heads) or None            int32                   contiguous; else kv_len for all
    output        (batch, n_heads, q_len, D_V)        that of query           (batch, head, row)
    lse           (batch, n_heads, q_len)             ACC                     contiguous
    ============  ==================================  ======================  ==========================================

    Invariant, Eq. (12.9): after any set of tiles, row_max is the largest score seen (in units of ln 2), row_sum the sum of
    2**(score - row_max), and acc, once the weights p still in hand are multiplied with their values, the same sum times value.
    Tiles may come in any order, Eq. (12.8): first those that every row sees whole, without a mask, then those at the edges.
    """
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    block = n_blocks - 1 - tl.program_id(0) % n_blocks  # under a causal mask the last rows have most to do: they start first
    pair = tl.program_id(0) // n_blocks
    batch = tl.cast(pair // n_heads, tl.int64)
    head = tl.cast(pair % n_heads, tl.int64)
    query_ptr += batch * query_strides[0] + head * query_strides[1]
    key_ptr += batch * key_strides[0] + head // GROUP * key_strides[1]
    value_ptr += batch * value_strides[0] + head // GROUP * value_strides[1]
    output_ptr += batch * output_strides[0] + head * output_strides[1]
    offset = per_head(offsets_ptr, pair, q_offset)
    kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)

    row_start = block * BLOCK_Q
    row_stop = tl.minimum(row_start + BLOCK_Q, q_len)
    rows = row_start + tl.arange(0, BLOCK_Q)
    query = load_rows(query_ptr, row_start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
    row_max = tl.full([BLOCK_Q], float("-inf"), ACC)
    row_sum = tl.zeros([BLOCK_Q], ACC)
    acc = tl.zeros([BLOCK_Q, D_V_PAD], ACC)
    first, full_start, full_stop, stop = tile_range(row_start, row_stop, offset, left, right, kv_stop, BLOCK_KV, LEFT, RIGHT, MASK)

    # Whole tiles, skewed: the matrix units multiply tile i - 1 with its values while the others take the softmax of tile i. What is
    # still in flight may not be touched, so acc waits for its rescaling until the next turn.
    if MASK == "none":
        UNIT: tl.constexpr = SCALE * 1.4426950408889634 if SOFTCAP is None else 1.0  # log2(e), Eq. (12.13)
        key = load_rows(key_ptr, full_start, full_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        scores = tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee")
        if SOFTCAP is not None:
            scores = capped(scores, SCALE, SOFTCAP)
        scores = tl.where(full_start < full_stop, scores, float("-inf"))  # there may be no whole tile
        row_max, row_sum, rescale, p = _seen(scores, row_max, row_sum, UNIT)
        for start in tl.range(full_start + BLOCK_KV, full_stop, BLOCK_KV):
            key = load_rows(key_ptr, start, full_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, False)
            scores = tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee")
            value = load_rows(value_ptr, start - BLOCK_KV, full_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, False)
            acc = tl.dot(p.to(value.dtype), value, acc * rescale[:, None], out_dtype=ACC, input_precision="ieee")
            if SOFTCAP is not None:
                scores = capped(scores, SCALE, SOFTCAP)
            row_max, row_sum, rescale, p = _seen(scores, row_max, row_sum, UNIT)
        last = tl.maximum(full_stop - BLOCK_KV, full_start)
        value = load_rows(value_ptr, last, full_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        acc = tl.dot(p.to(value.dtype), value, acc * rescale[:, None], out_dtype=ACC, input_precision="ieee")

    # Tiles at an edge of the band or of the lengths: few, so care comes before speed.
    if MASK != "none":
        mask_ptr += batch * mask_strides[0] + head * mask_strides[1]
    for edge in tl.range(0, edge_tiles(first, full_start, full_stop, stop, BLOCK_KV)):
        start = edge_tile(edge, first, full_start, full_stop, BLOCK_KV)
        cols = start + tl.arange(0, BLOCK_KV)
        key = load_rows(key_ptr, start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        products = tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee")
        visible = is_visible(rows[:, None], cols[None, :], offset, left, right, kv_stop, LEFT, RIGHT)
        scores = capped(products, SCALE, SOFTCAP)
        scores = masked(scores, visible, mask_ptr, row_start, start, rows[:, None], cols[None, :], q_len, kv_len,
                        mask_strides[2], mask_strides[3], MASK)  # fmt: skip
        row_max, row_sum, rescale, p = _seen(scores, row_max, row_sum, 1.0)
        value = load_rows(value_ptr, start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        is_finite = value - value == 0.0  # NaN - NaN and inf - inf are NaN
        spoiled = tl.min(is_finite.to(tl.int32), 1) == 0
        p = tl.where(spoiled[None, :] & (scores > float("-inf")), float("nan"), p)  # for those who see it, and 0 * NaN for nobody
        value = tl.where(is_finite, value, 0.0)
        acc = tl.dot(p.to(value.dtype), value, acc * rescale[:, None], out_dtype=ACC, input_precision="ieee")

    row_sum = tl.where(row_max == float("-inf"), 1.0, row_sum)  # a row that sees nothing: output 0 and lse -inf
    store_rows(output_ptr, acc / row_sum[:, None], row_start, q_len, output_strides[2], BLOCK_Q, D_V, D_V_PAD)  # Eq. (12.10)
    lse = (row_max + tl.log2(row_sum)) * 0.6931471805599453  # ln 2
    tl.store(lse_ptr + tl.cast(pair, tl.int64) * q_len + rows, lse, mask=rows < q_len)
