"""`attn-course similarity`: which submissions of a class are alike."""

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.course import add_own, find_course, shown
from attn_course.commands.terminal import BadInput, check_json_target, note, option, refusing, say, write_json
from attn_course.files import write_atomically
from attn_course.numbers import counted, lesson_place

if TYPE_CHECKING:
    from attn_course.classroom.similarity import Comparison


def similarity(
    submissions: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="Folder or zip archive of the hand-ins.", show_default=False)],
    out: Annotated[Path | None, option("--out", "FILE", "Also write a page that shows the shared parts.")] = None,
    json_file: Annotated[str | None, option("--json", "FILE", "Also write the pairs as JSON; - prints nothing else.")] = None,
    roster: Annotated[Path | None, option("--roster", "CSV", "Who is in the class: call students by its ids, as grade does.")] = None,
    own: Annotated[Path | None, option("--own", "FOLDER", "Your own tasks, as release --own handed them out.")] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="SHARE", help="Smallest share of the shorter one's own code to list.")
    ] = 0.6,
) -> None:
    """List pairs of submissions whose code is alike, whatever its names, layout and comments; nothing is run.

    Code that the exercise or its lesson shows does not count; nor does short code that more than a quarter of the class
    shares, and a line says how much that is. A percentage is of what then remains of the shorter notebook. Long code
    counts however many share it. Alike is a reason to look, never a proof.

    Examples:

        attn-course similarity submitted
        attn-course similarity submitted --out similar.html --threshold 0.8
    """
    check_json_target(json_file)
    if out is not None and (out.suffix != ".html" or out.is_dir() or not out.absolute().parent.is_dir()):
        raise BadInput(f"--out: wanted a .html file in a folder that exists; got {out}")
    from attn_course.classroom.downloads import SubmissionsError, opened
    from attn_course.classroom.similarity import compare

    root = find_course()
    if own is not None:
        add_own(own)
    with refusing(SubmissionsError), opened(submissions) as (folder, left_out):
        by_assignment, notes = _cells(folder, roster)
    notes = [*left_out, *notes]
    found: dict[str, Comparison] = {}
    for name, cells in sorted(by_assignment.items(), key=lambda item: lesson_place(item[0])):
        with refusing(ValueError):
            found[name] = compare(cells, shown=_given(root, name), threshold=threshold)
    count = sum(map(len, by_assignment.values()))
    if json_file:
        write_json(json_file, _plain(found, count))
    if out is not None:
        from attn_course.classroom.similarity_page import similarity_page
        from attn_course.tasks import all_tasks

        tasks = {name: {task.entry: task.id for task in all_tasks(name)} for name in found}
        try:
            write_atomically(out, similarity_page(found, count, tasks))
        except OSError as error:
            raise BadInput(f"--out: {out}: {error.strerror or error}") from None
    for comparison in found.values():
        for student, missed in comparison.unread.items():
            notes.append(f"{student}: {counted(missed, 'code cell')} not compared, being no Python")
    if json_file != "-":
        _show(found, count, notes, out)


def _cells(submissions: Path, roster: Path | None) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """The code cells of each student, less the checks, by lesson."""
    from attn_course.checking.cells import NotebookError, read_code_cells
    from attn_course.classroom.hand_ins import find_submissions
    from attn_course.classroom.roster import read_roster
    from attn_course.classroom.submission import MAX_CODE_CHARACTERS
    from attn_course.classroom.tables import TableError, read_text
    from attn_course.tasks import lessons

    with refusing(TableError):
        known = None if roster is None else read_roster(read_text(roster), str(roster))
    found = find_submissions(submissions, lessons=lessons(), roster=known)
    by_assignment: dict[str, dict[str, list[str]]] = defaultdict(dict)
    notes = list(found.notes)
    for hand_in in found.hand_ins:
        problem = hand_in.problem
        if not problem and hand_in.lesson is not None:
            try:
                cells = [cell.source for cell in read_code_cells(hand_in.path) if cell.role != "check"]
            except NotebookError as error:
                problem = str(error).removeprefix(f"{hand_in.path}: ")
            else:
                if sum(map(len, cells)) > MAX_CODE_CHARACTERS:
                    problem = f"holds more than {MAX_CODE_CHARACTERS} characters of code: not compared"
            if not problem:  # two notebooks of one student count together
                by_assignment[hand_in.lesson].setdefault(hand_in.student, []).extend(cells)
        if problem:
            notes.append(f"{hand_in.place}: {problem}")
    return by_assignment, notes


def _given(root: Path, lesson: str) -> list[str]:
    """What everybody may read: the cells of the exercise and of its lesson."""
    from attn_course.checking.cells import NotebookError, exercise_files, read_code_cells
    from attn_course.tasks.registry import own_exercises

    cells: list[str] = []
    for folder, names in (("exercises", "ex_*.ipynb"), ("notebooks", "*.ipynb")):
        with contextlib.suppress(NotebookError, KeyError):
            there = {**exercise_files(root / folder, names), **own_exercises()}
            cells += [cell.source for cell in read_code_cells(there[lesson])]
    return cells


def _plain(found: "dict[str, Comparison]", count: int) -> dict[str, object]:
    pairs = [
        {"assignment": name, "students": list(pair.students), "share": round(pair.share, 4), "rows": pair.rows, "lines": pair.lines}
        for name, comparison in found.items()
        for pair in comparison.pairs
    ]
    left_out = [
        {"assignment": name, "defines": common.name, "lines": common.lines, "students": list(common.students)}
        for name, comparison in found.items()
        for common in comparison.left_out
    ]
    return {"version": 1, "compared": count, "pairs": pairs, "left_out": left_out}


def _show(found: "dict[str, Comparison]", count: int, notes: Sequence[str], out: Path | None) -> None:
    from rich.text import Text

    from attn_course.classroom.similarity import groups

    for name, comparison in found.items():
        say(Text(name, "bold"))
        for students, pairs in groups(comparison.pairs):
            who = f"{', '.join(students[:-1])} and {students[-1]}"
            say(f"  {pairs[0].share:4.0%}  {who} ({counted(pairs[0].lines, 'line')})")
        if not comparison.pairs:
            say("  no pair stands out")
        if left_out := comparison.left_out:
            pieces = counted(len(left_out), "piece")
            say(f"  not counted because many share it: {pieces} of code, the most common by {len(left_out[0].students)} students")
    for text in notes:
        note(text)
    if any(comparison.pairs for comparison in found.values()):
        say("A percentage is of the shorter notebook's own code: what was given, or is short and common, is no part of it.", prose=True)
    say(f"{count} notebooks compared" + (f"; shared parts in {shown(out.absolute())}" if out else ""))
