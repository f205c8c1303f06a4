"""The course's notebooks, read once: every chapter that has a source takes part in the tests of this folder."""

from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from attn_course.authoring.course import units

ROOT = Path(__file__).resolve().parents[2]
UNITS = units(ROOT)
LESSONS = [unit.slug for unit in UNITS if unit.folder == "notebooks"]
EXECUTED = [unit.name for unit in UNITS if unit.is_executed]
ALL = [unit.name for unit in UNITS]


@cache
def notebook(name: str) -> Any:
    return nbformat.read(ROOT / name, as_version=4)


def lesson(slug: str) -> Any:
    return notebook(next(unit.name for unit in UNITS if unit.slug == slug and unit.folder == "notebooks"))
