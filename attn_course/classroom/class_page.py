"""class.html: how the class did, which tasks were hard, which mistakes were common, and what the teacher should look at."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from statistics import median
from types import MappingProxyType
from typing import Any

from attn_course.classroom.feedback import SIGNS
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Marked, percent, points_of, remarks, status_of
from attn_course.classroom.pages import page
from attn_course.numbers import counted, lesson_called, lesson_number, place, task_number

_FEW = 20  # students: the grid shows the marks of fewer at a glance
_URGENCY = ("not judged", "note", "late", "decision", "duplicate", "not asked for", "missing")


def class_page(found: Class, marked: Sequence[Marked], about: Mapping[str, Any], pages: Mapping[str, Marked] = MappingProxyType({})) -> str:
    """Return the report on the class as HTML.

    `about` holds seed, version, lessons, due date and sandbox. `pages`: the feedback pages by their places beside this one.
    """
    counting = [each for each in marked if each.counts]
    places = {id(each): name for name, each in pages.items()}
    tasks, made = hardest(marked), mistakes(marked)
    grid = _grid(about["lessons"], counting, places)
    lessons = lesson_called(about["lessons"][0]) if len(about["lessons"]) == 1 else f"lessons\N{NO-BREAK SPACE}{runs(about['lessons'])}"
    shares = [percent(*points_of(list(own))) for _, own in groupby(counting, key=lambda each: each.student)]
    return page(
        "class.html",
        title=f"Class report: {lessons}",
        n_students=len(found.students),
        n_graded=sum(each.status == "graded" for each in marked),
        median=f"{median(shares):.0f} %" if shares else "–",
        strip=_strip(shares) if len(shares) < _FEW else [],
        tasks=tasks,
        mistakes=made,
        made=_by_task(made),
        spread=_spread(shares) if len(shares) >= _FEW else [],
        grid=grid,
        behind=sorted((row for row in grid["rows"] if 2 * row["points"] < row["most"]), key=lambda row: row["points"] / row["most"]),
        signs={word: text[0] for word, text in SIGNS.items()},
        notes=_notes(found, marked, places),
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
    and title, in how many notebooks it is passed, and of how many; of equal ones first that with the most known mistakes.
    """
    asked, passed, known = (Counter[tuple[tuple[int, ...], str]]() for _ in range(3))
    for verdict in (verdict for each in marked if each.status == "graded" for verdict in each.verdicts):
        key = place("tasks", verdict.task), f"{task_number(verdict.task)} {verdict.title}"
        asked[key] += 1
        passed[key] += verdict.passed
        known[key] += bool(verdict.mistake) and not verdict.passed
    order = sorted(asked, key=lambda key: (passed[key] / asked[key], -known[key] / asked[key], key))
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


def _by_task(made: Sequence[tuple[str, int]]) -> dict[str, list[tuple[str, int]]]:
    """Return the mistakes of each task, by its number."""
    found = defaultdict[str, list[tuple[str, int]]](list)
    for mistake, count in made:
        number, _, name = mistake.partition(" ")
        found[number].append((name, count))
    return found


def _grid(lessons: Sequence[str], counting: Sequence[Marked], names: Mapping[int, str]) -> dict[str, Any]:
    """Return who did what: the lessons with their tasks, each student's points and words for the tasks, and right ones of how many."""
    own = {(each.student, each.lesson): each for each in counting}
    asked = {each.lesson: each.verdicts for each in reversed(counting)}
    chapters = [(lesson, asked[lesson]) for lesson in lessons if lesson in asked]
    rows: list[dict[str, Any]] = []
    for student, theirs in groupby(counting, key=lambda each: each.student):
        found = list(theirs)
        cells = []
        for lesson, tasks in chapters:
            each = own.get((student, lesson))
            words = [status_of(verdict, each) for verdict in each.verdicts] if each else ["missing"] * len(tasks)
            cells += [(word, names.get(id(each)), verdict.task) for word, verdict in zip(words, tasks, strict=True)]
        pages = [names[id(each)] for each in found if id(each) in names]
        points, most = points_of(found)
        rows.append({"who": found[0].who, "page": pages[0] if pages else None, "points": points, "most": most, "cells": cells})
    right: list[tuple[int, int]] = []
    for lesson, tasks in chapters:  # as `hardest` counts
        judged = [each.verdicts for each in counting if each.lesson == lesson and each.status == "graded"]
        right += [(sum(verdicts[n].passed for verdicts in judged), len(judged)) for n in range(len(tasks))]
    seen = {word for row in rows for word, *_ in row["cells"]}
    return {
        "chapters": [(lesson_called(lesson), tasks) for lesson, tasks in chapters],
        "starts": [0, *accumulate(len(tasks) for _, tasks in chapters)],
        "rows": rows,
        "right": right,
        "legend": [said for word, said in SIGNS.items() if word in seen] + ["– nothing handed in"] * ("missing" in seen),
    }


def _strip(shares: Sequence[float]) -> list[tuple[int, int]]:
    """Return a place from 0 to 100 for the dot of each student, and a level above the others' on which it touches none."""
    dots: list[tuple[int, int]] = []
    for share in sorted(map(round, shares)):
        taken = {level for other, level in dots if share - other < 5}
        dots.append((share, min({*range(len(taken) + 1)} - taken)))
    return dots


def _spread(shares: Sequence[float]) -> list[tuple[str, int]]:
    """Return how many students reach which share of the points, in steps of ten percent."""
    counts = Counter(min(int(share // 10), 9) for share in shares)
    return [(f"{10 * step} to {10 * step + 10} %", counts[step]) for step in range(10)]


def _notes(found: Class, marked: Sequence[Marked], places: Mapping[int, str]) -> list[tuple[str, str, str, str, str]]:
    """What asks for a look: student, assignment, kind, text and the feedback page, the most urgent first."""
    wanted = [each for each in marked if each.status != "not asked for"]
    about = [(each, kind, text) for each in wanted for kind, text in remarks(each)]
    about += [(each, "missing", f"no notebook for chapter {lesson_number(each.lesson)}") for each in marked if each.status == "missing"]
    about += [
        (each, "decision", f"task {task_number(decided.decision.task)}: {decided}")
        for each in wanted
        for decided in each.decided
        if decided.decision.task
    ]
    rows = [(each.who, each.assignment, kind, text, places.get(id(each), "")) for each, kind, text in about]
    rows += [("", "", "note", note, "") for note in found.notes]
    if left_out := len(marked) - len(wanted):
        rows.append(("", "", "not asked for", f"{counted(left_out, 'notebook')} on other chapters", ""))
    return sorted(rows, key=lambda row: (_URGENCY.index(row[2]), row))
