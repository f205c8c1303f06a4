"""Right answers to the tasks of lesson kernels: other blocks, other orders, lanes, one row at a time."""

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tiles_from_a_mask(q_len, kv_len, block_q, block_kv, q_offset):
    mask = np.arange(kv_len) <= np.arange(q_len)[:, None] + q_offset
    tiles = [
        mask[i : i + block_q, j : j + block_kv] for i in range(0, q_len, block_q) for j in range(0, kv_len, block_kv)
    ]  # fmt: skip
    skipped, whole = sum(not tile.any() for tile in tiles), sum(bool(tile.all()) for tile in tiles)
    return float(skipped), float(whole), float(len(tiles) - skipped - whole)


def tiles_in_torch(q_len, kv_len, block_q, block_kv, q_offset):
    first_q, first_k = torch.arange(0, q_len, block_q)[:, None], torch.arange(0, kv_len, block_kv)
    last_q, last_k = (first_q + block_q).clamp(max=q_len) - 1, (first_k + block_kv).clamp(max=kv_len) - 1
    skipped = (first_k > last_q + q_offset).sum()
    whole = (last_k <= first_q + q_offset).sum()
    return skipped.float(), whole.float(), (len(first_q) * len(first_k) - skipped - whole).float()


@triton.jit
def _row_lse_in_powers_of_two(scores_ptr, lse_ptr, n_columns, stride, BLOCK: tl.constexpr):
    row_ptr = scores_ptr + tl.program_id(0) * stride
    top = tl.full([BLOCK], float("-inf"), tl.float64)
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        scores = tl.load(row_ptr + columns, mask=columns < n_columns, other=float("-inf")) * 1.4426950408889634
        new = tl.maximum(top, tl.max(scores, 0))
        total = total * tl.exp2(top - new) + tl.exp2(scores - new)
        top = new
    lse = (top + tl.log2(tl.sum(total, 0))) * 0.6931471805599453
    tl.store(lse_ptr + tl.program_id(0) + tl.arange(0, BLOCK), lse, mask=tl.arange(0, BLOCK) == 0)


def lse_by_lanes(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.tensor(scores, device=device)
    lse = torch.empty(len(scores), dtype=torch.float64, device=device)
    _row_lse_in_powers_of_two[(len(scores),)](scores, lse, scores.shape[1], scores.stride(0), BLOCK=16)
    return lse.cpu().numpy()


@triton.jit
def _row_lse_in_two_passes(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    top = float("-inf")
    for start in range(0, n_columns, BLOCK):
        seen = tl.load(scores_ptr + row * n_columns + start + columns, mask=start + columns < n_columns, other=float("-inf"))
        top = tl.maximum(top, tl.max(seen, 0))
    total = 0.0
    for start in range(0, n_columns, BLOCK):
        seen = tl.load(scores_ptr + row * n_columns + start + columns, mask=start + columns < n_columns, other=float("-inf"))
        total += tl.sum(tl.exp(seen - top), 0)
    tl.store(lse_ptr + row, top + tl.log(total))


def lse_in_two_passes(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.tensor(scores, dtype=torch.float32, device=device)
    lse = torch.empty(scores.shape[0], dtype=torch.float32, device=device)
    _row_lse_in_two_passes[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse


def filled(*shape, dtype=torch.float32):
    return torch.full(shape, torch.nan, dtype=dtype, device=DEVICE)


def tensor(x, dtype=torch.float32):
    return torch.as_tensor(x, dtype=dtype, device=DEVICE).contiguous()


def filled64(*shape):
    return filled(*shape, dtype=torch.float64)


def tensor64(x):
    return tensor(x, dtype=torch.float64)


@triton.jit
def _rows_at_once(x, values, out, r, n, KIND: tl.constexpr, R: tl.constexpr, B: tl.constexpr):
    """One program: R whole rows, padded to B. KIND: which of the rungs with one row it is."""
    i, j = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, B)[None, :]
    is_there = (i < r) & (j < n)
    s = tl.load(x + i * n + j, mask=is_there, other=0.0 if KIND == "sum" else -1e9)
    rows = tl.program_id(0) * R + tl.arange(0, R)
    if KIND == "sum":
        tl.store(out + rows, tl.sum(s, 1), mask=rows < r)
    elif KIND == "max":
        tl.store(out + rows, tl.max(s, 1), mask=rows < r)
    else:
        p = tl.exp2((s - tl.max(s, 1, keep_dims=True)) * 1.4426950408889634)
        p = p / tl.sum(p, 1, keep_dims=True)
        if KIND == "softmax":
            tl.store(out + i * n + j, p, mask=is_there)
        else:
            v = tl.load(values + j, mask=j < n, other=0.0)
            tl.store(out + rows, tl.sum(p * v, 1), mask=rows < r)


def rows_at_once(kind):
    def answer(x, values=None):
        x = tensor(x)
        out = filled(*x.shape) if kind == "softmax" else filled(len(x))
        values = x if values is None else tensor(values)
        _rows_at_once[(triton.cdiv(len(x), 4),)](x, values, out, *x.shape, KIND=kind, R=4, B=128)
        return out

    return answer


@triton.jit
def _lanes(x, values, out, n, KIND: tl.constexpr, B: tl.constexpr):
    """One program: one row; each lane keeps a state of its own until the end."""
    row, lane = tl.program_id(0), tl.arange(0, B)
    m, total, acc = tl.full([B], -1e9, tl.float64), tl.zeros([B], tl.float64), tl.zeros([B], tl.float64)
    plain = tl.zeros([B], tl.float64)
    for block in range(tl.cdiv(n, B)):
        j = block * B + lane
        s = tl.load(x + row * n + j, mask=j < n, other=-1e9)
        new = tl.maximum(m, s)
        factor, p = tl.exp(m - new), tl.where(j < n, tl.exp(s - new), 0.0)
        total = total * factor + p
        acc = acc * factor + p * tl.load(values + j, mask=j < n, other=0.0)
        plain += tl.where(j < n, s, 0.0)
        m = new
    if KIND == "sum":
        tl.store(out + row, tl.sum(plain, 0))
    elif KIND == "max":
        tl.store(out + row, tl.max(m, 0))
    else:
        share = tl.exp(m - tl.max(m, 0))
        if KIND == "softmax":
            for block in range(tl.cdiv(n, B)):
                j = block * B + lane
                s = tl.load(x + row * n + j, mask=j < n, other=-1e9)
                tl.store(out + row * n + j, tl.exp(s - tl.max(m, 0)) / tl.sum(total * share, 0), mask=j < n)
        else:
            tl.store(out + row, tl.sum(acc * share, 0) / tl.sum(total * share, 0))


def by_lanes(kind):
    def answer(x, values=None):
        x = tensor64(x)
        out = filled64(*x.shape) if kind == "softmax" else filled64(len(x))
        values = filled64(x.shape[1]) if values is None else tensor64(values)
        _lanes[(len(x),)](x, values, out, x.shape[1], KIND=kind, B=16)
        return out.cpu().numpy()

    return answer


@triton.jit
def _products(
    x, y, out, r, n, D: tl.constexpr, ACC: tl.constexpr, STEP: tl.constexpr, B: tl.constexpr, B_N: tl.constexpr, TRANSPOSED: tl.constexpr
):
    """One program: a tile of x y^T, or of x y, summed over STEP features at a time."""
    i, j = tl.program_id(0) * B + tl.arange(0, B)[:, None], tl.program_id(1) * B_N + tl.arange(0, B_N)[None, :]
    acc = tl.zeros([B, B_N], ACC)
    for start in tl.static_range(0, D, STEP):
        d = start + tl.arange(0, STEP)
        a = tl.load(x + i * D + d[None, :], mask=i < r, other=0.0)
        at = y + j * D + d[:, None] if TRANSPOSED else y + d[:, None] * n + j
        acc = tl.dot(a, tl.load(at, mask=j < n, other=0.0), acc, input_precision="ieee", out_dtype=ACC)
    tl.store(out + i * n + j, acc, mask=(i < r) & (j < n))


def products(b, b_n, step, *, transposed, acc=tl.float32, dtype=torch.float32):
    def answer(x, y):
        (r, d), n = x.shape, len(y) if transposed else y.shape[1]
        out = filled(r, n, dtype=dtype)
        grid = (triton.cdiv(r, b), triton.cdiv(n, b_n))
        x, y = tensor(x * (d**-0.5 if transposed else 1.0), dtype), tensor(y, dtype)
        _products[grid](x, y, out, r, n, D=d, ACC=acc, STEP=step, B=b, B_N=b_n, TRANSPOSED=transposed)
        return out

    return answer


def product_in_steps(x, w):
    return products(32, 16, 16, transposed=False, acc=tl.float64, dtype=torch.float64)(x, w).cpu().numpy()


def scores_in_steps(x, key):
    return products(64, 16, 16, transposed=True, acc=tl.float64, dtype=torch.float64)(x, key).cpu().numpy()


@triton.jit
def _whole_attention(query, key, value, out, r, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr, N: tl.constexpr):
    """One program: B queries and all keys that one of them sees at once, padded to N."""
    i, j, d = tl.program_id(0) * B + tl.arange(0, B)[:, None], tl.arange(0, N), tl.arange(0, D)
    seen = tl.minimum(n, (tl.program_id(0) + 1) * B) if CAUSAL else n
    q = tl.load(query + i * D + d[None, :], mask=i < r, other=0.0)
    k = tl.load(key + j[None, :] * D + d[:, None], mask=j[None, :] < seen, other=0.0)
    v = tl.load(value + j[:, None] * D + d[None, :], mask=j[:, None] < seen, other=0.0)
    visible = (j[None, :] < n) & (j[None, :] <= i) if CAUSAL else j[None, :] < n
    s = tl.where(visible, tl.dot(q, k, input_precision="ieee") * scale, -1e30)
    p = tl.where(visible, tl.exp(s - tl.max(s, 1, keep_dims=True)), 0.0)
    p = p / tl.sum(p, 1, keep_dims=True)
    tl.store(out + i * D + d[None, :], tl.dot(p, v, input_precision="ieee"), mask=i < r)


@triton.jit
def _divided_attention(query, key, value, out, r, n, CAUSAL: tl.constexpr, D: tl.constexpr, B_Q: tl.constexpr, B_K: tl.constexpr):
    """One program: B_Q queries; what is kept is the finished output and its log-sum-exp, from the last block to the first."""
    i, d = tl.program_id(0) * B_Q + tl.arange(0, B_Q)[:, None], tl.arange(0, D)[None, :]
    q = tl.load(query + i * D + d, mask=i < r, other=0.0)
    output, lse = tl.zeros([B_Q, D], tl.float64), tl.full([B_Q, 1], -1e30, tl.float64)
    blocks = tl.cdiv(tl.minimum(n, (tl.program_id(0) + 1) * B_Q) if CAUSAL else n, B_K)
    for back in range(blocks):
        j = (blocks - 1 - back) * B_K + tl.arange(0, B_K)
        at, is_there = j[:, None] * D + d, j[:, None] < n
        s = tl.dot(q, tl.trans(tl.load(key + at, mask=is_there, other=0.0)), input_precision="ieee")
        visible = (j[None, :] < n) & (j[None, :] <= i) if CAUSAL else j[None, :] < n
        s = tl.where(visible, s, -1e30)
        top = tl.maximum(tl.max(s, 1, keep_dims=True), lse)
        p = tl.where(visible, tl.exp(s - top), 0.0)
        new = top + tl.log(tl.exp(lse - top) + tl.sum(p, 1, keep_dims=True))
        value_part = tl.dot(p, tl.load(value + at, mask=is_there, other=0.0), input_precision="ieee")
        output = output * tl.exp(lse - new) + value_part * tl.exp(top - new)
        lse = new
    tl.store(out + i * D + d, output, mask=i < r)


def whole_attention(*, causal):
    def answer(query, key, value):
        (r, d), n, out = query.shape, len(key), filled(*query.shape)
        given = tensor(query), tensor(key), tensor(value), out, r, n, d**-0.5
        _whole_attention[(triton.cdiv(r, 16),)](*given, CAUSAL=causal, D=d, B=16, N=64)
        return out

    return answer


def divided_attention(*, causal):
    def answer(query, key, value):
        (r, d), n, out = query.shape, len(key), filled64(*query.shape)
        grid = (triton.cdiv(r, 32),)
        _divided_attention[grid](tensor64(query * d**-0.5), tensor64(key), tensor64(value), out, r, n, CAUSAL=causal, D=d, B_Q=32, B_K=16)
        return out.cpu().numpy()

    return answer


@triton.jit
def _part_whole(query, key, value, outputs, lses, n, size, scale, D: tl.constexpr, B: tl.constexpr):
    """One program: one part, read at once."""
    part, d, lane = tl.program_id(0), tl.arange(0, D), tl.arange(0, B)
    j = part * size + lane
    is_there = (lane < size) & (j < n)
    at = j[:, None] * D + d[None, :]
    s = tl.sum(tl.load(key + at, mask=is_there[:, None], other=0.0) * tl.load(query + d)[None, :], 1) * scale
    top = tl.max(tl.where(is_there, s, -1e30), 0)
    p = tl.where(is_there, tl.exp2((s - top) * 1.4426950408889634), 0.0)
    total = tl.sum(p, 0)
    output = tl.sum(p[:, None] * tl.load(value + at, mask=is_there[:, None], other=0.0), 0)
    tl.store(outputs + part * D + d, output / total)
    tl.store(lses + part, top + tl.log(total))


def parts_at_once(query, key, value, size):
    (n, d), parts = key.shape, triton.cdiv(len(key), size)
    outputs, lses = filled(parts, d), filled(parts)
    _part_whole[(parts,)](tensor(query), tensor(key), tensor(value), outputs, lses, n, size, d**-0.5, D=d, B=64)
    return outputs, lses


@triton.jit
def _part_from_its_end(query, key, value, outputs, lses, n, size, D: tl.constexpr, B: tl.constexpr):
    """One program: one part, from its last block to its first; what is kept is the finished output and its log-sum-exp."""
    part, d = tl.program_id(0), tl.arange(0, D)
    q = tl.load(query + d)
    output, lse = tl.zeros([D], tl.float64), -1e30
    first, stop = part * size, tl.minimum(part * size + size, n)
    blocks = tl.cdiv(stop - first, B)
    for back in range(blocks):
        j = first + (blocks - 1 - back) * B + tl.arange(0, B)
        at, is_there = j[:, None] * D + d[None, :], j[:, None] < stop
        s = tl.sum(tl.load(key + at, mask=is_there, other=0.0) * q[None, :], 1)
        s = tl.where(j < stop, s, -1e30)
        top = tl.maximum(tl.max(s, 0), lse)
        p = tl.exp(s - top)
        new = top + tl.log(tl.exp(lse - top) + tl.sum(p, 0))
        part_value = tl.sum(p[:, None] * tl.load(value + at, mask=is_there, other=0.0), 0)
        output = output * tl.exp(lse - new) + part_value * tl.exp(top - new)
        lse = new
    tl.store(outputs + part * D + d, output)
    tl.store(lses + part, lse)


def parts_from_their_end(query, key, value, size):
    (n, d), parts = key.shape, triton.cdiv(len(key), size)
    outputs, lses = filled64(parts, d), filled64(parts)
    _part_from_its_end[(parts,)](tensor64(query * d**-0.5), tensor64(key), tensor64(value), outputs, lses, n, size, D=d, B=16)
    return outputs.cpu().numpy(), lses.cpu().numpy()


RIGHT = {
    "causal-tile-counts": [tiles_from_a_mask, tiles_in_torch],
    "read-overlap-schedule": [lambda: [3, 2, 32, 1.5625], lambda: np.array([3.0, 2.0, 32.0, 50 / 32])],
    "row-lse-kernel": [lse_by_lanes, lse_in_two_passes],
    "split-keys-kernel": [parts_at_once, parts_from_their_end],
    "row-sum-kernel": [rows_at_once("sum"), by_lanes("sum")],
    "row-maximum-kernel": [rows_at_once("max"), by_lanes("max")],
    "softmax-average-kernel": [rows_at_once("average"), by_lanes("average")],
    "first-dot-kernel": [products(16, 16, 32, transposed=False), product_in_steps],
    "tile-of-scores-kernel": [products(16, 32, 16, transposed=True), scores_in_steps],
    "attention-kernel": [whole_attention(causal=False), divided_attention(causal=False)],
    "causal-attention-kernel": [whole_attention(causal=True), divided_attention(causal=True)],
    "repair-row-softmax": [rows_at_once("softmax"), by_lanes("softmax")],
}
