r"""What a formula means: the rules of the room's docstring, one by one. True formulas hold, and what breaks a rule does not."""

import numpy as np
import pytest
import sympy

from attn_course.formulas import (
    Formula,
    Malformed,
    Refuted,
    column,
    columns,
    derivative,
    function,
    independent,
    index,
    judge,
    judge_draws,
    matrices,
    matrix,
    names_of,
    normal_nodes,
    of,
    opaque,
    outcomes,
    powers,
    row,
    rows,
    subset,
    vector,
)
from attn_course.formulas.evaluate import Evaluator
from attn_course.formulas.givens import Range, as_given

RNG = np.random.default_rng(7)
X, Y, U = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=5)
A, B, S = RNG.normal(size=(3, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3))
INF = np.inf


def check(latex, **givens):
    names = {name.replace("__", "'"): given for name, given in givens.items()}
    return check_with(latex, names)


def check_with(latex, givens):
    ranges = [name for name, given in givens.items() if isinstance(as_given(given), Range)]
    return judge(Formula.of(latex, names_of(givens), ranges), givens)


def refuted(latex, **givens):
    with pytest.raises(Refuted) as caught:
        check(latex, **givens)
    return str(caught.value)


def malformed(latex, **givens):
    with pytest.raises(Malformed) as caught:
        check(latex, **givens)
    return str(caught.value)


# Names


def test_a_given_wins_over_what_a_symbol_usually_is():
    check("2 e = 6", e=3.0)
    check_with(r"2 \pi = 7", {r"\pi": 3.5})
    check(r"e^{x} = y", x=1.5, y=np.exp(1.5))


def test_a_family_takes_any_index():
    givens = {"W^{(h)}": matrices(np.stack([S, 2 * S])), "W": matrix(S)}
    check_with(r"\sum_{r} W^{(r)} = 3 W", givens)
    check_with(r"W^{(2)\top} = 2 W^\top", givens)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["exp", "ln", "sin", "cos", "tan", "tanh"])
def test_the_slopes_of_known_functions_are_those_of_sympy(name, order):
    x, at = sympy.Symbol("x"), 0.7
    wanted = float(sympy.diff(getattr(sympy, name)(x), x, order).subs(x, at))
    primes = "'" * order
    judge(Formula.of(rf"y = \{name}{primes}(x)", ["x", "y"]), {"x": at, "y": wanted})


# Orientation


def test_orientation_is_declared_not_read_off_a_shape():
    check("n = q k", n=2.0, q=row(np.array([1.0])), k=column(np.array([2.0])))
    assert "two rows of 1: for their dot product" in malformed("n = q k", n=2.0, q=row(np.array([1.0])), k=row(np.array([2.0])))


def test_a_row_times_a_column_is_a_number_and_a_column_times_a_row_a_matrix():
    check("n = q k, \\qquad M = k q", n=X @ Y, q=row(X), k=column(Y), M=np.outer(Y, X))


def test_one_index_of_a_matrix_is_a_row():
    check("A_i = a_i", A=A, a=rows(A))
    assert "do not fit" in malformed("A_i = a_i", A=A, a=columns(A))


def test_ones_take_their_length_from_their_neighbour():
    check(r"A \mathbf{1} = s, \qquad \mathbf{1}^\top A = t", A=A, s=column(A.sum(1)), t=row(A.sum(0)))
    check(r"x + c \mathbf{1} = y", x=vector(X), c=2.0, y=vector(X + 2))
    check(r"M = A + \mathbf{1} b, \qquad N = A + s \mathbf{1}^\top", M=A + U, A=A, b=row(U), N=A + X[:, None], s=column(X))


def test_identity_takes_its_size_from_its_neighbour():
    check("M = I - 2 S, \\qquad I S = S I", M=np.eye(3) - 2 * S, S=S)
    malformed("M = I - A", M=A, A=A)


def test_a_unit_vector_takes_length_and_orientation_from_its_neighbour():
    givens = {"q": row(X), "y": 2, "r": row(X - np.array([0, 1, 0]))}
    check(r"q - \mathbf{1}_{y} = r = -\mathbf{1}_{y} + q = q - \frac{1}{2} (2 \mathbf{1}_{y}) = q - (2 \mathbf{1}_{y}) / 2", **givens)


def test_a_tuple_takes_the_orientation_of_its_neighbour():
    check("q = (1, 2), \\qquad k = (1, 2)", q=row([1.0, 2.0]), k=column([1.0, 2.0]))


# Indices


def test_a_free_index_runs_over_all_positions_and_the_counterexample_names_it():
    check("y_i = 2 x_i", x=X, y=2 * X)
    wrong = 2 * X
    wrong[1] += 1
    assert "at i = 2" in refuted("y_i = 2 x_i", x=X, y=wrong)


def test_positions_count_from_the_start_of_a_given():
    check("h_{t+1} = 2 h_t", h=vector(2.0 ** np.arange(4), start=0, states=True), t=index(0, 2))
    check("y_i = i", y=vector([0.0, 1.0, 2.0], start=0))


def test_states_may_be_longer_than_there_are_steps():
    sums = np.concatenate([[0.0], np.cumsum(X)])
    check("s_t = s_{t-1} + x_t", s=vector(sums, start=0, states=True), x=X)
    assert "runs from" in malformed("s_t = s_{t-1} + x_t", s=vector(sums, start=0), x=X)


def test_two_lengths_of_one_index_are_malformed():
    assert "j runs from 1 to 3 in x and from 1 to 5 in u" in malformed(r"n = \sum_j x_j u_j", n=1.0, x=X, u=U)
    assert "runs from 1 to 3" in malformed(r"n = \sum_j x_j (\sigma(u)_j)", n=1.0, x=X, u=U)


def test_conditions_restrict_a_sum_and_its_first_letter_is_bound():
    check(r"y_i = \sum_{j \ne i} x_j", y=X.sum() - X, x=X)
    check(r"y_t = \sum_{j \le t} x_j, \qquad y_t = \sum_{j=1}^{t} x_j", y=np.cumsum(X), x=X)
    check(r"n = \sum_{j \in A} x_j + 2 \sum_{j \notin A} x_j", n=X.sum() + X[1], x=X, A=subset([True, False, True]))
    check(r"n = \sum_{i,j} A_{ij}", n=A.sum(), A=A)


def test_a_sum_may_reach_where_its_condition_says_that_nothing_counts():
    check(r"y_i = \sum_{j < i} w_j x_{i - j}", y=np.concatenate([[0.0], np.cumsum(X)[:-1]]), x=X, w=np.ones(3))


def test_an_empty_sum_is_zero_and_an_empty_product_one():
    check(r"\sum_{j=1}^{0} x_j = 0, \qquad \prod_{j=1}^{0} x_j = 1", x=X)


def test_a_condition_behind_a_clause_restricts_it_alone():
    check(r"M_{ij} = 0 \quad (i \ne j), \qquad M_{ii} = 1", M=np.eye(3))
    refuted(r"M_{ij} = 0, \qquad M_{ii} = 1", M=np.eye(3))


def test_a_slice_that_ends_in_an_index_is_tried_for_each_of_its_values():
    check(r"y_t = f(x_{1:t})", y=np.cumsum(X), x=X, f=function(np.sum))
    assert "at t = 1" in refuted(r"y_t = f(x_{1:t})", y=np.cumsum(X) + 1, x=X, f=function(np.sum))


def test_a_declared_range_serves_an_index_that_subscripts_nothing():
    check("f(t) = 2 t", f=function(lambda t: 2 * t), t=index(0, 4))
    assert "neither given" in malformed("f(t) = 2 t", f=function(lambda t: 2 * t))


# Products, powers, functions


def test_side_by_side_is_the_matrix_product_and_odot_is_entrywise():
    check(r"M = A B, \qquad N = A \odot A", M=A @ B, A=A, B=B, N=A * A)
    malformed("M = A A", M=A, A=A)


def test_dot_wants_two_vectors_of_one_orientation():
    check(r"n = q \cdot r = 2 \cdot m", n=X @ Y, q=row(X), r=row(Y), m=X @ Y / 2)
    malformed(r"n = q \cdot k", n=X @ Y, q=row(X), k=column(Y))


def test_powers_are_of_matrices_or_entrywise_as_declared():
    check("M = S^2 S^{-1}, \\qquad N = S^{-\\top}", M=S, S=S, N=np.linalg.inv(S).T)
    check("y = x^2, \\qquad M = e^{S}", x=X, y=X**2, S=S, M=np.exp(S))


def test_a_printed_number_may_be_added_to_a_vector_only():
    check("y = 1 - x^2", x=column(X), y=column(1 - X**2))
    malformed("y = c - x", x=column(X), y=column(1 - X), c=1.0)
    malformed("M = 1 - S", M=1 - S, S=S)


def test_softmax_runs_over_entries_rows_or_columns():
    def softmax(array, axis=-1):
        weights = np.exp(array - array.max(axis=axis, keepdims=True))
        return weights / weights.sum(axis=axis, keepdims=True)

    check(r"y = \sigma(x), \qquad k = \sigma(c)", x=X, y=softmax(X), c=column(X), k=column(softmax(X)))
    givens = {"A": A, "M": softmax(A), "N": softmax(A, axis=0)}
    check(r"M = \mathrm{softmax}(A) = \mathrm{softmax}_{\text{rows}}(A), \qquad N = \mathrm{softmax}_{\text{columns}}(A)", **givens)
    check(r"y_i = \sigma_l(2 x_l)_i", x=X, y=softmax(2 * X))
    check(r"y = \sigma(x)", x=np.array([-INF, -INF]), y=np.zeros(2))


def test_bars_depend_on_what_stands_between_them():
    check(r"|n| = 2, \qquad |x| = \|x\| = m, \qquad |A| = 2", n=-2.0, x=row(X), m=np.linalg.norm(X), A=subset([True, False, True]))
    check(r"\|S\|_2 = a, \qquad \|S\|_F = b, \qquad \|x\|_1 = c", S=S, x=X, a=np.linalg.norm(S, 2), b=np.linalg.norm(S), c=np.abs(X).sum())


def test_arg_max_is_a_set_in_which_ties_count():
    givens = {"x": np.array([1.0, 3.0, 3.0]), "A": subset([False, True, True]), "r": 3}
    check(r"\arg\max_j x_j = A, \qquad r \in \arg\max_j x_j", **givens)
    assert "right 0" in refuted(r"r \in \arg\max_j x_j", x=givens["x"], r=1)
    refuted(r"r \in \arg\max_j x_j", x=givens["x"], r=2.4)


def test_a_continuous_arg_min_is_solved():
    check(r"\arg\min_o \sum_i (x_i - o)^2 = m", x=X, o=0.0, m=X.mean())
    refuted(r"\arg\min_o \sum_i (x_i - o)^2 = m", x=X, o=0.0, m=np.median(X))


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


def test_the_last_case_is_otherwise_and_an_interval_is_a_set():
    check(r"y_i = \begin{cases} x_i & x_i > 0 \\ 0 & \text{otherwise} \end{cases}", x=X, y=np.maximum(X, 0))
    check(r"n \in [0, 1], \qquad n \notin (0, 1), \qquad x_i \in (-9, 9)", n=1.0, x=X)
    refuted(r"n \in (0, 1)", n=1.0)
    refuted(r"x_i \in [0, 9]", x=-np.abs(X))


def test_the_letter_of_a_derivative_may_be_plain_if_d_is_not_given():
    check(r"\frac{d}{dx} \sin(x) = \cos(x), \qquad \frac{d y}{d x} = 2 x", x=0.3, y=of(lambda x: x**2, "x"))
    check(r"\frac{d}{d x} = n", d=2.0, x=4.0, n=0.25)


def test_another_letter_stands_for_a_declared_one_where_only_it_can():
    givens = {"f": function(lambda t: 2 * t), "t": index(0, 4)}
    check("f(u) = 2 u", **givens)
    assert "at t = " in refuted("f(u) = 2 + u", **givens)
    assert "t is given and nowhere used as an index: its letter is declared" in malformed("f(v_j) + v_i = 2 v_j + v_i", v=X, **givens)
    assert "u is neither given, nor defined, nor an index of anything: the letter" in malformed("f(u) + v_j = 2 u + v_j", v=X, **givens)


def test_e_beneath_a_symbol_is_an_index():
    check(r"n = \sum_{c,e} A_{ce}, \qquad S_{ce} \delta_{ce} = S_{ec} \delta_{ec} + e - e", n=A.sum(), A=A, S=S)


def test_a_set_is_built_over_the_values_of_its_index():
    masks = np.tri(3, dtype=bool)
    check(r"A_i = \{\, j : j \le i \,\}, \qquad A_1 = A_2 \cap C", A=subset(masks), C=subset([True, False, False]), j=index(1, 3))
    refuted(r"A_i = \{\, j : j < i \,\}", A=subset(masks), j=index(1, 3))


def test_lists_of_exponents():
    check_with(
        r"(q \cdot k)^2 = \sum_{|\alpha| = 2} \frac{2}{\alpha!} q^\alpha k^\alpha", {"q": row(X), "k": row(Y), r"\alpha": powers(3, 3)}
    )


def test_a_function_is_called_for_each_value_of_the_indices():
    check("y_{ij} = f(a_i, u_j)", y=np.array([[a @ A[0] + u for u in U] for a in A]), a=rows(A), u=U, f=function(lambda a, u: a @ A[0] + u))
    check("f_2(x) = y", x=row(X), y=row(2 * X), f=function(lambda count, x: count * x))
    check_with(r"a \oplus b = c", {"a": 1.0, "b": 2.0, "c": 5.0, r"\oplus": function(lambda a, b: a + 2 * b)})
    check("f(D) = 6", f=function(lambda pairs: sum(pairs.values())), D=opaque({"a": 2, "b": 4}))


# Definitions


def test_a_definition_is_closed_and_may_be_a_list_or_a_function():
    check(r"y_i = w_i m, \qquad w_j = x_j^2, \qquad m = \max_i x_i", x=X, y=X**2 * X.max())
    check(r"y_i = f(x_i), \qquad f(u) = \sum_j x_j u", x=X, y=X.sum() * X)
    check(r"M = \sum_h W_h, \qquad W_h = x_h S", M=X.sum() * S, x=X, S=S)


def test_a_definition_without_an_index_may_use_that_of_its_place():
    check(r"y_i = x_r, \qquad r = \lceil i / 2 \rceil", x=X, y=np.repeat(X, 2))


def test_a_definition_that_defines_itself_is_malformed():
    assert "defined by itself" in malformed("n = m, \\qquad m = k + 1, \\qquad k = m", n=1.0)


# Relations


def test_equality_is_to_1e_10_of_each_entry():
    check("y = x", x=np.array([1.0, 1e6]), y=np.array([1.0, 1e6 * (1 + 1e-12)]))
    refuted("y = x", x=np.array([1.0, 1e6]), y=np.array([1.0 + 1e-8, 1e6]))


def test_zero_stands_for_zeros_of_any_form_and_round_off_is_no_difference():
    check(r"S (x - y) = 0, \qquad S - M = 0", S=S, x=column(X), y=column(X.copy()), M=S.copy())
    check(r"\sum_j x_j - n = 0", x=1e6 * X, n=float(sum(1e6 * X[::-1])))


def test_minus_infinity_is_no_finite_number():
    mask = np.array([0.0, -INF])
    check(r"x_2 = -\infty", x=mask)
    for fill in ("-30", "-800", "-10000"):
        refuted(f"x_2 = {fill}", x=mask)
    refuted(r"x_1 = 0", x=np.array([np.nan]))


def test_a_bound_must_hold_and_says_whether_it_is_attained():
    (loose,) = check(r"x \le y", x=1.0, y=2.0)
    (sharp,) = check(r"x \le y", x=2.0, y=2.0)
    assert (loose.attained, sharp.attained) == (False, True)
    refuted(r"x \le y", x=2.1, y=2.0)
    refuted("x < y", x=2.0, y=2.0 * (1 + 1e-15))


def test_chains_are_judged_link_by_link():
    assert [one.relation for one in check(r"0 \le x < y = z", x=0.0, y=1.0, z=1.0)] == [r"\le", "<", "="]
    refuted(r"0 \le x < y = z", x=0.0, y=1.0, z=2.0)


def test_approximately_means_to_the_digits_printed():
    check(r"x \approx 0.06", x=0.0559)
    refuted(r"x \approx 0.06", x=0.0541)


def test_a_shape_is_claimed_by_membership():
    check(r"A \in \mathbb{R}^{m \times n}", A=A, m=3, n=5)
    assert "shape" in refuted(r"A \in \mathbb{R}^{n \times m}", A=A, m=3, n=5)


def test_an_implication_counts_only_where_its_premise_holds():
    givens = {"x": np.array([0.0, 1.0, 2.0]), "y": np.array([5.0, 1.0, 2.0])}
    check(r"x_i > 0 \Rightarrow x_i = y_i", **givens)
    refuted(r"x_i \ge 0 \Rightarrow x_i = y_i", **givens)
    refuted(r"x_i \ge 1 \iff x_i = 1", x=givens["x"])


def test_a_premise_governs_up_to_the_next_colon():
    check(r"n = 1: \qquad x = 5, \qquad n = 2: \qquad x = 3", n=2.0, x=3.0)
    refuted(r"n = 2: \qquad x = 5, \qquad n = 1: \qquad x = 3", n=2.0, x=3.0)


def test_a_premise_that_never_holds_tests_nothing():
    formula = Formula.of(r"n = 1 \Rightarrow x = 5", ["n", "x"])
    with pytest.raises(Malformed, match="nothing is tested"):
        judge_draws(formula, [{"n": 2.0, "x": 3.0}, {"n": 3.0, "x": 5.0}])
    judge_draws(formula, [{"n": 2.0, "x": 3.0}, {"n": 1.0, "x": 5.0}])


# Derivatives, limits, integrals


def test_a_derivative_makes_again_what_depends_on_its_variable():
    givens = {"x": X, "y": of(np.sin, "x"), "z": of(lambda y: y**2, "y")}
    check(r"\frac{\partial z_i}{\partial x_j} = 2 y_i \cos(x_j) [i = j]", **givens)
    refuted(r"\frac{\partial z_i}{\partial x_j} = 2 y_i \cos(x_j)", **givens)


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


def test_second_derivatives():
    check(r"\frac{\partial^2 n}{\partial x_i \partial x_j} = A_{ij}", x=X, A=S + S.T, n=of(lambda x: x @ S @ x, "x"))


def test_a_derivative_where_an_entry_has_another_value():
    check(
        r"\frac{\partial n}{\partial x_1} \Big|_{x_1 = 0} = 0, \qquad n = m", x=X, n=of(lambda x: x[0] ** 2 + x[1], "x"), m=X[0] ** 2 + X[1]
    )


def test_primes_are_derivatives_of_functions():
    check(r"f'(x) = \cos(x), \qquad \tanh'(x) = 1 - \tanh^2(x)", f=function(np.sin), x=0.3)


def test_a_letter_of_its_own_is_given_by_differences():
    check("J = A", J=derivative(lambda x: A @ x, U), A=A)


def test_limits_run_in_a_given():
    check(r"\lim_{h \to 0} \frac{\sin(h)}{h} = 1, \qquad \lim_{h \to \infty} \frac{2 h + 1}{h} = 2", h=1.0)
    check(
        r"\lim_{n \to \infty} F / G = 3, \qquad \lim_{x \to 0^+} e^{-1/x} = 0",
        n=3,
        x=1.0,
        F=of(lambda n: 3 * n**2 + n, "n"),
        G=of(lambda n: n**2 + 5, "n"),
    )
    check(r"(1 + \frac{1}{n})^{n} \xrightarrow[n \to \infty]{} e", n=1.0)
    assert "differ" in malformed(r"\lim_{h \to 0} \frac{|h|}{h} = 1", h=1.0)
    assert "not found" in malformed(r"\lim_{h \to \infty} \cos(h) = 1", h=1.0)


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
    assert "between them they do not" in malformed(latex, **givens)
    check(r"\lim_{n \to \infty} F / n = 1", n=3, F=of(lambda n: whole(n) + 1, "n"))


def whole(count):
    """Return a whole number; like a count of something, it has no meaning for any other."""
    if count % 1:
        raise ValueError("no whole number")
    return count


def test_integrals_between_bounds_and_over_the_line():
    check(r"\int_0^{x} u^2 \,du = \frac{x^3}{3}, \qquad \int e^{-u^2} \,du = \sqrt{\pi}", x=1.7)


# What is random


def test_moments_are_exact_sums_over_outcomes():
    points, chances = independent(*normal_nodes(4), 2)
    givens = {"x": outcomes(chances, row(points)), "y": outcomes(chances, vector(points**2))}
    check(r"\mathbb{E}[x_i^4] = 3, \qquad \mathrm{Var}[x_i x_j] = 1 \quad (i \ne j), \qquad \mathrm{Cov}[x_1, y_1] = 0", **givens)
    check(r"\mathbb{E}_x[\|x\|^2] = 2, \qquad \mathbb{E}[y_i] = 1", **givens)
    refuted(r"\mathbb{E}[x_i^4] = 2", x=givens["x"])


def test_groups_of_random_givens_are_independent_and_one_may_stand_beneath():
    points, chances = independent(*normal_nodes(12), 2)
    givens = {"q": outcomes(chances, row(points), group="q"), "k": outcomes(chances, row(points), group="k")}
    check(r"\mathrm{Var}[q \cdot k] = 2, \qquad \mathbb{E}[(q \cdot k)^4] = 24, \qquad \mathbb{E}_k[(q \cdot k)^2] = \|q\|^2", **givens)
    refuted(r"\mathrm{Var}[q \cdot k] = 2", q=outcomes(chances, row(points)), k=outcomes(chances, row(points)))


def test_a_probability_vector_beneath_a_moment_is_its_weights():
    weights = np.array([0.2, 0.3, 0.5])
    check(r"\mathrm{Var}_p(x) = v, \qquad \mathbb{E}_p[x] = m", p=weights, x=X, m=weights @ X, v=weights @ (X - weights @ X) ** 2)


def test_a_derivative_by_a_matrix_evaluates_dozens_of_changed_entries_at_once():
    state, key, value = (np.random.default_rng(4).normal(size=shape) for shape in ((7, 11), 7, 11))
    givens = {"S": matrix(state), "k": column(key), "v": column(value), "G": matrix(np.outer(key, state.T @ key - value))}
    formula = Formula.of(r"G = \frac{\partial}{\partial S} \tfrac{1}{2} |S^\top k - v|^2", names_of(givens))
    judge(formula, givens)
    evaluation = Evaluator(formula, givens)
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


def test_of_a_condition_the_letter_runs_that_is_not_in_use_even_on_the_other_side():
    others = X.sum() - X
    check(r"y_i = \sum_{i \ne j} x_j", x=X, y=others)
    check(r"\sum_{i \ne j} x_j = y_i", x=X, y=others)
    check(r"y_i = \sum_{i \ge j} x_j", x=X, y=np.cumsum(X))
    check(r"n = \sum_i \sum_{i \ne j} x_i x_j", x=X, n=float(X @ others))


def test_a_letter_between_two_bounds_needs_nothing_that_it_subscripts():
    check(r"\sum_{1 \le t \le n} t = m, \qquad \sum_{0 \le t < n} t = m - n", n=4, m=10)
    check(r"y_i = \sum_{i - 1 \le j \le i + 1} x_j", x=X, y=np.convolve(X, [1, 1, 1], "same"))  # cut at both ends


def test_two_givens_beneath_a_symbol_are_one_index_their_product():
    check("y_{n m} = x", n=2, m=3, x=6.0, y=np.arange(1.0, 8.0))
    assert "for two indices put a comma between them" in malformed("S_{n m} = x", n=2, m=3, x=6.0, S=S)
    check("S_{n, m} = x", n=2, m=3, x=float(S[1, 2]), S=S)


def test_a_printed_number_may_be_taken_away_from_a_vector_too():
    check(r"y = -(t^2 - 1)", t=column(X), y=column(1 - X**2))


def test_without_a_wide_space_behind_the_colon_a_premise_governs_one_statement():
    check(r"n = 1:\; y = x, \qquad z = n", n=2, x=X, y=X + 1, z=2)
    check(r"n = 1: \qquad y = x, \qquad z = n", n=2, x=X, y=X + 1, z=3)
    refuted(r"n = 1:\; y = x, \qquad z = n", n=2, x=X, y=X + 1, z=3)
