"""What `attn-course check` found, as plain data: for the table, for --json, for other programs.

The JSON holds, for each notebook and each of its tasks, the fields named by the classes below; `REPORT_SCHEMA` is the
same in JSON Schema, and a change that removes or renames a field raises `SCHEMA_VERSION`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from attn_course.numbers import NAME

SCHEMA_VERSION = 2
STATUSES = ("passed", "failed", "unanswered", "missing", "not judged")


@dataclass(frozen=True)
class TaskReport:
    """The verdict on one task.

    `id`, `title`, `equation`: of the task. `status`: "unanswered": its cell is as the exercise hands it out. "missing": no cell
    answers it. "not judged": another cell kept it from being judged. `points`, `max_points`: reached, and to be had. `mistake`:
    name of the known mistake that was recognised. `message`: one or more sentences: what is wrong; the fixed success line of a
    passed task. `hint`: that of the recognised mistake, else the first hint of the task; None once it passes. `seconds`: time its
    cells took.
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

    `cell`: its number among the code cells, from 1. `first_line`: what the cell starts with. `message`: the error in one line.
    """

    cell: int
    first_line: str
    message: str


@dataclass(frozen=True)
class NotebookReport:
    """The verdicts on all tasks of one notebook.

    `notebook`, `lesson`: which notebook, and what it is about. `tasks`, `problems`: verdicts on the tasks; cells outside them
    that did not run. `seconds`: time taken in all. `notes`: what else the learner should know. `counted`: whether the totals
    count it: of two notebooks on the same tasks they count the better one.
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


_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_FLAG: dict[str, Any] = {"type": "boolean"}
_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    str | None: {"type": ["string", "null"]},
    int: _COUNT,
    float: {"type": "number", "minimum": 0},
    bool: _FLAG,
    tuple[str, ...]: {"type": "array", "items": {"type": "string"}},
}
_TOTALS = {"passed": _FLAG, "points": _COUNT, "max_points": _COUNT}


def _of(kind: Any, **more: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass, where `more` says what the types of its fields do not."""
    return _object({field.name: _TYPES[field.type] for field in fields(kind) if field.name not in more} | more)


_TASK = _of(TaskReport, id={"type": "string", "pattern": f"^{NAME.pattern}$"}, status={"enum": list(STATUSES)}, passed=_FLAG)
_PROBLEM = _of(CellProblem, cell={"type": "integer", "minimum": 1})
_NOTEBOOK = _of(NotebookReport, tasks={"type": "array", "items": _TASK}, problems={"type": "array", "items": _PROBLEM}, **_TOTALS)
REPORT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Report of attn-course check",
    **_object({"version": {"const": SCHEMA_VERSION}, **_TOTALS, "notebooks": {"type": "array", "items": _NOTEBOOK}}),
}
