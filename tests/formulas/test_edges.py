"""Corners of reading and evaluating that only a mutant of the engine has shown: see tests/mutants."""

import numpy as np
import pytest

from attn_course.formulas import Malformed, Refuted, column, formula_of, judge, read, vector

X = np.array([2.0, 3.0, 5.0])
TABLE = np.arange(6.0).reshape(2, 3)
W = {"x": X, "w": np.ones(3)}
NOT_FOUND = "the least value is not found"
LEAST = (r"\sum_i (w_i - x_i)^2", r"\sum_i \cosh(w_i - x_i)", r"\sum_i |w_i - x_i|", r"(\|w - x\| + \|w + x\| / 2)")
CASES_OF_TWO = r"x_i = \begin{cases} 2 & i = 1 \\ 3 & i = 2 \end{cases}"
LARGEST = r"1 \in \arg\max_j x_j, \qquad 2 \in \arg\max_j x_j, \qquad 3 \notin \arg\max_j x_j"

# what is looked at: formulas with what is given, and what becomes of them: "" holds, "refuted", else words of why it has no meaning
EDGES = {
    "diag of a matrix is its diagonal as a column": [
        (r"\mathrm{diag}(A A^\top) = v", {"A": TABLE, "v": column(np.array([5.0, 50.0]))}, ""),
        (r"\mathrm{diag}(A) = A", {"A": TABLE}, "diag of a 2 x 3 matrix has no meaning"),
    ],
    "an accent belongs to a name": [(r"\hat{y}_i = x_i + 1, \qquad \hat y_i - 1 = x_i", {"x": X}, "")],
    "ones are no symbol that a formula defines": [
        (r"\mathbf{1} = x", {"x": column(np.ones(3))}, ""),
        (r"\mathbf{1} = x", {"x": column(X)}, "refuted"),
    ],
    "the powers of an index are no whole numbers of so many bits": [("x_i = i^i", {"x": np.arange(1.0, 21.0) ** np.arange(1.0, 21.0)}, "")],
    "the rank does not depend on the unit": [(r"\text{rank}(A) = 2", {"A": 1e-14 * np.eye(2)}, "")],
    "the identity is as large as its neighbour if that is square": [
        ("A + I = A", {"A": np.ones((2, 3))}, "I is square, and its neighbour is a 2 x 3 matrix")
    ],
    "where no case holds there is no number": [
        (CASES_OF_TWO, {"x": X[:2]}, ""),
        (CASES_OF_TWO, {"x": np.array([2.0, 3.0, 0.0])}, "refuted"),
    ],
    "a factor that a condition leaves out is one": [(r"y_i = \prod_{j \ne i} x_j", {"x": X, "y": np.array([15.0, 10.0, 6.0])}, "")],
    "the largest are all that differ by round-off": [(LARGEST, {"x": np.array([0.1 + 0.2, 0.3, 0.2])}, "")],
    "a sum ends at a whole number": [(r"s = \sum_{j=1}^{n / 2} j", {"s": 1.0, "n": 3}, "the bounds of an index are whole numbers")],
    "of states the shortest says how many there are": [("a_t = b_t", {"a": vector(X, states=True), "b": vector(X[:2], states=True)}, "")],
    "a bound may be attained but for round-off": [(r"x \le y, \qquad y \ge x, \qquad \min(x, 2) = y", {"x": 0.1 + 0.2, "y": 0.3}, "")],
    "what is no number differs from none": [(r"x \ne y", {"x": np.nan, "y": 1.0}, "refuted")],
    "strictly lower leaves the diagonal out": [
        (r"\text{strictly lower}(A) = B", {"A": np.array([[2.0, 3.0], [5.0, 7.0]]), "B": np.array([[0.0, 0.0], [5.0, 0.0]])}, "")
    ],
    "an arrow to both sides is judged from both": [
        (r"x_i > 0 \iff 2 x_i > 0", {"x": X - 4}, ""),
        (r"x_i > 2 \iff x_i > 1", {"x": X}, "refuted"),
    ],
    "a letter of the premise alone stands for all its values": [
        (r"x_i > 2 \Rightarrow s > 0", {"x": X, "s": -1.0}, ""),
        (r"x_i > 1 \Rightarrow s > 0", {"x": X, "s": -1.0}, "refuted"),
    ],
    "what is differentiated depends on the given also through a definition": [
        (r"m = x_1 x_2, \qquad 2 m = 12, \qquad \frac{\partial m}{\partial x_1} = 3", {"x": X}, ""),
        (r"\frac{\partial y}{\partial x_1} = 0", {"x": X, "y": 2.0}, "what is differentiated does not depend on x"),
    ],
    "the least value is found of squares and of what is none also at a kink": [
        *((rf"\arg\min_w {body} = x", W, "") for body in LEAST),
        (r"\arg\min_w (w - \ln w) = x", {"x": 1.0, "w": 0.3}, ""),  # a step of 1 leads to where it has no value
        (r"\arg\min_w (\|w - x\| / 2 + \|w + x\|) = x", W, "refuted"),
        *((rf"\arg\min_w {body} = x", W, NOT_FOUND) for body in (r"(1 - \sum_i (w_i - x_i)^2)", r"\sum_i w_i", "(w_1 + w_2 - 3)^4")),
    ],
}


def fate(latex, givens):
    """What becomes of a formula: "" if it holds, "refuted", or why it has no meaning."""
    try:
        judge(formula_of(latex, givens), givens)
    except Refuted:
        return "refuted"
    except Malformed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_is_where_it_is_said_to_be(edge):
    for latex, givens, wanted in EDGES[edge]:
        found = fate(latex, givens)
        assert wanted in found, (latex, found)
        assert bool(found) == bool(wanted), (latex, found)


@pytest.mark.parametrize(
    ("latex", "said"),
    [
        ("a = " + "b" * 1997, "a formula has at most 2,000 characters; this one has 2,001"),
        ("a = b / c / d", "/ and / stand side by side: put one of them in parentheses"),
        (r"a = b, \qquad c = d: \qquad", "expected what holds under the premise"),
    ],
)
def test_what_cannot_be_read_says_why(latex, said):
    with pytest.raises(Malformed) as caught:
        read(latex, "abcd")
    assert said in str(caught.value)


def test_a_star_in_braces_of_its_own_belongs_to_a_name():
    assert read("W^{*} = 1", ["W^*"]) == read("W^* = 1", ["W^*"])


def test_an_evaluation_takes_so_many_steps_and_no_more(monkeypatch):
    assert fate("x_1 + 1 = 3", {"x": X}) == ""
    monkeypatch.setattr("attn_course.formulas.scope.MOST_STEPS", 3)
    assert "this takes more than 3 steps" in fate("x_1 + 1 = 3", {"x": X})
