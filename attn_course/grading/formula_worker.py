"""Evaluate the LaTeX of one submission: a confined process of its own, which runs no code of a learner's and holds no right answer.

It gets text and arrays, and gives arrays back, or one sentence about what is wrong with the text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attn_course.tasks.latex import Question, evaluate, on_one_line, unpacked


class Formulas:
    """What such a process does."""

    @property
    def actions(self) -> Mapping[str, Callable[..., Iterable[dict[str, Any]]]]:
        """What the grader may ask for."""
        return {"formula": self.formula}

    def formula(self, question: dict[str, Any], lines: list[str], cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Evaluate the lines of an answer on the givens of each case; say of each what `evaluate` found."""
        given = [{name: unpacked(data) for name, data in case.items()} for case in cases]
        for result in evaluate(Question(**question), lines, given):
            problem = on_one_line(result.problem or "")
            yield {"arrays": result.arrays, "problem": problem, "timed_out": result.timed_out, "facts": result.facts}
