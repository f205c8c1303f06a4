"""Write what a teacher reads and a learning platform imports; the same marks give the same bytes."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from attn_course.classroom.anonymous import aliases_of, without_names
from attn_course.classroom.class_page import class_page
from attn_course.classroom.desk import Desk
from attn_course.classroom.feedback import feedback_page
from attn_course.classroom.gradebook import Mark, blank, filled
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.lateness import SOURCE
from attn_course.classroom.marks import Marked, grades_csv, percent, points_of, remarks, status_of, summary_csv
from attn_course.classroom.roster import Student
from attn_course.classroom.store import Store, as_json
from attn_course.numbers import lesson_number, task_number

REPORT_VERSION = 2
_SHOWN = ("assignment", "notebook", "lesson", "status", "counts", "points", "max_points", "sandbox")  # of each notebook
_LONGEST_NAME_BYTES = 240  # file systems take 255


def write_outputs(
    store: Store,
    found: Class,
    marked: Sequence[Marked],
    *,
    about: Mapping[str, Any],
    times: Mapping[str, float],
    tables: Mapping[str, str],
    anonymous: bool = False,
    site: str = "",
) -> None:
    """Write grades.csv, summary.csv, report.json, the tables of learning platforms, feedback/ and class.html.

    `store`: the folder of the run. `about`: seed, version, lessons, due date and sandbox. `times`: seconds; they go to the entry
    "times" of report.json and nowhere else. `tables`: tables of learning platforms, by file name. `anonymous`: whether the pages
    name nobody; summary.csv then says who is who. `site`: the address that feedback links to, or nothing.
    """
    aliases = aliases_of(found.students, about["seed"]) if anonymous else {}
    store.write("grades.csv", grades_csv(marked))
    store.write("summary.csv", summary_csv(marked, found.students, found.roster, aliases))
    for name, text in tables.items():
        store.write(name, text)
    on_pages = without_names(found, marked, aliases) if anonymous else (found, marked)
    pages = dict(feedback_names(on_pages[1]))
    for name, each in pages.items():
        store.write(name, feedback_page(each, site), durable=False)
    store.tidy("feedback", pages)
    store.write("class.html", class_page(*on_pages, about, pages))
    store.write("report.json", as_json(report(found, marked, about) | {"times": dict(times)}))


def platform_tables(
    desk: Desk, found: Class, marked: Sequence[Marked], lessons: Sequence[str], assignment: str | None
) -> tuple[dict[str, str], list[str]]:
    """Return the tables that learning platforms take back, by file name, and what the teacher should know of them.

    The gradebook of the desk is filled in; without one, a table is made for each platform that gave out hand-ins.
    """
    of_platform = {student: (owner.platform, owner.number) for student, owner in found.owners.items()}
    books = [desk.gradebook] if desk.gradebook else []
    if not books:
        _, most = points_of({each.lesson: each for each in marked if each.counts}.values())
        for platform in sorted({platform for platform, number in of_platform.values() if number}):
            known = {student: getattr(found.roster.get(student), platform, "") for student in found.students}
            numbers = {student: known[student] or _number(of_platform.get(student), platform) for student in found.students}
            rows = [
                (found.roster.get(student, Student(student, found.owners[student].name if student in found.owners else "")), number)
                for student, number in numbers.items()
                if number
            ]
            title = assignment or f"attn-course, chapter {', '.join(map(lesson_number, lessons))}"
            books.append(blank(platform, rows, title, most))
    tables, notes = {}, []
    for book in books:
        marks = {}
        for student in found.students:
            number = getattr(found.roster.get(student), book.platform, "") or _number(of_platform.get(student), book.platform)
            own = [each for each in marked if each.student == student and each.counts]
            if number:
                marks[number] = replace(_mark(own), student=student)
            elif any(each.notebook for each in own):
                notes.append(f"{book.platform}.csv: {student} has no number there, so the marks stand in summary.csv only")
        tables[f"{book.platform}.csv"], more = filled(book, marks)
        notes += more
    return tables, notes


def _number(known: tuple[str, str] | None, platform: str) -> str:
    return known[1] if known and known[0] == platform else ""


def _mark(own: Sequence[Marked]) -> Mark:
    """What a platform is told of a student: no points where nothing was handed in or something could not be judged, unless decided."""
    points, most = points_of(own)
    decided = {each.lesson for each in own for one in each.decided if one.decision.points is not None}
    open_ones = [each for each in own if each.status == "not judged" and each.lesson not in decided]
    has_mark = (any(each.notebook for each in own) or bool(decided)) and not open_ones
    said = []
    for each in own:
        lost = [task_number(verdict.task) for verdict in each.verdicts if verdict.points < verdict.max_points]
        missed = f" (points missing in {', '.join(lost)})" if lost and each.status == "graded" else ""
        said.append(f"chapter {lesson_number(each.lesson)}: {each.points} of {each.max_points} points{missed}")
        said += [f"{task_number(one.decision.task)}: {one}" if one.decision.task else str(one) for one in each.decided]
    return Mark(points if has_mark else None, most, "; ".join(said))


def feedback_names(marked: Sequence[Marked]) -> Iterator[tuple[str, Marked]]:
    """Yield the place of each feedback page below the folder of the run, and what it is about; no two are the same.

    `marked`: the marks; who handed in nothing gets no page. Returns `name`: feedback/<student>/<notebook>.html, with nbgrader's
    folder of the assignment between if there was one.
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

    `found`, `marked`, `about`: as for `write_outputs`.
    """
    return {
        "report_version": REPORT_VERSION,
        **about,
        "sandbox_levels": dict(sorted(Counter(each.sandbox for each in marked if each.sandbox).items())),
        "notes": list(found.notes),
        "students": [
            _student(student, [each for each in marked if each.student == student], found.roster.get(student)) for student in found.students
        ],
    }


def _student(student: str, own: Sequence[Marked], known: Student | None) -> dict[str, Any]:
    points, most = points_of(each for each in own if each.counts)
    return {
        "student": student,
        **({"name": known.name, "email": known.email, "section": known.section} if known else {}),
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
