"""The lessons there are, by the titles in their sources: a page that lists them cannot promise one that is missing."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from attn_course.authoring.course import Unit, units
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import read_text
from attn_course.files import write_atomically
from attn_course.numbers import lesson_table as lesson_table  # copies of lesson start that learners keep ask for it here

TITLE = re.compile(r"^# # \{lesson\}`\w+` (.+)$", re.MULTILINE)
TAG = re.compile(r"\\\\tag\{(\d+\.\d+)\}")  # as a notebook's JSON has it
README_NUMBERS = re.compile(r"(<!-- numbers: .*? -->\n).*?(<!-- end of numbers -->\n)", re.DOTALL)
README_TABLE = re.compile(r"(<!-- lessons: .*? -->\n).*?(<!-- end of lessons -->\n)", re.DOTALL)


class Lesson(NamedTuple):
    """One lesson: the name of its file, its title without the number, and the name of its exercises, "" if it has none."""

    stem: str
    title: str
    exercises: str


def lessons(root: Path) -> list[Lesson]:
    """Return the lessons of a course in their order.

    The title is the H1 of the source; the slug, if that has no H1 of the form "# {lesson}`slug` Title".
    """
    return [Lesson(lesson.stem, _title(lesson), exercise.stem if exercise else "") for lesson, exercise in _pairs(root)]


def readme_texts(root: Path) -> tuple[str | None, ...]:
    """Return what README.md may say: the table of lessons and its sums as they must be, or, where there is no place for them, as it is."""
    text = read_text(root / "README.md")
    if text is None or not README_TABLE.search(text):
        return (text,)
    pairs = list(_pairs(root))
    rows = ["| chapter | lesson | exercises | what it is about |", "|---|---|---|---|"]
    for lesson, exercise in pairs:
        title = _title(lesson).partition(":")[0]
        rows.append(f"| {lesson.stem[:2]} | [{title}]({lesson.name}) | {_points(exercise)} | {lesson.lesson.about} |")
    n_equations = len({number for lesson, _ in pairs for number in TAG.findall(read_text(lesson.path) or "")})
    n_tasks = sum(len(_tasks(exercise)) for _, exercise in pairs if exercise)
    told = f"**{len(pairs)}** lessons · **{n_equations}** checked equations · **{n_tasks}** tasks"
    text = README_NUMBERS.sub(lambda found: f"{found[1]}\n{told}\n\n{found[2]}", text)
    return (README_TABLE.sub(lambda found: f"{found[1]}\n" + "\n".join(rows) + f"\n\n{found[2]}", text),)


def write_readme(root: Path) -> None:
    """Write the table of lessons into README.md."""
    (text,) = readme_texts(root)
    if text is not None:
        write_atomically(root / "README.md", text)


def title_of(unit: Unit) -> str:
    """Return the title of the lesson that a notebook belongs to."""
    return _title(Unit(unit.root, "notebooks", unit.lesson))


def _pairs(root: Path) -> Iterator[tuple[Unit, Unit | None]]:
    """Each lesson with its exercise."""
    try:
        found = units(root)
    except AuthoringError:  # a release comes without sources
        return
    exercises = {unit.slug: unit for unit in found if unit.folder == "exercises"}
    yield from ((unit, exercises.get(unit.slug)) for unit in found if unit.folder == "notebooks")


def _title(lesson: Unit) -> str:
    heading = TITLE.search(lesson.read_source()) if lesson.source.is_file() else None
    return heading[1] if heading else lesson.slug


def _tasks(exercise: Unit) -> list[int]:
    """Return the points of each task of a built exercise."""
    cells = json.loads(read_text(exercise.path) or '{"cells": []}')["cells"]
    return [cell["metadata"]["nbgrader"]["points"] for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]


def _points(exercise: Unit | None) -> str:
    """How many tasks and points a built exercise holds, as a link to it."""
    if exercise is None:
        return ""
    points = _tasks(exercise)
    return f"[{len(points)} tasks, {sum(points)} points]({exercise.name})"
