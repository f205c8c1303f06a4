"""Judge a learner's notebook: a temporary copy with pristine check cells, run under nbval."""

import ast
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attn_course.checking.cells import Cell, NoTasks, NotebookError, at_home, exercise_files, moved, read_code_cells, strayed_answers
from attn_course.checking.nbval_run import Outcome, run_nbval
from attn_course.checking.report import NotebookReport, TaskReport
from attn_course.checking.untouched import is_untouched
from attn_course.checking.verdicts import make_report
from attn_course.numbers import lesson_in, lesson_number, lesson_of, place, task_number

if TYPE_CHECKING:
    from attn_course.tasks import Task

_MAX_RUNS = 10  # a cell that ends Python is left out and the rest run again, this often at most
_LAST_MOMENT_S = 2.0  # within it, Python ends after a cell that asked for its end and replied all the same
_EMPTY = Cell("")
_COURSE = "_attn_course_of_this_check"  # a name no learner gives to anything: theirs may hide `check`, or lack its import


@dataclass(frozen=True)
class Plan:
    """The code cells of the copy, and which of them belongs to which task.

    `cells`: the learner's cells, with pristine check cells in place of theirs. `tasks`: ids of all tasks of the chapter, in
    order. `notes`: what the learner should know about the copy. `untouched`: ids of the tasks whose function to repair is as the
    exercise hands it out. `strayed`: by id of a task whose answer cell is no code any more, what is said of it.
    """

    cells: tuple[Cell, ...]
    tasks: tuple[str, ...]
    notes: tuple[str, ...] = ()
    untouched: frozenset[str] = frozenset()
    strayed: Mapping[str, str] = field(default_factory=dict)

    @property
    def lesson(self) -> str:
        """The slug of the lesson whose tasks these are."""
        return lesson_of("tasks", self.tasks[0]) or ""


def check_notebook(
    path: Path,
    *,
    exercises: Path,
    cell_timeout_s: float = 60.0,
    on_cell: Callable[[int, int], None] | None = None,
) -> NotebookReport:
    """Run a notebook in a fresh kernel and judge each task of its chapter.

    `path`: the learner's notebook; it is only read. Its folder is the kernel's working directory. `exercises`: folder of the
    pristine exercise notebooks, which the check cells are taken from. `cell_timeout_s`: longest time for one cell, in seconds.
    `on_cell`: called with the number of cells done and their total, every moment; what it raises ends the run. Returns one verdict
    for each task of the chapter, also for those that the notebook lacks. Raises NotebookError if the file is no notebook, or holds
    no tasks, or those of another chapter; EngineError if the kernel or nbval does not start.
    """
    start = time.monotonic()
    plan = plan_check(path, exercises=exercises)
    outcomes, unexplained = _run(plan, path.absolute().parent, cell_timeout_s, on_cell)
    seconds = time.monotonic() - start
    report = make_report(
        plan.cells,
        plan.tasks,
        outcomes,
        notebook=str(path),
        timeout_s=cell_timeout_s,
        seconds=seconds,
        untouched=plan.untouched,
        strayed=plan.strayed,
    )
    return replace(report, notes=(*plan.notes, *unexplained, *_not_recorded(outcomes)))


def not_judged(path: Path, *, exercises: Path, reason: str) -> NotebookReport:
    """Return the report on a notebook that could not be run: its tasks, each not judged for this reason."""
    from attn_course.tasks import get_task

    plan = plan_check(path, exercises=exercises)
    tasks = [get_task(task) for task in plan.tasks]
    reports = [TaskReport(task.id, task.title, "not judged", 0, task.points, reason, equation=task.equation) for task in tasks]
    return NotebookReport(str(path), plan.lesson, tuple(reports), (), 0.0, plan.notes)


def _not_recorded(outcomes: Mapping[int, Outcome]) -> list[str]:
    """What `check` said, the first time, where it could not record progress."""
    from attn_course.tasks.notebook import NOT_RECORDED

    lines = [line for _, outcome in sorted(outcomes.items()) for line in outcome.stdout.splitlines() if line.startswith(NOT_RECORDED)]
    return lines[:1]


def plan_check(path: Path, *, exercises: Path) -> Plan:
    """Read a notebook and put pristine check cells in the place of the learner's.

    `path`, `exercises`: as for `check_notebook`. A check cell the notebook lacks is appended; of several for one task only the
    last is kept. Raises NotebookError as for `check_notebook`.
    """
    cells = read_code_cells(path)
    lesson = _lesson(cells, path)
    pristine, asked = _pristine(lesson, path, exercises)
    for task in _asked_earlier(lesson, cells):
        pristine[task.id], asked[task.id] = Cell(task.check_source, "check", task.id, ("check",)), task.handed_out
    last = {cell.task: position for position, cell in enumerate(cells) if cell.role == "check"}
    kept = [
        replace(pristine[cell.task], number=cell.number) if cell.role == "check" and cell.task in pristine else cell
        for position, cell in enumerate(cells)
        if cell.role != "check" or last[cell.task] == position
    ]
    appended = [replace(check, number=0) for task, check in pristine.items() if task not in last]
    notes = [
        f"code cell {cell.number} is the check of task {task_number(cell.task)}: what else was written into it does not run"
        for cell in cells
        if cell.role == "check" and cell.task in pristine and _holds_more(cell.source, pristine[cell.task].source)
    ]
    strayed = strayed_answers(path) if {*pristine} - {cell.task for cell in cells if cell.role == "answer"} else {}
    return Plan((*kept, *appended), tuple(pristine), tuple(notes), _untouched(tuple(pristine), cells, asked), strayed)


def _holds_more(source: str, pristine: str) -> bool:
    """Whether a check cell holds code of the learner's; blanks, comments and quotes are none."""
    try:
        statements, wanted = ({ast.dump(node) for node in ast.parse(text).body} for text in (source, pristine))
    except SyntaxError:
        return True
    return not statements <= wanted


def _lesson(cells: Sequence[Cell], path: Path) -> str:
    found = at_home(cells, path)
    named = lesson_in(path.name)
    if not found and named is not None and _answers(named, cells):
        return named  # all marks are gone, as where all code stands in one cell
    if not found:
        raise NoTasks(f'{path}: holds no task of the course (no cell such as check("stable-softmax", ...)); exercises are copied to work/')
    if len(found) > 1:
        raise NotebookError(f"{path}: holds tasks of chapters {' and '.join(map(lesson_number, found))}; a notebook belongs to one chapter")
    if named is not None and named != found[0]:
        raise NotebookError(f"{path}: is named for the lesson {named} but holds tasks of {found[0]}")
    return found[0]


def _answers(lesson: str, cells: Sequence[Cell]) -> bool:
    """Whether the cells define the answer to some task of a lesson."""
    from attn_course.tasks import all_tasks, registry
    from attn_course.tasks.source import binds

    entries = [task.entry for task in all_tasks(lesson)] if lesson in registry.lessons() else []
    return any(binds(cell.source, entry) for cell in cells for entry in entries)


def _untouched(tasks: Sequence[str], cells: Sequence[Cell], asked: Mapping[str, str]) -> frozenset[str]:
    """Tasks whose function to repair is as it was handed out, in every cell that is marked as its answer or defines it."""
    from attn_course.tasks import get_task
    from attn_course.tasks.source import binds

    found = set()
    for task in (get_task(name) for name in asked if name in tasks):
        own = [cell for cell in cells if cell.role != "check"]
        answers = [cell.source for cell in own if cell.task == task.id or binds(cell.source, task.entry)]
        if task.kind == "repair" and is_untouched(answers, asked[task.id]):
            found.add(task.id)
    return frozenset(found)


def _pristine(lesson: str, path: Path, exercises: Path) -> tuple[dict[str, Cell], dict[str, str]]:
    """The check cells of the exercise, and the texts of its answer cells, both by task id."""
    exercise = exercise_files(exercises).get(lesson)
    if exercise is None:
        raise NotebookError(f"{path}: holds tasks of chapter {lesson_number(lesson)}, for which {exercises} has no notebook")
    cells = [cell for cell in read_code_cells(exercise) if cell.task]
    checks = [cell for cell in cells if cell.role == "check"]
    if not checks:
        raise NotebookError(f"{exercise}: holds no check cell; attn-course notebooks build makes it anew")
    for cell in checks:
        _known(str(cell.task), exercise)
    asked = {str(cell.task): cell.source for cell in cells if cell.role == "answer"}
    return {str(cell.task): cell for cell in sorted(checks, key=lambda cell: place("tasks", str(cell.task)))}, asked


def _asked_earlier(lesson: str, cells: Sequence[Cell]) -> "list[Task]":
    """The tasks of earlier exercises that a notebook holds: retired ones, and those that another lesson asks now."""
    from attn_course.tasks import get_task
    from attn_course.tasks.registry import declared_tasks

    held = {cell.task for cell in cells}
    retired = [task for task in declared_tasks(lesson) if task.retired]
    return [task for task in retired if task.id in held] + [task for task in map(get_task, moved(lesson, cells)) if not task.your_turn]


def _known(task: str, exercise: Path) -> None:
    from attn_course.tasks import UnknownTask, get_task

    try:
        get_task(task)
    except UnknownTask as error:
        raise NotebookError(f"{exercise}: does not belong to the installed attn_course: {error}") from None


def _run(
    plan: Plan, folder: Path, cell_timeout_s: float, on_cell: Callable[[int, int], None] | None
) -> tuple[dict[int, Outcome], list[str]]:
    """Run the copy; leave out cells that ended the kernel or the time, and run again, so that other tasks are judged.

    The cell during which the kernel died is only a suspect: an earlier one may have ended Python a moment after its reply.
    In the next run it waits instead; if the kernel dies all the same, it is innocent, and the guilty one is looked for.
    Returns the outcomes, and what the learner should know of a search in vain.
    """
    run = partial(run_nbval, folder=folder, cell_timeout_s=cell_timeout_s)
    wait = Cell(f"await __import__('asyncio').sleep({min(_LAST_MOMENT_S, cell_timeout_s / 2):g})")
    whole = _copies(plan)
    stopped: dict[int, Outcome] = {}
    outcomes: dict[int, Outcome] = {}
    suspect = -1
    for _ in range(_MAX_RUNS):
        copies = [(wait if position == suspect else _EMPTY) if position in stopped else copy for position, copy in enumerate(whole)]
        outcomes = run(copies, on_cell=(lambda done: on_cell(done, len(whole))) if on_cell else None)
        dead = next((position for position, outcome in outcomes.items() if not outcome.alive), None)
        was_left_out = dead in stopped
        stopped = {position: outcome for position, outcome in outcomes.items() if outcome.problem == "timeout"} | stopped
        if dead is None:
            break
        if not was_left_out and dead > suspect:
            stopped[dead] = outcomes[dead]
            suspect = dead if outcomes[dead].problem == "died" else -1
            continue
        for innocent in {dead, suspect}:  # they run again; what died above the suspect had been fine the time before
            outcomes.pop(innocent, None)
            if innocent in stopped and stopped[innocent].problem == "died":
                del stopped[innocent]
        suspect = -1
        guilty = _guilty(copies[: dead + 1], wait, run)
        if guilty is None or guilty in stopped:
            return outcomes | stopped, [f"a cell before code cell {plan.cells[dead].number or dead + 1} ended Python"]
        stopped[guilty] = Outcome("died", False, outcomes[guilty].seconds if guilty in outcomes else 0.0)
    return outcomes | stopped, []


def _guilty(copies: Sequence[Cell], wait: Cell, run: Callable[..., dict[int, Outcome]]) -> int | None:
    """Run the cells with a wait after each, and return the one after which the kernel dies; None if it lives."""
    outcomes = run([cell for copy in copies for cell in (copy, wait if copy.source else _EMPTY)])
    return next((position // 2 for position, outcome in outcomes.items() if not outcome.alive), None)


def _copies(plan: Plan) -> list[Cell]:
    from attn_course.checking.magics import for_kernel
    from attn_course.tasks import get_task
    from attn_course.tasks.cards import passed

    copies = []
    for cell in plan.cells:
        if cell.role == "check" and cell.task in plan.tasks:
            task = get_task(cell.task)
            source = f'import attn_course as {_COURSE}\n{_COURSE}.check("{task.id}", {task.entry})'
            cell = Cell(source, expected=passed(task))
        else:
            cell = replace(cell, source=for_kernel(cell.source))
        copies.append(cell)
    return copies
