"""`attn-course notebooks build|check`: from sources to notebooks, for authors."""

from typing import Annotated

import typer

from attn_course.commands.course import find_course
from attn_course.commands.terminal import BadInput, console

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Build the notebooks from their sources, or compare them (for authors)."
)

Names = Annotated[
    list[str] | None, typer.Argument(metavar="CHAPTER", help="Chapters such as 2 or 02_softmax; all if none is named.", show_default=False)
]


@app.command()
def build(
    names: Names = None, force: Annotated[bool, typer.Option("--force", help="Replace exercises that were edited by hand.")] = False
) -> None:
    """Make lessons, solutions and exercises from src/*.py; write only what changed.

    Examples:

      attn-course notebooks build

      attn-course notebooks build 02_softmax --force
    """
    from attn_course.authoring import AuthoringError
    from attn_course.authoring import build as build_notebooks

    try:
        report = build_notebooks(find_course(), force=force, only=names or None)
    except AuthoringError as error:
        raise BadInput(str(error)) from error
    console().print(str(report), markup=False)


@app.command()
def check() -> None:
    """Compare every built notebook with its source, and name each cell that differs.

    Nothing is written. Exit code: 0 if all is in step, 1 if not.
    """
    from attn_course.authoring import check as check_notebooks

    problems = check_notebooks(find_course())
    for problem in problems:
        console().print(str(problem), markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)
    console().print("every notebook is in step with its source")
