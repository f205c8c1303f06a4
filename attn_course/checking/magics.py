"""What IPython adds to Python, without an IPython shell: magics, `get_ipython()`, `display`, and the history of a notebook.

Both engines take it from here, so that they agree. `%%time` and its like run the code beneath them; magics that only look on or
set something up, and `!` commands, do nothing; what would bring names, text or files into the notebook is refused in one line.
"""

import re
import sys
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

RUN_THEIR_BODY = ("capture", "prun", "time", "timeit")
ONLY_SHOW = ("html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG")
BRING_NAMES = ("load", "loadpy", "macro", "pylab", "recall", "rerun", "run", "store")
_FIRST_LINE = re.compile(r"\s*%%(\w+)([^\n]*)(?:\n|$)")
_LINE = re.compile(r"^([ \t]*(?:[\w, ]+=)?[ \t]*)%(?:time|prun)[ \t]+(?!-)(\S.*)$", re.MULTILINE)
_KEPT = re.compile(r"^([ \t]*[\w, ]+=[ \t]*)get_ipython\(\)\.run_line_magic\(", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])get_ipython\(\)")
_TRANSFORMER = TransformerManager()
_HERE = f'__import__("{__name__}", fromlist=["Shell"])'


class UnknownMagic(SyntaxError):
    """A cell is written in a language of its own, such as %%bash."""


class NotInClass(RuntimeError):
    """A cell wants something of IPython's that is not there when a notebook is graded."""


def to_python(cell: str) -> str:
    """Return the text of a cell as Python.

    `cell`: as it stands in the notebook. It is Python if the cell is sound; line magics that are left are calls of
    `get_ipython()`. Raises UnknownMagic if its first line is a cell magic that does not run the rest as Python.
    """
    while match := _FIRST_LINE.match(cell):
        if match[1] in ONLY_SHOW:
            return ""
        if match[1] not in RUN_THEIR_BODY:
            alone = ": a notebook is graded alone, without other files" if match[1] in ("file", "writefile") else ""
            raise UnknownMagic(f"a %%{match[1]} cell is no Python{alone}")
        cell = cell[match.end() :]
    if not any(sign in cell for sign in "%!?"):  # as nearly always; the transformer takes its time
        return _TRANSFORMER.transform_cell(cell) if cell.lstrip(" \t\n")[:1] in (">", "I", ",", ";", "/") or cell[:1].isspace() else cell
    return _KEPT.sub(r"\1get_ipython().kept_magic(", str(_TRANSFORMER.transform_cell(_LINE.sub(r"\1\2", cell))))


def for_kernel(cell: str) -> str:
    """Return a cell for a kernel of IPython's that is to do with it what a class does: nothing more, and nothing less."""
    try:
        text = to_python(cell)
    except UnknownMagic as error:
        match = _FIRST_LINE.match(cell)
        words = match[2].split() if match else []
        written = Path(words[-1]).stem if words and match and match[1] in ("file", "writefile") else ""
        return f"{_HERE}.refuse({str(error)!r}, {written!r})"
    return _CALL.sub(f"{_HERE}.Shell(globals())", text)


def refuse(message: str, written: str) -> None:
    """Raise what a cell gets that is no Python, and hide the module it wrote when the notebook ran elsewhere, if it wrote one."""
    if written.isidentifier():
        sys.modules[written] = None  # type: ignore[assignment]  # an import of it says that there is none
    raise UnknownMagic(message)


class Shell:
    """What `get_ipython()` gives: an audience for magics, which does nothing."""

    def __init__(self, user_ns: dict[str, Any]) -> None:
        self.user_ns = user_ns

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> Any:
        """Do nothing, but refuse what would bring names."""
        if name in BRING_NAMES:
            raise NotInClass(f"%{name} is not there when a notebook is graded: write what it brings into a cell")
        return str(Path.cwd()) if name == "pwd" else None

    def kept_magic(self, name: str, line: str, *_: Any, **__: Any) -> Any:
        """Return what a magic gives to a name, if it can be had."""
        if (found := self.run_line_magic(name, line)) is None:
            raise NotInClass(f"%{name} gives nothing when a notebook is graded: use plain Python")
        return found

    def magic(self, line: str) -> Any:
        """Run a magic the old way."""
        name, _, rest = line.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Refuse a language of its own."""
        raise NotInClass(f"%%{name} is not there when a notebook is graded")

    def system(self, command: str) -> None:
        """Run no command."""

    def getoutput(self, command: str, *_: Any, **__: Any) -> list[str]:
        """Run no command, from which something is wanted."""
        raise NotInClass(f"!{command.strip()[:40]} gives nothing when a notebook is graded, where no command runs: use plain Python")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotInClass(f"get_ipython().{name} is not there when a notebook is graded")


class History:
    """`In`, `Out`, `_` and their like, as IPython keeps them; a cell has its number among the notebook's code cells."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names, self._number, self._shown = names, 0, ["", "", ""]
        names |= dict.fromkeys(("_", "__", "___", "_i", "_ii", "_iii"), "")
        names["In"] = names["_ih"] = self._in = [""]
        self._out: dict[int, Any] = {}
        names["Out"] = names["_oh"] = self._out

    def begin(self, number: int, text: str) -> None:
        """Note the text of a cell that is about to run."""
        self._number = number
        self._names |= {"_iii": self._names["_ii"], "_ii": self._names["_i"], "_i": self._in[-1]}
        self._in += [""] * (number + 1 - len(self._in))
        self._in[number] = text

    def shown(self, value: Any) -> None:
        """Note the value of a cell's last expression."""
        if value is None:
            return
        unders = ("_", "__", "___")
        if all(self._names.get(name, old) is old for name, old in zip(unders, self._shown, strict=True)):  # unless it is the learner's own
            self._shown = [value, *self._shown[:2]]
            self._names |= zip(unders, self._shown, strict=True)
        self._out[self._number] = self._names[f"_{self._number}"] = value
