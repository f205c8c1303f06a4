"""The tasks of lesson lookup that are answered in LaTeX: the error of a point left out, and how a query pulls its answer."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, row, rows, vector
from attn_course.reference import gaussian_scores, softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _regression(x: np.ndarray, y: np.ndarray, at: float, h: float) -> float:
    """Kernel regression at one place, by a loop over the points."""
    similarity = [np.exp(-((at - point) ** 2) / (2 * h**2)) for point in x]
    return float(sum(s * value for s, value in zip(similarity, y, strict=True)) / sum(similarity))


def _points_left_out(rng: np.random.Generator, m: int) -> dict[str, Any]:
    """Leave out each point in turn, and estimate its value from the others."""
    x, y, h = rng.uniform(-1.5, 1.5, size=m), rng.normal(size=m), rng.uniform(0.5, 1.0)
    left_out = [_regression(np.delete(x, i), np.delete(y, i), x[i], h) - y[i] for i in range(m)]
    p = softmax(gaussian_scores(x[:, None], x[:, None], h))
    estimates = [_regression(x, y, at, h) for at in x]
    return {"p": p, "y": vector(y), "z": vector(estimates), "m": m, "r": vector(left_out)}


my_error = asked_formula(
    "leave-one-out-error",
    "Leave every point out, in one pass",
    entry="my_error",
    asks=r"""
        Let $z_i = \sum_j p_{ij}\, y_j$ be the kernel regression {eq}`nadaraya-watson-regression` at $x^{(i)}$, from all $m$ points,
        and $\hat z_i$ that from all *but* point $i$. The lesson compared widths by the errors

        $$r_i = \hat z_i - y_i$$

        Write $r_i$ as a formula in LaTeX, only the right side, without another regression. Any form that is equal counts. To see
        how it is read, `from attn_course import read` and call `read("leave-one-out-error", my_error)`; what cannot be read is no
        attempt.
    """,
    equation="nadaraya-watson-regression",
    points=2,
    difficulty=3,
    minutes=10,
    trains="what a removed pair changes",
    answer=r"\frac{z_i - y_i}{1 - p_{ii}}",
    symbols=("p", "y", "z", "m"),
    left="r_i",
    cases=at_sizes("m", _points_left_out),
    slips=r"""
        the point still takes part
            {1 - p_{ii}} -> {1}
            z_i is an average in which y_i has its own weight, the largest there is: take it out
        the weights not made to sum to 1 again
            -> z_i - p_{ii} y_i - y_i
            without its own weight, the weights of row i sum to 1 - p_ii only: what is left of the average has to be divided by that
        the estimate, not its error
            z_i - y_i -> z_i - p_{ii} y_i
            this is the estimate without point i; its error is what remains when y_i is subtracted
        divided, but y_i left in the average
            z_i - y_i}{1 - p_{ii}} -> z_i}{1 - p_{ii}} - y_i
            z_i still holds the term p_ii y_i: subtract it before you divide
        multiplied, not divided
            -> (1 - p_{ii}) (z_i - y_i)
            a point that is left out cannot pull its own estimate towards it, so the error grows: 1 - p_ii is below 1
        the sign turned round
            z_i - y_i -> y_i - z_i
            the error was to be the estimate minus the value, not the value minus the estimate
        columns for rows
            {z_i - y_i} -> {\sum_j p_{ji} y_j - y_i}
            the weights with which x_i asks stand in row i: the second index is the one to sum over
    """,
    hints="""
        Write z_i as a sum over j, and take the term with j = i out of it.
        What is left are the other values with weights that sum to 1 - p_ii. What must happen to weights, so that they sum to 1?
        Subtract y_i and bring it on the same denominator: the terms with `p_{ii}` cancel.
    """,
    why=r"""
        Without point $i$, the sum $z_i - p_{ii}\, y_i$ remains, with weights that sum to $1 - p_{ii}$. Divided by that it is
        an average again: $\hat z_i = (z_i - p_{ii}\, y_i) / (1 - p_{ii})$. Subtract $y_i$, and the terms with $p_{ii}$ cancel. So one
        regression tells all $m$ errors: the more weight a point has in its own estimate, the more its plain error flatters.
    """,
)


def _pull_of_a_query(rng: np.random.Generator, m: int, d_k: int, d_v: int) -> dict[str, Any]:
    """Move the query a little, in each direction, and look each time what the lookup answers."""
    q, k, v, h = 0.5 * rng.normal(size=d_k), 0.7 * rng.normal(size=(m, d_k)), rng.normal(size=(m, d_v)), rng.uniform(1.2, 2.0)

    def weights(q: np.ndarray) -> np.ndarray:
        return softmax(gaussian_scores(q[None], k, h))[0]

    def answer(q: np.ndarray) -> np.ndarray:
        return np.array(sum(weight * value for weight, value in zip(weights(q), v, strict=True)))

    slopes = derivative(answer, q)
    lists = {"q": row(q), "k": rows(k), "v": rows(v), "z": row(answer(q))}
    return {r"\alpha": vector(weights(q)), **lists, "h": h, "m": m, "G": slopes}


my_slope = asked_formula(
    "answer-slope-by-query",
    "How a query pulls its answer",
    entry="my_slope",
    asks=r"""
        A query $q$ asks $m$ pairs with the similarity $s_i = e^{-\|q - k_i\|^2 / 2 h^2}$. Its weights are $\alpha_i = s_i / \sum_j s_j$,
        and its answer is $z = \sum_i \alpha_i v_i$, {eq}`soft-lookup`. When the query moves, how does the answer follow? Write a
        formula in LaTeX for

        $$G_{ab} = \frac{\partial z_a}{\partial q_b}$$

        as it holds for all $a$ and $b$, the right side only. Entry $b$ of key $i$ is `k_{ib}`, entry $a$ of value $i$ is `v_{ia}`.
    """,
    equation="soft-lookup",
    points=3,
    difficulty=4,
    minutes=12,
    trains="the quotient rule with indices",
    answer=r"\frac{1}{h^2} \sum_i \alpha_i (v_{ia} - z_a)(k_{ib} - q_b)",
    symbols=(r"\alpha", "q", "k", "v", "z", "h", "m"),
    left="G_{ab}",
    cases=at_sizes("m d_k d_v", _pull_of_a_query),
    slips=r"""
        the sum beneath forgotten
            (v_{ia} - z_a) -> v_{ia}
            the query stands in the sum of all similarities too: where one weight grows, others must shrink
        the sign turned round
            k_{ib} - q_b -> q_b - k_{ib}
            a query that moves towards a key makes it more similar: the minus in the exponent turns q_b - k_ib round
        the 2 left over
            {h^2} -> {2 h^2}
            the square in the exponent has a factor 2 in its derivative, which cancels the 2 beneath
        the width forgotten
            \frac{1}{h^2} ->
            the exponent is divided by 2 h^2: a wide kernel hardly notices that the query moves, so h must stay in the slope
        h for its square
            h^2 -> h
            h stands squared in the exponent, and a derivative by q leaves it as it is: h^2, not h
        all pairs alike
            \alpha_i ->
            the derivative of an exponential is the exponential times that of its exponent: each term keeps its weight
        neither measured from its mean
            (v_{ia} - z_a)(k_{ib} - q_b) -> v_{ia} k_{ib}
            the derivative of the sum beneath subtracts z_a from v_ia: a covariance has at least one of the two means in it
        plus for minus
            v_{ia} - z_a -> v_{ia} + z_a
            the sum of similarities stands beneath, so its derivative comes with a minus
    """,
    hints=r"""
        z is a quotient of two sums over the pairs, and each term of both sums holds the similarity s_i. What is its derivative by q_b?
        The derivative of s_i by q_b is `s_i (k_{ib} - q_b) / h^2`. Put it into the quotient rule, and divide by the sum of
            similarities.
        Both parts are sums with the weights `\alpha_i`: one has v_ia in each term, the other z_a. Take them together.
    """,
    why=r"""
        The derivative of $s_i$ by $q_b$ is $s_i\,(k_{ib} - q_b) / h^2$. With $z_a = \sum_i s_i v_{ia} / \sum_i s_i$ the
        quotient rule gives $\sum_i \alpha_i v_{ia} (k_{ib} - q_b) / h^2 - z_a \sum_i \alpha_i (k_{ib} - q_b) / h^2$, and the two
        sums are one. Since $\sum_i \alpha_i (v_{ia} - z_a) = 0$, any number may stand in the place of $q_b$, the mean key too: the slope
        is the **covariance** of values and keys under the weights, divided by $h^2$.
    """,
)
