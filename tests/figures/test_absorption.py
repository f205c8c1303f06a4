"""The figures of lesson absorption say what their numbers say, and its card counts as Python does."""

import re

import numpy as np
import pytest

from attn_course import costs, figures
from attn_course.figures.explorable import PARTS, explorable_html
from tests.figures.support import decode, ink_touches_the_edge

FORM = np.array([[0.0, 2.0, -1.0], [-0.5, 0.5, 3.0], [1.5, 0.0, 0.2]])
PROJECTIONS = {"as trained": FORM[:, :2], "other gauge": 10 * FORM[:, 1:]}
MODELS = [("Large", "multi-head", 3.0 * 2**20), ("Small", "latent", 69120.0), ("Other", "latent", 2000.0)]


def draw_parts(*, title="Everyone asks for the next one", **options):
    figures.form_parts(FORM, title=title, **options)


def draw_gauges(*, title="Two gauges of the same head", **options):
    figures.two_gauges(PROJECTIONS, FORM, title=title, **options)


def draw_sizes(*, title="The small one keeps less", **options):
    figures.cache_sizes(MODELS, title=title, **options)


FIGURES = [draw_parts, draw_gauges, draw_sizes]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    draw()
    draw()
    first, words, second, _ = shown
    pixels = decode(first.png)
    assert first == second
    assert words.alt == first.alt
    assert len(first.png) < 60_000
    assert not ink_touches_the_edge(pixels)
    assert 0.02 < (pixels != 255).any(axis=-1).mean() < 0.9


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_name_the_largest_entries(shown):
    draw_parts()
    assert "the largest entry of each row stands in the columns 1, 2 and 0." in shown.words.alt
    shown.clear()
    draw_gauges()
    assert "as trained: the column with the largest magnitude in each row is 1, 0 and 0." in shown.words.alt
    assert "other gauge: the column with the largest magnitude in each row is 0, 1 and 1." in shown.words.alt


def test_the_words_of_the_caches_name_each_model_with_its_bytes(shown):
    draw_sizes()
    assert "Large (multi-head): 3 MiB. Small (latent): 68 KiB. Other (latent): 2 KiB." in shown.words.alt


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match=r"form must be square; got shape \(3, 2\)"):
        figures.form_parts(FORM[:, :2], title="Everyone asks for the next one")
    with pytest.raises(ValueError, match="projections must hold at least one gauge"):
        figures.two_gauges({}, FORM, title="Two gauges of the same head")
    with pytest.raises(ValueError, match=r"projections\['short'\] must have 3 rows; got 2"):
        figures.two_gauges({"short": FORM[:2]}, FORM, title="Two gauges of the same head")
    with pytest.raises(ValueError, match="models must hold at least one, each with more than 0 bytes"):
        figures.cache_sizes([("Empty", "latent", 0.0)], title="The small one keeps less")
    assert shown == []


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(heads, width, groups, latent, rope, layers) -> dict[str, float]:
    """Bytes per token by the package's own counts."""
    kept = {"mha": heads, "gqa": min(groups, heads), "mqa": 1}
    found = {kind: costs.cache_bytes_per_token(n, width, width, n_layers=layers) for kind, n in kept.items()}
    found["mla"] = costs.latent_cache_bytes_per_token(latent, rope, n_layers=layers)
    return {**found, "equal": found["mla"] / found["mqa"]}


def test_the_words_of_the_latent_card_hold_true_numbers():
    text = (PARTS / "latent_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">.*?\((\d+) heads of width (\d+), (\d+) layers\)</th>(.*?)</tr>', text)
    assert len(rows) == 3
    for heads, width, layers, cells in rows:
        wanted = numbers_of(int(heads), int(width), 8, 512, 64, int(layers))
        assert re.findall(r"<td>(.*?)</td>", cells) == [f"{wanted[kind] / 1024:.1f}" for kind in ("mha", "gqa", "mqa", "mla")]
        assert wanted["equal"] == 2.25


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(explorable_html("latent", "latent"))
    call = "([h, w, g, c, r, l]) => document.getElementById('attn-latent').explorable.describe("
    call += "{heads: h, width: w, groups: g, latent: c, rope: r, layers: l})"
    for sizes in ([128, 128, 8, 512, 64, 60], [71, 64, 1, 32, 0, 32], [4, 16, 64, 2048, 128, 1]):
        shown = page.evaluate(call, sizes)
        for name, wanted in numbers_of(*sizes).items():
            np.testing.assert_allclose(shown[name], wanted, rtol=1e-12, err_msg=name)


@pytest.mark.browser
def test_arrow_keys_and_buttons_move_the_card(page):
    page.set_content(explorable_html("latent", "latent"))
    assert page.locator('[data-kind="mla"] [data-fact="token"]').inner_text() == "67.5 KiB"
    assert page.locator('[data-kind="mha"] [data-fact="whole"]').inner_text() == "480 GiB"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("slider", name="number of heads").get_attribute("aria-valuetext") == "127"
    page.get_by_role("slider", name="latent width").press("ArrowLeft")
    page.get_by_role("status").get_by_text("The latent cache is as large as that of 2.13 groups.").wait_for()
    page.get_by_role("button", name="DeepSeek-V2", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("Sizes of DeepSeek-V2, which uses latent attention.").wait_for()
    page.get_by_role("button", name="Falcon 7B").click()
    page.get_by_role("status").get_by_text("Sizes of Falcon 7B, which uses multi-query attention.").wait_for()
    assert page.locator('[data-kind="mqa"] [data-fact="token"]').inner_text() == "8.00 KiB"
