"""The first rung: a softmax in one kernel. It reads each row once and writes it once; torch's separate steps would do so four times.

Eq. softmax with the maximum subtracted, Eq. online-softmax-update; the gradient is s * (d_s - sum(s * d_s)), one kernel as well.
"""

import torch
import triton
import triton.language as tl

MAX_COLUMNS = 65536  # a row lives in the registers of one program


@triton.jit
def softmax_rows(scores_ptr, weights_ptr, n_columns, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """One program computes one row of weights; scores and weights (rows, n_columns), contiguous.

    Scores past the end are read as -inf: they add exp(-inf) = 0. A row that is -inf throughout becomes 0.
    """
    row = tl.cast(tl.program_id(0), tl.int64)
    columns = tl.arange(0, BLOCK)
    scores = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf")).to(ACC)
    row_max = tl.max(scores, 0)
    shift = tl.where(row_max == float("-inf"), 0.0, row_max)  # never -inf - -inf
    unnormalised = tl.exp(scores - shift)
    row_sum = tl.sum(unnormalised, 0)
    weights = unnormalised / tl.where(row_sum == 0.0, 1.0, row_sum)
    tl.store(weights_ptr + row * n_columns + columns, weights.to(weights_ptr.dtype.element_ty), mask=columns < n_columns)


@triton.jit
def softmax_rows_backward(weights_ptr, d_weights_ptr, d_scores_ptr, n_columns, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """One program computes the gradient of one row of scores; all three (rows, n_columns), contiguous."""
    row = tl.cast(tl.program_id(0), tl.int64)
    columns = tl.arange(0, BLOCK)
    weights = tl.load(weights_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0).to(ACC)
    d_weights = tl.load(d_weights_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0).to(ACC)
    d_scores = weights * (d_weights - tl.sum(weights * d_weights, 0))
    tl.store(d_scores_ptr + row * n_columns + columns, d_scores.to(d_scores_ptr.dtype.element_ty), mask=columns < n_columns)


class _FusedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        weights = torch.empty_like(scores, memory_format=torch.contiguous_format)
        _launch(softmax_rows, scores.contiguous(), weights)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx, d_weights):
        (weights,) = ctx.saved_tensors
        d_scores = torch.empty_like(weights)
        _launch(softmax_rows_backward, weights, d_weights.contiguous(), d_scores)
        return d_scores


def _launch(kernel, *tensors):
    n_columns = tensors[0].shape[-1]
    if tensors[0].numel() == 0:
        return
    acc = tl.float64 if tensors[0].dtype == torch.float64 else tl.float32
    block = triton.next_power_of_2(n_columns)
    with torch.cuda.device_of(tensors[0]):
        kernel[(tensors[0].numel() // n_columns,)](*tensors, n_columns, ACC=acc, BLOCK=block, num_warps=min(max(block // 256, 4), 16))


def fused_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Return the softmax of scores (..., n) over the last axis, from one kernel; differentiable.

    float16, float32 or bfloat16 (on a GPU), computed in at least float32; n up to 65536, else ValueError. Rows of -inf become 0.
    """
    if scores.ndim == 0 or scores.shape[-1] > MAX_COLUMNS:
        raise ValueError(f"scores must have at least one axis, the last of at most {MAX_COLUMNS}; got shape {tuple(scores.shape)}")
    return _FusedSoftmax.apply(scores)
