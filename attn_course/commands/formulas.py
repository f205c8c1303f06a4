"""`attn-course formulas`: the index of all equations."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.chapters import read_chapter
from attn_course.commands.terminal import BadInput, console, option, refusing, say, table
from attn_course.numbers import cite, counted, eq, lesson_number, named

if TYPE_CHECKING:
    from attn_course.equations import Equation
    from attn_course.equations.index import Formula


def formulas(
    label: Annotated[str | None, typer.Argument(metavar="LABEL", help="Only this equation, by name or number, and all about it.")] = None,
    chapter: Annotated[str | None, option("--chapter", "NAME", "Only this lesson, by name or number.")] = None,
    topic: Annotated[str | None, option("--topic", "ID", "Only this topic (B1) or trap (X16) of the syllabus.")] = None,
    latex: Annotated[bool, typer.Option("--latex", metavar="", help="Print the LaTeX of each, ready to paste.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", metavar="", help="Check each by machine, its wrong forms too; exit code 1 if one does not hold.")
    ] = False,
) -> None:
    """List the numbered equations of the course, and check them.

    Each is read as it is printed and evaluated on numbers that are made in another way, at several sizes.

    Examples:

        attn-course formulas softmax-jacobian
        attn-course formulas 2.12
        attn-course formulas --chapter softmax
        attn-course formulas --topic B1 --latex
        attn-course formulas --verify
    """
    if label is not None:
        _show_one(label, verify)
        return
    formulas = _chosen(chapter, topic)
    if verify:
        raise typer.Exit(_verify([formula["label"] for formula in formulas]))
    if latex:
        for formula in formulas:
            print(f"{formula['latex']} \\label{{{formula['label']}}}")
        return
    _show(formulas)


def _show_one(label: str, verify: bool) -> None:
    """Print what is known of one equation; with `verify`, check it too."""
    from attn_course.equations import UnknownEquation, all_equations, get_equation
    from attn_course.equations.rows import ROWS, TRAPS

    label = named("labels", label) or label
    with refusing(UnknownEquation):
        equation = get_equation(label)
    about = {each: said for each, (_, said) in (ROWS | TRAPS).items()}
    parts: list[tuple[str, Sequence[str]]] = [
        ("", [_in_signs(equation)]),
        ("Name", [label]),
        ("LaTeX", [equation.latex]),
        ("Why", [re.sub(r"Eq\. ([a-z][a-z0-9-]+)", lambda found: eq(found[1]), equation.why)]),
        ("Assumes", list(map(cite, equation.assumes))),
        ("Uses", list(map(_numbered, equation.uses))),
        ("Used by", [_numbered(other.label) for other in all_equations() if label in other.uses]),
        ("Topics", [about[each] for each in (*equation.topics, *equation.traps)]),
        ("Wrong forms", [f"{wrong.name}: {_in_signs(equation, wrong.latex)}" for wrong in equation.wrongs]),
        ("Checked", [equation.checked]),
    ]
    say(f"{eq(label)} {equation.name}")
    for title, lines in parts:
        for number, line in enumerate(lines):
            print(f"  {title if number == 0 else '':12}{line}".rstrip())
    if verify:
        raise typer.Exit(_verify([label]))


def _in_signs(equation: "Equation", latex: str | None = None) -> str:
    """A formula, or a wrong form of it, in signs that a terminal has; one that is not read is as it was typed."""
    from attn_course.formulas import write
    from attn_course.formulas.plain import plain

    return plain((latex or equation.latex) if equation.kind == "transcribed" else write(equation.read(latex).tree))


def _numbered(label: str) -> str:
    """Number and name; a planned lesson has no numbers yet."""
    return " ".join(dict.fromkeys(f"{eq(label)} {label}".split()))


def _chosen(chapter: str | None, topic: str | None) -> "list[Formula]":
    from attn_course.equations import UnknownEquation, lessons
    from attn_course.equations.index import formulas_table

    lesson = None if chapter is None else read_chapter(chapter, lessons(), "--chapter")
    with refusing(UnknownEquation):
        chosen = formulas_table(lesson, topic)
    if topic is not None and not chosen:
        raise BadInput(_why_no_equation(topic, lesson))
    return chosen


def _why_no_equation(topic: str, lesson: str | None) -> str:
    from attn_course.equations.index import coverage

    (promised,) = (entry for entry in coverage() if entry["id"] == topic.upper())
    where = f"chapter {lesson_number(lesson)} has no equation" if lesson is not None else "there is no equation yet"
    lessons = " and ".join(f"chapter {lesson_number(slug)}" for slug in promised["lessons"])
    return f"{where} for {promised['id']} ({promised['about']}); it belongs to {lessons}"


def _show(formulas: "Sequence[Formula]") -> None:
    from rich.text import Text

    from attn_course.equations import get_equation

    whole = {"no_wrap": True}  # to be copied
    index = table({"Eq.": whole | {"justify": "right"}, "Label": whole, "Formula": {"ratio": 2}})
    for formula in formulas:
        number = formula["number"].removeprefix("Eq. ").removeprefix(formula["label"])  # that of a planned lesson has none
        index.add_row(*map(Text, (number, formula["label"], _in_signs(get_equation(formula["label"])))))
    console().print(index)
    them = "it" if len(formulas) == 1 else "them"
    say(f"{counted(len(formulas), 'equation')}; --latex prints {them}, --verify checks {them}")


def _verify(labels: Sequence[str]) -> int:
    """Check each equation and that its wrong forms fail, say so line by line, and return the exit code."""
    from attn_course.equations import EquationError, get_equation
    from attn_course.equations.gates import wrong_form_problems

    err = console(stderr=True)
    failed = 0
    for number, equation in enumerate(map(get_equation, labels), 1):
        with err.status(f"{eq(equation.label)}, {number} of {len(labels)}"):
            try:
                equation.check()
                lines = wrong_form_problems(equation) or [equation.success_line]
            except EquationError as error:
                lines = [str(error)]
        failed += lines != [equation.success_line]
        for line in lines:
            say(line)
    say(f"{len(labels) - failed} of {counted(len(labels), 'equation')} hold{'s' if len(labels) == 1 else ''}")
    return 1 if failed else 0
