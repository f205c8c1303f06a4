"""From how the cells went to one verdict for each task."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attn_course.checking.cells import Cell
from attn_course.checking.nbval_run import Outcome
from attn_course.checking.report import CellProblem, NotebookReport, TaskReport
from attn_course.checking.untouched import untouched_message
from attn_course.numbers import cite, lesson_of

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_UNDEFINED_INSIDE = re.compile(r"\w+ raised NameError: name '(\w+)' is not defined")


def make_report(
    cells: Sequence[Cell],
    tasks: Sequence[str],
    outcomes: Mapping[int, Outcome],
    *,
    notebook: str,
    timeout_s: float,
    seconds: float,
    untouched: Collection[str] = (),
    strayed: Mapping[str, str] = MappingProxyType({}),
) -> NotebookReport:
    """Return the verdict on each task, and the cells outside the tasks that did not run.

    `cells`: the code cells that ran. `tasks`: ids of the chapter's tasks. `outcomes`: by position among `cells`. `notebook`: the
    notebook's name, for the report. `timeout_s`, `seconds`: time limit of a cell; time taken in all. `untouched`: ids of the tasks
    whose function to repair is as the exercise hands it out. `strayed`: by id of a task whose answer cell is no code any more, what
    is said of it. Returns the verdicts, in the order of `tasks`.
    """
    problems = [
        CellProblem(cell.number or position + 1, cell.first_line, _failure(outcomes[position], timeout_s))
        for position, cell in enumerate(cells)
        if cell.role == "other" and _failed(outcomes.get(position))
    ]
    reports = tuple(_judge(task, cells, outcomes, timeout_s, task in untouched, strayed.get(task, "")) for task in tasks)
    return NotebookReport(notebook, lesson_of("tasks", tasks[0]) or "", reports, tuple(problems), seconds)


def _failed(outcome: Outcome | None) -> bool:
    """A failing call of check in one of the learner's cells is no problem of its own: the task's verdict says it."""
    return outcome is not None and outcome.problem is not None and outcome.error_name != "CheckFailed"


def _judge(
    task_id: str, cells: Sequence[Cell], outcomes: Mapping[int, Outcome], timeout_s: float, untouched: bool, strayed: str
) -> TaskReport:
    from attn_course.tasks import get_task
    from attn_course.tasks.source import binds

    task = get_task(task_id)
    check = next(position for position, cell in enumerate(cells) if cell.role == "check" and cell.task == task_id)
    answers = [position for position, cell in enumerate(cells) if cell.role == "answer" and cell.task == task_id]
    seconds = sum(outcomes[position].seconds for position in (check, *answers) if position in outcomes)

    def report(status: str, message: str, *, hint: str | None = None, mistake: str | None = None) -> TaskReport:
        points = task.points if status == "passed" else 0
        return TaskReport(task_id, task.title, status, points, task.points, message, mistake, hint, task.equation, seconds)

    outcome = outcomes.get(check)
    if outcome is None:
        return report("not judged", "Python had ended before this task")
    if outcome.problem is None or (outcome.problem == "differs" and task.ok_line in outcome.stdout.splitlines()):
        return report("passed", task.ok_line)  # "differs": the answer prints something of its own
    verdict = _verdict(outcome.verdict, task_id)
    if verdict is not None:
        hint = cite(task.hints[0]) if verdict["hint"] is None else verdict["hint"] or None
        if verdict["message"].startswith(f"{task.entry} has no answer yet"):
            return report("unanswered", f"{task.entry} has no answer yet", hint=hint)
        lacking = _UNDEFINED_INSIDE.match(verdict["message"])
        if lacking and (number := _failed_before(check, lacking[1], cells, outcomes)):
            return report("not judged", f"code cell {number} fails, which would define {lacking[1]}")
        if untouched:
            return report("unanswered", untouched_message(task.entry), hint=cite(task.hints[0]))
        return report("failed", verdict["message"], hint=hint, mistake=verdict["mistake"])
    undefined = _UNDEFINED.match(outcome.error_text) if outcome.error_name == "NameError" else None
    if undefined and undefined[1] == task.entry:
        below = any(
            binds(cells[position].source, task.entry) and not _failed(outcome) for position, outcome in outcomes.items() if position > check
        )
        ran = [outcomes[position] for position in answers if position in outcomes]
        return _judge_undefined(report, task, ran, below, timeout_s, strayed)
    if outcome.problem == "differs":
        return report("not judged", "the check cell did not show its own card: does your notebook redirect what is displayed?")
    return report("failed", _failure(outcome, timeout_s), hint=cite(task.hints[0]))


def _failed_before(check: int, name: str, cells: Sequence[Cell], outcomes: Mapping[int, Outcome]) -> int | None:
    """Number of the first cell above a check that fails and mentions a name: without it, the name is not there."""
    for position, cell in enumerate(cells[:check]):
        if cell.role == "other" and _failed(outcomes.get(position)) and re.search(rf"\b{name}\b", cell.source):
            return cell.number or position + 1
    return None


def _judge_undefined(report: Any, task: Any, answers: Sequence[Outcome], below: bool, timeout_s: float, strayed: str) -> TaskReport:
    """The answer's name does not exist when it is checked."""
    broken = next((outcome for outcome in answers if _failed(outcome)), None)
    if broken is not None:
        return report("failed", f"the answer cell does not run: {_failure(broken, timeout_s)}", hint=cite(task.hints[0]))
    if below:
        return report("failed", f"{task.entry} is defined only below its check: a notebook is checked from top to bottom")
    if answers:
        return report("failed", f"the answer cell does not define {task.entry}", hint=cite(task.hints[0]))
    return report("missing", strayed or f"the answer cell is gone: a cell must define {task.entry}; exercises/ holds the original")


def _verdict(found: Any, task_id: str) -> dict[str, Any] | None:
    """What `check` attached, if it is of this task and of the right form: it comes from the learner's kernel."""
    if not isinstance(found, dict) or found.get("task") != task_id or not isinstance(found.get("message"), str):
        return None
    texts = {name: found.get(name) if isinstance(found.get(name), str) else None for name in ("hint", "mistake")}
    return {"message": found["message"], **texts}


def _failure(outcome: Outcome, timeout_s: float) -> str:
    if outcome.problem == "timeout":
        return f"did not finish within {timeout_s:g} s: is there a loop that never ends?"
    if outcome.problem == "died":
        return "ended Python: does it call exit, or use up the memory?"
    return f"{outcome.error_name}: {outcome.error_text}".rstrip(": ") or "failed"
