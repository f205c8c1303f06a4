"""Find pairs of submissions whose code is alike once names, layout and comments are taken away.

Each cell's syntax tree becomes a row of tokens: node types, operators, attributes, constants, and a learner's own names by order
of appearance. Stretches of SPAN tokens are compared, the idea behind MOSS (Schleimer, Wilkerson and Aiken, "Winnowing", SIGMOD
2003), here without sampling: a class is small. What the exercise itself shows, and what many of the class share, says nothing
about a pair and is left out. Alike is a reason to look, never a proof.
"""

import ast
import builtins
import contextlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SPAN = 16  # tokens; about one line of array code
COMMON = 0.25  # of the class; at least two students may always share a row
_GAP = 4  # lines, the docstring of a short function for one, that do not part a passage
_BUILTINS = frozenset(dir(builtins))
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """Lines of one submission that the other has too.

    Attributes
    ----------
    cell : int
        Place of the cell in the list that was given, from 0.
    first, last : int
        Lines in this cell, from 1.
    text : str
        These lines.
    """

    cell: int
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    Attributes
    ----------
    students : tuple of two str
        In alphabetical order.
    share : float
        Part of the shorter one's own rows of tokens that the other has, in [0, 1].
    rows : int
        How many rows of tokens they share.
    passages : tuple of two tuples of Passage
        What they share, as it stands in each.
    """

    students: tuple[str, str]
    share: float
    rows: int
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]]


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    last: int


@dataclass(frozen=True)
class _Row:
    """Where a row of tokens stands."""

    cell: int
    lines: frozenset[int]


def similar_pairs(
    submissions: Mapping[str, Sequence[str]], *, shown: Sequence[str] = (), threshold: float = 0.6, least_rows: int = 12
) -> list[Pair]:
    """Compare every submission with every other.

    Parameters
    ----------
    submissions : mapping of str to sequence of str
        Each student's code cells; a cell that is no Python is passed over.
    shown : sequence of str, optional
        Cells that everybody was given.
    threshold : float, optional
        Smallest share to report, in (0, 1].
    least_rows : int, optional
        Smallest number of shared rows to report.

    Returns
    -------
    pairs : list of Pair
        The most alike first.

    Raises
    ------
    ValueError
        If the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1]; got {threshold:g}")
    given = set(_rows(shown))
    rows = {student: {row: at for row, at in _rows(cells).items() if row not in given} for student, cells in submissions.items()}
    students_with = Counter(row for found in rows.values() for row in found)
    most = max(2, int(COMMON * len(submissions)))
    own = {student: {row for row in found if students_with[row] <= most} for student, found in rows.items()}
    pairs = []
    for left, right in itertools.combinations(sorted(own), 2):
        shared = own[left] & own[right]
        share = len(shared) / max(1, min(len(own[left]), len(own[right])))
        if len(shared) >= least_rows and share >= threshold:
            passages = tuple(_passages(submissions[student], [rows[student][row] for row in shared]) for student in (left, right))
            pairs.append(Pair((left, right), share, len(shared), (passages[0], passages[1])))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.rows, pair.students))


def _rows(cells: Sequence[str]) -> dict[tuple[str, ...], _Row]:
    """Every row of SPAN tokens of the cells, with the place where it first stands."""
    found: dict[tuple[str, ...], _Row] = {}
    trees = [(number, tree) for number, cell in enumerate(cells) if (tree := _parsed(cell)) is not None]
    imported = {name for _, tree in trees for name in _imported(tree)}
    for number, tree in trees:
        for statement in tree.body:
            tokens = list(_tokens(statement, _Names(imported)))
            for start in range(len(tokens) - SPAN + 1):
                row = tokens[start : start + SPAN]
                lines = frozenset(line for token in row if token.line == token.last for line in (token.line,))
                found.setdefault(tuple(token.text for token in row), _Row(number, lines))
    return found


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


def _passages(cells: Sequence[str], rows: Sequence[_Row]) -> tuple[Passage, ...]:
    """Stretches of lines that the rows cover, but for short gaps, in the order of the notebook."""
    found: list[Passage] = []
    for cell, line in sorted({(row.cell, line) for row in rows for line in row.lines if line}):
        joins = bool(found) and found[-1].cell == cell and line - found[-1].last <= _GAP
        first = found.pop().first if joins else line
        found.append(Passage(cell, first, line, "\n".join(cells[cell].splitlines()[first - 1 : line])))
    return tuple(found)
