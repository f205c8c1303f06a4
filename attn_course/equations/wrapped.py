r"""Sides that stand in something that does not see all of them: r in its tangent, S^\top k' in its length, z_i times 0 or itself.

Where a side of the registered formula stands in a form, its value is changed there: negated, shifted, its entries exchanged, all but the
first made others. The registered formula falls, and if the form holds it says less.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attn_course.equations.special import Special
from attn_course.formulas import Formula, FormulaError, Malformed, Node, sides, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.tree import relations
from attn_course.formulas.values import Value

PLAIN = ("number", "constant", "index", "tuple")
PERIODS = (1.0, 2.0, np.pi, 2 * np.pi)
Change = Callable[[np.ndarray], np.ndarray]


class Changed(Evaluation):
    """An evaluation in which one expression has another value."""

    def __init__(self, formula: Formula, givens: Mapping[str, Any], node: Node, change: Change) -> None:
        super().__init__(formula, givens)
        self._node, self._change, self.changed = node, change, list[bool]()

    def value(self, node: Node) -> Value:
        """Return the value of a node, another one if it is that expression."""
        found = super().value(node)
        if node != self._node or found.data.dtype.kind not in "if":
            return found
        other = self._change(found.data)
        self.changed.append(not np.array_equal(other, found.data))
        return found.like(other)


def complain_of_wrapped(formula: Formula, registered: Formula, draw: Mapping[str, Any], special: Sequence[Special]) -> None:
    """Complain of a form that holds with another value of a side of the registered formula, for which that falls."""
    known = {*formula.tree.walk()}
    sized = [one.givens for one in special if one.said.startswith("for ")]
    for chain, _ in relations(registered.tree):
        for side in chain.children[::2] if {sign.value for sign in chain.children[1::2]} == {"="} else ():
            if side.kind in PLAIN or side not in known or _stands_alone(side, formula):
                continue
            for givens, change in [*((draw, change) for change in _changes(side, registered, draw)), *((one, _another) for one in sized)]:
                if _falls(registered, givens, side, change) and _falls(formula, givens, side, change) is False:
                    said = f"this is weaker: it holds for other values of {write(side)} too, and the registered formula does not"
                    raise Malformed(said, formula.tree.place, formula.latex)


def _stands_alone(side: Node, formula: Formula) -> bool:
    """Whether an equality says outright what it is."""
    ends = [chain.children[::2] for chain, _ in relations(formula.tree) if {sign.value for sign in chain.children[1::2]} == {"="}]
    return any(side in some and not any(side in end.walk() for end in some if end != side) for some in ends)


def _falls(formula: Formula, givens: Mapping[str, Any], side: Node, change: Change) -> bool | None:
    """Whether a formula falls with another value of a side; None if it has no meaning, or the value is the same."""
    here = Changed(formula, givens, side, change)
    try:
        judged = sides(formula, givens, here)
    except FormulaError:
        return None
    return any((one.counts & ~one.fulfilled).any() for one in judged) if here.changed and all(here.changed) else None


def _another(data: np.ndarray) -> np.ndarray:
    return data + 1 if data.dtype.kind == "i" else 1.3 * data + 0.7


def _changes(side: Node, registered: Formula, draw: Mapping[str, Any]) -> Iterator[Change]:
    """Yield what may become of a side that has the sign and the range which it has in a draw."""
    noted = list[np.ndarray]()

    def note(data: np.ndarray) -> np.ndarray:
        noted.append(data)
        return data

    with contextlib.suppress(FormulaError):
        sides(registered, draw, Changed(registered, draw, side, note))
    if not noted or not noted[0].size or not np.isfinite(noted[0]).all():
        return
    low, high = noted[0].min(), noted[0].max()
    if low < 0 < high:
        yield from (np.negative, lambda data: np.where(data < 0, 2 * data, data), lambda data: np.where(data > 0, 2 * data, data))
    if low <= 0 <= high:
        yield lambda data: 0 * data
    if low == 0 == high:
        yield np.ones_like
    yield from ((lambda data, period=period: data + period) for period in PERIODS if high - low >= period)
    for axis in (axis for axis, length in enumerate(noted[0].shape) if length > 1):
        yield from (functools.partial(change, axis=axis) for change in (_rolled, _first_kept))


def _rolled(data: np.ndarray, axis: int) -> np.ndarray:
    return np.roll(data, 1, axis) if data.ndim > axis else data


def _first_kept(data: np.ndarray, axis: int) -> np.ndarray:
    if data.ndim <= axis:
        return data
    places = np.arange(data.shape[axis]).reshape((-1,) + (1,) * (data.ndim - axis - 1))
    return np.where(places > 0, 1.3 * data + 0.1, data)
