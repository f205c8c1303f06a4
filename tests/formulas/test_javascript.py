"""Formulas as JavaScript: the browser and NumPy give the same numbers for one tree, and its words say these numbers."""

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Page

from attn_course.formulas import Formula, Malformed, column, index, matrices, outcomes, row, subset, vector
from attn_course.formulas import javascript as room
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, Outcomes
from attn_course.formulas.javascript import JavaScript, Symbol
from tests.browser.script import scripted

ALGEBRA = "\n".join(file.read_text(encoding="utf-8") for file in (room.ALGEBRA, room.MORE))
RNG = np.random.default_rng(11)
Q, K, V = RNG.normal(size=(2, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 4))
S, W = Q @ K.T, RNG.normal(size=(3, 3))
ONE_SEEN = np.array([False, True, False, True, True])
X, Y = np.arange(4.0).reshape(2, 2), np.array([[[1.0, 2.0], [0.5, 3.0]], [[2.0, 5.0], [4.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
MATRICES = {"Q": Q, "K": K, "V": V, "S": S, "s": S, "W": W, "q": Q, "k": K, "v": V, "p": np.exp(S), "B": np.where(ONE_SEEN, S, -np.inf)}
RANDOM = {"u": outcomes([0.2, 0.3, 0.5], [1.0, -2.0, 4.0], "one"), "h": outcomes([0.5, 0.5], [3.0, -1.0], "two")}
ORIENTED = {"C": column(Q[0]), "r": row(K[0]), "g": matrices(Y, start=0), "a": vector(W[0] - W[1], start=0)}
GIVENS = {**MATRICES, **RANDOM, **ORIENTED, "z": S[0], "A": ONE_SEEN, "d": 3.0, "x": 0.7, "n": 5.0}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with scripted(ALGEBRA) as page:
        yield page


def made(right: str) -> tuple[Formula, JavaScript]:
    formula = Formula.of(rf"y = {right}", [*GIVENS, "y"], ["t"] if "t :" in right else [])
    symbols = {name: Symbol(f"$.{name}") for name in GIVENS}
    symbols |= {name: Symbol(f"$.{name}", random=f"of_{name}", weights=f"$.of_{name}") for name in RANDOM}
    symbols |= {name: Symbol(f"$.{name}", (0,)) for name in ("g", "a")} | {"A": Symbol("$.A", is_set=True)}
    return formula, JavaScript(formula, symbols, {"t": "5"})


def handed(given: object) -> object:
    if isinstance(given, Outcomes):
        return given.given.raw
    raw = np.asarray(given.raw if isinstance(given, Given) else given, float).tolist()
    return {"column": raw} if isinstance(given, Given) and given.form == "column" else raw


def in_the_browser(page: Page, right: str, algebra: str = "n"):
    formula, writer = made(right)
    source = writer.written(formula.claims[0].children[2])
    values = {name: handed(value) for name, value in GIVENS.items()} | {
        f"of_{name}": given.weights.tolist() for name, given in RANDOM.items()
    }
    return page.evaluate(f"(values) => {{ const o = {algebra}, $ = values; const y = {source}; return y.column ?? y; }}", values)


def in_numpy(right: str) -> np.ndarray:
    formula, _ = made(right)
    givens = {**GIVENS, "A": subset(ONE_SEEN), "t": index(1, 5)}
    with np.errstate(all="ignore"):
        evaluation = Evaluation(formula, givens)
        found = evaluation.value(formula.claims[0].children[2]).indexed
    return found.reshape(found.shape[evaluation.axes :])


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
        r"\mathrm{softmax}(S)",
        r"\mathrm{softmax}_{\mathrm{columns}}(S)",
        r"\mathrm{softmax}(Q K^\top)\, V",
        r"x^2 + d^{-x} + 2^{d}",
        r"W^2 + W^{-1} - W^\top",
        r"W^{-\top} + 3 I",
        r"(W - I)\, \mathbf{1}",
        r"\mathbf{1}^\top W + r",
        r"W + \mathbf{1} r - C\, \mathbf{1}^\top",
        r"\mathbf{1} \mathbf{1}^\top W + W",
        r"z - (z \cdot \mathbf{1})\, \mathbf{1}",
        r"1 - z^2",
        r"C\, C^\top - W",
        r"C^\top W",
        r"W \odot W + Q^\top Q \odot W",
        r"r \odot (r - \mathbf{1}^\top)",
        r"\lVert z \rVert + \lVert z \rVert_1 + \lVert W \rVert_F + \lVert W \rVert_2 + \lVert C \rVert^2",
        r"\lvert x - d \rvert + \lvert z \rvert + \lvert A \rvert",
        r"\lceil x \rceil + \cos x - \sin x \tanh d",
        r"\tan x + \log_2 n + 4! ",
        r"\mathrm{lse}(z) + \mathrm{tr}(W)",
        r"\mathrm{lse}(W)",
        r"\mathrm{diag}(z)",
        r"\mathrm{diag}(W)",
        r"\prod_j p_{1, j} + \min_j s_{2, j}",
        r"\min(x, \max(z), \min(z))",
        r"\sum_{i, j} s_{ij} [\,i \ne j\,]",
        r"\sum_{i=1}^{3} \sum_{1 \le j \le i} i j",
        r"\sum_j w_j, \qquad w_j = s_{1, j}^2",
        r"w_{2, 3}, \qquad w_{ij} = s_{ij} - \max_l s_{il}",
        r"f(x, d) - f(d, 2), \qquad f(b, l) = b^l - x",
        r"f(Q), \qquad f(M) = M M^\top",
        r"\begin{pmatrix} W & C \\ r & x \end{pmatrix}",
        r"[Q; W]",
        r"[W \;\; \mathbf{1}]",
        r"[g_0 \cdots g_2]",
        r"g_{1, 2, 1} + a_0",
        r"\sum_i a_i\, i",
        r"z_{2:4}",
        r"\mathbb{E}[u^2] + \mathrm{Var}[u h] + \mathrm{Cov}(u, u h)",
        r"\mathbb{E}[u r + h r]",
        r"(d, x, 2) + r",
        r"\delta_{2, 2} + \delta_{1, 2}",
        r"z + x\, \mathbf{1}_3",
        r"z \otimes r",
        r"\langle W, W^2 \rangle",
    ],
)
def test_the_browser_and_numpy_agree(page: Page, right: str):
    np.testing.assert_allclose(in_the_browser(page, right), in_numpy(right), rtol=1e-12, atol=1e-12)


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
    assert word == {"value": 234, "text": "3 · 1 + 3 · 2 + … + 3 · 12", "binds": 0, "from": []}


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (r"\lim_{x \to 0} x d", r"big \lim cannot be written"),
        (r"\frac{\partial^2 x^2}{\partial x\, \partial x}", "derivative"),
        (r"\mathrm{rank}(W)", "rank"),
        (r"u + \mathbb{E}[u]", "u is random"),
        (r"\mathrm{Var}_{z}[r]", "beneath Var"),
    ],
)
def test_what_cannot_be_written_is_named_with_its_place(right: str, said: str):
    formula, writer = made(right)
    with pytest.raises(Malformed, match=said.replace("\\", r"\\")) as caught:
        writer.written(formula.claims[0].children[2])
    assert caught.value.place[1] > caught.value.place[0]
