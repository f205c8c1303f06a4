"""Count what a computation does by doing it: multiplications of numbers, and what matrix products read, write and wait for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.formulas.givens import Of, of


class Number:
    """A number that only tells its tally when it is multiplied."""

    def __init__(self, tally: list[int]) -> None:
        self.tally = tally

    def __mul__(self, other: Any) -> "Number":
        self.tally[0] += 1
        return self

    def __add__(self, other: Any) -> "Number":
        return self


def multiplications(function: Callable[..., Any], *shapes: tuple[int, ...]) -> int:
    """Run a function on arrays of counting numbers.

    `function`: uses nothing but sums and products of the arrays it is given.

    Returns `count`: how many numbers were multiplied. With the addition that comes with each it is half the FLOPs.
    """
    tally = [0]
    function(*(np.array([Number(tally) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape) for shape in shapes))
    return tally[0]


@dataclass
class Traced:
    """A matrix without numbers: its shape, and how many matrix products in a row it had to wait for."""

    shape: tuple[int, ...]
    traffic: list[int]
    depth: int = 0

    def __matmul__(self, other: "Traced") -> "Traced":
        shape = (self.shape[0], other.shape[1])
        self.traffic[0] += int(np.prod(self.shape) + np.prod(other.shape) + np.prod(shape))
        return Traced(shape, self.traffic, max(self.depth, other.depth) + 1)

    @property
    def T(self) -> "Traced":  # noqa: N802  # as in NumPy
        """The transpose, which moves nothing."""
        return Traced(self.shape[::-1], self.traffic, self.depth)

    def elementwise(self, *others: "Traced") -> "Traced":
        """Apply a function to each entry (or row), of several matrices of one shape: each is read once, the result written once."""
        self.traffic[0] += (len(others) + 2) * int(np.prod(self.shape))
        return Traced(self.shape, self.traffic, max(matrix.depth for matrix in (self, *others)))


def traced(function: Callable[..., Traced], *shapes: tuple[int, ...]) -> tuple[int, int]:
    """Run a function on matrices without numbers.

    `function`: uses matrix products, transposes and `elementwise`.

    Returns `moved`: numbers read and written, when each operation reads its inputs and writes its result; `depth`:
    matrix products that had to come one after the other.
    """
    traffic = [0]
    result = function(*(Traced(shape, traffic) for shape in shapes))
    return traffic[0], result.depth


def by_size(count: Callable[[int], int], size: str, *names: str, step: int = 1) -> Of:
    """Return a count as a polynomial in a size, of degree 2 as of a product of matrices: through its values at 1, 2 and 3 steps.

    `names`: other givens that it was counted with.
    """
    one, two, three = (count(step * times) for times in (1, 2, 3))

    def cost(length: float, *_: float) -> float:
        n = length / step
        return one + (two - one) * (n - 1) + (three - 2 * two + one) * (n - 1) * (n - 2) / 2

    return of(cost, size, *names)
