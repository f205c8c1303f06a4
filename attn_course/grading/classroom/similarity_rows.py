"""Turn code cells into rows of tokens that names, layout, comments and annotations leave no trace in."""

import ast
import builtins
import contextlib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SPAN = 16  # tokens; about one line of array code
_BUILTINS = frozenset(dir(builtins))
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Where SPAN tokens in a row stand.

    Attributes
    ----------
    cell : int
        Place of the cell in the list that was given, from 0.
    lines : frozenset of int
        Lines in this cell, from 1.
    name : str
        What the statement defines or assigns; may be empty.
    place : int
        Rows that follow each other in a statement have places that follow each other; others do not.
    """

    cell: int
    lines: frozenset[int]
    name: str
    place: int


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    last: int


def rows_of(cells: Sequence[str]) -> dict[tuple[str, ...], Row]:
    """Return every row of SPAN tokens of code cells, with the place where it first stands.

    Parameters
    ----------
    cells : sequence of str
        Code; a cell that is no Python is passed over.

    Returns
    -------
    rows : dict of tuple of str to Row
        By their tokens. Cells, and the statements at their top, have no row in common.
    """
    found: dict[tuple[str, ...], Row] = {}
    place = 0
    trees = [(number, tree) for number, cell in enumerate(cells) if (tree := _parsed(cell)) is not None]
    imported = {name for _, tree in trees for name in _imported(tree)}
    for number, tree in trees:
        for statement in tree.body:
            tokens = list(_tokens(statement, _Names(imported)))
            name = _defined(statement)
            for start in range(len(tokens) - SPAN + 1):
                row = tokens[start : start + SPAN]
                lines = frozenset(line for token in row if 0 < token.line == token.last for line in (token.line,))
                found.setdefault(tuple(token.text for token in row), Row(number, lines, name, place + start))
            place += len(tokens)  # so that the next statement's first row does not follow this one's last
    return found


def _defined(statement: ast.stmt) -> str:
    """What a statement defines or assigns."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return next((target.id for target in targets if isinstance(target, ast.Name)), "")


def _parsed(cell: str) -> ast.Module | None:
    """The syntax tree of a cell, its magics blanked; None if it is no Python."""
    for text in (cell, _MAGIC.sub("", cell)):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.parse(text)
    return None


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name.partition(".")[0]) for alias in node.names)


class _Names:
    """Replace a learner's own names by their order of appearance in a statement."""

    def __init__(self, imported: set[str]) -> None:
        self._kept = imported | _BUILTINS
        self._numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)

    def __call__(self, name: str) -> str:
        return name if name in self._kept else f"name {self._numbers[name]}"


def _tokens(node: ast.AST, names: _Names) -> Iterator[_Token]:
    """The nodes of a tree in the order of the text; annotations, docstrings and the names of arguments are left out."""
    line = getattr(node, "lineno", 0)
    last = getattr(node, "end_lineno", line)
    text = type(node).__name__
    if isinstance(node, ast.Name):
        text = names(node.id)
    elif isinstance(node, ast.arg):
        text = names(node.arg)
    elif isinstance(node, ast.Attribute):
        text += f" {node.attr}"
    elif isinstance(node, ast.Constant):
        text += f" {node.value!r}"
    elif isinstance(node, ast.keyword):
        text += f" {node.arg}"
    elif isinstance(node, (ast.expr_context, ast.arguments, ast.Expr)):
        text = ""
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        text = "Assign"
    if text:
        yield _Token(text, line, last)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_comment", "simple", "type_params"):
            continue
        children = value if isinstance(value, list) else [value]
        if (
            field == "body"
            and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        ):
            children = children[1:]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _tokens(child, names)
