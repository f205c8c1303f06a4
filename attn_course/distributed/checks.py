"""Clear errors, on each process alone, before anything is sent."""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor


def check_call(places: Sequence[Tensor], rank: int, size: int, query: Any, key: Any, value: Any, *, scale: Any, **flags: Any) -> float:
    """Return the factor of the scores; raise TypeError or ValueError that names what does not fit, in one process of a group."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False; got {type(flag).__name__}")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale)):
        raise ValueError(f"scale must be a finite number or None; got {scale!r}")
    if len(places) != size:
        raise ValueError(f"places must list the positions of each of the {size} processes of the group; got {len(places)}")
    if any(bool((held[1:] <= held[:-1]).any()) for held in places):
        raise ValueError("places must ascend on each process, as those of device_places do")
    _check_parts(len(places[rank]), rank, query=query, key=key, value=value)
    _check_axes(query, key, value, flags["enable_gqa"])
    if scale is None and query.shape[-1] == 0:
        raise ValueError("scale must be given when d_k is 0; got None")
    return 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)


def _check_parts(held: int, rank: int, **parts: Any) -> None:
    query = parts["query"]
    for name, part in parts.items():
        if not isinstance(part, Tensor) or not part.is_floating_point() or part.dtype != query.dtype:
            wanted = "a Tensor of floats" if name == "query" else f"a Tensor of {query.dtype}, as query"
            raise TypeError(f"{name} must be {wanted}; got {part.dtype if isinstance(part, Tensor) else type(part).__name__}")
        if part.ndim < 2 or part.shape[-2] != held:
            wanted = f"(..., {held}, features), for the places of process {rank}"
            raise ValueError(f"{name} must have the axes {wanted}; got {tuple(part.shape)}")


def _check_axes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    """Leading axes are equal, but for the heads of the query with `enable_gqa`; nothing is broadcast."""
    shared = enable_gqa and query.ndim == key.ndim > 2
    batch = (*key.shape[:-3], query.shape[-3]) if shared else key.shape[:-2]
    if query.shape[:-2] != batch or value.shape[:-2] != key.shape[:-2] or query.shape[-1] != key.shape[-1]:
        shapes = ", ".join(str(tuple(part.shape)) for part in (query, key, value))
        raise ValueError(f"query, key and value must agree in their leading axes (heads: with enable_gqa) and in d_k; got {shapes}")
    if enable_gqa and (not shared or key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        raise ValueError(f"query must have a multiple of the key's heads, axis -3; got {tuple(query.shape)} and {tuple(key.shape)}")
