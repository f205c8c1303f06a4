"""The graded tasks of lesson masking that are answered in LaTeX: a derivation line by line, and a formula."""

from typing import Any

import numpy as np

from attn_course.formulas import subset, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _visible(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw which keys may be seen: two at least, and not all."""
    return np.asarray(rng.permutation(n) < rng.integers(2, n))


def _mask_to_add(rng: np.random.Generator, n: int) -> dict[str, Any]:
    visible = _visible(rng, n)
    return {"s": vector(rng.normal(size=n)), "M": vector(np.where(visible, 0.0, -np.inf)), "A": subset(visible), "n": n}


MASKED_SOFTMAX = Task(
    id="masked-softmax",
    title="Minus infinity leaves the visible keys",
    entry="my_derivation",
    kind="derivation",
    equation="masked-exponential-is-zero",
    points=2,
    difficulty=2,
    minutes=8,
    trains="minus infinity in a softmax",
    symbols=("s", "M", "A", "n"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", _mask_to_add),
    least_steps=2,
    answer=[
        r"\frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}",
        r"\frac{e^{s_j} e^{M_j}}{\sum_{l=1}^{n} e^{s_l} e^{M_l}}",
        r"\frac{[j \in A]\, e^{s_j}}{\sum_{l=1}^{n} [l \in A]\, e^{s_l}}",
        r"\frac{[j \in A]\, e^{s_j}}{\sum_{l \in A} e^{s_l}}",
    ],
    wrong=[
        Wrong(
            "the hidden keys stay in the sum",
            r"\frac{[j \in A]\, e^{s_j}}{\sum_{l=1}^{n} e^{s_l}}",
            "M_l stands in every term of the sum too, so the terms of the hidden keys are 0 there as well; without that the weights of "
            "the visible keys would sum to less than 1",
        ),
        Wrong(
            "the hidden key keeps its numerator",
            r"\frac{e^{s_j}}{\sum_{l \in A} e^{s_l}}",
            "the line must hold for a hidden key j too: there e^{M_j} is 0, and so is the whole numerator",
        ),
        Wrong(
            "the score is multiplied by zero",
            r"\frac{e^{[j \in A]\, s_j}}{\sum_{l=1}^{n} e^{[l \in A]\, s_l}}",
            "a score of 0 hides nothing, because e^0 = 1: the bracket belongs in front of the exponential, not into its exponent",
        ),
        Wrong(
            "the power of a sum taken for a sum of powers",
            r"\frac{e^{s_j} + e^{M_j}}{\sum_{l=1}^{n} (e^{s_l} + e^{M_l})}",
            "e^{a + b} is the product of e^a and e^b, not their sum",
        ),
        Wrong(
            "the hidden keys instead of the visible ones",
            r"\frac{[j \notin A]\, e^{s_j}}{\sum_{l \notin A} e^{s_l}}",
            "A holds the visible keys: M is 0 there, so e^{M_j} is 1 for j in A and 0 for all other keys",
        ),
        Wrong(
            "a factor of 1 for every key",
            r"\frac{e^{s_j}}{\sum_{l=1}^{n} e^{s_l}}",
            "that is the softmax without a mask: e^{M_j} is 1 for a visible key, but 0 for a hidden one",
        ),
    ],
    hints=[
        "What does an exponential make of a sum in its exponent?",
        r"The factor `e^{M_j}` has two values only. Which one goes with j in A, which with the other keys? `[j \in A]` says the same.",
        r"Three lines follow the first: products of exponentials, then brackets for `e^{M_j}` and `e^{M_l}`, then a sum over A only.",
    ],
)


def _finite_fill(rng: np.random.Generator, n: int) -> dict[str, Any]:
    s, visible, c = rng.normal(size=n), _visible(rng, n), rng.uniform(0.5, 2.5)
    filled = softmax(np.where(visible, s, s - c))
    left_over = sum(float(weight) for weight, seen in zip(filled, visible, strict=True) if not seen)
    return {"w": vector(softmax(s)), "c": c, "A": subset(visible), "n": n, "H": left_over}


FINITE_FILL = Task(
    id="weight-behind-finite-fill",
    title="What a finite fill leaves",
    entry="my_leftover",
    kind="formula",
    equation="finite-fill-leaks",
    points=2,
    difficulty=3,
    minutes=8,
    trains="renormalising after a finite fill",
    symbols=("w", "c", "A", "n"),
    functions=(r"\exp",),
    left="H",
    cases=at_sizes("n", _finite_fill),
    answer=r"\frac{e^{-c} \sum_{l \notin A} w_l}{\sum_{l \in A} w_l + e^{-c} \sum_{l \notin A} w_l}",
    wrong=[
        Wrong(
            "not renormalised",
            r"e^{-c} \sum_{l \notin A} w_l",
            "each hidden term shrinks by e^{-c}, but so does the sum by which all terms are divided: the weights must sum to 1 again",
        ),
        Wrong(
            "the sum as if the keys were gone",
            r"\frac{e^{-c} \sum_{l \notin A} w_l}{\sum_{l \in A} w_l}",
            "that divides by the visible terms alone; the hidden terms are small, but they still stand in the sum",
        ),
        Wrong("hidden completely", "0", "only minus infinity leaves nothing: e^{-c} is small for a large c, but it is not 0"),
        Wrong(
            "no fill at all",
            r"\sum_{l \notin A} w_l",
            "that is what they have without a fill; c is subtracted from their scores alone, not from the whole row, so their weight falls",
        ),
        Wrong(
            "the weights taken for scores",
            r"\frac{\sum_{l \notin A} e^{w_l - c}}{\sum_{l \in A} e^{w_l} + \sum_{l \notin A} e^{w_l - c}}",
            "the weights are exponentials already, divided by their sum: only the factor of the fill is still missing",
        ),
        Wrong(
            "the fill on the wrong side",
            r"\frac{e^{c} \sum_{l \notin A} w_l}{\sum_{l \in A} w_l + e^{c} \sum_{l \notin A} w_l}",
            "here the hidden keys gain weight; c is subtracted from their scores, so it is their terms that are multiplied by e^{-c}",
        ),
        Wrong(
            "the weight of the visible keys",
            r"\frac{\sum_{l \in A} w_l}{\sum_{l \in A} w_l + e^{-c} \sum_{l \notin A} w_l}",
            "that is what the visible keys have together; the hidden ones have the rest",
        ),
    ],
    hints=[
        "Subtracting c from a score multiplies its exponential by which factor? And what does the sum beneath become?",
        "The weights w are the exponentials, all divided by one number. That number cancels, so you may calculate with the weights.",
        "A quotient: above stand the hidden weights times that factor, below the visible weights plus the same thing as above.",
    ],
)
