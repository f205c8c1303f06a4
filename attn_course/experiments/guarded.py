"""Memory for kernels in which a missing mask is seen: NaN lies before and behind every array."""

import math
from collections.abc import Sequence
from typing import Any

import torch

MARGIN = 4096  # numbers on either side
UNTOUCHED = 0x7FC0A77E  # the bits of a NaN that no calculation makes


def empty(*shape: int) -> torch.Tensor:
    """Return a float32 output that holds NaN, between margins of NaN; on the GPU where there is one."""
    return _between_margins(shape, UNTOUCHED)


def guarded(array: Any) -> torch.Tensor:
    """Return a float32 copy of an array between margins of NaN: who reads past its end gets NaN."""
    values = torch.as_tensor(array)
    return _between_margins(values.shape, UNTOUCHED + 1).copy_(values)


def finished(output: torch.Tensor) -> torch.Tensor:
    """Return an output of `empty`.

    Raises ValueError if something was stored before its first or behind its last number.
    """
    size = output.numel() + 2 * MARGIN
    room = output.as_strided((size,), (1,), 0).view(torch.int32)
    if bool((room[:MARGIN] != UNTOUCHED).any() or (room[size - MARGIN :] != UNTOUCHED).any()):
        raise ValueError(
            "a program has stored numbers outside the output: look at the mask of tl.store, and at the row length in its address"
        )
    return output


def _between_margins(shape: Sequence[int], bits: int) -> torch.Tensor:
    size = math.prod(shape)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    room = torch.full((size + 2 * MARGIN,), bits, dtype=torch.int32, device=device).view(torch.float32)
    return room[MARGIN : MARGIN + size].view(tuple(shape))
