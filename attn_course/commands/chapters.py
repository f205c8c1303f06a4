"""Read the option --chapters: names, numbers and ranges, the same for every command that has it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attn_course.commands.terminal import BadInput
from attn_course.numbers import lesson_in, lesson_number, lesson_place, lessons

_EXAMPLE = "such as softmax,4-6,heads"
HELP = f"Names, numbers and ranges {_EXAMPLE}"


def read_chapters(text: str, there: Sequence[str]) -> tuple[str, ...]:
    """Return the lessons that a list names.

    `text`: names, numbers and ranges, with commas between: "softmax", "02_softmax", "2", "4-6". A range takes the lessons between
    its ends that are there; both ends must be. They come in their order, each once. Raises BadInput if the list is empty, or a
    part names no lesson that is there.

    >>> read_chapters("1-3, softmax,02", ["lookup", "softmax", "scaling", "linear"])
    ('lookup', 'softmax', 'scaling')
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise BadInput(f"--chapters: names none; wanted names, numbers and ranges {_EXAMPLE}")
    return tuple(sorted({lesson for part in parts for lesson in _named(part, there)}, key=lesson_place))


def read_chapter(text: str, there: Sequence[str], option: str) -> str:
    """Return the one lesson that a name or a number means; BadInput if it is not there."""
    lesson = next((slug for slug in there if text in (slug, lesson_number(slug), lesson_number(slug).zfill(2))), lesson_in(text))
    if lesson not in there:
        raise BadInput(f"{option}: there is no chapter {text}; there are {_listed(there)}")
    return str(lesson)


def exercise_lessons(root: Path) -> list[str]:
    """Return the lessons whose exercise lies in a course's folder, in their order."""
    named = {lesson_in(path.name) for path in (root / "exercises").glob("*.ipynb")}
    return [lesson for lesson in lessons() if lesson in named]


def _named(part: str, there: Sequence[str]) -> Iterator[str]:
    """The lessons that one part of the list names."""
    span = re.fullmatch(r"([0-9]{1,3})\s*-\s*([0-9]{1,3})", part)
    if not span:
        yield read_chapter(part, there, "--chapters")
        return
    first, last = (read_chapter(end, there, "--chapters") for end in span.groups())
    if lesson_place(last) < lesson_place(first):
        raise BadInput(f"--chapters: {part!r} ends before it begins; wanted {span[2]}-{span[1]}?")
    yield from (lesson for lesson in there if lesson_place(first) <= lesson_place(lesson) <= lesson_place(last))


def _listed(there: Sequence[str]) -> str:
    return ", ".join(there) or "none"
