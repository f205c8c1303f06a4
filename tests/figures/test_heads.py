"""The figures of lesson heads say what their numbers say, and its card counts as Python does."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from attn_course import costs, sentence
from attn_course.lessons.heads import figures
from attn_course.reference.heads import merge_heads, multi_head_attention
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

MAPS = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]])
HEAD_MAPS = partial(figures.head_maps, title="Two heads look at different keys")

DRAWN = [
    (
        partial(HEAD_MAPS, MAPS),
        [
            "head 0: the keys with the largest weight, query by query, are 0 and 2.",
            "head 1: the keys with the largest weight, query by query, are 2 and 0.",
        ],
    ),
    (
        partial(figures.neighbours_named, {"one head": [0.25, 1.0, 0.25], "two heads": [1.0, 0.75, 0.75]}),
        ["one head: 0.25, 1.00 and 0.25. two heads: 1.00, 0.75 and 0.75."],
    ),
    (partial(figures.divided_work, MAPS), ["head 1: the keys with the largest weight, query by query, are 2 and 0."]),
    (
        partial(figures.real_heads, [np.eye(2), [[1, 0], [1, 0]]], ["The", " cat"]),
        ["head 3: the keys with the largest weight, query by query, are 0"],
    ),
]
REFUSED = [
    (partial(HEAD_MAPS, 2 * MAPS), "maps must have rows that sum to 1"),
    (partial(HEAD_MAPS, MAPS, alt="too few"), "alt must be a text of at least 8 words"),
    (partial(figures.neighbours_named, {}), "shares must hold at least one"),
    (partial(figures.divided_work, 2 * MAPS), "maps must have rows that sum to 1"),
]


class TestPictures(Pictures):
    """Maps and answers."""


# --- the card ------------------------------------------------------------------------------------------

CARD = figures.sentence_heads()
IT, CAT = CARD["tokens"].index("it"), CARD["tokens"].index("cat")


def by_package(group: int, muted: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Features after the layer, and weights, from the package's own layer: the extra heads ask with the queries of the card."""
    query, output = np.array(CARD["query"], dtype=float), np.array(CARD["output"], dtype=float)
    w_query = np.linalg.pinv(sentence.X) @ query  # the matrices behind the queries
    w_key, w_value = (w.repeat(2, axis=0) for w in (sentence.W_KEY, sentence.W_VALUE))
    w_key, w_value = (w.reshape(4 // group, group, *w.shape[1:]).mean(axis=1) for w in (w_key, w_value))
    output[list(muted)] = 0
    added, weights = multi_head_attention(
        sentence.X,
        sentence.X,
        *map(merge_heads, (w_query, w_key, w_value)),
        output.reshape(12, 5),
        n_heads=4,
        n_kv_heads=4 // group,
        is_causal=True,
        return_weights=True,
    )
    return sentence.X + added, weights


def test_the_heads_of_the_card_hold_those_of_the_sentence():
    for name, array in (("query", sentence.QUERY), ("key", sentence.KEY), ("value", sentence.VALUE)):
        np.testing.assert_array_equal(np.array(CARD[name])[[0, 2]], array)
    np.testing.assert_array_equal(np.concatenate(np.array(CARD["output"])[[0, 2]]), sentence.W_OUTPUT)


def test_a_pair_with_the_same_keys_may_share_them_and_all_four_may_not():
    (alone, weights), (in_pairs, same), (in_one, blurred) = map(by_package, (1, 2, 4))
    np.testing.assert_allclose(in_pairs, alone, atol=1e-12)
    np.testing.assert_allclose(same, weights, atol=1e-12)
    assert np.abs(in_one - alone)[IT].max() > 0.5
    assert (blurred[:, IT].max(axis=1) < weights[:, IT].max(axis=1) - 0.1).all()


def test_the_words_of_the_heads_card_hold_true_numbers():
    rows = rows_of_card("heads")
    assert [keys for keys, _ in rows] == ["4", "2", "1"]
    for keys, cells in rows:
        weights = by_package(4 // int(keys))[1][:, IT]
        assert weights.argmax(axis=1).tolist() == [CARD["tokens"].index(word) for word in ("cat", "sat", "because", "sat")]
        assert cells == [*(f"{weight:.2f}" for weight in weights.max(axis=1)), str(costs.cache_bytes_per_token(int(keys), 4, 3))]


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("heads", data=CARD))
    for group in (1, 2, 4):
        for asks, muted in ((IT, []), (IT, [0]), (0, [1, 2]), (6, [0, 1, 2, 3])):
            after, weights = by_package(group, muted)
            token = costs.cache_bytes_per_token(4 // group, 4, 3)
            given = {"asks": asks, "group": group, "muted": [head in muted for head in range(4)]}
            wanted = {"weights": weights[:, asks], "output": after[asks], "token": token, "cache": token * (asks + 1)}
            assert_described(page, "heads", (given,), wanted, rtol=0, atol=1e-9)
    large = page.evaluate("document.getElementById('attn-heads').explorable.model({ group: 4, context: 32768 })")
    parameters = costs.multi_head_parameters(32 * 128, n_heads=32, n_kv_heads=8)
    cache = 32768 * costs.cache_bytes_per_token(8, 128, 128, n_layers=32)
    assert large == {"keys": 8, "cache": cache, "weights": 32 * 2 * parameters}


@pytest.mark.browser
def test_every_bar_and_every_arc_stays_within_its_axis(page):
    page.set_content(card_html("heads", data=CARD))
    drawn = page.evaluate(
        """() => ["1", "2", "4"].flatMap(group => {
            document.querySelector(`[data-group="${group}"]`).click();
            return [...document.querySelectorAll("[data-asks]")].map(word => {
                word.click();
                const bars = [...document.querySelectorAll("[data-chart=output] rect")].map(bar => bar.getBBox());
                const arcs = [...document.querySelectorAll(".attn-arcs path")].map(arc => arc.getBBox());
                return [bars.flatMap(bar => [bar.x, bar.x + bar.width]), arcs.flatMap(arc => [arc.y, arc.y + arc.height])];
            });
        })"""
    )
    assert len(drawn) == 21
    for ends, heights in drawn:
        assert 56 <= min(ends) < max(ends) <= 310
        assert 0 <= min(heights) < max(heights) <= 1


@pytest.mark.browser
def test_a_head_that_is_muted_adds_nothing_and_reset_brings_it_back(page):
    page.set_content(card_html("heads", data=CARD))
    said = page.get_by_role("status")
    arcs, bars = page.locator(".attn-arcs path"), page.locator("[data-chart=output] rect")
    said.get_by_text("who gives \u201ccat\u201d 0.97").wait_for()
    drawn = arcs.count(), bars.count()
    page.get_by_role("button", name="mute who").press("Enter")
    after, weights = by_package(1, [0])
    said.get_by_text(f"When \u201cit\u201d asks, what gives \u201csat\u201d {weights[1, IT].max():.2f}").wait_for()
    said.get_by_text(f"open {after[IT, 2]:.2f}").wait_for()
    assert (arcs.count(), bars.count()) < drawn
    assert page.locator("[data-chart=output] .attn-whole").count() == 3
    page.get_by_role("button", name="Reset").press("Space")
    said.get_by_text("who gives \u201ccat\u201d 0.97").wait_for()
    assert (arcs.count(), bars.count()) == drawn


@pytest.mark.browser
def test_the_thickest_arc_is_the_largest_weight(page):
    page.set_content(card_html("heads", data=CARD))
    page.get_by_role("button", name="1: one for all").click()
    weights = by_package(4)[1][:, IT, : IT + 1]
    widths = page.locator(".attn-arcs path").evaluate_all("arcs => arcs.map(arc => Number(arc.getAttribute('stroke-width')))")
    np.testing.assert_allclose(sorted(widths), sorted(12 * weights[weights >= 0.005]), atol=1e-9)


@pytest.mark.browser
def test_arrow_keys_move_the_word_that_asks_and_the_context(page):
    page.set_content(card_html("heads", data=CARD))
    word = page.locator("[data-asks='4']")
    word.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # there is no eighth word
    assert page.locator(":focus").inner_text() == "tired"
    assert page.locator("[data-fact=cache]").inner_text() == f"{7 * costs.cache_bytes_per_token(4, 4, 3)} B"
    slider = page.get_by_role("slider", name="tokens of context in the model")
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "16384"
    assert page.locator("[data-fact=model]").inner_text() == "8.00 GiB"
    page.get_by_role("button", name="2: one for two").press("Enter")
    assert page.locator("[data-fact=model]").inner_text() == "4.00 GiB"
    page.get_by_role("status").get_by_text("The cache is half as large and no weight has changed").wait_for()
