"""Attention for few queries and many keys: the keys are split over programs, and what each of them found is merged.

A step of decoding has one query for each head. `flash_forward` would give a head one program and fill one row of its tile; here the
query heads that share a key head fill the rows of one tile, and many programs read the keys of that head, each its part.
Flash-Decoding: Dao, Haziza, Massa and Sizov (2023). The NumPy form of the merge is `attn_course.reference.merge_partial_attention`.
"""

import triton
import triton.language as tl

from attn_course.gpu.flash_forward import softmax_step
from attn_course.gpu.tiles import (
    COUNTS,
    Rows,
    band_of,
    capped,
    grown,
    is_spoilt,
    is_visible,
    keep_apart,
    load_rows,
    matmul,
    numbers_of,
    of_head,
    padded,
    sequence_of,
    shrunk,
)


@triton.jit
def _attend(
    query, query_rest, keys, values, mask, call, start, stop, places, lows, highs, kv_stops,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, UNIT: tl.constexpr, REST: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """Return row_max, row_sum and acc after the keys start .. stop - 1. If CAREFUL, what a row may not see can hold NaN and infinity,
    and acc is that of `shrunk` values.

    Invariant, Eq. tiled-attention-update: after each tile row_max is the largest score seen, row_sum the sum of exp(score - row_max),
    and acc the same sum times value.
    """
    row_max = tl.full([BLOCK_Q], float("-inf"), KIND.ACC)
    row_sum = tl.zeros([BLOCK_Q], KIND.ACC)
    acc = tl.zeros([BLOCK_Q, padded(KIND.D_V)], KIND.ACC)
    for tile_start in tl.range(start, stop, BLOCK_KV):
        cols = tile_start + tl.arange(0, BLOCK_KV)
        key = load_rows(keys, tile_start, stop, BLOCK_KV, KIND.D_K, True, UNIT)
        products = matmul(query, tl.trans(key), KIND.ACC)
        if REST:  # one tile is key and value, Eq. absorbed-latent-attention
            value = key
            rest = load_rows(Rows(keys.strides, keys.ptr + KIND.D_K), tile_start, stop, BLOCK_KV, REST, True, UNIT)
            products = matmul(query_rest, tl.trans(rest), KIND.ACC, products)
        else:
            value = load_rows(values, tile_start, stop, BLOCK_KV, KIND.D_V, True, UNIT)
        scores = capped(products, call, KIND)
        visible = is_visible(places[:, None], cols[None, :], lows[:, None], highs[:, None], kv_stops[:, None], KIND)
        if KIND.MASK == "bool":
            tile_ptr = mask.ptr + tl.cast(tile_start, tl.int64) * mask.strides[3]  # of each row
            mask_ptrs = tile_ptr[:, None] + tl.arange(0, BLOCK_KV)[None, :] * mask.strides[3]
            visible = visible & (tl.load(mask_ptrs, mask=visible, other=0) != 0)
        scores = tl.where(visible, scores, float("-inf"))
        row_max, row_sum, rescale, p = softmax_step(scores, row_max, row_sum, call.slope, "1" if KIND.NATURAL else "ln 2")
        if CAREFUL:
            p, value = keep_apart(p, value, scores)
            value = shrunk(value)
        acc = matmul(p.to(value.dtype), value, KIND.ACC, acc * rescale[:, None])
    return row_max, row_sum, acc


@triton.jit(do_not_specialize=[*COUNTS, "n_parts"])
def flash_decode(
    call, partial, lse_ptr, n_heads, q_len, kv_len, low, high, n_parts,
    KIND: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, UNIT: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """One program attends over one part of the keys of one key head, for BLOCK_Q of the GROUP * q_len queries that share it.

    Strides of query, key and value count UNIT features here. partial (batch, n_heads, q_len, n_parts, D_V), ACC or the dtype of query:
    strides of (batch, head, row, part) / 8; lse (batch, n_heads, q_len, n_parts), ACC, contiguous: natural.

    Row r of a tile is query r % q_len of head r // q_len of the group. The keys that some row of the tile can see are cut into n_parts
    runs of whole tiles. `partial` and lse are output and lse of attention over the part alone, Eq. row-lse-and-output: 0 and -inf where
    a row sees none of it.

    With REST, query and key have D_K + REST features, and the value of a key is its first D_K = D_V: latent vectors and rotated parts of
    DeepSeek-V2, arXiv:2405.04434, which are read once for both.
    """
    part = tl.program_id(0) % n_parts
    GROUP: tl.constexpr = KIND.GROUP
    tiles_of_rows = tl.cdiv(GROUP * q_len, BLOCK_Q)
    row_start = tl.program_id(0) // n_parts % tiles_of_rows * BLOCK_Q
    rows = row_start + tl.arange(0, BLOCK_Q)
    kv_pair = tl.program_id(0) // n_parts // tiles_of_rows
    batch = kv_pair // (n_heads // GROUP)
    kv_head = kv_pair % (n_heads // GROUP)
    q_entry, kv_entry, q_len, kv_len = sequence_of(call.starts, batch, q_len, kv_len)
    queries = of_head(call.query, q_entry, 0, UNIT)
    keys = of_head(call.key, kv_entry, kv_head, UNIT)
    values = of_head(call.value, kv_entry, kv_head, UNIT)
    partial = of_head(partial, q_entry, 0)
    if call.starts is not None:  # noqa: SIM102 - behind it Triton 3.6 has forgotten strides of 1 in a tuple
        if row_start >= GROUP * q_len:
            return
    is_in = rows < GROUP * q_len
    rows = tl.minimum(rows, GROUP * q_len - 1)  # a row past the end is the last one again, and is not stored
    places = rows % q_len
    heads = kv_head * GROUP + rows // q_len
    pairs = batch * n_heads + heads

    lows, highs, kv_stops = band_of(call, pairs, low, high, kv_len)
    lows += tl.zeros_like(rows)
    highs += tl.zeros_like(rows)
    kv_stops += tl.zeros_like(rows)
    first = 0
    stop = tl.max(kv_stops, 0)
    if KIND.LOW:
        first = tl.maximum(tl.min(places + lows, 0), 0) // BLOCK_KV * BLOCK_KV
    if KIND.HIGH:
        stop = tl.minimum(stop, tl.max(places + highs, 0) + 1)
    part_len = tl.cdiv(tl.cdiv(tl.maximum(stop - first, 0), BLOCK_KV), n_parts) * BLOCK_KV
    start = first + part * part_len
    stop = tl.minimum(stop, start + part_len)

    query_ptrs = of_head(queries, 0, heads, UNIT).ptr + tl.cast(places, tl.int64) * queries.strides[2] * UNIT
    dims = tl.arange(0, padded(KIND.D_K))
    query = tl.load(query_ptrs[:, None] + dims[None, :], mask=is_in[:, None] & (dims[None, :] < KIND.D_K), other=0.0)
    query_rest = query
    if REST:
        dims = tl.arange(0, padded(REST))
        query_rest = tl.load((query_ptrs + KIND.D_K)[:, None] + dims[None, :], mask=is_in[:, None] & (dims[None, :] < REST), other=0.0)
    mask = call.mask
    if KIND.MASK == "bool":
        mask = of_head(call.mask, batch, heads, 1)
        mask = Rows(mask.strides, mask.ptr + tl.cast(places, tl.int64) * mask.strides[2])
    row_max, row_sum, acc = _attend(
        query, query_rest, keys, values, mask, call, start, stop, places, lows, highs, kv_stops,
        KIND, BLOCK_Q, BLOCK_KV, UNIT, REST, CAREFUL=False,
    )  # fmt: skip
    spoilt = is_spoilt(acc)
    if spoilt:  # here and now: a step of decoding has no time for a second launch
        row_max, row_sum, acc = _attend(
            query, query_rest, keys, values, mask, call, start, stop, places, lows, highs, kv_stops,
            KIND, BLOCK_Q, BLOCK_KV, UNIT, REST, CAREFUL=True,
        )  # fmt: skip

    is_blind = row_sum == 0.0
    log_sum = tl.log2(tl.where(is_blind, 1.0, row_sum))
    lse = row_max + log_sum * 0.6931471805599453 if KIND.NATURAL else (row_max + log_sum) * 0.6931471805599453  # ln 2
    acc = acc / tl.where(is_blind, 1.0, row_sum)[:, None]
    acc = tl.where(spoilt, grown(acc, values.ptr.dtype.element_ty), acc)
    dims = tl.arange(0, padded(KIND.D_V))
    row_ptrs = of_head(partial, 0, heads).ptr + tl.cast(places, tl.int64) * partial.strides[2] * 8 + part * (partial.strides[3] * 8)
    is_stored = is_in[:, None] & (dims[None, :] < KIND.D_V)
    tl.store(row_ptrs[:, None] + dims[None, :], acc.to(partial.ptr.dtype.element_ty), mask=is_stored)
    tl.store(lse_ptr + (numbers_of(call.starts, pairs, n_heads, q_len) + places) * n_parts + part, lse, mask=is_in)


@triton.jit(do_not_specialize=["n_heads", "q_len", "n_parts"])
def flash_merge(
    partial, partial_lse_ptr, output, lse_ptr, n_heads, q_len, n_parts, D_V: tl.constexpr, PARTS: tl.constexpr, BLOCK_D: tl.constexpr
):
    """One program merges BLOCK_D features of one row from its parts, Eq. merge-of-finished-outputs.

    partial (batch, n_heads, q_len, n_parts, D_V), partial_lse (batch, n_heads, q_len, n_parts): as `flash_decode` writes them;
    output (batch, n_heads, q_len, D_V), `Rows`; lse (batch, n_heads, q_len), contiguous. PARTS is a power of two, at least n_parts.
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
    partial_ptrs = of_head(partial, batch, head).ptr + tl.cast(place, tl.int64) * partial.strides[2] * 8
    partial_ptrs += parts[:, None] * (partial.strides[3] * 8) + dims[None, :]
    found = tl.load(partial_ptrs, mask=(parts[:, None] < n_parts) & (dims[None, :] < D_V), other=0.0)
    merged = tl.sum(weights[:, None] * found, 0)
    output_ptrs = of_head(output, batch, head).ptr + tl.cast(place, tl.int64) * output.strides[2] * 8 + dims
    tl.store(output_ptrs, merged.to(output.ptr.dtype.element_ty), mask=dims < D_V)
    tl.store(lse_ptr + row, largest + tl.log2(total) * 0.6931471805599453)
