"""What a reader would see: the objects a figure hands to the front end, its picture as pixels, and the cards of all lessons."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import attn_course
from attn_course.figures import base
from attn_course.figures.explorable import explorable_html

LESSONS = Path(attn_course.__file__).parent / "lessons"
CARDS = {script.stem: script.with_suffix("") for script in sorted(LESSONS.glob("*/explorables/*.js"))}


WITHOUT_SLIDERS = {"looks"}  # its words are its controls; its script makes them, see tests/figures/test_start.py


class Shown(list):
    """The displayed objects, in order; of plots also what a reader would mind, and the pixels of the last."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.looking = True  # without, a plot is neither looked at nor drawn for a phone
        self.pixels = np.zeros((0, 0, 4), dtype=np.uint8)

    @property
    def picture(self) -> base.Picture:
        (picture,) = [item for item in self if isinstance(item, base.Picture)]
        return picture

    @property
    def words(self) -> base.Words:
        (words,) = [item for item in self if isinstance(item, base.Words)]
        return words


class Pictures:
    """What holds for each picture of a lesson.

    Beside the class that inherits it a test file has DRAWN: calls, each with what the words made from its numbers must hold; and
    REFUSED: calls with numbers that do not fit, each with the message.
    """

    at_most = 60_000  # bytes

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each picture, or each refused call, to the tests that ask for one."""
        if "facts" in metafunc.fixturenames:
            drawn = metafunc.module.DRAWN
            metafunc.parametrize(("draw", "facts"), drawn, ids=[draw.func.__name__ for draw, _ in drawn])
        if "message" in metafunc.fixturenames:
            metafunc.parametrize(("draw", "message"), metafunc.module.REFUSED)

    def test_each_is_whole_small_not_blank_the_same_every_time_and_its_words_hold_its_numbers(self, shown, draw, facts):
        assert_sound(shown, draw, self.at_most)
        for fact in facts:
            assert fact in shown[0].alt, f"the words lack {fact!r}"

    def test_numbers_that_do_not_fit_are_refused(self, shown, draw, message):
        with pytest.raises(ValueError, match=message):
            draw()
        assert shown == []


def on_page(pixels: np.ndarray, page: str = "white") -> np.ndarray:
    """Lay what was drawn (height, width, 4) on a page: (height, width, 3) uint8."""
    share = pixels[..., 3:] / 255
    return np.round(share * pixels[..., :3] + (1 - share) * 255 * np.array(to_rgb(page))).astype(np.uint8)


def ink_touches_the_edge(pixels: np.ndarray) -> bool:
    """Whether anything but the white page lies on the outermost pixels, which means that a label is clipped."""
    ink = (pixels != 255).any(axis=-1)
    return bool(ink[[0, -1]].any() or ink[:, [0, -1]].any())


def assert_sound(shown: Shown, draw: Callable[[], object], at_most: int = 60_000) -> None:
    """Draw twice: the picture is whole, not blank, at most so many bytes, the same both times, and said in the words beneath."""
    draw()
    shown.looking = False
    draw()
    first, words, second, _ = shown
    pixels = on_page(shown.pixels)
    assert (first.svg, first.alt) == (second.svg, second.alt), "two drawings of the same numbers differ"
    assert words.alt == first.alt, "the words beneath are not those of the picture"
    assert len(first.svg) < at_most, f"the picture takes {len(first.svg)} bytes"
    assert not ink_touches_the_edge(pixels), "a label is clipped"
    assert 0.02 < (pixels != 255).any(axis=-1).mean() < 0.9, "the picture is blank, or all ink"
    assert not shown.faults, shown.faults


def card_html(name: str, slug: str = "", data: Any = None) -> str:
    """Return a card of a lesson, under its own name if no slug is given."""
    return explorable_html(CARDS[name], slug or name, data)


def words_of_card(name: str) -> str:
    return CARDS[name].with_name(f"{name}_words.html").read_text(encoding="utf-8")


def rows_of_card(name: str) -> list[tuple[str, list[str]]]:
    """Return the rows of the table in these words: the head of each, and its cells."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', words_of_card(name))
    return [(head, re.findall(r"<td>(.*?)</td>", cells)) for head, cells in rows]


def described(page: Any, name: str, *given: Any) -> Any:
    return page.evaluate(f"(given) => document.getElementById('attn-{name}').explorable.describe(...given)", list(given))


def assert_described(page: Any, name: str, given: tuple, wanted: dict, **tolerance: float) -> None:
    """The card counts each of these numbers as Python does."""
    shown = described(page, name, *given)
    for fact, value in wanted.items():
        np.testing.assert_allclose(shown[fact], value, **tolerance, err_msg=fact)
