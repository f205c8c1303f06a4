"""Dress the task cells of a solution source: cards, hints, given cells, nbgrader's metadata; and derive the exercise."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.source import Cell, literal_calls, task_id
from attn_course.authoring.stub import BEGIN, END, regions, stub
from attn_course.numbers import UnknownName

if TYPE_CHECKING:
    from attn_course.tasks import Task

SOLUTION_ONLY = "solution-only"
STUDENT = 'STUDENT = ""'  # the line of an exercise that `release --roster` fills in


TaskLookup = Callable[[str], "Task"]


def default_lookup() -> TaskLookup:
    """Return the course's own `get_task`; importing the tasks is slow, so only when asked."""
    from attn_course.tasks import get_task

    return get_task


def dress(cells: list[Cell], get_task: TaskLookup, name: str) -> list[Cell]:
    """Return the cells of the solution notebook.

    `get_task`: task id -> task; raises ValueError or LookupError for an unknown id. Raises AuthoringError if a task is unknown or
    lacks its text, answer or check cell, or a marker stands outside an answer cell.
    """
    tasks = {cell.id: find_task(get_task, cell.id, f"{name}: cell {cell.id!r}") for cell in cells if "task" in cell.tags}
    for task in tasks:
        _hold_cells_of(task, cells, name)
    _hold_student(cells, any(len(task.variants) > 1 for task in tasks.values()), name)
    dressed: list[Cell] = []
    for cell in cells:
        slug = task_id(cell, tasks)
        try:
            dressed += _dress_cell(cell, slug, tasks, name)
        except UnknownName as error:
            file = name if name.endswith("/tasks.py") else f"attn_course/lessons/{PurePath(name).stem}/tasks.py"
            raise AuthoringError(f"{file} [{slug}]: {error}") from None
    return dressed


def to_exercise(cells: list[Cell], get_task: TaskLookup, name: str) -> list[Cell]:
    """Return the cells of the exercise notebook: those of the solution, answers stubbed, without what the lesson asks."""
    asked_in_lesson = {cell.id for cell in cells if "task" in cell.tags and get_task(cell.id).your_turn}
    kept = []
    for cell in cells:
        if SOLUTION_ONLY in cell.tags or task_id(cell, asked_in_lesson) in asked_in_lesson:
            continue
        if "task" in cell.tags:
            task = get_task(cell.id)
            text = task.broken_source or stub(cell.text, task.entry, f"{name}: cell {cell.id!r}")
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


def _hold_cells_of(slug: str, cells: list[Cell], name: str) -> None:
    """A task has a text, an answer and a check cell, in this order, of the right kind and tag."""
    wanted = {f"{slug}-text": ("markdown", ()), slug: ("code", ("task",)), f"{slug}-check": ("code", ("check",))}
    if any(cell.id == f"{slug}-given" for cell in cells):
        raise AuthoringError(f"{name}: cell '{slug}-given': wanted the builder to write it (from the task), got one in the source")
    present = [cell for cell in cells if cell.id in wanted]
    missing = [cell_id for cell_id in wanted if all(cell.id != cell_id for cell in present)]
    if missing:
        raise AuthoringError(f"{name}: task {slug}: wanted the cells {', '.join(wanted)}; missing {', '.join(missing)}")
    if [cell.id for cell in present] != list(wanted):
        raise AuthoringError(f"{name}: task {slug}: wanted the order {', '.join(wanted)}; got {', '.join(cell.id for cell in present)}")
    for cell in present:
        if (cell.kind, cell.tags) != wanted[cell.id]:
            kind, tags = wanted[cell.id]
            raise AuthoringError(
                f"{name}: cell {cell.id!r}: wanted a {kind} cell with tags {list(tags)}, got a {cell.kind} cell with {list(cell.tags)}"
            )


def _hold_student(cells: list[Cell], wanted: bool, name: str) -> None:
    """Where numbers differ from student to student, one line says whose they are."""
    code = [cell.text for cell in cells if cell.kind == "code"]
    lines = [line.partition("#")[0].rstrip() for text in code for line in text.splitlines()]
    if lines.count(STUDENT) != wanted:
        raise AuthoringError(
            f"{name}: wanted the line {STUDENT} {'once' if wanted else 'only where numbers differ from student to student'}; "
            f"got it {lines.count(STUDENT)} times"
        )


def _dress_cell(cell: Cell, slug: str, tasks: "Mapping[str, Task]", name: str) -> Iterator[Cell]:
    place = f"{name}: cell {cell.id!r}"
    if "task" not in cell.tags and (BEGIN in cell.text or END in cell.text):
        raise AuthoringError(f"{place}: wanted solution markers only in cells tagged ['task'], got one here")
    task = tasks.get(slug)
    if task is None:
        if "check" in cell.tags:
            raise AuthoringError(f"{place}: wanted the id of a task with -check behind it for a cell tagged {list(cell.tags)}")
        yield cell
    elif cell.kind == "markdown":
        if cell.id == f"{slug}-text" and (said := task.numbers_in(cell.text)):
            raise AuthoringError(f"{place}: wanted no number that differs from student to student, got {', '.join(said)}")
        yield replace(cell, text=f"{task.card}\n\n{cell.text}\n\n{task.hints_markdown}")
    elif cell.tags == ("task",):
        if task.given_source:
            yield Cell(f"{cell.id}-given", "code", task.given_source, ("given",))
        if task.question_source:
            yield Cell(f"{cell.id}-given", "code", task.question_source, ("question",), nbgrader=_locked(f"{cell.id}-given"))
        if not regions(cell.text, place):
            raise AuthoringError(f"{place}: wanted the answer between {BEGIN!r} and {END!r}, got no markers")
        if task.entry not in _defined_names(cell.text):
            raise AuthoringError(f"{place}: wanted it to define {task.entry!r}, the task's entry, got {sorted(_defined_names(cell.text))}")
        yield replace(cell, nbgrader=_nbgrader(cell.id, points=None))
    else:
        if literal_calls(cell.text, "check") != [slug]:
            raise AuthoringError(f"{place}: wanted one call check({slug!r}, {task.entry}), got {cell.text.strip()!r}")
        yield replace(cell, nbgrader=_nbgrader(cell.id, points=task.points))


def _locked(grade_id: str) -> dict[str, Any]:
    """Metadata of a cell that is read only and not graded."""
    return {"grade": False, "grade_id": grade_id, "locked": True, "schema_version": 3, "solution": False, "task": False}


def _nbgrader(grade_id: str, *, points: int | None) -> dict[str, Any]:
    """Metadata of an answer cell, or of a check cell if there are points."""
    graded = points is not None
    metadata: dict[str, Any] = {
        "grade": graded, "grade_id": grade_id, "locked": graded, "schema_version": 3, "solution": not graded, "task": False,
    }  # fmt: skip
    return {**metadata, "points": points} if graded else metadata


def _defined_names(text: str) -> set[str]:
    """Names a cell binds at its top level by def or plain assignment."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names
