"""From a source to the notebook it asks for, outputs aside."""

import functools
from dataclasses import replace

from nbformat import NotebookNode

from attn_course.authoring.course import Unit
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.lessons import title_of
from attn_course.authoring.notebook import assemble
from attn_course.authoring.predictions import curly, fold
from attn_course.authoring.problems import AuthoringError, Problem
from attn_course.authoring.sheets import sheet
from attn_course.authoring.source import Cell, parse
from attn_course.authoring.stub import BEGIN, END
from attn_course.authoring.task_cells import TaskLookup, to_exercise
from attn_course.authoring.turns import ask_turns, hold_turns


def render(unit: Unit, fingerprints: Fingerprints, get_task: TaskLookup) -> NotebookNode:
    """Return the unit's notebook without outputs.

    `get_task`: task id -> task. Raises AuthoringError if the source cannot be built.
    """
    if unit.is_sheet:
        cells = _of_tasks(unit, fingerprints, get_task)
    else:
        cells = parse(fingerprints.text(unit), unit.source_name)
        _hold_lesson(cells, unit.source_name)
        cells = ask_turns(cells, get_task, functools.partial(fingerprints.numbering.of, unit.slug), unit.source_name)
        hold_turns(cells, get_task, unit.source_name)
        cells = [fold(cell) for cell in cells]
    if unit.folder == "exercises":
        cells = to_exercise(cells, get_task, unit.source_name)
    record = fingerprints.record(unit, cells)
    return assemble([replace(cell, text=curly(cell.text)) if cell.kind == "markdown" else cell for cell in cells], record)


def _of_tasks(unit: Unit, fingerprints: Fingerprints, get_task: TaskLookup) -> list[Cell]:
    """The cells of a solution."""
    from attn_course.tasks.registry import order

    try:
        listed = order(unit.slug)
        tasks = {each: get_task(each) for each in listed if isinstance(each, str)}
        cells = sheet(unit.slug, title_of(unit), listed, tasks)
    except AuthoringError:
        raise
    except Exception as error:  # an author's file may fail in any way
        raise AuthoringError(str(Problem.of_loading(unit.source_name, error))) from None
    numbered = fingerprints.numbering.of
    return [replace(cell, text=numbered(unit.slug, cell.text, f"{unit.source_name} [{cell.id}]")) for cell in cells]


def _hold_lesson(cells: list[Cell], name: str) -> None:
    """A lesson has no tasks."""
    for cell in cells:
        if {"task", "check"} & set(cell.tags) or BEGIN in cell.text or END in cell.text:
            raise AuthoringError(
                f"{name}: cell {cell.id!r}: wanted no task in a lesson but those of the tag your-turn; tasks go to the lesson's tasks.py"
            )
