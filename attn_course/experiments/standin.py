"""What plays Triton where there is none: the part of its language that lesson kernels needs, in NumPy, one program after the other.

    try:
        import triton
    except ModuleNotFoundError:
        from attn_course.experiments.standin import tl, triton

It says nothing about speed, and checks addresses: to read or write outside an array's memory raises IndexError. Where a mask leaves a
number out, a load without `other` brings infinity.
"""

import itertools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

_place: list[int] = [0, 0, 0]  # which program runs


class Pointer:
    """Addresses in the memory of an array: a pointer plus a block of numbers is a block of pointers."""

    def __init__(self, memory: np.ndarray, offsets: Any) -> None:
        self.memory, self.offsets = memory, np.asarray(offsets)

    def __add__(self, steps: Any) -> "Pointer":
        return Pointer(self.memory, self.offsets + steps)

    def at(self, mask: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return offsets and mask in one shape; raise IndexError if one that is not masked lies outside."""
        offsets, asked = np.broadcast_arrays(self.offsets, True if mask is None else mask)
        if ((offsets < 0) | (offsets >= self.memory.size))[asked].any():
            raise IndexError("a load or a store without a mask leaves the memory of its array")
        return offsets, asked


class Kernel:
    """A function that Triton would compile; `kernel[grid](...)` runs it for each program of the grid."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Be called by another kernel."""
        return self.function(*values, **named)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        return lambda *values, **named: self.run(grid, values, named)

    def run(self, grid: Sequence[int], values: Sequence[Any], named: dict[str, Any]) -> None:
        """Run all programs; tensors become pointers to their memory."""
        values, named = [_pointed(each) for each in values], {name: _pointed(each) for name, each in named.items()}
        for place in itertools.product(*map(range, grid)):
            _place[: len(place)] = place
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self.function(*values, **named)


def _pointed(value: Any) -> Any:
    if not hasattr(value, "untyped_storage"):
        return value
    memory = value.as_strided((value.untyped_storage().nbytes() // value.element_size(),), (1,), 0)
    return Pointer(memory.numpy(), value.storage_offset())


def _load(pointer: Pointer, mask: Any = None, other: Any = np.inf) -> Any:
    offsets, asked = pointer.at(mask)
    return np.where(asked, pointer.memory[np.where(asked, offsets, 0)], np.float32(other))


def _store(pointer: Pointer, value: Any, mask: Any = None) -> None:
    offsets, asked = pointer.at(mask)
    pointer.memory[offsets[asked]] = np.broadcast_to(value, offsets.shape)[asked]


def _dot(a: np.ndarray, b: np.ndarray, acc: Any = 0.0, **_: Any) -> np.ndarray:
    return a @ b + acc


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    def own(x: Any) -> Any:
        return function(x)

    return own


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None, keep_dims=False: function(x, axis=axis, keepdims=keep_dims)


# modules, as Triton's are; exp and the like are functions of their own, for a task forbids those of NumPy
tl, triton = ModuleType("standin.language"), ModuleType("standin")
vars(tl).update(
    constexpr=object(), float32=np.float32, int32=np.int32, program_id=lambda axis: _place[axis], arange=np.arange,
    load=_load, store=_store, dot=_dot, trans=np.transpose, where=np.where, maximum=np.maximum, minimum=np.minimum,
    sum=_named(np.sum), max=_named(np.fmax.reduce), exp=_own(np.exp), exp2=_own(np.exp2), log=_own(np.log), log2=_own(np.log2),
    cdiv=lambda a, b: -(-a // b), full=np.full, zeros=np.zeros,
)  # fmt: skip
vars(triton).update(jit=Kernel, cdiv=tl.cdiv, language=tl)
