"""Where a course keeps the sources and the built notebooks of its lessons."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.series import FILE, Lesson, series
from attn_course.authoring.sheets import order_of, tasks_file

FOLDERS = ("notebooks", "solutions", "exercises")


@dataclass(frozen=True)
class Unit:
    """One notebook to build: its kind, its source, and the path it is written to.

    `folder`: one of `FOLDERS`, which is also the kind of notebook.
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
        """The text the notebook is made from: of exercises and solutions, the file with ORDER of the lesson's tasks."""
        return self.root / (tasks_file(self.slug) if self.is_sheet else f"notebooks/src/{self.slug}.py")

    @property
    def is_sheet(self) -> bool:
        """Whether it is made of tasks."""
        return self.folder != "notebooks"

    @property
    def is_written(self) -> bool:
        """Whether it has a source."""
        return self.source.is_file() and (not self.is_sheet or order_of(self.root, self.slug) is not None)

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

        Raises AuthoringError if it is not UTF-8.
        """
        try:
            return self.source.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise AuthoringError(f"{self.source_name}: wanted UTF-8, got byte {error.object[error.start]:#04x} at {error.start}") from None

    @property
    def source_link(self) -> str:
        """The source relative to the built notebook, as its metadata names it."""
        return f"../{self.source_name}" if self.is_sheet else f"src/{self.slug}.py"

    @property
    def is_executed(self) -> bool:
        """Whether the notebook carries outputs: lessons and solutions do."""
        return self.folder != "exercises"


def units(root: Path, only: Iterable[str] | None = None) -> list[Unit]:
    """Return every notebook that has a source, lesson by lesson: lesson, solution, exercise.

    `only`: as `chosen_lessons` takes them. Raises AuthoringError if there is no source at all, a source is not in the list of
    lessons, or a selection matches nothing.
    """
    return [unit for lesson in chosen_lessons(root, only) for unit in units_of(root, lesson)]


def shown_units(root: Path, only: Iterable[str] | None = None) -> list[Unit]:
    """Return the lessons and exercises to show; where a wheel brought the course, without its sources, those that are built.

    `only` and what is raised: as in `units`.
    """
    if (root / "notebooks" / "src").is_dir():
        found = units(root, only)
    else:
        lessons = [lesson for lesson in series(root) if not lesson.planned]
        chosen = lessons if only is None else _select(lessons, only)
        found = [unit for lesson in chosen for unit in (Unit(root, folder, lesson) for folder in FOLDERS) if unit.path.is_file()]
    return [unit for unit in found if unit.folder != "solutions"]


def units_of(root: Path, lesson: Lesson) -> list[Unit]:
    """Return the notebooks of a lesson that have a source; of one that is planned, none is built."""
    found = [Unit(root, folder, lesson) for folder in FOLDERS]
    return [unit for unit in found if unit.is_written and not lesson.planned]


def chosen_lessons(root: Path, only: Iterable[str] | None = None) -> list[Lesson]:
    """Return the lessons of which something is written, planned ones too, in their order.

    `only`: slugs ("softmax"), numbers ("2") or names of built notebooks ("02_softmax"); None means all. Raises AuthoringError as
    `units` does.
    """
    listed = series(root)
    sources = {path.stem for path in (root / "notebooks" / "src").glob("*.py")}
    sources |= {lesson.slug for lesson in listed if Unit(root, "solutions", lesson).is_written}
    if stray := sorted(sources - {lesson.slug for lesson in listed}):
        raise AuthoringError(f"{stray[0]}: has a source, but no entry in {FILE}")
    begun = [each for each in listed if each.slug in sources or (each.planned and (root / "attn_course" / "lessons" / each.slug).is_dir())]
    if not begun:
        raise AuthoringError(f"no sources: wanted notebooks/src/SLUG.py or {tasks_file('SLUG')} under {root}")
    return begun if only is None else _select(begun, only)


def built_notebooks(root: Path) -> list[str]:
    """Return the names of all notebooks that lie where built ones belong."""
    return sorted(path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).glob("*.ipynb"))


def _select(lessons: list[Lesson], only: Iterable[str]) -> list[Lesson]:
    chosen = set()
    for wanted in only:
        matches = {each for each in lessons if wanted in _names(each)}
        if not matches:
            raise AuthoringError(f"only: no lesson {wanted!r}; there are {', '.join(each.slug for each in lessons)}")
        chosen |= matches
    return [each for each in lessons if each in chosen]


def _names(lesson: Lesson) -> set[str]:
    """What a lesson may be asked for by: its slug and, once it has one, its number."""
    numbered = set() if lesson.number is None else {lesson.stem, f"ex_{lesson.stem}", str(lesson.number), f"{lesson.number:02d}"}
    return {lesson.slug, *numbered}
