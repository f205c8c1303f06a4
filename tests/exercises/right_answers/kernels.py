"""Right answers to the tasks of lesson kernels: other blocks, other orders, lanes, one row at a time."""

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tiles_in_torch(q_len, kv_len, block_q, block_kv, q_offset):
    first_q, first_k = torch.arange(0, q_len, block_q)[:, None], torch.arange(0, kv_len, block_kv)
    last_q, last_k = (first_q + block_q).clamp(max=q_len) - 1, (first_k + block_kv).clamp(max=kv_len) - 1
    skipped = (first_k > last_q + q_offset).sum()
    whole = (last_k <= first_q + q_offset).sum()
    return skipped.float(), whole.float(), (len(first_q) * len(first_k) - skipped - whole).float()


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
    scores = torch.tensor(scores, dtype=torch.float32, device=DEVICE)
    lse = torch.empty(scores.shape[0], dtype=torch.float32, device=DEVICE)
    _row_lse_in_two_passes[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse


def filled(*shape):
    return torch.full(shape, torch.nan, device=DEVICE)


def tensor(x):
    return torch.as_tensor(x, dtype=torch.float32, device=DEVICE).contiguous()


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
def _products(x, y, out, r, n, D: tl.constexpr, STEP: tl.constexpr, B: tl.constexpr, B_N: tl.constexpr, TRANSPOSED: tl.constexpr):
    """One program: a tile of x y^T, or of x y, summed over STEP features at a time."""
    i, j = tl.program_id(0) * B + tl.arange(0, B)[:, None], tl.program_id(1) * B_N + tl.arange(0, B_N)[None, :]
    acc = tl.zeros([B, B_N], tl.float32)
    for start in tl.static_range(0, D, STEP):
        d = start + tl.arange(0, STEP)
        a = tl.load(x + i * D + d[None, :], mask=i < r, other=0.0)
        at = y + j * D + d[:, None] if TRANSPOSED else y + d[:, None] * n + j
        acc = tl.dot(a, tl.load(at, mask=j < n, other=0.0), acc, input_precision="ieee")
    tl.store(out + i * n + j, acc, mask=(i < r) & (j < n))


def products(b, b_n, step, *, transposed):
    def answer(x, y):
        (r, d), n = x.shape, len(y) if transposed else y.shape[1]
        out = filled(r, n)
        x, y = tensor(x * (d**-0.5 if transposed else 1.0)), tensor(y)
        _products[triton.cdiv(r, b), triton.cdiv(n, b_n)](x, y, out, r, n, D=d, STEP=step, B=b, B_N=b_n, TRANSPOSED=transposed)
        return out

    return answer


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


def whole_attention(*, causal):
    def answer(query, key, value):
        (r, d), n, out = query.shape, len(key), filled(*query.shape)
        given = tensor(query), tensor(key), tensor(value), out, r, n, d**-0.5
        _whole_attention[(triton.cdiv(r, 16),)](*given, CAUSAL=causal, D=d, B=16, N=64)
        return out

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


RIGHT = {
    "causal-tile-counts": [tiles_in_torch],
    "read-overlap-schedule": [lambda: [3, 2, 32, 1.5625], lambda: np.array([3.0, 2.0, 32.0, 50 / 32])],
    "row-lse-kernel": [lse_in_two_passes],
    "split-keys-kernel": [parts_at_once],
    "row-sum-kernel": [rows_at_once("sum")],
    "row-maximum-kernel": [rows_at_once("max")],
    "softmax-average-kernel": [rows_at_once("average")],
    "first-dot-kernel": [products(16, 16, 32, transposed=False)],
    "tile-of-scores-kernel": [products(16, 32, 16, transposed=True)],
    "attention-kernel": [whole_attention(causal=False)],
    "causal-attention-kernel": [whole_attention(causal=True)],
    "repair-row-softmax": [rows_at_once("softmax")],
}
