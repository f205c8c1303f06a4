"""Values of formulas: arrays with a declared form, and what may be done with them.

The data of a value have one axis for each index letter of the formula (of length 1 where the value does not depend on it), then the
axes of a list, then those of its form. So every formula is evaluated for all its indices at once, by broadcasting. Data are float64,
or complex where an imaginary unit is given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attn_course.formulas.errors import Malformed

FORM_AXES = dict.fromkeys(("scalar", "identity", "opaque"), 0) | dict.fromkeys(("vector", "tuple", "set", "powers", "unit"), 1)
FORM_AXES |= dict.fromkeys(("row", "column", "matrix"), 2)
FLAT = ("vector", "tuple", "row", "column")
RANK_TOLERANCE = 1e-12
SPELLINGS = {"ln": "log", "Re": "real"}  # in NumPy
_SAID = {"scalar": "a number", "identity": "a multiple of I", "set": "a set", "opaque": "an opaque value", "unit": "a unit vector"}


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

    def start(self, axis: int) -> int:
        """From which number an axis is counted that an index runs over."""
        return self.starts[axis] if axis < len(self.starts) else 1

    def like(self, data: np.ndarray) -> "Value":
        """Return other data in the same form."""
        return Value(data, self.form, self.lists, (), self.stretch)

    def __str__(self) -> str:
        if self.lists:
            return f"a list of {self.data.shape[self.letters]} {'matrices' if self.form == 'matrix' else self.form + 's'}"
        if self.form in _SAID:
            return _SAID[self.form]
        size = " x ".join("n" if stretch else str(length) for length, stretch in zip(self.shape, self.stretch, strict=False))
        if self.form == "matrix":
            return f"a {size} matrix"
        return f"a {self.form} ({size})" if self.form in ("row", "column") else f"a vector of {size}"


def check_form(what: str, value: Value, *forms: str) -> None:
    """Complain unless a value is one of those forms, and no list of them."""
    if value.lists or value.form not in forms:
        raise Malformed(f"{what} of {value} has no meaning" + ": it wants numbers" * (forms == ("scalar",)))


def check_single(*values: Value) -> None:
    """Complain of a list that stands where one of its entries is wanted."""
    for value in values:
        if value.lists:
            raise Malformed(f"{value} stands where one of its entries is wanted: give it an index")


def lifted(data: np.ndarray, axes: int) -> np.ndarray:
    """Return the data of a scalar with axes to broadcast over a form."""
    return data[(..., *[None] * axes)]


def floats(value: Value) -> np.ndarray:
    """Return real numbers as floats."""
    if value.data.dtype.kind == "c":
        raise Malformed("complex numbers cannot stand here")
    return value.data.astype(float)


def entrywise(name: str, value: Value) -> Value:
    """Apply a function to every entry; e to a matrix is entrywise too."""
    check_form(name, value, "scalar", "matrix", "powers", *FLAT)
    return value.like(getattr(np, SPELLINGS.get(name, name))(value.data))


def fitted(left: Value, right: Value) -> tuple[np.ndarray, np.ndarray, Value]:
    """Return the data of two values of one form, and a value of that form; other orientations or lengths are malformed."""
    check_single(left, right)
    if left.form != right.form:
        left, right = _same_form(left, right), _same_form(right, left)
    stretched = [any(pair) for pair in zip(left.stretch, right.stretch, strict=True)]
    differ = any(a != b and not any_length for a, b, any_length in zip(left.shape, right.shape, stretched, strict=False))
    if left.form != right.form or left.form == "opaque" or differ:
        raise Malformed(f"left is {left}, right is {right}")
    both = (left.stretch[0] and right.stretch[0], left.stretch[1] and right.stretch[1])
    return left.data, right.data, Value(left.data, left.form, 0, (), both)


def _same_form(value: Value, other: Value) -> Value:
    """Give a value the form of another where what it is leaves that open: tuples, ones, I, unit vectors."""
    if other.form in FLAT and value.form == "tuple":
        return oriented(value.data, other.form)
    if other.form == "vector" and value.form == "column" and value.stretch[0]:
        return Value(value.data[..., 0], "vector", stretch=(True, False))
    if other.form in ("row", "column") and value.form == "vector" and not any(other.stretch):
        return oriented(value.data, other.form)
    if other.form in FLAT and value.form == "unit":
        where, factor = value.data[..., :1], value.data[..., 1:]
        return oriented((where == np.arange(1, other.indexed.shape[-1] + 1)) * factor, other.form)
    if other.form == "matrix" and value.form == "identity":
        if other.shape[0] != other.shape[1] and not any(other.stretch):
            raise Malformed(f"I is square, and its neighbour is {other}")
        return Value(lifted(value.data, 2) * np.eye(max(other.shape), dtype=int), "matrix")
    if other.form == "matrix" and value.form in ("row", "column") and any(value.stretch):
        return replace(value, form="matrix")
    return value


def oriented(data: np.ndarray, form: str) -> Value:
    """Return entries along the last axis as a vector, a row or a column."""
    return Value(data[..., None, :] if form == "row" else data[..., None] if form == "column" else data, form)


def spread(number: Value, value: Value) -> Value:
    """Return a number as a vector in the form of a value that is one, else as it is."""
    if value.form not in FLAT or value.lists:
        return number
    return value.like(lifted(number.data, FORM_AXES[value.form]) + np.zeros_like(value.data))


def scaled(scalar: Value, value: Value, by: np.ufunc = np.multiply) -> Value:
    """Return a value multiplied (or divided) by a number."""
    check_single(value)
    if value.form in ("set", "opaque", "powers"):
        raise Malformed(f"{value} has no multiples")
    if value.form == "unit":
        return Value(np.stack(np.broadcast_arrays(value.data[..., 0], by(value.data[..., 1], scalar.data)), axis=-1), "unit")
    return value.like(by(value.data, lifted(scalar.data, FORM_AXES[value.form])))


def product(left: Value, right: Value) -> Value:
    """Return the product of two factors side by side: of numbers, of a number and anything, of rows, columns and matrices."""
    check_single(left, right)
    for one, other in ((left, right), (right, left)):
        if one.form in ("scalar", "identity"):
            return scaled(one, other)
    left, right, flat = _beside(left, right)
    if flat:
        found = product(left, right)
        return Value(found.indexed, "vector") if found.form in ("row", "column") else found
    if FORM_AXES[left.form] != 2 or FORM_AXES[right.form] != 2:
        instead = r"write \cdot for the dot product, \odot entry by entry, or give them indices"
        raise Malformed(f"{left} times {right} has no meaning side by side: {instead}")
    middle, any_length = (left.shape[1], right.shape[0]), (left.stretch[1], right.stretch[0])
    outer = left.form == "column" or right.form == "row"
    if (outer and (left.form, right.form) != ("column", "row")) or (middle[0] != middle[1] and not any(any_length)):
        if left.form == right.form != "matrix" and left.shape == right.shape:
            raise Malformed(rf"two {left.form}s of {max(left.shape)}: for their dot product write \cdot")
        raise Malformed(f"{left} times {right}: the lengths in the middle differ")
    if all(any_length):
        raise Malformed("the length of the ones is not known")
    a, b = left.data, right.data
    if middle[0] != middle[1]:
        a = np.broadcast_to(a, (*a.shape[:-1], max(middle)))
        b = np.broadcast_to(b, (*b.shape[:-2], max(middle), b.shape[-1]))
    if left.form == "row":
        return Value((a @ b)[..., 0, 0]) if right.form == "column" else Value(a @ b, "row", stretch=(False, right.stretch[1]))
    if right.form == "column":
        return Value(a @ b, "column", stretch=(left.stretch[0], False))
    return Value(a @ b, "matrix", stretch=(left.stretch[0], right.stretch[1]))


def _beside(left: Value, right: Value) -> tuple[Value, Value, bool]:
    """Orient a unit vector, or a vector that is neither row nor column, as its neighbour wants it; and whether a vector was."""
    if left.form == "unit" and right.form in ("matrix", "column"):
        return transposed(_same_form(left, Value(right.data[..., :1], "column"))), right, False
    if right.form == "unit" and left.form in ("matrix", "row"):
        return left, _same_form(right, Value(np.swapaxes(left.data, -1, -2)[..., :1], "column")), False
    if "unit" in (left.form, right.form):
        raise Malformed("a unit vector stands in sums, behind a number, and beside a matrix")
    if right.form == "vector" and left.form in ("matrix", "row"):
        return left, Value(right.data[..., None], "column", stretch=(right.stretch[0], False)), True
    if left.form == "vector" and right.form == "row":
        return Value(left.data[..., None], "column", stretch=(left.stretch[0], False)), right, True
    if left.form == "vector" and right.form == "matrix":
        return Value(left.data[..., None, :], "row", stretch=(False, left.stretch[0])), right, True
    return left, right, False


def outer(left: Value, right: Value) -> Value:
    r"""Return the outer product of two vectors, a \otimes b, of two matrices Kronecker's."""
    check_single(left, right)
    if left.form == right.form == "matrix":
        both = left.data[..., :, None, :, None] * right.data[..., None, :, None, :]
        return Value(both.reshape((*both.shape[:-4], left.shape[0] * right.shape[0], left.shape[1] * right.shape[1])), "matrix")
    if left.form not in FLAT or right.form not in FLAT:
        raise Malformed(rf"\otimes of {left} and {right} has no meaning")
    return Value(left.indexed[..., :, None] * right.indexed[..., None, :], "matrix", stretch=(any(left.stretch), any(right.stretch)))


def dot(left: Value, right: Value) -> Value:
    """Return the dot product of two vectors of one orientation, or a product with a number."""
    if "scalar" in (left.form, right.form):
        return product(left, right)
    single = not (left.lists or right.lists)
    if single and left.form in ("matrix", "row") and right.form in ("matrix", "column") and "matrix" in (left.form, right.form):
        return product(left, right)
    if single and ("matrix" in (left.form, right.form) or {left.form, right.form} == {"row", "column"}):
        raise Malformed(f"the dot product of {left} and {right} has no meaning: write them side by side, without \\cdot")
    try:
        a, b, fit = fitted(left, right)
    except Malformed as error:
        raise Malformed(f"{error.problem}: write their dot product as a sum over an index") from None
    if fit.form not in FLAT or any(fit.stretch):
        raise Malformed(f"the dot product of {left} and {right} has no meaning")
    both = a * b
    return Value(both.sum(axis=-1) if fit.form in ("vector", "tuple") else both.sum(axis=(-2, -1)))


def power(base: Value, exponent: Value) -> Value:
    """Return a power: of a number, entrywise of a vector, of a matrix with itself; with a list of exponents their product."""
    if exponent.form == "powers" and base.form in FLAT:
        return Value((base.data.reshape((*base.data.shape[: base.letters], -1)) ** exponent.data).prod(axis=-1))
    check_single(base)
    if exponent.form != "scalar" or base.form not in ("scalar", "matrix", *FLAT):
        raise Malformed(f"{base} to the power of {exponent} has no meaning")
    if base.form != "matrix":
        return base.like(base.data ** lifted(exponent.data, FORM_AXES[base.form]))
    if exponent.data.size != 1 or not abs(times := float(exponent.data.item())) <= 1000 or times != int(times):
        raise Malformed("a matrix is raised to one whole power, at most 1000")
    if base.shape[0] != base.shape[1]:
        raise Malformed(f"a power of {base} has no meaning: it is not square")
    try:
        return base.like(np.linalg.matrix_power(base.data, int(times)))
    except np.linalg.LinAlgError:
        raise Malformed("the matrix has no inverse") from None


def transposed(value: Value) -> Value:
    """Return the transpose of a row, a column or a matrix."""
    if value.form in ("identity", "unit"):
        return value
    if value.form == "vector" and not value.lists:  # it stands where a column would
        return Value(value.data[..., None, :], "row", stretch=(False, value.stretch[0]))
    if value.lists or FORM_AXES[value.form] != 2:
        raise Malformed(
            f"{value} has no transpose" + r": it is neither row nor column; for a dot product write \cdot" * (value.form in FLAT)
        )
    form = {"row": "column", "column": "row"}.get(value.form, "matrix")
    return Value(np.swapaxes(value.data, -1, -2), form, 0, value.starts[::-1], (value.stretch[1], value.stretch[0]))


def softmax(value: Value, columns: bool = False) -> Value:
    """Return the softmax of a vector over its entries, of a matrix over each row (or each column); all of minus infinity gives 0."""
    if value.form == "scalar" and not value.lists:
        raise Malformed(r"softmax of a number has no meaning: for the logistic function write \frac{1}{1 + e^{-x}}")
    check_form("softmax", value, *FLAT, "matrix")
    axis = -2 if value.form == "column" or (columns and value.form == "matrix") else -1
    largest = value.data.max(axis=axis, keepdims=True)
    shifted = np.exp(value.data - np.where(np.isneginf(largest), 0, largest))
    total = shifted.sum(axis=axis, keepdims=True)
    return value.like(np.divide(shifted, total, out=np.zeros_like(shifted), where=total != 0))


def length(value: Value, norm: str = "") -> Value:
    """Return a norm of a vector (2, 1, infinity) or of a matrix (F, 2: the largest singular value, *: the sum of all)."""
    matrix = value.form == "matrix"
    if value.lists or value.form not in (*FLAT, "matrix") or norm not in (("2", "F", "*") if matrix else ("", "1", "2", r"\infty")):
        raise Malformed(f"the norm of {value} has no meaning" + r": write \|.\|_2 or \|.\|_F" * matrix)
    axes = tuple(range(-FORM_AXES[value.form], 0))
    if matrix and norm != "F":
        return Value(np.linalg.norm(value.data, ord=2 if norm == "2" else "nuc", axis=axes))
    sizes = np.abs(value.data)
    if norm == r"\infty":
        return Value(sizes.max(axis=axes))
    return Value(sizes.sum(axis=axes)) if norm == "1" else entrywise("sqrt", Value((sizes**2).sum(axis=axes)))


def rank(value: Value) -> Value:
    """Return the rank of a matrix: how many singular values exceed 1e-12 of the largest."""
    check_form("the rank", value, "matrix")
    sizes = np.linalg.svd(floats(value), compute_uv=False)
    return Value((sizes > RANK_TOLERANCE * sizes.max(axis=-1, keepdims=True)).sum(axis=-1).astype(float))


def blocks(rows: Sequence[Sequence[Value]]) -> Value:
    """Put numbers, rows, columns and matrices side by side and on top of each other."""
    cells = [cell for row in rows for cell in row]
    for cell in cells:
        check_form("a block", cell, "scalar", "matrix", *FLAT)
    forms = {cell.form for cell in cells}
    if len(rows) == 1 and forms <= {"scalar", "vector", "tuple"} and forms != {"scalar"}:
        return Value(_joined([lifted(cell.data, 1) if cell.form == "scalar" else cell.data for cell in cells], -1, own=1), "vector")
    joined = []
    for row in rows:
        tables = [lifted(cell.data, 2) if cell.form == "scalar" else cell.data for cell in row]
        tall = max(table.shape[-2] for table in tables)
        for place, (table, cell) in enumerate(zip(tables, row, strict=True)):
            if cell.stretch[0]:
                tables[place] = np.broadcast_to(table, (*table.shape[:-2], tall, table.shape[-1]))
        joined.append(_joined(tables, -1))
    one_row, one_column = len(rows) == 1 and forms <= {"scalar", "row"}, len(rows[0]) == 1 and forms <= {"scalar", "column"}
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
