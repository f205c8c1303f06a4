"""`attn-course formulas`: the index of all equations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.chapters import read_chapter
from attn_course.commands.terminal import BadInput, console
from attn_course.numbers import eq, lesson_number

if TYPE_CHECKING:
    from attn_course.equations.index import Formula


def formulas(
    chapter: Annotated[
        str | None, typer.Option("--chapter", metavar="NAME", help="Only this lesson, by name or number.", show_default=False)
    ] = None,
    row: Annotated[
        str | None, typer.Option("--row", metavar="ID", help="Only this row (B1) or trap (X16) of the syllabus.", show_default=False)
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", metavar="", help="Print the LaTeX of each, ready to paste.")] = False,
    verify: Annotated[bool, typer.Option("--verify", metavar="", help="Check each by machine; exit code 1 if one does not hold.")] = False,
) -> None:
    """List the numbered equations of the course, and check them.

    Each is a statement that a machine checks, symbolically, numerically or statistically.

    Examples:

        attn-course formulas --chapter softmax
        attn-course formulas --row B1 --latex
        attn-course formulas --verify
    """
    formulas = _chosen(chapter, row)
    if verify:
        raise typer.Exit(_verify([formula["label"] for formula in formulas]))
    if latex:
        for formula in formulas:
            print(f"{formula['latex']} \\label{{{formula['label']}}}")
        return
    _show(formulas)


def _chosen(chapter: str | None, row: str | None) -> "list[Formula]":
    from attn_course.equations import UnknownEquation, lessons
    from attn_course.equations.index import formulas_table

    lesson = None if chapter is None else read_chapter(chapter, lessons(), "--chapter")
    try:
        chosen = formulas_table(lesson, row)
    except UnknownEquation as error:
        raise BadInput(str(error)) from None
    if row is not None and not chosen:
        raise BadInput(_why_no_equation(row, lesson))
    return chosen


def _why_no_equation(row: str, lesson: str | None) -> str:
    from attn_course.equations.index import coverage

    (promised,) = (entry for entry in coverage() if entry["id"] == row.upper())
    where = f"chapter {lesson_number(lesson)} has no equation" if lesson is not None else "there is no equation yet"
    lessons = " and ".join(f"chapter {lesson_number(slug)}" for slug in promised["lessons"])
    return f"{where} for {promised['id']} ({promised['about']}); it belongs to {lessons}"


def _show(formulas: "Sequence[Formula]") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("Eq.", no_wrap=True, justify="right")
    table.add_column("Label", no_wrap=True)  # whole, to be copied
    table.add_column("Checked", ratio=2, overflow="fold")
    table.add_column("Rows", overflow="fold")
    for formula in formulas:
        checked = ", ".join(part for part in (formula["kind"], formula["scope"]) if part)
        rows = " ".join((*formula["rows"], *formula["traps"]))
        table.add_row(Text(formula["number"].removeprefix("Eq. ")), Text(formula["label"]), Text(checked), Text(rows))
    out = console()
    out.print(table)
    them = "it" if len(formulas) == 1 else "them"
    out.print(f"{_counted(len(formulas))}; --latex prints {them}, --verify checks {them}")


def _counted(number: int) -> str:
    return f"{number} equation" + ("" if number == 1 else "s")


def _verify(labels: Sequence[str]) -> int:
    """Check each equation, say so line by line, and return the exit code."""
    from attn_course.equations import EquationError, get_equation

    out, err = console(), console(stderr=True)
    failed = 0
    for number, equation in enumerate(map(get_equation, labels), 1):
        with err.status(f"{eq(equation.label)}, {number} of {len(labels)}"):
            try:
                equation.check()
            except EquationError as error:
                failed += 1
                line = f"{error}"
            else:
                line = equation.success_line
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"{len(labels) - failed} of {_counted(len(labels))} hold{'s' if len(labels) == 1 else ''}")
    return 1 if failed else 0
