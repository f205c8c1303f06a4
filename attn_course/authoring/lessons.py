"""The lessons there are, by the titles in their sources: a page that lists them cannot promise one that is missing."""

import re
from pathlib import Path
from typing import NamedTuple

from attn_course.authoring.course import STEM
from attn_course.equations.links import SHORT_TITLES

TITLE = re.compile(r"^# # (\d\d) (.+)$", re.MULTILINE)


class Lesson(NamedTuple):
    """One lesson: the name of its file, its title without the number, and whether it has exercises."""

    stem: str
    title: str
    has_exercises: bool


def lessons(root: Path) -> list[Lesson]:
    """Return the lessons of a course by number.

    Parameters
    ----------
    root : Path
        The course's root.

    Returns
    -------
    found : list of Lesson
        The title is the H1 of the source; the name of the file, if that has no H1 of the form "# 04 Title".
    """
    found = []
    for path in sorted((root / "notebooks" / "src").glob("[0-9]*.py")):
        if STEM.fullmatch(path.stem):
            heading = TITLE.search(path.read_text(encoding="utf-8"))
            title = heading[2] if heading else path.stem
            found.append(Lesson(path.stem, title, (root / "solutions" / "src" / path.name).is_file()))
    return found


def lesson_table(root: Path | None = None) -> str:
    """Return a Markdown table of all chapters, with links to those that exist.

    Parameters
    ----------
    root : Path, optional
        The course's root; by default the folder that this package lies in.

    Returns
    -------
    table : str
        Links lead from the folder notebooks/. A chapter without a lesson yet is called coming.
    """
    existing = {int(lesson.stem[:2]): lesson for lesson in lessons(root or Path(__file__).resolve().parents[2])}
    lines = ["| chapter | lesson | exercises |", "|---|---|---|"]
    for number in sorted({*SHORT_TITLES, *existing}):
        lesson = existing.get(number)
        if lesson is None:
            lines.append(f"| {number:02d} | {SHORT_TITLES[number]} | coming |")
        else:
            exercises = f"[exercises](../work/{lesson.stem}.ipynb)" if lesson.has_exercises else ""
            lines.append(f"| {number:02d} | [{lesson.title}]({lesson.stem}.ipynb) | {exercises} |")
    return "\n".join(lines)
