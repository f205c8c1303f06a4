"""`attn-course slides`: a lesson to project."""

from pathlib import Path
from typing import Annotated

import typer

from attn_course.commands.chapters import exercise_lessons, read_chapter
from attn_course.commands.course import course_to_read, shown
from attn_course.commands.terminal import option, refusing, say


def slides(
    lessons: Annotated[list[str], typer.Argument(metavar="LESSON...", help="Lessons, such as softmax or 2.", show_default=False)],
    out: Annotated[Path, option("--out", "DIR", "Folder for the slides.")] = Path("slides"),
) -> None:
    """Make slides of a lesson: one idea, equation, machine, figure or prediction each, from the built notebook alone.

    Open DIR/LESSON.html in a browser; nothing is loaded from elsewhere. What came out of a prediction appears with the next key, and
    numbers of an equation can be changed as in the lesson. D makes a light deck dark, and back. S opens the notes for
    the speaker: what the lesson says, and the minutes.

    Examples:

        attn-course slides softmax
        attn-course slides softmax attention --out lecture
    """
    root = course_to_read()
    chosen = [read_chapter(lesson, exercise_lessons(root), "slides") for lesson in lessons]
    from attn_course.authoring.problems import AuthoringError
    from attn_course.site.slides import write_slides

    for lesson in chosen:
        with refusing(AuthoringError):
            deck = write_slides(root, lesson, out)
        minutes = sum(minutes for _, minutes in deck.plan())
        say(f"{len(deck.slides)} slides, {minutes} minutes: {shown(out / f'{lesson}.html')}")
