"""Hand-ins as learning platforms give them out: the names of files and folders, and zip archives.

Canvas (lib/content_zipper.rb of https://github.com/instructure/canvas-lms): submissions.zip holds a file for each attachment,
`lovelaceada_12345_67890_02_softmax.ipynb`: the sortable name in small letters, then `LATE` if it is, the number of the student, the number
of the attachment, the file's name. With anonymous grading `anon_AbC12` stands for name and number. Of several attempts Canvas gives out
the last, whose name it may end in `-1`.

Moodle (mod/assign/classes/downloader.php of https://github.com/moodle/moodle): a folder for each student,
`Ada Lovelace_12345_assignsubmission_file` (older ones end in `_`), or, without "Download submissions in folders", a file
`Ada Lovelace_12345_assignsubmission_file_02_softmax.ipynb`. The number is that of the student in this one assignment, as in the worksheet.
"""

import contextlib
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from attn_course.classroom.roster import Owner
from attn_course.classroom.submission import MAX_BYTES

_CANVAS = re.compile(
    r"(?:(?P<name>(?!LATE_|anon_).+?)_)?(?P<late>LATE_)?(?:anon_(?P<anon>[A-Za-z0-9]+)|(?P<number>[0-9]+))_[0-9]+_(?P<file>.+)", re.DOTALL
)
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>[0-9]+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?", re.DOTALL)
_JUNK = {"__pycache__", "__macosx", "thumbs.db", "desktop.ini"}  # what systems leave in folders and archives, in small letters
MOST_FILES, MOST_BYTES = 50_000, 4 * 2**30  # of an archive; it may hold data besides notebooks, which is not unpacked


class SubmissionsError(ValueError):
    """A folder or an archive does not hold a class; the text is one line."""


@dataclass(frozen=True)
class Found:
    """What the name of a downloaded file or folder says: whose it is, what the student called the file, what is said of its time."""

    owner: Owner
    file: str = ""
    late: str = ""


def is_junk(name: str) -> bool:
    """Whether a file or folder is what a system left there, and nobody's hand-in: `.DS_Store`, `._anything`, `Thumbs.db`."""
    return name.startswith(".") or name.lower() in _JUNK


def of_file(name: str) -> Found | None:
    """Return what the name of a file says, if it is one of Canvas or Moodle.

    >>> found = of_file("lovelaceada_LATE_12345_67890_02_softmax-1.ipynb")
    >>> found.owner.number, found.file, found.late
    ('12345', '02_softmax-1.ipynb', 'Canvas marks it as late')
    """
    if (moodle := _MOODLE.fullmatch(name)) and moodle["file"]:
        return Found(_moodle(moodle), moodle["file"])
    if canvas := _CANVAS.fullmatch(name):
        number, anonymous = canvas["number"] or "", f"anon_{canvas['anon']}"
        owner = Owner("_".join(filter(None, (canvas["name"], number))) or anonymous, canvas["name"] or "", number, "canvas")
        return Found(owner, canvas["file"], "Canvas marks it as late" if canvas["late"] else "")
    return None


def of_folder(name: str) -> Found:
    """Return whose folder it is: a student's of Moodle, or one that is called like the student.

    >>> of_folder("Ada Lovelace_12345_assignsubmission_file_").owner.name, of_folder("ada").owner.label
    ('Ada Lovelace', 'ada')
    """
    moodle = _MOODLE.fullmatch(name)
    return Found(_moodle(moodle) if moodle and not moodle["file"] else Owner(name))


def _moodle(found: re.Match[str]) -> Owner:
    return Owner(f"{found['name']}_{found['number']}", found["name"], found["number"], "moodle")


@contextlib.contextmanager
def opened(submissions: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Give the folder that holds the hand-ins, and notes on what was left out: a folder as it is, an archive unpacked for the duration.

    Of an archive nothing but files whose name holds ".ipynb" and nbgrader's timestamp.txt is unpacked, none outside of the folder, each no
    further than to just beyond the largest notebook that is graded; links are left out. Other files are made without their content, so
    that whoever handed in nothing else has a row too; what a system left in the archive is not.

    Raises SubmissionsError if an archive is damaged, has a password, or holds more than may be unpacked; what is raised within
    about the folder then names the archive.
    """
    if submissions.is_dir() or not submissions.exists():
        yield submissions, ()
        return
    with tempfile.TemporaryDirectory(prefix="attn-hand-ins-") as folder:
        try:
            with zipfile.ZipFile(submissions) as archive:
                notes = tuple(_unpack(archive, Path(folder)))
        except zipfile.BadZipFile:
            raise SubmissionsError(f"{submissions}: is neither a folder nor a zip archive that can be read") from None
        except (OSError, RuntimeError, NotImplementedError, EOFError, zipfile.LargeZipFile) as error:
            raise SubmissionsError(f"{submissions}: cannot be unpacked: {error}") from None
        inner = _inner(Path(folder))
        try:
            yield inner, notes
        except SubmissionsError as error:
            raise SubmissionsError(str(error).replace(str(inner), str(submissions)).replace(inner.name, submissions.name)) from None


def _unpack(archive: zipfile.ZipFile, folder: Path) -> Iterator[str]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise RuntimeError(f"it holds {len(entries)} files; at most {MOST_FILES}")
    left = MOST_BYTES
    others = []
    for entry in entries:
        if entry.is_dir():
            continue
        name = _name(entry)
        path = PurePosixPath(name.replace("\\", "/"))
        if any(is_junk(part) for part in path.parts if part != ".."):
            continue
        if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
            yield f"{name!r} of the archive points outside of it: it was left out"
        elif stat.S_ISLNK(entry.external_attr >> 16):
            yield f"{name!r} of the archive is a link: it was left out"
        elif ".ipynb" not in path.name.lower() and path.name != "timestamp.txt":
            others.append(str(path))
            _free(folder.joinpath(*path.parts)).touch()
        else:
            target = _free(folder.joinpath(*path.parts))
            with archive.open(entry) as source, target.open("xb") as made:
                left -= min(entry.file_size, MAX_BYTES + 1)
                if left < 0:
                    raise RuntimeError(f"it holds more than {MOST_BYTES >> 30} GiB of notebooks")
                made.write(source.read(MAX_BYTES + 1))
    if others:
        shown = ", ".join(sorted(others)[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        yield f"the archive also holds what is no notebook, and was not looked at: {shown}"


def _name(entry: zipfile.ZipInfo) -> str:
    """The name of an entry; it may be UTF-8 without the flag that says so, as macOS writes it."""
    if not entry.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            return entry.filename.encode("cp437").decode("utf-8")
    return entry.filename


def _free(path: Path) -> Path:
    """The path, or with a number if an archive holds a name twice; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbered = (path.with_name(f"{path.stem} ({number}){path.suffix}") for number in range(2, MOST_FILES))
    return path if not path.exists() else next(each for each in numbered if not each.exists())


def _notebooks_of_nobody(entries: Iterable[Path]) -> bool:
    return any(".ipynb" in each.name.lower() and not each.is_dir() and not of_file(each.name) for each in entries)


def _inner(folder: Path) -> Path:
    """The folder in it if there is only one and it holds what was downloaded: an archive that was packed again."""
    entries = [each for each in folder.iterdir() if each.is_dir() or ".ipynb" in each.name.lower() or of_file(each.name)]
    if len(entries) == 1 and entries[0].is_dir() and of_folder(entries[0].name).owner.platform == "":
        inside = list(entries[0].iterdir())
        if any(each.is_dir() or of_file(each.name) for each in inside) and not _notebooks_of_nobody(inside):
            return entries[0]
    return folder
