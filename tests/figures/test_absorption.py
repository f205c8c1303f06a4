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
LOGITS = np.array([[0.5, 1.0], [0.2, 1.0], [1.0, -0.8], [9.0, -3.0], [-2.0, 8.0]])  # three names, two colours
FLOPS = {"naive": [138.0, 2597.0], "factored": [1.4, 5895.0], "absorbed": [2.1, 8438.0]}

DRAWN = [
    (partial(figures.form_parts, FORM), ["the largest entry of each row stands in the columns 1, 2 and 0."]),
    (
        partial(figures.two_gauges, PROJECTIONS, FORM),
        [
            "as trained: the column with the largest magnitude in each row is 1, 0 and 0.",
            "other gauge: the column with the largest magnitude in each row is 0, 1 and 1.",
        ],
    ),
    (partial(figures.cache_sizes, MODELS), ["Large (multi-head): 3 MiB. Small (latent): 68 KiB. Other (latent): 2 KiB."]),
    (
        partial(figures.rank_shares, [0.5, 0.7, 0.9, 1.0], [0.6, 0.95]),
        ["then cut: 0.50, 0.70, 0.90 and 1.00. Trained at width 1 to 2: 0.60 and 0.95."],
    ),
    (
        partial(figures.value_circuit, LOGITS, 3),
        ["5 features that are read against 2 colours", "a mean of 8. The rows of the names differ by at most 1.8 in a column."],
    ),
    (
        partial(figures.kept_numbers, {2: 0.05, 16: 1.0}, {16: 0.13, 32: 0.47}),
        ["Latent vector of 2: 0.05, 16: 1.00. Merged key heads, 16: 0.13, 32: 0.47."],
    ),
    (partial(figures.prompt_flops, [1, 4096], FLOPS), ["1 new: 138, 1.4, 2.1. All 4096 new: 2597, 5895, 8438."]),
    (
        partial(figures.step_times, [64, 256], [3.0, 8.25], [1.0, 1.5]),
        ["against 64 and 256 cached tokens", "naive: 3.0 and 8.2. absorbed: 1.0 and 1.5."],
    ),
]
REFUSED = [
    (partial(figures.form_parts, FORM[:, :2]), r"form must be square; got shape \(3, 2\)"),
    (partial(figures.two_gauges, {}, FORM), "projections must hold at least one gauge"),
    (partial(figures.two_gauges, {"short": FORM[:2]}, FORM), r"projections\['short'\] must have 3 rows; got 2"),
    (partial(figures.cache_sizes, [("Empty", "latent", 0.0)]), "models must hold at least one, each with more than 0 bytes"),
    (partial(figures.rank_shares, [0.5], [0.5, 0.6]), "narrow must have at most 1 shares, as cut has; got 2"),
    (partial(figures.value_circuit, LOGITS, 2), "logits must have 4 rows, for 2 names and 2 colours; got 5"),
    (partial(figures.kept_numbers, {}, {16: 0.1}), "latent and merged must each hold at least one share; got 0 and 1"),
    (partial(figures.prompt_flops, [1, 2], {"naive": [1.0, 2.0]}), "it lacks absorbed, factored"),
    (partial(figures.step_times, [64, 256], [3.0, 8.0], [1.0]), "absorbed must have shape"),
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
