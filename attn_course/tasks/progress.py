"""Remember, on this machine only, which tasks a learner has passed."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attn_course.files import PROGRESS, locked, write_atomically
from attn_course.tasks.core import Verdict

LOCK = ".progress.lock"
PATIENCE_S = 30.0  # an update takes milliseconds
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

    `root`: the course folder; the record is its work/.progress.json. Returns `tasks`: by task id: passed, points and max_points of
    the best attempt, attempts, and the time of the last one (UTC). Empty if nothing is recorded. Raises ValueError if the record is
    damaged; it is never overwritten then.
    """
    path = root / "work" / PROGRESS
    if not path.exists():
        return {}
    try:
        tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
        if not all(type(entry[field]) is kind for entry in tasks.values() for field, kind in FIELDS.items()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"work/{PROGRESS} must be the JSON that attn-course wrote; it is damaged: mend it or delete it") from None
    return dict(tasks)


def record(verdict: Verdict, root: Path) -> None:
    """Add one verdict to the record; a task once passed stays passed.

    Kernels that record at the same moment take turns, so that no update is lost.

    Raises ValueError if the record is damaged; OSError if it cannot be read or written: work/ is read-only, or the disk is full.
    """
    with locked(root / "work" / LOCK, patience_s=PATIENCE_S):
        _add(verdict, root)


def _add(verdict: Verdict, root: Path) -> None:
    tasks = load(root)
    before = tasks.get(verdict.task, {})
    tasks[verdict.task] = {
        "passed": verdict.passed or before.get("passed", False),
        "points": max(verdict.points, before.get("points", 0)),
        "max_points": verdict.max_points,
        "attempts": before.get("attempts", 0) + verdict.counts,
        "last": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomically(root / "work" / PROGRESS, json.dumps({"tasks": tasks}, indent=1, sort_keys=True))
