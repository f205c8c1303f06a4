"""class.html: how the class did, which tasks were hard, which mistakes were common, and what the teacher should look at."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from attn_course.grading.class_marks import Marked, percent, remarks
from attn_course.grading.page import page, plain
from attn_course.grading.submissions import Class

if TYPE_CHECKING:
    from attn_course.figures.base import Picture

_MOST_BARS = 10


def class_page(found: Class, marked: Sequence[Marked], about: Mapping[str, Any]) -> str:
    """Return the report on the class.

    Parameters
    ----------
    found : Class
        What was handed in.
    marked : sequence of Marked
        The marks.
    about : mapping
        Seed, version, chapters, due date and sandbox.

    Returns
    -------
    page : str
        HTML that stands alone.
    """
    shares = [percent(*_sums(list(own))) for _, own in groupby((each for each in marked if each.counts), key=lambda each: each.student)]
    chapters = ", ".join(map(str, about["chapters"]))
    counted = Counter(each.status for each in marked)
    middle = f"median {median(shares):.0f} % of the points" if shares else "no marks"
    parts = [
        f"<h1>Class report: chapter{'s' if len(about['chapters']) > 1 else ''} {chapters}</h1>",
        f'<p class="soft">{len(found.students)} students · {counted["graded"]} notebooks graded · {middle}</p>',
        *_figures(marked, shares),
        _notes(found, marked),
        _how(marked, about),
    ]
    return page(f"Class report, chapter {chapters}", "\n".join(parts))


def hardest(marked: Sequence[Marked], most: int = _MOST_BARS) -> list[tuple[str, float]]:
    """Return the tasks that the fewest passed, each with the percentage that did; a missing notebook passes nothing.

    Parameters
    ----------
    marked : sequence of Marked
        The marks.
    most : int, optional
        How many to return at most.

    Returns
    -------
    tasks : list of (str, float)
        The hardest first, ties in the order of the tasks.
    """
    asked, passed = Counter[tuple[int, int, str]](), Counter[tuple[int, int, str]]()
    for verdict in (verdict for each in marked if each.counts for verdict in each.verdicts):
        chapter, number = map(int, verdict.task.split("."))
        key = (chapter, number, f"{verdict.task} {verdict.title}")
        asked[key] += 1
        passed[key] += verdict.passed
    order = sorted(asked, key=lambda key: (passed[key] / asked[key], key))
    return [(key[2], percent(passed[key], asked[key])) for key in order[:most]]


def mistakes(marked: Sequence[Marked], most: int = _MOST_BARS) -> list[tuple[str, int]]:
    """Return the known mistakes that were made most often, each with its task and the number of notebooks.

    Parameters
    ----------
    marked, most
        As for `hardest`.

    Returns
    -------
    mistakes : list of (str, int)
        The commonest first, ties by name.
    """
    made = Counter(
        f"{verdict.task} {verdict.mistake}"
        for each in marked
        if each.counts
        for verdict in each.verdicts
        if verdict.mistake and not verdict.passed
    )
    return sorted(made.items(), key=lambda item: (-item[1], item[0]))[:most]


def _figures(marked: Sequence[Marked], shares: Sequence[float]) -> list[str]:
    from attn_course.figures import class_report as draw

    parts = []
    if shares:
        parts += ["<h2>Distribution of marks</h2>", _figure(draw.marks_distribution(shares))]
    if tasks := hardest(marked):
        parts += ["<h2>Hardest tasks</h2>", _figure(draw.hardest_tasks(*zip(*tasks, strict=True)))]
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
    rows = [(each.student, each.assignment, kind, text) for each in marked for kind, text in remarks(each)]
    rows += [
        (each.student, each.assignment, "missing", f"no notebook for chapter {each.chapter}") for each in marked if each.status == "missing"
    ]
    rows += [("", "", "note", note) for note in found.notes]
    if not rows:
        return "<h2>To look at</h2>\n<p>Nothing: every notebook was there, in time, and could be judged.</p>"
    cells = ["".join(f"<td>{plain(text)}</td>" for text in row) for row in sorted(rows, key=lambda row: (_WEIGHT.get(row[2], 9), row))]
    head = "".join(f"<th>{name}</th>" for name in ("Student", "Assignment", "Kind", "What"))
    return f"<h2>To look at</h2>\n<table><tr>{head}</tr>\n" + "\n".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


_WEIGHT = {"not judged": 0, "note": 1, "late": 2, "duplicate": 3, "not asked for": 4, "missing": 5}


def _how(marked: Sequence[Marked], about: Mapping[str, Any]) -> str:
    levels = Counter(each.sandbox for each in marked if each.sandbox)
    listed = "; ".join(f"{count} notebooks under “{level}”" for level, count in sorted(levels.items()))
    due = f" Due: {plain(str(about['due']))}." if about["due"] else ""
    return (
        f"<h2>How it was graded</h2>\n<p>{plain(str(about['sandbox']))}{plain(f' ({listed})' if listed else '')}</p>\n"
        f'<p class="soft">attn_course {plain(str(about["version"]))}, seed {about["seed"]}.{due}</p>'
    )


def _sums(own: Sequence[Marked]) -> tuple[int, int]:
    return sum(each.points for each in own), sum(each.max_points for each in own)
