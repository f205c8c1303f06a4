"""What surrounds an answer in a notebook: cards, hints, given cells, nbgrader's metadata; and the exercise that is left of a solution."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.source import Cell, task_id
from attn_course.authoring.stub import stub

if TYPE_CHECKING:
    from attn_course.tasks import Task

SOLUTION_ONLY = "solution-only"
STUDENT = 'STUDENT = ""'  # the line of an exercise that `release --roster` fills in


TaskLookup = Callable[[str], "Task"]


def default_lookup() -> TaskLookup:
    """Return the course's own `get_task`; importing the tasks is slow, so only when asked."""
    from attn_course.tasks import get_task

    return get_task


def question_cell(task: "Task", text: str) -> Cell:
    """Return the cell of a question: its card, `text`, what limits the answer, and hints.

    Raises ValueError if the text says a number that differs from student to student.
    """
    if said := task.numbers_in(text):
        raise ValueError(f"task {task.id}: wanted no number that differs from student to student, got {', '.join(said)}")
    return Cell(f"{task.id}-text", "markdown", "\n\n".join(filter(None, (task.card, text, task.limits, task.hints_markdown))))


def answer_cells(task: "Task", solution: str) -> Iterator[Cell]:
    """Yield what a task gives, its answer and its check."""
    if task.given_source:
        yield Cell(f"{task.id}-given", "code", task.given_source, ("given",))
    if task.question_source:
        locked = _nbgrader(f"{task.id}-given", solution=False) | {"locked": True}
        yield Cell(f"{task.id}-given", "code", task.question_source, ("question",), nbgrader=locked)
    yield Cell(task.id, "code", solution, ("task",), nbgrader=_nbgrader(task.id, solution=True))
    check = f"{task.id}-check"
    graded = _nbgrader(check, solution=False) | {"grade": True, "locked": True, "points": task.points}
    yield Cell(check, "code", task.check_source, ("check",), nbgrader=graded)


def to_exercise(cells: list[Cell], get_task: TaskLookup, name: str) -> list[Cell]:
    """Return the cells of the exercise notebook: those of the solution, answers stubbed, less what only the lesson or earlier ones ask."""
    elsewhere = {cell.id for cell in cells if "task" in cell.tags and not get_task(cell.id).in_exercises}
    kept = []
    for cell in cells:
        if SOLUTION_ONLY in cell.tags or task_id(cell, elsewhere) in elsewhere:
            continue
        if "task" in cell.tags:
            task = get_task(cell.id)
            text = task.handed_out or stub(cell.text, task.entry, f"{name}: cell {cell.id!r}")
            cell = replace(cell, text=text)
        kept.append(cell)
    return kept


def find_task(get_task: TaskLookup, task: str, place: str) -> "Task":
    """Return a task by its id.

    `get_task`: task id -> task; raises ValueError or LookupError for an unknown id. Raises AuthoringError if there is no such
    task.
    """
    try:
        return get_task(task)
    except (ValueError, LookupError) as error:
        raise AuthoringError(f"{place}: wanted the id of a registered task ({error})") from None


def _nbgrader(grade_id: str, *, solution: bool) -> dict[str, Any]:
    """Metadata that nbgrader reads, of a cell that is neither locked nor graded."""
    return {"grade": False, "grade_id": grade_id, "locked": False, "schema_version": 3, "solution": solution, "task": False}
