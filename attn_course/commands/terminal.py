"""What all commands share at the terminal: options, tables, lines and notes, the one-line error, JSON files."""

import contextlib
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attn_course.files import write_atomically

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


class BadInput(Exception):
    """What the user gave cannot be used (exit code 2); each line of the text is one complaint."""


class Failure(Exception):
    """The work itself failed (exit code 1); the text is one line."""


@contextlib.contextmanager
def refusing(*errors: type[Exception], about: str = "") -> Iterator[None]:
    """Turn these errors, whose text is one line, into BadInput, with what they are about in front."""
    try:
        yield
    except errors as error:
        raise BadInput(f"{about}{error}") from None


def option(name: str, metavar: str, text: str, **more: Any) -> Any:
    """Return an option whose default goes without saying; `text` stands in --help."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False, **more)


def console(*, stderr: bool = False) -> "Console":
    """Return a console that keeps hints readable: never narrower than 40 columns; --no-color and NO_COLOR hold."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, no_color="NO_COLOR" in os.environ or None)
    if made.width < 40:
        made.width = 40
    return made


def say(text: "str | Text", *, prose: bool = False) -> None:
    """Print a line: prose is broken between words, anything else stays whole, to be searched and copied."""
    console().print(text, markup=False, soft_wrap=not prose)


def note(text: str) -> None:
    """Print what a reader should know of."""
    from rich.text import Text

    say(Text.assemble(("Note", "bold yellow"), f": {text}"), prose=True)


def table(columns: Mapping[str, Mapping[str, Any]]) -> "Table":
    """Return an empty table with these columns; their words fold, unless what is said of one says otherwise."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name, style in columns.items():
        made.add_column(**{"header": name, "overflow": "fold", **style})
    return made


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let a request to end (kill, a closed terminal) leave as little behind as Ctrl-C; what is ignored stays so, as nohup wants it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_json_target(target: str | None) -> None:
    """Refuse a --json FILE that cannot be written, before any work is done.

    `target`: a path, "-" for standard output, or None for no JSON. Raises BadInput if the folder is missing, or a folder or a
    notebook is in the way.
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

    `target`: a path, or "-" for standard output. `data`: what to write; it holds no NaN.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    write_atomically(Path(target).absolute(), text)


def positive(seconds: float, name: str) -> float:
    """Return `seconds`, or raise BadInput if it is not a positive, finite number."""
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadInput(f"{name} must be a positive number of seconds; got {seconds:g}")
    return seconds
