"""FlashAttention, backward: weights are computed again from scores and stored log-sum-exp, Eq. weights-from-lse, tile by tile.

Two kernels walk over the same tiles: one owns keys and meets all queries, the other owns queries and meets all keys. So each
number of a gradient is summed by one program, in one order: no atomic addition, the same bits in every run. The price is
Eq. two-kernel-backward-flops. The NumPy form is `attn_course.reference.flash_attention_backward`.

Both are launched twice, as `flash_forward` is. Their loops run over whole tiles first, where nothing is hidden, then over those at the
edges, without loads ahead: few turns, and registers are scarce.
"""

import triton
import triton.language as tl

from attn_course.gpu.flash_row_terms import of_rows, weights_again
from attn_course.gpu.tiles import (
    COUNTS,
    cap_slope,
    capped,
    edge_tile,
    edge_tiles,
    is_spoilt,
    is_visible,
    keep_apart,
    load_rows,
    masked,
    matmul,
    of_head,
    per_head,
    store_rows,
    tile_range,
)  # fmt: skip


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_key_value(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr,
    d_key_ptr, d_value_ptr, spoilt_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_key_strides, d_value_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, scale,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_KV keys of one key head and gathers their gradients from all GROUP query heads that share it.

    ================  ====================================  =============  =====================================
    pointer           shape                                 dtype          strides
    ================  ====================================  =============  =====================================
    query, d_output   (batch, n_heads, q_len, D_K or D_V)   float16, ...   (batch, head, row) / 8
    key, value        (batch, n_heads/GROUP, kv_len, ...)   the same       (batch, head, row) / 8
    mask, lows, highs, lengths, spoilt: as in `flash_forward`
    shift, delta      (batch, n_heads, q_len)               ACC            contiguous; from `flash_row_terms`
    rest              the same                              ACC            contiguous; from `flash_forward`
    d_key, d_value    those of key and value                that of key    (batch, head, row) / 8
    ================  ====================================  =============  =====================================

    Invariant, Eq. key-gradient-in-blocks: after any set of query tiles d_key / scale and d_value are the sums over their rows. Scores stand
    transposed, keys by queries: then p and d_scores are left factors as they are, and need not pass through shared memory.
    If CAREFUL, all may hold NaN where they see each other not.
    """
    if CAREFUL:  # noqa: SIM102
        if tl.load(spoilt_ptr + tl.program_id(0)) == 0:
            return
    WHOLE: tl.constexpr = MASK == "none" and not CAREFUL
    n_blocks = tl.cdiv(kv_len, BLOCK_KV)
    col_start = tl.program_id(0) % n_blocks * BLOCK_KV
    kv_pair = tl.program_id(0) // n_blocks
    kv_heads = n_heads // GROUP
    batch = kv_pair // kv_heads
    kv_head = kv_pair % kv_heads
    key = load_rows(of_head(key_ptr, batch, kv_head, key_strides), col_start, kv_len, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
    value_ptr = of_head(value_ptr, batch, kv_head, value_strides)
    value = load_rows(value_ptr, col_start, kv_len, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
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
        n_edges = edge_tiles(first, full_start, full_stop, last, BLOCK_Q)

        for edges in tl.static_range(0 if WHOLE else 1, 2):
            for turn in tl.range(
                0 if edges else full_start, n_edges if edges else full_stop, 1 if edges else BLOCK_Q, num_stages=1 if edges else None
            ):
                start = edge_tile(turn, first, full_start, full_stop, BLOCK_Q) if edges else turn
                query = load_rows(head_query_ptr, start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, edges)
                products = matmul(key, tl.trans(query), ACC)
                scores = capped(products, slope, bound, CAPPED)
                if edges:
                    rows = start + tl.arange(0, BLOCK_Q)
                    visible = is_visible(rows[None, :], cols[:, None], head_low, head_high, kv_stop, LOW, HIGH)
                    if CAREFUL:
                        visible = visible & (rows[None, :] < q_len)
                    scores = masked(scores, visible, head_mask_ptr, start, col_start, rows[None, :], cols[:, None],
                                    q_len, kv_len, mask_strides, MASK)  # fmt: skip
                shift = of_rows(shift_ptr, pair, start, q_len, float("inf"), BLOCK_Q, edges)[None, :]
                rest = of_rows(rest_ptr, pair, start, q_len, 0.0, BLOCK_Q, edges)[None, :] if NATURAL else 0.0
                p = weights_again(scores, shift, rest, NATURAL)
                d_output = load_rows(head_d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, edges)
                if CAREFUL:
                    p = tl.where(scores == float("-inf"), 0.0, p)  # shift is NaN for a query that holds NaN
                    p, d_output = keep_apart(p, d_output, scores)
                if MASK == "none":  # exponentials run beside it; under a mask registers are scarcer
                    d_p = matmul(value, tl.trans(d_output), ACC)
                d_value = matmul(p.to(d_output.dtype), d_output, ACC, d_value)  # Eq. gradient-of-values
                if MASK != "none":
                    d_p = matmul(value, tl.trans(d_output), ACC)
                delta = of_rows(delta_ptr, pair, start, q_len, 0.0, BLOCK_Q, edges)[None, :]
                d_scores = p * (d_p - delta) * cap_slope(products, slope, CAPPED)  # Eq. score-gradient-with-lse
                if CAREFUL:
                    d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
                    query = tl.where(query - query == 0.0, query, 0.0)  # 0 * NaN; what a query sees has its NaN in d_scores
                d_key = matmul(d_scores.to(query.dtype), query, ACC, d_key)  # Eq. key-gradient-in-blocks
    if not CAREFUL:  # d_value is a sum over weights, which are 0 where nobody sees the key
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(d_key).to(tl.uint8))
    d_key_ptr = of_head(d_key_ptr, batch, kv_head, d_key_strides)
    d_value_ptr = of_head(d_value_ptr, batch, kv_head, d_value_strides)
    store_rows(d_key_ptr, d_key * scale, col_start, kv_len, d_key_strides[2], BLOCK_KV, D_K, D_K_PAD)
    store_rows(d_value_ptr, d_value, col_start, kv_len, d_value_strides[2], BLOCK_KV, D_V, D_V_PAD)


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_query(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr,
    d_query_ptr, spoilt_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_query_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, scale,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_Q rows of one head and gathers the gradient of their queries from all keys they see.

    Pointers as in `flash_backward_key_value`; d_query has the shape and dtype of query.

    Invariant: after any set of key tiles d_query / scale is the sum of d_scores times key over their columns, Eq. query-and-key-gradients.
    If CAREFUL, keys and values that a row may not see can hold NaN and infinity.
    """
    if CAREFUL:  # noqa: SIM102
        if tl.load(spoilt_ptr + tl.program_id(0)) == 0:
            return
    WHOLE: tl.constexpr = MASK == "none" and not CAREFUL
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
    shift = of_rows(shift_ptr, pair, row_start, q_len, float("inf"), BLOCK_Q, True)[:, None]
    rest = of_rows(rest_ptr, pair, row_start, q_len, 0.0, BLOCK_Q, True)[:, None] if NATURAL else 0.0
    delta = of_rows(delta_ptr, pair, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
    rows = row_start + tl.arange(0, BLOCK_Q)
    d_query = tl.zeros([BLOCK_Q, D_K_PAD], ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, low, high, kv_stop, BLOCK_KV, LOW, HIGH, WHOLE)
    n_edges = edge_tiles(first, full_start, full_stop, last, BLOCK_KV)
    for edges in tl.static_range(0 if WHOLE else 1, 2):
        for turn in tl.range(
            0 if edges else full_start, n_edges if edges else full_stop, 1 if edges else BLOCK_KV, num_stages=1 if edges else None
        ):
            start = edge_tile(turn, first, full_start, full_stop, BLOCK_KV) if edges else turn
            key = load_rows(key_ptr, start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, edges)
            products = matmul(query, tl.trans(key), ACC)
            value = load_rows(value_ptr, start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, edges)
            d_p = matmul(d_output, tl.trans(value), ACC)  # Eq. gradient-of-weights
            scores = capped(products, slope, bound, CAPPED)
            if edges:
                cols = start + tl.arange(0, BLOCK_KV)
                visible = is_visible(rows[:, None], cols[None, :], low, high, kv_stop, LOW, HIGH)
                scores = masked(scores, visible, mask_ptr, row_start, start, rows[:, None], cols[None, :],
                                q_len, kv_len, mask_strides, MASK)  # fmt: skip
            p = weights_again(scores, shift, rest, NATURAL)
            d_scores = p * (d_p - delta) * cap_slope(products, slope, CAPPED)  # Eq. score-gradient-with-lse
            if CAREFUL:
                d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
                key = tl.where(key - key == 0.0, key, 0.0)  # 0 * NaN; who sees a NaN has it in d_scores
            d_query = matmul(d_scores.to(key.dtype), key, ACC, d_query)
    if not CAREFUL:
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(d_query).to(tl.uint8))
    d_query_ptr = of_head(d_query_ptr, batch, head, d_query_strides)
    store_rows(d_query_ptr, d_query * scale, row_start, q_len, d_query_strides[2], BLOCK_Q, D_K, D_K_PAD)
