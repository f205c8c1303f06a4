"""Which registered equations the docstring of a function names where it says what the function does."""

import inspect
import re
from collections.abc import Iterable
from types import ModuleType

from numpydoc.docscrape import get_doc_object

REFERENCE = re.compile(r"\bEqs?\.\s(\(\d+\.\d+\)(?:(?:,|\s(?:and|to|or))*\s\(\d+\.\d+\))*)")


def named_equations(thing: object) -> list[str]:
    """Return the tags in the summary of a docstring and in what follows it up to the parameters: notes do not count."""
    sections = get_doc_object(thing)
    said = inspect.cleandoc("\n".join([*sections["Summary"], *sections["Extended Summary"]]))
    return [tag for group in REFERENCE.findall(said) for tag in re.findall(r"\d+\.\d+", group)]


def without_equation(room: ModuleType, known: Iterable[str]) -> list[str]:
    """Return the public names of a package whose docstrings name no equation, or one that is not registered."""
    known = set(known)
    names = room.__all__
    return [name for name in names if not (tags := named_equations(getattr(room, name))) or not known.issuperset(tags)]
