"""Sums, products, powers, brackets: what the nodes between symbols mean."""

import math
from collections.abc import Sequence

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.givens import DIFFERENCES
from attn_course.formulas.relations import ZERO, holds
from attn_course.formulas.scope import Scope
from attn_course.formulas.tree import Node
from attn_course.formulas.values import (
    FLAT,
    FORM_AXES,
    Value,
    blocks,
    check_form,
    dot,
    entrywise,
    fitted,
    floats,
    length,
    lifted,
    power,
    product,
    scaled,
    spread,
)

TRANSPOSE = r"for the transpose write ^\top: T is a number here"
_IDENTITY, _ONES = Node("constant", (), "I"), Node("constant", (), "1")
NUMBERS = {"e": math.e, r"\pi": math.pi, r"\infty": math.inf}


def literal(evaluation: Scope, node: Node) -> Value:
    """Return a number as it is printed, or e, pi, infinity."""
    return Value(np.full((1,) * evaluation.axes, NUMBERS[node.value] if node.value in NUMBERS else float(node.value)))


def constant(evaluation: Scope, node: Node) -> Value:
    """Return one of the constants: e, pi, infinity, ones, I, the empty set."""
    one = (1,) * evaluation.axes
    match node.value:
        case "1":
            return Value(evaluation.number(np.ones((*one, 1, 1))), "column", stretch=(True, False))
        case "I":
            return Value(evaluation.number(np.ones(one)), "identity")
        case r"\emptyset":
            return Value(np.zeros((*one, 1), bool), "set", stretch=(True, False))
        case r"\mathbb{R}":
            raise Malformed(r"\mathbb{R} stands behind \in only")
    return literal(evaluation, node)


def plus(evaluation: Scope, node: Node) -> Value:
    """Add terms of one form; a printed number may be added to a vector, entry by entry (1 - t^2)."""
    first, *rest = node.children
    total = evaluation.value(first)
    evaluation.note(total)
    for term in rest:
        minus = term.kind == "neg"
        value = evaluation.value(term.children[0] if minus else term)
        evaluation.note(value)
        printed = [(one.children[0] if one.kind == "neg" else one).kind == "number" for one in (first, term)]
        if printed[0] and total.form == "scalar":  # 1 - t^2
            total = spread(total, value)
        elif printed[1] and value.form == "scalar":
            value = spread(value, total)
        try:
            a, b, fit = fitted(total, value)
        except Malformed as error:
            raise Malformed(f"this cannot be added: {error.problem}", term.place) from None
        total, first = fit.like(a - b if minus else a + b), term
    return total


def neg(evaluation: Scope, node: Node) -> Value:
    """Return minus a value."""
    return scaled(Value(evaluation.number(np.full((1,) * evaluation.axes, -1))), evaluation.value(node.children[0]))


def times(evaluation: Scope, node: Node) -> Value:
    """Multiply factors side by side, from left to right."""
    if terms := _unmeasured(node.children):
        return evaluation.value(terms)
    first, *rest = node.children
    found = evaluation.value(first)
    for factor in rest:
        value = evaluation.value(factor)
        _note_sums(evaluation, found, value)
        found = product(found, value)
    return found


def _unmeasured(factors: Sequence[Node]) -> Node | None:
    """Return a product multiplied out in which I and ones are added: how long they are, their neighbour says."""
    for place, factor in enumerate(factors):
        if factor.kind == "sum" and _IDENTITY in factor.children and any(_ONES in term.walk() for term in factor.children):
            terms = [(term.kind == "neg", term.children[0] if term.kind == "neg" else term) for term in factor.children]
            products = [(minus, Node("product", (*factors[:place], term, *factors[place + 1 :]))) for minus, term in terms]
            return Node("sum", tuple(Node("neg", (one,)) if minus else one for minus, one in products), "", factor.place)
    return None


def _note_sums(evaluation: Scope, left: Value, right: Value) -> None:
    """Remember how large the terms of the sums in a product of matrices are."""
    if left.shape and right.shape and left.data.size and right.data.size:
        evaluation.note(Value(np.abs(left.data).max() * np.abs(right.data).max()))


def dotted(evaluation: Scope, node: Node) -> Value:
    """Return a dot product, an entrywise product or a product of numbers."""
    try:
        left, right = (evaluation.value(child) for child in node.children)
    except Malformed as error:
        if node.kind != "dot" or "the lengths in the middle differ" not in error.problem:
            raise
        raise Malformed(rf"{error.problem}; a dot product that is one factor stands in parentheses: (a \cdot b) c", error.place) from None
    if node.kind == "dot":
        _note_sums(evaluation, left, right)
        if node.value and left.form == right.form == "matrix" and left.shape == right.shape:
            return Value((left.data * right.data).sum(axis=(-2, -1)))
        return dot(left, right)
    if node.kind == "times":
        if (left.form, right.form) != ("scalar", "scalar"):
            raise Malformed(r"\times stands between numbers: write the factors side by side")
        return product(left, right)
    a, b, fit = fitted(left, right)
    if fit.form in ("scalar", "set", "powers", "identity", "unit"):
        numbers = ": write them side by side" * (fit.form == "scalar")
        raise Malformed(rf"\odot of {left} and {right} has no meaning{numbers}")
    return fit.like(a * b)


def over(evaluation: Scope, node: Node) -> Value:
    """Divide by a number."""
    above, below = (evaluation.value(child) for child in node.children)
    if below.form != "scalar" or below.lists:
        instead = r"; for the inverse write ^{-1}" if below.form == "matrix" and not below.lists else ": give it an index"
        raise Malformed(f"only a number can divide, not {below}{instead}", node.children[1].place)
    return scaled(below, above, np.divide)


def raised(evaluation: Scope, node: Node) -> Value:
    """Return a power; e to anything is taken entry by entry."""
    base, exponent = node.children
    if base == Node("constant", (), "e"):
        return entrywise("exp", evaluation.value(exponent))
    times, carrier = evaluation.value(exponent), evaluation.value(base)
    if exponent.value == "T" and carrier.form in ("matrix", "row", "column"):
        raise Malformed(TRANSPOSE, node.place)
    found = power(carrier, times)
    if evaluation.notes.noise >= DIFFERENCES and times.data.dtype.kind == "f":  # a power is off by so many times as much as its base
        evaluation.note(Value(np.asarray(np.abs(found.data).max(initial=0.0) * np.abs(times.data).max(initial=0.0))))
    return found


def factorial(evaluation: Scope, node: Node) -> Value:
    """Return the factorial of a whole number, or the product of those of several."""
    value = evaluation.value(node.children[0])
    check_form("the factorial", value, "scalar", "powers")
    numbers = floats(value)
    if not np.all((numbers >= 0) & (numbers <= 170) & (numbers == np.rint(numbers))):
        raise Malformed("a factorial is taken of whole numbers from 0 to 170")
    table = np.array([math.factorial(number) for number in range(int(numbers.max(initial=0)) + 1)], float)
    found = table[numbers.astype(int)]
    return Value(found.prod(axis=-1) if value.form == "powers" else found)


def sets(evaluation: Scope, node: Node) -> Value:
    """Return the union or the intersection of two sets."""
    left, right = (evaluation.value(child) for child in node.children)
    if (left.form, right.form) != ("set", "set") or left.data.shape[-1] != right.data.shape[-1]:
        raise Malformed(f"{left} and {right} are no sets of one universe")
    return Value(left.data | right.data if node.kind == "union" else left.data & right.data, "set", 0, left.starts)


def measured(evaluation: Scope, node: Node) -> Value:
    """Return an absolute value, a length, a norm, the size of a set or the sum of exponents."""
    value = evaluation.value(node.children[0])
    if node.kind == "norm":
        return length(value, node.value)
    if value.form == "set" and not value.lists:
        return Value(evaluation.number(value.data.sum(axis=-1)))
    if value.form == "powers":
        return Value(value.data.sum(axis=-1))
    return entrywise("abs", value) if value.form == "scalar" and not value.lists else length(value)


def tuple_of(evaluation: Scope, node: Node) -> Value:
    """Return numbers in parentheses: a vector that takes the orientation of its neighbour."""
    entries = [evaluation.value(child) for child in node.children]
    for entry in entries:
        check_form("a vector", entry, "scalar")
    return Value(np.stack(np.broadcast_arrays(*(entry.data for entry in entries)), axis=-1), "tuple")


def block_matrix(evaluation: Scope, node: Node) -> Value:
    """Return what brackets or a pmatrix put together."""
    return blocks([[value for cell in row.children for value in _cells(evaluation, cell)] for row in node.children])


def _cells(evaluation: Scope, cell: Node) -> list[Value]:
    """Return the values of one cell; first \\cdots last counts the one index in which they differ."""
    if cell.kind != "run":
        return [evaluation.value(cell)]
    first, last = cell.children
    differing = [place for place, (a, b) in enumerate(zip(first.children, last.children, strict=False)) if a != b]
    if not first.kind == last.kind == "entry" or len(first.children) != len(last.children) or len(differing) != 1 or not differing[0]:
        raise Malformed(r"\cdots stands between two entries of one list that differ in one index", cell.place)
    (where,) = differing
    low, high = (evaluation.whole_number(end.children[where]) for end in (first, last))
    if high - low > 1000:
        raise Malformed(r"\cdots stands for too many", cell.place)
    numbers = [Node("number", (), str(number)) for number in range(low, high + 1)]
    entries = [Node("entry", (*first.children[:where], number, *first.children[where + 1 :]), "", cell.place) for number in numbers]
    return [evaluation.value(entry) for entry in entries]


def cases(evaluation: Scope, node: Node) -> Value:
    """Return for each index the first case whose condition holds: numbers, or vectors or matrices of one form; 0 stands for any."""
    found, left = list[tuple[Node, np.ndarray, Value]](), evaluation.everywhere
    for value_node, condition in zip(node.children[::2], node.children[1::2], strict=True):
        here = left & holds(evaluation, condition)
        found.append((value_node, here, evaluation.restricted(here).value(value_node)))
        left = left & ~here
    form = next((value for _, _, value in found if value.form != "scalar"), found[0][2])
    check_form("a case", form, "scalar", "matrix", *FLAT)
    axes = FORM_AXES[form.form]
    data = evaluation.number(np.full((1,) * (evaluation.axes + axes), np.nan))
    for value_node, here, value in found:
        if value.form != form.form and value_node != ZERO:
            raise Malformed(f"the cases are {form} and {value}", value_node.place)
        data = np.where(lifted(here, axes), value.data if value.form == form.form else 0.0, data)
    return form.like(data)


def iverson(evaluation: Scope, node: Node) -> Value:
    """Return 1 where a condition holds, else 0."""
    return Value(evaluation.number(holds(evaluation, node.children[0]) * 1))
