"""Functions: those every formula knows, those that are given or defined, and moments of what is random."""

import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import BENEATH, BUILT_IN, lse
from attn_course.formulas.givens import BY_AXES, DIFFERENCES, STEP, Function, Given, Outcomes, called, difference
from attn_course.formulas.scope import Scope
from attn_course.formulas.sums import running
from attn_course.formulas.tree import Node, bound_by, without_under, write
from attn_course.formulas.values import FLAT, Value, check_form, entrywise, outer, softmax

MOST_CALLS = 20_000  # of one Python function, one for each value of the indices


def call(evaluation: Scope, node: Node) -> Value:
    """Call a function: defined here, given, or known to every formula; primes behind its name are derivatives."""
    under, *arguments = node.children
    name, plain = node.value, node.value.rstrip("'")
    if name in evaluation.formula.definitions:
        return _call_defined(evaluation, name, arguments)
    if plain in evaluation.givens:
        return _call_given(evaluation, name, under, arguments)
    if name in ("E", "Var", "Cov"):
        return _moment(evaluation, name, under, arguments)
    if name == "std" and evaluation.value(arguments[0]).form == "scalar" and evaluation.notes.weights:  # known once it is evaluated
        return entrywise("sqrt", _moment(evaluation, "Var", under, arguments))
    if name == r"\sigma" and under.kind != "none" and under.value not in bound_by(node) and under.kind != "word":
        return evaluation.value(Node("entry", (without_under(node), under), "", node.place))  # \sigma_i(z)
    if name in (r"\sigma", "lse") and under.kind == "index":
        along = running(evaluation, "softmax" if name != "lse" else name, under.value, arguments[0])
        return softmax(along) if name == r"\sigma" else lse(along)
    if len(arguments) != (2 if name == "KL" else 1) and name not in (r"\max", r"\min"):
        raise Malformed("KL wants two distributions" if name == "KL" else f"{name} has one argument")
    values = [evaluation.value(argument) for argument in arguments]
    if name != plain:
        return _slope(plain, len(name) - len(plain), values[0])
    if under.kind != "none" and name not in BENEATH:
        raise Malformed(f"nothing stands beneath {name}", under.place)
    built_in = BUILT_IN[name]
    assert built_in is not None
    return built_in(*values, under) if name in BENEATH else built_in(*values)


def _call_defined(evaluation: Scope, name: str, arguments: list[Node]) -> Value:
    definition = evaluation.formula.definitions[name]
    if len(arguments) != len(definition.parameters):
        raise Malformed(f"{name} has {len(definition.parameters)} arguments")
    inner = evaluation.within(name)
    inner.locals = {**evaluation.locals, **dict(zip(definition.parameters, map(evaluation.value, arguments), strict=True))}
    return inner.value(definition.body)


def _call_given(evaluation: Scope, name: str, under: Node, arguments: list[Node]) -> Value:
    plain = name if name in evaluation.givens else name.rstrip("'")
    given = evaluation.given(plain)
    if not isinstance(given, Function):
        raise Malformed(f"{name} is no function")
    if under.kind != "none" and not given.names and not _takes(given.call, 1 + len(arguments)) and _takes(given.call, len(arguments)):
        return evaluation.value(Node("entry", (without_under(Node("call", (under, *arguments), name)), under)))  # f_i(x) is f(x)_i
    values = [evaluation.value(argument) for argument in ([] if under.kind == "none" else [under]) + arguments]
    for _ in range(len(name) - len(plain)):
        given = replace(given, call=functools.partial(_difference, given.call))
        evaluation.notes.noise = max(evaluation.notes.noise, DIFFERENCES)
    return applied(evaluation, name, given, values, beneath=under.kind != "none")


def _takes(call: Callable[..., Any], count: int) -> bool:
    """Whether a function takes so many arguments, as far as it says."""
    try:
        inspect.signature(call).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _difference(call: Callable[[Any], Any], at: Any) -> Any:
    return difference(call, at, STEP) / STEP


def applied(evaluation: Scope, name: str, function: Function, values: list[Value], beneath: bool = False) -> Value:
    """Call a function of plain arrays for each combination of the index letters its arguments depend on."""
    lead = np.broadcast_shapes(*(value.data.shape[: evaluation.axes] for value in values))
    if math.prod(lead) > MOST_CALLS:
        raise Malformed(f"{name} would be called {math.prod(lead):,} times; at most {MOST_CALLS:,}")
    if function.entrywise and all(value.form == "scalar" for value in values):
        return Value(np.broadcast_to(called(function.call, [value.data for value in values], name), lead))
    plain = [np.broadcast_to(value.indexed, (*lead, *value.indexed.shape[evaluation.axes :])) for value in values]
    results = []
    for place in np.ndindex(lead):
        arguments: list[Any] = [array[place] for array in plain]
        if beneath and np.ndim(arguments[0]) == 0 and float(arguments[0]).is_integer():
            arguments[0] = int(arguments[0])
        results.append(called(function.call, arguments, name))
    if isinstance(results[0], Outcomes):
        return evaluation.random(results[0])
    if isinstance(results[0], Given):
        form, start, results = results[0].form, results[0].start, [result.raw for result in results]
        if form == "opaque":
            return Given(results[0], form).value(evaluation.axes)
    else:
        form, start = function.returns or BY_AXES[min(np.ndim(results[0]), 3)], function.start
        if form == "vector" and not function.returns:
            flat = [value.form for value in values[beneath:] if value.form in FLAT and not value.lists]
            form = flat[0] if flat and flat[0] != "tuple" else form
    if len({np.shape(result) for result in results}) > 1:
        raise Malformed(f"{name} returns arrays of different shapes")
    found = Given(np.array(results), form, start).value(0)
    return Value(found.data.reshape((*lead, *found.data.shape[1:])), found.form, found.lists - 1, found.starts[1:])


def called_list(error: Malformed, tree: Node, latex: str, givens: Mapping[str, Any]) -> Malformed:
    """Say of what does not fit that a list stands before a number in parentheses, as a function would; else what was said before."""
    if error.problem.startswith("the two sides do not fit: left is a number, right is"):
        error = Malformed(f"{error.problem}: give it indices, or sum over them", error.place)
    numbers_wanted = "a number" in error.problem or "one of its entries" in error.problem
    for product in tree.walk():
        for symbol, argument in itertools.pairwise(product.children) if product.kind == "product" else ():
            if argument.kind != "tuple" and not numbers_wanted:
                continue
            given = givens.get(symbol.value) if symbol.kind == "name" else None
            if (
                isinstance(given, Given)
                and given.form != "scalar"
                and _OPENS.match(latex, symbol.place[1])
                and _is_number(argument, givens)
            ):
                indices = argument.children if argument.kind == "tuple" else (argument,)
                simple = all(one.kind in ("index", "number", "name") for one in indices)
                entry = write(Node("entry", (symbol, *indices))) if simple else f"{symbol.value}_k"
                what = "a matrix" if given.form == "matrix" and simple else "a list"
                return Malformed(f"{symbol.value} is {what}, not a function: write {entry}", symbol.place)
    return error


_OPENS = re.compile(r"\s*(?:\\(?:left|[bB]igg?l?))?\s*[(\[]")


def _is_number(node: Node, givens: Mapping[str, Any]) -> bool:
    """Whether all that stands in an expression are numbers, indices and entries with an index."""
    if node.kind == "entry":
        return True
    given = givens.get(node.value) if node.kind == "name" else None
    return (given is None or getattr(given, "form", "") == "scalar") and all(_is_number(child, givens) for child in node.children)


def operator(evaluation: Scope, node: Node) -> Value:
    """Apply an operator that is given as a function of two arguments."""
    given = evaluation.givens.get(node.value)
    values = [evaluation.value(child) for child in node.children]
    if given is None and node.value == r"\otimes":
        return outer(*values)
    if not isinstance(given, Function):
        instead = ": for a product write the factors side by side, or \\cdot" * (node.value == "*")
        raise Malformed(f"{node.value} is not given{instead}")
    return applied(evaluation, node.value, given, values)


def _slope(name: str, order: int, value: Value) -> Value:
    """Return a derivative of a function every formula knows, such as tanh''."""
    if name not in _SLOPES:
        raise Malformed(f"{name} has no derivative here")
    return value.like(_SLOPES[name](value.data, order))


def _of_tangent(sign: int, tangent: np.ndarray, order: int) -> np.ndarray:
    """The derivatives of t = tan or tanh are polynomials in t, since t' = 1 + t^2 or 1 - t^2."""
    polynomial = np.polynomial.Polynomial([0, 1])
    for _ in range(order):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1, 0, sign])
    return np.asarray(polynomial(tangent))


_SLOPES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {  # without SymPy: to import it alone takes longer than an answer may
    r"\exp": lambda x, order: np.exp(x),
    r"\ln": lambda x, order: (-1) ** (order - 1) * math.factorial(order - 1) * np.power(x, -float(order)),
    r"\sin": lambda x, order: (np.sin(x), np.cos(x), -np.sin(x), -np.cos(x))[order % 4],
    r"\cos": lambda x, order: (np.cos(x), -np.sin(x), -np.cos(x), np.sin(x))[order % 4],
    r"\tan": lambda x, order: _of_tangent(1, np.tan(x), order),
    r"\tanh": lambda x, order: _of_tangent(-1, np.tanh(x), order),
}


def _moment(evaluation: Scope, name: str, under: Node, arguments: list[Node]) -> Value:
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
        values = [Value(value.indexed, "vector") for value in values]
    elif name != "E":
        for value in values:
            check_form(name, value, "scalar")
    groups = [beneath.group] if isinstance(beneath, Outcomes) else list(evaluation.notes.weights)
    if not groups and not weighted:
        raise Malformed("nothing random is given")

    def mean(data: np.ndarray) -> np.ndarray:
        if weighted:
            return (data * weights.indexed).sum(axis=-1, keepdims=True)
        for group in groups:
            axis = evaluation.groups[group]
            if data.shape[axis] > 1:  # else it does not depend on them
                chances = evaluation.number(evaluation.notes.weights[group])
                data = (data * chances.reshape([-1 if place == axis else 1 for place in range(data.ndim)])).sum(axis=axis, keepdims=True)
        return data

    for value in values:
        evaluation.note(value)
    found = mean(values[0].data)
    if name != "E":
        spread = (values[0].data - found) * (values[-1].data - mean(values[-1].data))
        evaluation.note(Value(spread))
        found = mean(spread)
    return Value(found[..., 0]) if weighted else values[0].like(found)
