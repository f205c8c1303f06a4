"""Read a source in jupytext's percent format into cells that know their id."""

import ast
import functools
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from attn_course.authoring.problems import AuthoringError, shorten

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_ID_LENGTH = 64  # nbformat 4.5
KNOWN_KEYS = {"id", "tags", "lines_to_next_cell", "lines_to_end_of_cell_marker"}  # the last two are jupytext's own


@dataclass(frozen=True)
class Cell:
    """One cell of a source or of a notebook, without outputs.

    `id`: lower-case slug, unique in its notebook. `kind`: "markdown" or "code"; nbformat's cell type. `tags`: cell tags, in the
    author's order. `nbgrader`: nbgrader's metadata of answer and check cells.
    """

    id: str
    kind: str
    text: str
    tags: tuple[str, ...] = ()
    nbgrader: dict[str, Any] | None = None


def parse(text: str, name: str) -> list[Cell]:
    """Return the cells of a percent source.

    Raises AuthoringError if the text is no Python, or a cell is empty, raw, has no id, a bad one, one that is taken, or header
    keys besides id and tags.
    """
    return list(_parsed(text, name))


@functools.lru_cache(maxsize=128)
def _parsed(text: str, name: str) -> tuple[Cell, ...]:
    """Read a source; what has been read once is remembered: an exercise has the source of its solution."""
    import jupytext  # slow to import; a build with nothing to do gets by without
    from nbformat import ValidationError

    try:
        ast.parse(text)
        nodes = jupytext.reads(text, fmt="py:percent").cells
    except SyntaxError as error:
        raise AuthoringError(
            f"{name}: line {error.lineno}: wanted Python, got {shorten((error.text or '').strip())} ({error.msg})"
        ) from None
    except ValidationError as error:
        raise AuthoringError(f"{name}: wanted cells that nbformat accepts, got one where {str(error).splitlines()[0]}") from None
    cells: list[Cell] = []
    for number, node in enumerate(nodes, 1):
        cell = _cell(node, f"{name}: cell {number} ({shorten(node.source.strip().split(chr(10))[0], 40)})")
        if any(other.id == cell.id for other in cells):
            raise AuthoringError(f"{name}: cell {number}: wanted an id of its own, got {cell.id!r} a second time")
        cells.append(cell)
    if not cells:
        raise AuthoringError(f"{name}: wanted cells that start with '# %%', got an empty file")
    return tuple(cells)


def task_id(cell: Cell, tasks: Collection[str]) -> str:
    """Return the id of the task that a cell belongs to, "" if to none: by its tag, and a text by the task it stands before."""
    for tag in ("task", "check"):
        if tag in cell.tags:
            return cell.id.removesuffix("-check") if tag == "check" else cell.id
    name = re.sub("-(text|given|check)$", "", cell.id)
    return name if name in tasks else ""


def is_called(text: str, function: str) -> bool:
    """Tell whether a piece of Python calls a function of this name.

    >>> is_called("print(lesson_table())", "lesson_table"), is_called("lesson_table", "lesson_table")
    (True, False)
    """
    return any(_called(node) == function for node in _calls(text))


def literal_calls(text: str, function: str) -> list[str]:
    """Return the arguments of all calls of `function` in a piece of Python that are string literals.

    >>> literal_calls('verify("softmax", "log-softmax"); verify(label)', "verify")
    ['softmax', 'log-softmax']
    """
    arguments = [argument for call in calls(text, function) for argument in call.args if isinstance(argument, ast.Constant)]
    return [argument.value for argument in arguments if isinstance(argument.value, str)]


def calls(text: str, function: str) -> list[ast.Call]:
    """Return all calls of `function` in a piece of Python."""
    return [node for node in _calls(text) if _called(node) == function]


@functools.lru_cache(maxsize=512)
def _calls(text: str) -> tuple[ast.Call, ...]:
    """Return all calls in a piece of Python."""
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


def _called(node: ast.AST) -> str | None:
    """The name of the function that a call calls, without what stands before its last dot."""
    return getattr(node.func, "id", getattr(node.func, "attr", None)) if isinstance(node, ast.Call) else None


def _cell(node: Any, place: str) -> Cell:
    """Check one cell as jupytext read it."""
    metadata = dict(node.metadata)
    cell_id = metadata.get("id")
    if cell_id is None:
        raise AuthoringError(f'{place}: wanted an id in its header, such as # %% id="why-scale", got none')
    if not isinstance(cell_id, str) or not SLUG.fullmatch(cell_id) or len(cell_id) > MAX_ID_LENGTH:
        raise AuthoringError(
            f"{place}: wanted an id of lower-case words joined by '-', at most {MAX_ID_LENGTH} characters, got {cell_id!r}"
        )
    if node.cell_type not in ("markdown", "code"):
        raise AuthoringError(f"{place}: wanted a markdown or code cell, got {node.cell_type!r} in cell {cell_id!r}")
    if node.cell_type == "code":
        try:
            ast.parse(node.source)
        except SyntaxError as error:  # the source as a whole is Python: jupytext has made a magic of a comment
            raise AuthoringError(f"{place}: wanted plain Python in cell {cell_id!r}, got {shorten((error.text or '').strip())}") from None
    extra = sorted(set(metadata) - KNOWN_KEYS)
    if extra:
        raise AuthoringError(f"{place}: wanted only id and tags in the header of cell {cell_id!r}, got {', '.join(extra)}")
    if not node.source.strip():
        raise AuthoringError(f"{place}: wanted some text in cell {cell_id!r}, got an empty cell")
    return Cell(id=cell_id, kind=node.cell_type, text=node.source, tags=tuple(metadata.get("tags", [])))
