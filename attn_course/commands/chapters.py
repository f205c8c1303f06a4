"""Read the option --chapters: numbers, ranges and names, the same for every command that has it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attn_course.commands.terminal import BadInput

_EXAMPLE = "such as 2,4-6,08_multi_head"
HELP = f"Numbers, ranges and names {_EXAMPLE}"


def read_chapters(text: str, there: Mapping[int, str]) -> tuple[int, ...]:
    """Return the chapters that a list names.

    Parameters
    ----------
    text : str
        Numbers, ranges and names, with commas between: "2", "02", "4-6", "08_multi_head". A range takes the chapters between
        its ends that are there; both ends must be.
    there : mapping of int to str
        The chapters that there are, each with its name.

    Returns
    -------
    chapters : tuple of int
        Ascending, each once.

    Raises
    ------
    BadInput
        If the list is empty, or a part names no chapter that is there.

    Examples
    --------
    >>> read_chapters("7-11, 02_softmax,07", {2: "02_softmax", 7: "07_masking", 9: "09_cross_attention", 11: "11_without_softmax"})
    (2, 7, 9, 11)
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise BadInput(f"--chapters: names none; wanted numbers, ranges and names {_EXAMPLE}")
    return tuple(sorted({number for part in parts for number in _named(part, there)}))


def exercise_names(root: Path) -> dict[int, str]:
    """Return the chapters whose exercise lies in a course's folder, each with its name."""
    return {int(path.name[:2]): path.stem for path in sorted((root / "exercises").glob("[0-9][0-9]_*.ipynb"))}


def _named(part: str, there: Mapping[int, str]) -> Iterator[int]:
    """The chapters that one part of the list names."""
    by_name = [number for number, name in there.items() if name == part]
    if by_name:
        yield from by_name
        return
    span = re.fullmatch(r"([0-9]{1,3})(?:\s*-\s*([0-9]{1,3}))?", part)
    if not span:
        raise BadInput(f"--chapters: there is no {part!r}; wanted numbers, ranges and names {_EXAMPLE}, of {_listed(there)}")
    first, last = int(span[1]), int(span[2] or span[1])
    if last < first:
        raise BadInput(f"--chapters: {part!r} ends before it begins; wanted {last}-{first}?")
    for end in (first, last):
        if end not in there:
            raise BadInput(f"--chapters: there is no chapter {end}; there are {_listed(there)}")
    yield from (number for number in there if first <= number <= last)


def _listed(there: Mapping[int, str]) -> str:
    return ", ".join(there[number] or str(number) for number in sorted(there)) or "none"
