"""`attn-course lab`: work through the course in JupyterLab."""

from typing import Annotated

import typer

from attn_course.commands.lab_unpack import course_to_open
from attn_course.commands.terminal import option, say


def lab(
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="More options for JupyterLab, after --.", show_default=False)
    ] = None,
    port: Annotated[int | None, option("--port", "PORT", "Port to listen on; a free one from 8888 on if left out.")] = None,
    ip: Annotated[str, typer.Option("--ip", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 in a container.")] = "127.0.0.1",
    browser: Annotated[
        bool | None, typer.Option("--browser/--no-browser", help="Open a browser; by default if there is a display.", show_default=False)
    ] = None,
) -> None:
    """Open the course in JupyterLab: the first lesson, and my exercises in work/.

    Where pip installed the course, an empty folder gets its notebooks first, and after an upgrade the newer ones.
    Where the package runs from a checkout, that checkout is opened from any folder without a course, and its path is printed.
    Exercises that work/ lacks are copied there; a file that is there is never written over. Lessons are opened as copies in
    work/lessons/, which belong to you too: one that you have not written into follows the course. The address is printed, so
    this works without a display too. Stop with Ctrl-C. JupyterLab asks no website for anything.

    Examples:

        attn-course lab
        attn-course lab --no-browser --ip 0.0.0.0 --port 8890
    """
    root, said = course_to_open()
    for line in said:
        say(line)
    from attn_course.commands.lab_open import open_course

    raise typer.Exit(open_course(root, port=port, ip=ip, browser=browser, options=options or ()))
