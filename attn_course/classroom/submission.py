"""Read a submitted notebook for grading: its code cells, where each task is judged, and what a teacher should know."""

import functools
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attn_course.checking.cells import Cell, NotebookError, at_home, exercise_files, lesson_of_cells, read_code_cells, strayed_answers
from attn_course.files import BROUGHT
from attn_course.numbers import lesson_in, lesson_number, lesson_place, task_number
from attn_course.tasks import Task, registry
from attn_course.tasks.registry import asked_tasks, declared_tasks

MAX_BYTES = 16 * 2**20
MAX_CELLS = 2_000
MAX_CODE_CHARACTERS = 2**20
EXERCISES = (BROUGHT if BROUGHT.is_dir() else Path(__file__).resolve().parents[2]) / "exercises"
_STUDENT = re.compile(r"""^STUDENT\s*=\s*(["'])(.*?)\1""", re.MULTILINE)


class SubmissionError(ValueError):
    """A file cannot be graded; the text is one sentence about it."""


@dataclass(frozen=True)
class Exercise:
    """What the pristine exercise of a lesson gives and asks.

    `setup`, `given`: cells that import, and cells of helper functions and symbols. `answers`, `checks`: by task id: its answer
    cell as it is handed out, and its check cell.
    """

    setup: tuple[str, ...]
    given: tuple[str, ...]
    answers: dict[str, str]
    checks: dict[str, str]


@dataclass(frozen=True)
class Submission:
    """A notebook as the grader sees it.

    `lesson`: the slug of the lesson whose tasks it is judged by. `cells`: its code cells without the checks. `judged_after`: by
    task id: how many of these cells run before it is judged, if a check cell says so. `answers`: by id of each task that is asked
    for: the positions of the cells that are marked as its answer. `notes`: what a teacher should know. `key`: whose numbers it is
    judged by; "" for those that all have. `strayed`: by id of a task whose answer cell is no code any more, what is said of it.
    """

    lesson: str
    cells: tuple[Cell, ...]
    judged_after: dict[str, int]
    answers: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()
    key: str = ""
    strayed: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> list[Task]:
        """The tasks of its lesson that are asked for, with the numbers it is judged by."""
        return [task.variant(self.key) for task in asked_tasks(self.lesson, self.answers)]

    @property
    def answered(self) -> dict[str, str]:
        """What stands in the answer cells of each task."""
        return {task: "\n\n".join(self.cells[at].source for at in places) for task, places in self.answers.items() if places}

    @property
    def questions(self) -> dict[str, dict[str, Any]]:
        """The numbers of this notebook by name, for each task of its lesson that asks with such."""
        tasks = [task.variant(self.key) for task in declared_tasks(self.lesson)]
        return {task.id: dict(task.numbers) for task in tasks if task.question_source}


def read_submission(
    path: Path, *, lesson: str | None = None, exercises: Path = EXERCISES, tasks: Collection[str] | None = None, key: str = ""
) -> Submission:
    """Read a submitted notebook.

    `path`: the file; nothing in it is run, and a link is not followed. `lesson`: whose tasks to judge; by default the lesson its
    cells are marked with, else that of its name. `exercises`: folder of the pristine exercises. `tasks`: which of them to judge;
    all by default. `key`: whose numbers it is judged by, whatever the notebook says.

    Check cells are taken out, whatever they hold: a task is judged where its last check cell stands. Raises SubmissionError if it
    cannot be graded.
    """
    try:
        if path.is_symlink():
            raise SubmissionError("the file is a symbolic link, which is not followed")
        cells = read_code_cells(path, max_bytes=MAX_BYTES)
    except NotebookError as error:
        raise SubmissionError(f"the file {str(error).removeprefix(f'{path}: ')}") from None
    except OSError as error:
        raise SubmissionError(f"the file cannot be read: {error.strerror}") from None
    if len(cells) > MAX_CELLS or sum(len(cell.source) for cell in cells) > MAX_CODE_CHARACTERS:
        raise SubmissionError(f"the notebook holds more than {MAX_CELLS} code cells or {MAX_CODE_CHARACTERS} characters of code")
    slug = _lesson(cells, path, lesson)
    asked = [task.id for task in asked_tasks(slug, tasks)]
    submission = _submission(slug, cells, read_exercise(slug, exercises), asked)
    strayed = {} if all(submission.answers.values()) else strayed_answers(path, max_bytes=MAX_BYTES)
    return replace(submission, notes=(*submission.notes, *_other_numbers(submission, key)), key=key, strayed=strayed)


def _other_numbers(submission: Submission, key: str) -> list[str]:
    """What a teacher should know if a notebook was answered on other numbers than it is judged by."""
    if all(len(task.variants) == 1 for task in submission.tasks):
        return []
    said = [text for cell in submission.cells for _, text in _STUDENT.findall(cell.source)]
    own = said[-1].strip() if said else ""
    if unicodedata.normalize("NFC", own) == unicodedata.normalize("NFC", key):
        return []
    whose = f"those of {key!r}" if key else "those that all have (attn-course grade --variants judges each student by their own)"
    return [f"the notebook asks for the numbers of {own[:60]!r} (STUDENT); it is judged by {whose}"]


@functools.cache
def read_exercise(lesson: str, exercises: Path = EXERCISES) -> Exercise:
    """Return what the exercise of a lesson gives; SubmissionError if there is none."""
    path = {**exercise_files(exercises), **registry.own_exercises()}.get(lesson)
    if path is None:
        raise SubmissionError(f"there is no exercise of chapter {lesson_number(lesson)}")
    cells = read_code_cells(path)
    retired = [task for task in declared_tasks(lesson) if task.retired]
    return Exercise(
        tuple(cell.source for cell in cells if "setup" in cell.tags),
        tuple(cell.source for cell in cells if "given" in cell.tags),
        {str(cell.task): cell.source for cell in cells if cell.role == "answer"} | {task.id: task.handed_out for task in retired},
        {str(cell.task): cell.source for cell in cells if cell.role == "check"} | {task.id: task.check_source for task in retired},
    )


def _lesson(cells: Sequence[Cell], path: Path, wanted: str | None) -> str:
    try:
        found = at_home(cells, path) if wanted is None else sorted(lesson_of_cells(cells, path), key=lesson_place)
    except NotebookError as error:
        raise SubmissionError(f"the file {str(error).removeprefix(f'{path}: ')}") from None
    if len(found) > 1 and wanted is None:
        raise SubmissionError(f"the notebook holds tasks of chapters {' and '.join(map(lesson_number, found))}; it belongs to one chapter")
    if wanted is not None and found and wanted not in found:
        raise SubmissionError(f"the notebook holds tasks of chapter {lesson_number(found[0])}, not of chapter {lesson_number(wanted)}")
    lesson = wanted or next(iter(found), lesson_in(path.name))
    if lesson is None:
        raise SubmissionError("the notebook holds no task of the course, and is named for none of its lessons")
    if lesson not in registry.lessons():
        raise SubmissionError(f"the course has no tasks of chapter {lesson_number(lesson)}")
    return lesson


def _submission(lesson: str, cells: Sequence[Cell], pristine: Exercise, tasks: Sequence[str]) -> Submission:
    kept: list[Cell] = []
    judged_after: dict[str, int] = {}
    answers: dict[str, list[int]] = {task: [] for task in tasks}
    notes = []
    for cell in cells:
        if cell.role == "check":
            if cell.task is not None and cell.task in tasks:
                if cell.source.strip() != pristine.checks.get(cell.task, "").strip():
                    notes.append(f"code cell {cell.number}, the check of task {task_number(cell.task)}, was edited; it does not run here")
                judged_after[cell.task] = len(kept)
            continue
        if cell.role == "answer" and cell.task in answers:
            answers[cell.task].append(len(kept))
        kept.append(cell)
    unmarked = len(tasks) > 1 and not any(answers.values())
    unchecked = len(tasks) > 1 and not judged_after
    if unmarked:
        notes.append("no cell is marked as an answer; what is defined at each check counts")
    if unchecked:
        notes.append("no check cell is left; each task is judged after the last cell that defines its answer")
    for task in tasks:
        if len(answers[task]) > 1:
            places = " and ".join(str(kept[position].number) for position in answers[task])
            notes.append(
                f"task {task_number(task)} has {len(answers[task])} answer cells (code cells {places}); what stands at its check counts"
            )
        elif not answers[task] and not unmarked:
            notes.append(f"no cell is marked as the answer to task {task_number(task)}; what is defined at its check counts")
        if task not in judged_after and not unchecked:
            notes.append(f"the check cell of task {task_number(task)} is gone; it is judged after the last cell that defines the answer")
    return Submission(lesson, tuple(kept), judged_after, {task: tuple(found) for task, found in answers.items()}, tuple(notes))
