"""The graded tasks of lesson softmax behind its deeper derivations: the multiplier, Cauchy's equation."""

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
    return {"z": vector(z), r"\beta": beta, r"\lambda": multiplier, "n": n}


MULTIPLIER = Task(
    id="multiplier-to-softmax",
    title="What the multiplier has to be",
    entry="my_multiplier",
    kind="formula",
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=10,
    trains="how a constraint fixes an unknown factor",
    symbols=("z", r"\beta", "n"),
    functions=(r"\exp", r"\ln", "lse"),
    left=r"\lambda",
    cases=at_sizes("n", _stationary_point),
    answer=r"1 - \ln \sum_{j=1}^{n} e^{\beta z_j}",
    wrong=[
        Wrong(
            "the 1 forgotten",
            r"-\ln \sum_j e^{\beta z_j}",
            r"the derivative of `-p \ln p` is `-\ln p - 1`: solved for `\ln p_i`, the condition holds `\lambda - 1`",
        ),
        Wrong(
            "the sign of the 1",
            r"-1 - \ln \sum_j e^{\beta z_j}",
            r"solved for `\ln p_i`, the first condition says `\lambda - 1 + \beta z_i`, with minus 1",
        ),
        Wrong(
            "the sum in the numerator",
            r"1 + \ln \sum_j e^{\beta z_j}",
            r"the factor `e^{\lambda - 1}` times the sum has to be 1, so it is one over the sum",
        ),
        Wrong(
            "the factor itself",
            r"\frac{1}{\sum_j e^{\beta z_j}}",
            r"this is `e^{\lambda - 1}`; take the logarithm, and solve for `\lambda`",
        ),
        Wrong(
            "the sign of an energy",
            r"1 - \ln \sum_j e^{-\beta z_j}",
            r"with `\ln p_i` on the other side of the condition, `\beta z_i` keeps its plus",
        ),
        Wrong("no beta", r"1 - \ln \sum_j e^{z_j}", r"every p_j has `\beta` in its exponent"),
        Wrong(
            "the logarithm of each term",
            r"1 - \sum_j \beta z_j",
            "the logarithm of a sum is not the sum of the logarithms",
        ),
        Wrong("equal weights", r"1 - \ln n", "that is right if all scores are equal; here they are not"),
    ],
    hints=[
        r"The first condition holds for each i. Solve it for `\ln p_i`, and then for p_i.",
        r"The second condition says that the sum of all p_j is 1. Put the form that you have found into this sum.",
        r"The factor with `\lambda` is common to all terms: take it out of the sum, and solve for it.",
    ],
)


def _values_at_fractions(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    """Go on by equal steps, as the functional equation says: the value at each is the one before times the first."""
    first = math.exp(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.3))
    values = [first]
    while len(values) < n + m:
        values.append(values[-1] * first)
    return {"g": vector(values), "m": m, "a": values[m - 1]}


CAUCHY = Task(
    id="cauchy-to-exponential",
    title="From Cauchy's equation to the exponential",
    entry="my_cauchy",
    kind="formula",
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=10,
    trains="the step from whole numbers to fractions",
    symbols=("a", "m"),
    functions=(r"\exp", r"\ln"),
    left="g_k",
    cases=at_sizes("n m", _values_at_fractions),
    answer=r"a^{k / m}",
    wrong=[
        Wrong(
            "terms for factors",
            r"\frac{k}{m} a",
            "this would turn sums into sums; where sums become products, the fraction k / m is an exponent and not a factor",
        ),
        Wrong(
            "m steps taken for one",
            r"a^k",
            "a is the value after m steps; the value after one step is a root of it, and k such steps give k factors of that",
        ),
        Wrong("the fraction upside down", r"a^{m / k}", "k steps have the exponent k / m: the more steps, the larger the exponent"),
        Wrong("only one step", r"a^{1 / m}", "that is the value after one step; g_k has k such factors"),
        Wrong(
            "the steps that are missing",
            r"a^{k - m}",
            "k - m steps of 1 / n are missing, but a is a factor for m steps, not for one",
        ),
        Wrong(
            "the logarithm not undone", r"\frac{k}{m} \ln a", r"this is `\ln g_k`; to come back to g_k it has to stand in an exponent of e"
        ),
        Wrong(
            "only its tangent",
            r"1 + \frac{k}{m} \ln a",
            "these are only the first two terms of the exponential series; a straight line does not turn sums into products",
        ),
    ],
    hints=[
        "The argument k / n is a sum of k equal terms, 1 / n. What does the equation make of such a sum?",
        "The same with m terms says what a is. So what is the value after a single step, in a and m?",
        "g_k is k factors of that single step: a power of a root of a.",
    ],
)
