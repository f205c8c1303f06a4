"""The list of lessons: notebooks/series.toml. Their order there is the only place where numbers come from."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.problems import AuthoringError

FILE = "notebooks/series.toml"
MAX_TITLE = 22


@dataclass(frozen=True)
class Lesson:
    """One entry of the list: `number` counts the lessons that are written; a planned one has none. `measured`, `ladder`: see `measure`."""

    slug: str
    title: str
    minutes: int
    about: str = ""
    planned: bool = False
    measured: bool = False
    ladder: bool = False
    number: int | None = None

    @property
    def stem(self) -> str:
        """Name of its built notebooks without folder and suffix, "02_softmax"."""
        return f"{self.number:02d}_{self.slug}"


def series(root: Path) -> list[Lesson]:
    """Return the lessons of a course in their order.

    Raises AuthoringError if the list is missing or no TOML, an entry lacks or has something else, a title is too long, or a slug
    stands twice.
    """
    try:
        entries = tomllib.loads((root / FILE).read_text(encoding="utf-8"))["lesson"]
    except FileNotFoundError:
        raise AuthoringError(f"{FILE}: missing; wanted the list of lessons") from None
    except (tomllib.TOMLDecodeError, KeyError, UnicodeDecodeError) as error:
        raise AuthoringError(f"{FILE}: wanted TOML with [[lesson]] entries, got {error}") from None
    found: list[Lesson] = []
    for entry in entries:
        written = sum(not lesson.planned for lesson in found)
        try:
            lesson = Lesson(**entry, number=None if entry.get("planned") else written)
        except TypeError:
            raise AuthoringError(f"{FILE}: wanted slug, title, minutes, about, planned, measured and ladder, got {sorted(entry)}") from None
        if not (lesson.slug.isidentifier() and lesson.slug.islower()):
            raise AuthoringError(f"{FILE}: wanted a slug that is a Python name in lower case, such as self_attention, got {lesson.slug!r}")
        if len(lesson.title) > MAX_TITLE:
            raise AuthoringError(
                f"{FILE}: wanted a title of at most {MAX_TITLE} characters (the map has no room for more), got {lesson.title!r}"
            )
        if any(lesson.slug == other.slug for other in found):
            raise AuthoringError(f"{FILE}: wanted each slug once, got {lesson.slug!r} twice")
        found.append(lesson)
    return found
