"""What all commands share at the terminal: consoles, the one-line error, JSON files."""

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class BadInput(Exception):
    """What the user gave cannot be used (exit code 2); each line of the text is one complaint."""


class Failure(Exception):
    """The work itself failed (exit code 1); the text is one line."""


def console(*, stderr: bool = False) -> "Console":
    """Return a console that keeps hints readable: never narrower than 40 columns; --no-color and NO_COLOR hold."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, no_color="NO_COLOR" in os.environ or None)
    if made.width < 40:
        made.width = 40
    return made


def check_json_target(target: str | None) -> None:
    """Refuse a --json FILE that cannot be written, before any work is done.

    Parameters
    ----------
    target : str or None
        A path, "-" for standard output, or None for no JSON.

    Raises
    ------
    BadInput
        If the folder is missing, or a folder or a notebook is in the way.
    """
    if target is None or target == "-":
        return
    path = Path(target)
    if not target or path.is_dir():
        raise BadInput(f"--json: {target!r} is a directory; name a file")
    if path.suffix in (".ipynb", ".py"):
        raise BadInput(f"--json: {target} would be overwritten; name a .json file")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"--json: there is no directory {path.absolute().parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        raise BadInput(f"--json: {path.absolute().parent} is not writable")


def write_json(target: str, data: Any) -> None:
    """Write plain data as JSON, whole or not at all.

    Parameters
    ----------
    target : str
        A path, or "-" for standard output.
    data : object
        What to write; it holds no NaN.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    path = Path(target).absolute()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def positive(seconds: float, name: str) -> float:
    """Return `seconds`, or raise BadInput if it is not a positive, finite number."""
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadInput(f"{name} must be a positive number of seconds; got {seconds:g}")
    return seconds
