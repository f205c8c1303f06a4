"""The graded tasks of lesson softmax that are answered in LaTeX: a formula, and a derivation line by line."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _weights_and_slopes(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z = rng.normal(size=n)
    return {"s": vector(softmax(z)), "J": derivative(softmax, z)}


DERIVATIVE_FORMULA = Task(
    id="softmax-derivative",
    title="The derivative of softmax as a formula",
    entry="my_formula",
    kind="formula",
    equation="softmax",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the quotient rule with indices",
    symbols=("s",),
    left="J_{ij}",
    cases=at_sizes("n", _weights_and_slopes),
    answer=r"s_i (\delta_{ij} - s_j)",
    wrong=[
        Wrong(
            "each weight on its own",
            r"\delta_{ij}\, s_i (1 - s_i)",
            "that is the derivative of the logistic function; here raising z_j also lowers every other s_i, through the sum beneath",
        ),
        Wrong("the derivative of the logarithm", r"\delta_{ij} - s_j", "that is the derivative of ln s_i; multiply it by s_i"),
        Wrong("the numerator forgotten", r"-s_i s_j", "the numerator of s_i holds z_j too, when i = j: that term is missing"),
        Wrong("the denominator forgotten", r"\delta_{ij}\, s_i", "the sum beneath holds every z_j: its derivative is missing"),
        Wrong(
            "the delta taken for 1", r"s_i (1 - s_j)", "that is the derivative where i = j; for every other j the numerator does not move"
        ),
        Wrong("plus for minus", r"s_i (\delta_{ij} + s_j)", "the sum stands beneath, so its derivative comes with a minus"),
        Wrong("the sign turned round", r"s_i (s_j - \delta_{ij})", "raising z_i raises s_i: where i = j the derivative is positive"),
        Wrong("s_i for s_j", r"s_i (\delta_{ij} - s_i)", "the derivative of the sum by z_j is e^{z_j}: over the sum that is s_j, not s_i"),
    ],
    hints=[
        "Write s_i as a quotient. Where does z_j stand in its numerator, and where in its denominator?",
        "The derivative of the numerator by z_j is delta_ij e^{z_i}, that of the denominator e^{z_j}.",
        r"By the quotient rule it is `\delta_{ij}\, s_i` minus a product of two weights.",
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
        r"Behind the start comes `\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^c}`; two more steps lead to the goal.",
    ],
)
