"""Write what a teacher reads and a learning platform imports; the same marks give the same bytes."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attn_course.grading.classroom.class_page import class_page
from attn_course.grading.classroom.feedback import feedback_page
from attn_course.grading.classroom.hand_ins import Class
from attn_course.grading.classroom.lateness import SOURCE
from attn_course.grading.classroom.marks import Marked, grades_csv, percent, points_of, remarks, status_of, summary_csv
from attn_course.grading.classroom.store import Store, as_json

REPORT_VERSION = 2
_SHOWN = ("assignment", "notebook", "lesson", "status", "counts", "points", "max_points", "sandbox")  # of each notebook
_LONGEST_NAME_BYTES = 240  # file systems take 255


def write_outputs(store: Store, found: Class, marked: Sequence[Marked], *, about: Mapping[str, Any], times: Mapping[str, float]) -> None:
    """Write grades.csv, summary.csv, report.json, feedback/ and class.html.

    Parameters
    ----------
    store : Store
        The folder of the run.
    found : Class
        What was handed in.
    marked : sequence of Marked
        The marks.
    about : mapping
        Seed, version, lessons, due date and sandbox.
    times : mapping of str to float
        Seconds; they go to the entry "times" of report.json and nowhere else.
    """
    store.write("grades.csv", grades_csv(marked))
    store.write("summary.csv", summary_csv(marked, found.students))
    pages = dict(feedback_names(marked))
    for name, each in pages.items():
        store.write(name, feedback_page(each), durable=False)
    store.tidy("feedback", pages)
    store.write("class.html", class_page(found, marked, about))
    store.write("report.json", as_json(report(found, marked, about) | {"times": dict(times)}))


def feedback_names(marked: Sequence[Marked]) -> Iterator[tuple[str, Marked]]:
    """Yield the place of each feedback page below the folder of the run, and what it is about; no two are the same.

    Parameters
    ----------
    marked : sequence of Marked
        The marks; who handed in nothing gets no page.

    Yields
    ------
    name : str
        feedback/<student>/<notebook>.html, with nbgrader's folder of the assignment between if there was one.
    each : Marked
        The notebook.
    """
    taken: set[str] = set()
    for each in marked:
        if not each.notebook:
            continue
        stem = each.place[: -len(".ipynb")] if each.place.lower().endswith(".ipynb") else each.place
        path = "/".join(["feedback", *map(_shortened, stem.split("/"))])
        name = next(name for n in itertools.count(1) if (name := f"{path}{f' ({n})' if n > 1 else ''}.html").lower() not in taken)
        taken.add(name.lower())
        yield name, each


def _shortened(name: str) -> str:
    """A name that every file system takes: escapes can make one longer than it was."""
    if len(name.encode()) <= _LONGEST_NAME_BYTES:
        return name
    return name[:40] + "-" + hashlib.sha256(name.encode()).hexdigest()[:16]


def report(found: Class, marked: Sequence[Marked], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return report.json but for the times.

    Parameters
    ----------
    found, marked, about
        As for `write_outputs`.

    Returns
    -------
    report : dict
        Plain data.
    """
    return {
        "report_version": REPORT_VERSION,
        **about,
        "sandbox_levels": dict(sorted(Counter(each.sandbox for each in marked if each.sandbox).items())),
        "notes": list(found.notes),
        "students": [_student(student, [each for each in marked if each.student == student]) for student in found.students],
    }


def _student(student: str, own: Sequence[Marked]) -> dict[str, Any]:
    points, most = points_of(each for each in own if each.counts)
    return {
        "student": student,
        "points": points,
        "max_points": most,
        "percent": round(percent(points, most), 1),
        "notebooks": [
            {
                **{name: getattr(each, name) for name in _SHOWN},
                "handed_in": {"time": each.handed_in.isoformat(), "from": SOURCE} if each.handed_in is not None else None,
                "late_by_s": each.late_by.total_seconds() if each.late_by is not None else None,
                "remarks": [{"kind": kind, "text": text} for kind, text in remarks(each)],
                "tasks": [verdict.to_dict() | {"status": status_of(verdict, each)} for verdict in each.verdicts],
            }
            for each in own
        ],
    }
