"""`attn-course nbgrader prepare|export`: for courses that run on nbgrader."""

from pathlib import Path
from typing import Annotated

import typer

from attn_course.commands.chapters import HELP, exercise_lessons, read_chapters
from attn_course.commands.course import find_course, shown
from attn_course.commands.terminal import option, refusing, say

app = typer.Typer(rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
def nbgrader(context: typer.Context) -> None:
    """Use the course with nbgrader: sources for it, and our marks in its gradebook."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command()
def prepare(
    out: Annotated[Path, typer.Argument(metavar="COURSE", help="nbgrader's course folder.", show_default=False)],
    chapters: Annotated[str | None, option("--chapters", "LIST", f"{HELP}; all if left out.")] = None,
) -> None:
    """Write source/LESSON/LESSON.ipynb, from which nbgrader generates the assignment.

    Then, with nbgrader installed: nbgrader generate_assignment LESSON.

    Examples:

        attn-course nbgrader prepare . --chapters softmax
    """
    from attn_course.authoring import AuthoringError
    from attn_course.authoring.nbgrader_source import prepare as make

    root = find_course()
    names = None if chapters is None else read_chapters(chapters, exercise_lessons(root))
    with refusing(AuthoringError):
        paths = make(root, out, names)
    for path in paths:
        say(f"wrote {shown(path.absolute())}")


@app.command()
def export(
    grades: Annotated[Path, typer.Argument(metavar="DIR", help="What attn-course grade wrote.", show_default=False)],
    gradebook: Annotated[Path, typer.Option("--gradebook", metavar="FILE", help="nbgrader's database.")] = Path("gradebook.db"),
) -> None:
    """Write the marks of attn-course grade into nbgrader's gradebook; marks for the same cells are replaced.

    An assignment on several chapters gets a notebook for each. All marks are written or, if anything fails, none.

    nbgrader must be installed here. If it lives in an environment of its own, run there:
    python -m attn_course.classroom.nbgrader_marks DIR FILE.

    Examples:

        attn-course nbgrader export grades --gradebook gradebook.db
    """
    from attn_course.classroom.nbgrader_marks import MarksError, export_marks, read_report

    with refusing(MarksError):
        count = export_marks(read_report(grades), gradebook)
    say(f"{count} marks in {shown(gradebook.absolute())}")
