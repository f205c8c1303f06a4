"""The figures of lesson heads say what their numbers say, and its card counts as Python does."""

import re

import numpy as np
import pytest

from attn_course import costs, figures
from attn_course.figures.explorable import PARTS, explorable_html
from tests.figures.support import assert_sound

MAPS = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]])


def draw_split(**options):
    figures.head_split(5, 3, 2, **options)


def draw_maps(*, title="Two heads look at different keys", **options):
    figures.head_maps(MAPS, title=title, **options)


def draw_groups(**options):
    figures.group_map(6, 2, **options)


FIGURES = [draw_split, draw_maps, draw_groups]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_of_the_split_name_the_positions_that_a_bare_reshape_gives(shown):
    draw_split()
    numbers = np.arange(5 * 6).reshape(5, 6)
    positions = np.unique(numbers.reshape(3, 5, 2)[0] // 6)
    assert positions.tolist() == [0, 1]
    assert "of the same shape: only positions 0 and 1." in shown.words.alt


def test_the_words_of_the_maps_name_the_largest_keys(shown):
    draw_maps()
    assert "head 0: the keys with the largest weight, query by query, are 0 and 2." in shown.words.alt
    assert "head 1: the keys with the largest weight, query by query, are 2 and 0." in shown.words.alt


def test_the_words_of_the_groups_name_who_serves_whom(shown):
    draw_groups()
    assert "repeat: query heads 0 to 5 use key heads 0, 0, 0, 1, 1 and 1." in shown.words.alt
    assert "tile: query heads 0 to 5 use key heads 0, 1, 0, 1, 0 and 1." in shown.words.alt


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match="must be positive; got 0, 3 and 2"):
        figures.head_split(0, 3, 2)
    with pytest.raises(ValueError, match="maps must have rows that sum to 1"):
        figures.head_maps(2 * MAPS, title="Two heads look at different keys")
    with pytest.raises(ValueError, match="names must name 2 maps; got 1"):
        figures.head_maps(MAPS, names=["one"], title="Two heads look at different keys")
    with pytest.raises(ValueError, match="n_kv_heads must divide n_heads; got 4 and 6"):
        figures.group_map(6, 4)
    assert shown == []


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(heads, keys, width, layers, context, size) -> dict[str, float]:
    """Weights and cache by the package's own counts."""
    weights = layers * size * costs.multi_head_parameters(heads * width, n_heads=heads, n_kv_heads=keys, d_k=width)
    token = costs.cache_bytes_per_token(keys, width, width, n_layers=layers, bytes_per_number=size)
    return {"weights": weights, "token": token, "cache": token * context, "share": token * context / (token * context + weights)}


def test_the_words_of_the_heads_card_hold_true_numbers():
    text = (PARTS / "heads_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    assert [row[0] for row in rows] == ["32", "8", "1"]
    for keys, cells in rows:
        wanted = numbers_of(32, int(keys), 128, 32, 32768, 2)
        texts = [f"{wanted['weights'] / 2**30:.2f}", f"{wanted['token'] / 2**10:.0f}", f"{wanted['cache'] / 2**30:.1f}"]
        assert re.findall(r"<td>(.*?)</td>", cells) == texts


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(explorable_html("heads", "heads"))
    call = "([h, k, w, l, c, b]) => document.getElementById('attn-heads').explorable.describe("
    call += "{heads: h, keys: k, width: w, layers: l, context: c, bytes: b})"
    for sizes in ([32, 32, 128, 32, 32768, 2], [32, 8, 64, 7, 1024, 1], [64, 1, 16, 96, 1048576, 2], [1, 1, 256, 1, 256, 2]):
        shown = page.evaluate(call, sizes)
        for name, wanted in numbers_of(*sizes).items():
            np.testing.assert_allclose(shown[name], wanted, rtol=1e-12, err_msg=name)


@pytest.mark.browser
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(explorable_html("heads", "heads"))
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("slider", name="number of query heads").get_attribute("aria-valuetext") == "16"
    assert page.get_by_role("slider", name="number of key and value heads").get_attribute("aria-valuetext") == "16"
    page.get_by_role("slider", name="number of key and value heads").press("ArrowRight")
    assert page.get_by_role("slider", name="number of query heads").get_attribute("aria-valuetext") == "32"
    page.get_by_role("button", name="Grouped: 8 key heads").focus()
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("32 query heads and 8 key heads, grouped: each key head serves 4 query heads.").wait_for()
    assert page.locator('[data-fact="cache"]').inner_text() == "4.00 GiB"
    page.get_by_role("button", name="8-bit").focus()
    page.keyboard.press("Space")
    page.get_by_role("status").get_by_text("2.00 GiB for 32768 tokens").wait_for()
    page.get_by_role("button", name="Multi-query").click()
    page.get_by_role("status").get_by_text("32 query heads and 1 key head, multi-query").wait_for()
    assert page.locator(".attn-answering span").count() == 1
