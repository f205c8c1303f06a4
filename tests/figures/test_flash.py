"""The figures of lesson flash say what their numbers say, the table takes the newest GPU, and the card counts like the course."""

import json
from functools import partial

import pytest
from playwright.sync_api import expect

from attn_course.costs import materialised_attention_bytes, tiled_attention_bytes
from attn_course.lessons.flash import figures
from tests.figures.support import Pictures, card_html

ROOF = partial(figures.rooflines, peak_flops_per_s=100e9, bandwidth_bytes_per_s=10e9)

DRAWN = [
    (
        partial(ROOF, {"a": (2.0, 5e9), "b": (40.0, 60e9)}),
        [
            "rises with 10.0 GB/s up to 10.0 FLOPs per byte and is level from there on at 100 GFLOP/s",
            "b: 40.0 FLOPs per byte, 60.0 GFLOP/s.",
        ],
    ),
    (
        partial(figures.eager_over_sdpa, [512, 4096], {"d = 16": [1.4, 6.9], "d = 64": [1.1, 3.0]}),
        ["for 512 and 4096 positions", "d = 16: 1.4 and 6.9. d = 64: 1.1 and 3.0."],
    ),
    (
        partial(figures.float16_errors, {"float16, stored whole": [5.5e-4, 16.6e-4], "in tiles": [2.8e-4, 2.1e-4]}, [1, 8]),
        ["of standard deviation 1 and 8. stored whole: 5.5 and 16.6. in tiles: 2.8 and 2.1."],
    ),
    (
        partial(figures.tile_savings, [8, 64], {"d = 64": [0.25, 2.0], "d = 128": [0.125, 1.0]}),
        ["for 8 and 64 queries in a block", "d = 64: 0.25, 2. d = 128: 0.12, 1."],
    ),
    (partial(figures.schedule, 2, 1, tiles=3), ["With overlap: products from 0 to 2, 2 to 4, 4 to 6"]),
    (
        partial(figures.schedule, 3, 2, tiles=2, overlap=False),
        ["products from 0 to 3, 5 to 8; exponentials from 3 to 5, 8 to 10"],
    ),
    (partial(figures.causal_tiles, 10, 14, 4, 3, q_offset=4), ["Whole, without a mask: 8. At the edge: 4. Skipped: 3"]),
]
REFUSED = [
    (partial(ROOF, {}), "there must be a point"),
    (partial(ROOF, {"a": (0.0, 1.0)}), "must be positive"),
    (partial(figures.eager_over_sdpa, [512], {}), "ratios must hold at least one"),
    (partial(figures.float16_errors, {"in tiles": [1e-4]}, [1, 8]), "must have shape"),
    (partial(figures.tile_savings, [8, 64], {"d = 64": [1.0]}), "must have shape"),
    (partial(figures.schedule, 0, 1), "must be positive; got 0"),
    (partial(figures.causal_tiles, 3, 3, 0, 1), "sizes must be positive"),
]


class TestPictures(Pictures):
    """Roof, savings, errors, schedule and tiles."""


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("t_1", "t_2"), [(2, 1), (1, 3), (1, 1)])
def test_a_schedule_ends_when_the_formula_says(overlap, t_1, t_2):
    end = figures.starts(t_1, t_2, 5, overlap)[-1][1] + t_2
    assert end == (t_1 + 4 * max(t_1, t_2) + t_2 if overlap else 5 * (t_1 + t_2))


# ---- measurements


@pytest.fixture
def table(monkeypatch):
    """Collect the tables that are shown."""
    seen = []
    monkeypatch.setattr("attn_course.lessons.flash.figures.display", seen.append)
    return seen


def report(device, date, rate):
    line = {"d": 64, "is_causal": True, "length": 512, "heads": 32, "kv_heads": 32, "left": None, "direction": "forward"}
    lines = [{**line, "provider": "ours", "tflops_per_s": rate}, {**line, "provider": "eager", "error": "out of memory"}]
    return {"device": device, "date": date, "matmul_tflops_per_s": [700.4, 690.6], "measurements": lines}


def test_without_a_measurement_it_says_so_and_names_the_command(table, tmp_path):
    figures.gpu_rates("backward", tmp_path / "none")
    assert repr(table[0]) == "backward: not measured on a GPU yet. On a machine that has one, run: attn-course bench --json FILE"


def test_the_newest_gpu_is_shown_and_a_cpu_never(table, tmp_path):
    for name, found in (
        ("a.json", report("GPU A", "2031-01-02", 100.2)),
        ("b.json", report("GPU B", "2031-05-01", 321.4)),
        ("c.json", report("CPU x86_64, Triton's interpreter", "2032-01-01", 0.1)),
    ):
        (tmp_path / name).write_text(json.dumps(found), encoding="utf-8")
    assert figures.newest_measurement(tmp_path)["device"] == "GPU B"
    figures.gpu_rates("forward", tmp_path)
    assert repr(table[0]).splitlines() == [
        "forward, TFLOP/s on GPU B, 2031-05-01; a large product before and after: 700 and 691",
        " d    mask  length  heads  ours   eager",
        "64  causal     512  32/32   321  failed",
    ]
    assert "<td>321</td>" in table[0]._repr_html_()


# ---- the card


@pytest.mark.browser
class TestInABrowser:
    """By keyboard and by pointer; counts against the course's own."""

    def test_it_counts_the_numbers_that_the_formulas_count(self, page):
        page.set_content(card_html("tiles", "x"))
        page.get_by_role("slider", name="keys in a tile").fill("2")  # the third size, 3 keys
        for place, rows in enumerate((1, 2, 3, 4, 6, 12)):
            page.get_by_role("slider", name="queries in a tile").fill(str(place))
            for pressed in ("true", "false"):
                button = page.get_by_role("button", name="Causal")
                button.click()
                expect(button).to_have_attribute("aria-pressed", pressed)
                sizes = {"block_q": rows, "block_kv": 3, "bytes_per_number": 1, "bytes_per_statistic": 1}
                wanted = tiled_attention_bytes(12, 12, 4, 4, is_causal=pressed == "true", **sizes)
                assert page.locator('[data-fact="all"]').inner_text() == str(wanted)
        plain = materialised_attention_bytes(12, 12, 4, 4, bytes_per_number=1)
        assert page.locator('[data-fact="plain"]').inner_text() == str(plain)

    def test_stepping_to_the_end_gives_the_output_over_all_keys(self, page):
        page.set_content(card_html("tiles", "x"))
        steps = page.get_by_role("slider", name="steps done")
        assert page.locator('[data-fact="output"]').inner_text() == "none yet"
        page.get_by_role("button", name="Next tile").click()
        expect(steps).to_have_attribute("aria-valuetext", "1 of 12")
        assert page.locator('[data-fact="factor"]').inner_text() == "0.000"
        steps.press("End")
        assert page.locator('[data-fact="output"]').inner_text() == page.locator('[data-fact="final"]').inner_text()
        assert page.locator('[data-fact="moved"]').inner_text() == page.locator('[data-fact="all"]').inner_text()
        expect(page.get_by_role("status")).to_contain_text("After 12 of 12 tiles query 2 has the output")
