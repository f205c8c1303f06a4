"""What the tests of tasks share: the built notebooks of a lesson, and the question and the answer that they show."""

from functools import cache
from pathlib import Path

import nbformat

from attn_course.numbers import lesson_in
from attn_course.tasks import get_task


def notebook(root: Path, folder: str, lesson: str) -> nbformat.NotebookNode:
    """The one notebook of a lesson in exercises/ or solutions/."""
    (path,) = (path for path in (root / folder).glob("*.ipynb") if lesson_in(path.name) == lesson)
    return nbformat.read(path, as_version=4)


@cache
def shown(root: Path, task_id: str) -> tuple[str, str]:
    """The question of a task and the cell that answers it, as the solution has them."""
    task = get_task(task_id)
    cells = {cell.id: cell.source for cell in notebook(root, "solutions", task.lesson).cells}
    return cells[f"{task_id}-text"].removeprefix(task.card).partition("<details>")[0].replace(task.limits, "").strip(), cells[task_id]
