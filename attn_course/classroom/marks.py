"""From results to marks: which notebook counts, what is missing, and the tables grades.csv and summary.csv."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from attn_course.classroom.desk import Decision, due_of
from attn_course.classroom.hand_ins import Class, HandIn, assignment_place
from attn_course.classroom.roster import Student
from attn_course.classroom.run import no_points
from attn_course.classroom.store import NotebookResult
from attn_course.classroom.tables import cell, tidy, write_table
from attn_course.numbers import lesson_number, lesson_place
from attn_course.tasks.core import Verdict

GRADES = ("student", "assignment", "task", "points", "max_points", "status", "diagnosis")


@dataclass(frozen=True)
class Decided:
    """What the teacher decided about a notebook or one of its tasks, and the points that the grader gave.

    `before`: the grader's points.
    """

    decision: Decision
    before: float

    def __str__(self) -> str:
        points, due = self.decision.points, self.decision.due
        parts = [] if points is None else [f"{tidy(points)} in place of {tidy(self.before)} points"]
        parts += [f"due {due:%Y-%m-%d %H:%M} UTC"] if due else []
        parts += [self.decision.comment] if self.decision.comment else []
        return f"the teacher's decision: {'; '.join(parts)}"


@dataclass(frozen=True)
class Marked:
    """One notebook with its marks, or the lack of one.

    `student`, `assignment`, `notebook`: `notebook` is empty where none was handed in.
    `status`: "graded", "missing", "not judged", "duplicate" or "not asked for"; the first three count.
    `verdicts`: one for each task of the chapter.
    `notes`: what the teacher should know.
    `late_by`: how long after the due date it came.
    `sandbox`: what confined it while it was graded.
    `place`: path of the notebook below the folder of all submissions.
    `name`: the student's name, if a roster says it.
    `late`: what a learning platform says of its lateness.
    `decided`: what the teacher decided about it.
    `handed_in`: when it came, by its timestamp.txt.
    `answers`: what was handed in for each task, by its id.
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
    name: str = ""
    late: str = ""
    decided: tuple[Decided, ...] = ()
    handed_in: datetime | None = None
    answers: Mapping[str, str] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """The student, by name and id if both are known."""
        return f"{self.name} ({self.student})" if self.name and self.name != self.student else self.student

    @property
    def is_late(self) -> bool:
        """Whether it came after it was due, or a platform says so."""
        return self.late_by is not None or bool(self.late)

    @property
    def counts(self) -> bool:
        """Whether its points belong to the student's sum."""
        return self.status in ("graded", "missing", "not judged")

    @property
    def points(self) -> float:
        """Points reached, or what the teacher decided on the whole."""
        whole = [each.decision.points for each in self.decided if not each.decision.task and each.decision.points is not None]
        return whole[0] if whole else tidy(sum(verdict.points for verdict in self.verdicts))

    @property
    def max_points(self) -> float:
        """Points to be had."""
        return tidy(sum(verdict.max_points for verdict in self.verdicts))

    def decided_on(self, task: str) -> Decided | None:
        """Return what the teacher decided about a task."""
        return next((each for each in self.decided if each.decision.task == task), None)


def mark(
    found: Class,
    results: Mapping[str, NotebookResult],
    *,
    lessons: Sequence[str],
    due: datetime | None = None,
    worth: Mapping[str, float] | None = None,
    decisions: Sequence[Decision] = (),
    tasks: Collection[str] | None = None,
) -> list[Marked]:
    """Return the marks of every student in every chapter.

    `results`: by place; a notebook with a problem has none. `due`: when notebooks were due, unless the roster or a decision says
    otherwise. `worth`: points of some tasks, in place of the course's. `decisions`: the teacher's, about students of this class.
    `tasks`: the tasks asked for; all by default.

    They are sorted by student, assignment, chapter. Of several notebooks of one student on one chapter, in whatever folders, the
    one with most points counts, the first of these.
    """
    usual = _usual_names(found.hand_ins, lessons)
    marked: list[Marked] = []
    for student in found.students:
        name = found.roster[student].name if student in found.roster else ""
        own = []
        for hand_in in (each for each in found.hand_ins if each.student == student):
            when = due_of(student, hand_in.lesson, decisions, found.roster, due)
            own.append(_marked(hand_in, results, lessons, when, tasks, is_own=when != due))
        present = {each.lesson for each in own}
        for lesson in lessons:
            if lesson not in present:
                verdicts = no_points(lesson, f"no notebook for chapter {lesson_number(lesson)}", tasks)
                own.append(Marked(student, usual[lesson], "", lesson, "missing", verdicts))
        own = [replace(each, name=name, verdicts=tuple(_worth(verdict, worth or {}) for verdict in each.verdicts)) for each in own]
        here = [each for each in decisions if each.student == student]
        marked += [_decided(each, here) if each.counts else each for each in _best_counts(own)]
    return sorted(marked, key=lambda each: (each.student, *assignment_place(each.assignment), lesson_place(each.lesson), each.place))


def _worth(verdict: Verdict, worth: Mapping[str, float]) -> Verdict:
    """A verdict in the points that the teacher gives for the task."""
    most = worth.get(verdict.task)
    if most is None:
        return verdict
    return replace(verdict, points=tidy(verdict.points * most / verdict.max_points), max_points=tidy(most))


def _decided(marked: Marked, decisions: Sequence[Decision]) -> Marked:
    """A notebook with what the teacher decided about it."""
    tasks = {verdict.task: verdict.points for verdict in marked.verdicts}
    decided = [Decided(each, tasks[each.task]) for each in decisions if each.task in tasks]
    points = {each.decision.task: each.decision.points for each in decided}
    verdicts = tuple(
        replace(verdict, points=given) if (given := points.get(verdict.task)) is not None else verdict for verdict in marked.verdicts
    )
    whole = tidy(sum(verdict.points for verdict in verdicts))
    decided += [Decided(each, whole) for each in decisions if not each.task and each.lesson in ("", marked.lesson)]
    return replace(marked, verdicts=verdicts, decided=tuple(decided))


def status_of(verdict: Verdict, marked: Marked) -> str:
    """Return the word for one task: decided (by the teacher), passed, partly, failed, unanswered, missing or not judged."""
    decided = marked.decided_on(verdict.task)
    if decided is not None and decided.decision.points is not None:
        return "decided"
    if marked.status in ("missing", "not judged"):
        return marked.status
    if verdict.message.startswith("not judged: "):
        return "not judged"
    if verdict.passed or verdict.points:
        return "passed" if verdict.passed else "partly"
    return "unanswered" if " has no answer yet" in verdict.message[:120] else "failed"


def grades_csv(marked: Sequence[Marked]) -> str:
    """Return grades.csv: a row for each task, and one without points for whatever else is to be said of a notebook.

    It is UTF-8 with commas and line feeds, as RFC 4180 but for the carriage returns.
    """
    rows: list[list[Any]] = []
    for each in marked:
        if each.counts:
            for verdict in each.verdicts:
                said = filter(None, (str(each.decided_on(verdict.task) or ""), verdict.message))
                points = verdict.points, verdict.max_points
                rows.append([each.student, each.assignment, verdict.task, *points, status_of(verdict, each), "; ".join(said)])
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
    if marked.late:
        said.append(("late", f"{name}{marked.late}"))
    return said + [("decision", str(each)) for each in marked.decided if not each.decision.task]


def summary_csv(
    marked: Sequence[Marked], students: Sequence[str], roster: Mapping[str, Student] | None = None, aliases: Mapping[str, str] | None = None
) -> str:
    """Return summary.csv: a row for each student with the points of each assignment, to be read by a learning platform.

    A chapter stands in the column of the assignment that most of the class handed it in for, whatever a student calls the folder.

    `students`: everyone, also who handed in nothing. `roster`: what adds name, e-mail address and section. `aliases`: what pages
    call them. It is written as `grades_csv` writes it.
    """
    counting = [each for each in marked if each.counts and each.verdicts]
    usual = _usual_names(counting, {str(each.lesson) for each in counting})
    assignments = sorted(set(usual.values()), key=assignment_place)
    header = ["student", *(("name", "email", "section") if roster else ()), *(("alias",) if aliases else ())]
    header += ["points", "max_points", "percent", "remarks"]
    header += [f"{assignment} {what}" for assignment in assignments for what in ("points", "max_points")]
    rows = []
    for student in students:
        own = [each for each in marked if each.student == student and each.counts]
        points, most = points_of(own)
        words = Counter(each.status for each in marked if each.student == student and each.status not in ("graded", "not asked for"))
        words.update("late" for each in own if each.is_late)
        words.update("decision" for each in own for decided in each.decided)
        known = (roster or {}).get(student, Student(student))
        row: list[Any] = [student, *((known.name, known.email, known.section) if roster else ()), *((aliases[student],) if aliases else ())]
        row += [points, most, f"{percent(points, most):.1f}"]
        row.append("; ".join(f"{count} {word}" for word, count in sorted(words.items())))
        for assignment in assignments:
            here = [each for each in own if each.verdicts and usual[each.lesson] == assignment]
            row += points_of(here) if here else ("", "")
        rows.append(row)
    return _csv(header, rows)


def points_of(own: Iterable[Marked]) -> tuple[float, float]:
    """Return the points reached in all of these, and the points to be had."""
    kept = list(own)
    return tidy(sum(each.points for each in kept)), tidy(sum(each.max_points for each in kept))


def percent(points: float, max_points: float) -> float:
    """Return the share of the points reached, in percent; 0 where there are none."""
    return 100.0 * points / max_points if max_points else 0.0


def _usual_names(handed_in: Sequence[HandIn] | Sequence[Marked], lessons: Iterable[str]) -> dict[str | None, str]:
    """What most call the assignment on each chapter, the first name of these; the lesson's where nobody has handed it in."""
    usual: dict[str | None, str] = {}
    for lesson in lessons:
        names = Counter(sorted(each.assignment for each in handed_in if each.lesson == lesson))
        usual[lesson] = next((name for name, _ in names.most_common(1)), "") or lesson
    return usual


def _marked(
    hand_in: HandIn,
    results: Mapping[str, NotebookResult],
    lessons: Sequence[str],
    due: datetime | None,
    tasks: Collection[str] | None,
    *,
    is_own: bool,
) -> Marked:
    """A notebook with its verdicts; `is_own`: it is not due with all others."""
    late_by = hand_in.handed_in - due if due and hand_in.handed_in and hand_in.handed_in > due else None
    late = f"{hand_in.late}; it was due {due:%Y-%m-%d %H:%M} UTC" if hand_in.late and due and is_own else hand_in.late
    who = (hand_in.student, hand_in.assignment, hand_in.notebook, hand_in.lesson)
    if hand_in.lesson is not None and hand_in.lesson not in lessons:
        return Marked(*who, "not asked for", notes=(f"chapter {lesson_number(hand_in.lesson)} is not asked for",), place=hand_in.place)
    result = results.get(hand_in.place)
    problem = hand_in.problem or (result.problem if result else "it has no result")
    if problem or result is None:
        verdicts = no_points(hand_in.lesson, f"not judged: {f'{hand_in.notebook} ' if hand_in.problem else ''}{problem}", tasks)
        why = f"{hand_in.notebook}{'' if hand_in.problem else ':'} {problem}"
        marked = Marked(*who, "not judged", verdicts, (why, *hand_in.notes))
    else:
        marked = Marked(*who, "graded", result.verdicts, result.notes, sandbox=result.sandbox, answers=result.answers)
    return replace(marked, late_by=late_by, place=hand_in.place, late=late, handed_in=hand_in.handed_in)


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


def _rank(each: Marked) -> tuple[float, bool]:
    return each.points, each.status == "graded"


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return write_table([[cell(value) for value in row] for row in (header, *rows)])


def _span(late: timedelta) -> str:
    minutes = int(late.total_seconds() // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return " ".join(parts) or "less than a minute"
