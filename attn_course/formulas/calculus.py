"""Derivatives, limits and minima: givens are changed, what depends on them is made again, and the formula is evaluated once more."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas.compiled import flattened
from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import BUILT_IN
from attn_course.formulas.givens import DIFFERENCES, STEP, Function, derivative, slopes_of_many, vector
from attn_course.formulas.limits import limit_of
from attn_course.formulas.relations import holds
from attn_course.formulas.scope import Scope
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, Value, gathered, oriented

TOGETHER = 96  # values of a given in one evaluation
ALONE = ("derivative", "nabla", "at", "integral")  # what changes givens itself is evaluated for one value at a time
SECOND_STEP, SECOND_DIFFERENCES = 2.0**-8, 1e-9  # a derivative of a derivative
SAME, NEAR, ROUND = 1e-9, 1e-6, 1e-4  # in what a square may differ from one; how near the least value is found, and looked around
MOST_MOVES = 300  # along all axes, to a least value


def partial(evaluation: Scope, node: Node) -> Value:
    """Return a derivative, of the first order or a higher one."""
    numerator, *by = node.children
    if by[0].kind == "tuple":
        return _jacobian(evaluation, numerator, by[0].children)
    first, *rest = by
    inner = Node("derivative", (numerator, *rest), "second", node.place) if rest else numerator
    name, indices = _variable_of(evaluation, first)
    value, found = _slopes_by(evaluation, inner, name, second=bool(rest) or node.value == "second")
    variable = evaluation.array(name).value(0)
    taken = evaluation.positions(indices, variable, variable.indexed.shape)
    left = variable.indexed.ndim - len(taken)
    data = gathered(found, evaluation.axes, taken) if taken else found
    if not left:
        return value.like(data)
    if value.form == "scalar" and left <= 2:
        own = variable.form if variable.form in ("row", "column", "vector") else "row"
        return oriented(data, own) if left == 1 else Value(data, "matrix")
    if value.form in FLAT and left == 1:
        return Value(_table(data, evaluation.axes, 1), "matrix")
    raise Malformed(f"the derivative of {value} by {variable} has no form: write it with indices")


def _slopes_by(evaluation: Scope, body: Node, name: str, second: bool = False) -> tuple[Value, np.ndarray]:
    """Return a value, and its derivatives by all entries of a given: the axes of the letters, those of the given, those of the value."""
    raw = np.asarray(evaluation.array(name).raw)
    if not evaluation.needed(_names_of(_nodes_in(evaluation, body))) & evaluation.dependents(name):
        raise Malformed(f"what is differentiated does not depend on {name}", body.place)
    value = evaluation.value(body)
    if value.lists or value.form in ("set", "opaque", "unit", "identity"):
        raise Malformed(f"the derivative of {value} has no meaning")
    step = SECOND_STEP if second else STEP
    found = slopes_of_many(lambda moved: _values(evaluation, body, name, moved), raw.astype(float), step)
    evaluation.notes.noise = max(evaluation.notes.noise, SECOND_DIFFERENCES if second else DIFFERENCES)
    evaluation.note(value)
    axes = range(evaluation.axes, evaluation.axes + raw.ndim)
    return value, np.moveaxis(found.reshape((*raw.shape, *value.data.shape)), range(raw.ndim), axes)


def _values(evaluation: Scope, body: Node, name: str, many: np.ndarray) -> np.ndarray:
    """Return what an expression is for many values of a given, along a first axis; dozens at once, where nothing in it forbids that."""
    found: list[np.ndarray] = []
    nodes = _nodes_in(evaluation, body)
    for part in np.split(many, range(TOGETHER, len(many), TOGETHER)):
        alone = any(node.kind in ALONE or node.value == r"\lim" for node in nodes)
        together = None if alone else evaluation.with_many(name, part, _names_of(nodes))
        if together is None:
            found += [evaluation.with_given(name, one).value(body).data for one in part]
        else:
            axis = evaluation.groups[""]
            data = together.value(body).data
            data = np.broadcast_to(data, (*data.shape[:axis], len(part), *data.shape[axis + 1 :]))
            found += list(np.expand_dims(np.moveaxis(data, axis, 0), axis + 1))
    return np.array(found)


def _table(data: np.ndarray, letters: int, axes: int) -> np.ndarray:
    """Return derivatives as tables: a row for each entry of the value, a column for each of the variable, which has so many axes."""
    lead, by = data.shape[:letters], math.prod(data.shape[letters : letters + axes])
    return np.swapaxes(data.reshape((*lead, by, -1)), -1, -2)


def _nodes_in(evaluation: Scope, body: Node) -> list[Node]:
    """Return the nodes of an expression, and of the definitions of those."""
    found, seen, waiting = list[Node](), set[str](), [body]
    while waiting:
        new = list(waiting.pop().walk())
        names = _names_of(new) - seen
        waiting += [evaluation.formula.definitions[name].body for name in names & evaluation.formula.definitions.keys()]
        found, seen = found + new, seen | names
    return found


def _names_of(nodes: Iterable[Node]) -> set[str]:
    return {node.value.rstrip("'") for node in nodes if node.value}


def _jacobian(evaluation: Scope, numerator: Node, by: tuple[Node, ...]) -> Value:
    """Return all derivatives of all entries by all entries of several givens, as one matrix."""
    tables = []
    for one in by:
        name, _ = _variable_of(evaluation, one)
        _, found = _slopes_by(evaluation, numerator, name)
        tables.append(_table(found, evaluation.axes, np.ndim(evaluation.array(name).raw)))
    return Value(np.concatenate(tables, axis=-1), "matrix")


def _variable_of(evaluation: Scope, node: Node) -> tuple[str, tuple[Node, ...]]:
    """Return the name and the indices of what a derivative is taken by, or a limit runs in."""
    base, indices = flattened(node) if node.kind == "entry" else (node, ())
    if base.kind != "name" or base.value not in evaluation.givens:
        raise Malformed("expected a given, or an entry of one", node.place)
    return base.value, indices


def nabla(evaluation: Scope, node: Node) -> Value:
    """Return the gradient of an expression by what stands beneath, or of a function at its argument."""
    under, body = node.children
    if under.kind != "none":
        return partial(evaluation, Node("derivative", (body, under), place=node.place))
    if body.kind != "call" or len(body.children) != 2:
        raise Malformed(r"behind \nabla without an index comes a function of one argument")
    argument = evaluation.value(body.children[1])
    known = BUILT_IN.get(body.value) if body.value not in evaluation.givens else None
    given = Function(lambda entries: known(vector(entries).value(0)).data) if known else evaluation.given(body.value)
    plain = argument.indexed[(0,) * evaluation.axes]
    if plain.size != argument.data.size or not isinstance(given, Function):
        raise Malformed(r"behind \nabla comes a given function of something without an index")
    evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    return argument.like(np.reshape(derivative(given.call, plain).raw, argument.data.shape))


def at(evaluation: Scope, node: Node) -> Value:
    """Evaluate an expression where a given, or an entry of one, has another value."""
    body, chain = node.children
    if len(chain.children) != 3 or chain.children[1].value != "=":
        raise Malformed("expected where to evaluate, such as x = 0", chain.place)
    value = evaluation.value(chain.children[2])
    if value.data.size != 1:
        raise Malformed("a given takes one value", chain.place)
    return _assigned(evaluation, chain.children[0], value.data.item(), evaluation.everywhere).value(body)


def _assigned(evaluation: Scope, variable: Node, value: Any, condition: np.ndarray) -> Scope:
    """Return the evaluation in which a given, or entries of one, have another value."""
    name, indices = _variable_of(evaluation, variable)
    given = evaluation.array(name)
    raw = np.array(given.raw, dtype=float)
    if not indices:
        raw[...] = value
    else:
        if len(indices) != raw.ndim:
            raise Malformed(f"{name} has {raw.ndim} indices", variable.place)
        taken = evaluation.positions(indices, given.value(0), raw.shape)
        *places, chosen = np.broadcast_arrays(*taken, condition)
        raw[tuple(place[chosen] for place in places)] = value
    return evaluation.with_given(name, raw)


def limit(evaluation: Scope, domain: Node, body: Node) -> Value:
    """Return a limit in a given, or in entries of one."""
    to, *conditions = domain.children
    if to.kind != "to":
        raise Malformed(r"expected a variable and where it goes, such as x \to 0, beneath \lim", domain.place)
    variable, target_node = to.children
    target = evaluation.value(target_node).data
    if target.size != 1:
        raise Malformed("a limit goes to one number", target_node.place)
    scope = evaluation.here()
    for letter in scope.ordered(variable.letters() - evaluation.letters.keys(), variable):
        scope.enter(letter, variable)
    condition = evaluation.everywhere
    for chain in conditions:
        condition = condition & holds(scope, chain)
    found = Value(np.zeros(0))

    def at(point: float) -> np.ndarray:
        nonlocal found
        inner = _assigned(scope, variable, point, condition)
        inner.letters, inner.mask = dict(evaluation.letters), evaluation.mask
        found = inner.value(body)
        return found.data

    goal = float(target.item())
    data, apart = limit_of(at, goal, to.value or "+")
    evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES, 100 * apart)
    if not to.value and not math.isinf(goal) and not np.allclose(data, limit_of(at, goal, "-")[0], rtol=1e-6, atol=1e-6):
        raise Malformed("the limits from both sides differ: write from which side, as 0^+")
    evaluation.note(found.like(data))
    return found.like(data)


def minimiser(evaluation: Scope, variable: Node, body: Node) -> Value:
    """Return where an expression is least: one of Newton's steps by differences, exact for squares, else ever smaller steps."""
    given = evaluation.array(variable.value)
    start = np.array(given.raw, dtype=float)

    def cost(*moves: np.ndarray) -> float:
        value = evaluation.with_given(variable.value, start + np.sum(moves, axis=0).reshape(start.shape)).value(body)
        if value.form != "scalar" or value.data.size != 1:
            raise Malformed(r"what is made least is one number without an index", body.place)
        return float(value.data.item())

    unit = np.eye(start.size)
    here = cost(0 * unit[0])
    forth, back = (np.array([cost(sign * one) for one in unit]) for sign in (1, -1))
    slope, curvature = (forth - back) / 2, np.diag(forth + back - 2 * here)
    for i, j in itertools.combinations(range(start.size), 2):
        curvature[i, j] = curvature[j, i] = cost(unit[i], unit[j]) - forth[i] - forth[j] + here
    if not np.isfinite(curvature).all():
        slope, curvature = 0 * slope, 0 * unit
    step = -np.linalg.lstsq(curvature, slope, rcond=None)[0]
    least, size = cost(step), float(np.nanmax(np.abs([here, *forth, *back])))
    is_square = abs(least - here - slope @ step / 2) <= SAME * size and np.linalg.eigvalsh(curvature)[0] >= -SAME * size
    if is_square and np.abs(curvature @ step + slope).max() <= SAME * size:
        evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    else:
        step = _descended(cost, step if least < here else 0 * step, size)
        if step is None:
            raise Malformed("the least value is not found", body.place)
        evaluation.notes.slack = max(evaluation.notes.slack, NEAR)
    return replace(given, raw=start + step.reshape(start.shape)).value(evaluation.axes)


def _descended(cost: Callable[..., float], place: np.ndarray, size: float) -> np.ndarray | None:
    """Go down along the axes, with ever smaller steps; return None if it does not end where every way leads up."""
    least, width = cost(place), 1.0
    for _ in range(MOST_MOVES):
        before = least
        for way in (sign * one for one in np.eye(place.size) for sign in (1, -1)):
            if (other := cost(place, width * way)) < least:
                place, least = place + width * way, other
        if least < before:
            continue
        width /= 2
        if width < 2.0**-30:
            ways = np.random.default_rng(0).normal(size=(4 * place.size, place.size))
            rises = [cost(place, ROUND * sign * way / np.linalg.norm(way)) - least for way in ways for sign in (1, -1)]
            return place if min(rises) > 1e-12 * size else None
    return None
