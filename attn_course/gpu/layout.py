"""How tensors lie in memory for the kernels: features side by side, rows at multiples of 8 of them."""

import math

import torch
from torch.nn import functional

FARTHEST = 2**31 // 128  # features from one row to the next: places inside a tile of 128 rows are counted in 32 bits
ALIGNED = 8  # rows begin at multiples of so many features, so that 16 bytes of float16 can be loaded at a time


def laid_out(like: torch.Tensor, width: int) -> torch.Tensor:
    """Return an empty tensor of `width` features with the axes of `like` in the same order of memory, rows aligned."""
    strides = [like.stride(axis) if like.shape[axis] > 1 else 0 for axis in range(like.ndim - 1)]
    order = sorted(range(like.ndim - 1), key=lambda axis: -strides[axis] if strides[axis] else -math.inf)  # broadcast axes outermost
    shape = (*like.shape[:-1], width + -width % ALIGNED)
    if math.prod(shape[axis] for axis in order[order.index(like.ndim - 2) + 1 :]) * shape[-1] >= FARTHEST:
        order = sorted(order)
    return torch.empty_permuted(shape, (*order, like.ndim - 1), dtype=like.dtype, device=like.device)[..., :width]


def aligned(tensor: torch.Tensor, unit: int = ALIGNED) -> torch.Tensor:
    """Return the tensor with the features of a row side by side and rows at multiples of `unit`, copied if they are not."""
    lies_well = tensor.stride(-1) == 1 and not tensor.storage_offset() % unit and not steps_of(tensor) % unit
    lies_well = lies_well and (tensor.shape[-2] < 2 or tensor.stride(-2) < FARTHEST)
    return tensor if lies_well else functional.pad(tensor, (0, -tensor.shape[-1] % ALIGNED)).contiguous()[..., : tensor.shape[-1]]


def steps_of(*tensors: torch.Tensor) -> int:
    """Return of how many features, at most `ALIGNED`, all steps along the axes before the last are multiples."""
    axes = [pair for tensor in tensors for pair in zip(tensor.stride()[:-1], tensor.shape[:-1], strict=True)]
    return math.gcd(ALIGNED, *(stride for stride, length in axes if length > 1))
