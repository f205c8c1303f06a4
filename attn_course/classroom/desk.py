"""What a teacher lays down besides the hand-ins: who is in the class, other points, decisions on single students, the platform's table.

Points are a CSV table with the columns `task` and `points`. Decisions are one with `student`, `what`, `points`, `comment`, `due`: `what` is
a task ("stable-softmax" or its number), a chapter ("softmax", its number or its notebook) or, empty, all chapters; at least one of the
others says something. Points are what counts in place of the grader's, `due` is an extension, which holds for chapters.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from attn_course.classroom.gradebook import Gradebook, read_gradebook
from attn_course.classroom.roster import Roster, Student, merged, read_roster
from attn_course.classroom.tables import Row, TableError, parse_table, tidy, uncell
from attn_course.numbers import lesson_in, lesson_number, lesson_of, names, task_number
from attn_course.tasks import registry

TABLES = ("roster", "gradebook", "overrides", "points")
_DECISION = ("student", "what", "points", "comment", "due")


@dataclass(frozen=True)
class Decision:
    """What the teacher says of a student's work.

    `task`, `lesson`: what it is about: a task and its lesson, a lesson, or with both empty all lessons. `points`: what counts, in
    place of the grader's points. `comment`: for the student. `due`: the extension.
    """

    student: str
    task: str
    lesson: str
    points: float | None = None
    comment: str = ""
    due: datetime | None = None


@dataclass(frozen=True)
class Papers:
    """The tables as they came, to be kept with the run: text and name of each, and what else is laid down.

    `tables`: for some of `TABLES` their names and texts. `assignment`: the column of Canvas's gradebook. `anonymous`: whether
    pages name nobody.
    """

    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    assignment: str | None = None
    anonymous: bool = False

    def kept(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "tables": {name: list(each) for name, each in self.tables.items()},
            "assignment": self.assignment,
            "anonymous": self.anonymous,
        }

    def over(self, before: Mapping[str, Any]) -> "Papers":
        """Return what holds now, of what was laid down earlier: what is said anew replaces what was said."""
        tables = {name: (str(each[0]), str(each[1])) for name, each in before.get("tables", {}).items()}
        assignment = self.assignment if self.assignment is not None else before.get("assignment")
        return Papers(tables | dict(self.tables), assignment, self.anonymous or bool(before.get("anonymous")))


@dataclass(frozen=True)
class Desk:
    """What the tables say.

    `roster`: who is in the class: the teacher's roster, else the students of the gradebook. `gradebook`: the table to fill in.
    `worth`: points of some tasks, in place of the course's. `rows`: the decisions, with where they stand.
    """

    roster: Roster | None = None
    gradebook: Gradebook | None = None
    worth: Mapping[str, float] = field(default_factory=dict)
    rows: tuple[tuple[Row, Decision], ...] = ()

    def decisions(self, students: Collection[str], most: Mapping[str, float]) -> tuple[Decision, ...]:
        """Return the decisions, once it is known who is in the class, and what is asked.

        `students`: everyone. `most`: the points of each task that is asked for. Raises TableError if one is about a student who
        is not there, about what is not asked, or gives more points than there are.
        """
        lessons = {task: str(lesson_of("tasks", task)) for task in most}
        seen: dict[tuple[str, str, str], int] = {}
        found = []
        for row, decision in self.rows:
            student = decision.student if decision.student in students else uncell(decision.student)
            if student not in students:
                row.wrong("student", "a student of this class")
            if decision.lesson and decision.lesson not in lessons.values():
                asked = ", ".join(map(lesson_number, dict.fromkeys(lessons.values())))
                row.wrong("what", f"a chapter that is asked for ({asked}) or one of its tasks")
            if decision.task and decision.task not in most:
                row.wrong("what", "a task that is asked for")
            there = sum(points for task, points in most.items() if decision.task in ("", task) and lessons[task] == decision.lesson)
            if decision.points is not None and decision.points > there:
                row.wrong("points", f"0 to {tidy(there)}, what there is to be had")
            key = student, decision.task, decision.lesson
            if key in seen:
                row.wrong("what", f"one decision on the same, not a second after line {seen[key]}")
            seen[key] = row.line
            found.append(replace(decision, student=student))
        return tuple(found)


def read_desk(papers: Papers) -> Desk:
    """Read all tables.

    Raises TableError if one cannot be used.
    """
    roster = read_roster(papers.tables["roster"][1], papers.tables["roster"][0]) if "roster" in papers.tables else None
    gradebook = None
    if "gradebook" in papers.tables:
        name, text = papers.tables["gradebook"]
        gradebook = read_gradebook(text, name, papers.assignment)
        if roster is None:
            roster = Roster(gradebook.students)
        else:
            roster = merged(roster, gradebook.students, gradebook.platform, gradebook.ids)
    worth = dict(_worth(papers.tables["points"])) if "points" in papers.tables else {}
    rows = tuple(_decisions(papers.tables["overrides"])) if "overrides" in papers.tables else ()
    return Desk(roster, gradebook, worth, rows)


def find_task(text: str) -> str | None:
    """Return the id of the task that a text names, by its id or its number."""
    ids = [task for slug in registry.lessons() for task in names("tasks", slug)]
    return next((task for task in ids if text in (task, task_number(task))), None)


def find_lesson(text: str) -> str | None:
    """Return the slug of the lesson with tasks that a text names, by its slug, its number or the name of its notebook."""
    name = lesson_in(text) if text.endswith(".ipynb") else text
    return next((slug for slug in registry.lessons() if name in (slug, lesson_number(slug))), None)


def _worth(paper: tuple[str, str]) -> Iterator[tuple[str, float]]:
    name, text = paper
    lines: dict[str, int] = {}
    for row in parse_table(text, name).rows(needed=["task", "points"], known=["task", "points"]):
        task = find_task(row["task"]) or row.wrong("task", "a task, such as stable-softmax or its number")
        if task in lines:
            row.wrong("task", f"each task once, not again after line {lines[task]}")
        lines[task] = row.line
        points = row.points("points")
        yield task, points if points is not None else row.wrong("points", "points, such as 3 or 2.5")


def _decisions(paper: tuple[str, str]) -> Iterator[tuple[Row, Decision]]:
    name, text = paper
    for row in parse_table(text, name).rows(needed=["student", "what"], known=_DECISION):
        what = row["what"]
        task = find_task(what) or ""
        lesson = (lesson_of("tasks", task) if task else find_lesson(what)) or ""
        points, due = row.points("points"), row.time("due")
        if not row["student"]:
            row.wrong("student", "a student of this class")
        if what and not lesson:
            row.wrong("what", "a task (stable-softmax or its number), a chapter (softmax or its number), or nothing for all chapters")
        if points is not None and not what:
            row.wrong("what", "the task or the chapter that the points are for")
        if due is not None and task:
            row.wrong("due", "no extension for a single task: notebooks are due, not tasks")
        if points is None and due is None and not row["comment"]:
            raise TableError(f"{name}, line {row.line}: wanted points, a comment or a due time; got none of them")
        yield row, Decision(row["student"], task, lesson, points, row["comment"], due)


def due_of(
    student: str, lesson: str | None, decisions: Sequence[Decision], roster: Mapping[str, Student], due: datetime | None
) -> datetime | None:
    """Return when a notebook is due: by an extension for its chapter, one for all, the roster, or as for everybody."""
    own = {each.lesson: each.due for each in decisions if each.student == student and each.due}
    return own.get(lesson or "") or own.get("") or (roster[student].due if student in roster else None) or due
