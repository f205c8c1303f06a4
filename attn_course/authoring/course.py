"""Where a course keeps the sources and the built notebooks of its chapters."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.problems import AuthoringError

STEM = re.compile(r"(?P<number>\d\d)_[a-z0-9]+(_[a-z0-9]+)*")
FOLDERS = ("notebooks", "solutions", "exercises")


@dataclass(frozen=True)
class Unit:
    """One notebook to build: its kind, its source, and the path it is written to.

    Parameters
    ----------
    root : Path
        The course's root.
    folder : str
        One of `FOLDERS`, which is also the kind of notebook.
    stem : str
        Name without suffix, such as "02_softmax".
    """

    root: Path
    folder: str
    stem: str

    @property
    def source(self) -> Path:
        """The text the notebook is made from; an exercise is made from the solution's."""
        folder = "notebooks" if self.folder == "notebooks" else "solutions"
        return self.root / folder / "src" / f"{self.stem}.py"

    @property
    def path(self) -> Path:
        """The built notebook."""
        return self.root / self.folder / f"{self.stem}.ipynb"

    @property
    def name(self) -> str:
        """The built notebook relative to the root, as messages show it."""
        return f"{self.folder}/{self.stem}.ipynb"

    @property
    def source_name(self) -> str:
        """The source relative to the root, as messages show it."""
        return self.source.relative_to(self.root).as_posix()

    def read_source(self) -> str:
        """Return the source's text with LF line ends.

        Raises
        ------
        AuthoringError
            If it is not UTF-8.
        """
        try:
            return self.source.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise AuthoringError(f"{self.source_name}: wanted UTF-8, got byte {error.object[error.start]:#04x} at {error.start}") from None

    @property
    def source_link(self) -> str:
        """The source relative to the built notebook, as its metadata names it."""
        return f"src/{self.stem}.py" if self.folder != "exercises" else f"../solutions/src/{self.stem}.py"

    @property
    def chapter(self) -> int:
        """The chapter's number."""
        return int(self.stem[:2])

    @property
    def is_executed(self) -> bool:
        """Whether the notebook carries outputs: lessons and solutions do."""
        return self.folder != "exercises"


def units(root: Path, only: Iterable[str] | None = None) -> list[Unit]:
    """Return every notebook that has a source, chapter by chapter: lesson, solution, exercise.

    Parameters
    ----------
    root : Path
        The course's root.
    only : iterable of str, optional
        Stems ("02_softmax") or chapter numbers ("02", "2"); None means all.

    Raises
    ------
    AuthoringError
        If there is no source at all, a source is badly named, or a selection matches nothing.
    """
    sources = {folder: _stems(root, folder) for folder in ("notebooks", "solutions")}
    stems = sorted({*sources["notebooks"], *sources["solutions"]})
    if not stems:
        raise AuthoringError(f"no sources: wanted notebooks/src/NN_slug.py or solutions/src/NN_slug.py under {root}")
    selected = stems if only is None else _select(stems, only)
    found = []
    for stem in selected:
        if stem in sources["notebooks"]:
            found.append(Unit(root, "notebooks", stem))
        if stem in sources["solutions"]:
            found += [Unit(root, "solutions", stem), Unit(root, "exercises", stem)]
    return found


def built_notebooks(root: Path) -> list[str]:
    """Return the names of all notebooks that lie where built ones belong."""
    return sorted(path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).glob("*.ipynb"))


def _stems(root: Path, folder: str) -> list[str]:
    stems = sorted(path.stem for path in (root / folder / "src").glob("*.py"))
    for stem in stems:
        if not STEM.fullmatch(stem):
            raise AuthoringError(f"{folder}/src/{stem}.py: wanted a name like 02_softmax.py (two digits, then lower-case words)")
    return stems


def _select(stems: list[str], only: Iterable[str]) -> list[str]:
    chosen = set()
    for wanted in only:
        matches = [stem for stem in stems if stem == wanted or (wanted.isdecimal() and int(stem[:2]) == int(wanted))]
        if not matches:
            raise AuthoringError(f"only: no chapter {wanted!r}; there are {', '.join(stems)}")
        chosen.update(matches)
    return [stem for stem in stems if stem in chosen]
