"""Which tile sizes, warps and pipeline stages each kernel runs with.

The numbers were found by reading machine code for Hopper (sm_90): no spilled register in a loop over tiles, and matrix products that
are in flight while exponentials are taken; those for cards with less shared memory by reading that of sm_86 and sm_75.
`tests/gpu/test_machine_code.py` compiles them and looks again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch

Kernel = Literal["forward", "backward_key_value", "backward_query", "backward_mask", "decode"]


class Configuration(NamedTuple):
    """Rows of the query and of the key in a tile (powers of two), warps of 32 threads in a program, tiles that are loaded ahead.

    `max_registers` holds the compiler to so many for a thread; None leaves it to it. 65536 of them are a multiprocessor's: with 168,
    three programs of 4 warps share one.
    """

    block_q: int
    block_kv: int
    num_warps: int
    num_stages: int
    max_registers: int | None = None

    @property
    def launch_options(self) -> dict[str, int | None]:
        """What kernel and Triton are to be told."""
        sides = {"BLOCK_Q": self.block_q, "BLOCK_KV": self.block_kv}
        return {**sides, "num_warps": self.num_warps, "num_stages": self.num_stages, "maxnreg": self.max_registers}


MAX_D = 256
_INSTEAD: dict[tuple[str, int], Configuration] = {}  # what `instead` puts in the place of the tables below
_INTERPRETED = Configuration(32, 32, 1, 1)  # small, so that short tests have several tiles; NumPy has neither warps nor stages
_HALF: dict[Kernel, dict[int, Configuration]] = {  # float16 and bfloat16, by the larger of padded d_k and d_v
    "forward": {64: Configuration(128, 64, 8, 3), 128: Configuration(128, 64, 8, 3), 256: Configuration(64, 32, 8, 2)},
    "backward_key_value": {64: Configuration(64, 128, 8, 3), 128: Configuration(32, 128, 8, 3), 256: Configuration(32, 64, 8, 2)},
    "backward_query": {64: Configuration(128, 64, 8, 3), 128: Configuration(128, 64, 8, 3), 256: Configuration(64, 16, 8, 2)},
    "backward_mask": {64: Configuration(64, 64, 8, 2), 128: Configuration(64, 64, 8, 2), 256: Configuration(64, 32, 8, 2)},
    "decode": {64: Configuration(64, 64, 4, 3), 128: Configuration(64, 64, 4, 2), 256: Configuration(32, 32, 4, 2)},
}
_MASKED: dict[Kernel, dict[int, Configuration]] = {  # a mask is loaded into registers: smaller tiles
    "forward": {64: Configuration(128, 64, 8, 2), 128: Configuration(64, 16, 4, 2)},
    "backward_key_value": {64: Configuration(32, 128, 8, 2), 128: Configuration(16, 128, 8, 2)},
    "backward_query": {64: Configuration(128, 64, 8, 2), 128: Configuration(128, 32, 8, 2), 256: Configuration(128, 16, 8, 1)},
}
_SMALL: dict[Kernel, dict[int, Configuration]] = {  # for 99 kB, with a mask or without; decoding takes the tiles it has anyway
    "forward": {64: Configuration(64, 64, 4, 2), 128: Configuration(64, 32, 4, 2), 256: Configuration(64, 32, 8, 2)},
    "backward_key_value": {64: Configuration(32, 64, 4, 2), 128: Configuration(32, 64, 8, 2), 256: Configuration(32, 32, 8, 1)},
    "backward_query": {64: Configuration(64, 32, 4, 2), 128: Configuration(64, 32, 8, 2), 256: Configuration(64, 16, 8, 2)},
    "backward_mask": {64: Configuration(64, 32, 8, 1), 128: Configuration(64, 32, 8, 1), 256: Configuration(32, 16, 4, 1)},
}
_SINGLE = {64: Configuration(16, 32, 4, 1), 128: Configuration(16, 32, 8, 1), 256: Configuration(16, 16, 8, 1)}  # float32, and 64 kB
LARGE, MEDIUM, LEAST = 160_000, 99 * 1024, 64 * 1024  # bytes of shared memory: A100, H100; RTX 30, 40, A10, L4; T4


def padded(d: int) -> int:
    """Return the power of two from 16 on that a tile of d features takes: 16 is the least the matrix units multiply."""
    return max(16, 1 << (d - 1).bit_length())


def shared_bytes(device: torch.device) -> int:
    """Return how many bytes of shared memory a program can have on a device; `LARGE` where there is no such limit."""
    properties = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return getattr(properties, "shared_memory_per_block_optin", LARGE)


@contextmanager
def instead(tiles: dict[str, Any]) -> Iterator[None]:
    """Launch kernels with other configurations meanwhile, such as {"forward 128": [64, 64, 4, 3]}: by kernel and padded width."""
    chosen: dict[tuple[str, int], Configuration] = {}
    for name, numbers in tiles.items():
        kernel, _, width = name.partition(" ")
        if kernel not in _HALF or width not in ("64", "128", "256") or not isinstance(numbers, list) or len(numbers) not in (4, 5):
            raise ValueError(f'tiles: wanted such as "forward 128": [64, 64, 4, 3]; got "{name}": {numbers}')
        chosen[kernel, int(width)] = Configuration(*numbers)
    before = dict(_INSTEAD)
    _INSTEAD.update(chosen)
    try:
        yield
    finally:
        _INSTEAD.clear()
        _INSTEAD.update(before)


def configuration(
    kernel: Kernel,
    d_k: int,
    d_v: int,
    dtype: torch.dtype,
    *,
    masked: bool = False,
    shared: int = LARGE,
    interpreted: bool = False,
) -> Configuration:
    """Return what a kernel is launched with for query, key and value of a dtype with d_k and d_v features (1 to 256).

    `masked`: there is a mask, boolean or float. `shared`: the shared memory of the device. `interpreted`: NumPy plays the GPU.
    """
    widest = max(64, padded(max(d_k, d_v)))
    if (kernel, widest) in _INSTEAD:
        return _INSTEAD[kernel, widest]
    if interpreted:
        return _INTERPRETED
    if dtype == torch.float32 or shared < MEDIUM:
        return _SINGLE[widest]
    if shared < LARGE:
        return _SMALL.get(kernel, _HALF[kernel])[widest]
    return _MASKED.get(kernel, {}).get(widest, _HALF[kernel][widest]) if masked else _HALF[kernel][widest]
