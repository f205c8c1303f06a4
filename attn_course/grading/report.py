"""What `attn-course check` found, as plain data: for the table, for --json, for other programs.

The JSON holds, for each notebook and each of its tasks, the fields named by the classes below; `REPORT_SCHEMA` is the
same in JSON Schema, and a change that removes or renames a field raises `SCHEMA_VERSION`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from attn_course.numbers import NAME

SCHEMA_VERSION = 2
STATUSES = ("passed", "failed", "unanswered", "missing", "not judged")


@dataclass(frozen=True)
class TaskReport:
    """The verdict on one task.

    Attributes
    ----------
    id, title, equation
        Of the task.
    status : {"passed", "failed", "unanswered", "missing", "not judged"}
        "unanswered": its cell is as the exercise hands it out. "missing": no cell answers it. "not judged": another cell kept it
        from being judged.
    points, max_points : int
        Reached, and to be had.
    mistake : str or None
        Name of the known mistake that was recognised.
    message : str
        One or more sentences: what is wrong; the fixed success line of a passed task.
    hint : str or None
        That of the recognised mistake, else the first hint of the task; None once it passes.
    seconds : float
        Time its cells took.
    """

    id: str
    title: str
    status: str
    points: int
    max_points: int
    message: str
    mistake: str | None = None
    hint: str | None = None
    equation: str | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether all points were reached."""
        return self.status == "passed"


@dataclass(frozen=True)
class CellProblem:
    """A cell outside the tasks that did not run.

    Attributes
    ----------
    cell : int
        Its number among the code cells, from 1.
    first_line : str
        What the cell starts with.
    message : str
        The error in one line.
    """

    cell: int
    first_line: str
    message: str


@dataclass(frozen=True)
class NotebookReport:
    """The verdicts on all tasks of one notebook.

    Attributes
    ----------
    notebook, lesson
        Which notebook, and what it is about.
    tasks, problems
        Verdicts on the tasks; cells outside them that did not run.
    seconds : float
        Time taken in all.
    notes : tuple of str
        What else the learner should know.
    counted : bool
        Whether the totals count it: of two notebooks on the same tasks they count the better one.
    """

    notebook: str
    lesson: str
    tasks: tuple[TaskReport, ...]
    problems: tuple[CellProblem, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    counted: bool = True

    @property
    def passed(self) -> bool:
        """Whether every task passed."""
        return all(task.passed for task in self.tasks)

    @property
    def points(self) -> int:
        """Points reached."""
        return sum(task.points for task in self.tasks)

    @property
    def max_points(self) -> int:
        """Points to be had."""
        return sum(task.max_points for task in self.tasks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = asdict(self)
        data |= {name: list(data[name]) for name in ("tasks", "problems", "notes")}
        for plain, task in zip(data["tasks"], self.tasks, strict=True):
            plain["passed"] = task.passed
            plain["seconds"] = round(task.seconds, 3)
        return data | {"passed": self.passed, "points": self.points, "max_points": self.max_points, "seconds": round(self.seconds, 3)}


def count_each_lesson_once(reports: Sequence[NotebookReport]) -> list[NotebookReport]:
    """Let of several notebooks on one lesson only the best count, the first of these; the others carry a note that says so."""
    best: dict[str, NotebookReport] = {}
    for report in reports:
        if report.lesson not in best or report.points > best[report.lesson].points:
            best[report.lesson] = report
    return [
        report
        if report is best[report.lesson]
        else replace(report, counted=False, notes=(*report.notes, f"the totals count {best[report.lesson].notebook} for this chapter"))
        for report in reports
    ]


def report_to_dict(reports: Sequence[NotebookReport]) -> dict[str, Any]:
    """Return what --json writes: the reports of all notebooks, and the totals of those that count."""
    counted = [report for report in reports if report.counted]
    return {
        "version": SCHEMA_VERSION,
        "passed": all(report.passed for report in counted),
        "points": sum(report.points for report in counted),
        "max_points": sum(report.max_points for report in counted),
        "notebooks": [report.to_dict() for report in reports],
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


_TEXT, _TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}
_COUNT, _SECONDS, _FLAG = {"type": "integer", "minimum": 0}, {"type": "number", "minimum": 0}, {"type": "boolean"}
_TASK = _object(
    {
        "id": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "title": _TEXT,
        "status": {"enum": list(STATUSES)},
        "passed": _FLAG,
        "points": _COUNT,
        "max_points": _COUNT,
        "message": _TEXT,
        "mistake": _TEXT_OR_NULL,
        "hint": _TEXT_OR_NULL,
        "equation": _TEXT_OR_NULL,
        "seconds": _SECONDS,
    }
)
_PROBLEM = _object({"cell": {"type": "integer", "minimum": 1}, "first_line": _TEXT, "message": _TEXT})
_NOTEBOOK = _object(
    {
        "notebook": _TEXT,
        "lesson": _TEXT,
        "passed": _FLAG,
        "points": _COUNT,
        "max_points": _COUNT,
        "seconds": _SECONDS,
        "tasks": {"type": "array", "items": _TASK},
        "problems": {"type": "array", "items": _PROBLEM},
        "notes": {"type": "array", "items": _TEXT},
        "counted": _FLAG,
    }
)
REPORT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Report of attn-course check",
    **_object(
        {
            "version": {"const": SCHEMA_VERSION},
            "passed": _FLAG,
            "points": _COUNT,
            "max_points": _COUNT,
            "notebooks": {"type": "array", "items": _NOTEBOOK},
        }
    ),
}
