"""Who is in the class: the teacher's table of students, and whose hand-in is whose.

A roster is a CSV table with a column `id` and, if there are, `name`, `email`, `section`, `due` (a date of one's own), `canvas` and `moodle`
(the numbers that these platforms put into the names of downloads). Other columns are passed over.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from attn_course.classroom.tables import TableError, parse_table, plain

PLATFORMS = ("canvas", "moodle")
COLUMNS = ("id", "name", "email", "section", "due", *PLATFORMS)


@dataclass(frozen=True)
class Student:
    """Someone on the roster.

    `id`: what all tables call the student. `name`, `email`, `section`: empty if not known. `due`: when notebooks of this student
    are due, if not with all others. `canvas`, `moodle`: the student's number there; empty if not known.
    """

    id: str
    name: str = ""
    email: str = ""
    section: str = ""
    due: datetime | None = None
    canvas: str = ""
    moodle: str = ""


@dataclass(frozen=True)
class Owner:
    """Whose hand-in it is, as far as its folder or its file says.

    `label`: what the student is called if no roster knows better. `name`, `number`: what a platform calls the student; empty if
    it does not say. `platform`: "", "canvas" or "moodle"; where it was downloaded; empty for a folder that is called like the
    student.
    """

    label: str
    name: str = ""
    number: str = ""
    platform: str = ""


@dataclass(frozen=True)
class Roster:
    """All students of a class, each id once."""

    students: tuple[Student, ...]

    @cached_property
    def by_id(self) -> dict[str, Student]:
        """The students by their ids."""
        return {student.id: student for student in self.students}

    @cached_property
    def _by_number(self) -> dict[tuple[str, str], Student]:
        """The students by platform and number there."""
        return {(name, number): each for each in self.students for name in PLATFORMS if (number := getattr(each, name))}

    @cached_property
    def _by_mail(self) -> dict[str, list[Student]]:
        return _grouped((student.email.casefold(), student) for student in self.students if student.email)

    @cached_property
    def _by_name(self) -> dict[str, list[Student]]:
        return _grouped((key, student) for student in self.students for key in sorted(_keys(student.name)))

    def matched(self, owners: Iterable[Owner]) -> tuple[dict[Owner, Student], list[str]]:
        """Return which student each owner is, and what is to be said about those whose name alone does not tell.

        A number or an id decides; after them an e-mail address; then a name, in whatever order its words stand, if it is that of one
        student on the roster and of one owner.
        """
        found: dict[Owner, Student] = {}
        by_name: dict[str, list[Owner]] = defaultdict(list)
        notes = []
        for owner in dict.fromkeys(owners):
            if sure := self._surely(owner):
                found[owner] = sure
            elif named := [each for each in self.named(owner.name or owner.label) if _may_be(each, owner)]:
                if len(named) == 1:
                    by_name[named[0].id].append(owner)
                else:
                    notes.append(f"{owner.label} may be {' or '.join(each.id for each in named)} of the roster: the name does not tell")
        taken = {student.id for student in found.values()}
        for student, claimants in by_name.items():
            if len(claimants) == 1 and student not in taken:
                found[claimants[0]] = self.by_id[student]
            else:
                notes.append(f"{' and '.join(each.label for each in claimants)} may be {student} of the roster: the name does not tell")
        return found, notes

    def named(self, name: str) -> list[Student]:
        """Return the students of a name: its words may be in another order, run together, in capitals or with other signs between."""
        return list(dict.fromkeys(student for key in sorted(_keys(name)) for student in self._by_name.get(key, ())))

    def knows(self, label: str) -> Student | None:
        """Return the student whose id or, if nobody shares it, e-mail address it is."""
        label = plain(label)
        mails = self._by_mail.get(label.casefold(), [])
        return self.by_id.get(label) or (mails[0] if len(mails) == 1 else None)

    def _surely(self, owner: Owner) -> Student | None:
        if not owner.number:
            return self.knows(owner.label)
        same = self.by_id.get(owner.number)
        return self._by_number.get((owner.platform, owner.number)) or (same if same and _may_be(same, owner) else None)


def read_roster(text: str, name: str) -> Roster:
    """Return the roster that a table holds.

    `text`: CSV with the columns of `COLUMNS`; all but `id` may be missing. `name`: what errors call it. Raises TableError if an
    id is missing or comes twice, a number comes twice, or a due time is none.
    """
    students: list[Student] = []
    lines: dict[tuple[str, str], int] = {}
    for row in parse_table(text, name).rows(needed=["id"]):
        if not row["id"]:
            row.wrong("id", "an id for each student")
        if not is_id(row["id"]):
            row.wrong("id", "an id that can name a folder, without slashes")
        for column in ("id", "canvas", "moodle"):
            key = column, row[column]
            if row[column] and key in lines:
                row.wrong(column, f"another one than in line {lines[key]}")
            lines[key] = row.line
        texts = {column: row[column] for column in COLUMNS if column != "due"}
        students.append(Student(**texts, due=row.time("due")))
    if not students:
        raise TableError(f"{name}: names no student")
    return Roster(tuple(students))


def is_id(text: str) -> bool:
    """Whether a text may be what a student is called: it names folders too."""
    return text not in ("", ".", "..") and text.isprintable() and not set(text) & set("/\\")


def merged(roster: Roster, others: Sequence[Student], platform: str, ids: Callable[[Student], Sequence[str]]) -> Roster:
    """Return a roster with the numbers that a platform gives to its students.

    `others`: those of the platform. `platform`: "canvas" or "moodle"; which. `ids`: what of a student of the platform may be the
    id or the e-mail address on the roster.
    """
    owners = {}
    known = {getattr(student, platform) for student in roster.students} - {""}
    for other in others:
        number = getattr(other, platform)
        if number not in known:
            label = next((each for each in ids(other) if each and roster.knows(each)), number)
            owners[Owner(label, other.name)] = number
    found, _ = roster.matched(owners)
    numbers = {student.id: owners[owner] for owner, student in found.items()}
    students = [replace(each, **{platform: getattr(each, platform) or numbers.get(each.id, "")}) for each in roster.students]
    return Roster(tuple(students))


def _may_be(student: Student, owner: Owner) -> bool:
    """Whether no other number speaks against it."""
    return not owner.platform or getattr(student, owner.platform) in ("", owner.number)


def _grouped(pairs: Iterable[tuple[str, Student]]) -> dict[str, list[Student]]:
    found: dict[str, list[Student]] = defaultdict(list)
    for key, student in pairs:
        found[key].append(student)
    return dict(found)


def _keys(name: str) -> set[str]:
    """The words of a name run together, beginning with any of them."""
    words = re.findall(r"\w+", plain(name).casefold().replace("_", " "))
    return {"".join((*words[start:], *words[:start])) for start in range(len(words))}
