"""The exercises and solutions of a lesson, made of its tasks."""

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attn_course.authoring.imports import PACKAGE
from attn_course.authoring.problems import NO_PYTHON, AuthoringError
from attn_course.authoring.sealed import read_text
from attn_course.authoring.source import Cell
from attn_course.authoring.task_cells import STUDENT, answer_cells, question_cell
from attn_course.numbers import UnknownName

if TYPE_CHECKING:
    from attn_course.tasks import Task
    from attn_course.tasks.core import Note

HOW = """\
**How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, then run it and the check
below it (Shift+Enter). A check that fails says what is wrong, and stops "Run All". Each question has three hints: one opens the next.
Leave the checks as they are. In a terminal, `attn-course check` runs the whole notebook afresh."""
EACH_ALONE = "Each stands for itself, so take them in any order."
APART = {"turns": "## What the lesson asks its reader", "retired": "## Asked in earlier exercises, and still judged"}
ASKING = "from attn_course import check"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
WHOSE = f"{STUDENT}  # your id, if your course gave you one; your numbers depend on it"


def tasks_file(slug: str) -> str:
    """Return where ORDER of a lesson stands, relative to the course's root."""
    return f"attn_course/lessons/{slug}/tasks.py"


def order_of(root: Path, slug: str) -> list[str] | None:
    """Return the ids of tasks in ORDER of a lesson, whose file is read and not run; None if there is none.

    Raises AuthoringError if the file is no Python.
    """
    text = read_text(root / tasks_file(slug)) or ""
    try:
        return _order(text) if "ORDER = " in text else None
    except SyntaxError as error:
        raise AuthoringError(f"{tasks_file(slug)}: line {error.lineno}: {NO_PYTHON}{(error.text or '').strip()!r}") from None


@functools.lru_cache(maxsize=128)
def _order(text: str) -> list[str] | None:
    for node in ast.parse(text).body:
        if (
            isinstance(node, ast.Assign)
            and [ast.unparse(target) for target in node.targets] == ["ORDER"]
            and isinstance(node.value, ast.List)
        ):
            return [each.value for each in node.value.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return None


def sheet(slug: str, title: str, order: "Sequence[str | Note]", tasks: "Mapping[str, Task]", name: str = "") -> list[Cell]:
    """Return the cells of a solution, with roles in them.

    `slug`, `title`: of the lesson. `order`: as its file says it. `tasks`: by their ids. `name`: of a teacher's own file, as
    messages show it; there is no lesson then. Raises ValueError if two cells have one id, or a question says a number that differs
    from student to student; AuthoringError, with the task, if a role names nothing.
    """
    notes = [each for each in order if not isinstance(each, str)]
    first = next((place for place, each in enumerate(order) if isinstance(each, str)), len(order))
    own = {each.id: each for each in notes if each.id in ("title", "setup")}
    listed = [tasks[each] for each in order if isinstance(each, str)]
    cells = [
        Cell("title", "markdown", _title(slug, title, listed, own["title"].text if "title" in own else EACH_ALONE, has_lesson=not name))
    ]
    cells += [_noted(each) for each in order[:first] if not isinstance(each, str) and each.id not in own]
    cells.append(Cell("setup", "code", own["setup"].text if "setup" in own else "import numpy as np", ("setup",)))
    vary = any(len(task.variants) > 1 for task in listed)
    cells.append(Cell("setup-check", "code", f"{ASKING}\n\n{WHOSE}" if vary else ASKING))
    for each in order[first:]:
        if not isinstance(each, str):
            cells.append(_noted(each))
            continue
        apart = "turns" if tasks[each].your_turn else "retired"
        if not tasks[each].in_exercises and all(cell.id != apart for cell in cells):
            cells.append(Cell(apart, "markdown", APART[apart], ("solution-only",)))
        try:
            cells += _cells_of(tasks[each], slug)
        except UnknownName as error:
            raise AuthoringError(f"{name or tasks_file(slug)} [{each}]: {error}") from None
    if twice := sorted({cell.id for cell in cells if [other.id for other in cells].count(cell.id) > 1}):
        raise ValueError(f"wanted cells with ids of their own, got {', '.join(twice)} a second time")
    return cells


def _title(slug: str, title: str, tasks: "Sequence[Task]", said: str, *, has_lesson: bool) -> str:
    """What stands above the exercises: `said` are words behind the counts, and paragraphs behind how it works."""
    marked = [task for task in tasks if task.in_exercises]
    count = WORDS[len(marked)].capitalize() if len(marked) < len(WORDS) else str(len(marked))
    points, minutes = (sum(getattr(task, each) for task in marked) for each in ("points", "minutes"))
    title = title.partition(":")[0]
    lower = title if any(letter.isupper() for letter in title.split()[0][1:]) else title[0].lower() + title[1:]
    behind, _, below = said.partition("\n\n")
    heading, of = f"# Exercises: {lower}", "task" if len(marked) == 1 else "tasks"
    if has_lesson:
        heading = f"# Exercises {{lesson}}`{slug}`: {lower}"
        of += f" to the lesson [{{lesson}}`{slug}` {title}](../notebooks/{{lesson}}`{slug}`_{slug}.ipynb)"
    counted = f"{count} {of}: {points} {'point' if points == 1 else 'points'}, about {minutes} minutes. {behind}"
    return "\n\n".join(filter(None, [heading, counted.rstrip(), HOW, below]))


def _noted(note: "Note") -> Cell:
    return Cell(note.id, "code" if note.is_code else "markdown", note.text)


def _cells_of(task: "Task", slug: str) -> Iterator[Cell]:
    shown = task.sheet
    assert shown is not None, task.id
    yield question_cell(task, "\n\n".join(filter(None, [shown.question, _digits(task)])))
    if shown.then:
        yield _noted(shown.then)
    if shown.figure:
        module = shown.figure.partition(".")[0]
        room = f"{PACKAGE}.lessons.{slug}" if module == "figures" else f"{PACKAGE}.figures"
        imports = f"from {room} import {module}\nfrom attn_course.tasks import figure_data"
        yield Cell(f"{task.id}-figure", "code", f'{imports}\n\n{shown.figure}(**figure_data("{task.id}"))')
    yield from answer_cells(task, shown.solution)
    if shown.why:
        yield Cell(f"{task.id}-why", "markdown", f"**Why.** {shown.why}", ("solution-only",))


def _digits(task: "Task") -> str:
    """What is said of how exact an answer must be."""
    if task.digits is None:
        return ""
    several = np.size(task.answer(**task.numbers)) > 1
    digits = f"{WORDS[task.digits].capitalize()} correct digits"
    return f"{digits} of each number, or expressions, are enough." if several else f"{digits}, or an expression, are enough."
