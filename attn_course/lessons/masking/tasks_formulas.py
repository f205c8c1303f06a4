"""The tasks on masking that are answered in LaTeX: a derivation line by line, and a formula."""

from typing import Any

import numpy as np

from attn_course.formulas import subset, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _visible(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw which keys may be seen: two at least, and not all."""
    return np.asarray(rng.permutation(n) < rng.integers(2, n))


def _mask_to_add(rng: np.random.Generator, n: int) -> dict[str, Any]:
    visible = _visible(rng, n)
    return {"s": vector(rng.normal(size=n)), "M": vector(np.where(visible, 0.0, -np.inf)), "A": subset(visible), "n": n}


my_derivation = asked_formula(
    "masked-softmax",
    "Minus infinity leaves the visible keys",
    entry="my_derivation",
    asks=r"""
        To the scores $s_1, \ldots, s_n$ of a query we add $M_j = 0$ for the visible keys, the set $A$, and $M_j = -\infty$ for
        all others. Show in two steps or more that this leaves the softmax over the visible keys. Each line must equal the one
        before for every $j$.
    """,
    equation="masked-exponential-is-zero",
    points=2,
    difficulty=2,
    minutes=8,
    trains="minus infinity in a softmax",
    answer=[
        r"\frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}",
        r"\frac{e^{s_j} e^{M_j}}{\sum_{l=1}^{n} e^{s_l} e^{M_l}}",
        r"\frac{[j \in A]\, e^{s_j}}{\sum_{l=1}^{n} [l \in A]\, e^{s_l}}",
        r"\frac{[j \in A]\, e^{s_j}}{\sum_{l \in A} e^{s_l}}",
    ],
    symbols=("s", "M", "A", "n"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", _mask_to_add),
    least_steps=2,
    slips=r"""
        the hidden keys stay in the sum
            line 3: \sum_{l=1}^{n} [l \in A]\, -> \sum_{l=1}^{n}
            M_l stands in every term of the sum too, so the terms of the hidden keys are 0 there as well; without that the weights of
            the visible keys would sum to less than 1
        the hidden key keeps its numerator
            line 4: [j \in A]\, ->
            the line must hold for a hidden key j too: there e^{M_j} is 0, and so is the whole numerator
        the score is multiplied by zero
            line 3: [j \in A]\, e^{s_j} -> e^{[j \in A]\, s_j} ;; [l \in A]\, e^{s_l} -> e^{[l \in A]\, s_l}
            a score of 0 hides nothing, because e^0 = 1: the bracket belongs in front of the exponential, not into its exponent
        the power of a sum taken for a sum of powers
            line 2: e^{s_j} e^{M_j} -> e^{s_j} + e^{M_j} ;; e^{s_l} e^{M_l} -> (e^{s_l} + e^{M_l})
            e^{a + b} is the product of e^a and e^b, not their sum
        the hidden keys instead of the visible ones
            line 4: all \in -> \notin
            A holds the visible keys: M is 0 there, so e^{M_j} is 1 for j in A and 0 for all other keys
        a factor of 1 for every key
            line 3: [j \in A]\, -> ;; [l \in A]\, ->
            that is the softmax without a mask: e^{M_j} is 1 for a visible key, but 0 for a hidden one
    """,
    hints=r"""
        What does an exponential make of a sum in its exponent?
        The factor `e^{M_j}` has two values only. Which one goes with j in A, which with the other keys? `[j \in A]` says the same.
        Three lines follow the first: products of exponentials, then brackets for `e^{M_j}` and `e^{M_l}`, then a sum over A only.
    """,
    why=r"""
        The exponential turns what is added into a factor, {eq}`score-bias-is-factor`. That factor is $e^0 = 1$ for a visible key and
        $e^{-\infty} = 0$ for a hidden one, exactly, {eq}`masked-exponential-is-zero`. It stands above *and* below the fraction bar, so the
        hidden keys leave the sum as well, and the weights of the visible ones still sum to 1.
    """,
)


def _finite_fill(rng: np.random.Generator, n: int) -> dict[str, Any]:
    s, visible, c = rng.normal(size=n), _visible(rng, n), rng.uniform(0.5, 2.5)
    filled = softmax(np.where(visible, s, s - c))
    left_over = sum(float(weight) for weight, seen in zip(filled, visible, strict=True) if not seen)
    return {"w": vector(softmax(s)), "c": c, "A": subset(visible), "n": n, "H": left_over}


my_leftover = asked_formula(
    "weight-behind-finite-fill",
    "What a finite fill leaves",
    entry="my_leftover",
    asks=r"""
        Without a mask a query has the weights $w_1, \ldots, w_n$, a softmax of its scores. Now a number $c > 0$ is subtracted from the
        scores of all keys outside the set $A$ of visible keys. Write a formula for $H$, the weight that these hidden keys then
        have together: only the right side. The scores are not given, for the old weights $w_l$ suffice.
    """,
    equation="finite-fill-leaks",
    points=2,
    difficulty=3,
    minutes=8,
    trains="renormalising after a finite fill",
    answer=r"\frac{e^{-c} \sum_{l \notin A} w_l}{\sum_{l \in A} w_l + e^{-c} \sum_{l \notin A} w_l}",
    symbols=("w", "c", "A", "n"),
    functions=(r"\exp",),
    left="H",
    cases=at_sizes("n", _finite_fill),
    slips=r"""
        not renormalised
            {\sum_{l \in A} w_l + e^{-c} \sum_{l \notin A} w_l} -> {1}
            each hidden term shrinks by e^{-c}, but so does the sum by which all terms are divided: the weights must sum to 1 again
        the sum as if the keys were gone
            ` + e^{-c} \sum_{l \notin A} w_l` ->
            that divides by the visible terms alone; the hidden terms are small, but they still stand in the sum
        hidden completely
            {e^{-c} \sum_{l \notin A} w_l}{ -> {0}{
            only minus infinity leaves nothing: e^{-c} is small for a large c, but it is not 0
        no fill at all
            all e^{-c} ->
            that is what they have without a fill; c is subtracted from their scores alone, not from the whole row, so their weight
            falls
        the weights taken for scores
            all w_l -> e^{w_l}
            the weights are exponentials already, divided by their sum: only the factor of the fill is still missing
        the fill on the wrong side
            all e^{-c} -> e^{c}
            here the hidden keys gain weight; c is subtracted from their scores, so it is their terms that are multiplied by e^{-c}
        the weight of the visible keys
            {e^{-c} \sum_{l \notin A} w_l}{ -> {\sum_{l \in A} w_l}{
            that is what the visible keys have together; the hidden ones have the rest
    """,
    hints="""
        Subtracting c from a score multiplies its exponential by which factor? And what does the sum beneath become?
        The weights w are the exponentials, all divided by one number. That number cancels, so you may calculate with the weights.
        A quotient: above stand the hidden weights times that factor, below the visible weights plus the same thing as above.
    """,
    why=r"""
        Each hidden term is multiplied by $e^{-c}$, and then all terms are divided by their new sum. With $r = \sum_{l \notin A} w_l /
        \sum_{l \in A} w_l$ this is $r / (r + e^c)$, {eq}`finite-fill-leaks`: the number by which exponentials and weights differ cancels in
        $r$. If the hidden keys had nearly all the weight before, a moderate $c$ leaves them a good part of it.
    """,
)
