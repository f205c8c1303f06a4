"""Lessons as a reader opens them: copies in work/lessons/, in which they may write, so that what the course built stays as it is."""

import hashlib
from pathlib import Path

from attn_course.commands.lab_files import PROFILE, copies, fingerprint, lessons, read_object, slug, write_json
from attn_course.commands.terminal import BadInput
from attn_course.files import write_atomically

COPIED = PROFILE / "lessons.json"
FOLDER = Path("work", "lessons")


def lesson_copies(root: Path) -> dict[Path, Path]:
    """Return each lesson, and its place in work/lessons/."""
    return copies(lessons(root), root / FOLDER, "*.ipynb")


def copy_lessons(root: Path) -> list[str]:
    """Copy each lesson to work/lessons/, again when the course has a newer one, unless the reader has written into the copy.

    What was copied is remembered in `work/.lab/lessons.json`: a copy whose cells say something else is the reader's. Outputs do not
    count, for running a lesson is no work of one's own.

    Returns one line for each copy that is older than the course's lesson and is kept. Raises BadInput if work/ cannot be written.
    """
    try:
        (root / FOLDER).mkdir(parents=True, exist_ok=True)
        copied, kept = read_object(root / COPIED), []
        for lesson, copy in lesson_copies(root).items():
            content = _from_work(lesson.read_bytes())
            cells, whole = fingerprint(content) or "", hashlib.sha256(content).hexdigest()
            was_cells, _, was_whole = copied.get(slug(lesson), f"{cells} ").partition(" ")  # made by hand: of today's lesson
            if copy.exists() and whole == was_whole:
                continue
            if copy.exists() and fingerprint(copy.read_bytes()) != was_cells:
                if was_cells != cells:
                    name = (FOLDER / copy.name).as_posix()
                    kept.append(f"the course has a newer {copy.name}; yours is kept: rename {name} and start again to get the new one")
                continue
            write_atomically(root / FOLDER / lesson.name, content.decode())
            if copy.name != lesson.name:
                copy.unlink(missing_ok=True)
            copied[slug(lesson)] = f"{cells} {whole}"
        write_json(root / COPIED, copied)
    except OSError as error:
        raise BadInput(f"cannot write to {root / FOLDER}: {error.strerror or error}") from error
    return kept


def as_copied(root: Path) -> list[Path]:
    """Return the copies into which nobody has written."""
    copied = read_object(root / COPIED)
    return [
        copy
        for lesson, copy in lesson_copies(root).items()
        if copy.is_file() and fingerprint(copy.read_bytes()) == copied.get(slug(lesson), "").partition(" ")[0]
    ]


def _from_work(content: bytes) -> bytes:
    """The text of a lesson whose relative links lead from work/lessons/ to where they led from notebooks/."""
    up, work = b"](../", FOLDER.parent.name.encode() + b"/"
    return content.replace(up, up + b"../").replace(up + b"../" + work, up)
