"""The figures of lesson absorption say what their numbers say, and its card counts as Python does."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course import costs
from attn_course.lessons.absorption import figures
from tests.figures.support import Pictures, assert_described, card_html, words_of_card

FORM = np.array([[0.0, 2.0, -1.0], [-0.5, 0.5, 3.0], [1.5, 0.0, 0.2]])
PROJECTIONS = {"as trained": FORM[:, :2], "other gauge": 10 * FORM[:, 1:]}
MODELS = [("Large", "multi-head", 3.0 * 2**20), ("Small", "latent", 69120.0), ("Other", "latent", 2000.0)]
PARTS = partial(figures.form_parts, title="Everyone asks for the next one")
GAUGES = partial(figures.two_gauges, title="Two gauges of the same head")
SIZES = partial(figures.cache_sizes, title="The small one keeps less")

DRAWN = [
    (partial(PARTS, FORM), ["the largest entry of each row stands in the columns 1, 2 and 0."]),
    (
        partial(GAUGES, PROJECTIONS, FORM),
        [
            "as trained: the column with the largest magnitude in each row is 1, 0 and 0.",
            "other gauge: the column with the largest magnitude in each row is 0, 1 and 1.",
        ],
    ),
    (partial(SIZES, MODELS), ["Large (multi-head): 3 MiB. Small (latent): 68 KiB. Other (latent): 2 KiB."]),
]
REFUSED = [
    (partial(PARTS, FORM[:, :2]), r"form must be square; got shape \(3, 2\)"),
    (partial(GAUGES, {}, FORM), "projections must hold at least one gauge"),
    (partial(GAUGES, {"short": FORM[:2]}, FORM), r"projections\['short'\] must have 3 rows; got 2"),
    (partial(SIZES, [("Empty", "latent", 0.0)]), "models must hold at least one, each with more than 0 bytes"),
]


class TestPictures(Pictures):
    """Forms, gauges, caches."""


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(heads, width, groups, latent, rope, layers) -> dict[str, float]:
    """Bytes per token by the package's own counts."""
    kept = {"mha": heads, "gqa": min(groups, heads), "mqa": 1}
    found = {kind: costs.cache_bytes_per_token(n, width, width, n_layers=layers) for kind, n in kept.items()}
    found["mla"] = costs.latent_cache_bytes_per_token(latent, rope, n_layers=layers)
    return {**found, "equal": found["mla"] / found["mqa"]}


def test_the_words_of_the_latent_card_hold_true_numbers():
    row = r'<tr><th scope="row">.*?\((\d+) heads of width (\d+), (\d+) layers\)</th>(.*?)</tr>'
    rows = re.findall(row, words_of_card("latent"))
    assert len(rows) == 3
    for heads, width, layers, cells in rows:
        wanted = numbers_of(int(heads), int(width), 8, 512, 64, int(layers))
        assert re.findall(r"<td>(.*?)</td>", cells) == [f"{wanted[kind] / 1024:.1f}" for kind in ("mha", "gqa", "mqa", "mla")]
        assert wanted["equal"] == 2.25


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("latent"))
    for sizes in ([128, 128, 8, 512, 64, 60], [71, 64, 1, 32, 0, 32], [4, 16, 64, 2048, 128, 1]):
        given = dict(zip(("heads", "width", "groups", "latent", "rope", "layers"), sizes, strict=True))
        assert_described(page, "latent", (given,), numbers_of(*sizes), rtol=1e-12)


@pytest.mark.browser
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(card_html("latent"))
    assert page.locator('[data-kind="mla"] [data-fact="token"]').inner_text() == "67.5 KiB"
    assert page.locator('[data-kind="mha"] [data-fact="whole"]').inner_text() == "480 GiB"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("slider", name="number of heads").get_attribute("aria-valuetext") == "127"
    page.get_by_role("slider", name="latent width").press("ArrowLeft")
    page.get_by_role("status").get_by_text("The latent cache is as large as that of 2.13 groups.").wait_for()
    page.get_by_role("button", name="DeepSeek-V2", exact=True).press("Enter")
    page.get_by_role("status").get_by_text("Sizes of DeepSeek-V2, which uses latent attention.").wait_for()
    page.get_by_role("button", name="Falcon 7B").click()
    page.get_by_role("status").get_by_text("Sizes of Falcon 7B, which uses multi-query attention.").wait_for()
    assert page.locator('[data-kind="mqa"] [data-fact="token"]').inner_text() == "8.00 KiB"
