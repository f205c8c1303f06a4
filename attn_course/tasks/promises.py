"""What a question promises about its inputs, and which case keeps it: a mark behind the words says so, and is not shown.

    Scores may be near a thousand {case}`scores near a thousand`; `x` is never negative {every}`x.min() >= 0`.

`{case}` names a case that shows what the words say, or is "any" if whichever does. `{every}` is an expression in the inputs that holds of
each case. `{lowest}` is a number: no score that is not hidden is lower.
"""

import re
from collections.abc import Iterator

MARK = re.compile(r"\s*\{(case|every|lowest)\}`([^`]*)`")
OPEN = re.compile(r"\b(?:may|need not|at least|in any order|any (?:finite )?numbers?|one or several|either sign)\b")


def shown(text: str) -> str:
    """Return a question without its marks."""
    return MARK.sub("", text)


def marks(text: str, kind: str) -> list[str]:
    """List what stands in the marks of a kind."""
    return [" ".join(what.split()) for each, what in MARK.findall(text) if each == kind]


def unmarked(text: str) -> Iterator[str]:
    """Yield the sentences that leave something open about inputs, and have no mark behind these words."""
    *marked, rest = MARK.split(text)[::3]
    for words in marked:
        yield from filter(OPEN.search, _sentences(words)[:-1])
    yield from filter(OPEN.search, _sentences(rest))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:;]) ", " ".join(text.split()))
