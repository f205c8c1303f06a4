"""Relations: for which indices they hold, to a tolerance."""

import functools
import operator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.scope import Scope
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, Value, fitted, floats, lifted

TOLERANCE = 1e-10  # of the larger side, entry by entry
STRICT = 1e-12  # by which < must be strict
ZERO = Node("number", (), "0")
ORDERS = {"<": operator.lt, ">": operator.gt, r"\le": operator.le, r"\ge": operator.ge}
Side: TypeAlias = tuple[Node, Value | None]  # an expression and its value; a space has none


def holds(evaluation: Scope, node: Node) -> np.ndarray:
    """Return for which values of the letters a condition holds."""
    if node.kind == "all":
        parts = [holds(evaluation, child) for child in node.children]
    elif node.kind == "any":
        return functools.reduce(np.logical_or, [holds(evaluation, child) for child in node.children])
    elif node.kind == "chain":
        found = [compare(evaluation, relation, left, right, node).fulfilled for relation, left, right in links(evaluation, node)]
        parts = [np.asarray(fulfilled.all(axis=tuple(range(evaluation.axes, fulfilled.ndim)))) for fulfilled in found]
    elif node == Node("word", (), "otherwise"):
        return evaluation.everywhere
    else:
        raise Malformed("expected a relation", node.place)
    return functools.reduce(np.logical_and, parts)


def links(evaluation: Scope, chain: Node) -> list[tuple[Node, Side, Side]]:
    """Return relation, left and right side of each link; each side is evaluated once; spaces such as \\mathbb{R}^n have no value."""
    sides = [(node, None if is_space(node) else evaluation.value(node)) for node in chain.children[::2]]
    found = []
    for relation, left, right in zip(chain.children[1::2], sides, sides[1:], strict=False):
        if relation.children:
            going = Node("big", (Node("domain", relation.children, place=relation.place), left[0]), r"\lim", left[0].place)
            left = (left[0], evaluation.value(going))
        found.append((relation, left, right))
    return found


def is_space(node: Node) -> bool:
    """Whether a side is a space such as R^n, which has no value."""
    return (node.children[0] if node.kind == "power" else node) == Node("constant", (), r"\mathbb{R}")


@dataclass(frozen=True)
class Comparison:
    """Where a relation is fulfilled, where its sides are equal, and both sides in the form they have in common."""

    fulfilled: np.ndarray
    left: np.ndarray
    right: np.ndarray
    form: str
    equal: np.ndarray


def compare(evaluation: Scope, relation: Node, left: Side, right: Side, chain: Node) -> Comparison:
    """Compare two sides of a relation, for all indices and entries."""
    sign = relation.value
    (left_node, a), (right_node, b) = left, right
    if a is None:
        raise Malformed("a space stands on the right side only", left_node.place)
    if b is None or sign in (r"\in", r"\notin"):
        return _membership(evaluation, sign, a, right_node, b)
    place = (chain.children[0].place[0], chain.children[-1].place[1])
    if ZERO in (left_node, right_node) and not a.lists and not b.lists:
        a, b = _zero_like(a, b) if left_node == ZERO else a, _zero_like(b, a) if right_node == ZERO else b
    try:
        x, y, fit = fitted(a, b)
    except Malformed as error:
        raise Malformed(f"{'the two sides' if sign == '=' else 'the sides of ' + sign} do not fit: {error.problem}", place) from None
    if fit.form == "set":
        same = x == y
        return Comparison(same if sign == "=" else ~same, x, y, "set", same)
    if sign in ORDERS and fit.form != "scalar":
        raise Malformed(f"{sign} stands between numbers", relation.place)
    x, y = np.broadcast_arrays(x, y)
    size = np.where(np.isfinite(x) & np.isfinite(y), np.maximum(np.abs(x), np.abs(y)), 0)
    notes = evaluation.notes
    slack = TOLERANCE * size + notes.noise * notes.biggest + notes.slack
    equal = (x == y) | (np.abs(x - y) <= slack)
    match sign:
        case "=" | r"\xrightarrow":
            fulfilled = equal
        case r"\ne":
            fulfilled = ~equal & ~np.isnan(x) & ~np.isnan(y)
        case r"\le" | r"\ge":
            fulfilled = ORDERS[sign](x, y) | equal
        case "<" | ">":
            fulfilled = ORDERS[sign](x, y) & ~(np.abs(x - y) <= STRICT * size)
        case _:
            fulfilled = np.abs(x - y) <= _half_a_digit(right_node)
    return Comparison(fulfilled, x, y, fit.form, equal)


def _zero_like(zero: Value, other: Value) -> Value:
    """Return zeros of any form: 0 stands for them all."""
    plain = other.data if other.form not in ("identity", "unit", "set", "opaque") else zero.data
    return Value(
        np.zeros((1,) * other.letters + plain.shape[other.letters :], dtype=plain.dtype), other.form, other.lists, (), other.stretch
    )


def _half_a_digit(node: Node) -> float:
    number = node.children[0] if node.kind == "neg" else node
    if number.kind != "number" or not float(number.value):
        raise Malformed(r"behind \approx stands a number as it is printed, and not 0", node.place)
    return 0.5 * 10.0 ** -len(number.value.partition(".")[2]) * (1 + 1e-9)


def _membership(evaluation: Scope, sign: str, left: Value, node: Node, right: Value | None) -> Comparison:
    if right is None:
        if sign == r"\notin":
            raise Malformed("which space something is not in says too little", node.place)
        sizes = node.children[1:]
        if sizes and sizes[0].kind == "times":
            sizes = sizes[0].children
        wanted = [evaluation.whole_number(size) for size in sizes]
        shape = list(left.shape) if len(wanted) != 1 or left.form not in FLAT else [left.indexed.shape[-1]]
        x, y = (np.reshape(np.array([*ends, *[0.0] * (4 - len(ends))]), (1,) * evaluation.axes + (4,)) for ends in (shape, wanted))
        return Comparison(x == y, x, y, "shape", x == y)
    if (
        node.kind in ("blocks", "tuple")
        and right.form in FLAT
        and right.indexed.shape[-1] == 2
        and (left.form, left.lists) == ("scalar", 0)
    ):
        first, last = np.moveaxis(right.indexed, -1, 0)
        below = ORDERS["<" if node.kind == "tuple" else r"\le"]  # a parenthesis leaves its end out
        member = below(first, left.data) & below(left.data, last)
        return Comparison(member if sign == r"\in" else ~member, np.broadcast_to(left.data, member.shape), member * 1.0, "scalar", member)
    if right.form != "set" or right.lists or left.form != "scalar" or left.lists:
        raise Malformed(f"{left} cannot be in {right}", node.place)
    places = floats(left) - right.start(0)
    member = (right.data & (np.arange(right.data.shape[-1]) == lifted(places, 1))).any(axis=-1)
    return Comparison(member if sign == r"\in" else ~member, np.broadcast_to(left.data, member.shape), member * 1.0, "scalar", member)
