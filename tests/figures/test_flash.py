"""The figures of lesson flash say what their numbers say, and the card counts like the course."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.costs import materialised_attention_bytes, tiled_attention_bytes
from attn_course.lessons.flash import figures
from attn_course.reference import attention, scaled_dot_scores
from attn_course.reference.tiling import online_update
from tests.figures.support import Pictures, card_html, described, rows_of_card, words_of_card

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
        partial(figures.float16_errors, {"float16, stored whole": [5.5e-4, 16.6e-4], "in tiles": [2.8e-4, 2.1e-4]}, [1, 8]),
        ["of standard deviation 1 and 8. stored whole: 5.5 and 16.6. in tiles: 2.8 and 2.1."],
    ),
]
REFUSED = [
    (partial(ROOF, {}), "there must be a point"),
    (partial(ROOF, {"a": (0.0, 1.0)}), "must be positive"),
    (partial(figures.float16_errors, {"in tiles": [1e-4]}, [1, 8]), "must have shape"),
]

TestPictures = Pictures


# ---- the card


def sizes(rows, columns, causal):
    return {"rows": rows, "columns": columns, "causal": causal}


def bytes_of(rows, columns, causal):
    return tiled_attention_bytes(12, 12, 4, 4, block_q=rows, block_kv=columns, is_causal=causal)


def test_the_words_hold_the_bytes_of_the_formulas():
    assert "against 1536 for plain attention" in words_of_card("tiles")
    assert materialised_attention_bytes(12, 12, 4, 4) == 1536
    for rows, cells in rows_of_card("tiles"):
        assert cells[:2] == [str(bytes_of(int(rows), 3, causal)) for causal in (False, True)]


def given(page):
    ask = "name => document.querySelector('#attn-tiles').explorable.given[name]"
    return (np.array(page.evaluate(ask, name), dtype=float) for name in "QKV")


def states(query, key, value, size, step):
    """The rows of the block of a step, by the update of the course, and which rows are written by then."""
    at = [(i, j) for i in range(0, 12, size["rows"]) for j in range(0, 12, size["columns"])]
    visited = [(i, j) for i, j in at if not size["causal"] or j < i + size["rows"]]
    top = visited[step - 1][0]
    rows = slice(top, top + size["rows"])
    row_max, row_sum, acc = np.full((size["rows"], 1), -np.inf), np.zeros((size["rows"], 1)), np.zeros((size["rows"], 4))
    for i, j in visited[:step]:
        if i == top:
            keys = slice(j, j + size["columns"])
            scores = scaled_dot_scores(query[rows], key[keys])
            if size["causal"]:
                scores = np.where(np.arange(12)[keys] <= np.arange(12)[rows, None], scores, -np.inf)
            row_max, row_sum, factor, shares = online_update(row_max, row_sum, scores)
            acc = acc * factor + shares @ value[keys]
    written = [q for q in range(12) if all(i // size["rows"] != q // size["rows"] for i, _ in visited[step:])]
    return {"max": row_max[:, 0], "sum": row_sum[:, 0], "factor": factor[:, 0], "acc": acc}, written, len(visited)


@pytest.mark.browser
class TestInABrowser:
    def test_it_counts_the_bytes_and_keeps_the_state_that_the_package_does(self, page):
        page.set_content(card_html("tiles"))
        query, key, value = given(page)
        ask = "cases => JSON.stringify(cases.map(given => document.querySelector('#attn-tiles').explorable.describe(...given)))"
        chosen = [sizes(*case) for case in itertools.product((1, 2, 3, 4, 6, 12), (1, 3, 12), (False, True))]
        cases = [(size, step) for size in chosen for step in {1, (12 // size["rows"] + 1) // 2, 12 // size["rows"]}]
        for (size, step), shown in zip(cases, json.loads(page.evaluate(ask, cases)), strict=True):
            wanted, written, steps = states(query, key, value, size, step)
            assert shown["all"] == bytes_of(**size)
            assert (shown["steps"], shown["written"]) == (steps, written)
            for name, rows in wanted.items():
                np.testing.assert_allclose([row[name] for row in shown["block"]], rows, rtol=1e-12, atol=1e-14, err_msg=name)
        words = {rows: cells[2] for rows, cells in rows_of_card("tiles")}
        for size in (sizes(rows, 3, False) for rows in (1, 2, 4, 12)):  # 2 bytes for Q, K, V; 4 for the scores, m, l and a
            state = 4 * size["rows"] * (3 + 1 + 1 + 4)
            (shown,) = json.loads(page.evaluate(ask, [(size, 1)]))
            assert words[str(size["rows"])] == str(shown["held"]) == str(2 * 4 * (size["rows"] + 3 + 3) + state)

    @pytest.mark.parametrize("causal", [False, True])
    def test_the_end_of_the_walk_is_plain_attention(self, page, causal):
        page.set_content(card_html("tiles"))
        query, key, value = given(page)
        outputs = {}
        for step in range(1, 10 if causal else 13):
            shown = described(page, "tiles", sizes(4, 3, causal), step)
            assert shown["difference"] < 1e-12
            outputs |= {row["query"]: row["output"] for row in shown["block"]}
        assert (shown["moved"], shown["written"]) == (shown["all"], list(range(12)))
        np.testing.assert_allclose([outputs[i] for i in range(12)], attention(query, key, value, is_causal=causal), atol=1e-12)

    def test_it_opens_on_its_first_tile_and_plays_to_the_end(self, stopped_page):
        page = stopped_page
        page.set_content(card_html("tiles"))
        step = page.get_by_role("slider", name="step")
        expect(step).to_have_attribute("aria-valuetext", "1 of 12")
        assert page.locator("tbody:visible tr").count() == 4
        assert (
            page.locator("[data-bytes=attn-tiled]").text_content()
            == f"tiles have moved {2 * 4 * (4 + 3 + 3)} of {bytes_of(4, 3, False)} bytes"
        )
        page.get_by_role("button", name="Play").press("Enter")
        page.clock.run_for(8_000)
        assert page.locator("[data-bytes=attn-tiled]").text_content() == f"tiles have moved {bytes_of(4, 3, False)} bytes"
        assert page.locator("[data-bytes=attn-plain]").text_content() == "plain attention has moved 1536 bytes"
        page.clock.run_for(500)
        expect(page.get_by_role("status")).to_contain_text("Done: all rows of O are written, and they are those of plain attention.")
        page.get_by_role("slider", name="queries in a tile").press("End")
        page.get_by_role("button", name="Causal").click()
        expect(page.locator("[data-fact=skipped]")).to_have_text("0 of 4")
