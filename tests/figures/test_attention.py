"""The figures of lesson attention say what their numbers say, and its card counts as Python does."""

import ast
import math
import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.attention import figures
from attn_course.reference import attention, gaussian_scores, softmax
from tests.figures.support import LESSONS, Pictures, assert_described, card_html, described, rows_of_card

KEYS = np.array([[1.0, 0.0], [5.0, 2.0], [-2.0, 3.0], [-2.0, -3.0]])
VALUES = np.array([1.0, -1.0, 0.4, -0.2])
EQUAL_KEYS = 3.0 * KEYS / np.linalg.norm(KEYS, axis=1, keepdims=True)
AXIS = np.linspace(-6, 6, 25)
SCORES = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
WEIGHTS = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)


def naive_attention(query, key, value) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    terms = [math.exp(sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query))) for k in key]
    return sum(term * v for term, v in zip(terms, value, strict=True)) / sum(terms)


ON_KEYS = [f"{naive_attention(key, KEYS, VALUES):.1f}".replace("-", "−") for key in KEYS]

QUERY_TO_SHOW = [2.0, 0.0], [[1.0, 0.0], [0.0, 3.0]], [2.0, 0.0], [0.75, 0.25], [[4.0, 0.0], [0.0, 4.0]], [3.0, 1.0]
LOOKS = np.array([[[1, 0, 0], [0.75, 0.25, 0], [0.25, 0.5, 0.25]], [[1, 0, 0], [0.4, 0.6, 0], [0, 0, 1]]])

DRAWN = [
    (
        partial(figures.attention_steps, np.zeros((2, 2)), np.full((2, 2), 0.5), np.ones((2, 1)), ["the", "cat"]),
        ["the largest weight of each row is 0.50 and 0.50."],
    ),
    (
        partial(figures.attention_steps, SCORES, WEIGHTS, WEIGHTS @ np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])),
        [
            "Scores, 2 by 3, from −1.00 to 2.00.",
            f"the largest weight of each row is {WEIGHTS[0].max():.2f} and {WEIGHTS[1].max():.2f}. Output, 2 by 2.",
        ],
    ),
    (
        partial(
            figures.query_plane,
            AXIS,
            {"dot product": [[naive_attention((a, b), KEYS, VALUES) for a in AXIS] for b in AXIS]},
            KEYS,
            VALUES,
        ),
        [f"on top of the keys is {', '.join(ON_KEYS[:3])} and {ON_KEYS[3]}."],
    ),
    (
        partial(figures.bits_held, [2, 4, 8], {"one": [1.0, 0.9, 0.55], "many": [1.0, 1.0, 1.0]}),
        ["2, 4 and 8 bits in the context. one: 1.00, 0.90 and 0.55. many: 1.00, 1.00 and 1.00."],
    ),
    (
        partial(figures.who_looked_where, ["the", "cat", "sat"], LOOKS),
        ["of 2 heads", "head 1: “the” 1.0 to “the”, “cat” 0.8 to “the”, “sat” 0.5 to “cat”", "“cat” 0.6 to “cat”, “sat” 1.0 to “sat”"],
    ),
]
REFUSED = [
    (
        partial(figures.attention_steps, np.zeros((2, 2)), [[0.6, 0.5], [0.5, 0.5]], np.zeros((2, 3))),
        r"weights must sum to 1 in each row; got 1\.10 and 1\.00",
    ),
    (
        partial(figures.attention_steps, np.zeros((2, 3)), np.full((2, 2), 0.5), np.zeros((2, 3))),
        "weights must have the shape of scores and output as many rows",
    ),
    (partial(figures.query_plane, AXIS, {"a": np.zeros((25, 24))}, KEYS, VALUES), r"maps\['a'\] must have shape \(25, 25\)"),
    (partial(figures.bits_held, [2, 4], {}), "shares must hold at least one"),
    (partial(figures.one_query, ["the"], *QUERY_TO_SHOW), r"tokens, keys and values must be equally many; got 1, \(2, 2\) and \(2, 2\)"),
    (
        partial(figures.one_query, ["the", "cat"], *QUERY_TO_SHOW[:3], [0.75, 0.5], *QUERY_TO_SHOW[4:]),
        r"weights must sum to 1; got 1\.25",
    ),
    (partial(figures.who_looked_where, ["the", "cat"], LOOKS), r"weights must have shape \(2, 2, 2\); got \(2, 3, 3\)"),
    (
        partial(figures.who_looked_where, ["the", "cat", "sat"], LOOKS.swapaxes(1, 2)),
        "weights must sum to 1 in each row, over the words up",
    ),
]


class TestPictures(Pictures):
    """Steps, plane, bits and the map of a text that is written."""


# --- the card ------------------------------------------------------------------------------------------


def numbers_of(query, equal=False, gaussian=False) -> dict[str, np.ndarray]:
    """Weights, output, Jacobian by central differences, its norm and its bound."""
    keys, rate = (EQUAL_KEYS if equal else KEYS), (1.0 if gaussian else 1 / math.sqrt(2))

    def weights(q):
        if gaussian:
            return softmax(gaussian_scores(q[None], keys, 1.0))[0]
        return attention(q[None], keys, np.eye(4))[0]

    query = np.asarray(query, dtype=float)
    steps = 1e-6 * np.eye(2)
    jacobian = np.array([(weights(query + s) - weights(query - s)) @ VALUES / 2e-6 for s in steps])
    diameters = [np.ptp(VALUES), max(np.linalg.norm(a - b) for a in keys for b in keys)]
    return {
        "weights": weights(query),
        "output": weights(query) @ VALUES,
        "jacobian": jacobian,
        "norm": np.linalg.norm(jacobian),
        "bound": rate * diameters[0] * diameters[1] / 4,
    }


def test_the_words_of_the_query_card_hold_true_numbers():
    rows = rows_of_card("query")
    assert [query for query, _ in rows] == ["(1, 0)", "(0, 0)", "(4.3, −6)", "(0.8, 5.6)", "(−6, 5)"]
    for query, cells in rows:
        wanted = numbers_of([float(entry.replace("−", "-")) for entry in query.strip("()").split(",")])
        row = [*wanted["weights"], wanted["output"], wanted["norm"]]
        got = [float(cell.replace("−", "-")) for cell in cells]
        np.testing.assert_allclose(got, row, atol=5.01e-4)


def test_the_steepest_place_of_the_words_is_the_steepest_that_the_sliders_reach():
    places = np.round(np.arange(-60, 61) / 10, 1)
    queries = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    weights = attention(queries, KEYS, np.eye(4))
    value_gaps = VALUES - (weights @ VALUES)[:, None]
    slopes = np.linalg.norm((weights * value_gaps) @ KEYS, axis=1) / math.sqrt(2)
    steepest = max(rows_of_card("query"), key=lambda row: float(row[1][-1]))
    assert steepest[0] == str(tuple(queries[slopes.argmax()].tolist()))
    assert steepest[1][-1] == f"{slopes.max():.3f}"


@pytest.mark.browser
def test_the_card_has_the_keys_and_values_of_the_figure_above_it(page):
    lesson = (LESSONS.parents[1] / "notebooks" / "src" / "attention.py").read_text(encoding="utf-8")
    page.set_content(card_html("query"))
    for name, shown in (("keys", KEYS), ("values", VALUES[:, None])):
        (written,) = re.findall(rf"^plane_{name} = np\.array\((.*)\)$", lesson, flags=re.MULTILINE)
        np.testing.assert_array_equal(np.array(ast.literal_eval(written)), shown)
    assert described(page, "query", [0, 0], False, False)["keys"] == KEYS.tolist()
    for j, value in enumerate(VALUES):  # far out along equal keys the one that is nearest takes all
        far = (200 * EQUAL_KEYS[j]).tolist()
        assert described(page, "query", far, True, False)["output"] == pytest.approx(value)


@pytest.mark.browser
@pytest.mark.parametrize(("equal", "gaussian"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_numbers_of_the_card_are_those_of_python(page, equal, gaussian):
    page.set_content(card_html("query"))
    for query in ([1.0, 0.0], [0.0, 0.0], [0.4, 1.7], [-6.0, 5.0], [2.3, -4.1]):
        assert_described(page, "query", (query, equal, gaussian), numbers_of(query, equal, gaussian), atol=1e-8)


@pytest.mark.browser
def test_arrow_keys_buttons_and_the_pointer_move_the_query(page):
    page.set_content(card_html("query"))
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="first entry of the query")
    assert slider.get_attribute("aria-valuetext") == "0.3"
    shown = [float(text) for text in page.locator("[data-weight]").all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of([0.3, 0.0])["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 1").press("Enter")
    page.get_by_role("status").get_by_text("At q = (1.0, 0.0) key 2 has the largest weight, 0.932, although key 1 is nearer.").wait_for()
    page.get_by_role("button", name="Keys of equal length").press("Space")
    page.get_by_role("status").get_by_text("key 1 has the largest weight").wait_for()
    page.get_by_role("button", name="Origin").click()
    page.get_by_role("status").get_by_text("keys 1, 2, 3 and 4 share the largest weight, 0.250 each.").wait_for()
    page.get_by_role("slider", name="first entry of the query").fill("2")
    page.locator("[data-key] circle").nth(3).click()
    sliders = page.locator("[data-query]")
    assert [sliders.nth(n).get_attribute("aria-valuetext") for n in (0, 1)] == [f"{entry:.1f}".replace("-", "−") for entry in EQUAL_KEYS[3]]


@pytest.mark.browser
def test_the_card_keeps_the_steepest_place_of_the_similarity_at_hand(page):
    page.set_content(card_html("query"))
    record = page.locator("[data-fact=record]")
    page.get_by_role("button", name="Between keys 2 and 4").click()
    kept = record.inner_text()
    assert kept == f"{numbers_of([4.3, -6.0])['norm']:.3f} at q = (4.3, −6.0)"
    page.get_by_role("button", name="Far out").click()
    assert record.inner_text() == kept
    page.get_by_role("button", name="Gaussian, h = 1").click()
    assert record.inner_text() == f"{numbers_of([-6.0, 5.0], gaussian=True)['norm']:.3f} at q = (−6.0, 5.0)"


def test_the_machine_has_the_sizes_of_the_arrays(shown):
    figures.machine("attention", np.ones((5, 3)), np.ones((5, 3)), np.ones((5, 2)))
    assert "Here T = 5, d_k = 3 and d_v = 2." in shown[0].alt
    with pytest.raises(ValueError, match=r"key must have the shape of query and value as many rows; got \(5, 3\), \(4, 3\) and \(4, 2\)"):
        figures.machine("attention", np.ones((5, 3)), np.ones((4, 3)), np.ones((4, 2)))


def test_the_picture_of_one_query_says_every_number_it_draws(shown):
    figures.one_query(["the", "cat"], *QUERY_TO_SHOW)
    assert "A query (2, 0) meets the keys of 2 tokens. Dot product and weight: the 2 and 0.750; cat 0 and 0.250." in shown[0].alt
    assert shown[0].alt.endswith("is the output, (3.00, 1.00).")
    drawn = re.findall(r"<text[^>]*>([^<]+)</text>", shown[0].html)
    assert drawn[-3:] == ["3.00", "1.00", "output"]
    assert {"the", "cat", "0.750", "1.4"} <= set(drawn)  # the score of "the" is 2 over the root of 2
