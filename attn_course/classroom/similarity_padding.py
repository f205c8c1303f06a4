"""Take lines away that do nothing: whoever puts them between the lines of a copy hides no copy by them."""

import ast
from collections import defaultdict
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_HOLDERS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
_NEUTRAL = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1, ast.Pow: 1}  # on the right; two of them also on the left
_ROUNDS = 8  # what is left when a loop or a branch has gone may do nothing either; whoever nests deeper keeps it


def without_padding(tree: ast.Module) -> None:
    """Take out of a cell, in place, what has no effect on what its functions return.

    These are constants and names that stand alone (docstrings among them), `pass`, calls of print, statements that are never reached,
    branches of a constant condition, names given to themselves (`x = x + 0`), loops and branches with nothing in them, whatever binds a
    name that is bound again before it is read, and inside a function whatever binds a name that nothing needs. What a cell binds at its
    end is kept: another may need it.
    """
    for _ in range(_ROUNDS):
        blocks = list(_blocks(tree))
        before = sum(len(block) for _, _, block in blocks)
        unneeded = _unneeded(tree)
        for holder, name, block in blocks:
            setattr(holder, name, list(_alive(block, unneeded | _overwritten(block))))
        if sum(len(block) for _, _, block in _blocks(tree)) == before:
            return


def _blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):  # the body of a lambda is none
                yield node, name, block


def _alive(block: list[ast.stmt], unneeded: set[int]) -> Iterator[ast.stmt]:
    for statement in block:
        if id(statement) in unneeded or _does_nothing(statement):
            continue
        kept = _taken(statement)
        yield from kept
        if kept and isinstance(kept[-1], _LEAVES):
            return


def _taken(statement: ast.stmt) -> list[ast.stmt]:
    """The statement, or of one with a constant condition what then happens."""
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant):
        return statement.body if statement.test.value else statement.orelse
    if isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and not statement.test.value:
        return statement.orelse
    return [statement]


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        value = statement.value
        is_print = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
        return is_print or isinstance(value, (ast.Constant, ast.Name))
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        given = None if statement.value is None else _without_neutral(statement.value)
        return isinstance(given, ast.Name) and all(isinstance(target, ast.Name) and target.id == given.id for target in targets)
    if isinstance(statement, ast.AugAssign):
        return _is_neutral(statement.value, statement.op)
    if isinstance(statement, _HOLDERS):
        return not any(getattr(statement, name, None) for name in _BLOCKS)
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant))


def _without_neutral(value: ast.expr) -> ast.expr:
    """What is left of an expression when zeros added to it, factors of one and plus signs are taken away."""
    while True:
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.UAdd):
            value = value.operand
        elif isinstance(value, ast.BinOp) and _is_neutral(value.right, value.op):
            value = value.left
        elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult)) and _is_neutral(value.left, value.op):
            value = value.right
        else:
            return value


def _is_neutral(value: ast.expr, op: ast.operator) -> bool:
    """Whether a number changes nothing when it is the right side of an operation; a complex one makes all numbers complex."""
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) and _NEUTRAL.get(type(op)) == value.value


def _unneeded(tree: ast.Module) -> set[int]:
    """Statements inside functions, by identity, that bind nothing but names which no other kind of statement needs, however indirectly."""
    binders: dict[int, set[str]] = {}
    reads: defaultdict[int, set[str]] = defaultdict(set)
    needed: set[str] = set()
    stack: list[tuple[ast.AST, int, bool]] = [(tree, 0, False)]  # a node, the statement it belongs to, and whether that is in a function
    while stack:
        node, owner, inside = stack.pop()
        if isinstance(node, ast.stmt):
            owner = id(node)
            if inside and (names := _bound(node)) is not None:
                binders[owner] = names
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            (reads[owner] if owner in binders else needed).add(node.id)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            needed.update(node.names)
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            inside = isinstance(node, _FUNCTIONS)
        stack += [(child, owner, inside) for child in ast.iter_child_nodes(node)]
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for statement, names in binders.items():
        for name in names:
            by_name[name].append(statement)
    waiting = list(needed)
    while waiting:
        for statement in by_name.pop(waiting.pop(), []):
            new = reads.pop(statement, set()) - needed
            needed |= new
            waiting += new
    return {statement for statement, names in binders.items() if not names & needed}


def _overwritten(block: list[ast.stmt]) -> set[int]:
    """Statements of a block, by identity, that bind names which are bound again before they are read."""
    again: set[str] = set()
    found = set()
    for statement in reversed(block):
        names = _bound(statement)
        if names and names <= again:
            found.add(id(statement))
            continue
        if hasattr(statement, "body"):  # a long chain of conditions is a block within a block within a block
            again.clear()
            continue
        if isinstance(statement, ast.Assign):
            again |= names or set()
        again -= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):
            again -= names or set()
    return found


def _bound(statement: ast.stmt) -> set[str] | None:
    """The names that a statement binds if it does nothing else, as far as its form says; else None."""
    targets: list[ast.expr]
    if isinstance(statement, (ast.Assign, ast.Delete)):
        targets = [*statement.targets]
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    elif isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    else:
        return None
    names: set[str] = set()
    while targets:
        target = targets.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Name):
            names.add(target.id)
        else:
            return None
    return names
