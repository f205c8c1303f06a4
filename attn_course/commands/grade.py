"""`attn-course grade`: marks for a whole class."""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.chapters import HELP, read_chapters
from attn_course.commands.course import add_own, shown
from attn_course.commands.terminal import BadInput, Failure, console, note, option, refusing, say
from attn_course.numbers import counted, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.progress import Progress

    from attn_course.classroom.desk import Papers
    from attn_course.classroom.grade_class import GradedClass, Order, Started

_INTERRUPTED = 130


def grade(
    submissions: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="Folder or zip archive of the hand-ins.", show_default=False)],
    out: Annotated[Path, option("--out", "DIR", "New folder for grades, feedback and report.")],
    jobs: Annotated[int | None, option("--jobs", "N", "Grading processes; one for each core by default.", min=1)] = None,
    scheduler: Annotated[str | None, option("--scheduler", "ADDRESS", "Grade on this dask cluster instead.")] = None,
    seed: Annotated[int | None, option("--seed", "S", "Draws the secret cases; a new one by default.", min=0)] = None,
    chapters: Annotated[str | None, option("--chapters", "LIST", f"Chapters asked for: {HELP.lower()}.")] = None,
    due: Annotated[str | None, option("--due", "TIME", "Mark as late what timestamp.txt says came later.")] = None,
    tasks: Annotated[str | None, option("--tasks", "LIST", "Tasks asked for, by id or number; else all of their chapters.")] = None,
    roster: Annotated[Path | None, option("--roster", "CSV", "Who is in the class: id, name, email, section, due.")] = None,
    gradebook: Annotated[Path | None, option("--gradebook", "CSV", "Canvas's gradebook or Moodle's worksheet, to fill in.")] = None,
    assignment: Annotated[str | None, option("--assignment", "COLUMN", "Which assignment of Canvas's gradebook.")] = None,
    overrides: Annotated[Path | None, option("--overrides", "CSV", "Your decisions: student, what, points, comment, due.")] = None,
    points: Annotated[Path | None, option("--points", "CSV", "Other points for some tasks: task, points.")] = None,
    variants: Annotated[
        bool, typer.Option("--variants", help="Judge each student by their own numbers, as release --roster gave them.")
    ] = False,
    own: Annotated[Path | None, option("--own", "FOLDER", "Your own tasks, as release --own handed them out.")] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Name nobody on the pages.")] = False,
    site: Annotated[str, option("--site", "ADDRESS", "Where attn-course site is published; feedback links to it.")] = "",
    limit: Annotated[list[str] | None, option("--limit", "NAME=VALUE", "Allow more or less than usual; may be repeated.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in DIR.")] = False,
    student: Annotated[list[str] | None, option("--student", "ID", "With --resume: grade this one again, and nobody else.")] = None,
    allow_unsafe: Annotated[bool, typer.Option("--allow-unsafe", help="Grade even where learners' code cannot be confined.")] = False,
) -> None:
    """Grade a class: run every notebook in a sandbox on secret cases, and write marks, feedback and a report.

    SUBMISSIONS holds student/notebook.ipynb or, as nbgrader collects them, student/assignment/notebook.ipynb; or it is what
    Canvas or Moodle gave out, as a zip archive or unpacked. DIR gets grades.csv (a row for each task), summary.csv (a row for
    each student), class.html, feedback/ and report.json, and canvas.csv or moodle.csv to be taken back.

    Each result is stored as soon as it is there: after a crash or Ctrl-C, --resume goes on, with the seed, chapters, due
    time, limits and tables of the run that is there; a table that is given anew replaces the one before. Without --chapters,
    every chapter that anybody handed in is asked of all.

    TIME is such as "2026-12-01 18:00 Europe/Berlin"; UTC without a zone, the end of the day without a time. A late notebook
    is marked late and loses no points.

    NAME is a limit, such as cell=60: seconds for a code cell. The teachers' guide lists them all, and so does the error about
    a name that is none.

    Exit code: 0 if the class is graded, however well it did; 1 if grading or writing fails; 2 bad input; 130 interrupted.

    Examples:

        attn-course grade submitted --out grades --chapters softmax
        attn-course grade submitted --out grades --resume
        attn-course grade submissions.zip --out grades --gradebook canvas-export.csv --assignment "Week 3"
        attn-course grade submitted --out grades --resume --student ada
        attn-course grade submitted --out grades --scheduler tcp://10.0.0.5:8786
    """
    if jobs is not None and scheduler is not None:
        raise BadInput("--jobs and --scheduler exclude each other: the cluster has its own workers")
    if student and not resume:
        raise BadInput("--student grades one student of a run that is there again: add --resume")
    if site and not site.startswith(("https://", "http://")):
        raise BadInput(f"--site: wanted an address that begins with https://, got {site!r}")
    from attn_course.classroom import fork_server
    from attn_course.classroom.engines import Cluster, Pool
    from attn_course.classroom.grade_class import Order
    from attn_course.classroom.grader import Grader
    from attn_course.classroom.tables import plain
    from attn_course.classroom.times import parse_time
    from attn_course.tasks import lessons

    with refusing(ValueError, about="--due: "):
        when = None if due is None else parse_time(due, last_of_day=True)
    if own is not None:
        add_own(own)
    papers = _papers({"roster": roster, "gradebook": gradebook, "overrides": overrides, "points": points}, assignment, anonymous)
    order = Order(
        submissions=submissions,
        out=out,
        engine=Cluster(scheduler) if scheduler is not None else Pool(jobs or _cores(), fork_server.begin),
        grader=Grader,
        seed=seed,
        lessons=None if chapters is None else read_chapters(chapters, lessons()),
        due=when,
        tasks=None if tasks is None else _tasks(tasks),
        papers=papers,
        again=tuple(map(plain, student or ())),
        variants=variants,
        own=None if own is None else own.resolve(),
        limits=tuple(limit or ()),
        site=site,
        resume=resume,
        allow_unsafe=allow_unsafe,
    )
    try:
        graded = _run(order)
    except KeyboardInterrupt:
        if (out / "run.json").exists():
            console(stderr=True).print(
                f"attn-course: stopped; what was graded is kept: the same command with --resume goes on in {shown(out)}"
            )
        raise typer.Exit(_INTERRUPTED) from None
    _show(graded, out)


def _papers(files: "Mapping[str, Path | None]", assignment: str | None, anonymous: bool) -> "Papers":
    """The tables that are given, read."""
    from attn_course.classroom.desk import Papers
    from attn_course.classroom.tables import TableError, read_text

    with refusing(TableError):
        return Papers({name: (str(path), read_text(path)) for name, path in files.items() if path is not None}, assignment, anonymous)


def _tasks(text: str) -> tuple[str, ...]:
    """The tasks that a list names, in their order."""
    from attn_course.classroom.desk import find_task

    parts = [part.strip() for part in text.split(",") if part.strip()]
    found = {part: find_task(part) for part in parts}
    if not parts or (unknown := [part for part, task in found.items() if task is None]):
        raise BadInput(f"--tasks: wanted tasks by id or number, such as stable-softmax,2.3; got {', '.join(unknown) if parts else 'none'}")
    return tuple(sorted({str(task) for task in found.values()}, key=lambda task: place("tasks", task)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(order: "Order") -> "GradedClass":
    from attn_course.classroom.budget import LimitError
    from attn_course.classroom.downloads import SubmissionsError
    from attn_course.classroom.grade_class import grade_class
    from attn_course.classroom.process import ClassError
    from attn_course.classroom.store import NotebookResult, OtherRun, StoreError
    from attn_course.classroom.tables import TableError
    from attn_course.tasks.registry import OwnTasksError

    err = console(stderr=True)
    with _bar(err.is_terminal) as bar:
        line = bar.add_task("grading", total=None, failures="", rate="")
        failures = 0

        def on_start(started: "Started") -> None:
            for text in _said(order, started):
                bar.console.print(text, style="dim", highlight=False, markup=False)
            bar.update(line, total=started.total, completed=started.kept)

        def on_result(result: NotebookResult) -> None:
            nonlocal failures
            failures += bool(result.problem)
            bar.update(line, advance=1, failures=f"{failures} not judged" if failures else "")

        try:
            return grade_class(order, on_start=on_start, on_result=on_result)
        except (SubmissionsError, OtherRun, TableError, LimitError, OwnTasksError) as error:
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


def _show(graded: "GradedClass", out: Path) -> None:
    from rich.text import Text

    from attn_course.classroom.class_page import runs

    by_status = Counter(each.status for each in graded.marked)
    others = [f"{count} {status}" for status, count in sorted(by_status.items()) if status != "graded"]
    if late := sum(each.is_late for each in graded.marked):
        others.append(f"{late} late")
    students, notebooks = counted(len(graded.found.students), "student"), counted(by_status["graded"], "notebook")
    chapters = f"{'chapter' if len(graded.lessons) == 1 else 'chapters'} {runs(graded.lessons)}"
    done = Text(f"{students}, {notebooks} graded on {chapters}, {graded.seconds:.1f} s")
    say(done.append("".join(f", {other}" for other in others), "yellow"), prose=True)
    for text in graded.found.notes:
        note(text)
    for name, what in (
        ("grades.csv", "a row for each task"),
        ("summary.csv", "a row for each student"),
        ("class.html", "the class at a glance"),
        ("feedback/", "a page for each notebook"),
        *((name, "for the learning platform to take back") for name in graded.tables),
    ):
        say(f"  {shown(out / name)!s:<40} {what}")
