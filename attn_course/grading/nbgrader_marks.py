"""Write the marks of a graded class into nbgrader's gradebook, so that its formgrader and its exports show them.

It needs nbgrader and nothing else: `python -m attn_course.grading.nbgrader_marks report.json gradebook.db` also runs in an
environment of nbgrader's own, with this package on PYTHONPATH.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPORT_VERSION = 1


class MarksError(ValueError):
    """The marks cannot be exported; the text is one line."""


def read_report(path: Path) -> dict[str, Any]:
    """Return report.json of a graded class.

    Parameters
    ----------
    path : Path
        The file, or the folder that `attn-course grade` wrote it to.

    Returns
    -------
    report : dict
        Its data.

    Raises
    ------
    MarksError
        If it is missing, cut short, or of another version.
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

    Parameters
    ----------
    report : mapping
        As `read_report` returns it.
    gradebook : Path
        nbgrader's SQLite file; it is made if it is missing. Marks that stand there for the same cells are replaced.

    Returns
    -------
    marks : int
        How many cells were marked.

    Raises
    ------
    MarksError
        If nbgrader is not installed, or the file is no gradebook.
    """
    try:
        from nbgrader.api import Gradebook
    except ImportError:
        raise MarksError("nbgrader is not installed in this environment: pip install nbgrader") from None
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with Gradebook(f"sqlite:///{gradebook.absolute()}") as book:
            return sum(
                _export_notebook(book, student["student"], notebook)
                for student in report["students"]
                for notebook in student["notebooks"]
                if notebook["counts"] and notebook["chapter"] is not None and notebook["status"] != "missing"
            )
    except SQLAlchemyError as error:
        raise MarksError(f"{gradebook}: cannot be used as a gradebook: {str(error).splitlines()[0]}") from None


def _export_notebook(book: Any, student: str, notebook: Mapping[str, Any]) -> int:
    """Mark one notebook; return how many cells."""
    assignment, tasks = notebook["assignment"], notebook["tasks"]
    name = _notebook_name(book, assignment, tasks)
    book.update_or_create_student(student)
    submission = book.update_or_create_submission(assignment, student)
    submitted = next(each for each in submission.notebooks if each.name == name)
    grades = {grade.cell.name: grade for grade in submitted.grades}
    comments = {comment.cell.name: comment for comment in submitted.comments}
    for task in tasks:
        cell = _cell(task)
        grade = grades[f"{cell}-check"]
        grade.auto_score, grade.manual_score, grade.needs_manual_grade = float(task["points"]), None, False
        if cell in comments:
            comments[cell].manual_comment = None if task["passed"] else "  ".join(filter(None, (task["message"], task["hint"])))
    book.db.commit()
    return len(tasks)


def _notebook_name(book: Any, assignment: str, tasks: Sequence[Mapping[str, Any]]) -> str:
    """The notebook of an assignment that holds these tasks; made, with its cells, if nbgrader does not know it yet."""
    wanted = {f"{_cell(task)}-check" for task in tasks}
    for notebook in book.update_or_create_assignment(assignment).notebooks:
        if wanted <= {cell.name for cell in notebook.grade_cells}:
            return str(notebook.name)
    if book.assignment_submissions(assignment):
        raise MarksError(f"assignment {assignment} is in the gradebook with other tasks, and has submissions: export to a fresh file")
    book.update_or_create_notebook(assignment, assignment)
    for task in tasks:
        cell = _cell(task)
        book.update_or_create_grade_cell(f"{cell}-check", assignment, assignment, max_score=float(task["max_points"]), cell_type="code")
        book.update_or_create_solution_cell(cell, assignment, assignment)
    return assignment


def _cell(task: Mapping[str, Any]) -> str:
    return "task-" + str(task["task"]).replace(".", "-")


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
