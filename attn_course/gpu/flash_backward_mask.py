"""The gradient of a float mask: the gradient of the scores, summed over the heads and batch entries that share it."""

import triton
import triton.language as tl

from attn_course.gpu.flash_row_terms import of_rows, weights_again
from attn_course.gpu.tiles import COUNTS, capped, is_visible, load_rows, masked, matmul, of_head, per_head


@triton.jit(do_not_specialize=[*COUNTS, "mask_heads", "members", "shared_heads"])
def flash_backward_mask(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, d_output_ptr, shift_ptr, rest_ptr, delta_ptr, d_mask_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_mask_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, mask_heads, members, shared_heads,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, SUMMED: tl.constexpr,
):  # fmt: skip
    """One program owns a tile of one mask and visits its `members`, always in the same order.

    SUMMED "none": they are the batch entries and heads that share the mask, d_mask is (batch or 1, n_heads or 1, q_len, kv_len);
    "queries", "keys": they are the tiles that share the column or row of a mask whose other axis has length 1, for one head;
    d_mask is (batch, n_heads, 1, kv_len) or (batch, n_heads, q_len, 1).

    Pointers as in `flash_backward_key_value`; d_mask, dtype ACC, contiguous, is written whole.

    Invariant, Eq. score-gradient-with-lse: d_mask is the sum of p (d_p - delta) over the members visited so far; 0 where a pair is hidden.
    """
    q_blocks = 1 if SUMMED == "queries" else tl.cdiv(q_len, BLOCK_Q)
    kv_blocks = 1 if SUMMED == "keys" else tl.cdiv(kv_len, BLOCK_KV)
    tile = tl.program_id(0) % (q_blocks * kv_blocks)
    entry = tl.program_id(0) // (q_blocks * kv_blocks)
    d_mask = tl.zeros([BLOCK_Q, BLOCK_KV], ACC)
    for member in range(members):
        batch = entry // mask_heads
        head = entry % mask_heads
        row_start = tile // kv_blocks * BLOCK_Q
        col_start = tile % kv_blocks * BLOCK_KV
        if SUMMED == "queries":
            row_start = member * BLOCK_Q
        elif SUMMED == "keys":
            col_start = member * BLOCK_KV
        else:
            batch += member // shared_heads
            head += member % shared_heads
        rows = row_start + tl.arange(0, BLOCK_Q)
        cols = col_start + tl.arange(0, BLOCK_KV)
        pair = batch * n_heads + head
        kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
        head_query_ptr = of_head(query_ptr, batch, head, query_strides)
        head_key_ptr = of_head(key_ptr, batch, head // GROUP, key_strides)
        head_value_ptr = of_head(value_ptr, batch, head // GROUP, value_strides)
        head_d_output_ptr = of_head(d_output_ptr, batch, head, d_output_strides)
        query = load_rows(head_query_ptr, row_start, q_len, query_strides[2], BLOCK_Q, D_K, D_K_PAD, True)
        key = load_rows(head_key_ptr, col_start, kv_stop, key_strides[2], BLOCK_KV, D_K, D_K_PAD, True)
        value = load_rows(head_value_ptr, col_start, kv_stop, value_strides[2], BLOCK_KV, D_V, D_V_PAD, True)
        d_output = load_rows(head_d_output_ptr, row_start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
        shift = of_rows(shift_ptr, pair, row_start, q_len, float("inf"), BLOCK_Q, True)[:, None]
        rest = of_rows(rest_ptr, pair, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
        delta = of_rows(delta_ptr, pair, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
        scores = capped(matmul(query, tl.trans(key), ACC), slope, bound, CAPPED)
        head_low = per_head(lows_ptr, pair, low)
        head_high = per_head(highs_ptr, pair, high)
        visible = is_visible(rows[:, None], cols[None, :], head_low, head_high, kv_stop, LOW, HIGH) & (rows[:, None] < q_len)
        head_mask_ptr = mask_ptr + tl.cast(batch, tl.int64) * mask_strides[0] + tl.cast(head, tl.int64) * mask_strides[1]
        scores = masked(
            scores, visible, head_mask_ptr, row_start, col_start, rows[:, None], cols[None, :], q_len, kv_len, mask_strides, MASK
        )
        d_p = matmul(d_output, tl.trans(value), ACC)
        d_scores = weights_again(scores, shift, rest, NATURAL) * (d_p - delta)
        d_mask += tl.where(scores == float("-inf"), 0.0, d_scores)
    d_mask_ptr += tl.cast(entry // mask_heads, tl.int64) * d_mask_strides[0] + tl.cast(entry % mask_heads, tl.int64) * d_mask_strides[1]
    rows = tile // kv_blocks * BLOCK_Q + tl.arange(0, BLOCK_Q)
    cols = tile % kv_blocks * BLOCK_KV + tl.arange(0, BLOCK_KV)
    if SUMMED == "queries":
        tl.store(d_mask_ptr + cols, tl.sum(d_mask, 0), mask=cols < kv_len)
    elif SUMMED == "keys":
        tl.store(d_mask_ptr + rows, tl.sum(d_mask, 1), mask=rows < q_len)
    else:
        places = tl.cast(rows, tl.int64)[:, None] * d_mask_strides[2] + cols[None, :]
        tl.store(d_mask_ptr + places, d_mask, mask=(rows[:, None] < q_len) & (cols[None, :] < kv_len))
