"""A plot as a browser draws it: what matplotlib draws itself, in the ink of the page's theme."""

import base64
import io

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from attn_course import figures
from attn_course.figures.palette import INK_ON_DARK, INK_ON_LIGHT
from tests.figures.support import on_page

pytestmark = pytest.mark.browser
WORDS = {"title": "What the picture says at once", "alt": "A picture with enough words to stand in for itself."}
GROUND = {"light": "#ffffff", "dark": "#111111"}


@pytest.fixture(params=["lines", "heatmap"])
def plot(shown, request):
    if request.param == "lines":
        series = {"a": [0.1, 0.2, 0.9], "b": [0.3, 0.1, 0.2]}
        figures.lines([1, 2, 4], series, x_label="x", y_label="y", points=True, references={"most": 0.8}, **WORDS)
    else:
        figures.heatmap([[0.1, 0.9], [0.5, 0.5]], mask=[[True, False], [True, True]], **WORDS)
    return shown


def seen(page, svg: str, theme: str) -> np.ndarray:
    """What a page of a theme shows of a plot: (height, width, 3), from 0 to 255."""
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")  # the theme of the page counts, not the system's
    source = base64.b64encode(svg.encode()).decode()
    image = f'<img src="data:image/svg+xml;base64,{source}" alt="plot">'
    page.set_content(f'<body style="margin:0;color-scheme:{theme};background:{GROUND[theme]}">{image}')
    return np.asarray(Image.open(io.BytesIO(page.locator("img").screenshot())).convert("RGB"))


def test_the_browser_draws_what_matplotlib_draws(page, plot):
    wide, drawn = seen(page, plot.picture.svg, "light"), on_page(plot.pixels)
    smaller = Image.fromarray(drawn).resize(wide.shape[1::-1], Image.Resampling.BOX)
    apart = np.abs(wide.astype(float) - np.asarray(smaller, dtype=float)).mean(axis=-1)
    assert apart.mean() < 4
    assert (apart > 128).mean() < 0.006, "more than the edges of letters"


@pytest.mark.parametrize(("theme", "ink"), [("light", INK_ON_LIGHT), ("dark", INK_ON_DARK)])
def test_its_ink_follows_the_theme_of_the_page(page, plot, theme, ink):
    pixels = seen(page, plot.picture.svg, theme)
    assert (np.abs(pixels - 255 * np.array(to_rgb(ink))).max(axis=-1) < 3).sum() > 200
    assert (pixels == 255 * np.array(to_rgb(GROUND[theme]))).all(axis=-1).mean() > 0.5
