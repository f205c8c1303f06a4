"""Which registered equations the docstring of a function names where it says what the function does."""

import inspect
from collections.abc import Iterable
from itertools import takewhile
from types import ModuleType

from attn_course.authoring.formulas import labels_named


def named_equations(thing: object) -> list[str]:
    """Return the labels in the summary of a docstring and in what follows it up to the arguments."""
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    said = takewhile(lambda paragraph: not paragraph.startswith(("`", "Returns ", "Raises ")), paragraphs)
    return labels_named("\n\n".join(said))


def without_equation(room: ModuleType, known: Iterable[str]) -> list[str]:
    """Return the public names of a package whose docstrings name no equation, or one that is not registered."""
    known = set(known)
    names = room.__all__
    return [name for name in names if not (labels := named_equations(getattr(room, name))) or not known.issuperset(labels)]
