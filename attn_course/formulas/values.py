"""Values of formulas: arrays with a declared form, and what may be done with them.

The data of a value have one axis for each index letter of the formula (of length 1 where the value does not depend on it), then the
axes of a list, then those of its form. So every formula is evaluated for all its indices at once, by broadcasting. Data are float64
(complex where an imaginary unit is given) or SymPy objects; the same code serves both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attn_course.formulas.errors import Malformed

FORM_AXES = {
    "scalar": 0,
    "vector": 1,
    "tuple": 1,
    "set": 1,
    "powers": 1,
    "row": 2,
    "column": 2,
    "matrix": 2,
    "identity": 0,
    "unit": 1,
    "opaque": 0,
}
FLAT = ("vector", "tuple", "row", "column")
RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Value:
    """An array that knows its form: an orientation is declared, never read off a shape.

    `identity` and `unit` (an index, and the number that stands there) have no size yet, and a `stretch` axis of length 1 (that of a vector
    of ones) takes the length of its neighbour. `starts` says from which number each axis is counted; `states` may have one entry more
    than there are steps.
    """

    data: np.ndarray
    form: str = "scalar"
    lists: int = 0
    starts: tuple[int, ...] = ()
    stretch: tuple[bool, bool] = (False, False)
    states: bool = False

    @property
    def letters(self) -> int:
        """How many axes belong to index letters."""
        return self.data.ndim - self.lists - FORM_AXES[self.form]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes of its form."""
        return self.data.shape[self.letters + self.lists :]

    @property
    def indexed(self) -> np.ndarray:
        """The data with an axis for each index it may carry: a row and a column carry one."""
        return self.data[..., 0, :] if self.form == "row" else self.data[..., 0] if self.form == "column" else self.data

    @property
    def exact(self) -> bool:
        """Whether the data are SymPy objects."""
        return self.data.dtype == object

    def start(self, axis: int) -> int:
        """From which number an axis is counted that an index runs over."""
        return self.starts[axis] if axis < len(self.starts) else 1

    def like(self, data: np.ndarray) -> "Value":
        """Return other data in the same form."""
        return Value(data, self.form, self.lists, (), self.stretch)

    def __str__(self) -> str:
        if self.lists:
            return f"a list of {self.data.shape[self.letters]} {self.form}s"
        size = " x ".join("n" if stretch else str(length) for length, stretch in zip(self.shape, self.stretch, strict=False))
        match self.form:
            case "scalar":
                return "a number"
            case "matrix":
                return f"a {size} matrix"
            case "row" | "column":
                return f"a {self.form} ({size})"
            case "vector" | "tuple" | "powers":
                return f"a vector of {self.shape[0]}"
            case "identity":
                return "a multiple of I"
            case "set":
                return "a set"
        return f"an {self.form} value" if self.form == "opaque" else "a unit vector"


def lifted(data: np.ndarray, axes: int) -> np.ndarray:
    """Return the data of a scalar with axes to broadcast over a form."""
    return data[(..., *[None] * axes)]


def one_by_one(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Apply a function of Python objects to every entry."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def entrywise(name: str, value: Value) -> Value:
    """Apply a function to every entry; e to a matrix is entrywise too."""
    if value.form in ("identity", "unit", "set", "opaque") or value.lists:
        raise Malformed(f"{name} of {value} has no meaning")
    if value.exact:
        import sympy

        exact = {"ln": "log", "floor": "floor", "ceil": "ceiling", "Re": "re", "abs": "Abs"}.get(name, name)
        return value.like(one_by_one(getattr(sympy, exact), value.data))
    named: dict[str, Callable[..., np.ndarray]] = {"ln": np.log, "Re": np.real, "abs": np.abs}
    return value.like((named.get(name) or getattr(np, name))(value.data))


def fitted(left: Value, right: Value) -> tuple[np.ndarray, np.ndarray, Value]:
    """Return the data of two values of one form, broadcast to each other, and a value of that form.

    Raises
    ------
    Malformed
        If orientations or lengths differ.
    """
    if left.lists or right.lists:
        raise Malformed(f"{left if left.lists else right} stands where one of its entries is wanted: give it an index")
    if left.form != right.form:
        left, right = _same_form(left, right), _same_form(right, left)
    if left.form != right.form or "opaque" in (left.form, right.form):
        raise Malformed(f"left is {left}, right is {right}")
    for ours, theirs, *stretch in zip(left.shape, right.shape, left.stretch, right.stretch, strict=False):
        if ours != theirs and not any(stretch):
            raise Malformed(f"left is {left}, right is {right}")
    both = tuple(a and b for a, b in zip(left.stretch, right.stretch, strict=True))
    return left.data, right.data, Value(left.data, left.form, 0, (), (both[0], both[1]))


def _same_form(value: Value, other: Value) -> Value:
    """Give a value the form of another where what it is leaves that open: tuples, ones, I, unit vectors."""
    if other.form in FLAT and value.form == "tuple":
        return oriented(value.data, other.form)
    if other.form == "vector" and value.form == "column" and value.stretch[0]:
        return Value(value.data[..., 0], "vector", stretch=(True, False))
    if other.form in FLAT and value.form == "unit":
        where, factor = value.data[..., :1], value.data[..., 1:]
        return oriented((where == np.arange(1, other.indexed.shape[-1] + 1)) * factor, other.form)
    if other.form == "matrix" and value.form == "identity":
        if other.shape[0] != other.shape[1]:
            raise Malformed(f"I is square, and its neighbour is {other}")
        return Value(lifted(value.data, 2) * np.eye(other.shape[0], dtype=int), "matrix")
    if other.form == "matrix" and value.form in ("row", "column") and any(value.stretch):
        return replace(value, form="matrix")
    return value


def oriented(data: np.ndarray, form: str) -> Value:
    """Return entries along the last axis as a vector, a row or a column."""
    return Value(data[..., None, :] if form == "row" else data[..., None] if form == "column" else data, form)


def scaled(scalar: Value, value: Value) -> Value:
    """Return a number times a value."""
    if value.lists:
        raise Malformed(f"{value} stands where one of its entries is wanted: give it an index")
    if value.form in ("set", "opaque", "powers"):
        raise Malformed(f"a number times {value} has no meaning")
    if value.form == "unit":
        return Value(np.stack(np.broadcast_arrays(value.data[..., 0], value.data[..., 1] * scalar.data), axis=-1), "unit")
    return value.like(lifted(scalar.data, FORM_AXES[value.form]) * value.data)


def product(left: Value, right: Value) -> Value:
    """Return the product of two factors side by side: of numbers, of a number and anything, of rows, columns and matrices."""
    if left.lists or right.lists:
        raise Malformed(f"{left if left.lists else right} stands where one of its entries is wanted: give it an index")
    if left.form == "unit" or right.form == "unit":
        left, right = (right, left) if left.form == "unit" else (left, right)
        if left.form != "scalar":
            raise Malformed("a unit vector stands in sums, and behind a number")
    if left.form in ("scalar", "identity"):
        return scaled(left, right)
    if right.form in ("scalar", "identity"):
        return scaled(right, left)
    forms = (left.form, right.form)
    if any(FORM_AXES[form] != 2 for form in forms):
        raise Malformed(rf"{left} times {right}: a vector must be declared as a row or a column, or write \cdot or \odot")
    if not ((left.form != "column" and right.form != "row") or forms == ("column", "row")):
        raise Malformed(f"{left} times {right}: the lengths in the middle differ")
    a, b = left.data, right.data
    if left.shape[1] != right.shape[0]:
        if not (left.stretch[1] or right.stretch[0]):
            raise Malformed(f"{left} times {right}: the lengths in the middle differ")
        a = np.broadcast_to(a, (*a.shape[:-1], max(left.shape[1], right.shape[0])))
        b = np.broadcast_to(b, (*b.shape[:-2], a.shape[-1], b.shape[-1]))
    elif left.stretch[1] and right.stretch[0]:
        raise Malformed("the length of the ones is not known")
    data = a @ b
    match (left.form, right.form):
        case ("row", "column"):
            return Value(data[..., 0, 0])
        case ("row", _):
            return Value(data, "row", stretch=(False, right.stretch[1]))
        case (_, "column"):
            return Value(data, "column", stretch=(left.stretch[0], False))
    return Value(data, "matrix", stretch=(left.stretch[0], right.stretch[1]))


def dot(left: Value, right: Value) -> Value:
    """Return the dot product of two vectors of one orientation, or a product with a number."""
    if "scalar" in (left.form, right.form):
        return product(left, right)
    a, b, fit = fitted(left, right)
    if fit.form not in FLAT or any(fit.stretch):
        raise Malformed(f"the dot product of {left} and {right} has no meaning")
    both = a * b
    return Value(both.sum(axis=-1) if fit.form in ("vector", "tuple") else both.sum(axis=(-2, -1)))


def power(base: Value, exponent: Value) -> Value:
    """Return a power: of a number, entrywise of a vector, of a matrix with itself; with a list of exponents their product."""
    if exponent.form == "powers":
        if base.form not in FLAT:
            raise Malformed(f"{base} to several exponents has no meaning")
        return Value((base.data.reshape((*base.data.shape[: base.letters], -1)) ** exponent.data).prod(axis=-1))
    if exponent.form != "scalar" or base.lists or base.form in ("set", "opaque", "unit", "identity", "powers"):
        raise Malformed(f"{base} to the power of {exponent} has no meaning")
    if base.form != "matrix":
        if base.exact and np.any([abs(number) > 1000 for number in exponent.data.flat if getattr(number, "is_number", True)]):
            raise Malformed("the exponent is too large to be exact")
        exponents = lifted(exponent.data, FORM_AXES[base.form])
        return base.like(base.data**exponents)
    if exponent.data.size != 1 or not abs(times := float(exponent.data.item())) <= 1000 or times != int(times):
        raise Malformed("a matrix is raised to one whole power, at most 1000")
    if base.shape[0] != base.shape[1]:
        raise Malformed(f"a power of {base} has no meaning: it is not square")
    if base.exact:
        import sympy

        flat = base.data.reshape((-1, *base.shape))
        return base.like(np.array([np.array(sympy.Matrix(one) ** int(times), dtype=object) for one in flat]).reshape(base.data.shape))
    try:
        return base.like(np.linalg.matrix_power(base.data, int(times)))
    except np.linalg.LinAlgError:
        raise Malformed("the matrix has no inverse") from None


def transposed(value: Value) -> Value:
    """Return the transpose of a row, a column or a matrix."""
    if value.lists or FORM_AXES[value.form] != 2:
        if value.form == "identity":
            return value
        raise Malformed(f"{value} has no transpose" + (": declare it as a row or a column" if value.form in ("vector", "tuple") else ""))
    form = {"row": "column", "column": "row"}.get(value.form, "matrix")
    return Value(np.swapaxes(value.data, -1, -2), form, 0, value.starts[::-1], (value.stretch[1], value.stretch[0]))


def softmax(value: Value, columns: bool = False) -> Value:
    """Return the softmax of a vector over its entries, of a matrix over each row (or each column); all of minus infinity gives 0."""
    if value.form not in (*FLAT, "matrix") or value.lists:
        raise Malformed(f"softmax of {value} has no meaning")
    axis = -2 if value.form == "column" or (columns and value.form == "matrix") else -1
    if value.exact:
        shifted = entrywise("exp", value).data
    else:
        largest = value.data.max(axis=axis, keepdims=True)
        shifted = np.exp(value.data - np.where(np.isneginf(largest), 0, largest))
    total = shifted.sum(axis=axis, keepdims=True)
    return value.like(shifted / total if value.exact else np.divide(shifted, total, out=np.zeros_like(shifted), where=total != 0))


def length(value: Value, norm: str = "2") -> Value:
    """Return a norm of a vector (1 or 2) or of a matrix (F, or 2: the largest singular value)."""
    if value.lists or value.form not in (*FLAT, "matrix") or (value.form == "matrix") != (norm in ("F", "2F", "S")):
        raise Malformed(f"the norm of {value} has no meaning" + (r": write \|.\|_2 or \|.\|_F" if value.form == "matrix" else ""))
    axes = tuple(range(-FORM_AXES[value.form], 0))
    if norm == "S":
        if value.exact:
            raise Malformed("the largest singular value is not computed symbolically")
        return Value(np.linalg.norm(value.data, ord=2, axis=(-2, -1)))
    if norm == "1":
        return Value(entrywise("abs", value).data.sum(axis=axes))
    squares = (value.data**2 if value.exact else np.abs(value.data) ** 2).sum(axis=axes)
    return entrywise("sqrt", Value(squares))


def rank(value: Value) -> Value:
    """Return the rank of a matrix: how many singular values exceed 1e-12 of the largest."""
    if value.form != "matrix" or value.lists:
        raise Malformed(f"the rank of {value} has no meaning")
    sizes = np.linalg.svd(value.data.astype(float), compute_uv=False)
    return Value((sizes > RANK_TOLERANCE * sizes.max(axis=-1, keepdims=True)).sum(axis=-1).astype(float))


def blocks(rows: Sequence[Sequence[Value]]) -> Value:
    """Put numbers, rows, columns and matrices side by side and on top of each other."""
    cells = [cell for row in rows for cell in row]
    if any(cell.lists or cell.form not in ("scalar", "matrix", *FLAT) for cell in cells):
        raise Malformed("blocks are numbers, rows, columns and matrices, not lists of them")
    if (
        all(cell.form in ("scalar", "vector", "tuple") for cell in cells)
        and len(rows) == 1
        and any(cell.form != "scalar" for cell in cells)
    ):
        return Value(_joined([lifted(cell.data, 1) if cell.form == "scalar" else cell.data for cell in cells], -1, own=1), "vector")
    one_row = len(rows) == 1 and all(cell.form in ("scalar", "row") for cell in cells)
    one_column = len(rows[0]) == 1 and all(cell.form in ("scalar", "column") for cell in cells)
    joined = []
    for row in rows:
        tables = [lifted(cell.data, 2) if cell.form == "scalar" else cell.data for cell in row]
        tall = max(table.shape[-2] for table in tables)
        stretched = [
            np.broadcast_to(table, (*table.shape[:-2], tall, table.shape[-1])) if cell.stretch[0] else table
            for table, cell in zip(tables, row, strict=True)
        ]
        joined.append(_joined(stretched, -1))
    return Value(_joined(joined, -2), "row" if one_row else "column" if one_column else "matrix")


def _joined(arrays: Sequence[np.ndarray], axis: int, own: int = 2) -> np.ndarray:
    """Concatenate along an axis, broadcasting the axes of the letters, that is all but the last `own`."""
    lead = np.broadcast_shapes(*(array.shape[:-own] for array in arrays))
    try:
        return np.concatenate([np.broadcast_to(array, (*lead, *array.shape[-own:])) for array in arrays], axis=axis)
    except ValueError:
        raise Malformed("the blocks do not fit together") from None


def gathered(data: np.ndarray, letters: int, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the entries at places that depend on the letters, of the axes behind those of the letters."""
    lead = data.shape[:letters]
    if math.prod(lead) == 1:
        return data[(0,) * letters][tuple(places)]
    grid = [np.arange(size).reshape([size if axis == other else 1 for other in range(letters)]) for axis, size in enumerate(lead)]
    return data[(*grid, *places)]
