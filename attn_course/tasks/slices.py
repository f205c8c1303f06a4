"""Of a notebook's cells, the part that makes one name what it is: where forbidden calls are looked for without running anything.

Standard library only, like `source`, so that a confined worker can read the text before it runs it: no other process parses it.
"""

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Slice:
    """What makes a name: the statements as text, and the cells they stand in."""

    text: str
    cells: tuple[int, ...]


@dataclass(frozen=True)
class _Statement:
    node: ast.stmt
    cell: int
    binds: frozenset[str]
    uses: frozenset[str]

    @functools.cached_property
    def text(self) -> str:
        return ast.unparse(self.node)

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, (ast.Import, ast.ImportFrom))


class Cells:
    """The parsed cells of a notebook.

    `trees`: one for each cell, empty where a cell does not parse. `given`: what `statements` says of the exercise's own helper
    functions, which belong to no answer while they stand unchanged.
    """

    def __init__(self, trees: Sequence[ast.Module], given: Mapping[frozenset[str], Sequence[str]] = MappingProxyType({})) -> None:
        self._statements = []
        for number, tree in enumerate(trees):
            for node in tree.body:
                inside = [*ast.walk(node)]  # once: it takes its time
                binds = frozenset(_bound(node, inside))
                if binds not in given or ast.dump(node) not in given[binds]:
                    self._statements.append(_Statement(node, number, binds, frozenset(_used(inside))))

    def binding(self, name: str) -> list[int]:
        """Return the numbers of the cells that give a meaning to a global name."""
        return sorted({statement.cell for statement in self._statements if name in statement.binds})

    def making(self, name: str, before: int) -> Slice:
        """Return what makes a name: the statements that bind it, and those that bind what they use, imports among them.

        `before`: number of cells that have run when the name is looked at. Returns `slice`: of a function that is defined again,
        only the last definition.
        """
        ran = [statement for statement in self._statements if statement.cell < before]
        imported = {name for statement in ran if statement.is_import for name in statement.binds}
        kept: set[int] = set()
        todo, seen = [name], {name}
        while todo:
            wanted = todo.pop()
            for statement in _meaning(
                [one for one in ran if wanted in one.binds and not (one.is_import or _calls_on(one, imported))], wanted
            ):
                kept.add(id(statement))
                todo += statement.uses - seen
                seen |= statement.uses
        parts = [one for one in ran if id(one) in kept or (one.is_import and (one.binds & seen or "*" in one.binds))]
        cells = {statement.cell for statement in parts if not statement.is_import}
        return Slice("\n".join(statement.text for statement in parts) + f"\n{name}", tuple(sorted(cells)))


def statements(texts: Iterable[str]) -> dict[frozenset[str], list[str]]:
    """Return the statements of some cells as dumps of their trees, by the names that they bind, for dumps take their time."""
    found: dict[frozenset[str], list[str]] = {}
    for node in (node for text in texts for node in ast.parse(text).body):
        found.setdefault(frozenset(_bound(node, [*ast.walk(node)])), []).append(ast.dump(node))
    return found


def _meaning(statements: list[_Statement], name: str) -> Iterator[_Statement]:
    """Those statements that count: of several definitions the last, unless it builds on the one before."""
    if statements and not (statements[-1].is_definition or isinstance(statements[-1].node, ast.Expr)):
        yield from statements
        return
    for statement in reversed(statements):
        yield statement
        if statement.is_definition and name not in statement.uses:
            return


def _calls_on(statement: _Statement, imported: set[str]) -> bool:
    """Whether it is a bare call of a library's function, such as torch.manual_seed(0): it binds nothing of that name."""
    return isinstance(statement.node, ast.Expr) and bool(statement.binds & imported)


def _bound(node: ast.stmt, inside: Sequence[ast.AST]) -> Iterator[str]:
    """Names that a statement, with all nodes inside it, gives a meaning, or changes: also the x of x[0] = 1, x.a = 1 and x.append(1)."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        yield from (name for inner in inside if isinstance(inner, ast.Global) for name in inner.names)
    elif isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            yield from _root(node.value.func)
        yield from (inner.target.id for inner in inside if isinstance(inner, ast.NamedExpr))
    else:
        for inner in inside:
            if isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(inner.ctx, ast.Store):
                yield from _root(inner)
            elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield inner.name
            elif isinstance(inner, (ast.Import, ast.ImportFrom)):
                yield from _bound(inner, ())


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _used(inside: Iterable[ast.AST]) -> Iterator[str]:
    for inner in inside:
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id
        elif isinstance(inner, ast.AugAssign):
            yield from _root(inner.target)
