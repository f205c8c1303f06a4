"""Where a course keeps the sources and the built notebooks of its lessons."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.series import FILE, Lesson, series

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
    lesson : Lesson
        The lesson it belongs to.
    """

    root: Path
    folder: str
    lesson: Lesson

    @property
    def slug(self) -> str:
        """The lesson's slug."""
        return self.lesson.slug

    @property
    def stem(self) -> str:
        """Name without suffix, such as "02_softmax" or "ex_02_softmax"."""
        return f"ex_{self.lesson.stem}" if self.folder == "exercises" else self.lesson.stem

    @property
    def source(self) -> Path:
        """The text the notebook is made from; an exercise is made from the solution's."""
        folder = "notebooks" if self.folder == "notebooks" else "solutions"
        return self.root / folder / "src" / f"{self.slug}.py"

    @property
    def path(self) -> Path:
        """The built notebook."""
        return self.root / self.name

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
        return f"src/{self.slug}.py" if self.folder != "exercises" else f"../solutions/src/{self.slug}.py"

    @property
    def is_executed(self) -> bool:
        """Whether the notebook carries outputs: lessons and solutions do."""
        return self.folder != "exercises"


def units(root: Path, only: Iterable[str] | None = None) -> list[Unit]:
    """Return every notebook that has a source, lesson by lesson: lesson, solution, exercise.

    Parameters
    ----------
    root : Path
        The course's root.
    only : iterable of str, optional
        Slugs ("softmax"), numbers ("2") or names of built notebooks ("02_softmax"); None means all.

    Raises
    ------
    AuthoringError
        If there is no source at all, a source is not in the list of lessons, or a selection matches nothing.
    """
    listed = {lesson.slug: lesson for lesson in series(root)}
    sources = {folder: {path.stem for path in (root / folder / "src").glob("*.py")} for folder in ("notebooks", "solutions")}
    if stray := sorted((sources["notebooks"] | sources["solutions"]) - set(listed)):
        raise AuthoringError(f"{stray[0]}: has a source, but no entry in {FILE}")
    written = [lesson for lesson in listed.values() if not lesson.planned and any(lesson.slug in found for found in sources.values())]
    if not written:
        raise AuthoringError(f"no sources: wanted notebooks/src/SLUG.py or solutions/src/SLUG.py under {root}")
    found = []
    for lesson in written if only is None else _select(written, only):
        folders = [folder for folder in FOLDERS if lesson.slug in sources["notebooks" if folder == "notebooks" else "solutions"]]
        found += [Unit(root, folder, lesson) for folder in folders]
    return found


def built_notebooks(root: Path) -> list[str]:
    """Return the names of all notebooks that lie where built ones belong."""
    return sorted(path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).glob("*.ipynb"))


def _select(lessons: list[Lesson], only: Iterable[str]) -> list[Lesson]:
    chosen = set()
    for wanted in only:
        matches = {each for each in lessons if wanted in (each.slug, each.stem, f"ex_{each.stem}", str(each.number), f"{each.number:02d}")}
        if not matches:
            raise AuthoringError(f"only: no lesson {wanted!r}; there are {', '.join(each.slug for each in lessons)}")
        chosen |= matches
    return [each for each in lessons if each in chosen]
