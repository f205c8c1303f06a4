"""What is true of a wrong formula beyond its numbers: how it was read, and what would mend it, if the mistake has no name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attn_course.formulas import Malformed, write
from attn_course.tasks.core import Case, Task, Verdict
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.latex import LIMIT_S
from attn_course.tasks.run import Result, quiet
from attn_course.tasks.slips import slip
from attn_course.tasks.time_limit import TimeIsUp, time_limit

SEARCH_S = 0.45  # of work; with the evaluation before it under a second, and most changes take under a millisecond


@dataclass(frozen=True)
class Search:
    """A search for what would mend a line of an answer.

    `line`: which, counted from 0; `wanted`: what it is to equal in each case, of a derivation the line before.
    """

    line: int
    wanted: tuple[np.ndarray, ...]

    def told(self, verdict: Verdict, words: str) -> Verdict:
        """Return the verdict with what was found; the points are what they were."""
        if not words:
            return verdict
        return replace(verdict, message=f"{verdict.message} It would {'follow' if self.line else 'be right'} {words}.")


def search(task: Task, verdict: Verdict, results: Sequence[Result], rights: Sequence[Result]) -> Search | None:
    """Return what to search for after a verdict on an answer in LaTeX; None where the reason is said already, or there is no line to mend.

    `results`, `rights`: what the answer, and the task's own, gave in each case.
    """
    broken = _broken_step(verdict) if task.kind == "derivation" else 1
    told = " would be right " in verdict.message or "Everywhere it is" in verdict.message
    if verdict.passed or verdict.mistake or not verdict.counts or told or not broken or any(result.problem for result in results):
        return None
    sides, at = (rights, 0) if task.kind == "formula" else (results, broken - 2)
    return Search(broken - 1, tuple((side.arrays or ())[at] for side in sides))


def explained(
    task: Task, answer: Any, cases: Sequence[Case], verdict: Verdict, results: Sequence[Result], rights: Sequence[Result]
) -> Verdict:
    """Return a verdict on a failed answer in LaTeX with the formula as it was read, and what would mend it if the mistake has no name."""
    if " cannot be read: " in verdict.message or " takes too " in verdict.message:
        return verdict
    try:
        lines = latex_lines(answer, task.entry, several=task.kind == "derivation")
        with quiet(), time_limit(LIMIT_S, of_work=True):
            if task.kind == "formula":
                verdict = replace(verdict, formula=f"{task.left} = {write(task.question.read(lines[0]))}")
            elif broken := _broken_step(verdict):
                before, behind = (write(task.question.read(line)) for line in lines[broken - 2 : broken])
                verdict = replace(verdict, formula=f"{before} = {behind}", lead=f"Line {broken} claims")
    except (AnswerError, Malformed, TimeIsUp, RecursionError, MemoryError):
        return verdict
    if found := search(task, verdict, results, rights):
        words = slip(task.question, lines[found.line], task.blank(cases), found.wanted, task.tolerance, limit_s=SEARCH_S)
        return found.told(verdict, words)
    return verdict


def _broken_step(verdict: Verdict) -> int:
    """The number of the line of a derivation that does not follow, or 0."""
    words = verdict.message.split()
    return int(words[1]) if words[2:5] == ["does", "not", "follow"] else 0
