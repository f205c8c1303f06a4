"""What `attn-course lab` does with the course's files: copies of the exercises in work/."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attn_course.commands.terminal import BadInput, refusing
from attn_course.files import write_atomically
from attn_course.numbers import lesson_in

PROFILE = Path("work", ".lab")
COPIES = PROFILE / "copies.json"
# How an exercise links its lesson, and how a copy in work/ does: it opens the learner's own, in work/lessons/.
BUILT_LESSON, OWN_LESSON = "](../notebooks/", "](lessons/"

_ADVICE = {
    "outdated": "the course has a newer {0}, and you have not begun yours: delete work/{0} and start again to get it",
    "changed": "the course has a newer {0}; yours is kept: rename work/{0} and start again to get the new one beside it",
    "unreadable": "work/{0} cannot be read as a notebook: rename it and start again to get a fresh copy",
}


def lessons(root: Path) -> list[Path]:
    """Return the lessons of the course, in their order."""
    return sorted((root / "notebooks").glob("[0-9]*.ipynb"))


def exercises(root: Path) -> list[Path]:
    """Return the pristine exercises of the course, in their order."""
    return sorted((root / "exercises").glob("*.ipynb"))


def require_course(root: Path) -> None:
    """Raise BadInput unless `root` is the folder of the course."""
    if not root.is_dir():
        raise BadInput(f"there is no folder {root}")
    if not lessons(root) and not exercises(root):
        raise BadInput(f"no course in {root}: it has no notebook in notebooks/ or exercises/; run this in the folder you cloned")


def copy_exercises(root: Path) -> list[str]:
    """Copy each exercise that work/ lacks, and never write over a file that is there; its links open the lessons in work/lessons/.

    What an exercise said when it was copied is remembered in `work/.lab/copies.json`, so that a later start can tell
    an exercise that the course has changed from one that the learner has changed.

    Returns what was copied, and what a learner may want to do about copies that are older than the course's exercise. Raises
    BadInput if work/ cannot be written.
    """
    try:
        (root / PROFILE).mkdir(parents=True, exist_ok=True)
        remembered = read_object(root / COPIES)
        new: list[str] = []
        states: dict[str, list[str]] = {state: [] for state in _ADVICE}
        for exercise, copy in copies(exercises(root), root / "work").items():
            content = exercise.read_bytes()
            try:
                with copy.open("xb") as file:  # fails when there is a file, whoever made it and whenever
                    file.write(content.replace(BUILT_LESSON.encode(), OWN_LESSON.encode()))
            except FileExistsError:
                states.get(_compare(exercise, copy, remembered), []).append(copy.name)
            else:
                new.append(copy.name)
                remembered[slug(exercise)] = fingerprint(content) or ""
        write_json(root / COPIES, remembered)
    except OSError as error:
        raise BadInput(f"cannot write to {root / 'work'}: {error.strerror or error}") from error
    copied = [f"copied to work/: {', '.join(new)}"] if new else []
    return copied + [_ADVICE[state].format(name) for state, names in states.items() for name in names]


def copy_states(root: Path) -> dict[str, str]:
    """Return how each exercise stands in work/: missing, untouched, begun, outdated, changed (on both sides) or unreadable."""
    remembered = read_object(root / COPIES)
    return {copy.name: _compare(exercise, copy, remembered) for exercise, copy in copies(exercises(root), root / "work").items()}


def copies(built: Iterable[Path], folder: Path, names: str = "ex_*.ipynb") -> dict[Path, Path]:
    """Return built notebooks, and the place of each in a folder where they have such `names`: whatever number the copy there has."""
    from attn_course.checking.cells import NotebookError, exercise_files

    with refusing(NotebookError):
        there = exercise_files(folder, names)
    return {notebook: there.get(slug(notebook), folder / notebook.name) for notebook in built}


def slug(notebook: Path) -> str:
    """Return by what a notebook is known: the slug of its lesson, where its name has one."""
    return lesson_in(notebook.name) or notebook.name


def _compare(exercise: Path, copy: Path, remembered: dict[str, str]) -> str:
    """Return the state of one copy, as `copy_states` names it."""
    if not copy.exists():
        return "missing"
    held = fingerprint(copy.read_bytes()) if copy.is_file() else None
    if held is None:
        return "unreadable"
    asked = fingerprint(exercise.read_bytes())
    was = remembered.get(slug(exercise), asked)  # a copy made by hand: of today's exercise, as far as we know
    if held == asked:
        return "untouched"
    if was != asked:
        return "outdated" if held == was else "changed"
    return "begun"


def fingerprint(content: bytes) -> str | None:
    """Return a digest of what the cells say (outputs, metadata and whose lesson a link opens aside), None if this is no notebook."""
    try:
        cells = json.loads(content)["cells"]
        said = [(cell["cell_type"], "".join(cell["source"]).replace(OWN_LESSON, BUILT_LESSON)) for cell in cells]
    except (ValueError, TypeError, KeyError):
        return None
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def read_object(path: Path) -> dict[str, str]:
    """Return the JSON object in `path`, empty if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON to `path`, making its folder."""
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
