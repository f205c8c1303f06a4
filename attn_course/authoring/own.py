"""Build the exercise of a teacher's own tasks: a folder outside of the package holds tasks.py and exercise.py, and gets the notebook."""

from dataclasses import dataclass, replace
from pathlib import Path

from attn_course import numbers
from attn_course.authoring.gates import Written, held, task_gate
from attn_course.authoring.notebook import assemble, to_text
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import Record
from attn_course.authoring.series import Lesson
from attn_course.authoring.source import Cell, parse
from attn_course.authoring.task_cells import dress, to_exercise
from attn_course.files import write_atomically
from attn_course.tasks import all_tasks, get_task
from attn_course.tasks.registry import OwnTasksError, add_own, own_exercises

SOURCE = "exercise.py"
JUDGED_IN_CLASS = 'print("{task} is judged in class: its answer is not handed out")'


@dataclass(frozen=True)
class _Own(Written):
    """Tasks outside of the course, whose files lie side by side."""

    def source(self, folder: str) -> str:
        """The source of the notebook, as messages show it."""
        return str(self.root / SOURCE)

    def file(self, room: str) -> str:
        """The file of the tasks, as messages show it."""
        return str(self.root / f"{room}.py")


def build_own(folder: Path) -> tuple[str, Path]:
    """Hold a teacher's own tasks to the gates of all tasks, and write their exercise into the folder.

    `folder`: holds tasks.py with TASKS, and exercise.py, the source of a solution as for a lesson of the course. Returns
    `lesson`: the slug of their lesson: the folder's name; `path`: the exercise, which holds no answers; its checks say that they
    are judged in class. Raises AuthoringError if a file is missing or cannot be used, or a gate finds something.
    """
    try:
        slug = add_own(folder)
    except OwnTasksError as error:
        raise AuthoringError(str(error)) from None
    path = own_exercises()[slug]
    source = path.parent / SOURCE
    try:
        text = source.read_text(encoding="utf-8")
        cells = dress(parse(numbers.cite(text), str(source)), get_task, str(source))
    except OSError as error:
        raise AuthoringError(f"{source}: cannot be read: {error.strerror}; wanted the tasks with their answers") from None
    except (UnicodeDecodeError, numbers.UnknownName) as error:
        raise AuthoringError(f"{source}: {error}") from None
    asked, declared = [cell.id for cell in cells if "task" in cell.tags], [task.id for task in all_tasks(slug)]
    if asked != declared:
        raise AuthoringError(
            f"{source}: wanted the tasks of tasks.py in their order, {', '.join(declared)}; got {', '.join(asked) or 'none'}"
        )
    written = _Own(path.parent, Lesson(slug, numbers.title(slug), minutes=1), {"solutions": assemble(cells, Record())})
    if problems := held(written, task_gate):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AuthoringError(f"{problems[0]}{more}")
    exercise = [_unchecked(cell) for cell in to_exercise(cells, get_task, str(source))]
    write_atomically(path, to_text(assemble(exercise, Record(SOURCE))))
    return slug, path


def _unchecked(cell: Cell) -> Cell:
    """A cell of the exercise; a check says what becomes of the answer."""
    return replace(cell, text=JUDGED_IN_CLASS.format(task=cell.id.removesuffix("-check"))) if "check" in cell.tags else cell
