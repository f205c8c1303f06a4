r"""What a formula means, where the examples of docs/formulas.md cannot say it: in words of the code, at many orders, at what cost."""

import numpy as np
import pytest
import sympy

from attn_course.formulas import (
    Formula,
    Malformed,
    column,
    derivative,
    formula_of,
    function,
    index,
    judge,
    judge_draws,
    matrices,
    matrix,
    names_of,
    of,
    opaque,
    row,
    rows,
    vector,
)
from attn_course.formulas.evaluate import Evaluation
from tests.formulas.test_edges import fate

RNG = np.random.default_rng(7)
X, Y, U = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=5)
A, B, S = RNG.normal(size=(3, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3))
INF = np.inf


def check(latex, **givens):
    return judge(formula_of(latex, givens), givens)


# Names


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["exp", "ln", "sin", "cos", "tan", "tanh"])
def test_the_slopes_of_known_functions_are_those_of_sympy(name, order):
    x, at = sympy.Symbol("x"), 0.7
    wanted = float(sympy.diff(getattr(sympy, name)(x), x, order).subs(x, at))
    primes = "'" * order
    judge(Formula.of(rf"y = \{name}{primes}(x)", ["x", "y"]), {"x": at, "y": wanted})


# Orientation


def test_ones_take_their_length_from_their_neighbour():
    check(r"A \mathbf{1} = s, \qquad \mathbf{1}^\top A = t", A=A, s=column(A.sum(1)), t=row(A.sum(0)))
    check(r"x + c \mathbf{1} = y", x=vector(X), c=2.0, y=vector(X + 2))
    check(r"M = A + \mathbf{1} b, \qquad N = A + s \mathbf{1}^\top", M=A + U, A=A, b=row(U), N=A + X[:, None], s=column(X))


# Products, powers, functions


def test_blocks_stand_side_by_side_and_on_top_of_each_other():
    check("[A, S; T, B] = M", A=A[:, :2], S=S, T=B[:2, :2], B=B[:2], M=np.block([[A[:, :2], S], [B[:2, :2], B[:2]]]))
    check(r"[\,A \;\; \mathbf{1}\,] = M", A=A, M=np.hstack([A, np.ones((3, 1))]))
    check(r"[Z_1 \cdots Z_3] = M", Z=matrices(np.stack([S, 2 * S, 3 * S])), M=np.hstack([S, 2 * S, 3 * S]))
    check(r"\begin{pmatrix} a & b \\ 0 & 1 \end{pmatrix} = M", a=2.0, b=3.0, M=np.array([[2.0, 3.0], [0.0, 1.0]]))
    check("[q, 1] = r", q=row(X), r=row([*X, 1.0]))


def test_cases_and_conditions_in_brackets():
    givens = {"M": np.where(np.tri(3) > 0, 0, -INF), "i": index(1, 3)}
    check(r"M_{ij} = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}, \qquad [M_{ij} = 0] = [j \le i]", **givens)
    check("n = [q = k], \\qquad m = [q = r]", n=1, q=row(X), k=row(X.copy()), m=0, r=row(Y))


def test_the_letter_of_a_derivative_may_be_plain_if_d_is_not_given():
    check(r"\frac{d}{dx} \sin(x) = \cos(x), \qquad \frac{d y}{d x} = 2 x", x=0.3, y=of(lambda x: x**2, "x"))
    check(r"\frac{d}{d x} = n", d=2.0, x=4.0, n=0.25)


def test_a_function_is_called_for_each_value_of_the_indices():
    check("y_{ij} = f(a_i, u_j)", y=np.array([[a @ A[0] + u for u in U] for a in A]), a=rows(A), u=U, f=function(lambda a, u: a @ A[0] + u))
    check("f_2(x) = y", x=row(X), y=row(2 * X), f=function(lambda count, x: count * x))
    check(r"a \oplus b = c", **{"a": 1.0, "b": 2.0, "c": 5.0, r"\oplus": function(lambda a, b: a + 2 * b)})
    check("f(D) = 6", f=function(lambda pairs: sum(pairs.values())), D=opaque({"a": 2, "b": 4}))


# Relations


def test_a_bound_must_hold_and_says_whether_it_is_attained():
    (loose,) = check(r"x \le y", x=1.0, y=2.0)
    (sharp,) = check(r"x \le y", x=2.0, y=2.0)
    assert (loose.attained, sharp.attained) == (False, True)
    assert fate(r"x \le y", {"x": 2.1, "y": 2.0}) == fate("x < y", {"x": 2.0, "y": 2.0 * (1 + 1e-15)}) == "refuted"


def test_chains_are_judged_link_by_link():
    assert [one.relation for one in check(r"0 \le x < y = z", x=0.0, y=1.0, z=1.0)] == [r"\le", "<", "="]
    assert fate(r"0 \le x < y = z", {"x": 0.0, "y": 1.0, "z": 2.0}) == "refuted"


def test_a_premise_that_never_holds_tests_nothing():
    formula = Formula.of(r"n = 1 \Rightarrow x = 5", ["n", "x"])
    with pytest.raises(Malformed, match="nothing is tested"):
        judge_draws(formula, [{"n": 2.0, "x": 3.0}, {"n": 3.0, "x": 5.0}])
    judge_draws(formula, [{"n": 2.0, "x": 3.0}, {"n": 1.0, "x": 5.0}])


# Derivatives, limits, integrals


def test_vector_by_vector_is_the_jacobian_and_a_number_by_anything_has_its_form():
    check(r"\frac{\partial y}{\partial x} = A^\top", x=column(X), y=of(lambda x: column(A.T @ x), "x"), A=A)
    check(
        r"\frac{\partial n}{\partial q} = 2 q, \qquad \frac{\partial m}{\partial S} = 2 S",
        n=of(lambda q: q @ q, "q"),
        q=row(X),
        m=of(lambda table: (table**2).sum(), "S"),
        S=S,
    )
    check(r"\frac{\partial}{\partial x_i} \tfrac{1}{2} \|x\|^2 = x_i, \qquad \nabla_x \|x\|^2 = 2 x", x=X)


def test_a_letter_of_its_own_is_given_by_differences():
    check("J = A", J=derivative(lambda x: A @ x, U), A=A)


@pytest.mark.parametrize(
    "latex",
    [
        r"\lim_{h \to \infty} \cos(2 \pi h) = 1",
        r"\lim_{h \to \infty} \cos(\pi h) \frac{h + 1}{h} = 1",
        r"\lim_{h \to 0^+} \cos(2 \pi / h) = 1",
        r"\lim_{n \to \infty} F = 1",
    ],
)
def test_a_limit_is_approached_between_powers_of_two_too(latex):
    """Along powers of two a periodic function stands still."""
    givens = {"n": 3, "F": of(lambda n: whole(n) % 2 * -2 + 1, "n")} if "F" in latex else {"h": 1.0}
    assert "between them they do not" in fate(latex, givens)
    check(r"\lim_{n \to \infty} F / n = 1", n=3, F=of(lambda n: whole(n) + 1, "n"))


def test_a_limit_is_found_before_what_is_computed_gets_too_large():
    check(r"\lim_{h \to \infty} \frac{e^h}{1 + e^h} = 1", h=1.0)
    assert "gets too large on the way" in fate(r"\lim_{h \to \infty} \frac{e^h}{e^h + e^{0.98 h}} = 1", {"h": 1.0})


def whole(count):
    """Return a whole number; like a count of something, it has no meaning for any other."""
    if count % 1:
        raise ValueError("no whole number")
    return count


# What is random


def test_a_derivative_by_a_matrix_evaluates_dozens_of_changed_entries_at_once():
    state, key, value = (np.random.default_rng(4).normal(size=shape) for shape in ((7, 11), 7, 11))
    givens = {"S": matrix(state), "k": column(key), "v": column(value), "G": matrix(np.outer(key, state.T @ key - value))}
    formula = Formula.of(r"G = \frac{\partial}{\partial S} \tfrac{1}{2} |S^\top k - v|^2", names_of(givens))
    judge(formula, givens)
    evaluation = Evaluation(formula, givens)
    (chain,) = formula.claims
    evaluation.value(chain.children[2])
    assert evaluation.notes.steps < 100  # for 462 values of S


# What may be written in more than one way


@pytest.mark.parametrize(
    "latex",
    [
        r"y_i = w_i m, \qquad w_j = x_j^2, \qquad m = \max_i x_i",
        r"w_i m = y_i, \qquad x_j^2 = w_j, \qquad \max_i x_i = m",
        r"f(x_i) = y_i, \qquad u^2 m = f(u), \qquad \max_i x_i = m",
        r"y_i = \begin{cases} 0 & i < 0 \\ x_i^2 m & \text{otherwise} \end{cases}, \qquad \max_i x_i = m.",
        r"y_i = x_i w_i, \qquad x_j m = w_j, \qquad \max_i x_i = \max_i x_i^1 = m",
    ],
)
def test_a_definition_may_be_written_from_right_to_left(latex):
    check(latex, x=X, y=X**2 * X.max())


def test_an_identity_in_a_premise_defines_nothing_and_known_symbols_stay_known():
    check(r"S S^\top = I \Rightarrow |S v| = n", S=np.eye(3), v=column(X), n=float(np.linalg.norm(X)))
    check(r"I = S S^\top \Rightarrow |S v| = n", S=np.eye(3), v=column(X), n=float(np.linalg.norm(X)))
    check(r"\sigma(z) = w, \qquad w_i > 0", z=X, w=np.exp(X) / np.exp(X).sum())
