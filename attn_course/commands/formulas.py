"""`attn-course formulas`: the index of all numbered equations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.terminal import BadInput, console

if TYPE_CHECKING:
    from attn_course.equations import Equation


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
    equations = _chosen(chapter, row)
    if verify:
        raise typer.Exit(_verify(equations))
    if latex:
        for equation in equations:
            print(f"{equation.latex} \\tag{{{equation.tag}}}")
        return
    _show(equations)


def _chosen(chapter: int | None, row: str | None) -> "list[Equation]":
    from attn_course.equations import UnknownEquation, all_equations

    try:
        equations = all_equations(chapter)
    except UnknownEquation as error:
        raise BadInput(str(error)) from None
    if row is None:
        return equations
    chosen = [equation for equation in equations if row.upper() in (*equation.rows, *equation.traps)]
    if not chosen:
        raise BadInput(_why_no_equation(row, chapter))
    return chosen


def _why_no_equation(row: str, chapter: int | None) -> str:
    from attn_course.equations.rows import ROWS, TRAPS

    promised = (ROWS | TRAPS).get(row.upper())
    if promised is None:
        return f"there is no row {row!r}: rows are A1 to N1, traps X1 to X{len(TRAPS)}"
    lessons, about = promised
    where = f"chapter {chapter} has no equation" if chapter is not None else "there is no equation yet"
    return f"{where} for {row.upper()} ({about}); it belongs to {' and '.join(f'chapter {lesson}' for lesson in lessons)}"


def _show(equations: "Sequence[Equation]") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("Eq.", no_wrap=True, justify="right")
    table.add_column("Says", ratio=3, overflow="fold")
    table.add_column("Checked", ratio=2, overflow="fold")
    table.add_column("Rows", overflow="fold")
    for equation in equations:
        checked = ", ".join(part for part in (equation.kind, equation.scope) if part)
        table.add_row(Text(f"({equation.tag})"), Text(equation.name), Text(checked), Text(" ".join((*equation.rows, *equation.traps))))
    out = console()
    out.print(table)
    out.print(f"{len(equations)} equations; --latex prints them, --verify checks them")


def _verify(equations: "Sequence[Equation]") -> int:
    """Check each equation, say so line by line, and return the exit code."""
    from attn_course.equations import EquationError

    out, err = console(), console(stderr=True)
    failed = 0
    for number, equation in enumerate(equations, 1):
        with err.status(f"Eq. ({equation.tag}), {number} of {len(equations)}"):
            try:
                equation.check()
            except EquationError as error:
                failed += 1
                line = f"{error}"
            else:
                line = equation.success_line
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"{len(equations) - failed} of {len(equations)} equations hold")
    return 1 if failed else 0
