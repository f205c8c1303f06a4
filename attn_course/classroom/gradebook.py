"""The tables in which learning platforms give marks out and take them back.

Canvas (lib/gradebook_exporter.rb and lib/gradebook_importer.rb of https://github.com/instructure/canvas-lms): Student (or LastName,
FirstName), ID, SIS User ID, SIS Login ID, Section, a column `Name (number)` for each assignment; a row "Points Possible"; a student is
known by ID. An empty cell changes nothing, EX is excused.

Moodle (mod/assign/gradingtable.php and mod/assign/feedback/offline of https://github.com/moodle/moodle; "Grade import",
https://docs.moodle.org/en/Grade_import): Identifier ("Participant 12345"), Full name, Email address, Status, Grade, Maximum Grade, Grade
can be changed, Last modified (submission), Last modified (grade), Feedback comments. Identifier, Grade and Last modified (grade) are
needed; a grade above the maximum is passed over, and so is one where Moodle has a later one than the worksheet says.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attn_course.classroom.roster import Student, is_id
from attn_course.classroom.tables import Table, TableError, cell, parse_table, plain, points, tidy, write_table
from attn_course.numbers import counted

_ASSIGNMENT = re.compile(r".+\([0-9]+\)", re.DOTALL)
_POINTS_POSSIBLE = "Points Possible"
_TEST_STUDENT = "Student, Test"  # Canvas's own
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_MOODLE = ("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Grade can be changed")
_MOODLE_END = ("Last modified (submission)", "Last modified (grade)", "Feedback comments")


@dataclass(frozen=True)
class Mark:
    """What a student gets, and who that is in the notes: `points` None leaves the cell as it is."""

    points: float | None
    max_points: float
    comment: str = ""
    student: str = ""


@dataclass(frozen=True)
class Gradebook:
    """A table of a platform, to be filled in.

    `platform`: "canvas" or "moodle". `table`: as it was given out. `students`: its students, with the platform's number.
    `numbers`: for each row the student's number; empty for rows of nobody. `column`: where the marks go. `maximum`: the column of
    the largest mark of each row; of Canvas the row of the largest marks. `comments`: where comments go.
    """

    platform: str
    table: Table
    students: tuple[Student, ...]
    numbers: tuple[str, ...]
    column: int
    maximum: int | None
    comments: int | None = None

    def ids(self, student: Student) -> Sequence[str]:
        """What of a student's row may be the id or the e-mail address on a teacher's roster."""
        line = self.table.lines[self.numbers.index(getattr(student, self.platform))][1]
        names = [plain(name).lower() for name in self.table.header]
        wanted = ("id", "sis user id", "sis login id", "integration id", "id number", "username", "email address")
        return [plain(line[names.index(name)]) for name in wanted if name in names]

    def late(self) -> dict[str, str]:
        """Return what a worksheet of Moodle says of late hand-ins, by number."""
        if self.platform != "moodle" or (status := _place(self.table, "Status")) is None:
            return {}
        said = {number: cells[status] for number, (_, cells) in zip(self.numbers, self.table.lines, strict=True) if number}
        return {number: f"Moodle says: {text.strip()}" for number, text in said.items() if re.search(r"\blate\b", text)}


def read_gradebook(text: str, name: str, assignment: str | None = None) -> Gradebook:
    """Return the gradebook that a platform gave out.

    `text`: Canvas's gradebook or Moodle's grading worksheet, in English. `name`: what errors call it. `assignment`: the column of
    Canvas's that is meant, with or without its number; not needed if there is one only. Raises TableError if it is neither, or
    the column cannot be told.
    """
    table = parse_table(text, name)
    if _place(table, "Identifier") is not None and _place(table, "Grade") is not None:
        return _worksheet(table)
    if table.header[0].strip() in ("Student", "LastName") and _place(table, "ID") is not None and _place(table, "Section") is not None:
        return _canvas(table, assignment)
    raise TableError(
        f"{name}, line 1: wanted a gradebook of Canvas (Student, ID, …, Section) or a grading worksheet of Moodle (Identifier, …, Grade), "
        f"exported in English; got {', '.join(table.header[:6])}"
    )


def blank(platform: str, students: Sequence[tuple[Student, str]], assignment: str, max_points: float) -> Gradebook:
    """Return a gradebook for students and their numbers, as the platform would take it, without marks."""
    if platform == "canvas":
        rows: list[tuple[str, ...]] = [(*_CANVAS, assignment), (f"    {_POINTS_POSSIBLE}", "", "", "", "", str(max_points))]
        rows += [(cell(student.name or student.id), number, "", "", cell(student.section), "") for student, number in students]
        return read_gradebook(write_table(rows), "canvas.csv", assignment)
    rows = [(*_MOODLE, *_MOODLE_END)]
    rows += [
        (f"Participant {number}", cell(student.name), cell(student.email), "", "", str(max_points), "Yes", "-", "-", "")
        for student, number in students
    ]
    return read_gradebook(write_table(rows), "moodle.csv")


def filled(gradebook: Gradebook, marks: Mapping[str, Mark]) -> tuple[str, list[str]]:
    """Return the table with marks, all else as it was, and what the teacher should know.

    `gradebook`: of the platform. `marks`: by the student's number. Where the platform has other points in all, marks are scaled
    to them; who is excused stays so.
    """
    rows = [list(cells) for _, cells in gradebook.table.lines]
    scaled: set[tuple[float, float]] = set()
    empty, excused, locked = [], [], []
    called = {number: mark.student or number for number, mark in marks.items()}
    locks = _place(gradebook.table, "Grade can be changed") if gradebook.platform == "moodle" else None
    most_of_all = _maximum(gradebook.table, gradebook.maximum, gradebook.column) if gradebook.platform == "canvas" else 0.0
    for place, (row, number) in enumerate(zip(rows, gradebook.numbers, strict=True)):
        mark = marks.get(number) if number else None
        if mark is None or mark.points is None:
            empty += [called.get(number, number)] if number else []
            continue
        if gradebook.platform == "canvas" and row[gradebook.column].strip().upper() in ("EX", "N/A"):
            excused.append(called[number])
            continue
        locked += [called[number]] if locks is not None and row[locks].strip() == "No" else []
        most = most_of_all if gradebook.platform == "canvas" else _maximum(gradebook.table, place, gradebook.maximum)
        if most and mark.max_points and most != mark.max_points:
            scaled.add((mark.max_points, most))
        share = most / mark.max_points if most and mark.max_points else 1.0
        row[gradebook.column] = str(tidy(mark.points * share))
        if gradebook.comments is not None and mark.comment:
            before = row[gradebook.comments].strip()
            row[gradebook.comments] = "; ".join(filter(None, (before, html.escape(mark.comment, quote=False))))
    file = f"{gradebook.platform}.csv"
    notes = [f"{file}: marks out of {tidy(ours)} are scaled to the platform's {tidy(theirs)} points" for ours, theirs in sorted(scaled)]
    for who, what in (
        (empty, "without a mark (nothing handed in, or not judged), for whom the platform keeps what it has"),
        (excused, "that the platform excuses or does not ask stay so"),
        (locked, "whose grade Moodle has locked, so that it will pass over them"),
        ([called[number] for number in set(marks) - set(gradebook.numbers)], "without a row"),
    ):
        if who:
            notes.append(f"{file}: {counted(len(who), 'student')} {what}: {', '.join(sorted(who))}")
    table = gradebook.table
    return write_table([table.header, *rows], delimiter=table.delimiter, marked=table.marked), notes


def _canvas(table: Table, assignment: str | None) -> Gradebook:
    number, section = (_place(table, name) or 0 for name in ("ID", "Section"))
    there = [place for place, name in enumerate(table.header) if place > section and (_ASSIGNMENT.fullmatch(name.strip()))]
    if assignment is None:
        named = there
    else:
        named = [place for place, name in enumerate(table.header) if place > section and plain(assignment) in _names(name)]
    if len(named) != 1:
        got = assignment or "no name"
        listed = ", ".join(repr(table.header[place]) for place in (named or there)[:20]) or "none"
        raise TableError(f"{table.name}, line 1: wanted one assignment, named by --assignment; got {got}, there are {listed}")
    mails, given = _place(table, "SIS Login ID"), _place(table, "FirstName")
    students, numbers, maximum = [], [], None
    for row, (line, cells) in enumerate(table.lines):
        name = f"{cells[0].strip()}, {cells[given].strip()}" if given is not None else cells[0].strip()
        if _POINTS_POSSIBLE in cells[0]:
            maximum = row
        is_student = bool(cells[number].strip()) and name != _TEST_STUDENT and row != maximum
        numbers.append(cells[number].strip() if is_student else "")
        if is_student:
            login = cells[mails].strip() if mails is not None else ""
            if not is_id(numbers[-1]):
                raise TableError(f"{table.name}, line {line}, column 'ID': wanted the number of a student; got {numbers[-1]!r}")
            mail = plain(login) if "@" in login else ""
            students.append(Student(numbers[-1], plain(name), mail, plain(cells[section]), canvas=numbers[-1]))
    _each_once(table, numbers)
    if maximum is not None:
        _maximum(table, maximum, named[0])
    return Gradebook("canvas", table, tuple(students), tuple(numbers), named[0], maximum)


def _worksheet(table: Table) -> Gradebook:
    identifier, grade = (_place(table, name) or 0 for name in ("Identifier", "Grade"))
    if _place(table, "Last modified (grade)") is None:
        raise TableError(f"{table.name}, line 1: wanted a column 'Last modified (grade)', without which Moodle takes no worksheet back")
    if _place(table, "Scale") is not None:
        raise TableError(f"{table.name}, line 1: the assignment is graded on a scale; wanted one that is graded in points")
    name, mail, maximum = (_place(table, each) for each in ("Full name", "Email address", "Maximum Grade"))
    students, numbers = [], []
    for row, (line, cells) in enumerate(table.lines):
        if maximum is not None:
            _maximum(table, row, maximum)
        found = re.search(r"([0-9]+)\s*$", cells[identifier])
        if not found:
            raise TableError(f"{table.name}, line {line}, column 'Identifier': wanted a participant's number; got {cells[identifier]!r}")
        numbers.append(found[1])
        address = plain(cells[mail]) if mail is not None else ""
        called = plain(cells[name]) if name is not None else ""
        students.append(Student(address if is_id(address) else found[1], called, address, moodle=found[1]))
    _each_once(table, numbers)
    if len({student.id for student in students}) < len(students):
        students = [Student(each.moodle, each.name, each.email, moodle=each.moodle) for each in students]
    return Gradebook("moodle", table, tuple(students), tuple(numbers), grade, maximum, _place(table, "Feedback comments"))


def _each_once(table: Table, numbers: Sequence[str]) -> None:
    for row, number in enumerate(numbers):
        if number and number in numbers[:row]:
            raise TableError(f"{table.name}, line {table.lines[row][0]}: wanted each student once; got {number} a second time")


def _maximum(table: Table, row: int | None, column: int | None) -> float:
    """The largest mark, in a cell; 0 if the table does not say. TableError if it says something that is no number of points."""
    if row is None or column is None:
        return 0.0
    line, cells = table.lines[row]
    try:
        return points(cells[column]) if cells[column].strip() not in ("", "-") else 0.0
    except ValueError:
        wanted = "the largest mark as a number that is read in one way only, such as 1000 or 1,000.00"
        raise TableError(f"{table.name}, line {line}, column {table.header[column]!r}: wanted {wanted}; got {cells[column]!r}") from None


def _names(column: str) -> set[str]:
    """How an assignment's column may be called: as it stands, without its number, or by the number alone."""
    name = plain(column)
    found = re.fullmatch(r"(.+?)\s*\(([0-9]+)\)", name, re.DOTALL)
    return {name, *(found.groups() if found else ())}


def _place(table: Table, column: str) -> int | None:
    names = [plain(name).lower() for name in table.header]
    return names.index(column.lower()) if column.lower() in names else None
