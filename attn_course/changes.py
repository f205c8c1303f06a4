"""A mistake is a change of what is right: `old -> new`, more of them behind ` ;; `.

Blanks at the ends of a piece count between backticks. The old piece must stand exactly once in the text; `all old -> new` changes it
wherever it stands. With nothing before the arrow all of the text is another.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Any

_ARROW = re.compile(r"(?s)(?:(?P<old>.*?)(?: |\n))?->(?:(?: |\n)(?P<new>.*))?")
_PARTS = re.compile(r" ;; |\n;;\n")


class ChangeError(ValueError):
    """A change does not apply, or cannot be read; `slip` is what it belongs to, if that is known."""

    def __init__(self, message: str, slip: Any = None) -> None:
        super().__init__(message)
        self.slip = slip


def blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each part of a text: one that is not indented, and those below it that are, without that indentation.

    >>> list(blocks("one\\n    more\\n\\n    yet\\ntwo"))
    [['one', 'more', '', 'yet'], ['two']]
    """
    found: list[list[str]] = []
    for line in textwrap.dedent(text).strip().splitlines():
        if not line.startswith(" ") and line.strip():
            found.append([line])
        else:
            found[-1].append(line.removeprefix("    "))
    yield from found


def changed(text: str, change: str) -> str:
    """Return a text with other pieces in the place of some of its own.

    Raises ChangeError if a piece does not stand there once, or nothing is another.

    >>> changed("x / np.sqrt(d_k)", "np.sqrt(d_k) -> d_k")
    'x / d_k'
    """
    new = text
    for part in _PARTS.split(change):
        read = _ARROW.fullmatch(part)
        if read is None:
            raise ChangeError(f"wanted `old -> new`, got `{part}`")
        old, instead = _piece(read["old"] or ""), _piece(read["new"] or "")
        if not old:
            new = instead
            continue
        everywhere = old.startswith("all ") and new.count(old) == 0
        old = _piece(old.removeprefix("all ")) if everywhere else old
        if not (count := new.count(old)) or (count > 1 and not everywhere):
            times = f"{count} times" if count else "not there"
            raise ChangeError(f"wanted `{old}` once (or all before it) in what it changes, got it {times}")
        new = new.replace(old, instead)
    if new == text:
        raise ChangeError("changes nothing")
    return new


def changes_text(change: str) -> bool:
    """Whether a change keeps some of the text: it names a piece of it."""
    return bool(change) and all((read := _ARROW.fullmatch(part)) and _piece(read["old"] or "") for part in _PARTS.split(change))


def _piece(text: str) -> str:
    """A side of a change; between backticks blanks count."""
    bare = text.strip(" ")
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] == "`" else text if "\n" in text else bare
