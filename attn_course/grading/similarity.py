"""Find pairs of submissions whose code is alike once names, layout and comments are taken away.

Each cell's syntax tree becomes a row of tokens: node types, operators, attributes, constants, and a learner's own names by order
of appearance. Stretches of SPAN tokens are compared, the idea behind MOSS (Schleimer, Wilkerson and Aiken, "Winnowing", SIGMOD
2003), here without sampling: a class is small. What everybody was given says nothing about a pair and is left out.

What many share says little if it is short: a formula dictates a line or two, and half of a class writes the same ones. It says
much if it is long, however many share it, since each further line could have been written, ordered or cut in another way. So
what more than a quarter of the class shares counts for a pair in two cases only: it is part of one unbroken stretch of LONG
tokens, or the two notebooks agree in WHOLE of all their code and this is about as long. The rest is left out, and
told: "nothing stands out" must not be read as "nothing was shared". Alike is a reason to look, never a proof.
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
COMMON = 0.25  # of the class: what more share is common; two students never are many
LONG = 4 * SPAN  # tokens; nearly twice a softmax with its shift
WHOLE = 0.8  # of the shorter notebook's own code
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
        Part of the shorter one's own code that the other has, in [0, 1]; what was given, and what is common and short, is no
        part of either.
    rows : int
        How many rows of tokens they share.
    lines : int
        On how many lines these stand, in the notebook where they are fewer.
    passages : tuple of two tuples of Passage
        What they share, as it stands in each.
    """

    students: tuple[str, str]
    share: float
    rows: int
    lines: int
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]]


@dataclass(frozen=True)
class Common:
    """Code that did not count because many share it: mostly short, else of notebooks that differ in most else.

    Attributes
    ----------
    name : str
        What it defines, such as "my_softmax"; empty for other statements.
    students : tuple of str
        Who share it.
    text : str
        It, as the first of them wrote it.
    lines : int
        On how many lines it stands there.
    """

    name: str
    students: tuple[str, ...]
    text: str
    lines: int


@dataclass(frozen=True)
class Comparison:
    """What comparing a class brought.

    Attributes
    ----------
    pairs : tuple of Pair
        The most alike first.
    left_out : tuple of Common
        What did not count because many share it, and is no part of any pair; the largest group first.
    """

    pairs: tuple[Pair, ...]
    left_out: tuple[Common, ...]


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    last: int


@dataclass(frozen=True)
class _Row:
    """Where a row of tokens stands: its cell and lines, what the statement defines, and its place among all rows."""

    cell: int
    lines: frozenset[int]
    name: str
    place: int


def compare(
    submissions: Mapping[str, Sequence[str]], *, shown: Sequence[str] = (), threshold: float = 0.6, least_rows: int = 12
) -> Comparison:
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
    comparison : Comparison
        The pairs that are alike, and what was left out because many share it.

    Raises
    ------
    ValueError
        If the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1]; got {threshold:g}")
    given = set(_rows(shown))
    number: defaultdict[tuple[str, ...], int] = defaultdict(itertools.count().__next__)  # numbers are compared faster than tokens
    rows = {student: {number[row]: at for row, at in _rows(cells).items() if row not in given} for student, cells in submissions.items()}
    students_with = Counter(row for found in rows.values() for row in found)
    many = max(2, int(COMMON * len(submissions)))
    common = {row for row, count in students_with.items() if count > many}
    n_rare = {student: len(found.keys() - common) for student, found in rows.items()}
    pairs, counted = [], set()
    for left, right in itertools.combinations(sorted(rows), 2):
        shared = _counting(rows[left], rows[right], common)
        n_long = len(shared & common)
        share = len(shared) / max(1, n_long + min(n_rare[left], n_rare[right]))
        if len(shared) >= least_rows and share >= threshold:
            at = [[rows[student][row] for row in shared] for student in (left, right)]
            passages = (_passages(submissions[left], at[0]), _passages(submissions[right], at[1]))
            lines = min(_n_lines(side) for side in at)
            pairs.append(Pair((left, right), share, len(shared), lines, passages))
            counted |= shared
    pairs.sort(key=lambda pair: (-pair.share, -pair.rows, pair.students))
    return Comparison(tuple(pairs), _left_out(submissions, rows, common - counted))


def groups(pairs: Sequence[Pair]) -> list[tuple[tuple[str, ...], list[Pair]]]:
    """Put pairs together whose students hang together, so that ten copies of one notebook are one finding and not 45.

    Parameters
    ----------
    pairs : sequence of Pair
        The most alike first.

    Returns
    -------
    groups : list of tuple
        The students of each in alphabetical order, and its pairs in the order given. Pairs that share less than WHOLE stay alone.
    """
    members: dict[str, set[str]] = {}
    for pair in pairs:
        if pair.share >= WHOLE:
            together = set().union(*(members.get(student, {student}) for student in pair.students))
            members.update(dict.fromkeys(together, together))
    found: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        together = members.get(pair.students[0], set()) if pair.share >= WHOLE else set(pair.students)
        found.setdefault(tuple(sorted(together)), []).append(pair)
    return list(found.items())


def _n_lines(rows: Sequence[_Row]) -> int:
    return len({(row.cell, line) for row in rows for line in row.lines})


def _counting(left: Mapping[int, _Row], right: Mapping[int, _Row], common: set[int]) -> set[int]:
    """The rows that both have and that say something about them: see the module's docstring."""
    shared = left.keys() & right.keys()
    long = LONG - SPAN + 1  # rows of a stretch of LONG tokens
    if len(shared) >= long and len(shared) >= WHOLE * min(len(left), len(right)):
        return shared
    counting = shared - common
    if len(shared) >= long:
        stretch: list[int] = []
        for row in (*sorted(shared, key=lambda row: left[row].place), None):
            if stretch and (row is None or any(side[row].place != side[stretch[-1]].place + 1 for side in (left, right))):
                counting.update(stretch if len(stretch) >= long else ())
                stretch = []
            if row is not None:
                stretch.append(row)
    return counting


def _left_out(submissions: Mapping[str, Sequence[str]], rows: Mapping[str, Mapping[int, _Row]], left_out: set[int]) -> tuple[Common, ...]:
    """Common rows put together by the statement in which the first student who has them wrote them."""
    seen: set[int] = set()
    found = []
    for student in sorted(rows):
        by_name: dict[str, list[int]] = {}
        for row in rows[student].keys() & (left_out - seen):
            by_name.setdefault(rows[student][row].name, []).append(row)
        for name, own in by_name.items():
            sharing = tuple(sorted(other for other in rows if any(row in rows[other] for row in own)))
            at = [rows[student][row] for row in own]
            text = "\n".join(passage.text for passage in _passages(submissions[student], at))
            found.append(Common(name, sharing, text, _n_lines(at)))
            seen.update(own)
    return tuple(sorted(found, key=lambda common: (-len(common.students), common.name, common.text)))


def _rows(cells: Sequence[str]) -> dict[tuple[str, ...], _Row]:
    """Every row of SPAN tokens of the cells, with the place where it first stands."""
    found: dict[tuple[str, ...], _Row] = {}
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
                found.setdefault(tuple(token.text for token in row), _Row(number, lines, name, place + start))
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


def _passages(cells: Sequence[str], rows: Sequence[_Row]) -> tuple[Passage, ...]:
    """Stretches of lines that the rows cover, but for short gaps, in the order of the notebook."""
    found: list[Passage] = []
    for cell, line in sorted({(row.cell, line) for row in rows for line in row.lines}):
        joins = bool(found) and found[-1].cell == cell and line - found[-1].last <= _GAP
        first = found.pop().first if joins else line
        found.append(Passage(cell, first, line, "\n".join(cells[cell].splitlines()[first - 1 : line])))
    return tuple(found)
