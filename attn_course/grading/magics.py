"""Cells as IPython takes them, made plain Python without an IPython shell: magics that only look on are taken away.

`%%time` and its like run the code beneath them; `!pip install` and `%matplotlib inline` do nothing here.
"""

import re
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

RUN_THEIR_BODY = ("capture", "prun", "time", "timeit")
_FIRST_LINE = re.compile(r"\s*%%(\w+)[^\n]*(?:\n|$)")
_LINE = re.compile(r"^([ \t]*(?:[\w, ]+=)?[ \t]*)%(?:time|prun)[ \t]+(?!-)(\S.*)$", re.MULTILINE)
_TRANSFORMER = TransformerManager()


class UnknownMagic(SyntaxError):
    """A cell is written in a language of its own, such as %%bash."""


def to_python(cell: str) -> str:
    """Return the text of a cell as Python.

    Parameters
    ----------
    cell : str
        As it stands in the notebook.

    Returns
    -------
    text : str
        Python, if the cell is sound; line magics that are left are calls of `get_ipython()`.

    Raises
    ------
    UnknownMagic
        If its first line is a cell magic that does not run the rest as Python.
    """
    while match := _FIRST_LINE.match(cell):
        if match[1] not in RUN_THEIR_BODY:
            raise UnknownMagic(f"a %%{match[1]} cell is no Python")
        cell = cell[match.end() :]
    if not any(sign in cell for sign in "%!?"):  # as nearly always; the transformer takes its time
        return _TRANSFORMER.transform_cell(cell) if cell.lstrip(" \t\n")[:1] in (">", "I", ",", ";", "/") or cell[:1].isspace() else cell
    return str(_TRANSFORMER.transform_cell(_LINE.sub(r"\1\2", cell)))


class Shell:
    """What `get_ipython()` gives in a worker: an audience for magics, which does nothing."""

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Do nothing."""

    def system(self, command: str) -> None:
        """Run no command."""

    def getoutput(self, command: str, *_: Any, **__: Any) -> list[str]:
        """Run no command."""
        return []
