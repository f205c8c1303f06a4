"""The graded tasks of lesson softmax that are derived line by line: the backward pass, the multiplier, Cauchy's equation."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import column, derivative, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _weights_slopes_and_gradient(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z = rng.normal(size=n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z), "g": column(rng.normal(size=n)), "n": n}


BACKWARD_DERIVATION = Task(
    id="softmax-backward-derivation",
    title="The backward pass without its matrix",
    entry="my_backward",
    kind="derivation",
    equation="softmax-vector-jacobian-product",
    points=3,
    difficulty=2,
    minutes=10,
    trains="sums with a delta",
    symbols=("J", "s", "g", "n"),
    cases=at_sizes("n", _weights_slopes_and_gradient),
    least_steps=3,
    answer=[
        r"\sum_{i=1}^{n} J_{ij} g_i",
        r"\sum_{i=1}^{n} s_i (\delta_{ij} - s_j) g_i",
        r"\sum_{i=1}^{n} \delta_{ij} s_i g_i - \sum_{i=1}^{n} s_i s_j g_i",
        r"s_j g_j - \sum_{i=1}^{n} s_i s_j g_i",
        r"s_j g_j - s_j \sum_{i=1}^{n} s_i g_i",
        r"s_j (g_j - \sum_{i=1}^{n} s_i g_i)",
    ],
    wrong=[
        Wrong(
            "the delta taken for 1",
            r"\sum_i s_i (1 - s_j) g_i",
            r"`\delta_{ij}` is 1 in one term of the sum only, that with i = j, and 0 in all others: of its sum one term remains",
        ),
        Wrong(
            "s_i for s_j",
            r"\sum_i s_i (\delta_{ij} - s_i) g_i",
            "the second weight comes from the derivative of the sum of exponentials by z_j: it is s_j, the same in all terms",
        ),
        Wrong(
            "only the term with i = j",
            r"s_j (1 - s_j) g_j",
            r"`\delta_{ij}` picks one term out of the first sum, but the second sum has no delta: there every i counts",
        ),
        Wrong(
            "the delta dropped with its term",
            r"-s_j \sum_i s_i g_i",
            r"`\delta_{ij}` is 0 in all terms of the first sum but that with i = j, where it is 1: s_j g_j is missing",
        ),
        Wrong(
            "plus for minus",
            r"s_j \left( g_j + \sum_i s_i g_i \right)",
            r"in `\delta_{ij} - s_j` the second weight has a minus, and nothing on the way to the goal turns it round",
        ),
        Wrong(
            "s_j lost from the second sum",
            r"s_j g_j - \sum_i s_i g_i",
            "s_j is a factor of every term of the second sum: it may move in front of the sum, but it does not vanish",
        ),
        Wrong(
            "s_j taken out and left inside",
            r"s_j \left( g_j - s_j \sum_i s_i g_i \right)",
            "every term of the second sum has s_j once: what stands in front of the bracket has left it",
        ),
        Wrong(
            "the gradient summed without weights",
            r"s_j \left( g_j - \sum_i g_i \right)",
            "each g_i of the second sum comes with its own s_i: that sum is the mean of the gradient under the weights",
        ),
    ],
    hints=[
        "What does {eq}`softmax-derivative` put in the place of `J_{ij}`?",
        r"Make two sums of it. In the one with `\delta_{ij}`, all terms but one are zero.",
        "In the other sum, what does not depend on i comes to the front. Then both parts have a factor in common.",
    ],
)


def _stationary_point(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Solve both conditions, a vanishing derivative of the Lagrangian and a sum of 1, by Newton's method for ln p and lambda."""
    z, beta = rng.normal(size=n), rng.uniform(0.5, 1.5)
    log_p, multiplier = np.full(n, -math.log(n)), 1.0
    for _ in range(40):
        left = np.append(-log_p - 1 + beta * z + multiplier, np.exp(log_p).sum() - 1)
        slopes = np.block([[-np.eye(n), np.ones((n, 1))], [np.exp(log_p), np.zeros(1)]])
        step = np.linalg.solve(slopes, left)
        log_p, multiplier = log_p - step[:n], multiplier - float(step[n])
    return {"p": vector(np.exp(log_p)), "z": vector(z), r"\beta": beta, r"\lambda": multiplier, "n": n}


MULTIPLIER = Task(
    id="multiplier-to-softmax",
    title="What the multiplier has to be",
    entry="my_gibbs",
    kind="derivation",
    equation="gibbs-distribution",
    points=3,
    difficulty=3,
    minutes=10,
    trains="to use a constraint for an unknown factor",
    symbols=("p", "z", r"\beta", r"\lambda", "n"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", _stationary_point),
    least_steps=3,
    answer=[
        r"p_i",
        r"e^{\lambda - 1} e^{\beta z_i}",
        r"\frac{e^{\lambda - 1} e^{\beta z_i}}{\sum_{j=1}^{n} p_j}",
        r"\frac{e^{\lambda - 1} e^{\beta z_i}}{\sum_{j=1}^{n} e^{\lambda - 1} e^{\beta z_j}}",
        r"\frac{e^{\lambda - 1} e^{\beta z_i}}{e^{\lambda - 1} \sum_{j=1}^{n} e^{\beta z_j}}",
        r"\frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}}",
    ],
    wrong=[
        Wrong(
            "the condition itself",
            r"0",
            "the left side of the first condition is 0, but a line has to be equal to p_i: solve the condition for p_i",
        ),
        Wrong(
            "the logarithm of the weight",
            r"\lambda - 1 + \beta z_i",
            r"this is `\ln p_i`; a line has to be equal to p_i, so e to this power",
        ),
        Wrong(
            "the 1 forgotten",
            r"e^{\lambda} e^{\beta z_i}",
            r"the derivative of `-p \ln p` is `-\ln p - 1`: solved for `\ln p_i`, the condition holds `\lambda - 1`",
        ),
        Wrong(
            "the sign of an energy",
            r"e^{\lambda - 1} e^{-\beta z_i}",
            r"with `\ln p_i` on the other side of the condition, `\beta z_i` keeps its plus",
        ),
        Wrong(
            "the power of a sum taken for a sum of powers",
            r"e^{\lambda - 1} + e^{\beta z_i}",
            "`e^{a + b}` is the product of e^a and e^b, not their sum",
        ),
        Wrong(
            "the multiplier taken for 1",
            r"e^{\beta z_i}",
            r"nobody has said that `\lambda` is 1: its factor is what makes the weights sum to 1, and without it they do not",
        ),
        Wrong(
            "cancelled beneath only",
            r"\frac{e^{\lambda - 1} e^{\beta z_i}}{\sum_j e^{\beta z_j}}",
            r"`e^{\lambda - 1}` is a factor of the numerator as well: it cancels in both, or in neither",
        ),
        Wrong(
            "no beta beneath",
            r"\frac{e^{\beta z_i}}{\sum_j e^{z_j}}",
            r"the terms of the sum are the p_j, which are made like p_i: each has `\beta` in its exponent",
        ),
    ],
    hints=[
        r"The first condition holds for each i. Solve it for `\ln p_i`, and then for p_i.",
        r"The second condition says that `\sum_j p_j` is 1, and you may divide anything by 1. What is each p_j in that sum?",
        r"With p_i above and such terms beneath, the factor with `\lambda` is common to all of them: take it out of the sum.",
    ],
)


def _values_at_fractions(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Go on by steps of 1 / n, as the functional equation says: the value at each is the one before times the first."""
    first = math.exp(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.3))
    values = [first]
    while len(values) < 2 * n + 1:
        values.append(values[-1] * first)
    return {"g": vector(values), "n": n, r"\beta": math.log(values[n - 1])}


CAUCHY = Task(
    id="cauchy-to-exponential",
    title="From Cauchy's equation to the exponential",
    entry="my_cauchy",
    kind="derivation",
    equation="exponential-unique-solution",
    points=3,
    difficulty=3,
    minutes=12,
    trains="to go from whole numbers to fractions",
    symbols=("g", "n", r"\beta"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", _values_at_fractions),
    least_steps=3,
    answer=[
        r"g_k",
        r"g_1^k",
        r"(g_1^n)^{k / n}",
        r"g_n^{k / n}",
        r"e^{(k / n) \ln g_n}",
        r"e^{\beta k / n}",
    ],
    wrong=[
        Wrong(
            "terms for factors",
            r"k g_1",
            "the equation turns a sum of arguments into a product of values: k steps give k equal factors, not k equal terms",
        ),
        Wrong(
            "a straight line to g(1)",
            r"\frac{k}{n} g_n",
            "this would turn sums into sums; where sums become products, the fraction k / n is an exponent and not a factor",
        ),
        Wrong(
            "a step taken for a whole unit",
            r"g_n^k",
            "g_n is the value at x = 1, after n steps, and k steps are only the fraction k / n of these: so its exponent is smaller",
        ),
        Wrong(
            "the fraction upside down",
            r"g_n^{n / k}",
            "k steps out of n are the fraction k / n: the more steps, the larger the exponent",
        ),
        Wrong(
            "the root of the first step",
            r"g_1^{k / n}",
            "g_1 is already the value after a single step of 1 / n: k steps give k factors g_1, without a root",
        ),
        Wrong(
            "the logarithm not undone",
            r"k \ln g_1",
            r"this is `\ln g_k`; to come back to g_k it has to stand in an exponent of e",
        ),
        Wrong(
            "only its tangent",
            r"1 + \beta k / n",
            "these are only the first two terms of the exponential series; a straight line does not turn sums into products",
        ),
    ],
    hints=[
        "The argument k / n is a sum of k equal terms, 1 / n. What does the equation make of such a sum?",
        "The same with n terms says what g_n is. So which power of g_n is g_1?",
        r"Now only g_n stands in your line, in a power. Write its base as e to a logarithm, and use the definition of `\beta`.",
    ],
)
