"""FlashAttention, forward: one pass over the keys, and no score ever leaves the chip.

The NumPy form of the same loop is `attn_course.reference.flash_attention`.
"""

import triton
import triton.language as tl

from attn_course.gpu.tiles import (
    COUNTS,
    band_of,
    block_of_rows,
    capped,
    edge_tile,
    edge_tiles,
    grown,
    is_idle,
    is_spoilt,
    is_visible,
    keep_apart,
    load_rows,
    masked,
    matmul,
    numbers_of,
    of_head,
    padded,
    sequence_of,
    shrunk,
    store_rows,
    tile_range,
)


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


@triton.jit
def scores_of(query, keys, start, stop, call, BLOCK_KV: tl.constexpr, CHECKED: tl.constexpr, UNIT: tl.constexpr, KIND: tl.constexpr):
    """Return the scores of a tile of keys, as `softmax_step` takes them."""
    key = load_rows(keys, start, stop, BLOCK_KV, KIND.D_K, CHECKED)
    products = matmul(query, tl.trans(key), KIND.ACC)
    return products if UNIT == "products" else capped(products, call, KIND)


@triton.jit(do_not_specialize=COUNTS)
def flash_forward(
    call, output, lse_ptr, rest_ptr, spoilt_ptr, n_heads, q_len, kv_len, low, high, together,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_Q rows of the output of one head. Dao (2023), Algorithm 1, arXiv:2307.08691.

    output (batch, n_heads, q_len, D_V), `Rows`; lse, rest (batch, n_heads, q_len), dtype ACC, and spoilt (programs,), uint8: contiguous.
    The natural log-sum-exp of a row is lse + rest: `rest` is what lse cannot hold beside large numbers, and is written if scores are
    NATURAL, and not in units of ln 2.

    Launched twice. Each program says in `spoilt` whether it met NaN or infinity: in what a row sees, or as 0 * NaN. If CAREFUL, those
    that did compute their rows anew; what a row may not see can hold NaN and infinity then, and values may be the largest there are.

    Invariant, Eq. tiled-attention-update: after any set of tiles, row_max is the largest score seen, row_sum the sum of exp(score -
    row_max), and acc, once the weights p still in hand are multiplied with their values, the same sum times value. Tiles may come in
    any order, Eq. merging-is-commutative-monoid: first those that every row sees whole, without a mask, then those at the edges.
    """
    WHOLE: tl.constexpr = KIND.MASK == "none" and not CAREFUL
    UNIT: tl.constexpr = "1" if KIND.NATURAL else "ln 2" if KIND.CAPPED else "products"
    row_start, pair, batch, head = block_of_rows(n_heads, q_len, together, BLOCK_Q)
    q_entry, kv_entry, q_len, kv_len = sequence_of(call.starts, batch, q_len, kv_len)
    keys = of_head(call.key, kv_entry, head // KIND.GROUP)
    values = of_head(call.value, kv_entry, head // KIND.GROUP)
    mask = call.mask if KIND.MASK == "none" else of_head(call.mask, batch, head, 1)
    queries = of_head(call.query, q_entry, head)
    outputs = of_head(output, q_entry, head)
    # One condition is known when it is compiled, the other is not. Behind them Triton 3.6 has forgotten strides of 1 in a tuple.
    if CAREFUL or call.starts is not None:  # noqa: SIM102
        if is_idle(call.starts, spoilt_ptr, row_start, q_len, CAREFUL):
            return
    low, high, kv_stop = band_of(call, pair, low, high, kv_len)
    row_stop = tl.minimum(row_start + BLOCK_Q, q_len)
    query = load_rows(queries, row_start, q_len, BLOCK_Q, KIND.D_K, True)
    rows = row_start + tl.arange(0, BLOCK_Q)
    row_max = tl.full([BLOCK_Q], float("-inf"), KIND.ACC)
    row_sum = tl.zeros([BLOCK_Q], KIND.ACC)
    acc = tl.zeros([BLOCK_Q, padded(KIND.D_V)], KIND.ACC)
    first, full_start, full_stop, last = tile_range(row_start, row_stop, low, high, kv_stop, BLOCK_KV, KIND.LOW, KIND.HIGH, WHOLE)

    # Whole tiles, skewed: the matrix units multiply tile i - 1 with its values while the others take the softmax of tile i. What is
    # still in flight may not be touched, so acc waits for its rescaling until the next turn.
    if WHOLE:
        scores = scores_of(query, keys, full_start, full_stop, call, BLOCK_KV, True, UNIT, KIND)
        scores = tl.where(full_start < full_stop, scores, float("-inf"))  # there may be no whole tile
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, call.slope, UNIT)
        for start in tl.range(full_start + BLOCK_KV, full_stop, BLOCK_KV):
            scores = scores_of(query, keys, start, full_stop, call, BLOCK_KV, False, UNIT, KIND)
            value = load_rows(values, start - BLOCK_KV, full_stop, BLOCK_KV, KIND.D_V, False)
            acc = matmul(p.to(value.dtype), value, KIND.ACC, acc * rescale[:, None])
            row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, call.slope, UNIT)
        value = load_rows(values, tl.maximum(full_stop - BLOCK_KV, full_start), full_stop, BLOCK_KV, KIND.D_V, True)
        acc = matmul(p.to(value.dtype), value, KIND.ACC, acc * rescale[:, None])

    for edge in tl.range(0, edge_tiles(first, full_start, full_stop, last, BLOCK_KV), num_stages=None if WHOLE else 1):
        start = edge_tile(edge, first, full_start, full_stop, BLOCK_KV)
        cols = start + tl.arange(0, BLOCK_KV)
        scores = scores_of(query, keys, start, kv_stop, call, BLOCK_KV, True, UNIT, KIND)
        visible = is_visible(rows[:, None], cols[None, :], low, high, kv_stop, KIND)
        scores = masked(scores, visible, mask, row_start, start, rows[:, None], cols[None, :], q_len, kv_len, KIND)
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, call.slope, UNIT)
        value = load_rows(values, start, kv_stop, BLOCK_KV, KIND.D_V, True)
        if CAREFUL:
            p, value = keep_apart(p, value, scores)
            value = shrunk(value)
        acc = matmul(p.to(value.dtype), value, KIND.ACC, acc * rescale[:, None])

    is_blind = row_sum == 0.0  # a row that sees nothing: output 0 and lse -inf
    row_max = tl.where(is_blind, 0.0, row_max)
    row_sum = tl.where(is_blind, 1.0, row_sum)
    result = acc / row_sum[:, None]  # Eq. row-lse-and-output
    if CAREFUL:
        result = grown(result, values.ptr.dtype.element_ty)
    else:
        tl.store(spoilt_ptr + tl.program_id(0), is_spoilt(acc).to(tl.uint8))
    store_rows(outputs, result, row_start, q_len, BLOCK_Q, KIND.D_V)
    places = numbers_of(call.starts, pair, n_heads, q_len) + rows
    if KIND.NATURAL:
        log_sum = tl.log2(row_sum) * 0.6931471805599453  # ln 2
        lse = row_max + log_sum
        tl.store(rest_ptr + places, log_sum - (lse - row_max), mask=rows < q_len)
    else:
        lse = (row_max + tl.log2(row_sum)) * 0.6931471805599453
    lse = tl.where(is_blind, float("-inf"), lse)
    tl.store(lse_ptr + places, lse, mask=rows < q_len)
