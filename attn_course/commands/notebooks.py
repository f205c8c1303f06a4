"""`attn-course notebooks build|check`: from sources to notebooks, for authors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.course import find_course
from attn_course.commands.terminal import BadInput, Failure, console

if TYPE_CHECKING:
    from attn_course.authoring import Step
    from attn_course.authoring.course import Unit

app = typer.Typer(rich_markup_mode="markdown")

Names = Annotated[
    list[str] | None, typer.Argument(metavar="LESSON", help="Names such as softmax; all if none is named.", show_default=False)
]


@app.callback(invoke_without_command=True)
def notebooks(context: typer.Context) -> None:
    """Build the notebooks from their sources, or find what is wrong with these."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def build(
    names: Names = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Run and write all, also over edited exercises.")] = False,
) -> None:
    """Make lessons, solutions and exercises from their sources; run and write only what changed.

    Exit code: 0 if all is built, 1 if a cell or a source fails, 2 if there is no such lesson.

    Examples:

        attn-course notebooks build
        attn-course notebooks build softmax --force
    """
    root = course_with(names)
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
def check(
    names: Names = None,
    run: Annotated[bool, typer.Option("--run", metavar="", help="Run the notebooks too, and compare their outputs.")] = False,
) -> None:
    """Find everything that is wrong with lessons: text, formulas, equations, tasks, stored results, and notebooks out of date.

    Nothing is written, and no lesson is run but with --run. Each finding that an author has to mend is one line with its place; what
    building mends is one line behind them.

    Exit code: 0 if all is well, 1 if not, 2 if there is no such lesson.

    Examples:

        attn-course notebooks check softmax
        attn-course notebooks check --run
    """
    root = course_with(names)
    from attn_course.authoring import check as check_notebooks
    from attn_course.authoring.course import units
    from attn_course.authoring.gates import RIGHT_ANSWERS, has_right_answers

    out, err = console(), console(stderr=True)
    with err.status("checking"):
        found = check_notebooks(root, only=names or None)
    problems = [str(problem) for problem in found if not problem.by_build]
    for unit in units(root, names or None) if run else ():
        if unit.is_executed and unit.path.is_file():
            with err.status(f"running {unit.name}"):
                problems += _run_problems(unit)
    for problem in problems:
        out.print(problem, markup=False, soft_wrap=True)
    if not has_right_answers(root):
        out.print(f"not checked: right answers written in other ways, for there is no {RIGHT_ANSWERS}/ here", soft_wrap=True)
    if stale := dict.fromkeys(problem.file for problem in found if problem.by_build):
        out.print(f"out of date: {', '.join(stale)}; run attn-course notebooks build", markup=False, soft_wrap=True)
    if found or problems:
        raise typer.Exit(1)
    out.print("nothing is wrong")


def _run_problems(unit: "Unit") -> list[str]:
    """The cells whose output is not the stored one."""
    from attn_course.authoring.nbval import run_nbval

    result = run_nbval([unit.path])
    cells = [failed.rpartition(":")[2] for failed in result.failed]
    broke_off = [] if result.passed or cells else [f"{unit.name}: nbval broke off: {result.text.strip().splitlines()[-1]}"]
    return [f"{unit.name} [{cell}]: it fails, or its output is not the stored one" for cell in cells] + broke_off


def course_with(names: list[str] | None) -> Path:
    """The course's root, if it has these lessons."""
    from attn_course.authoring import AuthoringError
    from attn_course.authoring.course import chosen_lessons

    root = find_course()
    try:
        chosen_lessons(root, names or None)
    except AuthoringError as error:
        raise BadInput(str(error).removeprefix("only: ")) from None
    return root
