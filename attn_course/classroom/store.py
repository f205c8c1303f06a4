"""The folder that a class run writes: what it is about, one file for each result, everything whole or not at all."""

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attn_course.files import TEMPORARY, Locked, locked, write_atomically
from attn_course.tasks.core import Verdict

FORMAT = 1
RUN_FILE, RESULTS, LOCK = "run.json", "results", ".lock"
_LONGEST_TEXT = 4_000


class StoreError(Exception):
    """The folder cannot be used or written; the text is one line."""


class OtherRun(StoreError):
    """The folder holds something else than the run that is asked for."""


@dataclass(frozen=True)
class NotebookResult:
    """What grading one notebook gave.

    `place`, `sha256`: which notebook, and which state of it. `verdicts`: one for each task of its chapter. `notes`: what the
    teacher should know. `lesson`: the lesson it was graded by. `sandbox`: what confined it: "full", "no network namespace",
    "limits only" or "none". `problem`: why it could not be judged; empty if it was. `seconds`: time it took.
    `answers`: what was handed in for each task, by its id.
    """

    place: str
    sha256: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    lesson: str | None
    sandbox: str = ""
    problem: str = ""
    seconds: float = 0.0
    answers: Mapping[str, str] = field(default_factory=dict)

    def cleaned(self) -> "NotebookResult":
        """Return it with texts that every file can hold: hostile code may have put anything into them."""
        verdicts = tuple(_clean_verdict(verdict) for verdict in self.verdicts)
        answers = {task: _clean(text) for task, text in self.answers.items()}
        return replace(self, verdicts=verdicts, notes=tuple(map(_clean, self.notes)), answers=answers)


def _clean_verdict(verdict: Verdict) -> Verdict:
    return replace(verdict, message=_clean(verdict.message), hint=_clean(verdict.hint) if verdict.hint else verdict.hint)


def _clean(text: str) -> str:
    """Control signs, halves of signs and marks that turn the direction of writing stand as escapes."""
    cut = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"
    return "".join(sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode("ascii") for sign in cut)


class Store:
    """The folder of one class run; a context manager that keeps a second run out of it.

    `resume`: whether a run that is there is to go on. Otherwise the folder must be empty or missing.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.folder = folder
        self._resume = resume
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> "Store":
        if self.folder.exists() and not self.folder.is_dir():
            raise OtherRun(f"{self.folder}: is a file, not a folder")
        there = sorted(entry.name for entry in self.folder.iterdir()) if self.folder.is_dir() else []
        if RUN_FILE in there and not self._resume:
            raise OtherRun(f"{self.folder}: holds a class run already; --resume goes on with it, or name another folder")
        if set(there) - {LOCK} and RUN_FILE not in there:
            raise OtherRun(f"{self.folder}: is not empty and holds no class run; name another folder")
        with _clear(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.enter_context(locked(self.folder / LOCK, patience_s=0))
            except Locked:
                raise OtherRun(f"{self.folder}: another class run is writing there") from None
            for left in self.folder.rglob(f"{TEMPORARY}*"):
                left.unlink()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def started(self) -> dict[str, Any] | None:
        """Return what the run that is there is about, or None if there is none."""
        path = self.folder / RUN_FILE
        if not path.exists():
            return None
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise OtherRun(f"{path}: was written by another version of attn_course (format {about['format']})")
            return dict(about)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise OtherRun(f"{path}: is damaged: {error}") from None

    def start(self, about: dict[str, Any]) -> None:
        """Write down what the run is about, before anything is graded."""
        self.write(RUN_FILE, as_json({"format": FORMAT} | about))

    def keep(self, key: str, result: NotebookResult) -> None:
        """Store one result."""
        self.write(f"{RESULTS}/{key}.json", as_json(asdict(result)))

    def kept(self, key: str, place: str, sha256: str | None) -> NotebookResult | None:
        """Return the result of a notebook in this very state, None for any, if it was stored whole."""
        try:
            data = json.loads((self.folder / RESULTS / f"{key}.json").read_text(encoding="utf-8"))
            verdicts = tuple(Verdict(**verdict) for verdict in data.pop("verdicts"))
            result = NotebookResult(**data | {"verdicts": verdicts, "notes": tuple(data["notes"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return result if result.place == place and sha256 in (None, result.sha256) else None

    def known(self) -> dict[str, tuple[str, str]]:
        """Return place and state of each notebook that has a whole result, by key."""
        found = {}
        for path in (self.folder / RESULTS).glob("*.json"):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                data = json.loads(path.read_text(encoding="utf-8"))
                found[path.stem] = (str(data["place"]), str(data["sha256"]))
        return found

    def tidy(self, folder: str, written: Collection[str]) -> None:
        """Remove the pages below a folder that were not written now: their notebooks are gone.

        `folder`: path below the folder of the run. `written`: what was, as paths below the folder of the run.
        """
        with _clear(self.folder / folder):
            for path in sorted((self.folder / folder).rglob("*"), reverse=True):  # what is inside a folder comes first
                if path.is_dir():
                    with contextlib.suppress(OSError):  # not empty
                        path.rmdir()
                elif path.suffix == ".html" and path.relative_to(self.folder).as_posix() not in written:
                    path.unlink()

    def write(self, name: str, text: str, *, durable: bool = True) -> None:
        """Write a file of the folder, named by its path below it: whole, or not at all. What can be made again need not be durable.

        Raises StoreError if it cannot be written; nothing half-written stays behind.
        """
        with _clear(self.folder / name):
            write_atomically(self.folder / name, text, durable=durable)


def as_json(data: Any) -> str:
    """Return plain data as JSON, ASCII only, sorted, so that equal data give equal bytes."""
    return json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + "\n"


@contextlib.contextmanager
def _clear(path: Path) -> Iterator[None]:
    """Turn an error of the file system into one line."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
