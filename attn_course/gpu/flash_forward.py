"""FlashAttention, forward: one pass over the keys, and no score ever leaves the chip.

The NumPy form of the same loop is `attn_course.reference.flash_attention`.
"""

import triton
import triton.language as tl

from attn_course.gpu.tiles import (
    COUNTS,
    capped,
    edge_tile,
    edge_tiles,
    grown,
    is_spoilt,
    is_visible,
    keep_apart,
    load_rows,
    masked,
    matmul,
    of_head,
    per_head,
    shrunk,
    store_rows,
    tile_range,
)  # fmt: skip


@triton.jit
def softmax_step(scores, row_max, row_sum, slope, UNIT: tl.constexpr):
    """Take a tile of scores into the maximum and sum of each row, Eq. tiled-attention-update, with powers of 2 for those of e.

    Eq. exponential-in-base-two.

    Returns the new maximum, the new sum, the factor that older sums need, and the weights before their division by the sum. A row
    that has seen nothing but -inf keeps the maximum -inf and the sum 0. UNIT says what the scores are:
    "ln 2"      in units of ln 2, as row_max is;
    "products"  q . k, to be multiplied by `slope`, which joins the subtraction in one instruction;
    "1"         natural, as row_max is: a score may be the lowest number there is, so the difference comes before any factor.
    """
    largest = tl.max(scores, 1)
    new_max = tl.maximum(row_max, largest * slope if UNIT == "products" else largest)
    shift = tl.where(new_max == float("-inf"), 0.0, new_max)  # never -inf - -inf
    rescale = row_max - shift
    p = (scores * slope if UNIT == "products" else scores) - shift[:, None]
    if UNIT == "1":
        rescale *= 1.4426950408889634  # log2(e)
        p *= 1.4426950408889634
    rescale, p = tl.exp2(rescale), tl.exp2(p)
    return new_max, row_sum * rescale + tl.sum(p, 1), rescale, p


@triton.jit(do_not_specialize=COUNTS)
def flash_forward(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, output_ptr, lse_ptr, rest_ptr, spoilt_ptr,
    query_strides, key_strides, value_strides, mask_strides, output_strides,
    n_heads, q_len, kv_len, low, high, slope, bound,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_Q rows of the output of one head. Dao (2023), Algorithm 1, arXiv:2307.08691.

    ============  ==================================  ======================  ===============================================
    pointer       shape                               dtype                   strides
    ============  ==================================  ======================  ===============================================
    query         (batch, n_heads, q_len, D_K)        float16, bfloat16, ...  (batch, head, row) / 8; features lie together
    key           (batch, n_heads/GROUP, kv_len, D_K) that of query           (batch, head, row) / 8
    value         (batch, n_heads/GROUP, kv_len, D_V) that of query           (batch, head, row) / 8
    mask          (batch, n_heads, q_len, kv_len)     uint8 or float          (batch, head, row, column), 0 to broadcast
    lows, highs   (batch, n_heads) or None            int32                   contiguous; else low, high for all
    lengths       (batch, n_heads) or None            int32                   contiguous; else kv_len for all
    output        (batch, n_heads, q_len, D_V)        that of query           (batch, head, row) / 8
    lse, rest     (batch, n_heads, q_len)             ACC                     contiguous
    spoilt        (programs,)                         uint8                   contiguous
    ============  ==================================  ======================  ===============================================

    Row i sees the columns i + low .. i + high as far as LOW and HIGH say. The natural log-sum-exp of a row is lse + rest: `rest` is
    what lse cannot hold beside large numbers, and is written if scores are NATURAL, and not in units of ln 2.

    Launched twice. Each program says in `spoilt` whether it met NaN or infinity: in what a row sees, or as 0 * NaN. If CAREFUL, those
    that did compute their rows anew; what a row may not see can hold NaN and infinity then, and values may be the largest there are.

    Invariant, Eq. tiled-attention-update: after any set of tiles, row_max is the largest score seen, row_sum the sum of exp(score -
    row_max), and acc, once the weights p still in hand are multiplied with their values, the same sum times value. Tiles may come in
    any order, Eq. merging-is-commutative-monoid: first those that every row sees whole, without a mask, then those at the edges.
    """
    if CAREFUL:  # noqa: SIM102 - known when it is compiled, what follows is not
        if tl.load(spoilt_ptr + tl.program_id(0)) == 0:
            return
    WHOLE: tl.constexpr = MASK == "none" and not CAREFUL
    UNIT: tl.constexpr = "1" if NATURAL else "ln 2" if CAPPED else "products"
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    row_start = (n_blocks - 1 - tl.program_id(0) % n_blocks) * BLOCK_Q  # the longest rows of a causal mask first
    pair = tl.program_id(0) // n_blocks
    batch = pair // n_heads
    head = pair % n_heads
    key_ptr = of_head(key_ptr, batch, head // GROUP, key_strides)
    value_ptr = of_head(value_ptr, batch, head // GROUP, value_strides)
    if MASK != "none":
        mask_ptr += tl.cast(batch, tl.int64) * mask_strides[0] + tl.cast(head, tl.int64) * mask_strides[1]
    low = per_head(lows_ptr, pair, low)
    high = per_head(highs_ptr, pair, high)
    kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
    row_stop = tl.minimum(row_start + BLOCK_Q, q_len)
    query = load_rows(of_head(query_ptr, batch, head, query_strides), row_start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
    rows = row_start + tl.arange(0, BLOCK_Q)
    row_max = tl.full([BLOCK_Q], float("-inf"), ACC)
    row_sum = tl.zeros([BLOCK_Q], ACC)
    acc = tl.zeros([BLOCK_Q, D_V_PAD], ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, low, high, kv_stop, BLOCK_KV, LOW, HIGH, WHOLE)

    # Whole tiles, skewed: the matrix units multiply tile i - 1 with its values while the others take the softmax of tile i. What is
    # still in flight may not be touched, so acc waits for its rescaling until the next turn.
    if WHOLE:
        key = load_rows(key_ptr, full_start, full_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        scores = matmul(query, tl.trans(key), ACC)
        if UNIT != "products":
            scores = capped(scores, slope, bound, CAPPED)
        scores = tl.where(full_start < full_stop, scores, float("-inf"))  # there may be no whole tile
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, slope, UNIT)
        for start in tl.range(full_start + BLOCK_KV, full_stop, BLOCK_KV):
            key = load_rows(key_ptr, start, full_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, False)
            scores = matmul(query, tl.trans(key), ACC)
            value = load_rows(value_ptr, start - BLOCK_KV, full_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, False)
            acc = matmul(p.to(value.dtype), value, ACC, acc * rescale[:, None])
            if UNIT != "products":
                scores = capped(scores, slope, bound, CAPPED)
            row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, slope, UNIT)
        final = tl.maximum(full_stop - BLOCK_KV, full_start)
        value = load_rows(value_ptr, final, full_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        acc = matmul(p.to(value.dtype), value, ACC, acc * rescale[:, None])

    for edge in tl.range(0, edge_tiles(first, full_start, full_stop, last, BLOCK_KV), num_stages=None if WHOLE else 1):
        start = edge_tile(edge, first, full_start, full_stop, BLOCK_KV)
        cols = start + tl.arange(0, BLOCK_KV)
        key = load_rows(key_ptr, start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        scores = matmul(query, tl.trans(key), ACC)
        if UNIT != "products":
            scores = capped(scores, slope, bound, CAPPED)
        visible = is_visible(rows[:, None], cols[None, :], low, high, kv_stop, LOW, HIGH)
        scores = masked(scores, visible, mask_ptr, row_start, start, rows[:, None], cols[None, :], q_len, kv_len, mask_strides, MASK)
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, slope, UNIT)
        value = load_rows(value_ptr, start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        if CAREFUL:
            p, value = keep_apart(p, value, scores)
            value = shrunk(value)
        acc = matmul(p.to(value.dtype), value, ACC, acc * rescale[:, None])

    is_blind = row_sum == 0.0  # a row that sees nothing: output 0 and lse -inf
    row_max = tl.where(is_blind, 0.0, row_max)
    row_sum = tl.where(is_blind, 1.0, row_sum)
    output = acc / row_sum[:, None]  # Eq. row-lse-and-output
    if CAREFUL:
        output = grown(output, value_ptr.dtype.element_ty)
    else:
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(acc).to(tl.uint8))
    store_rows(of_head(output_ptr, batch, head, output_strides), output, row_start, q_len, output_strides[2], BLOCK_Q, D_V, D_V_PAD)
    places = tl.cast(pair, tl.int64) * q_len + rows
    if NATURAL:
        log_sum = tl.log2(row_sum) * 0.6931471805599453  # ln 2
        lse = row_max + log_sum
        tl.store(rest_ptr + places, log_sum - (lse - row_max), mask=rows < q_len)
    else:
        lse = (row_max + tl.log2(row_sum)) * 0.6931471805599453
    lse = tl.where(is_blind, float("-inf"), lse)
    tl.store(lse_ptr + places, lse, mask=rows < q_len)
