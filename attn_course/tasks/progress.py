"""Remember, on this machine only, which tasks a learner has passed."""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attn_course.tasks.core import Verdict

FILE = ".progress.json"
LOCK = ".progress.lock"
STALE_S = 5.0  # an update takes milliseconds; an older lock was left behind by a kernel that died
FIELDS = {"passed": bool, "points": int, "max_points": int, "attempts": int, "last": str}  # of each task


def course_root(start: Path | None = None) -> Path | None:
    """Return the course folder if `start` (default: where we are) lies in its work/ folder, else None."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if folder.name == "work" and (folder.parent / "exercises").is_dir():
            return folder.parent
    return None


def load(root: Path) -> dict[str, dict[str, Any]]:
    """Return what has been recorded in a course.

    Parameters
    ----------
    root : Path
        The course folder; the record is its work/.progress.json.

    Returns
    -------
    tasks : dict
        By task id: passed, points and max_points of the best attempt, attempts, and the time of the last one (UTC).
        Empty if nothing is recorded.

    Raises
    ------
    ValueError
        If the record is damaged; it is never overwritten then.
    """
    path = root / "work" / FILE
    if not path.exists():
        return {}
    try:
        tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
        if not all(type(entry[field]) is kind for entry in tasks.values() for field, kind in FIELDS.items()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"work/{FILE} must be the JSON that attn-course wrote; it is damaged: mend it or delete it") from None
    return dict(tasks)


def record(verdict: Verdict, root: Path) -> None:
    """Add one verdict to the record; a task once passed stays passed.

    Kernels that record at the same moment take turns, so that no update is lost.

    Parameters
    ----------
    verdict : Verdict
        The newest verdict on a task.
    root : Path
        The course folder, which must have a work/ folder.

    Raises
    ------
    ValueError
        If the record is damaged.
    OSError
        If it cannot be read or written: work/ is read-only, or the disk is full.
    """
    with _alone(root / "work" / LOCK):
        _add(verdict, root)


def _add(verdict: Verdict, root: Path) -> None:
    tasks = load(root)
    before = tasks.get(verdict.task, {})
    tasks[verdict.task] = {
        "passed": verdict.passed or before.get("passed", False),
        "points": max(verdict.points, before.get("points", 0)),
        "max_points": verdict.max_points,
        "attempts": before.get("attempts", 0) + 1,
        "last": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    path = root / "work" / FILE
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=FILE)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump({"tasks": tasks}, stream, indent=1, sort_keys=True)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock file, which only one process can create, on every system; a lock that nobody gives back is broken."""
    patience = time.monotonic() + STALE_S
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # given back meanwhile
                if time.time() - lock.stat().st_mtime > STALE_S or time.monotonic() > patience:
                    lock.unlink()
        except PermissionError:  # Windows says so while a lock is being deleted; otherwise the folder cannot be written to
            if not os.access(lock.parent, os.W_OK) or time.monotonic() > patience:
                raise
        time.sleep(0.01)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
