"""Find what a class handed in: whose it is, which lesson it answers, when it came, and what is odd about it.

Four layouts are read, also mixed: SUBMISSIONS/<student>/<notebook>.ipynb, nbgrader's submitted/<student>/<assignment>/<notebook>.ipynb,
and what Canvas and Moodle give out (`downloads`). Nothing is executed here and no JSON is parsed: files are hostile.
"""

import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from attn_course.classroom.downloads import Found, SubmissionsError, is_junk, of_file, of_folder
from attn_course.classroom.roster import Owner, Roster, Student
from attn_course.classroom.submission import MAX_BYTES
from attn_course.classroom.times import parse_time
from attn_course.numbers import lesson_in, lesson_number, lesson_of, lesson_place

_CELL_ID = re.compile(rb'"(?:grade_id|id)"\s*:\s*"([a-z0-9-]{1,100}?)(?:-check)?"')  # inside a JSON text the quotes would be escaped
_TIMESTAMP = "timestamp.txt"
_DEEPEST = 4  # folders below a student's that are looked through, to say that a notebook lies too deep


@dataclass(frozen=True)
class HandIn:
    """One file that a student handed in.

    `student`, `assignment`, `notebook`: printable names; `assignment` is empty until it is known (no folder of nbgrader's, and no
    lesson found).
    `place`: its path below the folder of all submissions, printable; unique.
    `lesson`: the slug of the lesson it answers, if that can be told.
    `sha256`: of its content; empty if it was not read.
    `problem`: why it is not graded; empty if it is.
    `notes`: what the teacher should know about it.
    `handed_in`: from nbgrader's timestamp.txt.
    `late`: what a learning platform says of its lateness, in words; empty if nothing.
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
    late: str = ""

    @property
    def key(self) -> str:
        """A file name for its result: the same in every run, whatever the notebook is called."""
        return hashlib.sha256(os.fsencode(self.path.name) + b"\0" + self.place.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Class:
    """All that a class handed in.

    `students`: everyone who handed in or stands on the roster, sorted. `hand_ins`: sorted by student, assignment
    (`assignment_place`) and notebook. `notes`: what lies beside the students' folders, and who is not on the roster. `roster`:
    what the roster says of them; empty without one. `owners`: by student, what a learning platform calls those whose hand-ins it
    gave out.
    """

    students: tuple[str, ...]
    hand_ins: tuple[HandIn, ...]
    notes: tuple[str, ...] = ()
    roster: Mapping[str, Student] = field(default_factory=dict)
    owners: Mapping[str, Owner] = field(default_factory=dict)


def find_submissions(folder: Path, *, lessons: Collection[str], roster: Roster | None = None) -> Class:
    """Return what a class handed in.

    `folder`: the folder of the students' folders, a course folder of nbgrader that holds submitted/, or what Canvas or Moodle
    gave out. `lessons`: lessons that have tasks. Where no folder names an assignment, it is called like its lesson. `roster`: who
    is in the class: who is on it has the roster's id for a name, and stands in the class also with nothing handed in. Who is not
    on it is graded all the same, and a note says so.

    Returns every student and every notebook, also those that cannot be graded, with the reason. Raises SubmissionsError if the
    folder is missing, cannot be read, or holds no student's folder.
    """
    root = students_folder(folder)
    entries: list[tuple[os.DirEntry[str], Found]] = []
    notes = []
    top = _top(root)
    # Where there is a file for each student, others are hand-ins too.
    flat = any(_is_notebook(entry.name) and of_file(printable(entry.name)) for entry in top)
    for entry in top:
        if entry.is_dir(follow_symlinks=False):
            entries.append((entry, of_folder(printable(entry.name))))
        elif entry.is_symlink() and Path(entry.path).is_dir():
            notes.append(f"{printable(entry.name)} is a symbolic link to a folder: it was not followed")
        elif (flat or _is_notebook(entry.name)) and (said := of_file(printable(entry.name))):
            entries.append((entry, said))
        elif _is_notebook(entry.name):
            notes.append(f"{printable(entry.name)} lies in no student's folder: it was not graded")
    if not entries:
        raise SubmissionsError(f"{folder}: holds no student's folder; wanted {folder.name}/<student>/<notebook>.ipynb")
    names, more = _names(entries, roster)
    notes += more
    hand_ins: list[HandIn] = []
    others: dict[str, list[Path]] = {}
    places: set[str] = set()
    for (entry, said), student in zip(entries, names, strict=True):
        try:
            if not said.file or not _is_notebook(entry.name):
                others.setdefault(student, []).extend(_others(Path(entry.path)))
            if said.file and not _is_notebook(entry.name):
                continue
            if said.file:
                place = _unused(f"{student}/{said.file}", places)
                hand_in = replace(HandIn(student, "", said.file, Path(entry.path), place), late=said.late)
                found = [_examined(hand_in, lessons)]
            else:
                found = list(_of_student(student, Path(entry.path), lessons, places, timed=not said.owner.platform))
            places |= {each.place for each in found}
            hand_ins += [replace(each, assignment=each.assignment or each.lesson or "") for each in found]
        except OSError as error:
            notes.append(f"the folder of {student} cannot be read: {error.strerror}")
    with_notebook = {each.student for each in hand_ins}
    hand_ins += [_without_notebook(student, paths) for student, paths in others.items() if paths and student not in with_notebook]
    hand_ins.sort(key=lambda each: (each.student, *assignment_place(each.assignment), each.notebook, each.place))
    on_it = roster.by_id if roster else {}
    if strangers := sorted({student for student in names if roster and student not in on_it}):
        notes.append(f"not on the roster, and graded all the same ({len(strangers)}): {', '.join(strangers)}")
    owners = {student: said.owner for (_, said), student in zip(entries, names, strict=True) if said.owner.platform}
    return Class(tuple(sorted({*names, *on_it})), tuple(hand_ins), tuple(notes), on_it, owners)


def _names(entries: Sequence[tuple[os.DirEntry[str], Found]], roster: Roster | None) -> tuple[list[str], list[str]]:
    """What each owner of an entry is called, and notes on those who may be one or another of the roster.

    Entries of one number are of one student; two folders never are, also if their names look the same.
    """
    matched, notes = roster.matched(said.owner for _, said in entries) if roster else ({}, [])
    called: dict[tuple[str, str], str] = {}
    names = []
    for entry, said in entries:
        key = (said.owner.platform, said.owner.number or said.owner.label) if said.owner.platform else ("", entry.path)
        if key not in called:
            student = matched.get(said.owner)
            called[key] = student.id if student else _unused(said.owner.label, {*called.values(), *(roster.by_id if roster else ())})
        names.append(called[key])
    return names, notes


def students_folder(folder: Path) -> Path:
    """Return the folder that holds the students' folders: this one, nbgrader's submitted/ in it, or the only one in it, with a download.

    `folder`: what the teacher names. Raises SubmissionsError if it is missing or cannot be read.
    """
    if not folder.is_dir():
        raise SubmissionsError(f"{folder}: is no folder of submissions")
    there = [entry for entry in _top(folder) if entry.is_dir(follow_symlinks=False)]
    if len(there) == 1 and any(of_file(entry.name) or of_folder(entry.name).owner.platform for entry in _top(Path(there[0].path))):
        return Path(there[0].path)  # a download, in the folder that it was unpacked to
    inner = folder / "submitted"
    if inner.is_symlink() or not inner.is_dir() or any(_is_notebook(entry.name) for entry in _top(inner)):
        return folder
    return inner


def printable(name: str) -> str:
    """Return a name that any file, page and terminal can show: bytes that are no UTF-8 and control signs stand as escapes.

    >>> printable("anna\\udcff\\n")
    'anna\\\\xff\\\\n'
    """
    text = unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "backslashreplace"))  # macOS writes a letter and its dots apart
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
    """What a folder holds, sorted by the bytes of the names, without hidden entries, caches and what systems leave there."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not is_junk(entry.name)]
    return sorted(found, key=lambda entry: os.fsencode(entry.name))


def _is_notebook(name: str) -> bool:
    """Also `02_softmax.ipynb.txt`: a browser's doing, which deserves a row."""
    return ".ipynb" in name.lower()


def _unused(name: str, taken: Collection[str]) -> str:
    """The name, or with a number if an escaped one looks the same."""
    return next(candidate for candidate in (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3))) if candidate not in taken)


def _of_student(student: str, folder: Path, lessons: Collection[str], taken: Collection[str], *, timed: bool) -> Iterator[HandIn]:
    places = set(taken)
    for depth, path in _notebooks(folder):
        inside = [printable(part) for part in path.relative_to(folder).parts]
        place = _unused("/".join([student, *inside]), places)
        places.add(place)
        hand_in = HandIn(student, inside[0] if depth == 1 else "", inside[-1], path, place)
        if depth > 1:
            yield replace(hand_in, problem=f"lies too deep: {student}/<assignment>/<notebook>.ipynb is the deepest place looked at")
        else:
            examined = _examined(hand_in, lessons)
            yield _with_time(examined) if timed else examined


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


def _others(path: Path, depth: int = 0) -> Iterator[Path]:
    """A file that is no notebook, or those below a folder."""
    if path.is_file() or path.is_symlink():
        if not _is_notebook(path.name) and path.name != _TIMESTAMP:
            yield path
    elif depth <= _DEEPEST and path.is_dir():
        for entry in _listed(path):
            yield from _others(Path(entry.path), depth + 1)


def _without_notebook(student: str, paths: Sequence[Path]) -> HandIn:
    """The row of a student who handed in something else: what, and that it counts for nothing."""
    name, *more = [printable(path.name) for path in paths]
    said = of_file(name)
    name = said.file if said else name
    also = f" (nor {', '.join(more[:4])}{' and others' if more[4:] else ''})" if more else ""
    problem = f"is no notebook{also}: wanted a file that ends in .ipynb"
    return HandIn(student, "", name, paths[0], f"{student}/{name}", lesson_in(name), problem=problem, late=said.late if said else "")


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
