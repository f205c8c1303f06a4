"""The figures of lesson heads say what their numbers say, and its card counts as Python does."""

from functools import partial

import numpy as np
import pytest

from attn_course import costs
from attn_course.lessons.heads import figures
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

MAPS = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]])
HEAD_MAPS = partial(figures.head_maps, title="Two heads look at different keys")
POSITIONS = np.unique(np.arange(5 * 6).reshape(3, 5, 2)[0] // 6)  # in the first head of a bare reshape

DRAWN = [
    (partial(figures.head_split, 5, 3, 2), [f"of the same shape: only positions {POSITIONS[0]} and {POSITIONS[1]}."]),
    (
        partial(HEAD_MAPS, MAPS),
        [
            "head 0: the keys with the largest weight, query by query, are 0 and 2.",
            "head 1: the keys with the largest weight, query by query, are 2 and 0.",
        ],
    ),
    (
        partial(figures.group_map, 6, 2),
        [
            "repeat: query heads 0 to 5 use key heads 0, 0, 0, 1, 1 and 1.",
            "tile: query heads 0 to 5 use key heads 0, 1, 0, 1, 0 and 1.",
        ],
    ),
    (
        partial(figures.neighbours_named, {"one head": [0.25, 1.0, 0.25], "two heads": [1.0, 0.75, 0.75]}),
        ["one head: 0.25, 1.00 and 0.25. two heads: 1.00, 0.75 and 0.75."],
    ),
    (partial(figures.divided_work, MAPS), ["head 1: the keys with the largest weight, query by query, are 2 and 0."]),
    (
        partial(figures.cache_growth, [1000, 70000], {"32 key heads": [0.5, 35.0], "8 key heads": [0.125, 8.75]}, 12.0),
        ["At 70000 tokens: 32 key heads 35 GiB, 8 key heads 8.8 GiB. A dotted line at 12 GiB marks"],
    ),
]
REFUSED = [
    (partial(figures.head_split, 0, 3, 2), "must be positive; got 0, 3 and 2"),
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
    (partial(figures.group_map, 6, 4), "n_kv_heads must divide n_heads; got 4 and 6"),
    (partial(figures.neighbours_named, {}), "shares must hold at least one"),
    (partial(figures.divided_work, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(figures.cache_growth, [1, 2], {"a": [1.0]}, 1.0), r"caches\['a'\] must have shape"),
]


class TestPictures(Pictures):
    """Splits, maps, groups, answers and caches."""


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(heads, keys, width, layers, context, size) -> dict[str, float]:
    """Weights and cache by the package's own counts."""
    weights = layers * size * costs.multi_head_parameters(heads * width, n_heads=heads, n_kv_heads=keys, d_k=width)
    token = costs.cache_bytes_per_token(keys, width, width, n_layers=layers, bytes_per_number=size)
    return {"weights": weights, "token": token, "cache": token * context, "share": token * context / (token * context + weights)}


def test_the_words_of_the_heads_card_hold_true_numbers():
    rows = rows_of_card("heads")
    assert [keys for keys, _ in rows] == ["32", "8", "1"]
    for keys, cells in rows:
        wanted = numbers_of(32, int(keys), 128, 32, 32768, 2)
        texts = [f"{wanted['weights'] / 2**30:.2f}", f"{wanted['token'] / 2**10:.0f}", f"{wanted['cache'] / 2**30:.1f}"]
        assert cells == texts


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("heads"))
    for sizes in ([32, 32, 128, 32, 32768, 2], [32, 8, 64, 7, 1024, 1], [64, 1, 16, 96, 1048576, 2], [1, 1, 256, 1, 256, 2]):
        given = dict(zip(("heads", "keys", "width", "layers", "context", "bytes"), sizes, strict=True))
        assert_described(page, "heads", (given,), numbers_of(*sizes), rtol=1e-12)


@pytest.mark.browser
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(card_html("heads"))
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("slider", name="number of query heads").get_attribute("aria-valuetext") == "16"
    assert page.get_by_role("slider", name="number of key and value heads").get_attribute("aria-valuetext") == "16"
    page.get_by_role("slider", name="number of key and value heads").press("ArrowRight")
    assert page.get_by_role("slider", name="number of query heads").get_attribute("aria-valuetext") == "32"
    page.get_by_role("button", name="Grouped: 8 key heads").press("Enter")
    page.get_by_role("status").get_by_text("32 query heads and 8 key heads, grouped: each key head serves 4 query heads.").wait_for()
    assert page.locator('[data-fact="cache"]').inner_text() == "4.00 GiB"
    page.get_by_role("button", name="8-bit").press("Space")
    page.get_by_role("status").get_by_text("2.00 GiB for 32768 tokens").wait_for()
    page.get_by_role("button", name="Multi-query").click()
    page.get_by_role("status").get_by_text("32 query heads and 1 key head, multi-query").wait_for()
    assert page.locator(".attn-answering span").count() == 1
