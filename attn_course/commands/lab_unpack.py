"""The course as a wheel brings it, unpacked beside the learner's work; an upgrade replaces only what nobody has written into."""

import hashlib
from pathlib import Path

from attn_course.commands.course import find_course, is_course
from attn_course.commands.lab_files import PROFILE, read_object, write_json
from attn_course.commands.terminal import BadInput
from attn_course.files import BROUGHT, write_atomically
from attn_course.numbers import counted

UNPACKED = PROFILE / "unpacked.json"
KEPT = Path("work", "kept")


def course_to_open() -> tuple[Path, list[str]]:
    """Return the course's folder, unpacked or brought up to date where a wheel brings the course, and what to say about it.

    Raises BadInput if there is no course, if this folder has folders of the same names, or it cannot be written.
    """
    try:
        root = find_course()
    except BadInput:
        if not BROUGHT.is_dir():
            raise
        root = Path.cwd()
    try:
        stands_in_it = Path.cwd().is_relative_to(root)
        elsewhere = [] if stands_in_it else [f"there is no course in this folder; the one in {root} is opened"]
        return root, elsewhere + unpack(root, BROUGHT)
    except OSError as error:
        raise BadInput(f"cannot write to {root}: {error.strerror or error}") from error


def unpack(root: Path, brought: Path) -> list[str]:
    """Write the notebooks that a package brings; return what to say.

    What was written is remembered in `work/.lab/unpacked.json`. A notebook of the course that has been changed since moves to
    work/kept/ when a newer one takes its place; a course that came otherwise, as a checkout or a handout, stays as it is.
    """
    remembered = read_object(root / UNPACKED)
    comes = {path.relative_to(brought).as_posix(): path.read_bytes() for path in sorted(brought.glob("*/*.ipynb"))}
    if not comes or (not remembered and is_course(root)):
        return []
    if not remembered and (own := [folder for folder in {*(Path(name).parts[0] for name in comes), "work"} if (root / folder).exists()]):
        raise BadInput(f"{root} has a folder {min(own)} of its own: make an empty folder for the course, and run this in it")
    said, written = [], 0
    digests = {name: _digest(content) for name, content in comes.items()}
    for name in sorted({*comes, *remembered}):
        there, new, was = root / name, digests.get(name), remembered.get(name)
        held = _digest(there.read_bytes()) if there.is_file() else None
        if held == new or (held and held != was and new == was):  # as it comes, or changed where the course has nothing newer
            continue
        if held and held != was:
            said.append(f"the course has a newer {name}; yours lies in {_put_aside(root, name)} now")
        if new:
            written += write_atomically(there, comes[name].decode())
        else:
            there.unlink(missing_ok=True)
    write_json(root / UNPACKED, digests)
    return [*said, f"unpacked {counted(written, 'notebook')} of the course"] if written else said


def _put_aside(root: Path, name: str) -> str:
    """Move a notebook to work/kept/, beside what lies there already; return its new place."""
    aside, copy = KEPT / name, 1
    while (root / aside).exists():
        copy += 1
        aside = (KEPT / name).with_stem(f"{Path(name).stem}-{copy}")
    (root / aside).parent.mkdir(parents=True, exist_ok=True)
    (root / name).rename(root / aside)
    return aside.as_posix()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
