"""Which positions of a sequence each device holds."""

import torch
from torch import Tensor

ORDERS = ("contiguous", "striped", "zigzag")


def device_places(length: int, n_devices: int, order: str = "zigzag") -> list[Tensor]:
    """Return the positions that each device holds, in ascending order: `x[..., places[rank], :]` is its part of x.

    `length`: of the whole sequence; need not be a multiple of anything, and may be shorter than there are devices.
    `order`: "contiguous", one run of positions for each device; "striped", every n-th position, Brandon et al. (2023),
    arXiv:2311.09431; "zigzag", of 2 n runs the r-th from the front and the r-th from the back. Under a causal mask the first leaves
    devices idle, Eq. contiguous-causal-time; the others do not, Eqs. striped-causal-time and zigzag-causal-pairs.

    What depends on a position, such as RoPE, takes it from here: on no device but the first do they begin with 0, 1, 2.

    Raises TypeError or ValueError if a number is no integer of 0 or more (devices: 1 or more), or the order is unknown.

    >>> device_places(8, 2, "zigzag")
    [tensor([0, 1, 6, 7]), tensor([2, 3, 4, 5])]
    >>> device_places(5, 2, "striped")
    [tensor([0, 2, 4]), tensor([1, 3])]
    """
    for name, value, least in (("length", length, 0), ("n_devices", n_devices, 1)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer; got {type(value).__name__} {value!r}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more; got {value}")
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}; got {order!r}")
    every = torch.arange(length)
    if order == "striped":
        return [every[rank::n_devices] for rank in range(n_devices)]
    if order == "contiguous":
        return list(every.tensor_split(n_devices))
    runs = every.tensor_split(2 * n_devices)
    return [torch.cat([runs[rank], runs[-1 - rank]]) for rank in range(n_devices)]
