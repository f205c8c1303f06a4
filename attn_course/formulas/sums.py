"""What binds a letter: sums, products, extremes, sets by a condition, softmax over a running index, integrals."""

import math
from collections.abc import Sequence

import numpy as np

from attn_course.formulas import calculus
from attn_course.formulas.compiled import OWN
from attn_course.formulas.errors import Malformed, Place
from attn_course.formulas.relations import holds
from attn_course.formulas.scope import MOST_ENTRIES, Scope
from attn_course.formulas.tree import Node, bound_in, is_between
from attn_course.formulas.values import FLAT, Value, check_form, floats, lifted

LINE = 128  # points of an integral over the whole line


def big(evaluation: Scope, node: Node) -> Value:
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
                _between(inner, letter, item.children[1:], item.place)
            elif is_between(item) and not evaluation.formula.uses(letter, body):  # it subscripts nothing that could tell its range
                _between(inner, letter, item.children[::4], item.place)
            else:
                inner.enter(letter, node)
                if item.kind == "index" and inner.letters[letter].form == "powers":
                    raise Malformed(rf"exponents have no last one: say which are meant, as in |{letter}| \le n", item.place)
        if item.kind == "chain":
            inner = inner.restricted(holds(inner, item))
    value = inner.value(body)
    return _reduced(evaluation, inner, node.value, value, letters)


def _between(evaluation: Scope, letter: str, ends: Sequence[Node], place: Place) -> None:
    """Let a letter run between two bounds, which may depend on other letters."""
    bounds = [evaluation.value(end) for end in ends]
    if {bound.form for bound in bounds} != {"scalar"}:
        raise Malformed("the bounds of an index are numbers", place)
    lows, highs = map(floats, bounds)
    if not np.all(np.isfinite(highs - lows)) or highs.max() - lows.min() > MOST_ENTRIES:
        raise Malformed(f"{letter.rstrip(OWN)} runs over more than {MOST_ENTRIES:,} values", place)
    if np.any(lows != np.rint(lows)) or np.any(highs != np.rint(highs)):
        raise Malformed("the bounds of an index are whole numbers", place)
    evaluation.run_over(letter, np.arange(int(lows.min()), int(highs.max()) + 1))
    if lows.size > 1 or highs.size > 1:
        values = evaluation.letters[letter].data.astype(float)
        evaluation.mask = evaluation.mask & (values >= lows) & (values <= highs)


def _reduced(evaluation: Scope, inner: Scope, operator: str, value: Value, letters: list[str]) -> Value:
    """Reduce a value along the axes of the bound letters, where the mask says that they count."""
    axes = tuple(evaluation.formula.letters[letter] for letter in letters)
    shape, mask = list(value.data.shape), inner.mask
    for axis, letter in zip(axes, letters, strict=True):
        shape[axis] = inner.letters[letter].data.shape[axis]
    shape[: evaluation.axes] = np.broadcast_shapes(tuple(shape[: evaluation.axes]), mask.shape)
    if math.prod(shape) > 4 * MOST_ENTRIES:
        raise Malformed(f"the sum has {math.prod(shape):,} terms; at most {4 * MOST_ENTRIES:,} are computed")
    check_form(operator, value, *(("scalar", "matrix", *FLAT) if operator in (r"\sum", r"\dots") else ["scalar"]))
    sign = -1 if operator.endswith(r"\min") else 1
    data = np.broadcast_to(sign * value.data, shape)
    if not mask.all():
        nothing = {r"\sum": 0, r"\prod": 1}.get(operator, -math.inf)
        data = np.where(lifted(mask, len(shape) - evaluation.axes), data, evaluation.number(nothing))
    if operator == r"\dots":
        if not mask.all():
            raise Malformed("a vector of which some entries are missing has no meaning")
        return inner.listed(value, tuple(letters))
    if operator in (r"\sum", r"\prod"):
        evaluation.note(Value(data))
        return value.like((np.sum if operator == r"\sum" else np.prod)(data, axis=axes, keepdims=True))
    if data.size == 0:
        raise Malformed(f"{operator} of nothing has no meaning")
    extreme = data
    for axis in axes:
        extreme = np.maximum.reduce(extreme, axis=axis, keepdims=True)
    if not operator.startswith(r"\arg"):
        return Value(sign * extreme)
    if len(letters) != 1:
        raise Malformed(f"{operator} has one index")
    return _along_set(inner, (data >= extreme - 1e-12 * np.abs(extreme)).astype(bool), letters[0])


def built_set(evaluation: Scope, node: Node) -> Value:
    """Return the set of all values of an index for which a condition holds."""
    letter, condition = node.children
    inner = evaluation.here()
    inner.enter(letter.value, condition)
    return _along_set(inner, holds(inner, condition), letter.value)


def _along_set(evaluation: Scope, members: np.ndarray, letter: str) -> Value:
    """Return a set from a mask along the axis of a letter."""
    axis = evaluation.formula.letters[letter]
    values = evaluation.letters[letter].data
    shape = list(members.shape)
    shape[axis] = values.size
    moved = np.moveaxis(np.broadcast_to(members, shape), axis, -1)
    return Value(np.expand_dims(moved, axis), "set", 0, (int(values.ravel()[0]),))


def integral(evaluation: Scope, node: Node) -> Value:
    """Return an integral: by Gauss between two numbers, else by the trapezoidal rule for what falls off fast."""
    variable, low, high, body = node.children
    inner = evaluation.here()
    inner.mask = evaluation.everywhere
    one = np.ones((1,) * evaluation.axes)
    ends = [-np.inf * one, np.inf * one]
    if low.kind != "none":
        values = [evaluation.value(end) for end in (low, high)]
        if any(end.form != "scalar" for end in values):
            raise Malformed("the bounds of an integral are numbers")
        ends = [floats(end) for end in values]
    far = [bool(np.isinf(end).all()) for end in ends]
    if all(far):
        steps = np.linspace(-2.4, 2.4, LINE)
        places, weights = 4 * np.sinh(steps), (steps[1] - steps[0]) * 4 * np.cosh(steps)
        shift, factor = 0 * one, one
    elif any(far):
        steps = np.linspace(-3.6, 3.6, LINE)
        places = np.exp(steps - np.exp(-steps))
        weights = (steps[1] - steps[0]) * places * (1 + np.exp(-steps))
        shift, factor, places = (ends[0], one, places) if far[1] else (ends[1], one, -places)
    else:
        places, weights = np.polynomial.legendre.leggauss(60)
        shift, factor = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    inner.run_over(variable.value, places)
    inner.letters[variable.value] = Value(shift + factor * inner.letters[variable.value].data)
    value = inner.value(body)
    check_form("the integral", value, "scalar")
    axis = evaluation.formula.letters[variable.value]
    shape = [1] * evaluation.axes
    shape[axis] = len(weights)
    return Value((value.data * weights.reshape(shape)).sum(axis=axis, keepdims=True) * factor)


def running(evaluation: Scope, name: str, letter: str, body: Node) -> Value:
    """Return what a function of a vector is taken of that stands behind its running index: the body for each of its values."""
    inner = evaluation.here()
    inner.enter(letter, body)
    value = inner.value(body)
    check_form(f"{name} over {letter.rstrip(OWN)}", value, "scalar")
    return inner.listed(value, (letter,))
