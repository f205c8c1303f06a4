"""The types of givens: what a symbol of a formula stands for, with its orientation, where it is counted from, and what it depends on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from attn_course.formulas.errors import Malformed
from attn_course.formulas.values import FORM_AXES, Value, oriented

DIFFERENCES = 5e-11  # what a derivative by central differences is good for, in parts of the largest number met
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))  # central differences of order 6
BY_AXES = ("scalar", "vector", "matrix", "matrix")  # the form of a plain array of so many axes; of more it is a list of matrices
MOST_KNOWN = 8192  # values of givens that are computed from others
STEP = 2.0**-11  # of a first derivative; round-off makes the step of a second one larger


@dataclass(frozen=True)
class Given:
    """An array with a form; `start` says from which number its positions are counted, one for each axis where they differ."""

    raw: Any
    form: str
    start: int | tuple[int, ...] = 1
    states: bool = False
    noise: float = 0.0  # by how much its entries may be off: derivatives by differences are not exact

    def value(self, letters: int) -> Value:
        """Return it as a value of a formula with so many index letters."""
        data = np.empty((), dtype=object)
        if self.form == "opaque":
            data[()] = self.raw
        else:
            data = np.asarray(self.raw)
        if self.form == "set":
            data = data.astype(bool)
        elif data.dtype.kind not in "fcO":
            data = data.astype(float)
        lists = data.ndim + (self.form in ("row", "column")) - FORM_AXES[self.form]
        if lists < 0:
            raise ValueError(f"a {self.form} wants an array of more axes; got the shape {data.shape}")
        data = oriented(data, self.form).data
        counted = lists + {"vector": 1, "set": 1, "matrix": 2}.get(self.form, 0)
        starts = self.start if isinstance(self.start, tuple) else (self.start,) * counted
        return Value(data[(None,) * letters], self.form, lists, starts, states=self.states)


@dataclass(frozen=True)
class Function:
    """A Python function of plain arrays; rows and columns come as one axis, indices beneath as whole numbers in front.

    One axis that it returns is oriented like its first row or column unless `returns` names a form; an `entrywise` function of numbers is
    called once for all indices. It gets the functions of those `names` in front of its arguments, as they are at the time. `formula`
    says the same in LaTeX, in letters that the equation has not, for a page on which no Python runs.
    """

    call: Callable[..., Any]
    returns: str | None = None
    start: int = 1
    entrywise: bool = False
    names: tuple[str, ...] = ()
    formula: str = ""


@dataclass(frozen=True)
class Of:
    """A given computed from others: call(name, ...) is any given, and is made again where a derivative or a limit changes one of them."""

    call: Callable[..., Any]
    names: tuple[str, ...]

    def at(self, arguments: Sequence[Any], name: str) -> "AnyGiven":
        """Return the given for these arguments; all changes of a formula move what it is differentiated by to the same places."""
        arrays = list(map(np.asarray, arguments))
        if any(array.dtype.hasobject for array in arrays):
            return as_given(called(self.call, arguments, name))
        key = tuple((array.shape, array.dtype.str, array.tobytes()) for array in arrays)
        if (self, *key) not in _KNOWN:
            if len(_KNOWN) >= MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[self, *key] = as_given(called(self.call, arguments, name))
        return _KNOWN[self, *key]


@dataclass(frozen=True)
class Range:
    """The values an index runs over: whole numbers, or lists of exponents (`powers`); call(name, ...) makes them."""

    call: Callable[..., np.ndarray]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """A random given: the first axis of the array lists its outcomes; random givens of one group share them and their weights."""

    weights: np.ndarray
    given: Given
    group: str = ""


AnyGiven: TypeAlias = Given | Function | Of | Range | Outcomes
Start: TypeAlias = int | tuple[int, ...]
_KNOWN: dict[tuple[Any, ...], AnyGiven] = {}  # by an `Of` and its arguments


class Size(int):
    """A whole number that a formula may name, or not: how long the arrays are that it is of."""


class Open:
    """A name that is cut out of a formula as that of a given is, and not given: the formula may define it."""


def _given(entries: Any, form: str, start: Start = 1, states: bool = False) -> Given:
    return Given(entries.raw, form, start, states, entries.noise) if isinstance(entries, Given) else Given(entries, form, start, states)


def vector(entries: Any, start: Start = 1, *, states: bool = False) -> Given:
    """Return numbers in a list, without orientation: indices and dot products, but no transpose. More axes: a list of vectors."""
    return _given(entries, "vector", start, states)


def rows(entries: Any, start: Start = 1, *, states: bool = False) -> Given:
    """Return a row (1, n), or from a table a list of them, one in each row; with states=True it may be longer than there are steps."""
    return _given(entries, "row", start, states)


def columns(entries: Any, start: Start = 1, *, states: bool = False) -> Given:
    """Return a column (n, 1), or from a table a list of them, one in each row."""
    return _given(entries, "column", start, states)


row, column = rows, columns
function = Function


def matrix(entries: Any, start: Start = 1) -> Given:
    """Return a matrix; one index of it is a row."""
    return _given(entries, "matrix", start)


def matrices(entries: Any, start: Start = 1, *, states: bool = False) -> Given:
    """Return a list of matrices."""
    return _given(entries, "matrix", (start, 1, 1) if isinstance(start, int) else start, states)


def subset(members: Any, start: Start = 1) -> Given:
    """Return a set as a mask over its universe; a table of masks is a list of sets."""
    return Given(members, "set", start)


def opaque(thing: Any) -> Given:
    """Return a thing that only functions may touch."""
    return Given(thing, "opaque")


def of(call: Callable[..., Any], *names: str) -> Of:
    """Return a given that is computed from others, in the order of their names."""
    return Of(call, names)


def index(first: int, last: int) -> Range:
    """Return the range of an index that subscripts nothing."""
    return Range(lambda: np.arange(first, last + 1))


def powers(count: int, degree: int | str) -> Range:
    """Return all lists of `count` exponents with a sum of at most `degree`, a number or the name of a given."""

    def lists(degree: float) -> np.ndarray:
        grid = np.indices((int(degree) + 1,) * count).reshape(count, -1).T
        return grid[grid.sum(axis=1) <= degree]

    return Range(lists, (degree,)) if isinstance(degree, str) else Range(lambda: lists(degree))


def outcomes(weights: Any, given: Any, group: str = "") -> Outcomes:
    """Return a random given: `given` has one more axis, in front, and its entry i comes with the probability weights[i]; plain: numbers.

    Those of one group are enumerated together and may depend on each other; different groups are independent.
    """
    return Outcomes(np.asarray(weights, dtype=float), given if isinstance(given, Given) else Given(given, "scalar"), group)


def independent(values: ArrayLike, weights: ArrayLike, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all outcomes (len(values)^count, count) of so many independent variables, and their probabilities."""
    every = np.indices((np.size(values),) * count).reshape(count, -1).T
    return np.asarray(values, dtype=float)[every], np.asarray(weights, dtype=float)[every].prod(axis=1)


def normal_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss nodes and weights of a standard normal variable, exact for polynomials of degree 2 count - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def derivative(call: Callable[[np.ndarray], Any], at: Any) -> Given:
    """Return all derivatives of a function of one array by central differences, the axes of the argument last.

    A scalar function of a table gives a matrix, a vector function of a vector its Jacobian; wrap it in `row` or `column` to orient it.
    """
    at = np.asarray(at, dtype=float)
    found = np.moveaxis(slopes(lambda moved: np.asarray(call(moved), dtype=float), at), 0, -1)
    found = found.reshape((*found.shape[:-1], *at.shape))
    noise = DIFFERENCES * max(float(np.abs(part).max(initial=0.0)) for part in (call(at), found))
    return Given(found, BY_AXES[min(found.ndim, 3)], noise=noise)


def difference(call: Callable[[Any], Any], at: Any, step: Any) -> Any:
    """Return the derivative of a function along a step, by central differences."""
    return sum(weight * (call(at + count * step) - call(at - count * step)) for count, weight in STENCIL)


def slopes(call: Callable[[np.ndarray], Any], at: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return the derivatives of a function by every entry of its argument, along a first axis."""
    return slopes_of_many(lambda moved: np.array([call(one) for one in moved]), at, step)


def slopes_of_many(call: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return the same of a function that takes all changed arguments, along a first axis, in one call."""
    sizes = step * np.maximum(0.25, np.abs(at.ravel()))  # of its own size, near 0 of a quarter
    counts, weights = np.array([(sign * count, sign * weight) for count, weight in STENCIL for sign in (1, -1)]).T
    moves = np.multiply.outer(counts, np.diag(sizes)).reshape(-1, *at.shape)
    found = call(at + moves)
    found = np.tensordot(weights, found.reshape(len(counts), len(sizes), *found.shape[1:]), 1)
    return found / sizes.reshape(-1, *(1,) * (found.ndim - 1))


def as_given(thing: Any) -> AnyGiven:
    """Return a plain number, array or function as a given: one axis is a vector, two are a matrix, three a list of matrices."""
    if isinstance(thing, AnyGiven):
        return thing
    if callable(thing):
        return Function(thing)
    data = np.asarray(thing)
    if data.dtype == object and data.ndim == 0:
        return opaque(thing)
    return Given(thing, BY_AXES[min(data.ndim, 3)])


def is_range(given: Any) -> bool:
    """Whether a given is the declared range of an index."""
    return isinstance(given, Range)


def count(given: Any) -> int:
    """Count the numbers of a given."""
    raw = getattr(given, "raw", given)
    return raw.size if isinstance(raw, np.ndarray) else 1


def names_of(givens: Mapping[str, Any]) -> list[str]:
    """Return the names for the reader: those of functions end in "()", ranges of indices are no names."""
    kinds = {name: as_given(given) for name, given in givens.items()}
    return [name + "()" * isinstance(kind, Function) for name, kind in kinds.items() if not is_range(kind)]


def alike(one: Any, two: Any) -> bool:
    """Whether two givens are of one kind, but not the same: names of such givens can be mistaken for each other."""
    one, two = as_given(one), as_given(two)
    if isinstance(one, Outcomes) and isinstance(two, Outcomes):
        return alike(one.given, two.given)
    if isinstance(one, Given) and isinstance(two, Given):
        return one.form == two.form != "opaque" and np.ndim(one.raw) == np.ndim(two.raw) and not np.array_equal(one.raw, two.raw)
    return type(one) is type(two)


def aliases(name: str, givens: Mapping[str, Any], any_form: bool = False) -> set[str]:
    """Return the names of the arrays that are the same as that one, such as P and p: a matrix, and its entries."""
    one = as_given(givens[name])
    if not isinstance(one, Given) or one.form == "opaque" or not np.ndim(one.raw):
        return {name}
    others = {other: as_given(given) for other, given in givens.items()}
    same = {
        other
        for other, two in others.items()
        if isinstance(two, Given) and (any_form or two.form == one.form) and np.array_equal(one.raw, two.raw)
    }
    return {name} | same


def unrelated(givens: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return givens of the same types and shapes that have nothing to do with each other; whole numbers and functions stay."""
    return {name: _unrelated(as_given(given), rng) for name, given in givens.items()}


def _unrelated(given: AnyGiven, rng: np.random.Generator) -> AnyGiven:
    if isinstance(given, Outcomes):
        return replace(given, given=replace(given.given, raw=_other(given.given.raw, rng)))
    return replace(given, raw=_other(given.raw, rng)) if isinstance(given, Given) and given.form != "opaque" else given


def _other(raw: Any, rng: np.random.Generator) -> Any:
    data = np.asarray(raw)
    if data.dtype == bool:
        return rng.uniform(size=data.shape) < 0.6
    if data.dtype.kind not in "fc" or (np.isfinite(data).all() and np.array_equal(data, np.rint(data))):
        return raw
    other = np.exp(0.5 * rng.normal(size=data.shape))
    if np.nanmin(data.real) < 0:
        other = other * rng.choice([-1.0, 1.0], size=data.shape)
    if data.dtype.kind == "c":
        other = other * np.exp(1j * rng.normal(size=data.shape))
    return np.where(np.isfinite(data), other, data)


def called(call: Callable[..., Any], arguments: Sequence[Any], name: str) -> Any:
    """Call a function that is given; what it refuses is malformed."""
    try:
        return call(*arguments)
    except Malformed:
        raise
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError) as error:
        said = [" x ".join(map(str, np.shape(one))) or f"{one:g}" for one in arguments if not callable(one)]
        raise Malformed(f"{name} does not take these arguments: {', '.join(said)}") from error
