"""class.html: how the class did, which tasks were hard, which mistakes were common, and what the teacher should look at."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from attn_course.grading.class_marks import Marked, percent, remarks
from attn_course.grading.page import counted, page, plain
from attn_course.grading.submissions import Class
from attn_course.numbers import lesson_number, place, task_number

if TYPE_CHECKING:
    from attn_course.figures.base import Picture


def class_page(found: Class, marked: Sequence[Marked], about: Mapping[str, Any]) -> str:
    """Return the report on the class.

    Parameters
    ----------
    found : Class
        What was handed in.
    marked : sequence of Marked
        The marks.
    about : mapping
        Seed, version, lessons, due date and sandbox.

    Returns
    -------
    page : str
        HTML that stands alone.
    """
    shares = [percent(*_sums(list(own))) for _, own in groupby((each for each in marked if each.counts), key=lambda each: each.student)]
    called = f"chapter{'s' if len(about['lessons']) > 1 else ''} {runs(about['lessons'])}"
    by_status = Counter(each.status for each in marked)
    middle = f"median {median(shares):.0f} % of the points" if shares else "no marks"
    parts = [
        f"<h1>Class report: {called}</h1>",
        f'<p class="soft">{counted(len(found.students), "student")} · {counted(by_status["graded"], "notebook")} graded · {middle}</p>',
        *_figures(marked, shares),
        _notes(found, marked),
        _how(marked, about),
    ]
    return page(f"Class report, {called}", "\n".join(parts))


def runs(lessons: Sequence[str]) -> str:
    """Return the numbers of lessons as text, three or more in a row by their ends.

    Parameters
    ----------
    lessons : sequence of str
        In their order, each once.

    Returns
    -------
    text : str
        With an en dash.

    Examples
    --------
    >>> runs(["start", "lookup", "softmax"]), runs(["softmax", "self_attention"])
    ('0–2', '2, 5')
    """
    parts: list[str] = []
    for _, group in groupby(enumerate(map(int, map(lesson_number, lessons))), key=lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join(parts)


def hardest(marked: Sequence[Marked]) -> list[tuple[str, int, int]]:
    """Return the tasks, those first of which the smallest share of the graded notebooks holds a right answer.

    Parameters
    ----------
    marked : sequence of Marked
        The marks. A missing notebook says nothing about its tasks, nor does one that could not be judged.

    Returns
    -------
    tasks : list of (str, int, int)
        Number and title, in how many notebooks it is passed, and of how many; ties in the order of the tasks.
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

    Parameters
    ----------
    marked : sequence of Marked
        The marks.

    Returns
    -------
    mistakes : list of (str, int)
        Number of the task with the mistake's name, and how many students made it; ties in the order of the tasks.
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


def _figures(marked: Sequence[Marked], shares: Sequence[float]) -> list[str]:
    from attn_course.figures import class_report as draw

    parts = []
    if shares:
        parts += ["<h2>Distribution of marks</h2>", _figure(draw.marks_distribution(shares))]
    if tasks := hardest(marked):
        of_whom = '<p class="soft">Only notebooks that were handed in and could be judged count here.</p>'
        parts += ["<h2>Hardest tasks</h2>", of_whom, _figure(draw.hardest_tasks(*zip(*tasks, strict=True)))]
    parts.append("<h2>Commonest mistakes</h2>")
    if made := mistakes(marked):
        parts.append(_figure(draw.common_mistakes(*zip(*made, strict=True))))
    else:
        parts.append("<p>No mistake was recognised by name.</p>")
    return parts


def _figure(picture: "Picture") -> str:
    data = base64.b64encode(picture.png).decode("ascii")
    alt = plain(picture.alt)
    return (
        f'<figure><img src="data:image/png;base64,{data}" width="{picture.width_pixels}" height="{picture.height_pixels}" alt="{alt}">\n'
        f"<figcaption><details><summary>Figure in words</summary><p>{alt}</p></details></figcaption></figure>"
    )


def _notes(found: Class, marked: Sequence[Marked]) -> str:
    """What asks for a look, as a table."""
    wanted = [each for each in marked if each.status != "not asked for"]
    rows = [(each.student, each.assignment, kind, text) for each in wanted for kind, text in remarks(each)]
    rows += [
        (each.student, each.assignment, "missing", f"no notebook for chapter {lesson_number(each.lesson)}")
        for each in marked
        if each.status == "missing"
    ]
    rows += [("", "", "note", note) for note in found.notes]
    if left_out := len(marked) - len(wanted):
        rows.append(("", "", "not asked for", f"{counted(left_out, 'notebook')} on other chapters"))
    if not rows:
        return "<h2>To look at</h2>\n<p>Nothing: every notebook was there, in time, and could be judged.</p>"
    cells = ["".join(f"<td>{plain(text)}</td>" for text in row) for row in sorted(rows, key=lambda row: (_WEIGHT.get(row[2], 9), row))]
    head = "".join(f"<th>{name}</th>" for name in ("Student", "Assignment", "Kind", "What"))
    return (
        f'<h2>To look at</h2>\n<div class="wide"><table><tr>{head}</tr>\n'
        + "\n".join(f"<tr>{row}</tr>" for row in cells)
        + "</table></div>"
    )


_WEIGHT = {"not judged": 0, "note": 1, "late": 2, "duplicate": 3, "not asked for": 4, "missing": 5}


def _how(marked: Sequence[Marked], about: Mapping[str, Any]) -> str:
    levels = Counter(each.sandbox for each in marked if each.sandbox)
    listed = "; ".join(f"{counted(count, 'notebook')} under “{level}”" for level, count in sorted(levels.items()))
    due = f" Due: {plain(str(about['due']))}." if about["due"] else ""
    return (
        f"<h2>How it was graded</h2>\n<p>{plain(str(about['sandbox']))}{plain(f' ({listed})' if listed else '')}</p>\n"
        f'<p class="soft">attn_course {plain(str(about["version"]))}, seed {about["seed"]}.{due}</p>'
    )


def _sums(own: Sequence[Marked]) -> tuple[int, int]:
    return sum(each.points for each in own), sum(each.max_points for each in own)
