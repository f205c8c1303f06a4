"""`attn-course notebooks build|check`: from sources to notebooks, for authors."""

from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.course import find_course
from attn_course.commands.terminal import BadInput, Failure, console

if TYPE_CHECKING:
    from pathlib import Path

    from attn_course.authoring import Step

app = typer.Typer(rich_markup_mode="markdown")

Names = Annotated[
    list[str] | None, typer.Argument(metavar="LESSON", help="Names such as softmax; all if none is named.", show_default=False)
]


@app.callback(invoke_without_command=True)
def notebooks(context: typer.Context) -> None:
    """Build the notebooks from their sources, or compare them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def build(
    names: Names = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Run and write all, also over edited exercises.")] = False,
) -> None:
    """Make lessons, solutions and exercises from src/*.py; run and write only what changed.

    Exit code: 0 if all is built, 1 if a cell or a source fails, 2 if there is no such lesson.

    Examples:

        attn-course notebooks build
        attn-course notebooks build softmax --force
    """
    root = _course_with(names)
    from attn_course.authoring import AuthoringError
    from attn_course.authoring import build as build_notebooks

    out, err = console(), console(stderr=True)
    with err.status("building") as status:

        def tell(step: "Step") -> None:
            status.update(f"{step.notebook}: cell {step.number} of {step.total}" if step.action == "run" else step.notebook)
            if said := {"write": "wrote", "remove": "removed"}.get(step.action):
                out.print(f"{said} {step.notebook}", markup=False, soft_wrap=True)

        try:
            report = build_notebooks(root, force=force, only=names or None, progress=tell)
        except AuthoringError as error:
            raise Failure(str(error)) from error
    out.print(f"{len(report.written)} written, {len(report.executed)} run, {len(report.kept)} left as they were")


@app.command()
def check(names: Names = None) -> None:
    """Compare every built notebook with its source, and name each cell that differs; nothing is written or run.

    Exit code: 0 if all is in step, 1 if not, 2 if there is no such lesson.

    Examples:

        attn-course notebooks check
    """
    root = _course_with(names)
    from attn_course.authoring import check as check_notebooks

    out = console()
    with console(stderr=True).status("comparing"):
        problems = check_notebooks(root, only=names or None)
    for problem in problems:
        out.print(str(problem), markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)
    out.print("every notebook is in step with its source")


def _course_with(names: list[str] | None) -> "Path":
    """The course's root, if it has these lessons."""
    from attn_course.authoring import AuthoringError
    from attn_course.authoring.course import units

    root = find_course()
    try:
        units(root, names or None)
    except AuthoringError as error:
        raise BadInput(str(error).removeprefix("only: ")) from None
    return root
