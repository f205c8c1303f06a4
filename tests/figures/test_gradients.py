"""The figures of lesson gradients say what their numbers say, and the machine is read backwards."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course.figures.machines.whole import machine_drawing
from attn_course.lessons.gradients import figures
from tests.figures.diagrams import svg_of
from tests.figures.support import Pictures, assert_described, card_html, rows_of_card

SENTENCES = partial(figures.sentences, ["tired", "curious"], ["cat", "clock", "dog"], [(0, [0, 1]), (0, [0, 2]), (1, [2, 1])])

DRAWN = [
    (
        partial(SENTENCES, [0, 1]),
        [
            "From tired full lines lead to cat, broken lines to clock and dog. From curious full lines lead to dog, broken lines to clock.",
            "A question mark stands between curious and cat.",
        ],
    ),
    (partial(SENTENCES, [0, 0, 2, 1]), ["The way, in thick lines: cat, tired, dog, curious."]),
]
REFUSED = [(partial(figures.sentences, ["tired"], ["cat"], [], [0, 0]), "at least one sentence")]

TestPictures = Pictures


def tips(name: str) -> list[tuple[float, float]]:
    """Where the arrows of the machine point."""
    shapes = [shape for shape in svg_of(machine_drawing(name)) if "attn-tip" in shape.get("class", "")]
    return [tuple(float(part) for part in re.match(r"([\d.]+),([\d.]+)", shape.get("points")).groups()) for shape in shapes]


def test_read_backwards_every_arrow_of_the_machine_is_turned_round():
    forwards, backwards = tips("whole"), tips("backwards")
    assert len(forwards) > 15
    assert not {*forwards} & {*backwards}


def written(name: str) -> dict[str, tuple[str, str]]:
    """Where each text of the machine stands."""
    return {"".join(text.itertext()): (text.get("x"), text.get("y")) for text in svg_of(machine_drawing(name)).iter() if text.get("x")}


def test_each_gradient_stands_where_its_matrix_stood():
    gradients, matrices = written("backwards"), written("whole")
    for gradient, matrix in {"dQ": "Q", "dK": "K", "dV": "V", "dP": "P", "dZ": "PV"}.items():
        assert gradients[gradient] == matrices[matrix]
    assert gradients["dS/"][1] == matrices["QK⊤"][1]  # the root behind it is drawn
    assert "dS" in gradients
    assert "mask" not in gradients


def test_what_a_gradient_meets_stands_on_its_way():
    texts = written("backwards")
    places = {name: tuple(float(part) for part in texts[name]) for name in ("Q", "K", "V", "P", "dQ", "dK", "dV", "dS/", "dP", "dZ")}
    for met, source, target in (("K", "dS/", "dQ"), ("P", "dZ", "dV")):
        assert places[target][0] < places[met][0] < places[source][0]
    assert places["dK"][0] < places["Q"][0] < places["dS/"][0]
    assert places["dP"][1] < places["V"][1] < places["dZ"][1]


VALUES = np.array([-1.0, 0.0, 1.0, 2.0])


def after_a_step(scores) -> dict[str, np.ndarray]:
    """Weights, output, and the step against the gradient of the loss -z, by the Jacobian of the softmax."""
    weights = np.exp(scores) / np.exp(scores).sum()
    jacobian = np.diag(weights) - np.outer(weights, weights)
    return {"weights": weights, "output": weights @ VALUES, "steps": jacobian @ VALUES}


def steps_until_half(best: float) -> int:
    scores = np.array([0.0, 0.0, 0.0, best])
    for count in range(2001):
        if after_a_step(scores)["weights"][3] > 0.5:
            return count
        scores = scores + after_a_step(scores)["steps"]
    raise AssertionError("the best value never has half of the weight")


def test_the_words_of_the_card_hold_true_numbers():
    rows = rows_of_card("steps")
    assert [start for start, _ in rows] == ["0", "−1", "−2", "−3"]
    for start, cells in rows:
        best = float(start.replace("−", "-"))
        assert cells == [f"{after_a_step([0, 0, 0, best])['weights'][3]:.3f}", str(steps_until_half(best))]


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("steps"))
    for scores in ([0.0, 0.0, 0.0, 0.0], [1.5, -2.0, 0.5, -3.0], [300.0, 299.0, 0.0, 301.0]):
        shifted = [score - max(scores) for score in scores]
        assert_described(page, "steps", (scores,), after_a_step(shifted), atol=1e-12)


@pytest.mark.browser
def test_buttons_take_one_step_or_as_many_as_half_of_the_weight_takes_and_a_slider_starts_anew(page):
    page.set_content(card_html("steps"))
    count = page.locator("[data-fact=count]")
    page.get_by_role("button", name="One step").click()
    assert count.inner_text() == "1"
    best = page.get_by_role("slider", name="score of the value 2")
    best.fill("-2")
    assert count.inner_text() == "0"
    page.get_by_role("button", name="Until half").click()
    assert count.inner_text() == str(steps_until_half(-2.0))
    page.get_by_role("status").get_by_text("has more than half of the weight").wait_for()
