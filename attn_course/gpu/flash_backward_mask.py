"""The gradient of a float mask: the gradient of the scores, summed over the heads and batch entries that share it."""

import triton
import triton.language as tl

from attn_course.gpu.flash_row_terms import of_rows, weights_again
from attn_course.gpu.tiles import COUNTS, band_of, capped, is_visible, load_rows, masked, matmul, numbers_of, of_head


@triton.jit(do_not_specialize=[*COUNTS, "mask_heads", "members", "shared_heads"])
def flash_backward_mask(
    call, terms, d_mask_ptr, n_heads, q_len, kv_len, low, high, mask_heads, members, shared_heads,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, SUMMED: tl.constexpr,
):  # fmt: skip
    """One program owns a tile of one mask and visits its `members`, always in the same order.

    SUMMED "none": they are the batch entries and heads that share the mask, d_mask is (batch or 1, n_heads or 1, q_len, kv_len);
    "queries", "keys": they are the tiles that share the column or row of a mask whose other axis has length 1, for one head;
    d_mask is (batch, n_heads, 1, kv_len) or (batch, n_heads, q_len, 1). It is contiguous, dtype ACC, and is written whole.

    Invariant, Eq. score-gradient-with-lse: d_mask is the sum of p (d_p - delta) over the members visited so far; 0 where a pair is hidden.
    """
    q_blocks = 1 if SUMMED == "queries" else tl.cdiv(q_len, BLOCK_Q)
    kv_blocks = 1 if SUMMED == "keys" else tl.cdiv(kv_len, BLOCK_KV)
    tile = tl.program_id(0) % (q_blocks * kv_blocks)
    entry = tl.program_id(0) // (q_blocks * kv_blocks)
    d_mask = tl.zeros([BLOCK_Q, BLOCK_KV], KIND.ACC)
    queries, keys, values = of_head(call.query, 0, 0), of_head(call.key, 0, 0), of_head(call.value, 0, 0)
    d_outputs, masks = of_head(terms.d_output, 0, 0), of_head(call.mask, 0, 0, 1)  # inside a loop Triton 3.6 has forgotten strides of 1
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
        rows = (row_start + tl.arange(0, BLOCK_Q))[:, None]
        cols = (col_start + tl.arange(0, BLOCK_KV))[None, :]
        pair = batch * n_heads + head
        head_low, head_high, kv_stop = band_of(call, pair, low, high, kv_len)
        query = load_rows(of_head(queries, batch, head), row_start, q_len, BLOCK_Q, KIND.D_K, True)
        key = load_rows(of_head(keys, batch, head // KIND.GROUP), col_start, kv_stop, BLOCK_KV, KIND.D_K, True)
        value = load_rows(of_head(values, batch, head // KIND.GROUP), col_start, kv_stop, BLOCK_KV, KIND.D_V, True)
        d_output = load_rows(of_head(d_outputs, batch, head), row_start, q_len, BLOCK_Q, KIND.D_V, True)
        numbers = numbers_of(None, pair, n_heads, q_len)
        shift = of_rows(terms.shift, numbers, row_start, q_len, float("inf"), BLOCK_Q, True)[:, None]
        rest = of_rows(terms.rest, numbers, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
        delta = of_rows(terms.delta, numbers, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
        scores = capped(matmul(query, tl.trans(key), KIND.ACC), call, KIND)
        visible = is_visible(rows, cols, head_low, head_high, kv_stop, KIND) & (rows < q_len)
        mask = of_head(masks, batch, head, 1)
        scores = masked(scores, visible, mask, row_start, col_start, rows, cols, q_len, kv_len, KIND)
        d_p = matmul(d_output, tl.trans(value), KIND.ACC)
        d_scores = weights_again(scores, shift, rest, KIND) * (d_p - delta)
        d_mask += tl.where(scores == float("-inf"), 0.0, d_scores)
    rows = tile // kv_blocks * BLOCK_Q + tl.arange(0, BLOCK_Q)
    cols = tile % kv_blocks * BLOCK_KV + tl.arange(0, BLOCK_KV)
    if SUMMED == "queries":
        tl.store(d_mask_ptr + tl.cast(entry, tl.int64) * kv_len + cols, tl.sum(d_mask, 0), mask=cols < kv_len)
    elif SUMMED == "keys":
        tl.store(d_mask_ptr + tl.cast(entry, tl.int64) * q_len + rows, tl.sum(d_mask, 1), mask=rows < q_len)
    else:
        places = (tl.cast(entry, tl.int64) * q_len + rows)[:, None] * kv_len + cols[None, :]
        tl.store(d_mask_ptr + places, d_mask, mask=(rows[:, None] < q_len) & (cols[None, :] < kv_len))
