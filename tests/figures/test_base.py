"""A figure arrives as a picture, as compared text and in words, or it does not arrive at all."""

import re
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import matplotlib
import nbformat
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure
from nbclient import NotebookClient

from attn_course import figures
from attn_course.figures import base
from tests.figures.support import Pictures, assert_described, assert_sound, ink_touches_the_edge

TITLE = "The line climbs to three"
ALT = 'A line that climbs <steadily> from zero & ends at "three", its highest point.'


def titled_figure(title: str = TITLE) -> Figure:
    figure = Figure(figsize=(3, 2))
    figure.suptitle(title)
    figure.subplots().plot([0, 1, 3])
    return figure


def test_the_words_land_in_the_three_places(shown):
    base.publish(titled_figure(), ALT)
    data, metadata = DisplayFormatter().format(shown.picture)
    folded, _ = DisplayFormatter().format(shown.words)
    assert shown == [shown.picture, shown.words]
    assert metadata["image/svg+xml"]["alt"] == ALT
    assert data["text/plain"] == f"[figure] {ALT}"
    assert folded["text/html"].startswith("<details><summary>Figure in words</summary>")
    assert "climbs &lt;steadily&gt; from zero &amp; ends at &quot;three&quot;" in folded["text/html"]


def test_a_kernel_sends_the_picture_once_and_none_inside_html():
    cell = nbformat.v4.new_code_cell(
        f"from attn_course import figures\nfigures.lines([0, 1], {{'a': [0, 3]}}, title={TITLE!r}, alt={ALT!r}, x_label='x', y_label='y')"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    picture, words = notebook.cells[0].outputs
    assert set(picture.data) == {"image/svg+xml", "text/plain"}
    assert set(words.data) == {"text/html", "text/plain"}
    assert picture.metadata["image/svg+xml"]["alt"] == ALT
    assert "base64" not in words.data["text/html"]
    assert "svg" not in words.data["text/html"]


@pytest.mark.parametrize(
    ("title", "alt", "message"),
    [
        (TITLE, "", "alt must be a text of at least 8 words; got 0: ''"),
        (TITLE, "too short", "alt must be a text of at least 8 words; got 2: 'too short'"),
        (TITLE, "one two three four\nfive six seven eight", "alt must be one line; got 2 lines"),
        ("", ALT, "title must be a text of at least 3 words; got 0: ''"),
        ("Softmax", ALT, "title must be a text of at least 3 words; got 1: 'Softmax'"),
    ],
)
def test_a_figure_without_words_is_refused_before_anything_is_shown(shown, title, alt, message):
    with pytest.raises(ValueError, match=message):
        base.publish(titled_figure(title), alt)
    with pytest.raises(ValueError, match=message), base.picture(title=title, alt=alt):
        pytest.fail("the block must not run")
    assert shown == []


def test_settings_of_the_reader_neither_change_the_figure_nor_get_lost(shown):
    figures.bars(["a", "b"], {"w": [0.4, 0.6]}, title=TITLE, alt=ALT, x_label="entry", y_label="weight")
    with matplotlib.rc_context({"font.size": 31, "axes.facecolor": "red", "lines.linewidth": 9}):
        figures.bars(["a", "b"], {"w": [0.4, 0.6]}, title=TITLE, alt=ALT, x_label="entry", y_label="weight")
        assert matplotlib.rcParams["font.size"] == 31
    assert shown[0].svg == shown[2].svg


def test_a_plot_is_drawn_for_a_phone_too_unless_its_words_or_panels_lose_their_room_or_nobody_sees_it(shown, monkeypatch):
    with base.picture(title=TITLE, alt=ALT) as (ax,):
        ax.plot([0, 1, 3])
    for rows, words in ((1, "words that need more room than a phone has"), (4, "")):
        with base.picture(title=TITLE, alt=ALT, rows=rows) as axes:
            for at in (0.0, 0.4):
                axes[0].text(at, 0.5, words)
    with base.picture(title=TITLE, alt=ALT, width=14.0) as (ax,):
        ax.set_xlabel("a label that is wider than the narrow sheet of a phone can hold in one line")
    monkeypatch.setenv(base.PHONE, "no")
    base.publish(titled_figure(TITLE), ALT)
    plots = [each for each in shown if isinstance(each, base.Picture)]
    assert [int(re.search(r'width="(\d+)"', each.narrow)[1]) if each.narrow else 0 for each in plots] == [403, 0, 0, 0, 0]


def test_the_edge_check_can_fail():
    pixels = np.full((5, 7, 3), 255, dtype=np.uint8)
    assert not ink_touches_the_edge(pixels)
    pixels[2, -1] = 0
    assert ink_touches_the_edge(pixels)


def changing_figure() -> None:
    changing_figure.drawn += 1
    base.publish(titled_figure(f"{TITLE} {changing_figure.drawn}"), ALT)


changing_figure.drawn = 0


def blank_figure() -> None:
    figure = Figure(figsize=(3, 2))
    figure.suptitle("a b c", fontsize=3)
    base.publish(figure, ALT)


@pytest.mark.parametrize(
    ("draw", "at_most", "message"),
    [
        (changing_figure, 60_000, "two drawings of the same numbers differ"),
        (lambda: base.publish(titled_figure(), ALT), 1_000, r"the picture takes \d+ bytes"),
        (blank_figure, 60_000, "the picture is blank"),
    ],
)
def test_the_shared_check_of_figures_can_fail(shown, draw, at_most, message):
    with pytest.raises(AssertionError, match=message):
        assert_sound(shown, draw, at_most)


def test_a_picture_whose_words_lack_a_number_is_noticed(shown):
    draw = partial(figures.bars, ["a"], {"w": [1.0]}, title=TITLE, alt=ALT, x_label="x", y_label="y")
    with pytest.raises(AssertionError, match="four and a half"):
        Pictures().test_each_is_whole_small_not_blank_the_same_every_time_and_its_words_hold_its_numbers(shown, draw, ["four and a half"])


def test_the_shared_check_of_cards_can_fail():
    page = SimpleNamespace(evaluate=lambda call, given: {"sum": given[0] + 1.0})
    assert_described(page, "toy", (1.0,), {"sum": 2.0}, atol=1e-9)
    with pytest.raises(AssertionError, match="sum"):
        assert_described(page, "toy", (1.0,), {"sum": 2.1}, atol=1e-9)


def test_the_figure_is_emptied_so_that_a_long_lesson_keeps_no_pictures_in_memory(shown):
    figure = titled_figure()
    base.publish(figure, ALT)
    assert figure.axes == []


def test_a_plain_interpreter_prints_the_words_once():
    code = f"from attn_course import figures; figures.bars(['a'], {{'w': [1.0]}}, title={TITLE!r}, alt={ALT!r}, x_label='x', y_label='y')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == f"[figure] {ALT}\nFigure in words (folded)\n"
    assert (run.returncode, run.stderr) == (0, "")
