"""Derivatives, limits and minima: givens are changed, what depends on them is made again, and the formula is evaluated once more."""

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from attn_course.formulas.compiled import flattened
from attn_course.formulas.errors import Malformed
from attn_course.formulas.givens import DIFFERENCES, STENCIL, STEP, Function, Given, derivative, scale_of
from attn_course.formulas.limits import extrapolated, points
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, FORM_AXES, Value, gathered, one_by_one, oriented

if TYPE_CHECKING:
    from attn_course.formulas.evaluate import Evaluation

SECOND_STEP, SECOND_DIFFERENCES = 2.0**-8, 1e-9  # a derivative of a derivative


def partial(evaluation: "Evaluation", node: Node) -> Value:
    """Return a derivative, of the first order or a higher one."""
    numerator, *by = node.children
    if by[0].kind == "tuple":
        return jacobian(evaluation, numerator, by[0].children)
    first, *rest = by
    inner = Node("derivative", (numerator, *rest), "second", node.place) if rest else numerator
    name, indices = variable_of(evaluation, first)
    value, slopes = slopes_by(evaluation, inner, name, second=bool(rest) or node.value == "second")
    wanted = evaluation.given(name)
    assert isinstance(wanted, Given)
    own = wanted.value(0, False)
    return shaped_slopes(evaluation, value, slopes, own, indices)


def slopes_by(evaluation: "Evaluation", body: Node, name: str, second: bool = False) -> tuple[Value, np.ndarray]:
    """Return a value, and its derivatives by all entries of a given, on axes behind its own."""
    given = evaluation.given(name)
    if not isinstance(given, Given):
        raise Malformed(f"{name} is no number or array that could vary")
    if not evaluation.needed(_names_in(evaluation, body)) & evaluation.dependents(name):
        raise Malformed(f"what is differentiated does not depend on {name}", body.place)
    value = evaluation.value(body)
    if value.lists or value.form in ("set", "opaque", "unit", "identity"):
        raise Malformed(f"the derivative of {value} has no meaning")
    raw = np.asarray(given.raw)
    if evaluation.exact:
        import sympy

        columns = [one_by_one(lambda entry, at=at: sympy.diff(entry, at), value.data) for at in raw.ravel()]
    else:
        raw = raw.astype(float)
        columns = []
        for place in np.ndindex(raw.shape):
            step = (SECOND_STEP if second else STEP) * scale_of(raw[place])
            total: Any = 0.0
            for count, weight in STENCIL:
                there, back = raw.copy(), raw.copy()
                there[place] += count * step
                back[place] -= count * step
                total = total + weight * (
                    evaluation.with_given(name, there).value(body).data - evaluation.with_given(name, back).value(body).data
                )
            columns.append(total / step)
        evaluation.notes.noise = max(evaluation.notes.noise, SECOND_DIFFERENCES if second else DIFFERENCES)
        evaluation.note(value)
    return value, np.stack(columns, axis=-1).reshape((*value.data.shape, *raw.shape))


def _names_in(evaluation: "Evaluation", body: Node) -> frozenset[str]:
    """Return the names in an expression, and in the definitions of those."""
    found, waiting = set[str](), [body]
    while waiting:
        new = {node.value.rstrip("'") for node in waiting.pop().walk() if node.value} - found
        waiting += [evaluation.formula.definitions[name].body for name in new & evaluation.formula.definitions.keys()]
        found |= new
    return frozenset(found)


def shaped_slopes(evaluation: "Evaluation", value: Value, slopes: np.ndarray, variable: Value, indices: tuple[Node, ...]) -> Value:
    """Pick the entries the index of the variable asks for, and give the derivative its form."""
    own = FORM_AXES[value.form]
    data = np.moveaxis(slopes, range(evaluation.axes, evaluation.axes + own), range(slopes.ndim - own, slopes.ndim))
    oriented_variable = variable.form in ("row", "column")
    axes = variable.data.ndim - oriented_variable
    taken = [
        evaluation.position(index, variable.start(axis), data.shape[evaluation.axes + axis], variable) for axis, index in enumerate(indices)
    ]
    if len(taken) > axes:
        raise Malformed("the variable has fewer indices")
    if taken:
        data = gathered(data, evaluation.axes, taken)
    left = axes - len(taken)
    flat_value = data.reshape((*data.shape[: evaluation.axes + left], -1)) if own else data[..., None]
    if not left:
        return value.like(data)
    if value.form == "scalar":
        form = variable.form if left == 1 and (oriented_variable or variable.form == "vector") else "matrix" if left == 2 else "row"
        return oriented(data, form) if form != "matrix" else Value(data, "matrix")
    if left == 1 and value.form in FLAT:
        return Value(np.swapaxes(flat_value, -1, -2), "matrix")
    raise Malformed(f"the derivative of {value} by {variable} has no form: write it with indices")


def jacobian(evaluation: "Evaluation", numerator: Node, by: tuple[Node, ...]) -> Value:
    """Return all derivatives of all entries by all entries of several givens, as one matrix."""
    tables = []
    for one in by:
        name, _ = variable_of(evaluation, one)
        value, slopes = slopes_by(evaluation, numerator, name)
        tables.append(slopes.reshape((*slopes.shape[: evaluation.axes], math.prod(value.shape), -1)))
    return Value(np.concatenate(tables, axis=-1), "matrix")


def variable_of(evaluation: "Evaluation", node: Node) -> tuple[str, tuple[Node, ...]]:
    """Return the name and the indices of what a derivative is taken by, or a limit runs in."""
    base, indices = flattened(node) if node.kind == "entry" else (node, ())
    if base.kind != "name" or base.value not in evaluation.givens:
        raise Malformed("expected a given, or an entry of one", node.place)
    return base.value, indices


def nabla(evaluation: "Evaluation", node: Node) -> Value:
    """Return the gradient of an expression by what stands beneath, or of a function at its argument."""
    under, body = node.children
    if under.kind != "none":
        return partial(evaluation, Node("derivative", (body, under), place=node.place))
    if body.kind != "call" or len(body.children) != 2:
        raise Malformed(r"behind \nabla without an index comes a function of one argument")
    argument = evaluation.value(body.children[1])
    given = evaluation.given(body.value)
    if argument.data[(0,) * evaluation.axes].size != argument.data.size or not isinstance(given, Function):
        raise Malformed(r"behind \nabla comes a given function of something without an index")
    plain = argument.indexed[(0,) * evaluation.axes]
    evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    return argument.like(np.reshape(derivative(given.call, plain).raw, argument.data.shape))


def at(evaluation: "Evaluation", node: Node) -> Value:
    """Evaluate an expression where a given, or an entry of one, has another value."""
    body, chain = node.children
    if len(chain.children) != 3 or chain.children[1].value != "=":
        raise Malformed("expected where to evaluate, such as x = 0", chain.place)
    inner = assigned(evaluation, chain.children[0], evaluation.value(chain.children[2]), None)
    return inner.value(body)


def assigned(evaluation: "Evaluation", variable: Node, value: Value, condition: np.ndarray | None) -> "Evaluation":
    """Return the evaluation in which a given, or entries of one, have another value."""
    name, indices = variable_of(evaluation, variable)
    given = evaluation.given(name)
    if not isinstance(given, Given) or value.data.size != 1:
        raise Malformed(f"{name} is no number or array that could vary", variable.place)
    raw = np.array(given.raw, dtype=object if evaluation.exact else float)
    if not indices:
        raw[...] = value.data.item()
    else:
        own = given.value(0, evaluation.exact)
        if len(indices) != raw.ndim:
            raise Malformed(f"{name} has {raw.ndim} indices", variable.place)
        taken = [evaluation.position(index, own.start(axis), raw.shape[axis], own) for axis, index in enumerate(indices)]
        chosen = np.broadcast_arrays(*taken, np.ones((1,) * evaluation.axes, bool) if condition is None else condition)
        raw[tuple(place[chosen[-1]] for place in chosen[:-1])] = value.data.item()
    return evaluation.with_given(name, raw)


def limit(evaluation: "Evaluation", domain: Node, body: Node) -> Value:
    """Return a limit in a given, or in entries of one."""
    to, *conditions = domain.children
    if to.kind != "to":
        raise Malformed(r"expected a variable and where it goes, such as x \to 0, beneath \lim", domain.place)
    variable, target_node = to.children
    target = evaluation.value(target_node)
    scope = evaluation.here()
    condition = None
    for letter in variable.letters() - evaluation.letters.keys():
        scope.enter(letter, variable)
    for chain in conditions:
        condition = scope.truth(chain) if condition is None else condition & scope.truth(chain)
    name, _ = variable_of(evaluation, variable)
    given = evaluation.given(name)
    if evaluation.exact and isinstance(given, Given) and getattr(given.raw, "is_Symbol", False):
        return symbolic_limit(evaluation, body, given.raw, target, to.value)
    if target.data.size != 1:
        raise Malformed("a limit goes to one number", target_node.place)
    goal = float(target.data.item())
    form: Value | None = None

    def at(point: float) -> np.ndarray:
        nonlocal form
        inner = assigned(scope, variable, Value(np.full((1,) * evaluation.axes, point)), condition)
        inner.letters, inner.mask = dict(evaluation.letters), evaluation.mask
        form = inner.value(body)
        return form.data

    found, apart = extrapolated(at, points(goal, to.value or "+"))
    evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES, 100 * apart)
    if not to.value and not math.isinf(goal) and not np.allclose(found, extrapolated(at, points(goal, "-"))[0], rtol=1e-6, atol=1e-6):
        raise Malformed("the limits from both sides differ: write from which side, as 0^+")
    assert form is not None
    evaluation.note(form.like(found))
    return form.like(found)


def symbolic_limit(evaluation: "Evaluation", body: Node, symbol: Any, target: Value, side: str) -> Value:
    """Return the limit of SymPy expressions."""
    import sympy

    value = evaluation.value(body)
    goal = target.data.item()
    return value.like(one_by_one(lambda entry: sympy.limit(entry, symbol, goal, side or "+"), value.data))


def minimiser(evaluation: "Evaluation", variable: Node, body: Node) -> Value:
    """Return where an expression is least: Newton's steps by differences, exact for squares."""
    given = evaluation.given(variable.value)
    if not isinstance(given, Given) or evaluation.exact or given.form == "opaque":
        raise Malformed(f"{variable.value} is no array of floats that could vary", variable.place)
    at = np.array(given.raw, dtype=float)

    def cost(moved: np.ndarray) -> float:
        value = evaluation.with_given(variable.value, moved.reshape(at.shape)).value(body)
        if value.form != "scalar" or value.data.size != 1:
            raise Malformed(r"what is made least is one number without an index", body.place)
        return float(value.data.item())

    flat, count = at.ravel(), at.size
    unit = np.eye(count)
    here = cost(flat)
    forth = np.array([cost(flat + unit[i]) for i in range(count)])
    back = np.array([cost(flat - unit[i]) for i in range(count)])
    curvature = np.diag(forth + back - 2 * here)
    for i, j in itertools.combinations(range(count), 2):
        curvature[i, j] = curvature[j, i] = cost(flat + unit[i] + unit[j]) - forth[i] - forth[j] + here
    found = flat - np.linalg.lstsq(curvature, (forth - back) / 2, rcond=None)[0]
    least = cost(found)
    if any(cost(found + sign * unit[i] / 8) < least for i in range(count) for sign in (-1, 1)):
        raise Malformed("the least value is not found: the expression is no square", body.place)
    evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    return Value(
        given.value(evaluation.axes, False).data.dtype.type(0)
        + Given(found.reshape(at.shape), given.form, given.start).value(evaluation.axes, False).data,
        given.form,
    )
