"""Names and the numbers they have today: labels of equations, ids of tasks, slugs of lessons.

`numbers.json` is written by `attn-course notebooks build`. Whoever shows a text to people sends it through `cite` once, before any HTML.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

PACKAGE = Path(__file__).resolve().parent
FILE = "numbers.json"
ROLE = re.compile(r"\{(eq|task|lesson|section)\}`([^`\n]*)`")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+){0,3}")
_NUMBER = re.compile(r"(?:(?:Eq\.|task|Task)\s?)?\(?(\d+\.\d+)\)?")  # as messages print it

Kind: TypeAlias = Literal["labels", "tasks"]
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]
"""labels and tasks: slug -> name -> number ("2.20", None if the lesson is planned); slugs: slug -> number, short title and longer name."""
_IN_USE: ContextVar[Tables | None] = ContextVar("_IN_USE", default=None)


class UnknownName(ValueError):
    """A role, a call or a command names nothing of the course; the text is one line."""


def tables() -> Tables:
    """Return the numbers that hold: those of `numbers.json`, but for the builder and the gate those that the sources ask for."""
    return _IN_USE.get() or stored_tables()


@contextmanager
def using(known: Tables) -> Iterator[None]:
    """Let other numbers hold than those of `numbers.json`."""
    token = _IN_USE.set(known)
    try:
        yield
    finally:
        _IN_USE.reset(token)


@cache
def stored_tables() -> dict[str, dict[str, Any]]:
    """Return what `numbers.json` holds, and what was added."""
    return dict(json.loads((PACKAGE / FILE).read_text(encoding="utf-8")))


def add_lesson(slug: str, title: str, tasks: Iterable[str]) -> None:
    """Let a lesson stand behind those of the course, for as long as this process runs; neither it nor its tasks have numbers."""
    known = stored_tables()
    known["slugs"][slug] = {"number": None, "title": title}
    known["tasks"][slug] = dict.fromkeys(tasks)


def lessons() -> list[str]:
    """Return the slugs of all lessons in their order, planned ones too."""
    return list(tables()["slugs"])


def names(kind: Kind, lesson: str) -> list[str]:
    """Return the labels or tasks of a lesson in their order."""
    return list(tables()[kind].get(lesson, {}))


def lesson_of(kind: Kind, name: str) -> str | None:
    """Return the slug of the lesson that a label or a task belongs to; None if there is no such name."""
    return next((slug for slug, known in tables()[kind].items() if name in known), None)


def named(kind: Kind, number: object, known_tables: Tables | None = None) -> str | None:
    """Return the label or task that has a number today, written as "5.9", "(5.9)" or "Eq. (5.9)"; None if there is none."""
    found = _NUMBER.fullmatch(number) if isinstance(number, str) else None
    every = (known_tables or tables())[kind].values() if found else ()
    return next((name for known in every for name, has in known.items() if found and has == found[1]), None)


def place(kind: Kind, name: str) -> tuple[int, int]:
    """Return what puts labels or tasks in the order of their numbers; unknown names come last."""
    order = [*tables()[kind], lesson_of(kind, name)]
    lesson = lesson_of(kind, name)
    return (order.index(lesson), names(kind, lesson).index(name)) if lesson is not None else (len(order), 0)


def lesson_place(slug: str | None) -> int:
    """Return what puts slugs in the order of the course; what is no slug comes first."""
    order = lessons()
    return order.index(slug) if slug in order else -1


def title(slug: str) -> str:
    """Return the short title of a lesson."""
    return str(tables()["slugs"][slug]["title"])


def lesson_number(slug: str | None) -> str:
    """Return the number of a lesson as people read it, "2"; the slug itself while it has none."""
    number = tables()["slugs"].get(str(slug), {}).get("number")
    return str(slug) if number is None else str(number)


def lesson_called(slug: str) -> str:
    """Return the number and name of a lesson, "9 Multi-head attention"; the slug itself while it has none."""
    number = lesson_number(slug)
    return f"{number} {tables()['slugs'][slug].get('name', title(slug))}" if number.isdigit() else number


def task_number(task: str) -> str:
    """Return the number of a task, "2.1"; its id while it has none."""
    return _number(tables(), "tasks", task) or task


def eq(label: str) -> str:
    """Return how an equation is referred to: "Eq. (2.20)", or by its label while it has no number."""
    number = _number(tables(), "labels", label)
    return f"Eq. ({number})" if number else f"Eq. {label}"


def lesson_in(name: str) -> str | None:
    """Return the slug that the name of a file holds; the number in it does not count.

    >>> lesson_in("ex_02_softmax.ipynb"), lesson_in("07_softmax-Copy1.ipynb"), lesson_in("notes.ipynb")
    ('softmax', 'softmax', None)
    """
    found = re.match(r"(?:ex_)?(?:\d{1,2}_)?([a-z][a-z0-9_]*)", name)
    return found[1] if found and found[1] in tables()["slugs"] else None


def lesson_modules(room: str, slug: str, package: Path = PACKAGE) -> list[str]:
    """Return the modules that a lesson adds to a room: `equations` and `equations_word` of lessons/SLUG, say, by their dotted names."""
    return [*_own_modules(room, slug)] if package == PACKAGE else _modules(room, slug, package)


def _modules(room: str, slug: str, package: Path) -> list[str]:
    paths = [path for path in sorted((package / "lessons" / slug).glob(f"{room}*.py")) if path.stem.split("_")[0] == room]
    return [f"attn_course.lessons.{slug}.{path.stem}" for path in paths]


@cache  # of this package, which stays what it is while it runs: a class asks for each submission
def _own_modules(room: str, slug: str) -> list[str]:
    return _modules(room, slug, PACKAGE)


def lessons_with(room: str) -> list[str]:
    """Return the slugs of the lessons that add something to a room, in their order."""
    return [slug for slug in lessons() if lesson_modules(room, slug)]


def lesson_table(questions: Mapping[str, str] | None = None) -> str:
    """Return a Markdown table of the lessons that are written, with links as from the folder notebooks/.

    `questions`: slug -> the question that the lesson answers, for a column of its own.
    """
    header = ["lesson", *(["the question it answers"] if questions else []), "exercises"]
    rows = [header, ["---"] * len(header)]
    for slug, entry in tables()["slugs"].items():
        if entry["number"] is not None:
            stem = f"{entry['number']:02d}_{slug}"
            link = f"[exercises](../work/ex_{stem}.ipynb)" if tables()["tasks"].get(slug) else ""
            rows.append([f"[{stem[:2]} {entry['title']}]({stem}.ipynb)", *([questions.get(slug, "")] if questions else []), link])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cite(text: str, known: Tables | None = None, sections: Mapping[str, str] | None = None) -> str:
    """Put numbers in the place of roles: {eq}`label`, {task}`id`, {lesson}`slug` and, in sources of notebooks, {section}`id`.

    `text`: what will be shown. `known`: the numbers to use; those of `numbers.json` by default. `sections`: id of a section (with
    "slug/" before it, one of another lesson) -> number. Raises UnknownName if a role names nothing, or something that has no
    number yet.

    >>> cite("Rows sum to 0, see chapter {lesson}`softmax`.")
    'Rows sum to 0, see chapter 02.'
    """

    def number(role: re.Match[str]) -> str:
        kind, name = role.groups()
        given = tables() if known is None else known
        if kind == "lesson":
            found = given["slugs"].get(name, {}).get("number")
            there: Iterable[str] = given["slugs"]
            shown = None if found is None else f"{found:02d}"
        elif kind == "section":
            there = sections or {}
            shown = (sections or {}).get(name)
        else:
            table: Kind = "labels" if kind == "eq" else "tasks"
            there = [each for known_names in given[table].values() for each in known_names]
            shown = _number(given, table, name)
            shown = f"Eq. ({shown})" if shown and kind == "eq" else shown
        if shown is None:
            raise UnknownName(
                f"{role[0]}: " + (f"{name} is planned and has no number yet" if name in there else unknown(kind, name, there, given))
            )
        return shown

    return ROLE.sub(number, text)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, of which there may be one or more.

    >>> counted(1, "notebook"), counted(0, "notebook")
    ('1 notebook', '0 notebooks')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def unknown(kind: str, name: object, there: Iterable[str], known: Tables | None = None) -> str:
    """Return why a name is none, in one line: a number, a slip of the hand, or something else."""
    what = {"eq": "equation", "task": "task", "lesson": "lesson", "section": "section"}[kind]
    if isinstance(name, str) and (number := _NUMBER.fullmatch(name)):
        table: Kind = "tasks" if kind == "task" else "labels"
        if kind in ("eq", "task") and (today := named(table, name, known)):
            return f"{name} is a number, and numbers change: the name of {what} {number[1]} is {today}"
        none = f"no {what} has the number {number[1]} today" if kind in ("eq", "task") else f"{name} is a number"
        return f"{none}; {what}s are asked for by name"
    close = difflib.get_close_matches(str(name), [other for other in there if other != name], n=3)
    return f"there is no {what} {name!r}" + (f"; is it {' or '.join(close)}?" if close else "")


def _number(given: Tables, kind: Kind, name: str) -> str | None:
    return next((known[name] for known in given[kind].values() if name in known), None)
