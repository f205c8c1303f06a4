"""The figures of lesson scaling say what their numbers say, and the card shows the numbers of Python."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.lessons.scaling import figures
from attn_course.reference import dot_scores, scaled_dot_scores, softmax, softmax_jacobian
from tests.figures.diagrams import assert_sound_diagram, svg_of
from tests.figures.support import Pictures, card_html, rows_of_card

RACED = {"the root": {64: [4, 4, 3], 1024: [3, 3, 3]}, "d_k": {64: [20, 22, 21], 1024: [100, 79, 75]}}
DRAWN = [
    (partial(figures.races, RACED), ["at the widths 64, 1024.", "the root: 3.7, 3.0; d_k: 21.0, 84.7."]),
]
REFUSED = [
    (partial(figures.races, {}), "runs must hold 1 to 4 divisors; got 0"),
]


class TestPictures(Pictures):
    at_most = 22_000


def test_the_task_leads_from_the_right_item_to_all_items(shown):
    def draw():
        shown.clear()
        figures.task()
        return shown[0]

    assert_sound_diagram(draw)
    drawn = draw()
    assert len(drawn.html) <= 22_000
    lines = [line for line in svg_of(drawn).iter("path") if "attn-weights" in line.get("style", "")]
    assert len(lines) == 16, "one to each item"


# ---- the card


def of_rows(scores):
    """What the card says of scores, one row for each query."""
    weights = softmax(scores)
    norms = np.linalg.eigvalsh(softmax_jacobian(weights))[:, -1]
    facts = {"weights": weights, "norms": norms, "norm": norms.mean(), "largest": weights.max(-1), "inUse": 1 / (weights**2).sum(-1)}
    return facts | {"scores": scores, "deviation": scores.std(), "still": (norms < 0.01).sum()}


# One text is far quicker to hand over than as many numbers.
ALL = """([powers]) => {
    const card = document.querySelector("#attn-scale").explorable;
    const found = powers.flatMap((power) => [true, false].map((scaled) => card.describe(power, scaled)));
    return JSON.stringify([card.vectors(), found, found.map(({ scores }) => card.histogram(scores))]);
}"""


@pytest.mark.browser
class TestInABrowser:
    """Numbers of the course for the card's own vectors; play, and keys."""

    def test_it_counts_as_the_package_does(self, page):
        page.set_content(card_html("scale"))
        powers = (0, 4, 6, 8, 10)
        (query, key), found, counts = json.loads(page.evaluate(ALL, [powers]))
        query, key = np.array(query), np.array(key)
        assert (query.shape, key.shape) == ((64, 1024), (64, 1024))
        together = np.concatenate([query, key])
        assert abs(together.mean()) < 5 / np.sqrt(together.size)
        assert together.var() == pytest.approx(1, abs=5 * np.sqrt(2 / together.size))
        rows = {(head, cells[0]): cells[1:] for head, cells in rows_of_card("scale")}
        cases = itertools.product(powers, (("divided by √d<sub>k</sub>", scaled_dot_scores), ("not divided", dot_scores)))
        for (power, (way, score)), shown, bins in zip(cases, found, counts, strict=True):
            wanted = of_rows(score(query[:, : 2**power], key[:, : 2**power]))
            for fact, value in wanted.items():
                np.testing.assert_allclose(shown[fact], value, rtol=1e-7, atol=1e-10, err_msg=fact)
            assert bins == np.histogram(wanted["scores"], bins=np.arange(-151.5, 153, 3))[0].tolist()
            assert sum(bins) == 4096, "a score lies outside"
            means = [f"{wanted['largest'].mean():.3f}", f"{wanted['inUse'].mean():.1f}", f"{wanted['norm']:.3f}"]
            assert rows[way, str(2**power)] == [f"{wanted['deviation']:.2f}", *means, str(wanted["still"])]

    def test_its_draw_is_no_unusual_one(self, page):
        page.set_content(card_html("scale"))
        shown = page.evaluate("document.querySelector('#attn-scale').explorable.describe(6, false).still")
        rng = np.random.default_rng(0)
        others = [of_rows(dot_scores(*rng.normal(size=(2, 64, 64))))["still"] for _ in range(40)]
        assert shown == pytest.approx(np.mean(others), abs=1.5)

    def test_play_sweeps_to_the_end_and_the_table_and_the_picture_follow(self, stopped_page):
        page = stopped_page
        page.set_content(card_html("scale"))
        page.locator("summary", has_text="Jacobian").click()
        width = page.get_by_role("slider", name="number of entries d k")
        expect(width).to_have_attribute("aria-valuetext", "64")  # where the two ways differ already
        width.press("Home")
        cells = page.locator("tbody:visible td").all_inner_texts()
        assert cells[::2] == cells[1::2], "at d_k = 1 there is nothing to divide by"
        page.get_by_role("button", name="Play").press("Enter")
        page.clock.run_for(12_000)
        expect(page.get_by_role("button", name="Play")).to_be_visible()  # it stopped at the end
        expect(width).to_have_attribute("aria-valuetext", "1024")
        page.get_by_role("slider", name="query looked at").press("ArrowRight")
        found = page.evaluate("[true, false].map(way => document.querySelector('#attn-scale').explorable.describe(10, way))")
        cells = page.locator("tbody:visible td").all_inner_texts()
        assert cells[2:4] == [f"{way['largest'][1]:.3f}" for way in found]
        assert cells[-2:] == [str(way["still"]) for way in found]
        assert int(cells[-1]) > 40 > int(cells[-2]) == 0
        bars = page.locator("[data-chart=weights] rect.attn-scaled").evaluate_all(
            "bars => bars.map(bar => Number(bar.getAttribute('height')))"
        )
        heights = 126 * np.sort(found[0]["weights"][1])[::-1][:16]
        np.testing.assert_allclose(bars, heights, atol=1e-6)
        page.clock.run_for(500)
        expect(page.get_by_role("status")).to_contain_text("At dₖ = 1024, divided by √dₖ: the scores spread by 1.0")
        page.get_by_role("button", name="Reset").click()
        expect(width).to_have_attribute("aria-valuetext", "64")
