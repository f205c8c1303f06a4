"""Write the marks of a graded class into nbgrader's gradebook, so that its formgrader and its exports show them.

It needs nbgrader and nothing else: `python -m attn_course.classroom.nbgrader_marks report.json gradebook.db` also runs in an
environment of nbgrader's own, with this package on PYTHONPATH.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPORT_VERSION = 2
_TABLES = {"alembic_version", "assignment", "base_cell", "course", "grade", "student"}  # some of a gradebook's


class MarksError(ValueError):
    """The marks cannot be exported; the text is one line."""


def read_report(path: Path) -> dict[str, Any]:
    """Return report.json of a graded class.

    `path`: the file, or the folder that `attn-course grade` wrote it to. Raises MarksError if it is missing, cut short, or of
    another version.
    """
    path = path / "report.json" if path.is_dir() else path
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MarksError(f"{path}: {error.strerror}; wanted the folder that attn-course grade wrote") from None
    except ValueError:
        raise MarksError(f"{path}: is not the report.json that attn-course grade writes") from None
    version = report.get("report_version") if isinstance(report, dict) else None
    if version != REPORT_VERSION:
        raise MarksError(f"{path}: wanted report_version {REPORT_VERSION}, got {version!r}")
    return dict(report)


def export_marks(report: Mapping[str, Any], gradebook: Path) -> int:
    """Write every mark that counts into a gradebook; assignments, notebooks, cells and students it lacks are added.

    An assignment on several chapters has a notebook for each. All marks are written or, if anything fails, none: a gradebook
    that is there stays as it was, and one that is not there is not made.

    `report`: as `read_report` returns it. `gradebook`: nbgrader's SQLite file; it is made if it is missing. Marks that stand
    there for the same cells are replaced.

    Returns how many cells were marked. Who handed in one chapter of an assignment and not another gets zeros for the other, as
    from nbgrader; who handed in nothing has no submission.

    Raises MarksError if nbgrader is not installed or does not run, the file is no gradebook, or an assignment stands in it with
    other tasks.
    """
    try:
        from nbgrader.api import InvalidEntry
    except ImportError:
        raise MarksError("nbgrader is not installed in this environment: pip install nbgrader") from None
    from sqlalchemy.exc import SQLAlchemyError

    place = gradebook.resolve()
    try:
        if place.exists() and place.stat().st_size:
            return _write(report, place)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
            made = Path(folder, place.name)
            _make(made)
            count = _write(report, made)
            made.replace(place)
            return count
    except (SQLAlchemyError, InvalidEntry) as error:
        raise MarksError(f"{gradebook}: cannot be used as a gradebook: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise MarksError(f"{gradebook}: {error.strerror or error}") from None


def _make(path: Path) -> None:
    """Make an empty gradebook; nbgrader asks a program of its environment, alembic, for the version of its tables."""
    from nbgrader.api import Gradebook

    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join(filter(None, (sysconfig.get_path("scripts"), before)))  # nbgrader may run off PATH
    try:
        Gradebook(_url(path)).close()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise MarksError(f"nbgrader cannot make a gradebook, for want of the program alembic that came with it: {error}") from None
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


def _url(path: Path) -> Any:
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(path))  # a path may hold ? and #


def _write(report: Mapping[str, Any], path: Path) -> int:
    """Write all marks into a gradebook that is there, in one transaction; return how many."""
    from nbgrader.api import Gradebook
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.orm import scoped_session, sessionmaker

    class OneTransaction(Gradebook):  # type: ignore[misc]  # nbgrader has no types
        """A gradebook whose commits are kept back until the connection's transaction ends."""

        def __init__(self, connection: Any) -> None:
            self.engine, self.authenticator, self.course_id = connection.engine, None, "default_course"
            # Autoflush would write a submission while nbgrader still puts it together, which SQLAlchemy warns of.
            self.db = scoped_session(sessionmaker(bind=connection, autoflush=False, future=True))
            self.check_course(self.course_id)

    engine = create_engine(_url(path), future=True)
    try:
        if not set(inspect(engine).get_table_names()) >= _TABLES:
            raise MarksError(f"{path}: cannot be used as a gradebook: it is a database of something else")
        with engine.begin() as connection:
            book = OneTransaction(connection)
            try:
                return _Export(book, report).marks()
            finally:
                book.db.remove()
    finally:
        engine.dispose()


class _Export:
    """The marks of one report on their way into one gradebook."""

    def __init__(self, book: Any, report: Mapping[str, Any]) -> None:
        self._book = book
        known = {unicodedata.normalize("NFC", student.id): student.id for student in book.students}  # as nbgrader spells them
        self._hand_ins = [
            (known.get(student["student"], student["student"]), notebook)
            for student in report["students"]
            for notebook in student["notebooks"]
            if notebook["counts"] and notebook["lesson"] is not None
        ]

    def marks(self) -> int:
        """Write them; return how many cells were marked."""
        there = [(student, each) for student, each in self._hand_ins if each["status"] != "missing" or each.get("points")]  # decided
        names: dict[tuple[str, str], str] = {}
        for _, notebook in there:
            key = notebook["assignment"], notebook["lesson"]
            if key not in names:
                names[key] = self._notebook(*key, notebook["tasks"])
        submissions = {}
        for student, notebook in there:
            key = notebook["assignment"], student
            if key not in submissions:
                self._book.update_or_create_student(student)
                submissions[key] = self._book.update_or_create_submission(*key)
        for assignment in {assignment for assignment, _ in names}:
            for submission in self._book.assignment_submissions(assignment):
                self._complete(submission)
        count = 0
        for student, notebook in self._hand_ins:
            submission = submissions.get((notebook["assignment"], student))
            name = names.get((notebook["assignment"], notebook["lesson"]))
            if submission is not None and name is not None:
                count += self._mark(submission, name, notebook)
        self._book.db.commit()
        return count

    def _notebook(self, assignment: str, lesson: str, tasks: Sequence[Mapping[str, Any]]) -> str:
        """The name of the notebook that holds these tasks; made, and called like its lesson, if nbgrader does not know it yet."""
        wanted = {f"{task['task']}-check" for task in tasks}
        cells = {
            str(notebook.name): {cell.name for cell in notebook.grade_cells}
            for notebook in self._book.update_or_create_assignment(assignment).notebooks
        }
        name = next((name for name, there in cells.items() if wanted & there), lesson)
        if name in cells and wanted <= cells[name]:
            return name
        if name in cells and self._book.assignment_submissions(assignment):
            where = f"notebook {name} of assignment {assignment}"
            raise MarksError(f"{where} is in the gradebook with other tasks, and has submissions: export to a fresh file")
        self._book.update_or_create_notebook(name, assignment)
        for task in tasks:
            cell, most = str(task["task"]), float(task["max_points"])
            self._book.update_or_create_grade_cell(f"{cell}-check", name, assignment, max_score=most, cell_type="code")
            self._book.update_or_create_solution_cell(cell, name, assignment)
        return name

    def _complete(self, submission: Any) -> None:
        """Give a submission the notebooks that its assignment has got since."""
        from nbgrader.api import Comment, Grade, SubmittedNotebook

        has = {notebook.name for notebook in submission.notebooks}
        for notebook in submission.assignment.notebooks:
            if notebook.name not in has:
                submitted = SubmittedNotebook(notebook=notebook, assignment=submission)
                for cell in (*notebook.grade_cells, *notebook.task_cells):
                    Grade(cell_id=cell.id, notebook=submitted)
                for cell in (*notebook.solution_cells, *notebook.task_cells):
                    Comment(cell_id=cell.id, notebook=submitted)
                self._book.db.add(submitted)
        self._book.db.commit()

    def _mark(self, submission: Any, name: str, notebook: Mapping[str, Any]) -> int:
        """Mark one notebook; return how many cells. What the teacher decided on the whole is extra credit of its first cell."""
        tasks = notebook["tasks"]
        extra = round(notebook["points"] - sum(task["points"] for task in tasks), 2) if "points" in notebook else 0
        submitted = next(each for each in submission.notebooks if each.name == name)
        grades = {grade.cell.name: grade for grade in submitted.grades}
        comments = {comment.cell.name: comment for comment in submitted.comments}
        for task in tasks:
            cell = str(task["task"])
            grade = grades[f"{cell}-check"]
            grade.auto_score, grade.manual_score, grade.needs_manual_grade = float(task["points"]), None, False
            grade.extra_credit = extra if task is tasks[0] and extra else None
            if cell in comments:
                comments[cell].manual_comment = None if task["passed"] else "  ".join(filter(None, (task["message"], task["hint"])))
        return len(tasks)


def main() -> int:
    """Export from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the marks of attn-course grade into nbgrader's gradebook.")
    parser.add_argument("report", type=Path, help="report.json, or the folder that holds it")
    parser.add_argument("gradebook", type=Path, help="nbgrader's gradebook.db")
    arguments = parser.parse_args()
    try:
        count = export_marks(read_report(arguments.report), arguments.gradebook)
    except MarksError as error:
        print(f"nbgrader_marks: {error}", file=sys.stderr)
        return 2
    print(f"{count} marks in {arguments.gradebook}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
