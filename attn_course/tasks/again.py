"""Each case of a function once more, at once, with the same shapes and everything else another: what an answer remembers is no answer.

First entries are drawn anew. Where a task sets an argument by hand (a number of heads, positions, lengths, a scale), one more call gives it
another value, which keeps whatever holds between the sizes and whole numbers in all cases of the task (that one divides another, is at
most another, is a sum of two), and for which the task's own answer behaves as before: so nothing is asked that its text does not promise.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attn_course.tasks.run import Result, run

AGAIN = ", called again with "
_TRIES = 4  # draws until one has the shapes of a case
_LARGER = 100.0  # how many times as large results may become
_Inputs = Mapping[str, Any]
_BETWEEN: dict[str, Callable[[float, float], bool]] = {
    "equal": lambda one, two: one == two,
    "at most": lambda one, two: one <= two,
    "below": lambda one, two: one < two,
    "divides": lambda one, two: one != 0 and two % one == 0,
    "at least": lambda one, two: one >= two,
    "above": lambda one, two: one > two,
    "multiple": lambda one, two: two != 0 and one % two == 0,
}
_BOUNDS = ("equal", "at most", "below", "divides", "sum")  # what makes of a whole number a size; without, it may name a kind of anything


class _Relation(NamedTuple):
    """What holds of some sizes, by their names."""

    how: str
    names: tuple[str, ...]
    limits: tuple[float, float] = (0.0, 0.0)

    def holds(self, sizes: Mapping[str, float]) -> bool:
        """Whether it holds of these."""
        values = [sizes[name] for name in self.names]
        if self.how == "within":
            return self.limits[0] <= values[0] <= self.limits[1]
        return values[0] + values[1] == values[2] if self.how == "sum" else _BETWEEN[self.how](*values)


def first_name(name: str) -> str:
    """Return the name of the case that a call repeats; that of the case itself if it repeats none."""
    return name.partition(AGAIN)[0]


def followers(task: Any, cases: Sequence[Any], rng: np.random.Generator) -> list[dict[str, _Inputs]]:
    """Return for each case of a write or repair task the calls behind it: their inputs by what is other, where anything is.

    `task`: it draws and answers. `cases`: which have been drawn.
    """
    draws = [[case.inputs for case in task.cases(rng)] for _ in range(_TRIES)]
    known = [[case.inputs for case in cases], *draws]
    everything = [inputs for drawn in known for inputs in drawn]
    relations = _relations(everything)
    function = task.handed_in(task.answer)

    def answered(inputs: _Inputs) -> Result:
        return run(function, [inputs], task.call, is_ours=True)[0]

    found: list[dict[str, _Inputs]] = []
    for number, case in enumerate(cases):
        redrawn = next((drawn[number] for drawn in draws if len(drawn) > number and _alike(drawn[number], case.inputs)), case.inputs)
        other = _with_others(case.inputs, redrawn, everything, relations, answered, rng)
        calls = {} if _same(redrawn, case.inputs) else {f"{AGAIN}other numbers": redrawn}
        if moved := [name for name, value in other.items() if not _same(value, redrawn[name])]:
            calls[f"{AGAIN}another {' and another '.join(moved)}"] = other
        found.append(calls)
    return found


def _with_others(
    inputs: _Inputs,
    redrawn: _Inputs,
    known: Sequence[_Inputs],
    relations: Sequence[_Relation],
    answered: Callable[[_Inputs], Result],
    rng: np.random.Generator,
) -> _Inputs:
    """Give the arguments that are set by hand, one after the other, another value where one fits."""
    bounded = {relation.names[0] for relation in relations if relation.how in _BOUNDS}
    kept = [name for name, value in inputs.items() if _same(value, redrawn[name]) and (type(value) is not int or name in bounded)]
    if not kept:
        return redrawn
    before, found = answered(inputs), dict(redrawn)
    for name in kept:
        for value in _others(name, found[name], known, rng):
            tried = {**found, name: value}
            if all(relation.holds(_sizes(tried)) for relation in relations) and _as_before(answered(tried), before):
                found = tried
                break
    return found


def _others(name: str, value: Any, known: Sequence[_Inputs], rng: np.random.Generator) -> Iterator[Any]:
    """Other values for an argument, the most unlike first."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
        for _ in range(3):
            if not np.array_equal(moved := rng.permutation(value.ravel()).reshape(value.shape), value):
                yield moved
        yield value - 1
        yield value + 1
    elif type(value) is int:
        seen = sorted({inputs[name] for inputs in known if type(inputs.get(name)) is int} - {value})
        yield from rng.permutation(seen).tolist()
    elif isinstance(value, float) and value and np.isfinite(value):
        yield value * float(rng.choice([0.8, 0.9, 1.1, 1.25]))


def _relations(known: Sequence[_Inputs]) -> list[_Relation]:
    """What holds between the sizes and whole numbers of all cases, and is about a whole number."""
    sizes = [_sizes(inputs) for inputs in known]
    names = [name for name in sizes[0] if all(name in each for each in sizes)]
    whole = [name for name in names if not name.endswith("]")]
    found = [_Relation("within", (one,), (min(each[one] for each in sizes), max(each[one] for each in sizes))) for one in whole]
    found += [_Relation(how, (one, two)) for how in _BETWEEN for one, two in itertools.permutations(names, 2) if one in whole]
    found += [_Relation("sum", three) for three in itertools.product(whole, names, names)]
    return [relation for relation in found if all(map(relation.holds, sizes))]


def _sizes(inputs: _Inputs) -> dict[str, float]:
    """Whole numbers by name, those of an array by their sum and bounds, and sizes of arrays, counted from the last axis."""
    found: dict[str, float] = {}
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            found[f"{name}[axes]"] = value.ndim
            found |= {f"{name}[{axis}]": size for axis, size in zip(range(-value.ndim, 0), value.shape, strict=True)}
            if value.dtype.kind in "iu" and value.size:
                found |= {f"{name}, {what}": int(getattr(value, what)()) for what in ("sum", "min", "max")}
        elif type(value) is int:
            found[name] = value
    return found


def _as_before(result: Result, before: Result) -> bool:
    """Whether the task's own answer gives as many results, as finite and about as large."""
    if result.arrays is None or before.arrays is None or len(result.arrays) != len(before.arrays):
        return False
    for array, old in zip(result.arrays, before.arrays, strict=True):
        if np.isfinite(old).all() and not np.isfinite(array).all():
            return False
        large, small = (np.abs(part[np.isfinite(part)]).max(initial=0.0) for part in (array, old))
        if large > _LARGER * max(small, 1.0):
            return False
    return True


def _alike(one: Any, other: Any) -> bool:
    """Whether two inputs have the same form."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.shape == other.shape and one.dtype == other.dtype
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and [*one] == [*other] and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other)


def _same(one: Any, other: Any) -> bool:
    """Whether two inputs of the same form hold the same."""
    if isinstance(one, np.ndarray):
        return one.tobytes() == other.tobytes()
    if isinstance(one, Mapping):
        return all(_same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return all(map(_same, one, other))
    return bool(one == other)
