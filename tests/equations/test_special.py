"""Draws that seldom come by themselves, and statements that follow from a registered one and say less."""

import itertools
import re

import numpy as np
import pytest

from attn_course.equations import saying
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted
from attn_course.equations.special import bent, complain_of_special, special_draws
from attn_course.equations.weaker import complain_of_larger, complain_of_weaker
from attn_course.formulas import Malformed as MalformedFormula
from attn_course.formulas import Refuted as RefutedFormula
from attn_course.formulas import column, derivative, of, rows, vector
from attn_course.reference import softmax

pytestmark = pytest.mark.usefixtures("no_shape_check")


def pairs(rng, n):
    """Count them."""
    return {"n": n, "N": sum(1 for i in range(n) for j in range(i))}


def numbers_at_most(rng, n):
    """Count them."""
    x = rng.normal(size=n)
    largest = max(x)
    return {"x": x, "m": largest, "N": sum(1 for one in x if one < largest)}


def blocks(rng, n):
    """Add up in two blocks."""
    a, b = rng.normal(size=n), rng.normal(size=n)
    both = np.concatenate([a, b])
    m = both.max()
    return {"m_A": a.max(), "m_B": b.max(), "m": m, "l": sum(np.exp(one - m) for one in both), **each("A", a), **each("B", b)}


def each(name, block):
    top = max(block.max(), -1e300)
    return {f"l_{name}": sum(np.exp(one - top) for one in block)}


def jacobian(rng, n):
    """Row i, column j."""
    z = rng.normal(size=n)
    return {"s": softmax(z), "J": derivative(softmax, z)}


def largest(rng, n, draw):
    """No weight is more than 1, where there are several less."""
    x = rng.normal(size=n)
    x[1:] = x[0] if draw == 1 else x[1:]
    return {"x": x, "b": x.max()}


def test_a_size_of_1_or_2_and_many_more_are_tried(toy: Registry):
    equation = toy.add("first", r"N = \frac{n (n - 1)}{2}", pairs, serves="A1")
    equation.check()
    equation.check(r"2 N = n^2 - n")
    hidden = equation.read(r"N = \frac{n (n - 1)}{2} + (n - 3) (n - 5) (n - 6) (n - 7)")
    equation.judge(hidden)
    with pytest.raises(RefutedFormula, match="for n = 1"):
        complain_of_special(hidden, special_draws(equation.make, equation.sizes, equation.label, equation.latex, "", 3))
    with pytest.raises(Malformed, match="nothing tests this"):
        equation.check(r"N = \frac{n (n - 1)}{2} [n \ge 3]")


def test_ties_are_drawn(toy: Registry):
    equation = toy.add("first", r"N = \sum_i [x_i < m]", numbers_at_most, serves="A1", loose="a count")
    drawn = special_draws(equation.make, equation.sizes, equation.label, equation.latex, "", 3)
    complain_of_special(equation.read(), drawn)
    with pytest.raises(RefutedFormula, match="tied"):
        complain_of_special(equation.read(r"N = \sum_i [x_i \le m] - 1"), [one for one in drawn if "tied" in one.said])


def test_what_may_be_empty_is_drawn_so_and_no_number_is_wrong_there(toy: Registry):
    latex, wrong = r"l = e^{m_A - m} l_A + e^{m_B - m} l_B", r"l = e^{m_A - m} (l_A + l_B e^{m_B - m_A})"
    toy.add("first", latex, blocks, serves="A1").check(wrong)
    equation = toy.add("second", latex, blocks, serves="A1", may_be="empty")
    equation.check()
    with pytest.raises(Refuted, match="empty"):
        equation.check(wrong)


def test_an_equation_that_does_not_hold_for_what_it_says_its_givens_may_be_is_told(toy: Registry):
    with pytest.raises(Malformed, match="may be empty"):
        toy.add("first", r"\sum_i s_i = 1, \qquad J_{ij} = J_{ji}", jacobian, serves="A1", may_be="empty").check()
    with pytest.raises(Malformed, match="may_be wants some of tied, zero"):
        toy.add("second", r"\sum_i s_i = 1, \qquad \sum_j J_{ij} = 0", jacobian, serves="A1", may_be="none").check()


def test_special_draws_hold_for_the_registered_formula(toy: Registry):
    equation = toy.add("first", r"J = \mathrm{diag}(s) - s s^\top, \qquad s_1 \ne s_2", jacobian, serves="A1")
    drawn = special_draws(equation.make, equation.sizes, equation.label, r"J_{ij} = s_i (\delta_{ij} - s_j)", "", 3)
    assert {one.said for one in drawn} >= {"for n = 1", "for n = 2", "where something given is tied"}
    excluded = special_draws(equation.make, equation.sizes, equation.label, r"s_1 \ne s_2, \qquad J_{ij} = s_i (\delta_{ij} - s_j)", "", 3)
    assert {one.said for one in excluded}.isdisjoint({"for n = 1"})


def test_numbers_are_bent():
    table = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 5.0]])
    assert bent(table, "tied").tolist() == [[3.0, 3.0, 2.0], [4.0, 5.0, 5.0]]
    assert bent(table, "masked")[:, 0].tolist() == [-np.inf, -np.inf]
    assert not bent(table, "zero").any()
    assert bent(2.0, "negative") == -2.0
    assert bent(table, "zero in a row").tolist() == [[0.0, 0.0, 0.0], [4.0, 0.0, 5.0]]
    assert bent(0.4, "whole") == 0.0


def scored(rng, n, d):
    """Multiply each query with its key."""
    Q, K = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    unit = K / np.linalg.norm(K, axis=1, keepdims=True)
    return {"q": rows(Q), "k": rows(unit), "s": vector((Q * unit).sum(axis=1)), "n": n, "d": d, "N": len(Q.ravel())}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (r"\frac{n - 1}{n - 1}", "right nan for n = 1"),
        (r"\frac{d - 1}{d - 1}", "right nan for n = 1, d = 1"),
        (r"\frac{q_i \cdot q_i}{q_i \cdot q_i}", "right nan where something given is zero"),
        (r"\frac{q_{i,1} (n + d)}{q_{i,1} (n + d)}", "right nan where something given is"),
        (r"\frac{q_i \cdot q_j - q_i \cdot q_i}{q_i \cdot q_j - q_i \cdot q_i}", "right nan"),
    ],
)
def test_nothing_divided_by_nothing_is_no_number(toy: Registry, wrong, said):
    """Where the registered sides are finite numbers."""
    equation = toy.add("first", r"s_i = q_i \cdot k_i, \qquad N = n d", scored, serves="A1")
    drawn = special_draws(equation.make, equation.sizes, equation.label, equation.latex, "", 3)
    with pytest.raises(RefutedFormula, match=said):
        complain_of_special(equation.read(rf"s_i = {wrong} q_i \cdot k_i, \qquad N = n d"), drawn)


def test_a_vector_of_zeros_is_given_where_the_registered_formula_allows_it(toy: Registry):
    latex, another = (rf"(q_i + k_i) \cdot k_i = q_i \cdot k_i + {more}" for more in (r"k_i \cdot k_i", r"\frac{|k_i|^2}{|k_i|} |k_i|"))
    drawn = {"whatever": {"k": "both are products"}, "serves": "A1"}
    equation = toy.add("first", latex, lambda rng, n, d: {name: scored(rng, n, d)[name] for name in "qk"}, **drawn)
    with pytest.raises(RefutedFormula, match="right nan where k is 0"):
        complain_of_special(equation.read(another), special_draws(equation.make, equation.sizes, "first", latex, "", 3))


def test_an_index_that_reaches_nothing_at_an_edge_is_told(toy: Registry):
    equation = toy.add("first", r"s_i = q_i \cdot k_i, \qquad N = n d", scored, serves="A1")
    with pytest.raises(MalformedFormula, match="for n = 1, d = 1 the index reaches 0, beyond 1 to 1"):
        complain_of_special(
            equation.read(r"s_i = q_i \cdot k_r, \qquad r = i [n > 1], \qquad N = n d"),
            special_draws(equation.make, equation.sizes, equation.label, equation.latex, "", 3),
        )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (r"\sum_j J_{ij}^2 = \sum_j s_i^2 (\delta_{ij} - s_j)^2", "with another J"),
        (r"J_{ij} J_{ij} = s_i^2 (\delta_{ij} - s_j)^2", "with another J"),
        (r"\sum_j 2^j J_{ij} = \sum_j 2^j s_i (\delta_{ij} - s_j)", "fewer numbers"),
        (r"\min_i |J_{ii} - s_i (1 - s_i)| = 0", "fewer numbers"),
        (r"\lfloor 9 J_{ij} \rfloor = \lfloor 9 s_i (\delta_{ij} - s_j) \rfloor", "it says nothing of s"),
        (r"\sin(J_{ij}) = \sin(s_i (\delta_{ij} - s_j))", "other numbers have too"),
        (r"s_1 \ne s_2: \qquad J_{ij} = s_i (\delta_{ij} - s_j)", "without this premise"),
        (r"s_i < 1: \qquad J_{ij} = s_i (\delta_{ij} - s_j)", "without this premise"),
        (r"s_i > s_j: \qquad J_{ij} = - s_i s_j", "fewer numbers"),
    ],
)
def test_what_follows_and_says_less_is_weaker(toy: Registry, wrong, said):
    equation = toy.add("first", r"J_{ij} = s_i (\delta_{ij} - s_j)", jacobian, serves="A1")
    equation.check(r"J_{ij} = [i = j] s_j - s_j s_i")
    equation.check(r"J_{ii} = s_i - s_i^2, \qquad J_{ij} = - s_i s_j \quad (i \ne j)")
    equation.check(r"J_{ii} = s_i - s_i^2, \qquad i \ne j:\; J_{ij} = - s_i s_j")
    with pytest.raises(Malformed, match=said):
        equation.check(wrong)


def test_a_bound_of_the_least_is_weaker_and_one_of_the_largest_is_not(toy: Registry):
    equation = toy.add("first", r"x_i \le b", largest, serves="A1")
    draws = [*itertools.chain(*equation.draws())]
    complain_of_weaker(equation.read(r"\max_i x_i \le b"), equation.read(), draws)
    for weaker, said in ((r"\min_i x_i \le b", "least"), (r"b - 1 < \max_i x_i \le b", "largest")):
        with pytest.raises(MalformedFormula, match=f"of the {said} only"):
            complain_of_weaker(equation.read(weaker), equation.read(), draws)


def test_several_bounds_of_one_thing_are_judged_together(toy: Registry):
    def between(rng):
        a, b = rng.normal(size=2)
        return {"a": a, "b": b, "c": max(a, b), "u": max(a, b) + rng.uniform(), "v": max(a, b) + rng.uniform()}

    equation = toy.add("first", r"\max(a, b) \le c \le \min(u, v)", between, serves="A1")
    draws, clauses = [*itertools.chain(*equation.draws())], [r"a \le c", r"b \le c", r"c \le u", r"v \ge c"]
    complain_of_larger(equation.read(r", \qquad ".join(clauses)), equation.read(), draws)
    for left in itertools.combinations(clauses, 3):
        with pytest.raises(MalformedFormula, match="has a closer bound"):
            complain_of_larger(equation.read(r", \qquad ".join(left)), equation.read(), draws)


def test_another_wording_may_use_what_the_text_says_beside_it(toy: Registry):
    def traced(rng, n):
        """Add up the diagonal."""
        drawn = jacobian(rng, n)
        return drawn | {"t": 1 - sum(drawn["s"] ** 2)}

    latex, beside = r"t = 1 - \sum_i s_i^2, \qquad \sum_j J_{ij} = 0", [r"J_{ij} = s_i (\delta_{ij} - s_j)"]
    another, weaker = r"t = \mathrm{tr}(J), \qquad \sum_j J_{ij} = 0", r"t^2 = \mathrm{tr}(J)^2, \qquad \sum_j J_{ij} = 0"
    with pytest.raises(Malformed, match="it says nothing of s"):
        toy.add("first", latex, traced, serves="A1").check(another)
    equation = toy.add("second", latex, traced, serves="A1", beside=beside)
    equation.check()
    equation.check(another)
    with pytest.raises(Malformed, match="says it of both sides"):
        equation.check(weaker)


def test_what_is_said_beside_an_equation_must_hold(toy: Registry):
    with pytest.raises(Refuted, match="left"):
        toy.add("first", r"\sum_j J_{ij} = 0, \qquad \sum_i s_i = 1", jacobian, serves="A1", beside=[r"J_{ij} = s_i s_j"]).check()


def weighted(rng, n):
    """Pass a gradient back through a softmax."""
    z, dP = rng.normal(size=n), rng.normal(size=n)
    p = softmax(z)
    return {"p": p, "dP": dP, r"\delta": sum(p * dP), "dS": (np.diag(p) - np.outer(p, p)) @ dP}


def test_weights_stay_weights_and_a_definition_may_be_put_in(toy: Registry):
    latex = r"dS_i = p_i\, (dP_i - \delta), \qquad \delta = \sum_l p_l\, dP_l"
    equation = toy.add("first", latex, weighted, serves="A1")
    equation.check(r"dS_i = p_i \sum_l p_l\, (dP_i - dP_l)")
    equation.check(r"dS_i = p_i\, dP_i - p_i \sum_l p_l\, dP_l")
    with pytest.raises(Malformed, match="with another dP this holds too"):
        equation.check(r"dS_i^2 = p_i^2\, (dP_i - \sum_l p_l\, dP_l)^2")
    draw = equation.draws()[0][0]
    trial = next(one for one in saying.trials(equation.read(), [draw]) if one.name == "p")
    kept = saying.kept_as_weights(trial, equation.read(), draw)
    assert kept is not None
    assert np.allclose(kept["p"].raw.sum(), 1)
    assert saying.kept_as_weights(trial, equation.read(latex + r", \qquad \sum_i p_i = 1"), draw) is None


def test_a_size_that_is_a_product_stays_it_and_the_larger_of_two_signs_is_a_size(toy: Registry):
    def halves(rng, d, h, n, draw):
        """Count."""
        return {"N": sum(1 for _ in range(d) for _ in range(d)), "M": len(np.zeros((2 * d, n)).ravel()), "d": d, "n": n, "h": h}

    equation = toy.add("first", r"N = d^2, \qquad M = 2 d n, \qquad \frac{N}{M} = \frac{h}{2}", halves, serves="A1", sizes="d h n, d = h n")
    equation.check(r"N = d^2, \qquad M = 2 d n, \qquad \frac{N}{M} = \frac{d}{2 n}")
    bound = toy.add("second", r"|x_i| \le b", lambda rng, n, draw: {"x": (x := rng.normal(size=n)), "b": abs(x).max()}, serves="A1")
    bound.check(r"\max(x_i, -x_i) \le b")


@pytest.mark.parametrize(
    ("weaker", "lost"),
    [
        (r"|\frac{\partial s_i}{\partial z_j}| = s_i |\delta_{ij} - s_j|", r"\frac{\partial s_{i}}{\partial z_{j}}"),
        (r"\frac{\partial s_i}{\partial z_j} + \frac{\partial s_j}{\partial z_i} = 2 s_i (\delta_{ij} - s_j)", r"\frac{\partial s_{i}}"),
        (r"\frac{\partial s_i}{\partial z_j} - \frac{\partial s_i}{\partial z_1} = s_i (\delta_{ij} - s_j - \delta_{i,1} + s_1)", r"\frac"),
    ],
)
def test_what_a_side_may_be_besides_is_lost(toy: Registry, weaker, lost):
    equation = toy.add("first", r"\frac{\partial s_i}{\partial z_j} = s_i (\delta_{ij} - s_j)", sloped, serves="A1")
    equation.check(r"\frac{\partial s_j}{\partial z_i} = [i = j] s_j - s_j s_i")
    equation.check(r"\frac{\partial s_j}{\partial z_i} - s_j [i = j] = -s_j s_i")
    with pytest.raises(Malformed, match="with another value of " + re.escape(lost)):
        equation.check(weaker)


def test_the_sign_of_a_derivative_that_is_written_in_another_way_is_not_lost(toy: Registry):
    equation = toy.add("first", r"\frac{\partial}{\partial z_i}\, (-\ln s_1) = s_i - \delta_{i,1}", sloped, serves="A1")
    equation.check(r"\frac{\partial \ln s_1}{\partial z_i} = \delta_{i,1} - s_i")
    with pytest.raises(Malformed, match="another sign of the derivative"):
        equation.check(r"\Bigl| \frac{\partial \ln s_1}{\partial z_i} \Bigr| = s_i + [i = 1]\, (1 - 2\, s_i)")


def sloped(rng, n):
    """Give a softmax, to be differentiated."""
    return {"z": rng.normal(size=n), "s": of(softmax, "z")}


@pytest.mark.parametrize(
    ("latex", "weaker", "said"),
    [
        (r"(q + k) \cdot q = q \cdot q + k \cdot q", r"(q + k) \cdot q = |q| - |q| + q \cdot (k + q)", "in two ways"),
        (
            r"q \cdot k = \frac{1}{2} |q + k|^2 - \frac{1}{2} |q|^2 - \frac{1}{2} |k|^2",
            r"q \cdot k + |q|^2 = k \cdot q + |q|^2",
            r"both sides are the same, written in two ways: that q \\cdot k = .* is not said",
        ),
        (
            r"\sigma(q + c \mathbf{1}) = \sigma(q), \qquad |k| = |-k|",
            r"\sigma(q + c \mathbf{1}) = \sigma(2 q + c \mathbf{1} - q), \qquad |k| = |-k|",
            "softmax",
        ),
    ],
)
def test_what_holds_whatever_a_part_or_a_softmax_is_says_nothing(toy: Registry, latex, weaker, said):
    given = {"q": column, "k": column, "c": lambda some: some[0]}

    def pair(rng, n):
        """Draw them."""
        return {name: given[name](rng.normal(size=n)) for name in given if name != "c" or r"\sigma" in latex}

    with pytest.raises(Malformed, match=said):
        toy.add("first", latex, pair, serves="A1").check(weaker)


def test_digits_are_kept_and_a_rounded_number_is_none(toy: Registry):
    equation = toy.add(
        "first", r"e^{x} = 2^{x \log_2 e}, \qquad y \approx 0.171", lambda rng, n: {"x": rng.normal(size=n)[0], "y": 0.1712}, serves="A1"
    )
    for weaker, said in ((r"y \approx 0.17", "says 0.171, and here stand fewer digits"), (r"y \approx 0.171", "so it is rounded")):
        with pytest.raises(Malformed, match=said):
            equation.check(rf"e^{{x}} = 2^{{{'1.44269504089' if 'rounded' in said else chr(92) + 'log_2(e)'} x}}, \qquad {weaker}")


def test_a_size_that_shapes_tell_and_the_matrix_of_entries_may_be_named(toy: Registry):
    def summed(rng, n, d):
        """Add up the rows."""
        p = rng.normal(size=(n, d))
        return {"p": p, "y": p.T @ np.ones(n)}

    equation = toy.add("first", r"y_j = \sum_i p_{ij}", summed, serves="A1")
    equation.check(r"y_j = \sum_{i=1}^{n} p_{ij}")
    equation.check(r"y_j = (P^\top \mathbf{1})_j")
    equation.check(r"y_j = \sum_{i=1}^{n} P_{ij}")
    for wrong, said in (
        (r"y_j = \sum_{i=1}^{d} p_{ij}", "beyond"),
        (r"y_j = \sum_{i=1}^{m} p_{ij}", "range of m"),
        (r"y_j = Y_j", "Y is neither"),
    ):
        with pytest.raises(Malformed, match=said):
            equation.check(wrong)
