"""class.html: how the class did, which tasks were hard, which mistakes were common, and what the teacher should look at."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attn_course.classroom.feedback import SIGNS
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Marked, percent, points_of, remarks, status_of
from attn_course.classroom.pages import page
from attn_course.numbers import counted, lesson_number, place, task_number

if TYPE_CHECKING:
    from attn_course.figures.base import Picture

_FEW = 20  # students: the grid shows the marks of fewer at a glance
_URGENCY = ("not judged", "note", "late", "decision", "duplicate", "not asked for", "missing")


def class_page(found: Class, marked: Sequence[Marked], about: Mapping[str, Any], pages: Mapping[str, Marked] = MappingProxyType({})) -> str:
    """Return the report on the class as HTML.

    `about` holds seed, version, lessons, due date and sandbox. `pages`: the feedback pages by their places beside this one.
    """
    counting = [each for each in marked if each.counts]
    shares = [percent(*points_of(list(own))) for _, own in groupby(counting, key=lambda each: each.student)]
    return page(
        "class.html",
        title=f"Class report: chapter{'s' if len(about['lessons']) > 1 else ''} {runs(about['lessons'])}",
        n_students=len(found.students),
        n_graded=sum(each.status == "graded" for each in marked),
        middle=f"median {median(shares):.0f} % of the points" if shares else "no marks",
        first=_first(hardest(marked), mistakes(marked)),
        figures=_figures(marked, shares),
        grids=[_grid(lesson, counting, {id(each): name for name, each in pages.items()}) for lesson in about["lessons"]],
        signs={word: text[0] for word, text in SIGNS.items()},
        notes=_notes(found, marked),
        levels=sorted(Counter(each.sandbox for each in marked if each.sandbox).items()),
        about=about,
    )


def runs(lessons: Sequence[str]) -> str:
    """Return the numbers of lessons as text, three or more in a row by their ends; one without a number by its name.

    `lessons`: in their order, each once.

    >>> runs(["start", "lookup", "softmax"]), runs(["softmax", "attention"])
    ('0–2', '2, 4')
    """
    parts: list[str] = []
    called = [lesson_number(lesson) for lesson in lessons]
    for _, group in groupby(enumerate(int(name) for name in called if name.isdigit()), key=lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join([*parts, *(name for name in called if not name.isdigit())])


def hardest(marked: Sequence[Marked]) -> list[tuple[str, int, int]]:
    """Return the tasks, those first of which the smallest share of the graded notebooks holds a right answer.

    `marked`: the marks. A missing notebook says nothing about its tasks, nor does one that could not be judged. Each is number
    and title, in how many notebooks it is passed, and of how many; ties in the order of the tasks.
    """
    asked, passed = Counter[tuple[tuple[int, ...], str]](), Counter[tuple[tuple[int, ...], str]]()
    for verdict in (verdict for each in marked if each.status == "graded" for verdict in each.verdicts):
        key = place("tasks", verdict.task), f"{task_number(verdict.task)} {verdict.title}"
        asked[key] += 1
        passed[key] += verdict.passed
    order = sorted(asked, key=lambda key: (passed[key] / asked[key], key))
    return [(key[1], passed[key], asked[key]) for key in order]


def mistakes(marked: Sequence[Marked]) -> list[tuple[str, int]]:
    """Return the known mistakes, those first that most students made.

    Each is the number of the task with the mistake's name, and how many students made it; ties in the order of the tasks.
    """
    made = {
        (each.student, place("tasks", verdict.task), f"{task_number(verdict.task)} {verdict.mistake}")
        for each in marked
        if each.counts
        for verdict in each.verdicts
        if verdict.mistake and not verdict.passed
    }
    students = Counter(key[1:] for key in made)
    return [(key[1], count) for key, count in sorted(students.items(), key=lambda item: (-item[1], item[0]))]


def _first(tasks: Sequence[tuple[str, int, int]], made: Sequence[tuple[str, int]]) -> list[str]:
    """What a teacher wants to know first, in a sentence each."""
    said = [f"The hardest task is {title}: right in {right} of {asked} notebooks." for title, right, asked in tasks[:1] if right < asked]
    return said + [f"The commonest mistake, made by {counted(count, 'student')}, is in task {mistake}." for mistake, count in made[:1]]


def _grid(lesson: str, counting: Sequence[Marked], names: Mapping[int, str]) -> dict[str, Any]:
    """Return who did what in a lesson: its tasks, and for each student the feedback page, the points and a word for each task."""
    own = [each for each in counting if each.lesson == lesson]
    rows = [
        {
            "who": each.who,
            "page": names.get(id(each)),
            "points": each.points,
            "most": each.max_points,
            "words": [status_of(one, each) for one in each.verdicts],
        }
        for each in own
    ]
    right = [column.count("passed") for column in zip(*(row["words"] for row in rows), strict=True)]
    return {"number": lesson_number(lesson), "tasks": own[0].verdicts if own else (), "rows": rows, "right": right}


def _figures(marked: Sequence[Marked], shares: Sequence[float]) -> dict[str, "Picture | None"]:
    from attn_course.figures import class_report as draw

    tasks, made = hardest(marked), mistakes(marked)
    return {
        "marks": draw.marks_distribution(shares) if len(shares) >= _FEW else None,
        "hardest": draw.hardest_tasks(*zip(*tasks, strict=True)) if tasks else None,
        "mistakes": draw.common_mistakes(*zip(*made, strict=True)) if made else None,
    }


def _notes(found: Class, marked: Sequence[Marked]) -> list[tuple[str, str, str, str]]:
    """What asks for a look: student, assignment, kind and text, the most urgent first."""
    wanted = [each for each in marked if each.status != "not asked for"]
    rows = [(each.who, each.assignment, kind, text) for each in wanted for kind, text in remarks(each)]
    rows += [
        (each.who, each.assignment, "missing", f"no notebook for chapter {lesson_number(each.lesson)}")
        for each in marked
        if each.status == "missing"
    ]
    rows += [
        (each.who, each.assignment, "decision", f"task {task_number(decided.decision.task)}: {decided}")
        for each in wanted
        for decided in each.decided
        if decided.decision.task
    ]
    rows += [("", "", "note", note) for note in found.notes]
    if left_out := len(marked) - len(wanted):
        rows.append(("", "", "not asked for", f"{counted(left_out, 'notebook')} on other chapters"))
    return sorted(rows, key=lambda row: (_URGENCY.index(row[2]), row))
