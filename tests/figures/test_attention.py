"""The figures of lesson attention say what their numbers say, and its card counts as Python does."""

import math
import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.reference import attention, gaussian_scores, softmax
from tests.figures.support import assert_sound

KEYS = np.array([[1.0, 0.0], [5.0, 2.0], [-2.0, 3.0], [-2.0, -3.0]])
VALUES = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
EQUAL_KEYS = 3.0 * KEYS / np.linalg.norm(KEYS, axis=1, keepdims=True)
AXIS = np.linspace(-6, 6, 25)
LINE_KEYS, LINE_VALUES = np.array([-2.0, 0.5, 2.0]), np.array([1.0, -1.0, 0.5])


def naive_attention(query, key, value) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    terms = [math.exp(sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query))) for k in key]
    return sum(term * v for term, v in zip(terms, value, strict=True)) / sum(terms)


def draw_steps(**options):
    scores = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    figures.attention_steps(scores, weights, weights @ np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), **options)


def draw_line(**options):
    curve = [naive_attention([q], LINE_KEYS[:, None], LINE_VALUES) for q in AXIS]
    figures.function_of_query(
        AXIS, {"dot product": curve, "interpolation": np.interp(AXIS, LINE_KEYS, LINE_VALUES)}, LINE_KEYS, LINE_VALUES, **options
    )


def draw_plane(**options):
    field = [[naive_attention((a, b), KEYS, VALUES[:, 0] - VALUES[:, 1]) for a in AXIS] for b in AXIS]
    figures.query_plane(AXIS, {"dot product": field}, KEYS, VALUES[:, 0] - VALUES[:, 1], mark=(1.0, 0.0), **options)


def draw_bits(**options):
    figures.bits_held([2, 4, 8], {"one": [1.0, 0.9, 0.55], "many": [1.0, 1.0, 1.0]}, **options)


FIGURES = [draw_steps, draw_line, draw_plane, draw_bits]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw)


@pytest.mark.parametrize("draw", FIGURES)
def test_title_and_words_can_be_replaced(shown, draw):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."


def test_the_words_of_the_line_name_by_how_much_each_curve_misses(shown):
    draw_line()
    assert "interpolation: at the keys the output misses the values by 0.0, 0.0 and 0.0." in shown.words.alt
    misses = [abs(naive_attention([k], LINE_KEYS[:, None], LINE_VALUES) - v) for k, v in zip(LINE_KEYS, LINE_VALUES, strict=True)]
    assert (
        f"dot product: at the keys the output misses the values by {misses[0]:.1f}, {misses[1]:.1f} and {misses[2]:.1f}." in shown.words.alt
    )


def test_the_words_of_the_plane_name_the_output_on_top_of_each_key(shown):
    draw_plane()
    at_keys = [naive_attention(key, KEYS, VALUES[:, 0] - VALUES[:, 1]) for key in KEYS]
    first, second, third, fourth = (f"{value:.1f}".replace("-", "−") for value in at_keys)
    assert f"on top of the keys is {first}, {second}, {third} and {fourth}." in shown.words.alt


def test_the_words_of_the_bits_name_every_share(shown):
    draw_bits()
    assert shown.words.alt.endswith("2, 4 and 8 bits in the context. one: 1.00, 0.90 and 0.55. many: 1.00, 1.00 and 1.00.")


def test_numbers_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match=r"weights must sum to 1 in each row; got 1\.10 and 1\.00"):
        figures.attention_steps(np.zeros((2, 2)), [[0.6, 0.5], [0.5, 0.5]], np.zeros((2, 3)))
    with pytest.raises(ValueError, match="weights must have the shape of scores and output as many rows"):
        figures.attention_steps(np.zeros((2, 3)), np.full((2, 2), 0.5), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="values must have shape"):
        figures.function_of_query(AXIS, {"a": AXIS}, LINE_KEYS, LINE_VALUES[:2])
    with pytest.raises(ValueError, match="curves must hold at least one output"):
        figures.function_of_query(AXIS, {}, LINE_KEYS, LINE_VALUES)
    with pytest.raises(ValueError, match=r"maps must hold arrays of shape \(25, 25\)"):
        figures.query_plane(AXIS, {"a": np.zeros((25, 24))}, KEYS, VALUES[:, 0])
    with pytest.raises(ValueError, match="shares must hold at least one model"):
        figures.bits_held([2, 4], {})
    assert shown == []


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
    jacobian = np.stack([(weights(query + s) - weights(query - s)) @ VALUES / 2e-6 for s in steps], axis=1)
    diameters = [max(np.linalg.norm(a - b) for a in rows for b in rows) for rows in (VALUES, keys)]
    return {
        "weights": weights(query),
        "output": weights(query) @ VALUES,
        "jacobian": jacobian,
        "norm": np.linalg.norm(jacobian, 2),
        "bound": rate * diameters[0] * diameters[1] / 4,
    }


def test_the_words_of_the_query_card_hold_true_numbers():
    text = (PARTS / "query_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">\((.*?)\)</th>(.*?)</tr>', text)
    assert [row[0] for row in rows] == ["1, 0", "0, 0", "−6, 5"]
    for query, cells in rows:
        wanted = numbers_of([float(entry.replace("−", "-")) for entry in query.split(",")])
        row = [*wanted["weights"], *wanted["output"], wanted["norm"]]
        got = [float(cell.replace("−", "-")) for cell in re.findall(r"<td>(.*?)</td>", cells)]
        np.testing.assert_allclose(got, row, atol=5.01e-4)


@pytest.mark.browser
@pytest.mark.parametrize(("equal", "gaussian"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_numbers_of_the_card_are_those_of_python(page, equal, gaussian):
    page.set_content(explorable_html("query", "query"))
    call = "([q, e, g]) => document.getElementById('attn-query').explorable.describe(q, e, g)"
    for query in ([1.0, 0.0], [0.0, 0.0], [0.4, 1.7], [-6.0, 5.0], [2.3, -4.1]):
        shown = page.evaluate(call, [query, equal, gaussian])
        for name, wanted in numbers_of(query, equal, gaussian).items():
            np.testing.assert_allclose(shown[name], wanted, atol=1e-8, err_msg=name)


@pytest.mark.browser
def test_arrow_keys_buttons_and_the_pointer_move_the_query(page):
    page.set_content(explorable_html("query", "query"))
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    slider = page.get_by_role("slider", name="first entry of the query")
    assert slider.get_attribute("aria-valuetext") == "1.3"
    shown = [float(text) for text in page.locator("[data-weight]").all_inner_texts()]
    np.testing.assert_allclose(shown, numbers_of([1.3, 0.0])["weights"], atol=5.01e-4)
    page.get_by_role("button", name="On key 1").focus()
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("At q = (1.0, 0.0) key 2 has the largest weight, 0.932, although key 1 is nearer.").wait_for()
    page.get_by_role("button", name="Keys of equal length").focus()
    page.keyboard.press("Space")
    page.get_by_role("status").get_by_text("key 1 has the largest weight").wait_for()
    page.get_by_role("button", name="Origin").click()
    page.get_by_role("status").get_by_text("keys 1 and 2 and 3 and 4 share the largest weight, 0.250 each.").wait_for()
    page.get_by_role("slider", name="first entry of the query").fill("2")
    box = page.locator("[data-plane]").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert slider.get_attribute("aria-valuetext") == "0.0"
