"""The two ways to report trouble: an error that stops a build, and a finding of the check."""

from dataclasses import dataclass

REBUILD = "run attn-course notebooks build"


class AuthoringError(ValueError):
    """A source, or a notebook, that cannot be built; one clear line."""


@dataclass(frozen=True)
class Problem:
    """One difference between a built notebook and what its source asks for.

    Parameters
    ----------
    notebook : str
        Path relative to the course's root, with forward slashes.
    cell : str or None
        Id of the cell; None if the notebook as a whole is meant.
    message : str
        What was wanted and what was found.
    """

    notebook: str
    cell: str | None
    message: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        place = f"{self.notebook} [{self.cell}]" if self.cell else self.notebook
        return f"{place}: {self.message}"


def shorten(text: str, width: int = 70) -> str:
    r"""Return `text` in quotes on one line, cut to about `width` characters; backslashes stay single, for formulas are full of them.

    Examples
    --------
    >>> print(shorten("a \\tag and more", width=6))
    'a \tag...'
    """
    text = text if len(text) <= width else text[:width] + "..."
    return "'" + text.replace("\n", "\\n") + "'"
