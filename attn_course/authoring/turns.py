"""Your turn: a cell of a lesson that its reader fills, and that checks what they wrote."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attn_course.authoring.problems import AuthoringError, shorten
from attn_course.authoring.source import Cell, literal_calls
from attn_course.authoring.task_cells import TaskLookup, find_task

if TYPE_CHECKING:
    from attn_course.tasks import Task

YOUR_TURN = "your-turn"
_ROLE = re.compile(r"\{turn\}`([^`\n]*)`")


def ask_turns(cells: Sequence[Cell], get_task: TaskLookup, numbered: Callable[[str, str], str], name: str) -> list[Cell]:
    """Put the question of a task in the place of {turn}`id`: a lesson asks what the task asks.

    `numbered`: text and place -> the text with its numbers. Raises AuthoringError if it is no task that waits for its reader.
    """

    def asked(cell: Cell) -> Cell:
        place = f"{name}: cell {cell.id!r}"

        def question(role: re.Match[str]) -> str:
            task = find_task(get_task, role[1], place)
            if not task.your_turn or task.sheet is None:
                raise AuthoringError(f"{place}: wanted a task that says your_turn=True, got {task.id}")
            return numbered(task.sheet.question, place)

        return replace(cell, text=_ROLE.sub(question, cell.text)) if cell.kind == "markdown" else cell

    return [asked(cell) for cell in cells]


def hold_turns(cells: Sequence[Cell], get_task: TaskLookup, name: str) -> None:
    """Hold that cells tagged `your-turn`, and no others of a lesson, check tasks that wait for their reader.

    `get_task`: task id -> task; raises ValueError or LookupError for an unknown id. Raises AuthoringError if such a cell holds
    more than a name to fill and its check, or a task stands where it does not belong. A task that is answered by a whole cell may show
    it there instead, with dots in the place of what its reader writes.
    """
    for cell in cells:
        ids = literal_calls(cell.text, "check") if cell.kind == "code" else []
        tasks = [find_task(get_task, task_id, f"{name}: cell {cell.id!r}") for task_id in ids]
        if YOUR_TURN in cell.tags:
            _hold_turn(cell, tasks, f"{name}: cell {cell.id!r}")
        elif turns := [task.id for task in tasks if task.your_turn]:
            raise AuthoringError(f"{name}: cell {cell.id!r}: wanted the tag {YOUR_TURN} where {turns[0]} is checked, got {list(cell.tags)}")


def _hold_turn(cell: Cell, tasks: "Sequence[Task]", place: str) -> None:
    from attn_course.tasks.source import binds, has_dots

    if len(tasks) != 1:
        raise AuthoringError(f"{place}: wanted name = ... and one check of it in a cell tagged {YOUR_TURN}, got {shorten(cell.text)}")
    (task,) = tasks
    if not task.your_turn:
        raise AuthoringError(f"{place}: wanted a task that says your_turn=True, got {task.id}")
    checked = f'check("{task.id}", {task.entry})'
    if task.sheet is not None and task.sheet.is_verbatim and binds(cell.text, task.entry):
        if not has_dots(cell.text) or ast.dump(ast.parse(cell.text).body[-1]) != ast.dump(ast.parse(checked).body[0]):
            raise AuthoringError(f"{place}: wanted dots to replace, and {checked} as the last line, got {shorten(cell.text)}")
        return
    wanted = f"{task.entry} = ...\n{checked}"
    if ast.dump(ast.parse(cell.text)) != ast.dump(ast.parse(wanted)):
        raise AuthoringError(f"{place}: wanted {wanted!r} and at most comments beside it, got {shorten(cell.text)}")
