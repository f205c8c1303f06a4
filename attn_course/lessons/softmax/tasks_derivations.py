"""The tasks on softmax behind its deeper derivations: the multiplier, Cauchy's equation."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import vector
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


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


my_multiplier = asked_formula(
    "multiplier-to-softmax",
    "What the multiplier has to be",
    entry="my_multiplier",
    asks=r"""
        Lagrange's way to the weights $p$ of the largest entropy at a given mean score $\mu$: add each condition times a multiplier,
        $-\sum_i p_i \ln p_i + \beta\, (\sum_i p_i z_i - \mu) + \lambda\, (\sum_i p_i - 1)$, and set the derivative with respect to each
        $p_i$ to zero. With the sum of the weights, this says

        $$-\ln p_i - 1 + \beta z_i + \lambda = 0, \qquad \sum_{j=1}^{n} p_j = 1$$

        What is $\lambda$? Solve both conditions for it on paper, and write it as a formula in LaTeX in `z` with its index, `\beta` and, if
        you like, `n`: only the right side, between `r"` and `"`. You may use `\exp`, `\ln` and `\mathrm{lse}`.
    """,
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=10,
    trains="how a constraint fixes an unknown factor",
    answer=r"1 - \ln \sum_{j=1}^{n} e^{\beta z_j}",
    symbols=("z", r"\beta", "n"),
    functions=(r"\exp", r"\ln", "lse"),
    left=r"\lambda",
    cases=at_sizes("n", _stationary_point),
    slips=r"""
        the 1 forgotten
            1 - \ln -> -\ln
            the derivative of `-p \ln p` is `-\ln p - 1`: solved for `\ln p_i`, the condition holds `\lambda - 1`
        the sign of the 1
            1 - \ln -> -1 - \ln
            solved for `\ln p_i`, the first condition says `\lambda - 1 + \beta z_i`, with minus 1
        the sum in the numerator
            1 - \ln -> 1 + \ln
            the factor `e^{\lambda - 1}` times the sum has to be 1, so it is one over the sum
        the factor itself
            1 - \ln -> 1 /
            this is `e^{\lambda - 1}`; take the logarithm, and solve for `\lambda`
        the sign of an energy
            \beta z_j -> -\beta z_j
            with `\ln p_i` on the other side of the condition, `\beta z_i` keeps its plus
        no beta
            \beta z_j -> z_j
            every p_j has `\beta` in its exponent
        the logarithm of each term
            \ln \sum_{j=1}^{n} e^{\beta z_j} -> \sum_{j=1}^{n} \beta z_j
            the logarithm of a sum is not the sum of the logarithms
        equal weights
            \sum_{j=1}^{n} e^{\beta z_j} -> n
            that is right if all scores are equal; here they are not
    """,
    hints=r"""
        The first condition holds for each i. Solve it for `\ln p_i`, and then for p_i.
        The second condition says that the sum of all p_j is 1. Put the form that you have found into this sum.
        The factor with `\lambda` is common to all terms: take it out of the sum, and solve for it.
    """,
    why=r"""
        The first condition, solved for $p_i$, is $p_i = e^{\lambda - 1} e^{\beta z_i}$. Put it into the second:
        $e^{\lambda - 1} \sum_j e^{\beta z_j} = 1$. The logarithm says $\lambda - 1 = -\ln \sum_j e^{\beta z_j}$, so
        $\lambda = 1 - \mathrm{lse}(\beta z)$, and $p_i = e^{\lambda - 1} e^{\beta z_i} = \sigma(\beta z)_i$.
    """,
)


def _values_at_fractions(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    """Go on by equal steps, as the functional equation says: the value at each is the one before times the first."""
    first = math.exp(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.3))
    values = [first]
    while len(values) < n + m:
        values.append(values[-1] * first)
    return {"g": vector(values), "m": m, "a": values[m - 1]}


my_cauchy = asked_formula(
    "cauchy-to-exponential",
    "From Cauchy's equation to the exponential",
    entry="my_cauchy",
    asks=r"""
        Cauchy (*Cours d'analyse*, 1821, chapter 5) solved $g(x + c) = g(x)\, g(c)$ without a derivative: for whole
        numbers, then for fractions, then for all numbers by continuity. Here you do the fractions. Let $g_k = g(k / n)$ be the
        value after $k \ge 1$ steps of $1 / n$, so that $g_{k + l} = g_k\, g_l$. All values are positive. You know one of them, the value
        $a = g_m$ after $m \ge 1$ steps.

        What is $g_k$? Write it as a formula in LaTeX in `a`, `m` and the index `k`, which stands on the left side and so may stand in the
        answer too: only the right side, between `r"` and `"`. You may use `\exp` and `\ln`.
    """,
    equation="softmax-with-temperature",
    points=3,
    difficulty=3,
    minutes=10,
    trains="the step from whole numbers to fractions",
    answer=r"a^{k / m}",
    symbols=("a", "m"),
    functions=(r"\exp", r"\ln"),
    left="g_k",
    cases=at_sizes("n m", _values_at_fractions),
    slips=r"""
        terms for factors
            a^{k / m} -> \frac{k}{m} a
            this would turn sums into sums; where sums become products, the fraction k / m is an exponent and not a factor
        m steps taken for one
            k / m -> k
            a is the value after m steps; the value after one step is a root of it, and k such steps give k factors of that
        the fraction upside down
            k / m -> m / k
            k steps have the exponent k / m: the more steps, the larger the exponent
        only one step
            k / m -> 1 / m
            that is the value after one step; g_k has k such factors
        the steps that are missing
            k / m -> k - m
            k - m steps of 1 / n are missing, but a is a factor for m steps, not for one
        the logarithm not undone
            a^{k / m} -> \frac{k}{m} \ln a
            this is `\ln g_k`; to come back to g_k it has to stand in an exponent of e
        only its tangent
            a^{k / m} -> 1 + \frac{k}{m} \ln a
            these are only the first two terms of the exponential series; a straight line does not turn sums into products
    """,
    hints="""
        The argument k / n is a sum of k equal terms, 1 / n. What does the equation make of such a sum?
        The same with m terms says what a is. So what is the value after a single step, in a and m?
        g_k is k factors of that single step: a power of a root of a.
    """,
    why=r"""
        The equation, used $k - 1$ times, makes $k$ factors $g_1$ of $g_k$, so $g_k = g_1^k$. In the same way $a = g_m = g_1^m$, so $g_1$ is
        the $m$-th root of $a$, and $g_k = a^{k / m}$. With $m = n$ and $\beta = \ln g(1)$ this is $g(k / n) = e^{\beta k / n}$. As $n$ was
        any whole number, $g(x) = e^{\beta x}$ on all positive fractions; these lie everywhere dense, and so a continuous $g$ has no choice
        in between.
    """,
)
