"""What kernels are launched with, made of the tensors and options of a call."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import torch

from attn_course.gpu.layout import ALIGNED, FARTHEST

Table: TypeAlias = torch.Tensor | None
Options: TypeAlias = tuple[Table, Table, Table, Table, Table, int | None, int | None, float, float | None, list[int] | None]
"""mask, lows, highs, lengths, starts, low, high, scale, softcap, longest"""
LOG2_E = 1.4426950408889634
LINEAR_CAP = 1e20  # tanh(x) is x for every score that such a cap could bound


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums and log-sum-exp are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def scores_by(dtype: torch.dtype, scale: float, softcap: float | None, kind: str = "none") -> tuple[float, float, dict[str, bool]]:
    """Return how scores are made of q . k: slope, bound, and as constants whether there is a bound and whether they are natural.

    They are natural beside a float mask (`kind`) and in float32, where a score may be so large that a factor makes it infinite, or if
    float32 does not hold the slope, and else in units of ln 2, Eq. exponential-in-base-two.
    """
    limits = torch.finfo(torch.float32)
    natural = kind == "float" or dtype in (torch.float32, torch.float64) or not limits.tiny < scale * LOG2_E < limits.max
    unit = 1.0 if natural else LOG2_E
    if softcap is None or softcap > LINEAR_CAP:
        return scale * unit, 0.0, {"CAPPED": False, "NATURAL": natural}
    softcap = max(softcap, 1.0 / LINEAR_CAP)  # a slope that float32 can hold
    return scale / softcap, softcap * unit, {"CAPPED": True, "NATURAL": natural}


def mask_arguments(mask: torch.Tensor | None) -> tuple[torch.Tensor | None, tuple[int, ...], str]:
    """Return the mask as bytes or floats, its strides (0 where an axis is broadcast), and its kind; copied if it lies too far apart."""
    if mask is None:
        return None, (0, 0, 0, 0), "none"
    if sum(stride for stride, length in zip(mask.stride()[2:], mask.shape[2:], strict=True) if length > 1) >= FARTHEST:
        mask = mask.contiguous()
    strides = tuple(0 if length == 1 else stride for stride, length in zip(mask.stride(), mask.shape, strict=True))
    return (mask.view(torch.uint8), strides, "bool") if mask.dtype == torch.bool else (mask, strides, "float")


def rows_of(tensor: torch.Tensor, unit: int = ALIGNED, starts: Table = None) -> Any:
    """Return a tensor as `tiles.Rows`, with strides that count `unit` features; with `starts` see `tiles.sequence_of`."""
    from attn_course.gpu.tiles import Rows

    batch, *others = (stride // unit for stride in tensor.stride()[:-1])
    return Rows((batch if starts is None else others[1], *others), tensor)


def sizes(query: torch.Tensor, key: torch.Tensor, options: Options) -> tuple[int, int, int]:
    """Return how many batch entries there are, of how many queries and keys; packed sequences count as entries, as long as the longest."""
    starts, longest = options[4], options[-1]
    if starts is None or longest is None:
        return len(query), query.shape[2], key.shape[2]
    return len(starts) - 2, longest[0], longest[1]


def arguments(tensors: Iterable[torch.Tensor], options: Options, unit: int = ALIGNED) -> tuple[Any, tuple[int, ...], Any]:
    """Return what kernels are launched with: `tiles.Call`, the numbers `tiles.COUNTS`, and `tiles.Kind`. `tensors`: query, key, value."""
    from attn_course.gpu import tiles

    query, key, value = tensors
    mask, lows, highs, lengths, starts, low, high, scale, softcap, _ = options
    mask, mask_strides, mask_kind = mask_arguments(mask)
    slope, bound, scores = scores_by(query.dtype, scale, softcap, mask_kind)
    query_rows, key_rows, value_rows = (rows_of(tensor, unit, starts) for tensor in (query, key, value))
    mask_rows = tiles.Rows(mask_strides, mask)
    call = tiles.Call(query_rows, key_rows, value_rows, mask_rows, lows, highs, lengths, starts, slope, bound, scale)
    kind = tiles.Kind(
        GROUP=query.shape[1] // key.shape[1], D_K=query.shape[-1], D_V=value.shape[-1], **scores, MASK=mask_kind,
        LOW=(low, lows) != (None, None), HIGH=(high, highs) != (None, None), ACC=tiles.ACCUMULATORS[accumulator(query.dtype)],
    )  # fmt: skip
    return call, (query.shape[1], *sizes(query, key, options)[1:], low or 0, high or 0), kind
