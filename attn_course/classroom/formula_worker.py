"""Evaluate the LaTeX of one submission: a confined process of its own, which runs no code of a learner's and holds no right answer.

It gets text and arrays, and gives arrays back, or one sentence about what is wrong with the text. Another such process, once all answers
of the submission are judged, searches for what would mend the wrong ones: it is told what they should have given.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from attn_course.tasks.latex import Question, evaluate, on_one_line, unpacked
from attn_course.tasks.slips import slip


class Formulas:
    """What such a process does."""

    @property
    def actions(self) -> Mapping[str, Callable[..., Iterable[dict[str, Any]]]]:
        """What the grader may ask for."""
        return {"formula": self.formula, "slip": self.slip}

    def formula(self, question: dict[str, Any], lines: list[str], cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Evaluate the lines of an answer on the givens of each case; say of each what `evaluate` found."""
        given = [{name: unpacked(data) for name, data in case.items()} for case in cases]
        for result in evaluate(Question(**question), lines, given):
            problem = on_one_line(result.problem or "")
            yield {"arrays": result.arrays, "problem": problem, "timed_out": result.timed_out, "facts": result.facts}

    def slip(
        self,
        question: dict[str, Any],
        line: str,
        cases: list[dict[str, Any]],
        wanted: list[np.ndarray],
        tolerance: float | None,
        limit_s: float,
    ) -> Iterator[dict[str, Any]]:
        """Say what would mend a line of an answer."""
        given = [{name: unpacked(data) for name, data in case.items()} for case in cases]
        yield {"words": slip(Question(**question), line, given, wanted, tolerance, limit_s=limit_s)}
