"""Your turn: a cell of a lesson that its reader fills, its task, and where both may stand."""

from dataclasses import replace

import pytest

from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.source import Cell
from attn_course.authoring.turns import hold_turns
from attn_course.tasks.core import Sheet
from tests.authoring.conftest import toy_task

TURN = 'my_half = ...  # your function\ncheck("halve-it", my_half)'


STUB = 'def my_half(x):\n    return ...\n\n\ncheck("{}", my_half)'


def task(name):
    """The toy tasks, and two for the reader of the lesson; a whole cell answers the second."""
    sheet = Sheet("Half of it.", "", "", "", None, "", is_verbatim=True) if name == "fill-it" else None
    return replace(toy_task("half-it"), id=name, your_turn=True, sheet=sheet) if name in ("halve-it", "fill-it") else toy_task(name)


def turn(text=TURN, tags=("your-turn",)):
    return [Cell("turn", "code", text, tags)]


def test_a_name_to_fill_and_its_check_are_a_turn():
    hold_turns(turn(), task, "a.py")
    hold_turns(turn('check("double-it", my_double)', ()), task, "a.py")  # another task, shown in a lesson: nobody's turn
    hold_turns(turn(STUB.format("fill-it")), task, "a.py")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (turn(tags=()), "wanted the tag your-turn where halve-it is checked"),
        (turn('my_double = ...\ncheck("double-it", my_double)'), "wanted a task that says your_turn=True, got double-it"),
        (turn('my_half = lambda x: x / 2\ncheck("halve-it", my_half)'), "wanted 'my_half = ...\\\\ncheck"),
        (turn(STUB.format("halve-it")), "wanted 'my_half = ...\\\\ncheck"),
        (turn(STUB.format("fill-it").replace("...", "x / 2")), "wanted dots to replace"),
        (turn(STUB.format("fill-it") + "\nprint(2)"), "as the last line"),
        (turn(f"{TURN}\nprint(2)"), "at most comments beside it"),
        (turn("my_half = ..."), "one check of it in a cell tagged your-turn"),
        (turn('my_half = ...\ncheck("no-such", my_half)'), "wanted the id of a registered task"),
        ([Cell("turn", "markdown", "Your turn.", ("your-turn",))], "one check of it in a cell tagged your-turn"),
    ],
)
def test_anything_else_is_refused_with_its_place(cells, message):
    with pytest.raises(AuthoringError, match=message) as refused:
        hold_turns(cells, task, "a.py")
    assert str(refused.value).startswith("a.py: cell 'turn': ")


def test_a_lesson_with_a_turn_is_built_with_its_dots(course):
    text = course.read("notebooks/src/double.py")
    course.write("notebooks/src/double.py", text + f'\n# %% id="turn" tags=["your-turn"]\n{TURN}\n')
    course.build(get_task=task)
    (name,) = (path.name for path in (course.root / "notebooks").glob("*.ipynb"))
    cell = course.cell(f"notebooks/{name}", "turn")
    assert (cell.source, cell.metadata) == (TURN, {"tags": ["your-turn"]})
