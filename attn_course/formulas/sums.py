"""What binds a letter: sums, products, extremes, sets by a condition, softmax over a running index, integrals."""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from attn_course.formulas import calculus
from attn_course.formulas.compiled import OWN
from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import larger
from attn_course.formulas.tree import Node, bound_in
from attn_course.formulas.values import Value, lifted, softmax

if TYPE_CHECKING:
    from attn_course.formulas.evaluate import Evaluation

MOST_ENTRIES = 1_000_000  # of one array: what a sum over all its indices may need
LINE = 128  # points of an integral over the whole line


def big(evaluation: "Evaluation", node: Node) -> Value:
    """Evaluate what stands behind sum, prod, max, min, arg max, arg min or lim, for all values of their indices."""
    domain, body = node.children
    if node.value == r"\lim":
        return calculus.limit(evaluation, domain, body)
    if node.value == r"\arg\min" and domain.children[0].kind == "name":
        return calculus.minimiser(evaluation, domain.children[0], body)
    inner = evaluation.here()
    letters: list[str] = []
    for item in domain.children:
        letter = bound_in(item)
        if letter not in letters and letter not in evaluation.letters:
            letters.append(letter)
            if item.kind == "range":
                between(inner, letter, item)
            else:
                inner.enter(letter, node)
        if item.kind == "chain":
            inner = inner.restricted(inner.truth(item))
    value = inner.value(body)
    axes = tuple(evaluation.formula.letters[letter] for letter in letters)
    return reduced(evaluation, node.value, value, inner, axes, letters)


def between(evaluation: "Evaluation", letter: str, item: Node) -> None:
    """Let a letter run between two bounds, which may depend on other letters."""
    low, high = (evaluation.value(bound) for bound in item.children[1:])
    if low.form != "scalar" or high.form != "scalar":
        raise Malformed("the bounds of an index are numbers", item.place)
    lows, highs = low.data.astype(float), high.data.astype(float)
    if not np.all(np.isfinite(lows)) or not np.all(np.isfinite(highs)) or highs.max() - lows.min() > MOST_ENTRIES:
        raise Malformed(f"{letter.rstrip(OWN)} runs over more than {MOST_ENTRIES:,} values", item.place)
    if np.any(lows != np.rint(lows)) or np.any(highs != np.rint(highs)):
        raise Malformed("the bounds of an index are whole numbers", item.place)
    evaluation.run_over(letter, np.arange(int(lows.min()), int(highs.max()) + 1))
    if lows.size > 1 or highs.size > 1:
        values = evaluation.letters[letter].data.astype(float)
        within = (values >= lows) & (values <= highs)
        evaluation.mask = within if evaluation.mask is None else evaluation.mask & within


def reduced(evaluation: "Evaluation", operator: str, value: Value, inner: "Evaluation", axes: tuple[int, ...], letters: list[str]) -> Value:
    """Reduce a value along the axes of the bound letters, where the mask says that they count."""
    shape = list(value.data.shape)
    for axis, letter in zip(axes, letters, strict=True):
        shape[axis] = inner.letters[letter].data.shape[axis]
    mask = inner.mask
    if mask is not None:
        shape[: evaluation.axes] = np.broadcast_shapes(tuple(shape[: evaluation.axes]), mask.shape)
    if math.prod(shape) > 4 * MOST_ENTRIES:
        raise Malformed(f"the sum has {math.prod(shape):,} terms; at most {4 * MOST_ENTRIES:,} are computed")
    data = np.broadcast_to(value.data, shape)
    if value.lists or value.form in ("set", "opaque", "unit", "powers"):
        raise Malformed(f"{operator} of {value} has no meaning")
    if operator in (r"\sum", r"\prod"):
        if operator == r"\prod" and value.form != "scalar":
            raise Malformed(rf"\prod of {value} has no meaning: their order is not fixed")
        if mask is not None:
            data = np.where(lifted(mask, data.ndim - evaluation.axes), data, evaluation.number(int(operator == r"\prod")))
        evaluation.note(Value(data))
        return value.like(data.sum(axis=axes, keepdims=True) if operator == r"\sum" else data.prod(axis=axes, keepdims=True))
    if value.form != "scalar":
        raise Malformed(f"{operator} of {value} has no meaning: it wants numbers")
    sign = -1 if operator.endswith(r"\min") else 1
    data = sign * data
    if mask is not None:
        data = np.where(mask, data, evaluation.number(-math.inf))
    if data.size == 0:
        raise Malformed(f"{operator} of nothing has no meaning")
    extreme = data.max(axis=axes, keepdims=True) if not evaluation.exact else data
    for axis in axes if evaluation.exact else ():
        extreme = functools.reduce(larger, np.split(extreme, extreme.shape[axis], axis=axis))
    if not operator.startswith(r"\arg"):
        return Value(sign * extreme)
    if len(letters) != 1:
        raise Malformed(f"{operator} has one index")
    members = data >= extreme - 1e-12 * np.abs(extreme)
    return along_set(inner, members.astype(bool), letters[0])


def built_set(evaluation: "Evaluation", node: Node) -> Value:
    """Return the set of all values of an index for which a condition holds."""
    letter, condition = node.children
    inner = evaluation.here()
    inner.enter(letter.value, condition)
    members = inner.truth(condition)
    return along_set(inner, members, letter.value)


def along_set(evaluation: "Evaluation", members: np.ndarray, letter: str) -> Value:
    """Return a set from a mask along the axis of a letter."""
    axis = evaluation.formula.letters[letter]
    values = evaluation.letters[letter].data
    shape = list(members.shape)
    shape[axis] = values.size
    moved = np.moveaxis(np.broadcast_to(members, shape), axis, -1)
    return Value(np.expand_dims(moved, axis), "set", 0, (int(values.ravel()[0]),))


def integral(evaluation: "Evaluation", node: Node) -> Value:
    """Return an integral: by Gauss between two bounds, by the trapezoidal rule on the line for what falls off on both sides."""
    variable, low, high, body = node.children
    inner = evaluation.here()
    inner.mask = None
    if low.kind == "none":
        steps = np.linspace(-2.4, 2.4, LINE)
        places, weights = 4 * np.sinh(steps), (steps[1] - steps[0]) * 4 * np.cosh(steps)
        shift, factor = np.zeros((1,) * evaluation.axes), np.ones((1,) * evaluation.axes)
    else:
        places, weights = np.polynomial.legendre.leggauss(60)
        ends = [evaluation.value(end).data for end in (low, high)]
        if any(evaluation.value(end).form != "scalar" for end in (low, high)):
            raise Malformed("the bounds of an integral are numbers")
        shift, factor = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    inner.run_over(variable.value, places)
    axis = evaluation.formula.letters[variable.value]
    own = inner.letters[variable.value].data
    inner.letters[variable.value] = Value(shift + factor * own)
    value = inner.value(body)
    if value.form != "scalar":
        raise Malformed(f"the integral of {value} has no meaning")
    shape = [1] * evaluation.axes
    shape[axis] = len(weights)
    return Value((value.data * weights.reshape(shape)).sum(axis=axis, keepdims=True) * factor)


def running_softmax(evaluation: "Evaluation", letter: str, body: Node) -> Value:
    """Softmax over a running index: the body is evaluated for each of its values."""
    inner = evaluation.here()
    inner.enter(letter, body)
    value = inner.value(body)
    if value.form != "scalar":
        raise Malformed(f"softmax over {letter.rstrip(OWN)} of {value} has no meaning: it wants numbers")
    return softmax(inner.listed(value, (letter,)))
