"""A made-up class of six, as Canvas and Moodle would give it out: names of files and folders, and the tables to fill in."""

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.classroom.stand_in import notebook

# id, name, sortable name of Canvas, e-mail, section, number at Canvas, number at Moodle
SIX = (
    ("ada", "Ada Lovelace", "Lovelace, Ada", "ada@uni.example", "A", "5001", "90011"),
    ("bo", "Bo Anne-Marie O'Neil", "O'Neil, Bo Anne-Marie", "bo@uni.example", "A", "5002", "90012"),
    ("chen", "Chen Wei", "Wei, Chen", "chen@uni.example", "B", "5003", "90013"),
    ("dora", "Dora Müller", "Müller, Dora", "dora@uni.example", "B", "5004", "90014"),
    ("emil", "Emil Ek", "Ek, Emil", "emil@uni.example", "B", "5005", "90015"),
    ("fay", "Fay Ng", "Ng, Fay", "fay@uni.example", "A", "5006", "90016"),
)
RIGHT = {"ada": "1 2 3 4 5 6", "bo": "1 2", "chen": "", "dora": "1", "emil": "2 3"}  # fay hands in nothing
CANVAS_COLUMN = "Week 3 (778)"


def _signs(name: str) -> str:
    """What Canvas leaves of a name: letters, digits and underscores, in small letters."""
    return "".join(sign for sign in name.lower() if sign.isalnum() or sign == "_")


def canvas_names(late: Sequence[str] = ("dora",)) -> dict[str, str]:
    """The files of submissions.zip by student; Emil's is his second attempt, Chen's has a name of his own."""
    files = {}
    for place, (student, _, sortable, _, _, number, _) in enumerate(SIX):
        if student in RIGHT:
            own = {"emil": "ex_02_softmax-1.ipynb", "chen": "homework of Chen Wei.ipynb"}.get(student, "ex_02_softmax.ipynb")
            parts = [_signs(sortable), *(["LATE"] if student in late else []), number, str(66_000 + place), own]
            files[student] = "_".join(parts)
    return files


def canvas_zip(path: Path, workshop: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        called = {each[0]: each[1] for each in SIX}
        for student, name in canvas_names().items():
            words = f"note it prints {called[student]}"
            archive.write(notebook(workshop / f"{student}.ipynb", right=RIGHT[student], words=words), name)
        archive.writestr("ngfay_5006_66099_apology.txt", "ill")
    return path


def moodle_folder(path: Path) -> Path:
    for student, name, _, _, _, _, number in SIX:
        if student in RIGHT:
            tail = "_" if student == "ada" else ""  # older versions
            folder = path / f"{name}_{number}_assignsubmission_file{tail}"
            notebook(folder / "ex_02_softmax.ipynb", right=RIGHT[student])
    return path


def canvas_gradebook(path: Path) -> Path:
    """Write what Canvas exports: two assignments, a row of points possible, columns that are read only, the test student."""
    rows = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 2 (777)", CANVAS_COLUMN, "Final Score"],
        ["", "", "", "", "", "", "Manual Posting", ""],
        ["    Points Possible", "", "", "", "", "10.00", "100.00", "(read only)"],
    ]
    rows += [[sortable, number, f"S{number}", mail, section, "7.50", "", "75.00"] for _, _, sortable, mail, section, number, _ in SIX]
    rows += [["Student, Test", "5999", "", "", "A", "", "", ""]]
    return _write(path, rows)


def moodle_worksheet(path: Path) -> Path:
    rows = [["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Grade can be changed"]]
    rows[0] += ["Last modified (submission)", "Last modified (grade)", "Feedback comments"]
    for student, name, _, mail, _, _, number in SIX:
        status = "Submitted for grading - 2 hours late" if student == "dora" else "Submitted for grading"
        status = status if student in RIGHT else "No submission"
        rows.append([f"Participant {number}", name, mail, status, "", "100.00", "Yes", "Friday, 20 November 2026, 6:00 PM", "-", ""])
    return _write(path, rows)


def roster(path: Path, numbers: bool = False) -> Path:
    """Write the teacher's own table; with the numbers at Canvas and Moodle only if asked."""
    more = ["canvas", "moodle"] if numbers else []
    rows = [["id", "name", "email", "section", "due", *more]]
    rows += [[each[0], each[1], each[3], each[4], "", *(each[5:7] if numbers else ())] for each in SIX]
    return _write(path, rows)


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def _write(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path
