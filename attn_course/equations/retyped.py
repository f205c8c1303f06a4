"""No retyping: what a formula claims must not be computed from the other givens by the operators of the formula itself."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping

from attn_course.equations.core import Equation, Maker
from attn_course.equations.errors import Malformed
from attn_course.formulas import Node

WRAPPERS = {"row", "rows", "column", "columns", "vector", "matrix", "matrices", "array", "asarray", "float", "copy", "of"}
OWN_WAY = {"linalg", "fft"}  # solvers of NumPy
LOOPS = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


def retyped(equation: Equation) -> list[str]:
    """Return the names that a formula claims and whose givens are nothing but operators on other givens.

    A function of the reference, a derivative, a solver, a count, a loop or a comprehension is another way.
    """
    definition = _source(equation.make)
    locals_ = _assigned_once(definition)
    functions = {node.name for node in ast.walk(definition) if isinstance(node, ast.FunctionDef)}  # loops, mostly
    given = {name: _written_out(value, locals_) for name, value in _returned(definition, locals_)}
    symbols = {name: _symbols(parts) - locals_.keys() | _drawn(parts, locals_) for name, parts in given.items()}
    found = []
    for name in sorted(_claimed(equation.read().tree) & given.keys()):
        others = {symbol for other in given if other != name for symbol in symbols[other]} - equation.make.__globals__.keys()
        if not symbols[name] & functions and symbols[name] & others and _is_operators(given[name]):
            found.append(name)
    return found


def _claimed(node: Node) -> set[str]:
    """Return the names that stand alone, or with indices only, on a side of an equality that is claimed."""
    if node.kind == "chain":
        sides = node.children[::2] if any(sign.value == "=" for sign in node.children[1::2]) else ()
        bases = [side.children[0] if side.kind == "entry" else side for side in sides]
        return {base.value for base in bases if base.kind == "name"}
    parts = {"formula": node.children, "all": node.children, "where": node.children[:1], "given": node.children[1:]}
    if node.kind == "implies":
        return _claimed(node.children[1])
    return set[str]().union(*(_claimed(part) for part in parts.get(node.kind, ())))


def _is_operators(parts: list[ast.expr]) -> bool:
    """Whether an expression combines something, and by operators alone."""
    combines = False
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, LOOPS | ast.Lambda | ast.IfExp):
            return False
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id not in WRAPPERS:
                return False
            if isinstance(called, ast.Attribute) and any(_is_another_way(part) for part in ast.walk(called)):
                return False
        combines |= isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") not in WRAPPERS)
    return combines


def _is_another_way(part: ast.AST) -> bool:
    """Whether a call goes to a solver, to the reference, or is drawn."""
    return getattr(part, "attr", "") in OWN_WAY or getattr(part, "id", "") in ("reference", "costs", "rng")


def _source(make: Maker) -> ast.FunctionDef:
    definition = ast.parse(textwrap.dedent(inspect.getsource(make))).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise Malformed("the givens are made by a function that is written with def")
    return definition


def _assigned_once(definition: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the names that are assigned once, outside of loops and functions, with what they stand for."""
    found: dict[str, list[ast.expr | None]] = {}
    for statement in definition.body:
        pairs = list(_pairs(statement)) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else []
        for name, value in pairs:
            found.setdefault(name, []).append(value)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in dict(pairs):
                found.setdefault(node.id, []).append(None)
            filled = isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
            filled = filled or getattr(node, "attr", "") in ("append", "extend")
            if filled and isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name):  # step by step
                found.setdefault(node.value.id, []).append(None)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and values[0] is not None}


def _pairs(statement: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from ((name.id, one) for name, one in zip(target.elts, value.elts, strict=True) if isinstance(name, ast.Name))


def _returned(definition: ast.FunctionDef, values: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the items of the dictionaries that a function returns, as far as they are written there."""
    returns = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return) and node.value is not None]
    for part in (part for value in returns for whole in _written_out(value, values) for part in ast.walk(whole)):
        if isinstance(part, ast.Dict):
            yield from ((str(key.value), value) for key, value in zip(part.keys, part.values, strict=True) if isinstance(key, ast.Constant))


def _written_out(value: ast.expr, values: Mapping[str, ast.expr]) -> list[ast.expr]:
    """Return an expression and what the local names in it stand for, unless that was drawn."""
    parts, seen = [value], set[str]()
    for part in parts:  # grows
        new = {name for name in _symbols([part]) & values.keys() - seen if not _is_drawn(values[name])}
        seen |= new
        parts += [values[name] for name in sorted(new)]
    return parts


def _symbols(parts: list[ast.expr]) -> set[str]:
    return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


def _drawn(parts: list[ast.expr], values: Mapping[str, ast.expr]) -> set[str]:
    return {name for name in _symbols(parts) & values.keys() if _is_drawn(values[name])}


def _is_drawn(value: ast.expr) -> bool:
    return "rng" in _symbols([value])
