"""What a reader would see: the objects a figure hands to the front end, and its picture as pixels."""

import io
from collections.abc import Callable

import numpy as np
from matplotlib import image

from attn_course.figures import base


class Shown(list):
    """The displayed objects, in order."""

    @property
    def picture(self) -> base.Picture:
        """The only picture."""
        (picture,) = [item for item in self if isinstance(item, base.Picture)]
        return picture

    @property
    def words(self) -> base.Words:
        """The only folded line."""
        (words,) = [item for item in self if isinstance(item, base.Words)]
        return words


def decode(png: bytes) -> np.ndarray:
    """Read a PNG with matplotlib's reader (Pillow), which shares no code with the course's writer: (height, width, 3) uint8."""
    pixels = image.imread(io.BytesIO(png), format="png")
    return np.round(pixels[..., :3] * 255).astype(np.uint8)


def ink_touches_the_edge(pixels: np.ndarray) -> bool:
    """Whether anything but paper lies on the outermost pixels, which means that a label is clipped."""
    ink = (pixels != 255).any(axis=-1)
    return bool(ink[[0, -1]].any() or ink[:, [0, -1]].any())


def assert_sound(shown: Shown, draw: Callable[[], object], at_most: int = 60_000) -> None:
    """Draw twice: the picture is whole, not blank, at most so many bytes, the same both times, and said in the words beneath."""
    draw()
    draw()
    first, words, second, _ = shown
    pixels = decode(first.png)
    assert first == second, "two drawings of the same numbers differ"
    assert words.alt == first.alt, "the words beneath are not those of the picture"
    assert len(first.png) < at_most, f"the picture takes {len(first.png)} bytes"
    assert not ink_touches_the_edge(pixels), "a label is clipped"
    assert 0.02 < (pixels != 255).any(axis=-1).mean() < 0.9, "the picture is blank, or all ink"
