"""FlashAttention, backward: weights are computed again from scores and stored log-sum-exp, Eq. weights-from-lse, tile by tile.

Two kernels walk over the same tiles: one owns keys and meets all queries, the other owns queries and meets all keys. So each
number of a gradient is summed by one program, in one order: no atomic addition, the same bits in every run. The price is
Eq. two-kernel-backward-flops. The NumPy form is `attn_course.reference.flash_attention_backward`.
"""

import triton
import triton.language as tl

from attn_course.gpu.flash_row_terms import row_terms, weights_again
from attn_course.gpu.tiles import (
    COUNTS,
    cap_slope,
    capped,
    edge_tile,
    edge_tiles,
    is_spoilt,
    is_visible,
    load_rows,
    masked,
    matmul,
    of_head,
    per_head,
    store_rows,
    tile_range,
)  # fmt: skip


@triton.jit
def _gather_key_value(
    key, value, query_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr,
    query_strides, mask_strides, d_output_strides,
    batch, kv_head, col_start, n_heads, q_len, kv_len, low, high, slope, bound,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """Return d_key / scale and d_value of a block of keys. If CAREFUL, all may hold NaN where they see each other not.

    Invariant, Eq. key-gradient-in-blocks: after any set of query tiles these are the sums over their rows. Scores stand transposed, keys by
    queries: then p and d_scores are left factors as they are, and need not pass through shared memory.
    """
    WHOLE: tl.constexpr = MASK == "none" and not CAREFUL
    cols = col_start + tl.arange(0, BLOCK_KV)
    d_key = tl.zeros([BLOCK_KV, D_K_PAD], ACC)
    d_value = tl.zeros([BLOCK_KV, D_V_PAD], ACC)
    for member in range(GROUP):
        head = kv_head * GROUP + member
        pair = batch * n_heads + head
        head_query_ptr = of_head(query_ptr, batch, head, query_strides)
        head_d_output_ptr = of_head(d_output_ptr, batch, head, d_output_strides)
        head_mask_ptr = mask_ptr
        if MASK != "none":
            head_mask_ptr += tl.cast(batch, tl.int64) * mask_strides[0] + tl.cast(head, tl.int64) * mask_strides[1]
        head_low = per_head(lows_ptr, pair, low)
        head_high = per_head(highs_ptr, pair, high)
        kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
        col_stop = tl.minimum(col_start + BLOCK_KV, kv_stop)
        q_stop = tl.where(col_start < kv_stop, q_len, 0)
        first, full_start, full_stop, last = tile_range(
            col_start, col_stop, -head_high, -head_low, q_stop, BLOCK_Q, HIGH, LOW, WHOLE
        )  # fmt: skip
        is_whole = col_start + BLOCK_KV <= kv_stop
        full_start = tl.where(is_whole, full_start, first)
        full_stop = tl.where(is_whole, full_stop, first)

        if WHOLE:
            for start in tl.range(full_start, full_stop, BLOCK_Q):
                query = load_rows(head_query_ptr, start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, False)
                products = matmul(key, tl.trans(query), ACC)
                shift, rest, delta = row_terms(shift_ptr, rest_ptr, delta_ptr, pair, start, q_len, BLOCK_Q, MASK, False)
                p = weights_again(capped(products, slope, bound, CAPPED), shift[None, :], rest, MASK)
                d_output = load_rows(head_d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, False)
                d_value = matmul(p.to(d_output.dtype), d_output, ACC, d_value)  # Eq. gradient-of-values
                d_p = matmul(value, tl.trans(d_output), ACC)
                d_scores = p * (d_p - delta[None, :]) * cap_slope(products, slope, CAPPED)  # Eq. score-gradient-with-lse
                d_key = matmul(d_scores.to(query.dtype), query, ACC, d_key)  # Eq. key-gradient-in-blocks
        for edge in tl.range(0, edge_tiles(first, full_start, full_stop, last, BLOCK_Q), num_stages=1):
            start = edge_tile(edge, first, full_start, full_stop, BLOCK_Q)
            rows = start + tl.arange(0, BLOCK_Q)
            query = load_rows(head_query_ptr, start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
            products = matmul(key, tl.trans(query), ACC)
            shift, rest, delta = row_terms(shift_ptr, rest_ptr, delta_ptr, pair, start, q_len, BLOCK_Q, MASK, True)
            visible = is_visible(rows[None, :], cols[:, None], head_low, head_high, kv_stop, LOW, HIGH) & (rows[None, :] < q_len)
            scores = masked(capped(products, slope, bound, CAPPED), visible, head_mask_ptr, start, col_start,
                            rows[None, :], cols[:, None], q_len, kv_len, mask_strides, MASK)  # fmt: skip
            p = weights_again(scores, shift[None, :], rest[None, :] if MASK == "float" else rest, MASK)
            if CAREFUL:
                p = tl.where(scores == float("-inf"), 0.0, p)  # shift is NaN for a query that holds NaN
            d_output = load_rows(head_d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
            d_value = matmul(p.to(d_output.dtype), d_output, ACC, d_value)
            d_p = matmul(value, tl.trans(d_output), ACC)
            d_scores = p * (d_p - delta[None, :]) * cap_slope(products, slope, CAPPED)
            if CAREFUL:
                d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
                query = tl.where(query - query == 0.0, query, 0.0)  # 0 * NaN; what a query sees has its NaN in d_scores
            d_key = matmul(d_scores.to(query.dtype), query, ACC, d_key)
    return d_key, d_value


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_key_value(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr,
    d_key_ptr, d_value_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_key_strides, d_value_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, scale,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_KV keys of one key head and gathers their gradients from all GROUP query heads that share it.

    ================  ====================================  =============  =====================================
    pointer           shape                                 dtype          strides
    ================  ====================================  =============  =====================================
    query, d_output   (batch, n_heads, q_len, D_K or D_V)   float16, ...   (batch, head, row) / 8
    key, value        (batch, n_heads/GROUP, kv_len, ...)   the same       (batch, head, row) / 8
    mask, lows, highs, lengths: as in `flash_forward`
    shift, delta      (batch, n_heads, q_len)               ACC            contiguous; from `flash_row_terms`
    rest              the same, or None                     ACC            contiguous; from `flash_forward`
    d_key, d_value    those of key and value                that of key    (batch, head, row) / 8
    ================  ====================================  =============  =====================================
    """
    n_blocks = tl.cdiv(kv_len, BLOCK_KV)
    col_start = tl.program_id(0) % n_blocks * BLOCK_KV
    kv_pair = tl.program_id(0) // n_blocks
    kv_heads = n_heads // GROUP
    batch = kv_pair // kv_heads
    kv_head = kv_pair % kv_heads
    key = load_rows(of_head(key_ptr, batch, kv_head, key_strides), col_start, kv_len, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
    value_ptr = of_head(value_ptr, batch, kv_head, value_strides)
    value = load_rows(value_ptr, col_start, kv_len, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)

    where_to_look = (key, value, query_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr,
                     query_strides, mask_strides, d_output_strides,
                     batch, kv_head, col_start, n_heads, q_len, kv_len, low, high, slope, bound)  # fmt: skip
    d_key, d_value = _gather_key_value(
        *where_to_look, GROUP, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, CAREFUL=False
    )
    if is_spoilt(d_key):  # as in `flash_forward`; d_value is a sum over weights, which are 0 where nobody sees the key
        d_key, d_value = _gather_key_value(
            *where_to_look, GROUP, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, CAREFUL=True
        )
    d_key_ptr = of_head(d_key_ptr, batch, kv_head, d_key_strides)
    d_value_ptr = of_head(d_value_ptr, batch, kv_head, d_value_strides)
    store_rows(d_key_ptr, d_key * scale, col_start, kv_len, d_key_strides[2], BLOCK_KV, D_K, D_K_PAD)
    store_rows(d_value_ptr, d_value, col_start, kv_len, d_value_strides[2], BLOCK_KV, D_V, D_V_PAD)


@triton.jit
def _gather_query(
    query, d_output, shift, rest, delta, key_ptr, value_ptr, mask_ptr, key_stride, value_stride, mask_strides,
    row_start, row_stop, q_len, kv_len, kv_stop, low, high, slope, bound,
    D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """Return d_query / scale of a block of rows. If CAREFUL, keys and values that a row may not see can hold NaN and infinity.

    Invariant: after any set of key tiles it is the sum of d_scores times key over their columns, Eq. query-and-key-gradients.
    """
    WHOLE: tl.constexpr = MASK == "none" and not CAREFUL
    rows = row_start + tl.arange(0, BLOCK_Q)
    d_query = tl.zeros([BLOCK_Q, D_K_PAD], ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, low, high, kv_stop, BLOCK_KV, LOW, HIGH, WHOLE)
    if WHOLE:
        for start in tl.range(full_start, full_stop, BLOCK_KV):
            key = load_rows(key_ptr, start, kv_stop, key_stride, BLOCK_KV, D_K, D_K_PAD, False)
            products = matmul(query, tl.trans(key), ACC)
            value = load_rows(value_ptr, start, kv_stop, value_stride, BLOCK_KV, D_V, D_V_PAD, False)
            d_p = matmul(d_output, tl.trans(value), ACC)  # Eq. gradient-of-weights
            p = weights_again(capped(products, slope, bound, CAPPED), shift[:, None], rest, MASK)
            d_scores = p * (d_p - delta[:, None]) * cap_slope(products, slope, CAPPED)  # Eq. score-gradient-with-lse
            d_query = matmul(d_scores.to(key.dtype), key, ACC, d_query)
    n_edges = edge_tiles(first, full_start, full_stop, last, BLOCK_KV)
    for edge in tl.range(0, n_edges, num_stages=1):  # no loads ahead: few turns, and registers are scarce
        start = edge_tile(edge, first, full_start, full_stop, BLOCK_KV)
        cols = start + tl.arange(0, BLOCK_KV)
        key = load_rows(key_ptr, start, kv_stop, key_stride, BLOCK_KV, D_K, D_K_PAD, True)
        products = matmul(query, tl.trans(key), ACC)
        visible = is_visible(rows[:, None], cols[None, :], low, high, kv_stop, LOW, HIGH)
        scores = masked(capped(products, slope, bound, CAPPED), visible, mask_ptr, row_start, start,
                        rows[:, None], cols[None, :], q_len, kv_len, mask_strides, MASK)  # fmt: skip
        value = load_rows(value_ptr, start, kv_stop, value_stride, BLOCK_KV, D_V, D_V_PAD, True)
        d_p = matmul(d_output, tl.trans(value), ACC)
        p = weights_again(scores, shift[:, None], rest[:, None] if MASK == "float" else rest, MASK)
        d_scores = p * (d_p - delta[:, None]) * cap_slope(products, slope, CAPPED)
        if CAREFUL:
            d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
            key = tl.where(key - key == 0.0, key, 0.0)  # 0 * NaN; who sees a NaN has it in d_scores
        d_query = matmul(d_scores.to(key.dtype), key, ACC, d_query)
    return d_query


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_query(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr, d_query_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_query_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, scale,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_Q rows of one head and gathers the gradient of their queries from all keys they see.

    Pointers as in `flash_backward_key_value`; d_query has the shape and dtype of query.
    """
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
    d_output_ptr = of_head(d_output_ptr, batch, head, d_output_strides)
    d_output = load_rows(d_output_ptr, row_start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    shift, rest, delta = row_terms(shift_ptr, rest_ptr, delta_ptr, pair, row_start, q_len, BLOCK_Q, MASK, True)

    where_to_look = (query, d_output, shift, rest, delta, key_ptr, value_ptr, mask_ptr, key_strides[2], value_strides[2], mask_strides,
                     row_start, row_stop, q_len, kv_len, kv_stop, low, high, slope, bound)  # fmt: skip
    d_query = _gather_query(*where_to_look, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, CAREFUL=False)
    if is_spoilt(d_query):
        d_query = _gather_query(*where_to_look, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, CAREFUL=True)
    d_query_ptr = of_head(d_query_ptr, batch, head, d_query_strides)
    store_rows(d_query_ptr, d_query * scale, row_start, q_len, d_query_strides[2], BLOCK_Q, D_K, D_K_PAD)
