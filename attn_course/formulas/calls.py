"""Functions: those every formula knows, those that are given or defined, and moments of what is random."""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import BUILT_IN, ENTRYWISE
from attn_course.formulas.givens import DIFFERENCES, STENCIL, STEP, Function, Given, Outcomes, called
from attn_course.formulas.sums import running_softmax
from attn_course.formulas.tree import Node
from attn_course.formulas.values import FLAT, Value, one_by_one

if TYPE_CHECKING:
    from attn_course.formulas.evaluate import Evaluation

MOST_CALLS = 20_000  # of one Python function, one for each value of the indices


def call(evaluation: "Evaluation", node: Node) -> Value:
    """Call a function: defined here, given, or known to every formula."""
    under, *arguments = node.children
    name = node.value
    if name in evaluation.formula.definitions:
        return call_defined(evaluation, name, arguments)
    if name.rstrip("'") in evaluation.givens:
        return call_given(evaluation, name, under, arguments)
    if name in ("E", "Var", "Cov"):
        return moment(evaluation, name, under, arguments)
    if name == r"\sigma" and under.kind == "index":
        return running_softmax(evaluation, under.value, arguments[0])
    if name.endswith("'"):
        return slope(evaluation, name, arguments)
    built_in = BUILT_IN[name]
    assert built_in is not None
    if len(arguments) != 1 and name not in (r"\max", r"\min", "KL"):
        raise Malformed(f"{name} has one argument")
    return built_in([evaluation.value(argument) for argument in arguments], under)


def call_defined(evaluation: "Evaluation", name: str, arguments: list[Node]) -> Value:
    """Evaluate the body of a function that the formula defines, with its arguments."""
    definition = evaluation.formula.definitions[name]
    if len(arguments) != len(definition.parameters):
        raise Malformed(f"{name} has {len(definition.parameters)} arguments")
    if name in evaluation.running:
        raise Malformed(f"{name} is defined by itself")
    inner = evaluation.here()
    inner.running = evaluation.running | {name}
    inner.locals = {**evaluation.locals, **dict(zip(definition.parameters, map(evaluation.value, arguments), strict=True))}
    return inner.value(definition.body)


def call_given(evaluation: "Evaluation", name: str, under: Node, arguments: list[Node]) -> Value:
    """Call a function that is given; primes behind its name are derivatives."""
    given = evaluation.given(name if name in evaluation.givens else name.rstrip("'"))
    if not isinstance(given, Function):
        raise Malformed(f"{name} is no function")
    beneath = [] if under.kind == "none" else [evaluation.value(under)]
    values = [*beneath, *(evaluation.value(argument) for argument in arguments)]
    for _ in range(len(name) - len(name.rstrip("'")) if name not in evaluation.givens else 0):
        given = replace(given, call=_slope_of(given.call))
        evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    return applied(evaluation, name, given, values, len(beneath))


def applied(evaluation: "Evaluation", name: str, function: Function, values: list[Value], beneath: int = 0) -> Value:
    """Call a function of plain arrays for each combination of the index letters its arguments depend on."""
    lead = np.broadcast_shapes(*(value.data.shape[: evaluation.axes] for value in values)) if values else (1,) * evaluation.axes
    if math.prod(lead) > MOST_CALLS:
        raise Malformed(f"{name} would be called {math.prod(lead):,} times; at most {MOST_CALLS:,}")
    if function.entrywise and all(value.form == "scalar" for value in values):
        return Value(np.broadcast_to(called(function.call, [value.data for value in values], name), lead))
    plain = [np.broadcast_to(value.indexed, (*lead, *value.indexed.shape[evaluation.axes :])) for value in values]
    results = []
    for place in np.ndindex(lead):
        arguments = [array[place] for array in plain]
        arguments = [_whole(one) if count < beneath else one for count, one in enumerate(arguments)]
        results.append(called(function.call, arguments, name))
    if isinstance(results[0], Outcomes):
        return evaluation.random(results[0])
    if isinstance(results[0], Given) and results[0].form == "opaque":
        return results[0].value(evaluation.axes, evaluation.exact)
    first = next((value.form for value in values[beneath:] if value.form in FLAT and not value.lists), "vector")
    plain_form = ("scalar", "vector" if first == "tuple" else first, "matrix", "matrix")
    if isinstance(results[0], Given):
        form, start, results = results[0].form, results[0].start, [result.raw for result in results]
    else:
        form, start = function.returns or plain_form[min(np.ndim(results[0]), 3)], function.start
    if len({np.shape(result) for result in results}) > 1:
        raise Malformed(f"{name} returns arrays of different shapes")
    found = Given(np.array(results), form, start).value(0, evaluation.exact)
    return Value(found.data.reshape((*lead, *found.data.shape[1:])), found.form, found.lists - 1, found.starts[1:])


def slope(evaluation: "Evaluation", name: str, arguments: list[Node]) -> Value:
    """Return a derivative of a function every formula knows, such as tanh''."""
    (argument,) = arguments
    value = evaluation.value(argument)
    plain, order = name.rstrip("'"), len(name) - len(name.rstrip("'"))
    if plain not in ENTRYWISE:
        raise Malformed(f"{plain} has no derivative here")
    if evaluation.exact:
        import sympy

        x = sympy.Symbol("x")
        expression = sympy.diff(getattr(sympy, plain.removeprefix("\\").replace("ln", "log"))(x), x, order)
        return value.like(one_by_one(lambda at: expression.subs(x, at), value.data))
    return value.like(np.broadcast_to(_slope_of_known(plain, order)(value.data), value.data.shape))


def operator(evaluation: "Evaluation", node: Node) -> Value:
    """Apply an operator that is given as a function of two arguments."""
    given = evaluation.givens.get(node.value)
    if not isinstance(given, Function):
        raise Malformed(f"{node.value} is not given")
    return applied(evaluation, node.value, given, [evaluation.value(child) for child in node.children])


def moment(evaluation: "Evaluation", name: str, under: Node, arguments: list[Node]) -> Value:
    """Return an expectation, a variance or a covariance over all outcomes, of one random given, or over the weights beneath."""
    if len(arguments) != 1 + (name == "Cov"):
        raise Malformed(f"{name} has {1 + (name == 'Cov')} argument{'s' * (name == 'Cov')}")
    values = [evaluation.value(argument) for argument in arguments]
    beneath = evaluation.givens.get(under.value) if under.kind == "name" else None
    weighted = under.kind != "none" and not isinstance(beneath, Outcomes)
    if weighted:
        weights = evaluation.value(under)
        if any(value.form not in FLAT or value.lists or value.indexed.shape[-1] != weights.indexed.shape[-1] for value in values):
            raise Malformed(f"the weights beneath {name} are {weights}, its argument is {values[0]}")
        mean = _over_entries(weights.indexed)
        values = [Value(value.indexed, "vector") for value in values]
    else:
        mean = _over_outcomes(evaluation, [beneath.group] if isinstance(beneath, Outcomes) else list(evaluation.notes.weights))
    for value in values:
        evaluation.note(value)
    means = [mean(value.data) for value in values]
    if name == "E":
        return Value(means[0][..., 0]) if weighted else values[0].like(means[0])
    if not weighted and any(value.form != "scalar" for value in values):
        raise Malformed(f"{name} wants numbers")
    spread = (values[0].data - means[0]) * (values[-1].data - means[-1])
    evaluation.note(Value(spread))
    return Value(mean(spread)[..., 0] if weighted else mean(spread))


def _over_entries(weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda data: (data * weights).sum(axis=-1, keepdims=True)


def _over_outcomes(evaluation: "Evaluation", groups: list[str]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the mean over the outcomes of random givens, each group along its own axis."""
    if not groups:
        raise Malformed("nothing random is given")

    def mean(data: np.ndarray) -> np.ndarray:
        for group in groups:
            axis = evaluation.groups[group]
            if data.shape[axis] > 1:  # else it does not depend on them
                weights = evaluation.number(evaluation.notes.weights[group])
                data = (data * weights.reshape([-1 if place == axis else 1 for place in range(data.ndim)])).sum(axis=axis, keepdims=True)
        return data

    return mean


def _whole(number: np.ndarray) -> Any:
    """Return an index as a whole number; what is none stays as it is."""
    return int(number) if np.ndim(number) == 0 and float(number).is_integer() else number


@functools.cache
def _slope_of_known(name: str, order: int) -> Callable[[np.ndarray], np.ndarray]:
    import sympy

    x = sympy.Symbol("x")
    return sympy.lambdify(x, sympy.diff(getattr(sympy, name.removeprefix("\\").replace("ln", "log"))(x), x, order), "numpy")


def _slope_of(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def slope(at: Any) -> Any:
        return sum(weight * (call(at + count * STEP) - call(at - count * STEP)) for count, weight in STENCIL) / STEP

    return slope
