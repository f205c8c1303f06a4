"""Build the exercise of a teacher's own tasks: a folder outside of the package holds tasks.py, and gets the notebook."""

from dataclasses import replace
from pathlib import Path

from attn_course import numbers
from attn_course.authoring.gates import Written, held, task_gate
from attn_course.authoring.notebook import assemble, to_text
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import Record
from attn_course.authoring.series import Lesson
from attn_course.authoring.sheets import sheet
from attn_course.authoring.source import Cell
from attn_course.authoring.task_cells import to_exercise
from attn_course.files import write_atomically
from attn_course.tasks import get_task
from attn_course.tasks.registry import OwnTasksError, add_own, declared_tasks, order, own_exercises

SOURCE = "tasks.py"
JUDGED_IN_CLASS = 'print("{task} is judged in class: its answer is not handed out")'


class _Own(Written):
    """Tasks outside of the course."""

    def source(self, folder: str) -> str:
        """The file of the tasks, which is the source of the notebook too, as messages show it."""
        return str(self.root / SOURCE)

    def file(self, room: str) -> str:
        """The same, whatever is asked for."""
        return str(self.root / SOURCE)


def build_own(folder: Path) -> tuple[str, Path]:
    """Hold a teacher's own tasks to the gates of all tasks, and write their exercise into the folder.

    `folder`: holds tasks.py. Returns `lesson`: the slug of their lesson: the folder's name; `path`: the exercise, which holds no answers;
    its checks say that they are judged in class. Raises AuthoringError if the file is missing or cannot be used, or a gate finds something.
    """
    try:
        slug = add_own(folder)
    except OwnTasksError as error:
        raise AuthoringError(str(error)) from None
    path = own_exercises()[slug]
    source, tasks = str(path.parent / SOURCE), {task.id: task for task in declared_tasks(slug)}
    try:
        cells = sheet(slug, numbers.title(slug), order(slug), tasks, source)
        cells = [replace(cell, text=numbers.cite(cell.text)) for cell in cells]
    except AuthoringError:
        raise
    except ValueError as error:
        raise AuthoringError(f"{source}: {error}") from None
    written = _Own(path.parent, Lesson(slug, numbers.title(slug), minutes=1), {"solutions": assemble(cells, Record())})
    if problems := held(written, task_gate):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AuthoringError(f"{problems[0]}{more}")
    exercise = [_unchecked(cell) for cell in to_exercise(cells, get_task, source)]
    write_atomically(path, to_text(assemble(exercise, Record(SOURCE))))
    return slug, path


def _unchecked(cell: Cell) -> Cell:
    """A cell of the exercise; a check says what becomes of the answer."""
    return replace(cell, text=JUDGED_IN_CLASS.format(task=cell.id.removesuffix("-check"))) if "check" in cell.tags else cell
