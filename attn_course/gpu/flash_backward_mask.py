"""The gradient of a float mask: the gradient of the scores, summed over the heads and batch entries that share it."""

import triton
import triton.language as tl

from attn_course.gpu.flash_backward import row_terms
from attn_course.gpu.tiles import capped, is_visible, load_rows, masked, per_head


@triton.jit
def flash_backward_mask(
    query_ptr, key_ptr, value_ptr, mask_ptr, offsets_ptr, lengths_ptr, d_output_ptr, lse_ptr, delta_ptr, d_mask_ptr,
    query_strides, key_strides, value_strides, mask_strides, d_output_strides, d_mask_strides,
    n_heads, q_len, kv_len, q_offset, left, right, mask_heads, shared_batches, shared_heads,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    SCALE: tl.constexpr, SOFTCAP: tl.constexpr, MASK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """One program owns a tile of one mask and visits the batch entries and heads that share it, always in the same order.

    Pointers as in `flash_backward_key_value`; d_mask (batch or 1, n_heads or 1, q_len, kv_len), dtype ACC, is written whole.

    Invariant, Eq. (12.28): d_mask is the sum of p (d_p - delta) over the heads visited so far; 0 where a pair is hidden.
    """
    q_blocks = tl.cdiv(q_len, BLOCK_Q)
    kv_blocks = tl.cdiv(kv_len, BLOCK_KV)
    tile = tl.program_id(0) % (q_blocks * kv_blocks)
    entry = tl.program_id(0) // (q_blocks * kv_blocks)
    row_start = tile // kv_blocks * BLOCK_Q
    col_start = tile % kv_blocks * BLOCK_KV
    rows = row_start + tl.arange(0, BLOCK_Q)
    cols = col_start + tl.arange(0, BLOCK_KV)
    d_mask = tl.zeros([BLOCK_Q, BLOCK_KV], ACC)
    for member in range(shared_batches * shared_heads):
        batch = tl.cast(entry // mask_heads + member // shared_heads, tl.int64)
        head = tl.cast(entry % mask_heads + member % shared_heads, tl.int64)
        pair = batch * n_heads + head
        offset = per_head(offsets_ptr, pair, q_offset)
        kv_stop = tl.minimum(per_head(lengths_ptr, pair, kv_len), kv_len)
        query = load_rows(query_ptr + batch * query_strides[0] + head * query_strides[1], row_start, q_len, query_strides[2],
                          BLOCK_Q, D_K, D_K_PAD, True)  # fmt: skip
        key = load_rows(key_ptr + batch * key_strides[0] + head // GROUP * key_strides[1], col_start, kv_stop, key_strides[2],
                        BLOCK_KV, D_K, D_K_PAD, True)  # fmt: skip
        value = load_rows(value_ptr + batch * value_strides[0] + head // GROUP * value_strides[1], col_start, kv_stop, value_strides[2],
                          BLOCK_KV, D_V, D_V_PAD, True)  # fmt: skip
        d_output = load_rows(d_output_ptr + batch * d_output_strides[0] + head * d_output_strides[1], row_start, q_len,
                             d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)  # fmt: skip
        lse, delta = row_terms(lse_ptr, delta_ptr, pair, rows, q_len)
        scores = capped(tl.dot(query, tl.trans(key), out_dtype=ACC, input_precision="ieee"), SCALE, SOFTCAP)
        visible = is_visible(rows[:, None], cols[None, :], offset, left, right, kv_stop, LEFT, RIGHT)
        head_mask_ptr = mask_ptr + batch * mask_strides[0] + head * mask_strides[1]
        scores = masked(scores, visible, head_mask_ptr, row_start, col_start, rows[:, None], cols[None, :], q_len, kv_len,
                        mask_strides[2], mask_strides[3], MASK)  # fmt: skip
        d_p = tl.dot(d_output, tl.trans(value), out_dtype=ACC, input_precision="ieee")
        d_scores = tl.exp2(scores - lse[:, None]) * (d_p - delta[:, None])
        d_mask += tl.where(scores == float("-inf"), 0.0, d_scores)
    d_mask_ptr += tl.cast(entry // mask_heads, tl.int64) * d_mask_strides[0] + tl.cast(entry % mask_heads, tl.int64) * d_mask_strides[1]
    places = tl.cast(rows, tl.int64)[:, None] * d_mask_strides[2] + cols[None, :]
    tl.store(d_mask_ptr + places, d_mask, mask=(rows[:, None] < q_len) & (cols[None, :] < kv_len))
