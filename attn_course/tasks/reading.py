"""`read("softmax-derivative", my_formula)`: how an answer in LaTeX is understood, before it is checked; it costs no attempt."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.formulas import Malformed, write
from attn_course.tasks.core import Task
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.latex import LIMIT_S, Line, Question
from attn_course.tasks.registry import get_task
from attn_course.tasks.run import quiet
from attn_course.tasks.time_limit import TimeIsUp, time_limit


@dataclass(frozen=True)
class Reading:
    """An answer as it is understood; a notebook typesets it.

    `lines`: LaTeX of each line, written back from what was read.
    `parts`: LaTeX of each part of the last line, and what it is: a number, a row (1 x 3), a 3 x 5 matrix.
    `sizes`: for which sizes the shapes are.
    `problem`: why it could not be read to its end, with the place; "" if it could.
    """

    lines: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    sizes: str = ""
    problem: str = ""

    def __str__(self) -> str:
        said = [*self.lines, *(f"  {part}: {what}" for part, what in self.parts)]
        return "\n".join([*said, *([self.problem] if self.problem else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>$\\displaystyle {html.escape(line)}$</div>" for line in self.lines)
        rows = "".join(f"<tr><td>${html.escape(part)}$</td><td>{html.escape(what)}</td></tr>" for part, what in self.parts)
        table = f"<table><tr><th>part</th><th>for {html.escape(self.sizes)}</th></tr>{rows}</table>" if rows else ""
        return lines + table + (f"<pre>{html.escape(self.problem)}</pre>" if self.problem else "")


def read(task_id: str, answer: Any) -> Reading:
    """Return an answer in LaTeX as it is understood, with the shape of each part; it is not judged.

    Raises ValueError if there is no such task, or it does not want LaTeX.
    """
    task = get_task(task_id)
    if not task.wants_latex:
        raise ValueError(f"task_id must name a task that is answered in LaTeX; task {task_id} is of the kind {task.kind!r}")
    try:
        with quiet(), time_limit(LIMIT_S):
            return _read(task, task.question, latex_lines(answer, task.entry, several=bool(task.question.goal)))
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
            return Reading(tuple(lines), problem=f"{question.line(number)}: {error.of(text)}")
    return Reading(tuple(lines), tuple(dict.fromkeys(parts)), case.name)
