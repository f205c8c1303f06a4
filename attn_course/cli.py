"""The command attn-course: parse the line, call one command, turn what goes wrong into one line and an exit code.

Exit codes: 0 all is well; 1 something fails (a task, a notebook, a check); 2 the input cannot be used; 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from attn_course.commands import (
    bench,
    cards,
    check,
    doctor,
    formulas,
    grade,
    lab,
    model,
    nbgrader,
    notation,
    notebooks,
    progress,
    release,
    similarity,
    site,
    slides,
)
from attn_course.commands.extras import missing_extra
from attn_course.commands.terminal import BadInput, Failure

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command has its own --help with examples. Exit codes: 0 fine, 1 something fails, 2 bad input.",
)
_INTERRUPTED = 130
_LEARN, _TEACH, _AUTHORS = "For learners", "For teachers", "For authors"
for _command in (lab.lab, check.check, progress.progress, cards.cards, formulas.formulas, notation.notation, model.model, doctor.doctor):
    app.command(rich_help_panel=_LEARN)(_command)
app.command(rich_help_panel=_TEACH)(release.release)
app.command(rich_help_panel=_TEACH)(grade.grade)
app.command(rich_help_panel=_TEACH)(similarity.similarity)
app.command(rich_help_panel=_TEACH)(site.site)
app.command(rich_help_panel=_TEACH)(slides.slides)
app.command(rich_help_panel=_AUTHORS)(bench.bench)
app.add_typer(nbgrader.app, name="nbgrader", rich_help_panel=_TEACH)
app.add_typer(notebooks.app, name="notebooks", rich_help_panel=_AUTHORS)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", metavar="", help="Print the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", metavar="", help="Show the whole traceback of an error (may stand anywhere).")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", metavar="", help="Plain text (may stand anywhere; NO_COLOR works too).")] = False,
) -> None:
    """Own attention: a course whose every exercise and equation is checked by a machine.

    Start with attn-course lab, work in JupyterLab, then run attn-course check to see your points.
    """
    if version:
        from attn_course import __version__

        typer.echo(f"attn-course {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    `arguments`: the words after the program's name; the default is the real command line. Returns the exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _take(words, "--debug")
    if _take(words, "--no-color"):
        os.environ["NO_COLOR"] = "1"
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without our signs gets "?", not an error
    try:
        code = int(app(words, prog_name="attn-course", standalone_mode=False) or 0)
        return _complain("interrupted", code) if code == _INTERRUPTED else code  # typer turns Ctrl-C into this code
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", _INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  # for the flush at exit
        return 1
    except Exception as error:
        if debug:
            raise
        return _complain(*_as_line(error))


def _take(words: list[str], flag: str) -> bool:
    """Remove a flag from before `--`, wherever it stands; return whether it was there."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != flag]
    words[:end] = kept
    return len(kept) < end


def _as_line(error: Exception) -> tuple[str, int]:
    """What to say about an error, and the exit code."""
    if isinstance(error, BadInput):
        return str(error), 2
    if isinstance(error, Failure):
        return str(error), 1
    if line := missing_extra(error):
        return line, 1
    if hasattr(error, "format_message"):  # a usage error of typer's parser
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "attn-course"
        return f"{' '.join(error.format_message().split())} (see {command} --help)", 2
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'} (--debug shows where)", 1


def _complain(message: str, code: int) -> int:
    for line in message.splitlines():
        print(f"attn-course: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
