"""What saved work leans on stays: ids, entries, kinds, points, success lines, and the cells of exercises and solutions.

`names.json` holds them as they were before tasks were written around their solutions. What is added later may stand between; a lesson may
get another number.
"""

import json
from pathlib import Path

import pytest

from attn_course import numbers
from attn_course.tasks.registry import declared_tasks
from tests.exercises.answers import notebook

NAMES = json.loads((Path(__file__).parent / "names.json").read_text(encoding="utf-8"))


def facts(task):
    """What is recorded, graded or compared of a task; a success line without its number, which moves with the lesson."""
    line = task.ok_line.replace(f"ok: task {task.number}, ", "ok ", 1)
    return f"{task.id} | {task.entry} | {task.kind} | {task.points} | {line}"


def cells(root, folder, lesson):
    """The cells of a built notebook: id, text or code, tags, and what nbgrader knows it by and gives for it."""
    book = notebook(root, folder, lesson)
    return [" ".join([cell.id, *_marks(cell)]) for cell in book.cells]


def _marks(cell):
    known = cell.metadata.get("nbgrader", {})
    yield from ["text"] * (cell.cell_type == "markdown")
    yield from cell.metadata.get("tags", [])
    if "grade_id" in known:
        yield "graded" if known["grade_id"] == cell.id else f"graded as {known['grade_id']}"
    yield from map(str, filter(None, [known.get("points")]))


def of_task(cell, tasks):
    return any(f"{cell.split()[0]}-".startswith(f"{task.id}-") for task in tasks)


def of_exercise(named, elsewhere):
    """The cells that exercises have too: neither for solutions only, nor of what the lesson asks its reader or earlier exercises asked."""
    return [cell for cell in named if "solution-only" not in cell.split() and not of_task(cell, elsewhere)]


def retired_last(lines, lesson):
    """Tasks or cells in the order of today: what is no longer asked stands behind all others."""
    retired = [task for task in declared_tasks(lesson) if task.retired]
    return sorted(lines, key=lambda line: of_task(line, retired))


def missing(before, after):
    """Which of the things before are not there any more, in this order."""
    rest = iter(after)
    return [each for each in before if not any(each == other for other in rest)]


@pytest.mark.parametrize("lesson", NAMES)
def test_tasks_keep_their_names_and_their_success_lines(lesson):
    order = numbers.names("tasks", lesson).index
    declared = [facts(task) for task in sorted(declared_tasks(lesson), key=lambda task: order(task.id))]
    assert missing(retired_last(NAMES[lesson]["tasks"], lesson), declared) == []


@pytest.mark.parametrize("folder", ["exercises", "solutions"])
@pytest.mark.parametrize("lesson", NAMES)
def test_notebooks_keep_their_cells(root, lesson, folder):
    kept = retired_last(NAMES[lesson]["cells"], lesson)
    if folder == "exercises":
        kept = of_exercise(kept, [task for task in declared_tasks(lesson) if not task.in_exercises])
    assert kept[:2]
    assert missing(kept, cells(root, folder, lesson)) == []


def test_what_is_gone_or_has_another_place_is_missing():
    assert missing([1, 2, 3], [1, 7, 2, 3]) == []
    assert missing([1, 2, 3], [1, 3, 2]) == [3]
    assert missing([1, 2, 3], [2, 3]) == [1, 2, 3]
