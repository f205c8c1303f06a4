"""Turn code cells into rows of tokens that names, layout, comments, annotations and padding leave no trace in."""

import ast
import builtins
import contextlib
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from attn_course.classroom.similarity_padding import without_padding

SPAN = 16  # tokens; about one line of array code
_REMEMBERED = 32  # names of a statement; one that was not used for so long is as good as new
_BUILTINS = frozenset(dir(builtins))
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Where SPAN tokens in a row stand.

    `cell`: place of the cell in the list that was given, from 0. `lines`: lines in this cell, from 1. `name`: what the statement
    defines or assigns; may be empty. `place`: rows that follow each other in a statement have places that follow each other;
    others do not.
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


def rows_of(cells: Sequence[str]) -> tuple[dict[tuple[str, ...], Row], int]:
    """Return every row of SPAN tokens of code cells with the place where it first stands, and how many cells are no Python.

    `cells`: code; a cell that is no Python is passed over. Returns `rows`: by their tokens. Cells, and the statements at their
    top, have no row in common; `unread`: cells that were passed over.
    """
    found: dict[tuple[str, ...], Row] = {}
    place = 0
    trees = [(number, tree) for number, cell in enumerate(cells) if (tree := _parsed(cell)) is not None]
    kept = _BUILTINS | {name for _, tree in trees for name in _imported(tree)}
    for number, tree in trees:
        without_padding(tree)
        for statement in tree.body:
            tokens = list(_tokens(statement, kept))
            name = _defined(statement)
            for start in range(len(tokens) - SPAN + 1):
                row = tokens[start : start + SPAN]
                lines = frozenset(token.line for token in row if 0 < token.line == token.last)
                found.setdefault(tuple(token.text for token in row), Row(number, lines, name, place + start))
            place += len(tokens)  # so that the next statement's first row does not follow this one's last
    return found, len(cells) - len(trees)


def _defined(statement: ast.stmt) -> str:
    """What a statement defines or assigns."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return next((target.id for target in targets if isinstance(target, ast.Name)), "")


def _parsed(cell: str) -> ast.Module | None:
    """The syntax tree of a cell, its magics blanked; None if it is no Python."""
    for text in (cell, _MAGIC.sub("", cell)):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings(action="ignore"):
            return ast.parse(text)
    return None


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name.partition(".")[0]) for alias in node.names)


def _tokens(statement: ast.stmt, kept: Collection[str]) -> Iterator[_Token]:
    """The nodes of a tree in the order of the text; annotations and the names of arguments are left out.

    A name that is not `kept` is the learner's own. It becomes the number of own names used since it was used last, so that a line with a
    name of its own changes little of what comes after it.
    """
    recent: list[str] = []
    stack: list[ast.AST] = [statement]  # a sum of a thousand terms is a tree a thousand deep
    while stack:
        node = stack.pop()
        line = getattr(node, "lineno", 0)
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        text = name or _text(node)
        if name and name not in kept:
            text = f"name {recent.index(name)}" if name in recent else "new name"
            recent = [name, *(other for other in recent if other != name)][:_REMEMBERED]
        if text:
            yield _Token(text, line, getattr(node, "end_lineno", line))
        children: list[ast.AST] = []
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "type_comment", "simple", "type_params"):
                children += [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]
        stack += reversed(children)


def _text(node: ast.AST) -> str:
    """What kind of node it is, and what it says itself."""
    kind = type(node).__name__
    if isinstance(node, (ast.expr_context, ast.arguments, ast.Expr)):
        return ""
    if isinstance(node, ast.Attribute):
        return f"{kind} {node.attr}"
    if isinstance(node, ast.Constant):  # a number of thousands of digits has no decimal form
        return f"{kind} {hex(node.value) if isinstance(node.value, int) else repr(node.value)}"
    if isinstance(node, ast.keyword):
        return f"{kind} {node.arg}"
    return "Assign" if isinstance(node, ast.AnnAssign) and node.value is not None else kind
