"""Which registered equations the docstring of a function names where it says what the function does."""

import inspect
import re
from collections.abc import Iterable
from types import ModuleType

from numpydoc.docscrape import get_doc_object

_LABEL = r"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
_ONE = re.compile(rf"\bEq\.[\s#]+{_LABEL}")
_SEVERAL = re.compile(rf"\bEqs\.[\s#]+((?:{_LABEL},[\s#]+)*{_LABEL}[\s#]+and[\s#]+{_LABEL})")


def labels_named(text: str) -> list[str]:
    """Return the labels that a text refers to, as "Eq. softmax" or "Eqs. softmax, log-softmax and log-sum-exp".

    Examples
    --------
    >>> labels_named("By Eq. softmax and the chain rule; Eqs. log-softmax and log-sum-exp, Eq. 1 of the paper")
    ['log-softmax', 'log-sum-exp', 'softmax']
    """
    several = [label for group in _SEVERAL.findall(text) for label in re.findall(_LABEL, group[0]) if label != "and"]
    return sorted({*several, *_ONE.findall(text)})


def named_equations(thing: object) -> list[str]:
    """Return the labels in the summary of a docstring and in what follows it up to the parameters: notes do not count."""
    sections = get_doc_object(thing)
    return labels_named(inspect.cleandoc("\n".join([*sections["Summary"], *sections["Extended Summary"]])))


def without_equation(room: ModuleType, known: Iterable[str]) -> list[str]:
    """Return the public names of a package whose docstrings name no equation, or one that is not registered."""
    known = set(known)
    names = room.__all__
    return [name for name in names if not (labels := named_equations(getattr(room, name))) or not known.issuperset(labels)]
