"""`attn-course formulas`: the index of all numbered equations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.terminal import BadInput, console

if TYPE_CHECKING:
    from attn_course.equations.index import Formula


def formulas(
    chapter: Annotated[int | None, typer.Option("--chapter", metavar="N", help="Only this chapter.", show_default=False)] = None,
    row: Annotated[
        str | None, typer.Option("--row", metavar="ID", help="Only this row (B1) or trap (X16) of the syllabus.", show_default=False)
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", metavar="", help="Print the LaTeX of each, ready to paste.")] = False,
    verify: Annotated[bool, typer.Option("--verify", metavar="", help="Check each by machine; exit code 1 if one does not hold.")] = False,
) -> None:
    """List the numbered equations of the course, and check them.

    Each is a statement that a machine checks, symbolically, numerically or statistically.

    Examples:

        attn-course formulas --chapter 2
        attn-course formulas --row B1 --latex
        attn-course formulas --verify
    """
    formulas = _chosen(chapter, row)
    if verify:
        raise typer.Exit(_verify([formula["tag"] for formula in formulas]))
    if latex:
        for formula in formulas:
            print(f"{formula['latex']} \\tag{{{formula['tag']}}}")
        return
    _show(formulas)


def _chosen(chapter: int | None, row: str | None) -> "list[Formula]":
    from attn_course.equations import UnknownEquation
    from attn_course.equations.index import formulas_table

    try:
        chosen = formulas_table(chapter, row)
    except UnknownEquation as error:
        raise BadInput(str(error)) from None
    if row is not None and not chosen:
        raise BadInput(_why_no_equation(row, chapter))
    return chosen


def _why_no_equation(row: str, chapter: int | None) -> str:
    from attn_course.equations.index import coverage

    (promised,) = (entry for entry in coverage() if entry["id"] == row.upper())
    where = f"chapter {chapter} has no equation" if chapter is not None else "there is no equation yet"
    lessons = " and ".join(f"chapter {lesson}" for lesson in promised["lessons"])
    return f"{where} for {promised['id']} ({promised['about']}); it belongs to {lessons}"


def _show(formulas: "Sequence[Formula]") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("Eq.", no_wrap=True, justify="right")
    table.add_column("Says", ratio=3, overflow="fold")
    table.add_column("Checked", ratio=2, overflow="fold")
    table.add_column("Rows", overflow="fold")
    for formula in formulas:
        checked = ", ".join(part for part in (formula["kind"], formula["scope"]) if part)
        rows = " ".join((*formula["rows"], *formula["traps"]))
        table.add_row(Text(f"({formula['tag']})"), Text(formula["name"]), Text(checked), Text(rows))
    out = console()
    out.print(table)
    them = "it" if len(formulas) == 1 else "them"
    out.print(f"{_counted(len(formulas))}; --latex prints {them}, --verify checks {them}")


def _counted(number: int) -> str:
    return f"{number} equation" + ("" if number == 1 else "s")


def _verify(tags: Sequence[str]) -> int:
    """Check each equation, say so line by line, and return the exit code."""
    from attn_course.equations import EquationError, get_equation

    out, err = console(), console(stderr=True)
    failed = 0
    for number, equation in enumerate(map(get_equation, tags), 1):
        with err.status(f"Eq. ({equation.tag}), {number} of {len(tags)}"):
            try:
                equation.check()
            except EquationError as error:
                failed += 1
                line = f"{error}"
            else:
                line = equation.success_line
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"{len(tags) - failed} of {_counted(len(tags))} hold{'s' if len(tags) == 1 else ''}")
    return 1 if failed else 0
