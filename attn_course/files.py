"""Write files whole or not at all, and keep two processes out of one: what every room that stores something shares."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTH = 120  # of a line of stored data
BROUGHT = Path(__file__).parent / "course"  # the built notebooks in a wheel; in a checkout they lie beside the package
PROGRESS = ".progress.json"  # in work/: which tasks a learner has passed
TEMPORARY = ".tmp-"  # how files begin that are being written; one that is left over may be deleted


class Locked(OSError):
    """Another process holds the lock."""


def write_atomically(path: Path, text: str, *, durable: bool = False) -> bool:
    """Write text as UTF-8 unless the file holds it already, and return whether it was written; the folder is made.

    A reader sees the old file or the new one, never a part, and nothing half-written stays behind. What UTF-8 cannot hold stands as
    an escape. `durable` files survive a power cut.
    """
    content = text.encode("utf-8", "backslashreplace")
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(TEMPORARY + os.urandom(8).hex())
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return True


@contextlib.contextmanager
def locked(path: Path, *, patience_s: float) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends; its file stays.

    Raises Locked if another process still holds it after `patience_s` (0 does not wait); OSError if its file cannot be made.
    """
    from filelock import FileLock, Timeout

    try:
        with FileLock(path, timeout=patience_s, poll_interval=0.01):
            yield
    except Timeout:
        raise Locked(errno.EAGAIN, "another process is writing", str(path)) from None


def in_short_lines(data: Any) -> str:
    """Return data as JSON in which whatever fits in a line stands in one, and long lists fill their lines."""
    return "\n".join(_lines(json.loads(json.dumps(data)), "", "")) + "\n"


def _lines(data: Any, indent: str, key: str) -> list[str]:
    whole = f"{indent}{key}{json.dumps(data, ensure_ascii=False)}"
    if len(whole) < WIDTH or not isinstance(data, list | dict):
        return [whole]
    opening, closing = "[]" if isinstance(data, list) else "{}"
    named = (
        [("", value) for value in data] if isinstance(data, list) else [(f"{json.dumps(name)}: ", value) for name, value in data.items()]
    )
    parts = [_lines(value, f"{indent} ", name) for name, value in named]
    for part in parts[:-1]:
        part[-1] += ","
    if all(len(part) == 1 for part in parts) and not (isinstance(data, dict) and any(isinstance(value, dict) for value in data.values())):
        inside = _filled(parts, f"{indent} ")
    else:
        inside = [line for part in parts for line in part]
    return [f"{indent}{key}{opening}", *inside, f"{indent}{closing}"]


def _filled(parts: list[list[str]], indent: str) -> list[str]:
    lines = [indent]
    for (part,) in parts:
        word = part.removeprefix(indent)
        if lines[-1] != indent and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append(indent)
        lines[-1] += word if lines[-1] == indent else f" {word}"
    return lines
