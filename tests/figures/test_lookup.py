"""The figures of lesson lookup say what their numbers say, and its card counts as Python does."""

import math
import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from tests.figures.support import assert_sound

KEYS, VALUES = [6.0, 9.0, 12.0, 18.0], [8.0, 12.0, 18.0, 14.0]
CORNERS = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 3.0], [0.0, 3.0]])
TEXTS = {"title": "Another finding altogether", "alt": "One two three four five six seven eight nine."}


def draw_recall(**options):
    steps = {"attention": [50, 50, 50], "RNN": [100, 300, 1000]}
    norms = {"attention": [0.2, 0.1, 0.05, 0.02], "RNN": [0.5, 0.1, 0.01, 1e-6]}
    figures.recall_at_distance([2, 8, 32], steps, [2, 8, 32, 64], norms, most_steps=1000, **options)


def draw_maps(**options):
    texts = {**TEXTS, **options}
    figures.maps_side_by_side({"one": np.eye(3, 4), "other": np.full((3, 4), 0.25)}, rows=["a", "b", "c"], columns=list("defg"), **texts)


def draw_signed_maps(**options):
    figures.maps_side_by_side({"one": np.diag([2.0, -1.0]), "other": np.zeros((2, 2))}, signed=True, digits=1, **{**TEXTS, **options})


def draw_fits(**options):
    x = np.arange(20.0)
    figures.kernel_fits(x, np.sin(x), x, {"narrow": np.sin(x), "wide": 0 * x}, x_label="time", y_label="height", **options)


def draw_hull(**options):
    figures.outputs_in_hull(CORNERS, [[1.0, 1.0], [2.0, 2.5]], outside=[-1.0, 1.0], **options)


FIGURES = [draw_recall, draw_maps, draw_signed_maps, draw_fits, draw_hull]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(**TEXTS)
    assert shown.words.alt == TEXTS["alt"]


def test_the_words_of_the_recall_name_the_steps_and_what_was_not_learnt(shown):
    draw_recall()
    assert "with 2, 8 and 32 distractions. attention: 50, 50 and 50. RNN: 100, 300 and not learnt." in shown.words.alt
    assert "RNN: from 0.5 to 1.0 · 10⁻⁶." in shown.words.alt


def test_the_words_of_the_fits_and_of_the_hull_name_their_numbers(shown):
    draw_fits()
    assert "wide: from 0 to 0." in shown.words.alt
    shown.clear()
    draw_hull()
    assert shown.words.alt == (
        "A polygon with 4 values as corners and 2 outputs inside it, at (1.0, 1.0); (2.0, 2.5). "
        "One point with negative weights lies at (−1.0, 1.0)."
    )


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match="steps and norms must name the same models"):
        figures.recall_at_distance([2], {"a": [1]}, [2], {"b": [1]}, most_steps=10)
    with pytest.raises(ValueError, match="maps must hold matrices of one shape"):
        figures.maps_side_by_side({"a": np.eye(2), "b": np.eye(3)}, **TEXTS)
    with pytest.raises(ValueError, match="maps must hold matrices of one shape; got none"):
        figures.maps_side_by_side({}, **TEXTS)
    with pytest.raises(ValueError, match="y must have shape"):
        figures.kernel_fits([1, 2], [1], [1], {"a": [1]}, x_label="x", y_label="y")
    with pytest.raises(ValueError, match="fits must hold at least one curve"):
        figures.kernel_fits([1], [1], [1], {}, x_label="x", y_label="y")
    with pytest.raises(ValueError, match="values must be the corners of a convex polygon"):
        figures.outputs_in_hull(CORNERS[[0, 2, 1, 3]], CORNERS)
    with pytest.raises(ValueError, match="must be points of the plane"):
        figures.outputs_in_hull(np.zeros((4, 3)), CORNERS)
    assert shown == []


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, width, twice=False) -> dict:
    """Loops over math.exp: the oracle of the card."""
    similarities = [math.exp(-((query - key) ** 2) / (2 * width**2)) for key in KEYS]
    counted = [s * (2 if twice and key == 9.0 else 1) for s, key in zip(similarities, KEYS, strict=True)]
    weights = [s / sum(counted) for s in counted]
    return {"weights": weights, "answer": sum(w * v for w, v in zip(weights, VALUES, strict=True)), "similarity": max(similarities)}


def test_the_words_of_the_lookup_card_hold_true_numbers():
    text = (PARTS / "lookup_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">([\d.]+), ([\d.]+)(.*?)</th>(.*?)</tr>', text)
    assert len(rows) == 6
    for query, width, noted, cells in rows:
        wanted = numbers_of(float(query), float(width), bool(noted))
        got = [float(cell) for cell in re.findall(r"<td>(.*?)</td>", cells)]
        np.testing.assert_allclose(got[:4], wanted["weights"], atol=5.01e-4)
        assert got[4] == pytest.approx(wanted["answer"], abs=5.01e-3)


@pytest.mark.browser
@pytest.mark.parametrize("twice", [False, True])
def test_the_numbers_of_the_lookup_card_are_those_of_python(page, twice):
    page.set_content(explorable_html("lookup", "lookup"))
    call = "([q, h, t]) => document.getElementById('attn-lookup').explorable.describe(q, h, t)"
    for query, width in ((10.0, 2.0), (9.0, 0.3), (24.0, 1.0), (0.0, 40.0), (10.5, 1.0)):
        shown = page.evaluate(call, [query, width, twice])
        for name, wanted in numbers_of(query, width, twice).items():
            np.testing.assert_allclose(shown[name], wanted, atol=1e-9, err_msg=name)


@pytest.mark.browser
def test_a_query_far_from_all_keys_still_gets_weights_that_sum_to_1(page):
    page.set_content(explorable_html("lookup", "lookup"))
    call = "() => document.getElementById('attn-lookup').explorable.describe(24, 0.1, false)"
    assert page.evaluate(call)["weights"] == [0, 0, 0, 1]


@pytest.mark.browser
def test_arrow_keys_buttons_and_the_pointer_move_the_query_of_the_lookup(page):
    page.set_content(explorable_html("lookup", "lookup"))
    page.keyboard.press("Tab")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="query in hours")
    assert slider.get_attribute("aria-valuetext") == "10.5 hours"
    assert page.get_by_role("slider", name="width in hours").get_attribute("aria-valuetext") == "2.00 hours"
    shown = [float(text) for text in page.locator("[data-weight]").all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of(10.5, 2.0)["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 9").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Narrow").click()
    page.get_by_role("status").get_by_text(
        "At 9.0 o’clock with h = 0.25 the answer is 12.00 degrees; key 9 has the largest weight"
    ).wait_for()
    page.get_by_role("button", name="Far from all").click()
    page.get_by_role("status").get_by_text("key 18 has the largest weight, 1.000").wait_for()
    page.get_by_role("button", name="Note 9 o’clock twice").focus()
    page.keyboard.press("Space")
    page.get_by_role("status").get_by_text("The 9 o’clock pair is noted twice.").wait_for()
    box = page.locator(".attn-clock").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert 11 < float(slider.get_attribute("aria-valuetext").split()[0]) < 13
