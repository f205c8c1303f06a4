"""`attn-course notation`: what other texts call the things of this course."""

from typing import Annotated

import typer

from attn_course.commands.terminal import refusing


def notation(
    dialect: Annotated[
        str | None, typer.Argument(metavar="DIALECT", help="Only this way of writing; all six side by side if left out.")
    ] = None,
    letters: Annotated[
        bool, typer.Option("--letters", metavar="", help="List the letters that mean different things in different texts instead.")
    ] = False,
) -> None:
    """Translate between the words of this course and six other ways of writing attention.

    They are points, columns, features, transformer, sequences and torch.

    Examples:

        attn-course notation
        attn-course notation columns
        attn-course notation --letters
    """
    from attn_course.notation import letters as all_letters
    from attn_course.notation import table

    with refusing(ValueError):
        print(all_letters() if letters else table(dialect))
