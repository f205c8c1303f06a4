"""Break the machine: a small attention beside a twin with one mistake, as a card of a lesson and as a page of its own.

`build` writes the script that counts, from formula trees; those beside it show what it counts and hold the game.
"""

from pathlib import Path

from IPython.display import display

from attn_course.figures.explorable import Explorable, explorable_html, whole_page

HERE = Path(__file__).parent
SCRIPTS = tuple(HERE / f"{name}.js" for name in ("cells", "looks", "meet", "game", "orders"))
ALT = (
    "Two copies of a small attention side by side, one with a mistake; every number that goes in can be changed, numbers that differ "
    "are marked, and a game asks for the numbers that show the mistake, the test that proves it, and its name."
)
WARM_UP = (
    "A small attention on four words, every number of which can be changed. A warm-up of six trials asks for one change each, such as a "
    "query that makes 'it' look at 'cat', and says what the change has done. Then come levels with two copies side by side, one with a "
    "mistake to be found."
)


def card_of_the_machine(level: str | int | None = None) -> str:
    """Return the card as one piece of HTML, open at a level or where the reader stopped.

    `level`: its id (a twin's of `levels`), or its number, from 1 on, which does not name the mistake.
    """
    from attn_course.game.build import javascript

    slug = f"break-{level}" if level else "break"
    scripts = [javascript(), *(part.read_text(encoding="utf-8") for part in SCRIPTS)]
    return explorable_html(HERE / "page", slug, {"level": level} if level else None, scripts=scripts)


def page_of_the_machine() -> str:
    """Return a whole page that needs nothing beside it."""
    return whole_page("Break the machine", card_of_the_machine())


def break_the_machine(level: str | int | None = None) -> None:
    """Show the card in a notebook, open at a level, by its id or its number from 1 on, or where the reader stopped."""
    display(Explorable(card_of_the_machine(level), ALT if level else WARM_UP))
