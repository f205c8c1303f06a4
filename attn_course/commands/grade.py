"""`attn-course grade`: marks for a whole class."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.chapters import HELP, read_chapters
from attn_course.commands.course import shown
from attn_course.commands.terminal import BadInput, Failure, console

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

    from attn_course.grading.class_grade import Graded, Order
    from attn_course.grading.class_grade import Progress as Started

_INTERRUPTED = 130


def grade(
    submissions: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="Folder of the students' folders.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder for grades, feedback and report.", show_default=False)],
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Grading processes; one for each core by default.", show_default=False)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Grade on this dask cluster instead.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="S", min=0, help="Draws the secret cases; a new one by default.", show_default=False)
    ] = None,
    chapters: Annotated[
        str | None, typer.Option("--chapters", metavar="LIST", help=f"Chapters asked for: {HELP.lower()}.", show_default=False)
    ] = None,
    due: Annotated[
        str | None, typer.Option("--due", metavar="TIME", help="Mark as late what timestamp.txt says came later.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in DIR.")] = False,
    allow_unsafe: Annotated[bool, typer.Option("--allow-unsafe", help="Grade even where learners' code cannot be confined.")] = False,
) -> None:
    """Grade a class: run every notebook in a sandbox on secret cases, and write marks, feedback and a report.

    SUBMISSIONS holds student/notebook.ipynb or, as nbgrader collects them, student/assignment/notebook.ipynb. DIR gets
    grades.csv (a row for each task), summary.csv (a row for each student), class.html, feedback/ and report.json.

    Each result is stored as soon as it is there: after a crash or Ctrl-C, --resume goes on, with the seed, chapters and due
    time of the run that is there. Without --chapters, every chapter that anybody handed in is asked of all.

    TIME is such as "2026-12-01 18:00 Europe/Berlin"; UTC without a zone, the end of the day without a time. A late notebook
    is marked late and loses no points.

    Exit code: 0 if the class is graded, however well it did; 1 if grading or writing fails; 2 bad input; 130 interrupted.

    Examples:

        attn-course grade submitted --out grades --chapters softmax
        attn-course grade submitted --out grades --resume
        attn-course grade submitted --out grades --scheduler tcp://10.0.0.5:8786
    """
    if jobs is not None and scheduler is not None:
        raise BadInput("--jobs and --scheduler exclude each other: the cluster has its own workers")
    order = _order(submissions, out, jobs, scheduler, seed, chapters, due, resume, allow_unsafe)
    try:
        graded = _run(order)
    except KeyboardInterrupt:
        if (out / "run.json").exists():
            console(stderr=True).print(
                f"attn-course: stopped; what was graded is kept: the same command with --resume goes on in {shown(out)}"
            )
        raise typer.Exit(_INTERRUPTED) from None
    _show(graded, out)


def _order(
    submissions: Path,
    out: Path,
    jobs: int | None,
    scheduler: str | None,
    seed: int | None,
    chapters: str | None,
    due: str | None,
    resume: bool,
    allow_unsafe: bool,
) -> "Order":
    from attn_course.grading.class_engines import Cluster, Pool
    from attn_course.grading.class_grade import Order
    from attn_course.grading.grader import Grader
    from attn_course.grading.submissions import parse_time
    from attn_course.tasks import lessons

    when: datetime | None = None
    if due is not None:
        try:
            when = parse_time(due, last_of_day=True)
        except ValueError as error:
            raise BadInput(f"--due: {error}") from None
    return Order(
        submissions=submissions,
        out=out,
        engine=Cluster(scheduler) if scheduler is not None else Pool(jobs or _cores()),
        grader=Grader,
        seed=seed,
        lessons=None if chapters is None else read_chapters(chapters, lessons()),
        due=when,
        resume=resume,
        allow_unsafe=allow_unsafe,
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(order: "Order") -> "Graded":
    from attn_course.grading.class_grade import grade_class
    from attn_course.grading.class_store import OtherRun, Result, StoreError
    from attn_course.grading.class_worker import ClassError
    from attn_course.grading.submissions import SubmissionsError

    err = console(stderr=True)
    with _bar(err.is_terminal) as bar:
        line = bar.add_task("grading", total=None, failures="", rate="")
        failures = 0

        def on_start(started: "Started") -> None:
            for text in _said(order, started):
                bar.console.print(text, style="dim", highlight=False, markup=False)
            bar.update(line, total=started.total, completed=started.kept)

        def on_result(result: Result) -> None:
            nonlocal failures
            failures += bool(result.problem)
            bar.update(line, advance=1, failures=f"{failures} not judged" if failures else "")

        try:
            return grade_class(order, on_start=on_start, on_result=on_result)
        except (SubmissionsError, OtherRun) as error:
            raise BadInput(str(error)) from None
        except (StoreError, ClassError) as error:
            kept = "; what was graded is kept: --resume goes on" if (order.out / "run.json").exists() else ""
            raise Failure(f"{error}{kept}") from error


def _said(order: "Order", started: "Started") -> "Iterator[str]":
    """What a teacher should know before the first notebook."""
    yield started.sandbox
    if started.due is not None:
        yield f"due: {started.due:%Y-%m-%d %H:%M:%S} UTC"
    if order.resume and not started.begun:
        yield f"{shown(order.out)} held no run to go on with: a new one begins"
    for places, what in ((started.changed, "graded again, because changed"), (started.gone, "graded before, and gone now")):
        if places:
            yield f"{what} ({len(places)}): {_some(places)}"


def _some(places: "Sequence[str]", most: int = 5) -> str:
    return ", ".join(places[:most]) + (f" and {len(places) - most} more" if len(places) > most else "")


def _bar(shown_live: bool) -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Notebooks per second, measured over the last half minute."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.1f}/s" if task.speed else "")

    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("notebooks"), Rate(), TextColumn("[red]{task.fields[failures]}"))
    return Progress(*columns, TimeElapsedColumn(), console=console(stderr=True), transient=True, disable=not shown_live)


def _show(graded: "Graded", out: Path) -> None:
    from rich.text import Text

    from attn_course.grading.class_report import runs
    from attn_course.grading.page import counted

    terminal = console()
    by_status: dict[str, int] = {}
    for each in graded.marked:
        by_status[each.status] = by_status.get(each.status, 0) + 1
    others = [f"{count} {status}" for status, count in sorted(by_status.items()) if status != "graded"]
    late = sum(each.late_by is not None for each in graded.marked)
    others += [f"{late} late"] if late else []
    students, notebooks = len(graded.found.students), by_status.get("graded", 0)
    listed = runs(graded.lessons)
    terminal.print(
        Text(f"{counted(students, 'student')}, {counted(notebooks, 'notebook')} graded on ")
        + Text(f"{'chapter' if len(graded.lessons) == 1 else 'chapters'} {listed}, {graded.seconds:.1f} s")
        + Text("".join(f", {other}" for other in others), "yellow")
    )
    for note in graded.found.notes:
        terminal.print(Text.assemble(("Note", "bold yellow"), f": {note}"))
    for name, what in (
        ("grades.csv", "a row for each task"),
        ("summary.csv", "a row for each student"),
        ("class.html", "the class at a glance"),
        ("feedback/", "a page for each notebook"),
    ):
        terminal.print(f"  {shown(out / name)!s:<40} {what}", markup=False)
