"""`attn-course check`: run my exercises and show what each task says."""

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.course import find_course, shown, work_notebooks
from attn_course.commands.terminal import BadInput, check_json_target, console, note, option, positive, signals_interrupt, table, write_json
from attn_course.numbers import lesson_number, task_number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attn_course.checking.report import NotebookReport, TaskReport

_TABLE_WIDTH = 60  # below it three columns cut words
_MOST_AT_A_TIME = 4  # notebooks; each kernel holds torch in memory
_LOOK_S = 0.2  # Windows hears Ctrl-C only between two waits


def check(
    notebooks: Annotated[
        list[Path] | None, typer.Argument(metavar="NOTEBOOK", help="Notebooks to check; all of work/ if none is named.", show_default=False)
    ] = None,
    json_file: Annotated[str | None, option("--json", "FILE", "Also write the verdicts as JSON; - prints nothing else.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Longest time for one cell.")] = 60.0,
) -> None:
    """Run my exercises from the top, in a fresh kernel, and list tasks, points and hints.

    The check cells are taken from exercises/, so it does not matter if yours were changed or deleted. Your notebooks
    are only read. Of two notebooks in work/ on one lesson the totals count the better one. A damaged file in work/ keeps
    no other from being checked. Exit code: 0 if every task passes, 1 if one does not, 2 if a file cannot be used.
    The JSON follows attn_course.checking.report.REPORT_SCHEMA.

    Examples:

        attn-course check
        attn-course check work/ex_02_softmax.ipynb --json verdicts.json
    """
    positive(timeout, "--timeout")
    check_json_target(json_file)
    courses, complaints = _of_the_course(_courses(notebooks), named=bool(notebooks))
    reports = _run(courses, timeout)
    if not notebooks:
        from attn_course.checking.report import count_each_lesson_once

        reports = count_each_lesson_once(reports)
    if json_file:
        from attn_course.checking.report import report_to_dict

        found = report_to_dict(reports)
        write_json(json_file, found | {"passed": found["passed"] and not complaints})
    if json_file != "-":
        _show(reports)
    if complaints:
        raise BadInput("\n".join(complaints))
    raise typer.Exit(0 if all(report.passed for report in reports if report.counted) else 1)


def _courses(notebooks: Sequence[Path] | None) -> dict[Path, Path]:
    """Each notebook, with the root of its course."""
    if notebooks:
        return {notebook: find_course(notebook.absolute().parent) for notebook in notebooks}
    root = find_course()
    found = [shown(notebook) for notebook in work_notebooks(root)]
    if not found:
        raise BadInput(f"{shown(root / 'work')} holds no notebooks yet: attn-course lab copies the exercises there")
    return dict.fromkeys(found, root)


def _of_the_course(courses: dict[Path, Path], *, named: bool) -> tuple[dict[Path, Path], list[str]]:
    """Those that can be run, and what is wrong with the others, which is said at once of those that are named.

    Notes of one's own in work/ are left out unless named.
    """
    from attn_course.checking.cells import NoTasks, NotebookError
    from attn_course.checking.notebook_check import plan_check
    from attn_course.tasks import progress

    complaints: list[str] = []
    notes: list[str] = []
    of_the_course = {}
    for notebook, root in courses.items():
        try:
            plan_check(notebook, exercises=root / "exercises")
            recorded_in = progress.course_root(notebook.absolute().parent)
            if recorded_in:
                with contextlib.suppress(OSError):  # it keeps nobody from the verdicts; a note says so
                    progress.load(recorded_in)
            of_the_course[notebook] = root
        except (NotebookError, ValueError) as error:
            (notes if isinstance(error, NoTasks) and not named else complaints).append(str(error))
    complaints = [*dict.fromkeys(complaints)]
    if not of_the_course or (complaints and named):
        raise BadInput("\n".join(complaints or dict.fromkeys(notes)))
    return of_the_course, complaints


def _run(courses: dict[Path, Path], timeout_s: float) -> "list[NotebookReport]":
    from concurrent.futures import ThreadPoolExecutor, wait

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from attn_course.checking.nbval_run import EngineError
    from attn_course.checking.notebook_check import check_notebook, not_judged

    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TextColumn("cells"), TimeElapsedColumn())
    err = console(stderr=True)
    bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    stopped = threading.Event()

    def run(notebook: Path, root: Path) -> "NotebookReport":
        line = bar.add_task(notebook.name, total=None)

        def on_cell(done: int, total: int) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt
            bar.update(line, completed=done, total=total)

        try:
            return check_notebook(notebook, exercises=root / "exercises", cell_timeout_s=timeout_s, on_cell=on_cell)
        except EngineError as error:
            return not_judged(notebook, exercises=root / "exercises", reason=str(error))

    with signals_interrupt(), bar, ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_AT_A_TIME)) as pool:
        try:
            runs = [pool.submit(run, notebook, root) for notebook, root in courses.items()]
            while wait(runs, timeout=_LOOK_S).not_done:
                pass
        except KeyboardInterrupt:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [run.result() for run in runs]


def _show(reports: "Sequence[NotebookReport]") -> None:
    from rich.text import Text

    out = console()
    for report in reports:
        out.print(Text.assemble((report.notebook, "bold"), f" (chapter {lesson_number(report.lesson)})"))
        for problem in report.problems:
            out.print(Text.assemble((f"Code cell {problem.cell}", "bold red"), f" ({problem.first_line}): {problem.message}"))
        for text in report.notes:
            note(text)
        out.print(_table(report.tasks) if out.width >= _TABLE_WIDTH else _list(report.tasks))
    tasks = [task for report in reports if report.counted for task in report.tasks]
    points, max_points = sum(task.points for task in tasks), sum(task.max_points for task in tasks)
    seconds = sum(report.seconds for report in reports)
    out.print(f"{sum(task.passed for task in tasks)} of {len(tasks)} tasks pass, {points} of {max_points} points, {seconds:.0f} s")


def _table(tasks: "Sequence[TaskReport]") -> "RenderableType":
    from rich.text import Text

    points = {"justify": "right", "no_wrap": True}
    made = table({"Task": {"ratio": 2, "min_width": 12}, "Points": points, "Result": {"ratio": 4, "min_width": 16}})
    for task in tasks:
        made.add_row(Text(f"{task_number(task.id)} {task.title}"), f"{task.points}/{task.max_points}", _result(task))
    return made


def _list(tasks: "Sequence[TaskReport]") -> "RenderableType":
    """The table's rows one below the other, for a narrow terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines: list[RenderableType] = []
    for task in tasks:
        lines += [
            Text(f"{task_number(task.id)} {task.title}, {task.points}/{task.max_points}", "bold"),
            Padding(_result(task), (0, 0, 0, 4)),
        ]
    return Group(*lines)


def _result(task: "TaskReport") -> "RenderableType":
    from rich.text import Text

    from attn_course.tasks.latex import on_one_line

    if task.passed:
        return Text("passed", "green")
    message = on_one_line(task.message)  # beneath a formula that is folded, carets would point at nothing
    if task.status == "unanswered":
        result = Text(message, "yellow")
    else:
        result = Text.assemble((task.status, "bold red" if task.status == "failed" else "bold yellow"), f": {message}")
    return result.append(f"\nHint: {task.hint}", "cyan") if task.hint else result
