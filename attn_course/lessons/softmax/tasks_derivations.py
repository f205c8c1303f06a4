"""The graded tasks of lesson softmax that are derived line by line: the multiplier, Cauchy's equation."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import vector
from attn_course.tasks.core import Task, Wrong, at_sizes


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
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=10,
    trains="how a constraint fixes an unknown factor",
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
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=12,
    trains="the step from whole numbers to fractions",
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
