"""The tasks on softmax that are answered in LaTeX: a formula, and a short derivation."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _entropy_as_scores_sharpen(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z, beta = rng.normal(size=n), float(rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 1.6))

    def entropy(beta: np.ndarray) -> Any:
        weights = softmax(beta * z)
        return -sum(weight * np.log(weight) for weight in weights)

    return {"s": vector(softmax(beta * z)), "z": vector(z), r"\beta": beta, "D": derivative(entropy, beta)}


my_cooling = asked_formula(
    "entropy-as-scores-sharpen",
    "How fast the entropy falls",
    entry="my_cooling",
    asks=r"""
        Let $s = \sigma(\beta z)$ for a real number $\beta$. How fast does the entropy $H(s) = -\sum_i s_i \ln s_i$ change as $\beta$
        grows? Write a formula in LaTeX for

        $$D = \frac{\mathrm{d} H}{\mathrm{d} \beta}$$

        in the symbols `s` and `z` with their indices, and `\beta`, with `\ln` if you like: only the right side, between `r"` and `"`.
        It has to hold for both signs of $\beta$.
    """,
    equation="weighted-mean-derivative",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a derivative in which two terms cancel",
    answer=r"-\beta \left( \sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2 \right)",
    symbols=("s", "z", r"\beta"),
    functions=(r"\ln",),
    left="D",
    cases=at_sizes("n", _entropy_as_scores_sharpen),
    slips=r"""
        the sign turned round
            -\beta -> \beta
            for a positive beta, sharper scores are less undecided: the entropy falls
        the factor beta forgotten
            -\beta -> -
            that would fall for a negative beta too; at beta = 0 the entropy is at its largest, so its slope is 0 there
        only the slope of the log-sum-exp
            -> \sum_i s_i z_i
            that is the slope of lse(beta z); the other term, beta times the average score, moves with beta as well
        the weights held still
            -> \sum_i s_i z_i - \sum_i s_i z_i^2
            in beta times the average score, beta stands twice: in front, and inside the weights; each needs its own derivative
        the slope of the average score
            -\beta \left( \sum -> \left( \sum
            that is how fast the average score rises with beta; how does it enter the entropy?
        the mean square for the variance
            ` - \left( \sum_i s_i z_i \right)^2` ->
            the slope of the average score is a variance: the square of the average has to be subtracted
    """,
    hints="""
        For p = softmax(beta z) both sides of {eq}`lse-is-best-compromise` are equal: solve for the entropy. Two terms depend on beta.
        The slope of lse(beta z) is the average score; the product beta times average score has two parts, one of which cancels it.
        What cancels? The rest asks how the average score moves with beta: {eq}`weighted-mean-derivative`.
    """,
    why=r"""
        In {eq}`lse-is-best-compromise`, for the scores $\beta z$ and their softmax, both sides are equal, so
        $H = \mathrm{lse}(\beta z) - \beta \bar{z}$ with the average $\bar{z} = \sum_i s_i z_i$. The first term has the slope $\bar{z}$;
        the second has $\bar{z}$ plus $\beta$ times the slope of $\bar{z}$, which is the variance of the scores by
        {eq}`weighted-mean-derivative`. The two $\bar{z}$ cancel. So moving $\beta$ away from 0, to either side, always makes the weights
        less undecided, unless all scores are equal.
    """,
)

my_derivation = asked_formula(
    "shift-invariance-of-softmax",
    "Softmax does not see a shift",
    entry="my_derivation",
    asks=r"""
        Show that softmax does not change when $c$ is added to every score: a list of lines in LaTeX, each equal to the one
        before. The first and the last stand below; it takes two steps or more.
    """,
    equation="softmax-shift-invariance",
    points=2,
    difficulty=1,
    minutes=6,
    trains="the step on which stable softmax rests",
    answer=[
        r"\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}",
        r"\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^c}",
        r"\frac{e^{z_i} e^c}{e^c \sum_j e^{z_j}}",
        r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
    ],
    symbols=("z", "c", "n"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", lambda rng, n: {"z": vector(rng.normal(size=n)), "c": rng.uniform(0.5, 1.5), "n": n}),
    least_steps=2,
    slips=r"""
        the shift lost in the denominator only
            line 2: \sum_j e^{z_j} e^c -> \sum_j e^{z_j}
            the factor e^c stands in every term of the sum as well: take it out of the sum before it cancels
        the shift lost in the numerator only
            line 3: e^{z_i} e^c -> e^{z_i}
            the factor e^c stands in the numerator as well: it cancels against the one beneath
        the power of a sum taken for a sum of powers
            line 2: e^{z_i} e^c -> e^{z_i} + e^c ;; e^{z_j} e^c -> (e^{z_j} + e^c)
            e^{a + b} is the product of e^a and e^b, not their sum
        a term in place of a factor
            line 3: e^c \sum_j -> e^c + \sum_j
            e^c multiplies every term of the sum: it comes out of it as a factor, not as a term
    """,
    hints="""
        What does an exponential make of a sum in its exponent?
        Every term of the sum has the same factor: where can it stand instead?
        Change one thing in each line, and begin with the exponents. When is a factor free to cancel?
    """,
    why="""
        Each exponential becomes a product, the factor $e^c$ is the same in all terms and so leaves the sum, and it
        cancels. Stable softmax, {eq}`stable-softmax`, is the case where $c$ is minus the largest score.
    """,
)
