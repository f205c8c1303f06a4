"""No retyping: what a formula claims must not be computed from the other givens by the operators of the formula itself."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

WRAPPERS = {"row", "rows", "column", "columns", "vector", "matrix", "matrices", "array", "asarray", "float", "copy", "of"}
OWN_WAY = {"linalg", "fft"}  # solvers of NumPy
DRAWS = {"rng", "normal"}  # what a function draws with
LOOPS = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


def retyped(make: Callable[..., Mapping[str, Any]], claimed: Iterable[str]) -> list[str]:
    """Return the names among those claimed whose givens are nothing but operators on other givens.

    `make`: the function that makes the givens, of which the source is read. A function of the reference, a derivative, a solver, a count,
    a loop or a comprehension in it is another way.

    Raises ValueError if it is no function whose source can be read.
    """
    definition = _source(make)
    locals_ = _assigned_once(definition)
    loops = {node.name for node in ast.walk(definition) if isinstance(node, ast.FunctionDef)} | _filled(definition)
    given = {name: _written_out(value, locals_) for name, value in _returned(definition, locals_)}
    symbols = {name: _symbols(parts) - locals_.keys() | _drawn(parts, locals_) for name, parts in given.items()}
    found = []
    for name in sorted({*claimed} & given.keys()):
        others = {symbol for other in given if other != name for symbol in symbols[other]} - make.__globals__.keys()
        parts, helpers = _with_helpers(given[name], make)
        if not symbols[name] & loops and symbols[name] & others and _is_operators(parts, helpers):
            found.append(name)
    return found


def is_written_down(make: Callable[..., Mapping[str, Any]]) -> bool:
    """Whether a function writes its givens down itself, and can be read, so that `retyped` has something to look at."""
    return hasattr(make, "__code__") and any(isinstance(node, ast.Dict | ast.DictComp) for node in ast.walk(_source(make)))


def _with_helpers(parts: list[ast.expr], make: Callable[..., Any]) -> tuple[list[ast.expr], set[str]]:
    """Return an expression with the bodies of the functions it calls, if they stand in the same file and do not loop, and their names."""
    parts, helpers = [*parts], set[str]()
    for part in parts:  # grows
        for name in _symbols([part]) - helpers:
            helper = make.__globals__.get(name)
            if inspect.isfunction(helper) and helper.__module__ == make.__module__:
                statements = [each for each in _source(helper).body if not _is_docstring(each)]
                if all(isinstance(each, ast.Assign | ast.Return) for each in statements):
                    helpers.add(name)
                    parts += [each.value for each in statements if isinstance(each, ast.Assign | ast.Return) and each.value is not None]
    return parts, helpers


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_operators(parts: list[ast.expr], helpers: set[str]) -> bool:
    """Whether an expression combines something, and by operators alone."""
    combines = False
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, LOOPS | ast.Lambda | ast.IfExp):
            return False
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id not in WRAPPERS | helpers:
                return False
            if isinstance(called, ast.Attribute) and any(_is_another_way(part) for part in ast.walk(called)):
                return False
        combines |= isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") not in WRAPPERS)
    return combines


def _is_another_way(part: ast.AST) -> bool:
    """Whether a call goes to a solver, to the reference, or is drawn."""
    return getattr(part, "attr", "") in OWN_WAY or getattr(part, "id", "") in ("reference", "costs", *DRAWS)


def _source(make: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function; a lambda is one that returns."""
    code = getattr(make, "__code__", None)
    file = inspect.getsourcefile(make) if code else None
    if code is None or file is None:
        raise ValueError("the givens are made by a function whose source can be read")
    if code.co_name != "<lambda>":
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(make))).body
        assert isinstance(definition, ast.FunctionDef)
        return definition
    names = [*code.co_varnames[: code.co_argcount]]
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and [each.arg for each in node.args.args] == names:
            return ast.FunctionDef(name="make", args=node.args, body=[ast.Return(node.body)], decorator_list=[])
    raise ValueError("the givens are made by a function whose source can be read")


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


def _filled(definition: ast.FunctionDef) -> set[str]:
    """Return the names that a loop fills step by step with what is not drawn."""
    found = set[str]()
    assigned: dict[str, list[bool]] = {}
    for assignment in (node for node in ast.walk(definition) if isinstance(node, ast.Assign)):
        for name in _symbols(assignment.targets):
            assigned.setdefault(name, []).append(_is_drawn(assignment.value))
    for node in (node for loop in ast.walk(definition) if isinstance(loop, ast.For | ast.While) for node in ast.walk(loop)):
        if isinstance(node, ast.AugAssign) and not _is_drawn(node.value):
            found |= _symbols([node.target])
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("append", "extend"):
            drawn = [_is_drawn(part) or all(assigned.get(getattr(part, "id", ""), [False])) for part in node.args]
            found |= set() if any(drawn) else _symbols([node.func])
    return found


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
    return not DRAWS.isdisjoint(_symbols([value]))
