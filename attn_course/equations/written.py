"""An equation as it is written: a function whose docstring claims, and whose body makes what the symbols stand for.

    a^2 - b^2 = (a - b)(a + b)
    where a, b real ;; a is not b
    Multiply out; the mixed terms cancel.
        X1: the square of the difference: (a - b)(a + b) -> (a - b)^2
        the sign: a^2 + b^2 = (a - b)(a + b)

First the formula. A line that begins with "where" says what must hold, in words; ` ;; ` parts several. Both may go on in indented lines.
Then why it holds, in a line, and indented below it the mistakes that people make: each begins with the id of its trap, if it has one, and
its name; behind that a change of the formula, as `attn_course.changes` reads it, or another formula. It may go on in lines that are
indented once more; where a name holds a colon itself, its own line ends with one. What else is not indented is a remark for whoever reads
the source.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import NamedTuple

from attn_course.changes import ChangeError, blocks, changed

_TRAP = re.compile(r"(X\d+): ")


@dataclass(frozen=True)
class WrongForm:
    """A mistake somebody makes, as a formula of the same symbols; `trap` is its id in the mission's table of traps."""

    name: str
    latex: str
    trap: str | None = None


class Told(NamedTuple):
    """What a docstring tells of an equation."""

    latex: str
    assumes: tuple[str, ...]
    why: str
    wrongs: tuple[WrongForm, ...]


def told(text: str | None) -> Told:
    """Read the docstring of an equation.

    Raises ValueError if it holds no formula, or a mistake cannot be read.
    """
    parts = list(blocks(cleandoc(text or "")))
    if not parts:
        raise ValueError("wanted a docstring: the formula, below it why it holds, and indented the mistakes that people make")
    latex, rest = _joined(parts[0]), parts[1:]
    assumes = _joined(rest.pop(0)).removeprefix("where ").split(" ;; ") if rest and rest[0][0].startswith("where ") else []
    indented = "\n".join(line for part in rest for line in part[1:] if line)
    return Told(latex, tuple(assumes), rest[0][0] if rest else "", tuple(_mistakes(latex, indented)))


def _mistakes(latex: str, text: str) -> Iterator[WrongForm]:
    for first, *more in blocks(text):
        trap = _TRAP.match(first)
        said = first[trap.end() :] if trap else first
        name, colon, form = (said[:-1], ":", "") if said.endswith(":") else said.partition(": ")
        form = _joined([form, *more])
        if not colon or not form:
            raise ValueError(f"wanted `name: change` or `name: formula`, got `{first}`")
        try:
            form = " ".join(changed(latex, form).split()) if "->" in form else form
        except ChangeError as error:
            raise ValueError(f"the wrong form “{name}” {error}") from None
        yield WrongForm(name, form, trap[1] if trap else None)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line for line in map(str.strip, lines) if line)
