"""What a statement claims, as plain data: equality, a chain of bounds, a limit, a moment.

A statement function returns one claim, or yields several (one per random point). `left, right` is short for
`Equal(left, right)`; `(left_1, left_2), (right_1, right_2)` is a line with two equations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, TypeAlias

from attn_course.equations.errors import Malformed

Sides: TypeAlias = tuple[Any, Any]
"""What most statements return: the left side and the right side."""


@dataclass(frozen=True)
class Equal:
    """The two sides agree. `scale` is the size of the largest term that cancels on the way (default: that of the sides)."""

    left: Any
    right: Any
    scale: Any = None


class Chain:
    """Bounds in a row, `Chain(lower, "<", value, "<=", upper)`.

    `*parts`: terms with "<" (strict, no rounding allowed) or "<=" between them.
    `tight`: one per sign: True where the bound is attained at this very point. It makes bounds that are merely too
    loose fail.
    `scale`: size of the largest term that cancels on the way (default: that of the terms).
    """

    def __init__(self, *parts: Any, tight: tuple[Any, ...] = (), scale: Any = None) -> None:
        self.terms, self.signs = parts[::2], parts[1::2]
        if len(parts) < 3 or len(parts) % 2 == 0 or not all(isinstance(sign, str) and sign in ("<", "<=") for sign in self.signs):
            raise Malformed('Chain wants terms with "<" or "<=" between them')
        self.tight = tuple(bool(flag) for flag in tight) or (False,) * len(self.signs)
        if len(self.tight) != len(self.signs):
            raise Malformed(f"tight wants one flag per sign ({len(self.signs)}); got {len(self.tight)}")
        self.scale = scale


@dataclass(frozen=True)
class Limit:
    """The values come ever closer to the target. First axis of `values`: the steps towards the limit."""

    values: Any
    target: Any
    closeness: float = 1e-9


@dataclass(frozen=True)
class Moment:
    """The mean of independent samples (first axis) is `expected`, known to `resolution` times `scale` (default: the size of expected)."""

    samples: Any
    expected: Any
    resolution: float = 0.01
    scale: Any = None


Claim: TypeAlias = Equal | Chain | Limit | Moment
Claims: TypeAlias = Iterator[Claim | Sides]
"""What a statement yields that claims something at each of several points."""


def claims_of(result: Any) -> Iterator[Claim]:
    """Read what a statement returned (or yields) as claims."""
    for item in result if isinstance(result, GeneratorType) else [result]:
        if isinstance(item, Claim):
            yield item
        elif isinstance(item, tuple) and len(item) == 2:
            yield from _equalities(*item)
        else:
            raise Malformed(f"a statement gives (left, right), Equal, Chain, Limit or Moment; got {type(item).__name__}")


def _equalities(left: Any, right: Any) -> Iterator[Equal]:
    if isinstance(left, tuple) != isinstance(right, tuple) or (isinstance(left, tuple) and len(left) != len(right)):
        raise Malformed("a line with several equations wants as many right sides as left sides")
    if isinstance(left, tuple):
        yield from map(Equal, left, right)
    else:
        yield Equal(left, right)
