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
    band_of,
    block_of_rows,
    cap_slope,
    capped,
    edge_tile,
    edge_tiles,
    is_idle,
    is_spoilt,
    is_visible,
    keep_apart,
    load_rows,
    masked,
    matmul,
    numbers_of,
    of_head,
    own_block,
    padded,
    sequence_of,
    store_rows,
    tile_range,
)


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_key_value(
    call, terms, d_keys, d_values, spoilt_ptr, n_heads, q_len, kv_len, low, high, together,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_KV keys of one key head and gathers their gradients from all GROUP query heads that share it.

    d_keys, d_values: `Rows` of the shape and dtype of key and value; spoilt: as in `flash_forward`.

    Invariant, Eq. key-gradient-in-blocks: after any set of query tiles d_key / scale and d_value are the sums over their rows. Scores stand
    transposed, keys by queries: then p and d_scores are left factors as they are, and need not pass through shared memory.
    If CAREFUL, all may hold NaN where they see each other not.
    """
    WHOLE: tl.constexpr = KIND.MASK == "none" and not CAREFUL
    n_blocks = tl.cdiv(kv_len, BLOCK_KV)
    block, kv_pair = own_block(n_blocks, together)
    col_start = block * BLOCK_KV
    kv_heads = n_heads // KIND.GROUP
    batch = kv_pair // kv_heads
    kv_head = kv_pair % kv_heads
    q_entry, kv_entry, q_len, kv_len = sequence_of(call.starts, batch, q_len, kv_len)
    keys = of_head(call.key, kv_entry, kv_head)
    values = of_head(call.value, kv_entry, kv_head)
    group_queries = of_head(call.query, q_entry, kv_head * KIND.GROUP)
    group_d_outputs = of_head(terms.d_output, q_entry, kv_head * KIND.GROUP)
    group_mask = call.mask if KIND.MASK == "none" else of_head(call.mask, batch, kv_head * KIND.GROUP, 1)
    d_keys = of_head(d_keys, kv_entry, kv_head)
    d_values = of_head(d_values, kv_entry, kv_head)
    if CAREFUL or call.starts is not None:  # noqa: SIM102
        if is_idle(call.starts, spoilt_ptr, col_start, kv_len, CAREFUL):
            return
    key = load_rows(keys, col_start, kv_len, BLOCK_KV, KIND.D_K, True)
    value = load_rows(values, col_start, kv_len, BLOCK_KV, KIND.D_V, True)
    cols = col_start + tl.arange(0, BLOCK_KV)
    d_key = tl.zeros([BLOCK_KV, padded(KIND.D_K)], KIND.ACC)
    d_value = tl.zeros([BLOCK_KV, padded(KIND.D_V)], KIND.ACC)
    for member in range(KIND.GROUP):
        pair = batch * n_heads + kv_head * KIND.GROUP + member
        numbers = numbers_of(call.starts, pair, n_heads, q_len)
        queries = of_head(group_queries, 0, member)
        d_outputs = of_head(group_d_outputs, 0, member)
        mask = group_mask if KIND.MASK == "none" else of_head(group_mask, 0, member, 1)
        head_low, head_high, kv_stop = band_of(call, pair, low, high, kv_len)
        col_stop = tl.minimum(col_start + BLOCK_KV, kv_stop)
        q_stop = tl.where(col_start < kv_stop, q_len, 0)
        first, full_start, full_stop, last = tile_range(
            col_start, col_stop, -head_high, -head_low, q_stop, BLOCK_Q, KIND.HIGH, KIND.LOW, WHOLE
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
                query = load_rows(queries, start, q_len, BLOCK_Q, KIND.D_K, edges)
                products = matmul(key, tl.trans(query), KIND.ACC)
                scores = capped(products, call, KIND)
                if edges:
                    rows = start + tl.arange(0, BLOCK_Q)
                    visible = is_visible(rows[None, :], cols[:, None], head_low, head_high, kv_stop, KIND)
                    if CAREFUL:
                        visible = visible & (rows[None, :] < q_len)
                    scores = masked(scores, visible, mask, start, col_start, rows[None, :], cols[:, None], q_len, kv_len, KIND)
                shift = of_rows(terms.shift, numbers, start, q_len, float("inf"), BLOCK_Q, edges)[None, :]
                rest = of_rows(terms.rest, numbers, start, q_len, 0.0, BLOCK_Q, edges)[None, :] if KIND.NATURAL else 0.0
                p = weights_again(scores, shift, rest, KIND)
                d_output = load_rows(d_outputs, start, q_len, BLOCK_Q, KIND.D_V, edges)
                if CAREFUL:
                    p = tl.where(scores == float("-inf"), 0.0, p)  # shift is NaN for a query that holds NaN
                    p, d_output = keep_apart(p, d_output, scores)
                if KIND.MASK == "none":  # exponentials run beside it; under a mask registers are scarcer
                    d_p = matmul(value, tl.trans(d_output), KIND.ACC)
                d_value = matmul(p.to(d_output.dtype), d_output, KIND.ACC, d_value)  # Eq. gradient-of-values
                if KIND.MASK != "none":
                    d_p = matmul(value, tl.trans(d_output), KIND.ACC)
                delta = of_rows(terms.delta, numbers, start, q_len, 0.0, BLOCK_Q, edges)[None, :]
                d_scores = p * (d_p - delta) * cap_slope(products, call, KIND)  # Eq. score-gradient-with-lse
                if CAREFUL:
                    d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
                    query = tl.where(query - query == 0.0, query, 0.0)  # 0 * NaN; what a query sees has its NaN in d_scores
                d_key = matmul(d_scores.to(query.dtype), query, KIND.ACC, d_key)  # Eq. key-gradient-in-blocks
    if not CAREFUL:  # d_value is a sum over weights, which are 0 where nobody sees the key
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(d_key).to(tl.uint8))
    store_rows(d_keys, d_key * call.scale, col_start, kv_len, BLOCK_KV, KIND.D_K)
    store_rows(d_values, d_value, col_start, kv_len, BLOCK_KV, KIND.D_V)


@triton.jit(do_not_specialize=COUNTS)
def flash_backward_query(
    call, terms, d_queries, spoilt_ptr, n_heads, q_len, kv_len, low, high, together,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program owns BLOCK_Q rows of one head and gathers the gradient of their queries from all keys they see.

    d_queries: `Rows` of the shape and dtype of query; spoilt: as in `flash_forward`.

    Invariant: after any set of key tiles d_query / scale is the sum of d_scores times key over their columns, Eq. query-and-key-gradients.
    If CAREFUL, keys and values that a row may not see can hold NaN and infinity.
    """
    WHOLE: tl.constexpr = KIND.MASK == "none" and not CAREFUL
    row_start, pair, batch, head = block_of_rows(n_heads, q_len, together, BLOCK_Q)
    q_entry, kv_entry, q_len, kv_len = sequence_of(call.starts, batch, q_len, kv_len)
    keys = of_head(call.key, kv_entry, head // KIND.GROUP)
    values = of_head(call.value, kv_entry, head // KIND.GROUP)
    mask = call.mask if KIND.MASK == "none" else of_head(call.mask, batch, head, 1)
    queries = of_head(call.query, q_entry, head)
    d_outputs = of_head(terms.d_output, q_entry, head)
    d_queries = of_head(d_queries, q_entry, head)
    if CAREFUL or call.starts is not None:  # noqa: SIM102
        if is_idle(call.starts, spoilt_ptr, row_start, q_len, CAREFUL):
            return
    low, high, kv_stop = band_of(call, pair, low, high, kv_len)
    row_stop = tl.minimum(row_start + BLOCK_Q, q_len)
    query = load_rows(queries, row_start, q_len, BLOCK_Q, KIND.D_K, True)
    d_output = load_rows(d_outputs, row_start, q_len, BLOCK_Q, KIND.D_V, True)
    numbers = numbers_of(call.starts, pair, n_heads, q_len)
    shift = of_rows(terms.shift, numbers, row_start, q_len, float("inf"), BLOCK_Q, True)[:, None]
    rest = of_rows(terms.rest, numbers, row_start, q_len, 0.0, BLOCK_Q, True)[:, None] if KIND.NATURAL else 0.0
    delta = of_rows(terms.delta, numbers, row_start, q_len, 0.0, BLOCK_Q, True)[:, None]
    rows = row_start + tl.arange(0, BLOCK_Q)
    d_query = tl.zeros([BLOCK_Q, padded(KIND.D_K)], KIND.ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, low, high, kv_stop, BLOCK_KV, KIND.LOW, KIND.HIGH, WHOLE)
    n_edges = edge_tiles(first, full_start, full_stop, last, BLOCK_KV)
    for edges in tl.static_range(0 if WHOLE else 1, 2):
        for turn in tl.range(
            0 if edges else full_start, n_edges if edges else full_stop, 1 if edges else BLOCK_KV, num_stages=1 if edges else None
        ):
            start = edge_tile(turn, first, full_start, full_stop, BLOCK_KV) if edges else turn
            key = load_rows(keys, start, kv_stop, BLOCK_KV, KIND.D_K, edges)
            products = matmul(query, tl.trans(key), KIND.ACC)
            value = load_rows(values, start, kv_stop, BLOCK_KV, KIND.D_V, edges)
            d_p = matmul(d_output, tl.trans(value), KIND.ACC)  # Eq. gradient-of-weights
            scores = capped(products, call, KIND)
            if edges:
                cols = start + tl.arange(0, BLOCK_KV)
                visible = is_visible(rows[:, None], cols[None, :], low, high, kv_stop, KIND)
                scores = masked(scores, visible, mask, row_start, start, rows[:, None], cols[None, :], q_len, kv_len, KIND)
            p = weights_again(scores, shift, rest, KIND)
            d_scores = p * (d_p - delta) * cap_slope(products, call, KIND)  # Eq. score-gradient-with-lse
            if CAREFUL:
                d_scores = tl.where(scores == float("-inf"), 0.0, d_scores)
                key = tl.where(key - key == 0.0, key, 0.0)  # 0 * NaN; who sees a NaN has it in d_scores
            d_query = matmul(d_scores.to(key.dtype), key, KIND.ACC, d_query)
    if not CAREFUL:
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(d_query).to(tl.uint8))
    store_rows(d_queries, d_query * call.scale, row_start, q_len, BLOCK_Q, KIND.D_K)
