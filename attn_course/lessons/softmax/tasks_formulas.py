"""The graded tasks of lesson softmax that are answered in LaTeX: a formula, and a short derivation."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _entropy_as_scores_sharpen(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z, beta = rng.normal(size=n), float(rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 1.6))

    def entropy(beta: np.ndarray) -> Any:
        weights = softmax(beta * z)
        return -sum(weight * np.log(weight) for weight in weights)

    return {"s": vector(softmax(beta * z)), "z": vector(z), r"\beta": beta, "D": derivative(entropy, beta)}


COOLING = Task(
    id="entropy-as-scores-sharpen",
    title="How fast the entropy falls",
    entry="my_cooling",
    kind="formula",
    equation="softmax-entropy",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a derivative in which two terms cancel",
    symbols=("s", "z", r"\beta"),
    functions=(r"\ln",),
    left="D",
    cases=at_sizes("n", _entropy_as_scores_sharpen),
    answer=r"-\beta \left( \sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2 \right)",
    wrong=[
        Wrong(
            "the sign turned round",
            r"\beta \left( \sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2 \right)",
            "for a positive beta, sharper scores are less undecided: the entropy falls",
        ),
        Wrong(
            "the factor beta forgotten",
            r"-\left( \sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2 \right)",
            "that would fall for a negative beta too; at beta = 0 the entropy is at its largest, so its slope is 0 there",
        ),
        Wrong(
            "only the slope of the log-sum-exp",
            r"\sum_i s_i z_i",
            "that is the slope of lse(beta z); the other term, beta times the average score, moves with beta as well",
        ),
        Wrong(
            "the weights held still",
            r"\sum_i s_i z_i - \sum_i s_i z_i^2",
            "in beta times the average score, beta stands twice: in front, and inside the weights; each needs its own derivative",
        ),
        Wrong(
            "the slope of the average score",
            r"\sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2",
            "that is how fast the average score rises with beta; how does it enter the entropy?",
        ),
        Wrong(
            "the mean square for the variance",
            r"-\beta \sum_i s_i z_i^2",
            "the slope of the average score is a variance: the square of the average has to be subtracted",
        ),
    ],
    hints=[
        "Write the entropy with {eq}`softmax-entropy`, for the scores beta z. Two terms depend on beta.",
        "The slope of lse(beta z) is the average score; the product beta times average score has two parts, one of which cancels it.",
        "Write the two parts of the product rule beside the first term: what cancels? The rest asks how a weight moves with beta.",
    ],
)

SHIFT_INVARIANCE = Task(
    id="shift-invariance-of-softmax",
    title="Softmax does not see a shift",
    entry="my_derivation",
    kind="derivation",
    equation="softmax-shift-invariance",
    points=2,
    difficulty=1,
    minutes=6,
    trains="the step on which stable softmax rests",
    symbols=("z", "c", "n"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", lambda rng, n: {"z": vector(rng.normal(size=n)), "c": rng.uniform(0.5, 1.5), "n": n}),
    least_steps=2,
    answer=[
        r"\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}",
        r"\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^c}",
        r"\frac{e^{z_i} e^c}{e^c \sum_j e^{z_j}}",
        r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
    ],
    wrong=[
        Wrong(
            "the shift lost in the denominator only",
            r"\frac{e^{z_i} e^c}{\sum_j e^{z_j}}",
            "the factor e^c stands in every term of the sum as well: take it out of the sum before it cancels",
        ),
        Wrong(
            "the shift lost in the numerator only",
            r"\frac{e^{z_i}}{e^c \sum_j e^{z_j}}",
            "the factor e^c stands in the numerator as well: it cancels against the one beneath",
        ),
        Wrong(
            "the power of a sum taken for a sum of powers",
            r"\frac{e^{z_i} + e^c}{\sum_j (e^{z_j} + e^c)}",
            "e^{a + b} is the product of e^a and e^b, not their sum",
        ),
        Wrong(
            "a term in place of a factor",
            r"\frac{e^{z_i} e^c}{e^c + \sum_j e^{z_j}}",
            "e^c multiplies every term of the sum: it comes out of it as a factor, not as a term",
        ),
    ],
    hints=[
        "What does an exponential make of a sum in its exponent?",
        "Every term of the sum has the same factor: where can it stand instead?",
        "Change one thing in each line, and begin with the exponents. When is a factor free to cancel?",
    ],
)
