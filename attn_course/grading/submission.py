"""Read a submitted notebook for grading: its code cells, where each task is judged, and what a teacher should know."""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attn_course.grading.cells import Cell, NotebookError, read_code_cells
from attn_course.tasks import Task, all_tasks, registry

MAX_BYTES = 16 * 2**20
MAX_CELLS = 2_000
MAX_CODE_CHARACTERS = 2**20
EXERCISES = Path(__file__).resolve().parents[2] / "exercises"


class SubmissionError(ValueError):
    """A file cannot be graded; the text is one sentence about it."""


@dataclass(frozen=True)
class Exercise:
    """What the pristine exercise of a chapter gives and asks.

    Attributes
    ----------
    setup, given : tuple of str
        Cells that import, and cells of helper functions and symbols.
    answers, checks : dict
        By task id: its answer cell as it is handed out, and its check cell.
    """

    setup: tuple[str, ...]
    given: tuple[str, ...]
    answers: dict[str, str]
    checks: dict[str, str]


@dataclass(frozen=True)
class Submission:
    """A notebook as the grader sees it.

    Attributes
    ----------
    chapter : int
        The chapter whose tasks it is judged by.
    cells : tuple of Cell
        Its code cells without the checks.
    judged_after : dict of str to int
        By task id: how many of these cells run before it is judged, if a check cell says so.
    answers : dict of str to tuple of int
        By task id: the positions of the cells that are marked as its answer.
    notes : tuple of str
        What a teacher should know.
    """

    chapter: int
    cells: tuple[Cell, ...]
    judged_after: dict[str, int]
    answers: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[Task]:
        """The tasks of its chapter."""
        return all_tasks(self.chapter)


def read_submission(path: Path, *, chapter: int | None = None, exercises: Path = EXERCISES) -> Submission:
    """Read a submitted notebook.

    Parameters
    ----------
    path : Path
        The file; nothing in it is run, and a link is not followed.
    chapter : int, optional
        Whose tasks to judge; by default the chapter its cells are marked with, else that of its name.
    exercises : Path, optional
        Folder of the pristine exercises.

    Returns
    -------
    submission : Submission
        Check cells are taken out, whatever they hold: a task is judged where its last check cell stands.

    Raises
    ------
    SubmissionError
        If it cannot be graded.
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
    number = _chapter(cells, path, chapter)
    pristine = read_exercise(number, exercises)
    return _submission(number, cells, pristine)


@functools.cache
def read_exercise(chapter: int, exercises: Path = EXERCISES) -> Exercise:
    """Return what the exercise of a chapter gives; SubmissionError if there is none."""
    found = sorted(exercises.glob(f"{chapter:02d}_*.ipynb"))
    if not found:
        raise SubmissionError(f"there is no exercise of chapter {chapter}")
    cells = read_code_cells(found[0])
    return Exercise(
        tuple(cell.source for cell in cells if "setup" in cell.tags),
        tuple(cell.source for cell in cells if "given" in cell.tags),
        {str(cell.task): cell.source for cell in cells if cell.role == "answer"},
        {str(cell.task): cell.source for cell in cells if cell.role == "check"},
    )


def _chapter(cells: Sequence[Cell], path: Path, wanted: int | None) -> int:
    marked = Counter(int(cell.task.split(".")[0]) for cell in cells if cell.task)
    named = chapter_named(path)
    if len(marked) > 1 and wanted is None:
        raise SubmissionError(f"the notebook holds tasks of chapters {' and '.join(map(str, sorted(marked)))}; it belongs to one chapter")
    if wanted is not None and marked and wanted not in marked:
        raise SubmissionError(f"the notebook holds tasks of chapter {min(marked)}, not of chapter {wanted}")
    chapter = wanted if wanted is not None else next(iter(marked), named)
    if chapter is None:
        raise SubmissionError("the notebook holds no task of the course, and its name begins with no chapter's number")
    if chapter not in registry.chapters():
        raise SubmissionError(f"the course has no tasks of chapter {chapter}")
    return chapter


def chapter_named(path: Path) -> int | None:
    """Return the chapter that a file is named for, as 2 for 02_softmax.ipynb, or None."""
    match = re.match(r"(\d{1,2})[_-]", path.name)
    return int(match[1]) if match else None


def _submission(chapter: int, cells: Sequence[Cell], pristine: Exercise) -> Submission:
    tasks = [task.id for task in all_tasks(chapter)]
    kept: list[Cell] = []
    judged_after: dict[str, int] = {}
    answers: dict[str, list[int]] = {task: [] for task in tasks}
    notes = []
    for cell in cells:
        if cell.role == "check":
            if cell.task in tasks:
                if cell.source.strip() != pristine.checks.get(cell.task, "").strip():
                    notes.append(f"code cell {cell.number}, the check of task {cell.task}, was edited; it does not run here")
                judged_after[cell.task] = len(kept)
            continue
        if cell.role == "answer" and cell.task in answers:
            answers[cell.task].append(len(kept))
        kept.append(cell)
    for task in tasks:
        if len(answers[task]) > 1:
            places = " and ".join(str(kept[position].number) for position in answers[task])
            notes.append(f"task {task} has {len(answers[task])} answer cells (code cells {places}); what stands at its check counts")
        elif not answers[task]:
            notes.append(f"no cell is marked as the answer to task {task}; what is defined at its check counts")
        if task not in judged_after:
            notes.append(f"the check cell of task {task} is gone; it is judged after the last cell that defines the answer")
    return Submission(chapter, tuple(kept), judged_after, {task: tuple(found) for task, found in answers.items()}, tuple(notes))
