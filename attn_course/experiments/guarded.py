"""Memory for kernels in which a missing mask is seen: NaN lies before and behind every array."""

import math
from typing import Any

import torch

MARGIN = 4096  # numbers on either side


def empty(*shape: int) -> torch.Tensor:
    """Return a float32 output that holds NaN, between margins of NaN; on the GPU where there is one."""
    size = math.prod(shape)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    room = torch.full((size + 2 * MARGIN,), torch.nan, dtype=torch.float32, device=device)
    return room[MARGIN : MARGIN + size].view(shape)


def guarded(array: Any) -> torch.Tensor:
    """Return a float32 copy of an array between margins of NaN: who reads past its end gets NaN."""
    values = torch.as_tensor(array)
    return empty(*values.shape).copy_(values)


def finished(output: torch.Tensor) -> torch.Tensor:
    """Return an output of `empty`.

    Raises ValueError if something was stored before its first or behind its last number.
    """
    size = output.numel() + 2 * MARGIN
    room = output.as_strided((size,), (1,), 0)
    if not bool(room[:MARGIN].isnan().all() and room[size - MARGIN :].isnan().all()):
        raise ValueError(
            "a program has stored numbers outside the output: look at the mask of tl.store, and at the row length in its address"
        )
    return output
