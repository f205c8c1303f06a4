"""From results to marks: which notebook counts, what is missing, and the tables grades.csv and summary.csv."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from attn_course.grading.classroom.hand_ins import Class, HandIn, assignment_place
from attn_course.grading.classroom.run import no_points
from attn_course.grading.classroom.store import NotebookResult
from attn_course.numbers import lesson_number, lesson_place
from attn_course.tasks.core import Verdict

GRADES = ("student", "assignment", "task", "points", "max_points", "status", "diagnosis")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Marked:
    """One notebook with its marks, or the lack of one.

    Attributes
    ----------
    student, assignment, notebook : str
        `notebook` is empty where none was handed in.
    lesson : str or None
        The lesson it answers.
    status : {"graded", "missing", "not judged", "duplicate", "not asked for"}
        The first three count.
    verdicts : tuple of Verdict
        One for each task of the chapter.
    notes : tuple of str
        What the teacher should know.
    late_by : timedelta or None
        How long after the due date it came.
    sandbox : str
        What confined it while it was graded.
    place : str
        Path of the notebook below the folder of all submissions.
    handed_in : datetime or None
        When it came, by its timestamp.txt.
    """

    student: str
    assignment: str
    notebook: str
    lesson: str | None
    status: str
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    late_by: timedelta | None = None
    sandbox: str = ""
    place: str = ""
    handed_in: datetime | None = None

    @property
    def counts(self) -> bool:
        """Whether its points belong to the student's sum."""
        return self.status in ("graded", "missing", "not judged")

    @property
    def points(self) -> int:
        """Points reached."""
        return sum(verdict.points for verdict in self.verdicts)

    @property
    def max_points(self) -> int:
        """Points to be had."""
        return sum(verdict.max_points for verdict in self.verdicts)


def mark(found: Class, results: Mapping[str, NotebookResult], *, lessons: Sequence[str], due: datetime | None = None) -> list[Marked]:
    """Return the marks of every student in every chapter.

    Parameters
    ----------
    found : Class
        What was handed in.
    results : mapping of str to NotebookResult
        By place; a notebook with a problem has none.
    lessons : sequence of str
        The lessons asked for.
    due : datetime, optional
        When notebooks were due.

    Returns
    -------
    marked : list of Marked
        Sorted by student, assignment, chapter. Of several notebooks of one student on one chapter, in whatever folders,
        the one with most points counts, the first of these.
    """
    usual = _usual_names(found.hand_ins, lessons)
    marked: list[Marked] = []
    for student in found.students:
        own = [_marked(hand_in, results, lessons, due) for hand_in in found.hand_ins if hand_in.student == student]
        marked += _best_counts(own)
        present = {each.lesson for each in own}
        marked += [
            Marked(student, usual[lesson], "", lesson, "missing", no_points(lesson, f"no notebook for chapter {lesson_number(lesson)}"))
            for lesson in lessons
            if lesson not in present
        ]
    return sorted(marked, key=lambda each: (each.student, *assignment_place(each.assignment), lesson_place(each.lesson), each.place))


def status_of(verdict: Verdict, marked: Marked) -> str:
    """Return the word for one task: passed, failed, unanswered, missing or not judged."""
    if marked.status in ("missing", "not judged"):
        return marked.status
    if verdict.message.startswith("not judged: "):
        return "not judged"
    return "passed" if verdict.passed else "unanswered" if " has no answer yet" in verdict.message[:120] else "failed"


def grades_csv(marked: Sequence[Marked]) -> str:
    """Return grades.csv: a row for each task, and one without points for whatever else is to be said of a notebook.

    Parameters
    ----------
    marked : sequence of Marked
        The marks of the class.

    Returns
    -------
    text : str
        UTF-8 with commas and line feeds, as RFC 4180 but for the carriage returns.
    """
    rows: list[list[Any]] = []
    for each in marked:
        if each.counts:
            rows += [[each.student, each.assignment, v.task, v.points, v.max_points, status_of(v, each), v.message] for v in each.verdicts]
        rows += [[each.student, each.assignment, "", "", "", word, text] for word, text in remarks(each)]
    return _csv(GRADES, rows)


def remarks(marked: Marked) -> list[tuple[str, str]]:
    """Return what is to be said of a notebook apart from its tasks, each with a word for its kind."""
    said = []
    name = f"{marked.notebook}: " if marked.notebook else ""
    if marked.status in ("not judged", "duplicate", "not asked for"):
        said.append((marked.status, ("" if marked.status == "not judged" else name) + "; ".join(marked.notes)))
    else:
        said += [("note", name + note) for note in marked.notes]
    if marked.late_by is not None:
        said.append(("late", f"{name}handed in {_span(marked.late_by)} after it was due, by its timestamp.txt"))
    return said


def summary_csv(marked: Sequence[Marked], students: Sequence[str]) -> str:
    """Return summary.csv: a row for each student with the points of each assignment, to be read by a learning platform.

    A chapter stands in the column of the assignment that most of the class handed it in for, whatever a student calls the folder.

    Parameters
    ----------
    marked : sequence of Marked
        The marks of the class.
    students : sequence of str
        Everyone, also who handed in nothing.

    Returns
    -------
    text : str
        As for `grades_csv`.
    """
    counting = [each for each in marked if each.counts and each.verdicts]
    usual = _usual_names(counting, {str(each.lesson) for each in counting})
    assignments = sorted(set(usual.values()), key=assignment_place)
    header = ["student", "points", "max_points", "percent", "remarks"]
    header += [f"{assignment} {what}" for assignment in assignments for what in ("points", "max_points")]
    rows = []
    for student in students:
        own = [each for each in marked if each.student == student and each.counts]
        points, most = points_of(own)
        words = Counter(each.status for each in marked if each.student == student and each.status not in ("graded", "not asked for"))
        words.update("late" for each in own if each.late_by is not None)
        row: list[Any] = [student, points, most, f"{percent(points, most):.1f}"]
        row.append("; ".join(f"{count} {word}" for word, count in sorted(words.items())))
        for assignment in assignments:
            here = [each for each in own if each.verdicts and usual[each.lesson] == assignment]
            row += points_of(here) if here else ("", "")
        rows.append(row)
    return _csv(header, rows)


def points_of(own: Iterable[Marked]) -> tuple[int, int]:
    """Return the points reached in all of these, and the points to be had."""
    kept = list(own)
    return sum(each.points for each in kept), sum(each.max_points for each in kept)


def percent(points: int, max_points: int) -> float:
    """Return the share of the points reached, in percent; 0 where there are none."""
    return 100.0 * points / max_points if max_points else 0.0


def _usual_names(handed_in: Sequence[HandIn] | Sequence[Marked], lessons: Iterable[str]) -> dict[str | None, str]:
    """What most call the assignment on each chapter, the first name of these; the lesson's where nobody has handed it in."""
    usual: dict[str | None, str] = {}
    for lesson in lessons:
        names = Counter(sorted(each.assignment for each in handed_in if each.lesson == lesson))
        usual[lesson] = next((name for name, _ in names.most_common(1)), "") or lesson
    return usual


def _marked(hand_in: HandIn, results: Mapping[str, NotebookResult], lessons: Sequence[str], due: datetime | None) -> Marked:
    late_by = hand_in.handed_in - due if due and hand_in.handed_in and hand_in.handed_in > due else None
    who = (hand_in.student, hand_in.assignment, hand_in.notebook, hand_in.lesson)
    if hand_in.lesson is not None and hand_in.lesson not in lessons:
        return Marked(*who, "not asked for", notes=(f"chapter {lesson_number(hand_in.lesson)} is not asked for",), place=hand_in.place)
    result = results.get(hand_in.place)
    problem = hand_in.problem or (result.problem if result else "it has no result")
    if problem or result is None:
        verdicts = no_points(hand_in.lesson, f"not judged: {hand_in.notebook} {problem}" if hand_in.problem else f"not judged: {problem}")
        why = f"{hand_in.notebook}{'' if hand_in.problem else ':'} {problem}"
        return Marked(*who, "not judged", verdicts, (why, *hand_in.notes), late_by, place=hand_in.place, handed_in=hand_in.handed_in)
    return Marked(*who, "graded", result.verdicts, result.notes, late_by, result.sandbox, hand_in.place, hand_in.handed_in)


def _best_counts(own: Sequence[Marked]) -> list[Marked]:
    """Let one notebook count for each chapter; the others become duplicates."""
    best: dict[str | None, Marked] = {}
    for each in own:
        if each.counts and each.lesson is not None and (each.lesson not in best or _rank(each) > _rank(best[each.lesson])):
            best[each.lesson] = each
    kept = []
    for each in own:
        counted = best.get(each.lesson)
        if each.counts and counted is not None and each is not counted:
            where = counted.place.partition("/")[2]  # below the student's folder
            why = f"{where} counts for chapter {lesson_number(each.lesson)}; this one has {each.points} of {each.max_points} points"
            each = replace(each, status="duplicate", notes=(why, *each.notes))
        kept.append(each)
    return kept


def _rank(each: Marked) -> tuple[int, bool]:
    return each.points, each.status == "graded"


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([[cell(value) for value in row] for row in (header, *rows)])
    return stream.getvalue()


def cell(value: Any) -> Any:
    """Return a value for a CSV cell: text that a spreadsheet would run as a formula gets an apostrophe before it.

    Examples
    --------
    >>> cell("=1+1"), cell("anna"), cell(-1)
    ("'=1+1", 'anna', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value


def _span(late: timedelta) -> str:
    minutes = int(late.total_seconds() // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return " ".join(parts) or "less than a minute"
