"""A mistake is a change of the right answer: what somebody types in the place of a piece of it.

Slips are read from text: a name, indented below it the change, as `attn_course.changes` reads it, and below that the hint. What is deeper
indented than the hint is a change of several lines.

    divided by d_k
        np.sqrt(d_k) -> d_k
        a score spreads like the root of d_k
    no scale
        ` / np.sqrt(d_k)` ->
        the scores are not divided by the root of d_k

In a derivation a change begins with its line, `line 2: old -> new`.
"""

import ast
import functools
import inspect
import itertools
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attn_course.changes import ChangeError, blocks, changed
from attn_course.tasks.core import Wrong

_LINE = re.compile(r"line (\d+): ")
_PACKAGE = Path(__file__).resolve().parents[1]
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Slip:
    """A known mistake as it is written: its name, what is changed, and the hint it deserves."""

    name: str
    change: str
    hint: str


@dataclass(frozen=True)
class Slips:
    """Known mistakes in text, and the right form that they change, where that is not the solution itself."""

    text: str
    of: Any = None


def slips(text: str, *, of: Any) -> Slips:
    """Return mistakes that come from another way of writing: changes of a right form that is not the solution, a function or LaTeX."""
    return Slips(text, of)


def read_slips(text: str) -> list[Slip]:
    """Return the mistakes of a text.

    Raises ChangeError if one lacks its change or its hint.
    """
    found = []
    for name, *rest in blocks(text):
        deeper = list(itertools.takewhile(lambda line: line.startswith(" ") or not line, rest))
        change = textwrap.dedent("\n".join(deeper)) if deeper else rest[0] if rest else ""
        hint = " ".join(map(str.strip, rest[len(deeper) or 1 :]))
        if "->" not in change or not hint:
            raise ChangeError(f"the slip “{name}”: wanted a line `old -> new` and a hint below it, got {rest[:2]}")
        found.append(Slip(name, change, hint))
    return found


@dataclass(frozen=True)
class Definition:
    """A function as its file writes it: what asks, and what answers.

    `head`: the line of its name and parameters; `doc`: its docstring, not indented; `body`: the rest, not indented either.
    """

    function: Callable[..., Any]
    head: str
    doc: str
    body: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(inspect.signature(self.function).parameters)

    @property
    def place(self) -> tuple[str, int]:
        """Its file and the line of its name."""
        code = self.function.__code__
        return code.co_filename, code.co_firstlineno

    def text(self, body: str, doc: str | None = None) -> str:
        """Return its text with another body, and with a docstring if there is one."""
        told = [_docstring(doc)] if doc else []
        return "\n".join([self.head, *(textwrap.indent(part, "    ") for part in [*told, body]), ""])

    def with_body(self, body: str, what: str, doc: str | None = None) -> Callable[..., Any]:
        """Return the function with another body; its names mean what they mean in its own file.

        Raises ChangeError if that is no Python.
        """
        text, file = self.text(body, doc), f"<{what}, {self.name} {next(_NUMBERS)}>"
        own: dict[str, Any] = {}
        try:
            exec(compile(text, file, "exec"), self.function.__globals__, own)  # our own solution
        except SyntaxError as error:
            raise ChangeError(f"leaves no Python: {(error.text or '').strip()!r}") from None
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        return own[self.name]


def definition(function: Callable[..., Any]) -> Definition:
    """Return a function as its file writes it; one that was changed, as it is changed.

    Raises ChangeError if it has no docstring.
    """
    lines, nodes = _parsed("".join(linecache.getlines(function.__code__.co_filename, function.__globals__)))
    node = nodes[function.__code__.co_firstlineno, function.__name__]
    doc, body = node.body[0], node.body[1:]
    if not ast.get_docstring(node) or not body:
        raise ChangeError(f"{function.__name__}: wanted a docstring, and an answer below it")
    head = textwrap.dedent("\n".join(lines[node.lineno - 1 : doc.lineno - 1]))
    return Definition(function, head, ast.get_docstring(node) or "", _block(lines, (doc.end_lineno or 0) + 1, node.end_lineno))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[list[str], dict[tuple[int, str], ast.FunctionDef]]:
    """The lines of a file, and its functions by their names and the lines in which they, or their decorators, begin."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return text.splitlines(), {(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name): node for node in nodes}


def _block(lines: Sequence[str], first: int, last: int | None) -> str:
    return textwrap.dedent("\n".join(lines[first - 1 : last])).strip("\n")


def _docstring(text: str) -> str:
    return f'{"r" if chr(92) in text else ""}"""{text}"""'


def mistakes(right: Any, told: str, of: Any = None) -> Iterator[Wrong]:
    """Yield the known mistakes of a text.

    `right`: what is changed: a `Definition`, LaTeX, or the lines of a derivation; `of` is another right form, a function or LaTeX.
    Raises ChangeError if a change does not apply.
    """
    start = definition(of) if callable(of) else right if of is None else of
    for slip in read_slips(told):
        try:
            yield Wrong(slip.name, _mistaken(start, slip), slip.hint, slip.change)
        except ChangeError as error:
            raise ChangeError(f"the slip “{slip.name}” {error}", slip) from None


def _mistaken(start: Any, slip: Slip) -> Any:
    if isinstance(start, Definition):
        return start.with_body(changed(start.body, slip.change), slip.name)
    if isinstance(start, str):
        return changed(start, slip.change)
    read = _LINE.match(slip.change)
    if read is None or not 1 < int(read[1]) <= len(start):
        raise ChangeError(f"wanted the line it changes, `line 2: old -> new`, got `{slip.change}`")
    return changed(start[int(read[1]) - 1], slip.change[read.end() :])


def place_of(slip: Slip | None, file: str, line: int) -> str:
    """Return where a slip is written: the file, and the line of its name, or that of its task where that does not stand alone."""
    path = Path(file)
    shown = path.relative_to(_PACKAGE.parent).as_posix() if path.is_relative_to(_PACKAGE.parent) else path.name
    stripped = [each.strip() for each in linecache.getlines(file)]
    wanted = [slip.name, slip.change.splitlines()[0].strip()] if slip else []
    found = [n for n in range(len(stripped)) if slip and stripped[n : n + 2] == wanted]
    return f"{shown}: line {found[0] + 1 if len(found) == 1 else line}"
