"""Attention for few queries and many keys: the keys are split over programs, and what each of them found is merged.

A step of decoding has one query for each head. `flash_forward` would give a head one program and fill one row of its tile; here the
query heads that share a key head fill the rows of one tile, and many programs read the keys of that head, each its part.
Flash-Decoding: Dao, Haziza, Massa and Sizov (2023). The NumPy form of the merge is `attn_course.reference.merge_partial_attention`.
"""

import triton
import triton.language as tl

from attn_course.gpu.flash_forward import softmax_step
from attn_course.gpu.tiles import COUNTS, capped, grown, is_spoilt, is_visible, keep_apart, load_rows, matmul, of_head, per_head, shrunk


@triton.jit
def _attend(
    query, query_rest, key_ptr, value_ptr, mask_ptr, key_stride, value_stride, mask_stride,
    start, stop, places, kv_stops, lows, highs, slope, bound,
    D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, UNIT: tl.constexpr, REST: tl.constexpr, REST_PAD: tl.constexpr,
    CAREFUL: tl.constexpr,
):  # fmt: skip
    """Return row_max, row_sum and acc after the keys start .. stop - 1. If CAREFUL, what a row may not see can hold NaN and infinity,
    and acc is that of `shrunk` values.

    Invariant, Eq. tiled-attention-update: after each tile row_max is the largest score seen, row_sum the sum of exp(score - row_max),
    and acc the same sum times value.
    """
    row_max = tl.full([BLOCK_Q], float("-inf"), ACC)
    row_sum = tl.zeros([BLOCK_Q], ACC)
    acc = tl.zeros([BLOCK_Q, D_V_PAD], ACC)
    for tile_start in tl.range(start, stop, BLOCK_KV):
        cols = tile_start + tl.arange(0, BLOCK_KV)
        key = load_rows(key_ptr, tile_start, stop, key_stride, BLOCK_KV, D_K, D_K_PAD, True, UNIT)
        products = matmul(query, tl.trans(key), ACC)
        if REST:  # one tile is key and value, Eq. absorbed-latent-attention
            value = key
            rest = load_rows(key_ptr + D_K, tile_start, stop, key_stride, BLOCK_KV, REST, REST_PAD, True, UNIT)
            products = matmul(query_rest, tl.trans(rest), ACC, products)
        else:
            value = load_rows(value_ptr, tile_start, stop, value_stride, BLOCK_KV, D_V, D_V_PAD, True, UNIT)
        scores = capped(products, slope, bound, CAPPED)
        visible = is_visible(places[:, None], cols[None, :], lows[:, None], highs[:, None], kv_stops[:, None], LOW, HIGH)
        if MASK == "bool":
            mask_ptrs = (mask_ptr + tl.cast(tile_start, tl.int64) * mask_stride)[:, None] + tl.arange(0, BLOCK_KV)[None, :] * mask_stride
            visible = visible & (tl.load(mask_ptrs, mask=visible, other=0) != 0)
        scores = tl.where(visible, scores, float("-inf"))
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, slope, "1" if NATURAL else "ln 2")
        if CAREFUL:
            p, value = keep_apart(p, value, scores)
            value = shrunk(value)
        acc = matmul(p.to(value.dtype), value, ACC, acc * rescale[:, None])
    return row_max, row_sum, acc


@triton.jit(do_not_specialize=[*COUNTS, "n_parts"])
def flash_decode(
    query_ptr, key_ptr, value_ptr, mask_ptr, lows_ptr, highs_ptr, lengths_ptr, partial_ptr, lse_ptr,
    query_strides, key_strides, value_strides, mask_strides, partial_strides,
    n_heads, q_len, kv_len, low, high, slope, bound, n_parts,
    GROUP: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr, D_K_PAD: tl.constexpr, D_V_PAD: tl.constexpr,
    CAPPED: tl.constexpr, NATURAL: tl.constexpr, MASK: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    ACC: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, UNIT: tl.constexpr,
    REST: tl.constexpr = 0, REST_PAD: tl.constexpr = 16,
):  # fmt: skip
    """One program attends over one part of the keys of one key head, for BLOCK_Q of the GROUP * q_len queries that share it.

    ============  ==================================  ======================  ===============================================
    pointer       shape                               dtype                   strides
    ============  ==================================  ======================  ===============================================
    query         (batch, n_heads, q_len, D_K)        float16, bfloat16, ...  (batch, head, row) / UNIT; features lie together
    key           (batch, n_heads/GROUP, kv_len, D_K) that of query           (batch, head, row) / UNIT
    value         (batch, n_heads/GROUP, kv_len, D_V) that of query           (batch, head, row) / UNIT
    mask          (batch, n_heads, q_len, kv_len)     uint8                   (batch, head, row, column), 0 to broadcast
    lows, highs   (batch, n_heads) or None            int32                   contiguous; else low, high for all
    lengths       (batch, n_heads) or None            int32                   contiguous; else kv_len for all
    partial       (..., q_len, n_parts, D_V)          ACC, or that of query   (batch, head, row, part) / 8
    lse           (batch, n_heads, q_len, n_parts)    ACC                     contiguous; natural
    ============  ==================================  ======================  ===============================================

    Row r of a tile is query r % q_len of head r // q_len of the group. The keys that some row of the tile can see are cut into n_parts
    runs of whole tiles. `partial` and lse are output and lse of attention over the part alone, Eq. row-lse-and-output: 0 and -inf where
    a row sees none of it. Which row sees which column is as in `flash_forward`.

    With REST, query and key have D_K + REST features, and the value of a key is its first D_K = D_V: latent vectors and rotated parts of
    DeepSeek-V2, arXiv:2405.04434, which are read once for both. `value` is not looked at then.
    """
    part = tl.program_id(0) % n_parts
    tiles_of_rows = tl.cdiv(GROUP * q_len, BLOCK_Q)
    rows = tl.program_id(0) // n_parts % tiles_of_rows * BLOCK_Q + tl.arange(0, BLOCK_Q)
    kv_pair = tl.program_id(0) // n_parts // tiles_of_rows
    batch = kv_pair // (n_heads // GROUP)
    kv_head = kv_pair % (n_heads // GROUP)
    is_in = rows < GROUP * q_len
    rows = tl.minimum(rows, GROUP * q_len - 1)  # a row past the end is the last one again, and is not stored
    places = rows % q_len
    heads = kv_head * GROUP + rows // q_len
    pairs = batch * n_heads + heads

    lows = per_head(lows_ptr, pairs, low) + tl.zeros_like(rows)
    highs = per_head(highs_ptr, pairs, high) + tl.zeros_like(rows)
    kv_stops = tl.minimum(per_head(lengths_ptr, pairs, kv_len), kv_len) + tl.zeros_like(rows)
    first = 0
    stop = tl.max(kv_stops, 0)
    if LOW:
        first = tl.maximum(tl.min(places + lows, 0), 0) // BLOCK_KV * BLOCK_KV
    if HIGH:
        stop = tl.minimum(stop, tl.max(places + highs, 0) + 1)
    part_len = tl.cdiv(tl.cdiv(tl.maximum(stop - first, 0), BLOCK_KV), n_parts) * BLOCK_KV
    start = first + part * part_len
    stop = tl.minimum(stop, start + part_len)

    query_ptr = of_head(query_ptr, batch, heads, query_strides, UNIT)
    dims = tl.arange(0, D_K_PAD)
    query_ptrs = (query_ptr + tl.cast(places, tl.int64) * query_strides[2] * UNIT)[:, None] + dims[None, :]
    query = tl.load(query_ptrs, mask=is_in[:, None] & (dims[None, :] < D_K), other=0.0)
    query_rest = query
    if REST:
        dims = D_K + tl.arange(0, REST_PAD)
        query_ptrs = (query_ptr + tl.cast(places, tl.int64) * query_strides[2] * UNIT)[:, None] + dims[None, :]
        query_rest = tl.load(query_ptrs, mask=is_in[:, None] & (dims[None, :] < D_K + REST), other=0.0)
    if MASK == "bool":
        mask_ptr += tl.cast(batch, tl.int64) * mask_strides[0] + tl.cast(heads, tl.int64) * mask_strides[1]
        mask_ptr += tl.cast(places, tl.int64) * mask_strides[2]  # of each row
    key_ptr = of_head(key_ptr, batch, kv_head, key_strides, UNIT)
    value_ptr = of_head(value_ptr, batch, kv_head, value_strides, UNIT)
    where_to_look = (query, query_rest, key_ptr, value_ptr, mask_ptr, key_strides[2], value_strides[2], mask_strides[3],
                     start, stop, places, kv_stops, lows, highs, slope, bound)  # fmt: skip
    row_max, row_sum, acc = _attend(
        *where_to_look, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, NATURAL, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, UNIT, REST, REST_PAD,
        CAREFUL=False,
    )  # fmt: skip
    spoilt = is_spoilt(acc)
    if spoilt:  # here and now: a step of decoding has no time for a second launch
        row_max, row_sum, acc = _attend(
            *where_to_look, D_K, D_V, D_K_PAD, D_V_PAD, CAPPED, NATURAL, MASK, LOW, HIGH, ACC, BLOCK_Q, BLOCK_KV, UNIT, REST, REST_PAD,
            CAREFUL=True,
        )  # fmt: skip

    is_blind = row_sum == 0.0
    log_sum = tl.log2(tl.where(is_blind, 1.0, row_sum))
    lse = row_max + log_sum * 0.6931471805599453 if NATURAL else (row_max + log_sum) * 0.6931471805599453  # ln 2
    acc = acc / tl.where(is_blind, 1.0, row_sum)[:, None]
    acc = tl.where(spoilt, grown(acc, value_ptr.dtype.element_ty), acc)
    dims = tl.arange(0, D_V_PAD)
    row_ptrs = of_head(partial_ptr, batch, heads, partial_strides) + part * (partial_strides[3] * 8)
    row_ptrs += tl.cast(places, tl.int64) * partial_strides[2] * 8
    is_stored = is_in[:, None] & (dims[None, :] < D_V)
    tl.store(row_ptrs[:, None] + dims[None, :], acc.to(partial_ptr.dtype.element_ty), mask=is_stored)
    tl.store(lse_ptr + (tl.cast(pairs, tl.int64) * q_len + places) * n_parts + part, lse, mask=is_in)


@triton.jit(do_not_specialize=["n_heads", "q_len", "n_parts"])
def flash_merge(
    partial_ptr, partial_lse_ptr, output_ptr, lse_ptr, partial_strides, output_strides, n_heads, q_len, n_parts,
    D_V: tl.constexpr, PARTS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program merges BLOCK_D features of one row from its parts, Eq. merge-of-finished-outputs.

    partial (batch, n_heads, q_len, n_parts, D_V), partial_lse (batch, n_heads, q_len, n_parts): as `flash_decode` writes them;
    output (batch, n_heads, q_len, D_V); lse (batch, n_heads, q_len), contiguous. PARTS is a power of two, at least n_parts.
    """
    n_blocks = tl.cdiv(D_V, BLOCK_D)
    row = tl.program_id(0) // n_blocks
    batch = row // q_len // n_heads
    head = row // q_len % n_heads
    place = row % q_len
    parts = tl.arange(0, PARTS)
    dims = tl.program_id(0) % n_blocks * BLOCK_D + tl.arange(0, BLOCK_D)
    lses = tl.load(partial_lse_ptr + tl.cast(row, tl.int64) * n_parts + parts, mask=parts < n_parts, other=float("-inf"))
    largest = tl.max(lses, 0)
    shift = tl.where(largest == float("-inf"), 0.0, largest)  # a row that sees nothing in any part
    weights = tl.exp2((lses - shift) * 1.4426950408889634)  # log2(e)
    total = tl.sum(weights, 0)
    total = tl.where(total == 0.0, 1.0, total)
    weights /= total  # first: a sum of the largest values there are would be infinite
    partial_ptrs = of_head(partial_ptr, batch, head, partial_strides) + tl.cast(place, tl.int64) * partial_strides[2] * 8
    partial_ptrs += parts[:, None] * (partial_strides[3] * 8) + dims[None, :]
    partial = tl.load(partial_ptrs, mask=(parts[:, None] < n_parts) & (dims[None, :] < D_V), other=0.0)
    output = tl.sum(weights[:, None] * partial, 0)
    output_ptrs = of_head(output_ptr, batch, head, output_strides) + tl.cast(place, tl.int64) * output_strides[2] * 8 + dims
    tl.store(output_ptrs, output.to(output_ptr.dtype.element_ty), mask=dims < D_V)
    tl.store(lse_ptr + row, largest + tl.log2(total) * 0.6931471805599453)
