"""Read a statement's source: its left and right sides as syntax trees, local names written out."""

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from attn_course.equations.errors import Malformed

CONTROLS = {"tight", "scale", "closeness", "resolution"}  # keywords that steer the check and are no part of the formula
SOLVERS = {
    "covariance",
    "diff",
    "dsolve",
    "expectation",
    "integrate",
    "jacobian",
    "limit",
    "linsolve",
    "rsolve",
    "series",
    "solve",
    "solveset",
    "doit",
    "variance",
}


@dataclass(frozen=True)
class Site:
    """One `return` or `yield` of a statement."""

    node: ast.Return | ast.Yield
    value: ast.expr
    left: ast.expr | None
    """The left side; None for a chain, where every term may be mutated."""
    targets: tuple[ast.expr, ...]
    """The expressions on the right side."""


def function_source(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a statement, without its decorators."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef), "a statement is written with def"
    definition.decorator_list = []
    return definition


def namespace(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names a statement can see."""
    return {**function.__globals__, **inspect.getclosurevars(function).nonlocals}


def sites(definition: ast.FunctionDef) -> list[Site]:
    """Find every place where a statement states something."""
    return [_site(node) for node in _own_nodes(definition) if isinstance(node, ast.Return | ast.Yield) and node.value is not None]


def _site(node: ast.Return | ast.Yield) -> Site:
    value = node.value
    assert value is not None
    if isinstance(value, ast.Tuple) and len(value.elts) == 2:
        left, right = value.elts
        return Site(node, value, left, tuple(right.elts) if isinstance(right, ast.Tuple) else (right,))
    if isinstance(value, ast.Call):
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        terms = [argument for argument in value.args if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str))]
        if name in ("Equal", "Limit", "Moment") and len(terms) >= 2:
            return Site(node, value, terms[0], (terms[1],))
        if name == "Chain":
            return Site(node, value, None, tuple(terms))
    raise Malformed(f"a statement spells out its sides where it returns them; got {ast.unparse(value)}")


def _own_nodes(definition: ast.FunctionDef) -> Iterator[ast.AST]:
    """Walk a function's body, but not into functions inside it."""
    queue: list[ast.AST] = list(definition.body)
    while queue:
        node = queue.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def local_values(definition: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the local names that are assigned exactly once, by a plain assignment, with what they stand for."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in _own_nodes(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, []).append(None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    values.setdefault(name.id, []).append(value)
    plain = {name: [value for value in found if value is not None] for name, found in values.items()}
    return {name: found[0] for name, found in plain.items() if len(found) == 1 and values[name].count(None) == 1}


def written_out(expression: ast.expr, values: dict[str, ast.expr], deep: bool = True) -> ast.expr:
    """Replace local names by what they stand for: all of them, or only a side that is nothing but a name."""
    if not deep:
        while isinstance(expression, ast.Name) and expression.id in values:
            expression = values[expression.id]
        return expression
    for _ in range(len(values)):  # each round writes out one more layer
        expression = _Names(values).visit(copy.deepcopy(expression))
    return expression


class _Names(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name ast asks for
        return copy.deepcopy(self.values[node.id]) if node.id in self.values else node


def calls_a_solver(expression: ast.expr, scope: dict[str, Any]) -> bool:
    """Tell whether an expression differentiates, solves, integrates or takes a limit, itself or in a helper of its own file."""
    calls = [node.func for node in ast.walk(expression) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    if names & SOLVERS:
        return True
    helpers = [scope[name] for name in names if inspect.isfunction(scope.get(name)) and scope[name].__module__ == scope["__name__"]]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(helper))) for helper in helpers]
    inner = [node.func for body in bodies for node in ast.walk(body) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr in SOLVERS for call in inner)
