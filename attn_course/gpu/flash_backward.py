"""FlashAttention, backward: weights are computed again from scores and stored log-sum-exp, Eq. (12.22), tile by tile.

Two kernels walk over the same tiles: one owns keys and meets all queries, the other owns queries and meets all keys. So each
number of a gradient is summed by one program, in one order: no atomic addition, the same bits in every run. The price is
Eq. (12.31). The NumPy form is `attn_course.reference.flash_attention_backward`.
"""

import triton
import triton.language as tl

from attn_course.gpu.tiles import cap_slope, capped, edge_tile, edge_tiles, is_visible, load_rows, masked, per_head, store_rows, tile_range


@triton.jit
def flash_row_terms(output_ptr, d_output_ptr, lse_ptr, d_lse_ptr, delta_ptr, output_strides, d_output_strides, n_heads, q_len,
                    D_V: tl.constexpr, D_V_PAD: tl.constexpr, ACC: tl.constexpr, BLOCK_Q: tl.constexpr):  # fmt: skip
    """One program computes delta - d_lse of BLOCK_Q rows of one head: what every weight of a row needs, Eqs. (12.25) and (12.28).

    output, d_output (batch, n_heads, q_len, D_V); lse, d_lse (or None), delta (batch, n_heads, q_len), contiguous, dtype ACC.
    """
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    start = tl.program_id(0) % n_blocks * BLOCK_Q
    pair = tl.program_id(0) // n_blocks
    batch = tl.cast(pair // n_heads, tl.int64)
    head = tl.cast(pair % n_heads, tl.int64)
    output_ptr += batch * output_strides[0] + head * output_strides[1]
    d_output_ptr += batch * d_output_strides[0] + head * d_output_strides[1]
    output = load_rows(output_ptr, start, q_len, output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    d_output = load_rows(d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    delta = tl.sum(output.to(ACC) * d_output.to(ACC), 1)
    rows = start + tl.arange(0, BLOCK_Q)
    if d_lse_ptr is not None:
        delta -= tl.load(d_lse_ptr + tl.cast(pair, tl.int64) * q_len + rows, mask=rows < q_len, other=0.0)
    tl.store(delta_ptr + tl.cast(pair, tl.int64) * q_len + rows, delta, mask=rows < q_len)


@triton.jit
def row_terms(lse_ptr, delta_ptr, pair, rows, q_len):
    """Load lse in units of ln 2 and delta; a row past the end, or one that sees nothing, gets an lse that makes its weights 0."""
    places = tl.cast(pair, tl.int64) * q_len + rows
    lse = tl.load(lse_ptr + places, mask=rows < q_len, other=float("inf")) * 1.4426950408889634  # log2(e)
    delta = tl.load(delta_ptr + places, mask=rows < q_len, other=0.0)
    return tl.where(lse == float("-inf"), float("inf"), lse), delta


@triton.jit
def flash_backward_key_value(
    query_ptr, key_ptr, value_ptr, mask_ptr, offsets_ptr, lengths_ptr, d_output_ptr, lse_ptr, delta_ptr, d_key_ptr, d_value_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_key_strides, d_value_strides,
    n_heads, q_len, kv_len, q_offset, left, right,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    SCALE: tl.constexpr, SOFTCAP: tl.constexpr, MASK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_KV keys of one key head and gathers their gradients from all GROUP query heads that share it.

    ================  ====================================  =============  =====================================
    pointer           shape                                 dtype          strides
    ================  ====================================  =============  =====================================
    query, d_output   (batch, n_heads, q_len, D_K or D_V)   float16, ...   (batch, head, row)
    key, value        (batch, n_heads/GROUP, kv_len, ...)   the same       (batch, head, row)
    mask, offsets, lengths: as in `flash_forward`
    lse, delta        (batch, n_heads, q_len)               ACC            contiguous; delta from `flash_row_terms`
    d_key, d_value    those of key and value                that of key    (batch, head, row)
    ================  ====================================  =============  =====================================

    Invariant, Eq. (12.29): after any set of query tiles, d_key / SCALE and d_value are the sums over their rows. Scores stand
    transposed, keys by queries: then p and d_scores are left factors as they are, and need not pass through shared memory.
    """
    n_blocks = tl.cdiv(kv_len, BLOCK_KV)
    col_start = tl.program_id(0) % n_blocks * BLOCK_KV
    kv_pair = tl.program_id(0) // n_blocks
    kv_heads = n_heads // GROUP
    batch = tl.cast(kv_pair // kv_heads, tl.int64)
    kv_head = tl.cast(kv_pair % kv_heads, tl.int64)
    key_ptr += batch * key_strides[0] + kv_head * key_strides[1]
    value_ptr += batch * value_strides[0] + kv_head * value_strides[1]
    key = load_rows(key_ptr, col_start, kv_len, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
    value = load_rows(value_ptr, col_start, kv_len, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
    cols = col_start + tl.arange(0, BLOCK_KV)
    d_key = tl.zeros([BLOCK_KV, D_K_PAD], ACC)
    d_value = tl.zeros([BLOCK_KV, D_V_PAD], ACC)
    for member in range(GROUP):
        head = kv_head * GROUP + member
        pair = batch * n_heads + head
        head_query_ptr = query_ptr + batch * query_strides[0] + head * query_strides[1]
        head_d_output_ptr = d_output_ptr + batch * d_output_strides[0] + head * d_output_strides[1]
        offset = per_head(offsets_ptr, pair, q_offset)
        kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
        col_stop = tl.minimum(col_start + BLOCK_KV, kv_stop)
        q_stop = tl.where(col_start < kv_stop, q_len, 0)
        first, full_start, full_stop, last = tile_range(col_start, col_stop, -offset, right, left, q_stop, BLOCK_Q, RIGHT, LEFT, MASK)
        is_whole = col_start + BLOCK_KV <= kv_stop
        full_start = tl.where(is_whole, full_start, first)
        full_stop = tl.where(is_whole, full_stop, first)

        head_mask_ptr = mask_ptr
        if MASK == "none":
            for start in tl.range(full_start, full_stop, BLOCK_Q):
                query = load_rows(head_query_ptr, start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, False)
                products = tl.dot(key, tl.trans(query), out_dtype=ACC, input_precision="ieee")
                lse, delta = row_terms(lse_ptr, delta_ptr, pair, start + tl.arange(0, BLOCK_Q), q_len)
                p = tl.exp2(capped(products, SCALE, SOFTCAP) - lse[None, :])  # Eq. (12.22)
                d_output = load_rows(head_d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, False)
                d_value = tl.dot(p.to(d_output.dtype), d_output, d_value, out_dtype=ACC, input_precision="ieee")  # Eq. (12.23)
                d_p = tl.dot(value, tl.trans(d_output), out_dtype=ACC, input_precision="ieee")
                d_scores = p * (d_p - delta[None, :]) * cap_slope(products, SCALE, SOFTCAP)  # Eq. (12.28)
                d_key = tl.dot(d_scores.to(query.dtype), query, d_key, out_dtype=ACC, input_precision="ieee")  # Eq. (12.26)
        else:
            head_mask_ptr += batch * mask_strides[0] + head * mask_strides[1]
        for edge in tl.range(0, edge_tiles(first, full_start, full_stop, last, BLOCK_Q), num_stages=1):
            start = edge_tile(edge, first, full_start, full_stop, BLOCK_Q)
            rows = start + tl.arange(0, BLOCK_Q)
            query = load_rows(head_query_ptr, start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
            products = tl.dot(key, tl.trans(query), out_dtype=ACC, input_precision="ieee")
            lse, delta = row_terms(lse_ptr, delta_ptr, pair, rows, q_len)
            visible = is_visible(rows[None, :], cols[:, None], offset, left, right, kv_stop, LEFT, RIGHT)
            scores = capped(products, SCALE, SOFTCAP)
            scores = masked(scores, visible, head_mask_ptr, start, col_start, rows[None, :], cols[:, None], q_len, kv_len,
                            mask_strides[2], mask_strides[3], MASK)  # fmt: skip
            p = tl.exp2(scores - lse[None, :])
            d_output = load_rows(head_d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
            d_value = tl.dot(p.to(d_output.dtype), d_output, d_value, out_dtype=ACC, input_precision="ieee")
            d_p = tl.dot(value, tl.trans(d_output), out_dtype=ACC, input_precision="ieee")
            d_scores = p * (d_p - delta[None, :]) * cap_slope(products, SCALE, SOFTCAP)
            d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)  # a hidden key or value may hold NaN
            d_key = tl.dot(d_scores.to(query.dtype), query, d_key, out_dtype=ACC, input_precision="ieee")

    d_key_ptr += batch * d_key_strides[0] + kv_head * d_key_strides[1]
    d_value_ptr += batch * d_value_strides[0] + kv_head * d_value_strides[1]
    store_rows(d_key_ptr, d_key * SCALE, col_start, kv_len, d_key_strides[2], BLOCK_KV, D_K, D_K_PAD)
    store_rows(d_value_ptr, d_value, col_start, kv_len, d_value_strides[2], BLOCK_KV, D_V, D_V_PAD)


@triton.jit
def flash_backward_query(
    query_ptr, key_ptr, value_ptr, mask_ptr, offsets_ptr, lengths_ptr, d_output_ptr, lse_ptr, delta_ptr, d_query_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_query_strides,
    n_heads, q_len, kv_len, q_offset, left, right,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    SCALE: tl.constexpr, SOFTCAP: tl.constexpr, MASK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_Q rows of one head and gathers the gradient of their queries from all keys they see.

    Pointers as in `flash_backward_key_value`; d_query has the shape and dtype of query.

    Invariant: after any set of key tiles, d_query / SCALE is the sum of d_scores times key over their columns, Eq. (12.26).
    """
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    row_start = (n_blocks - 1 - tl.program_id(0) % n_blocks) * BLOCK_Q  # the longest rows of a causal mask first
    pair = tl.program_id(0) // n_blocks
    batch = tl.cast(pair // n_heads, tl.int64)
    head = tl.cast(pair % n_heads, tl.int64)
    query_ptr += batch * query_strides[0] + head * query_strides[1]
    key_ptr += batch * key_strides[0] + head // GROUP * key_strides[1]
    value_ptr += batch * value_strides[0] + head // GROUP * value_strides[1]
    d_output_ptr += batch * d_output_strides[0] + head * d_output_strides[1]
    d_query_ptr += batch * d_query_strides[0] + head * d_query_strides[1]
    offset = per_head(offsets_ptr, pair, q_offset)
    kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
    rows = row_start + tl.arange(0, BLOCK_Q)
    row_stop = tl.minimum(row_start + BLOCK_Q, q_len)
    query = load_rows(query_ptr, row_start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
    d_output = load_rows(d_output_ptr, row_start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    lse, delta = row_terms(lse_ptr, delta_ptr, pair, rows, q_len)
    d_query = tl.zeros([BLOCK_Q, D_K_PAD], ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, offset, left, right, kv_stop, BLOCK_KV, LEFT, RIGHT, MASK)

    if MASK == "none":
        for start in tl.range(full_start, full_stop, BLOCK_KV):
            key = load_rows(key_ptr, start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, False)
            products = tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee")
            value = load_rows(value_ptr, start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, False)
            d_p = tl.dot(d_output, tl.trans(value), out_dtype=ACC, input_precision="ieee")  # Eq. (12.23)
            p = tl.exp2(capped(products, SCALE, SOFTCAP) - lse[:, None])  # Eq. (12.22)
            d_scores = p * (d_p - delta[:, None]) * cap_slope(products, SCALE, SOFTCAP)  # Eq. (12.28)
            d_query = tl.dot(d_scores.to(key.dtype), key, d_query, out_dtype=ACC, input_precision="ieee")
    else:
        mask_ptr += batch * mask_strides[0] + head * mask_strides[1]
    for edge in tl.range(
        0, edge_tiles(first, full_start, full_stop, last, BLOCK_KV), num_stages=1
    ):  # no loads ahead: few turns, and registers are scarce
        start = edge_tile(edge, first, full_start, full_stop, BLOCK_KV)
        cols = start + tl.arange(0, BLOCK_KV)
        key = load_rows(key_ptr, start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        products = tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee")
        visible = is_visible(rows[:, None], cols[None, :], offset, left, right, kv_stop, LEFT, RIGHT)
        scores = capped(products, SCALE, SOFTCAP)
        scores = masked(scores, visible, mask_ptr, row_start, start, rows[:, None], cols[None, :], q_len, kv_len,
                        mask_strides[2], mask_strides[3], MASK)  # fmt: skip
        value = load_rows(value_ptr, start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        d_p = tl.dot(d_output, tl.trans(value), out_dtype=ACC, input_precision="ieee")
        p = tl.exp2(scores - lse[:, None])
        d_scores = p * (d_p - delta[:, None]) * cap_slope(products, SCALE, SOFTCAP)
        d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
        key = tl.where(key - key == 0.0, key, 0.0)  # 0 * NaN; who sees a NaN has it in d_scores
        d_query = tl.dot(d_scores.to(key.dtype), key, d_query, out_dtype=ACC, input_precision="ieee")
    store_rows(d_query_ptr, d_query * SCALE, row_start, q_len, d_query_strides[2], BLOCK_Q, D_K, D_K_PAD)
