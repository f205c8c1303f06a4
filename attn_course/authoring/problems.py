"""The two ways to report trouble: an error that stops a build, and a finding of the gate."""

from dataclasses import dataclass
from typing import TypeAlias

Finding: TypeAlias = tuple[str | None, str]  # id of a cell, a label or a task, or None; and what is wrong there
NO_PYTHON = "wanted Python, got "
REBUILD = "run attn-course notebooks build"


class AuthoringError(ValueError):
    """A source, or a notebook, that cannot be built; one clear line."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a lesson.

    `file`: path relative to the course's root, with forward slashes. `cell`: id of the cell, the label or the task; None if the
    file as a whole is meant. `message`: what was wanted and what was found. `by_build`: whether a build mends it, and no author need.
    """

    file: str
    cell: str | None
    message: str
    by_build: bool = False

    @classmethod
    def of_error(cls, error: AuthoringError) -> "Problem":
        """Return an error, which begins with its place, as a finding."""
        file, _, message = str(error).partition(": ")
        return cls(file, None, message)

    @classmethod
    def of_loading(cls, file: str, error: Exception) -> "Problem":
        """Return why a file of an author's cannot be loaded; a task that cannot be made says its own place."""
        if type(error).__name__ == "TaskError":
            return cls.of_error(AuthoringError(str(error)))
        return cls(file, None, f"cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}")

    def __str__(self) -> str:
        """Return the finding as one line."""
        place = f"{self.file} [{self.cell}]" if self.cell else self.file
        return f"{place}: {self.message}"


def shorten(text: str, width: int = 70) -> str:
    r"""Return `text` in quotes on one line, cut to about `width` characters; backslashes stay single, for formulas are full of them.

    >>> print(shorten("a \\tag and more", width=6))
    'a \tag...'
    """
    text = text if len(text) <= width else text[:width] + "..."
    return "'" + text.replace("\n", "\\n") + "'"
