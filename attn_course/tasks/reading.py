"""`read("softmax-derivative", my_formula)`: how an answer in LaTeX is understood, before it is checked; it costs no attempt."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attn_course.formulas import Malformed, write
from attn_course.formulas.plain import plain
from attn_course.tasks.cards import SCROLLS
from attn_course.tasks.core import Task
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.latex import LIMIT_S, Line, Question
from attn_course.tasks.registry import get_task
from attn_course.tasks.run import quiet
from attn_course.tasks.time_limit import TimeIsUp, time_limit


@dataclass(frozen=True)
class Reading:
    """An answer as it is understood; a notebook typesets it.

    `lines`: LaTeX of each line, written back from what was read. `parts`: LaTeX of each part of the last line, itself first, and
    what it is: a number, a row (1 x 3), a 3 x 5 matrix. `sizes`: for which sizes the shapes are. `problem`: why it could not be
    read to its end, with the place; "" if it could. `steps`: whether the lines are those of a derivation. `in_parts`: whether parts
    are shown.
    """

    lines: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    sizes: str = ""
    problem: str = ""
    steps: bool = False
    in_parts: bool = False

    def __str__(self) -> str:
        said = [*map(plain, self.lines), *(f"  {plain(part)}: {what}" for part, what in self._shown), self.problem or self._whole]
        return "\n".join(filter(None, said))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        several = self.steps and (len(self.lines) > 1 or bool(self.problem))
        lines = "".join(_line(number if several else 0, line) for number, line in enumerate(self.lines, 1))
        rows = "".join(_row("td", html.escape(what), f"${html.escape(part)}$") for part, what in self._shown)
        heads = _row("th", f"for {html.escape(self.sizes)}", "part of the last line" if several else "part")
        table = f'<div style="{SCROLLS};margin-top:.5em"><table>{heads}{rows}</table></div>' if rows else ""
        said, _, where = self.problem.partition("\n")
        place = f'<pre style="margin:.4em 0;{SCROLLS};white-space:pre;font-family:monospace">{html.escape(where)}</pre>' if where else ""
        return lines + table + (f"<div>{html.escape(said or self._whole)}</div>{place}" if said or self._whole else "")

    @property
    def _shown(self) -> tuple[tuple[str, str], ...]:
        """The parts, if they were asked for."""
        return self.parts if self.in_parts else ()

    @property
    def _whole(self) -> str:
        """What the last line is, in words."""
        return f"{self.parts[0][1]}, for {self.sizes}" if self.parts and not self.in_parts else ""


def _row(tag: str, what: str, part: str) -> str:
    """A row of a table; what may be wide stands last."""
    cells = "".join(f'<{tag} style="text-align:left;white-space:nowrap">{text}</{tag}>' for text in (what, part))
    return f"<tr>{cells}</tr>"


def _line(number: int, latex: str) -> str:
    """A line, with its number and the sign of equality if it is one of several."""
    mark = f'<span style="opacity:.6;min-width:1.5em">{number}</span>' if number else ""
    equals = "{} = " if number > 1 else ""
    formula = f"$\\displaystyle {equals}{html.escape(latex)}$"
    return f'<div style="display:flex;align-items:center;padding:.3em 0">{mark}<div style="{SCROLLS}">{formula}</div></div>'


def read(task_id: str, answer: Any, *, parts: bool = False) -> Reading:
    """Return an answer in LaTeX as it is understood, with its shape, and with `parts` the shape of each part; it is not judged.

    Raises ValueError if there is no such task, or it does not want LaTeX.
    """
    task = get_task(task_id)
    if not task.wants_latex:
        raise ValueError(f"task_id must name a task that is answered in LaTeX; task {task_id} is of the kind {task.kind!r}")
    try:
        with quiet(), time_limit(LIMIT_S, of_work=True):
            found = _read(task, task.question, latex_lines(answer, task.entry, several=bool(task.question.goal)))
            return replace(found, in_parts=parts)
    except AnswerError as error:
        return Reading(problem=str(error))
    except (TimeIsUp, RecursionError, MemoryError):
        return Reading(problem=f"{task.entry} takes too long to evaluate")


def _read(task: Task, question: Question, texts: Sequence[str]) -> Reading:
    case = task.cases(np.random.default_rng(0))[0]
    (givens,) = task.blank([case])
    left, lines, parts = "" if question.goal else f"{question.left} = ", list[str](), list[tuple[str, str]]()
    for number, text in enumerate(texts, 1):
        try:
            tree = question.read(text)
            lines.append(left + write(tree))
            parts = Line(question, tree, givens, text).parts()
        except Malformed as error:
            return Reading(tuple(lines), problem=f"{question.line(number)}: {question.told(error, text)}", steps=bool(question.goal))
    return Reading(tuple(lines), tuple(dict.fromkeys(parts)), case.name, steps=bool(question.goal))
