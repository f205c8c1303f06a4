"""`attn-course release`: the folder that a teacher hands out."""

from pathlib import Path
from typing import Annotated

import typer

from attn_course.commands.chapters import HELP, exercise_lessons, read_chapters
from attn_course.commands.course import find_course, shown
from attn_course.commands.terminal import BadInput, option, refusing, say
from attn_course.numbers import counted


def release(
    out: Annotated[Path, option("--out", "DIR", "The folder to make; it must be new or empty.")],
    chapters: Annotated[str | None, option("--chapters", "LIST", f"{HELP}; all if left out.")] = None,
    roster: Annotated[Path | None, option("--roster", "CSV", "A folder for each student of it, with numbers of their own.")] = None,
    own: Annotated[Path | None, option("--own", "FOLDER", "Also your own tasks, whose answers stay with you.")] = None,
    no_lessons: Annotated[bool, typer.Option("--no-lessons", metavar="", help="Hand out exercises alone.")] = False,
    model: Annotated[
        bool, typer.Option("--model", metavar="", help="Also the language model of some lessons (98 MB), for a class offline.")
    ] = False,
    limit: Annotated[list[str] | None, option("--limit", "NAME=VALUE", "A limit that you will give to attn-course grade.")] = None,
) -> None:
    """Make a folder for students: exercises, lessons, the package with its pins, and instructions.

    Solutions, tests and sources stay here. The package holds the right answers of its checks all the same, as it must
    to explain mistakes: marks come from attn-course grade, which draws other cases.

    With --roster, a table with a column id, DIR holds such a folder for each student, whose exercises print numbers of the
    student's own where a task has such: grade with --variants then.

    FOLDER holds tasks.py, as the teachers' guide shows. The exercise is built there, where grade --own reads
    it, and handed out.

    Examples:

        attn-course release --out handout
        attn-course release --out week3 --chapters attention,self_attention --no-lessons
        attn-course release --out week3 --chapters attention --roster class.csv
        attn-course release --out week3 --chapters attention --own extra
        attn-course release --out term1 --chapters 0-4,additive
    """
    from attn_course.authoring import AuthoringError
    from attn_course.authoring.release import release as make
    from attn_course.classroom.budget import USUAL, LimitError

    root = find_course()
    names = None if chapters is None else read_chapters(chapters, exercise_lessons(root))
    students = [] if roster is None else _ids(roster)
    if model and students:
        raise BadInput(
            "--model would copy 98 MB for each student of the roster: hand the file out once, attn-course model --to DIR makes it"
        )
    with refusing(AuthoringError, LimitError):
        limits = USUAL.changed(limit or ()).table()
        assignments = make(
            root, out, names, with_lessons=not no_lessons, students=students, limits=limits, own=own, model=_model() if model else None
        )
    for assignment in assignments:
        say(f"{assignment.number or assignment.stem} {assignment.title}: {assignment.n_tasks} tasks, {assignment.points} points")
    each = f", a folder in it for each of {counted(len(students), 'student')}" if students else ""
    say(f"made {shown(out.absolute())}{each}")


def _model() -> Path:
    from attn_course.language.getting import ModelMissing, checked, model_path

    with refusing(ModelMissing):
        return checked(model_path())


def _ids(roster: Path) -> list[str]:
    from attn_course.classroom.roster import read_roster
    from attn_course.classroom.tables import TableError, read_text

    with refusing(TableError):
        return [*read_roster(read_text(roster), str(roster)).by_id]
