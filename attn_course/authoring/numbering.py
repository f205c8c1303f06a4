r"""Write every number, of equations, sections, tasks and lessons, in the order in which the sources say them.

In a lesson `\label{slug}` becomes the number of its formula, `\tag{2.1}`. So does `\key{slug}`, and its formula gets a frame,
`$$\boxed{...} \tag{2.1}$$`: it is one of the few that a reader is to keep. `{key}` with the slug in backticks becomes the formula itself,
wherever it stands in a notebook; the formula card is written with it.
"""

import functools
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attn_course import numbers
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import read_text
from attn_course.authoring.series import Lesson, series
from attn_course.authoring.sheets import order_of
from attn_course.files import write_atomically

CLOSING = ("Formula card", "Summary", "Sources")  # sections without a number
_LABEL = re.compile(r"\\(?:label|key)\{([^{}]*)\}")
_KEY = re.compile(r"\$\$((?:(?!\$\$).)*?) *(\\key\{([^{}]*)\})", re.DOTALL)  # a formula from its beginning to its name
_KEY_ROLE = re.compile(r"\{key\}`([^`\n]*)`")
_BROKEN_ROLE = re.compile(r"\{(?:eq|key|task|lesson|section)\}`[^`]*$")  # begun on a line, and not ended on it
_DEEPER = re.compile(r"^# ## Deeper: .*?(?=^# ## Sources|\Z)", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r'^# %%.*?\bid="([^"]*)"', re.MULTILINE)
_TITLE = re.compile(r"^# # \{lesson\}`\w+` ([^:\n]+)", re.MULTILINE)  # up to its colon
_SECTION = re.compile(rf"^# ## (?!{'|'.join(CLOSING)})(.+)$", re.MULTILINE)
_REGISTERED = re.compile(r'^@claim\(\s*"([^"]+)"', re.MULTILINE)
_ASKED = re.compile(r'\basked(?:_formula|_cell)?\(\s*"([^"]+)"')
_SAID = re.compile(r"""["'`]([a-z][a-z0-9_-]*)["'`]""")
_SECTION_ROLE = re.compile(r"\{section\}`(?:([a-z0-9_]+)/)?([a-z0-9_-]+)`")


@dataclass(frozen=True)
class Numbering:
    """The numbers of a course.

    `tables`: what numbers.json is to hold. `sections`: (slug, id of the cell that opens the section) -> number. `keys`: label of
    a key equation -> the formula, as `inline` writes it.
    """

    tables: numbers.Tables
    sections: Mapping[tuple[str, str], str]
    keys: Mapping[str, str]

    def of(self, slug: str, text: str, name: str) -> str:
        """Return a source with all its numbers written.

        Raises AuthoringError if a role names nothing, or what is no lesson has a label; the message says the line.
        """
        number = self.tables["slugs"][slug]["number"]
        if name.startswith("notebooks/"):
            count = itertools.count(1)
            text = _SECTION.sub(lambda heading: f"# ## {number}.{next(count)} {heading[1]}", text)
            text = _KEY.sub(r"$$\\boxed{\1} \2", text)
            text = _LABEL.sub(lambda label: f"\\tag{{{self.tables['labels'][slug][label[1]]}}}", text)
        elif stray := _LABEL.search(text):
            place = text.count("\n", 0, stray.start()) + 1
            raise AuthoringError(f"{name}: line {place}: wanted labels in lessons only, got {stray[0]}")
        sections = {cell if lesson == slug else f"{lesson}/{cell}": found for (lesson, cell), found in self.sections.items()}
        sections |= {f"{lesson}/{cell}": found for (lesson, cell), found in self.sections.items()}
        lines = text.split("\n")
        for place, line in enumerate(lines):
            if broken := _BROKEN_ROLE.search(line):
                raise AuthoringError(f"{name}: line {place + 1}: wanted a role on one line, got {broken[0]!r} at its end")
            try:
                lines[place] = numbers.cite(_KEY_ROLE.sub(self._formula, line), self.tables, sections)
            except numbers.UnknownName as error:
                raise AuthoringError(f"{name}: line {place + 1}: {error}") from None
        return "\n".join(lines)

    def said(self, slug: str, text: str) -> list[str]:
        """Return "name=number" for every name of the course that a text of a lesson says in quotes or in a role."""
        sections = {(lesson or slug, cell) for lesson, cell in _SECTION_ROLE.findall(text)} & self.sections.keys()
        found = [f"section {lesson}/{cell}={self.sections[lesson, cell]}" for lesson, cell in sections]
        return sorted([*found, *(each for word in _words(text) for each in self._known.get(word, ()))])

    @functools.cached_property
    def _known(self) -> dict[str, list[str]]:
        """What is said with each name."""
        known = {**self._flat("labels"), **{f"task {name}": number for name, number in self._flat("tasks").items()}}
        known |= {f"lesson {slug}": entry["number"] for slug, entry in self.tables["slugs"].items()}
        said: dict[str, list[str]] = {}
        for name, number in known.items():
            said.setdefault(name.split(" ")[-1], []).append(f"{name}={number}")
        return said

    def _formula(self, role: re.Match[str]) -> str:
        if role[1] not in self.keys:
            raise numbers.UnknownName(f"{role[0]}: there is no key equation {role[1]!r}; wanted one that its lesson marks with \\key")
        return self.keys[role[1]]

    def _flat(self, kind: str) -> dict[str, Any]:
        return {name: number for known in self.tables[kind].values() for name, number in known.items()}


@functools.lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    """All that a text says in quotes or in a role; what has been read once is remembered for all lessons."""
    return frozenset(_SAID.findall(text))


def numbering(root: Path) -> Numbering:
    """Return the numbers that the sources of a course ask for.

    Raises AuthoringError if the list of lessons cannot be read, or a name is badly formed or stands twice.
    """
    tables: dict[str, dict[str, Any]] = {"labels": {}, "tasks": {}, "slugs": {}}
    sections: dict[tuple[str, str], str] = {}
    keys: dict[str, str] = {}
    for lesson in series(root):
        text = read_text(root / "notebooks" / "src" / f"{lesson.slug}.py") or ""
        heading = _TITLE.search(text)
        tables["slugs"][lesson.slug] = {"number": lesson.number, "title": lesson.title}
        if heading and heading[1] != lesson.title:
            tables["slugs"][lesson.slug]["name"] = heading[1]
        labels = _declared(root, lesson, "equations", _REGISTERED) if lesson.planned else _LABEL.findall(text)
        tasks = order_of(root, lesson.slug)
        if tasks is None:
            tasks = _declared(root, lesson, "tasks", _ASKED) if lesson.planned else []
        for kind, found in (("labels", labels), ("tasks", tasks)):
            tables[kind][lesson.slug] = {
                name: None if lesson.planned else f"{lesson.number}.{place}" for place, name in enumerate(found, 1)
            }
            _hold_names(kind, found, tables, lesson.slug)
        if not lesson.planned:
            for place, heading in enumerate(_SECTION.finditer(text), 1):
                cell = [header[1] for header in _HEADER.finditer(text, 0, heading.start())][-1]
                sections[lesson.slug, cell] = f"{lesson.number}.{place}"
            keys |= {label: inline(formula) for formula, _, label in _KEY.findall(text)}
    return Numbering(tables, sections, keys)


def inline(formula: str) -> str:
    r"""Return a displayed formula as one of a line of text, or of a row of a table, where `|` would end a column.

    >>> inline("\\|x\\| \n# = |y|")
    '$\\displaystyle \\Vert x\\Vert = \\vert y\\vert$'
    """
    bars = re.sub(r"(?<!\\)\\\|", r"\\Vert ", re.sub(r"\n#?", " ", formula)).replace("|", r"\vert ")
    return rf"$\displaystyle {' '.join(bars.split())}$"


def deeper_labels(root: Path) -> set[str]:
    """Return the labels of all equations that stand in deeper sections, of every lesson of a course."""
    texts = [read_text(root / "notebooks" / "src" / f"{lesson.slug}.py") or "" for lesson in series(root) if not lesson.planned]
    return {label for text in texts for part in _DEEPER.findall(text) for label in _LABEL.findall(part)}


def as_text(tables: numbers.Tables) -> str:
    """Return the text of numbers.json."""
    return json.dumps(tables, indent=1) + "\n"


def write_numbers(root: Path, tables: numbers.Tables) -> bool:
    """Write numbers.json where it says something else, and return whether it was written."""
    written = write_atomically(root / "attn_course" / numbers.FILE, as_text(tables))
    if written:
        numbers.stored_tables.cache_clear()
    return written


def _declared(root: Path, lesson: Lesson, room: str, names: re.Pattern[str]) -> list[str]:
    """The labels or tasks of a lesson that is not written yet, from its equations or tasks."""
    files = sorted((root / "attn_course" / "lessons" / lesson.slug).glob(f"{room}*.py"))
    return [name for path in files for name in names.findall(path.read_text(encoding="utf-8"))]


def _hold_names(kind: str, found: list[str], tables: Mapping[str, Mapping[str, Any]], slug: str) -> None:
    what = "label" if kind == "labels" else "task"
    for name in found:
        if not numbers.NAME.fullmatch(name):
            raise AuthoringError(f"{slug}: wanted a {what} of at most four lower-case words joined by '-', got {name!r}")
        if found.count(name) > 1 or any(name in known for other, known in tables[kind].items() if other != slug):
            raise AuthoringError(f"{slug}: wanted a {what} of its own, got {name!r} a second time")
