"""Formulas as JavaScript: the browser and NumPy give the same numbers for one tree, and its words say these numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from attn_course.formulas import Formula, Malformed, index, subset
from attn_course.formulas import javascript as room
from attn_course.formulas.evaluate import Evaluator
from attn_course.formulas.javascript import JavaScript, Symbol
from tests.browser.script import scripted

ALGEBRA = Path(room.__file__).with_suffix(".js").read_text(encoding="utf-8")
RNG = np.random.default_rng(11)
Q, K, V = RNG.normal(size=(2, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 4))
S, W = Q @ K.T, RNG.normal(size=(3, 3))
ONE_SEEN = np.array([False, True, False, True, True])
MATRICES = {"Q": Q, "K": K, "V": V, "S": S, "s": S, "W": W, "q": Q, "k": K, "v": V, "p": np.exp(S), "B": np.where(ONE_SEEN, S, -np.inf)}
GIVENS = {**MATRICES, "z": S[0], "A": ONE_SEEN, "d": 3.0, "x": 0.7, "n": 5.0}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with scripted(ALGEBRA) as page:
        yield page


def made(right: str) -> tuple[Formula, JavaScript]:
    """Return y = ... as a formula of these givens, and what writes it."""
    formula = Formula.of(rf"y = {right}", [*GIVENS, "y"], ["t"] if "t :" in right else [])
    symbols = {name: Symbol(f"$.{name}") for name in GIVENS}
    return formula, JavaScript(formula, symbols, {"t": "5"})


def in_the_browser(page: Page, right: str, algebra: str = "n"):
    formula, writer = made(right)
    source = writer.written(formula.claims[0].children[2])
    values = {name: np.asarray(value, float).tolist() for name, value in GIVENS.items()}
    return page.evaluate(f"(values) => {{ const o = {algebra}, $ = values; const y = {source}; return y.column ?? y; }}", values)


def in_numpy(right: str) -> np.ndarray:
    formula, _ = made(right)
    givens = {**GIVENS, "A": subset(ONE_SEEN), "t": index(1, 5)}
    with np.errstate(all="ignore"):
        found = Evaluator(formula, givens).value(formula.claims[0].children[2]).indexed
    return found.reshape(found.shape[len(formula.letters) + 1 :])


@pytest.mark.browser
@pytest.mark.parametrize(
    "right",
    [
        r"1.5 - x / d + x x",
        r"Q K^\top",
        r"\frac{Q W K^\top}{\sqrt{d}}",
        r"(Q K^\top)_{2, 4}",
        r"q_1 \cdot k_5",
        r"q_2\, W\, k_3^\top",
        r"W^\top q_1^\top",
        r"\sum_j e^{s_{1, j}}\, v_j",
        r"\sum_{j=2}^{n} s_{2, j}",
        r"\sum_{j \in A} s_{1, j}",
        r"\sum_{j \notin A} [\,j > 2\,]\, s_{1, j}",
        r"\max_j s_{2, j}",
        r"\max(x, \max_j s_{1, j}, d)",
        r"\max_j B_{1, j}",
        r"\sigma_l(s_{1, l} - 10000\, [\,l \notin A\,])_2",
        r"\sigma(z)_3",
        r"\sigma(z)",
        r"\begin{cases} x & x > d \\ -\infty & x \le d \end{cases}",
        r"\{\, t : t \ge d \,\}",
        r"\lfloor n / d \rfloor + \ln x",
        r"w_2\, x, \qquad w = \sigma(z)",
        r"s_{1, c} + x, \qquad c = \lfloor n / 2 \rfloor + 1",
        r"-Q + x\, Q",
        r"e^{B_{1, 1}} + \exp(x)",
    ],
)
def test_the_browser_and_numpy_agree(page: Page, right: str):
    np.testing.assert_allclose(in_the_browser(page, right), in_numpy(right), rtol=1e-12, atol=1e-12)


@pytest.mark.browser
def test_what_differs_in_one_sign_differs_in_the_browser(page: Page):
    assert np.abs(np.subtract(in_the_browser(page, r"Q K^\top"), in_numpy(r"-Q K^\top"))).max() > 0.1


@pytest.mark.browser
@pytest.mark.parametrize(
    ("right", "text"),
    [
        (r"d - n", "3 − 5"),
        (r"\frac{d + n}{\sqrt{d}}", "(3 + 5) / √3"),
        (r"d (n - d)", "3 · (5 − 3)"),
        (r"-(d + n)", "−(3 + 5)"),
        (r"e^{d - n}", "exp(3 − 5)"),
        (r"\max(d, n) - (d - n)", "max(3, 5) − (3 − 5)"),
        (r"[\,d \le n\,]", "[3 ≤ 5]"),
        (r"x / 1000000", "0.7 / 1000000"),
    ],
)
def test_words_say_the_numbers_and_keep_their_parentheses(page: Page, right: str, text: str):
    word = in_the_browser(page, right, "words")
    assert word["value"] == pytest.approx(float(in_numpy(right)), rel=1e-12)
    assert word["text"] == text


@pytest.mark.browser
def test_a_long_sum_is_shortened_and_its_value_is_whole(page: Page):
    word = in_the_browser(page, r"\sum_{j=1}^{12} d j", "words")
    assert word == {"value": 234, "text": "3 · 1 + 3 · 2 + … + 3 · 12", "binds": 0}


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (r"\prod_j s_{1, j}", r"big \prod cannot be written"),
        (r"W^2", "power"),
        (r"\lVert z \rVert", "norm"),
        (r"\sum_j w_j, \qquad w_j = s_{1, j}", "indices of its own"),
        (r"\sum_{i, j} s_{ij}", "several indices"),
        (r"\mathrm{softmax}_{\mathrm{columns}}(S)", "beneath softmax"),
    ],
)
def test_what_cannot_be_written_is_named_with_its_place(right: str, said: str):
    formula, writer = made(right)
    with pytest.raises(Malformed, match=said.replace("\\", r"\\")) as caught:
        writer.written(formula.claims[0].children[2])
    assert caught.value.place[1] > caught.value.place[0]
