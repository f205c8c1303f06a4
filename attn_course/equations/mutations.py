"""Small changes to a formula as it is written in Python: a sign, a term, a factor, an index, a constant, a function."""

import ast
import copy
from collections.abc import Iterator

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
_TWINS = {"max": "min", "min": "max", "Max": "Min", "Min": "Max", "maximum": "minimum", "minimum": "maximum", "sin": "cos", "cos": "sin"}


def mutations(expression: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield every small change of an expression."""
    indices = _bound_names(expression)
    seen = {ast.dump(expression)}
    for node in ast.walk(expression):
        for variant in _variants(node, indices):
            mutated = replaced(expression, {id(node): variant})
            if ast.dump(mutated) not in seen:
                seen.add(ast.dump(mutated))
                yield f"{ast.unparse(node)} -> {ast.unparse(ast.fix_missing_locations(variant))}", mutated


def replaced(expression: ast.expr, new: dict[int, ast.expr]) -> ast.expr:
    """Copy an expression with some of its nodes (by id) replaced."""
    # deepcopy looks objects up in its memo by id first: nodes entered there come out replaced
    return copy.deepcopy(expression, {key: copy.deepcopy(node) for key, node in new.items()})


def _bound_names(expression: ast.expr) -> list[str]:
    """Return the indices of the formula: arguments of its lambdas and variables of its comprehensions."""
    arguments = [argument.arg for node in ast.walk(expression) if isinstance(node, ast.Lambda) for argument in node.args.args]
    loops = [node.target for node in ast.walk(expression) if isinstance(node, ast.comprehension)]
    variables = [name.id for target in loops for name in ast.walk(target) if isinstance(name, ast.Name)]
    return [name for name in dict.fromkeys(arguments + variables) if name != "_"]


def _variants(node: ast.AST, indices: list[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _operations(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITE:
        yield ast.Compare(node.left, [_OPPOSITE[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in indices:
        yield from (ast.Name(name, ast.Load()) for name in indices if name != node.id)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _operations(node: ast.BinOp) -> Iterator[ast.expr]:
    left, right = node.left, node.right
    if isinstance(node.op, ast.Add):
        yield from (ast.BinOp(left, ast.Sub(), right), left, right)
    elif isinstance(node.op, ast.Sub):
        yield from (ast.BinOp(left, ast.Add(), right), left, ast.UnaryOp(ast.USub(), right))
    elif isinstance(node.op, ast.Mult):
        yield from (left, right)
    elif isinstance(node.op, ast.Div):
        yield from (left, right, ast.BinOp(right, ast.Div(), left))
    elif isinstance(node.op, ast.MatMult):
        yield from (left, right, ast.BinOp(right, ast.MatMult(), left))
    elif isinstance(node.op, ast.Pow):
        yield left


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    arguments = node.args
    if name in _TWINS:
        twin = _TWINS[name]
        function = ast.Attribute(node.func.value, twin, ast.Load()) if isinstance(node.func, ast.Attribute) else ast.Name(twin, ast.Load())
        yield ast.Call(function, arguments, node.keywords)
    if len(arguments) == 1 and not isinstance(arguments[0], ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.Starred):
        yield arguments[0]
    elif len(arguments) >= 2 and not any(isinstance(argument, ast.Lambda | ast.Starred) for argument in arguments):
        yield ast.Call(node.func, [arguments[1], arguments[0], *arguments[2:]], node.keywords)
