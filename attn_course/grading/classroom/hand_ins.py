"""Find what a class handed in: whose it is, which lesson it answers, when it came, and what is odd about it.

Two layouts are read, also mixed: SUBMISSIONS/<student>/<notebook>.ipynb, and nbgrader's
submitted/<student>/<assignment>/<notebook>.ipynb. Nothing is executed here and no JSON is parsed: files are hostile.
"""

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

from attn_course.grading.submission import MAX_BYTES
from attn_course.numbers import lesson_in, lesson_number, lesson_of, lesson_place

_SKIPPED = {"__pycache__", "__MACOSX"}
_CELL_ID = re.compile(rb'"(?:grade_id|id)"\s*:\s*"([a-z0-9-]{1,100}?)(?:-check)?"')  # inside a JSON text the quotes would be escaped
_TIMESTAMP = "timestamp.txt"
_DEEPEST = 4  # folders below a student's that are looked through, to say that a notebook lies too deep


class SubmissionsError(ValueError):
    """A folder does not hold a class; the text is one line."""


@dataclass(frozen=True)
class HandIn:
    """One file that a student handed in.

    Attributes
    ----------
    student, assignment, notebook : str
        Printable names; `assignment` is empty until it is known (no folder of nbgrader's, and no lesson found).
    path : Path
        Where it lies.
    place : str
        Its path below the folder of all submissions, printable; unique.
    lesson : str or None
        The slug of the lesson it answers, if that can be told.
    sha256 : str
        Of its content; empty if it was not read.
    problem : str
        Why it is not graded; empty if it is.
    notes : tuple of str
        What the teacher should know about it.
    handed_in : datetime or None
        From nbgrader's timestamp.txt.
    """

    student: str
    assignment: str
    notebook: str
    path: Path
    place: str
    lesson: str | None = None
    sha256: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    handed_in: datetime | None = None

    @property
    def key(self) -> str:
        """A file name for its result: the same in every run, whatever the notebook is called."""
        return hashlib.sha256(os.fsencode(self.path.name) + b"\0" + self.place.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Class:
    """All that a class handed in.

    Attributes
    ----------
    students : tuple of str
        Everyone who has a folder, sorted.
    hand_ins : tuple of HandIn
        Sorted by student, assignment (`assignment_place`) and notebook.
    notes : tuple of str
        What lies beside the students' folders.
    """

    students: tuple[str, ...]
    hand_ins: tuple[HandIn, ...]
    notes: tuple[str, ...] = ()


def find_submissions(folder: Path, *, lessons: Collection[str]) -> Class:
    """Return what a class handed in.

    Parameters
    ----------
    folder : Path
        The folder of the students' folders, or a course folder of nbgrader that holds submitted/.
    lessons : collection of str
        Lessons that have tasks. Where no folder names an assignment, it is called like its lesson.

    Returns
    -------
    found : Class
        Every student and every notebook, also those that cannot be graded, with the reason.

    Raises
    ------
    SubmissionsError
        If the folder is missing, cannot be read, or holds no student's folder.
    """
    root = students_folder(folder)
    students: dict[str, os.DirEntry[str]] = {}
    notes = []
    hand_ins: list[HandIn] = []
    for entry in _top(root):
        if entry.is_dir(follow_symlinks=False):
            students[_unused(printable(entry.name), students)] = entry
        elif entry.is_symlink() and Path(entry.path).is_dir():
            notes.append(f"{printable(entry.name)} is a symbolic link to a folder: it was not followed")
        elif _is_notebook(entry.name):
            notes.append(f"{printable(entry.name)} lies in no student's folder: it was not graded")
    if not students:
        raise SubmissionsError(f"{folder}: holds no student's folder; wanted {folder.name}/<student>/<notebook>.ipynb")
    for student, entry in students.items():
        try:
            found = _of_student(student, Path(entry.path), lessons)
            hand_ins += [replace(each, assignment=each.assignment or each.lesson or "") for each in found]
        except OSError as error:
            notes.append(f"the folder of {student} cannot be read: {error.strerror}")
    hand_ins.sort(key=lambda each: (each.student, *assignment_place(each.assignment), each.notebook, each.place))
    return Class(tuple(sorted(students)), tuple(hand_ins), tuple(notes))


def students_folder(folder: Path) -> Path:
    """Return the folder that holds the students' folders: this one, or submitted/ in it, as in a course folder of nbgrader.

    Parameters
    ----------
    folder : Path
        What the teacher names.

    Returns
    -------
    folder : Path
        The folder itself or the one in it.

    Raises
    ------
    SubmissionsError
        If it is missing or cannot be read.
    """
    if not folder.is_dir():
        raise SubmissionsError(f"{folder}: is no folder of submissions")
    inner = folder / "submitted"
    if inner.is_symlink() or not inner.is_dir() or any(_is_notebook(entry.name) for entry in _top(inner)):
        return folder
    return inner


def printable(name: str) -> str:
    """Return a name that any file, page and terminal can show: bytes that are no UTF-8 and control signs stand as escapes.

    Examples
    --------
    >>> printable("anna\\udcff\\n")
    'anna\\\\xff\\\\n'
    """
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def assignment_place(name: str) -> tuple[bool, int, str]:
    """Return what sorts assignments: those called like a lesson in the order of the course, then all others by their names."""
    lesson = lesson_place(name)
    return lesson < 0, lesson, name


def _top(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return _listed(folder)
    except OSError as error:
        raise SubmissionsError(f"{folder}: cannot be read: {error.strerror}") from None


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds, sorted by the bytes of the names, without hidden entries and caches."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".") and entry.name not in _SKIPPED]
    return sorted(found, key=lambda entry: os.fsencode(entry.name))


def _is_notebook(name: str) -> bool:
    """Also `02_softmax.ipynb.txt`: a browser's doing, which deserves a row."""
    return ".ipynb" in name.lower()


def _unused(name: str, taken: Collection[str]) -> str:
    """The name, or with a number if an escaped one looks the same."""
    return next(candidate for candidate in (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3))) if candidate not in taken)


def _of_student(student: str, folder: Path, lessons: Collection[str]) -> Iterator[HandIn]:
    places: set[str] = set()
    for depth, path in _notebooks(folder):
        inside = [printable(part) for part in path.relative_to(folder).parts]
        place = _unused("/".join([student, *inside]), places)
        places.add(place)
        hand_in = HandIn(student, inside[0] if depth == 1 else "", inside[-1], path, place)
        if depth > 1:
            yield replace(hand_in, problem=f"lies too deep: {student}/<assignment>/<notebook>.ipynb is the deepest place looked at")
        else:
            yield _with_time(_examined(hand_in, lessons))


def _notebooks(folder: Path, depth: int = 0) -> Iterator[tuple[int, Path]]:
    """Notebooks below a folder, and how many folders below; links to folders are not followed."""
    for entry in _listed(folder):
        if entry.is_dir(follow_symlinks=False) and not _is_notebook(entry.name):
            try:
                if depth < _DEEPEST:
                    yield from _notebooks(Path(entry.path), depth + 1)
            except OSError:
                yield depth, Path(entry.path)
        elif _is_notebook(entry.name):
            yield depth, Path(entry.path)


def _examined(hand_in: HandIn, lessons: Collection[str]) -> HandIn:
    """Read a file once: is it one that can be graded, and on which lesson?"""
    notes = ["its file name is not UTF-8"] if any("\ud800" <= sign <= "\udfff" for sign in hand_in.path.name) else []
    named = lesson_in(hand_in.notebook)
    by_name = named if named in lessons else None
    try:
        problem, content = _read(hand_in.path)
    except OSError as error:
        problem, content = f"cannot be read: {error.strerror}", b""
    if problem:
        return replace(hand_in, lesson=by_name, problem=problem, notes=tuple(notes))
    counted = Counter(lesson_of("tasks", name.decode()) for name in _CELL_ID.findall(content))
    by_cells = sorted((lesson for lesson in counted if lesson in lessons), key=lesson_place)
    lesson = by_name if by_name in by_cells or not by_cells else min(by_cells, key=lambda slug: (-counted[slug], lesson_place(slug)))
    if by_name is not None and lesson != by_name:
        notes.append(
            f"named for chapter {lesson_number(by_name)}, but its cells are those of chapter {lesson_number(lesson)}, by which it is graded"
        )
    if len(by_cells) > 1:
        notes.append(f"holds cells of chapters {', '.join(map(lesson_number, by_cells))}; graded as chapter {lesson_number(lesson)}")
    problem = "" if lesson is not None else "holds no task of the course, and is named for none of its lessons"
    return replace(hand_in, lesson=lesson, sha256=hashlib.sha256(content).hexdigest(), problem=problem, notes=tuple(notes))


def _read(path: Path) -> tuple[str, bytes]:
    """Why a file is not to be graded, or its content; nothing but a regular file is opened."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link: hand in the notebook itself", b""
    if stat.S_ISDIR(status.st_mode):
        return "is a folder, not a notebook" + ("" if os.access(path, os.R_OK | os.X_OK) else ", and cannot be read"), b""
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file", b""
    if path.suffix.lower() != ".ipynb":
        return "its name must end in .ipynb", b""
    if status.st_size > MAX_BYTES:
        return f"is too large ({status.st_size / 2**20:.0f} MiB; at most {MAX_BYTES / 2**20:.0f}): clear its outputs", b""
    if not status.st_size:
        return "is empty", b""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
        return "", stream.read(MAX_BYTES + 1)


def _with_time(hand_in: HandIn) -> HandIn:
    """Add when nbgrader received it."""
    path = hand_in.path.parent / _TIMESTAMP
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return hand_in
        return replace(hand_in, handed_in=parse_time(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return replace(hand_in, notes=(*hand_in.notes, f"its {_TIMESTAMP} holds no time that can be read"))


def parse_time(text: str, *, last_of_day: bool = False) -> datetime:
    """Return the time that a text means, in UTC.

    Parameters
    ----------
    text : str
        As nbgrader writes it, "2026-11-20 23:59:00.000000 UTC" or with a zone such as Europe/Berlin, or ISO 8601.
        Without a zone it is UTC.
    last_of_day : bool, optional
        What a day without a time means: its last second, rather than its first.

    Returns
    -------
    time : datetime
        With its zone, UTC.

    Raises
    ------
    ValueError
        If the text is no time.

    Examples
    --------
    >>> parse_time("2026-11-20 23:59 Europe/Berlin").isoformat()
    '2026-11-20T22:59:00+00:00'
    >>> parse_time("2026-11-20", last_of_day=True).isoformat()
    '2026-11-20T23:59:59+00:00'
    """
    words = text.split()
    try:
        zone = ZoneInfo(words.pop()) if len(words) > 1 and words[-1][0].isalpha() else None
        when = datetime.fromisoformat("T".join(words[:2]) + "".join(words[2:]))
        if last_of_day and len(words) == 1 and len(words[0]) <= len("2026-11-20"):
            when = datetime.combine(when, time(23, 59, 59))
    except (ValueError, LookupError):  # LookupError: a zone nobody knows
        raise ValueError(f"wanted a time such as '2026-11-20 23:59 UTC'; got {text.strip()!r}") from None
    return (when.replace(tzinfo=zone or UTC) if when.tzinfo is None else when).astimezone(UTC)
