"""What the lesson on masking asks its reader before it shows its own."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, subset, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked, asked_formula, tried
from attn_course.tasks.core import at_sizes


def _masked_too_late(rng: np.random.Generator, n: int) -> dict[str, Any]:
    scores, values = rng.normal(size=n), rng.normal(size=n)
    visible = rng.permutation(n) < rng.integers(1, n)

    def output(s: np.ndarray) -> float:
        return float(np.where(visible, softmax(s), 0.0) @ values)

    givens = {"w": vector(softmax(scores)), "v": vector(values), "A": subset(visible), r"\tilde{z}": output(scores)}
    return givens | {"D": derivative(output, scores)}


my_slope = asked_formula(
    "slope-behind-late-mask",
    "The slope behind a mask that comes too late",
    entry="my_slope",
    asks=r"""
        The weights $w_l$ of one query are the softmax of all its scores $s_l$, and its values $v_l$ are numbers. The mask comes after
        the softmax, so the output $\tilde{z} = \sum_{l} w_l\, [\,l \in A\,]\, v_l$ averages numbers that are 0 at the hidden keys. Write
        its slope $D_l = \partial \tilde{z} / \partial s_l$ for any key $l$, visible or hidden: only the right side, in LaTeX between
        `r"` and `"`, with `w_l`, `v_l`, `\tilde{z}` and `[l \in A]`.
    """,
    equation="mask-after-softmax-leaks",
    points=1,
    difficulty=2,
    minutes=5,
    trains="the slope of an average under softmax weights",
    answer=r"w_l \left([l \in A]\, v_l - \tilde{z}\right)",
    your_turn=True,
    symbols=("w", "v", "A", r"\tilde{z}"),
    left="D_l",
    cases=at_sizes("n", _masked_too_late),
    slips=r"""
        no slope at a hidden key
            w_l \left([l \in A]\, v_l - \tilde{z}\right) -> w_l [l \in A] \left(v_l - \tilde{z}\right)
            a hidden score is still in the sum by which all weights are divided: if it grows, the visible weights shrink
        the hidden value
            [l \in A]\, v_l -> v_l
            the mask has made the number at a hidden key 0, so its value does not appear there
        the sum of all terms forgotten
            \left([l \in A]\, v_l - \tilde{z}\right) -> [l \in A]\, v_l
            if one score grows, all other weights shrink: from the number at key l the average is subtracted
        the sign turned round
            [l \in A]\, v_l - \tilde{z} -> \tilde{z} - [l \in A]\, v_l
            a larger score moves the average towards the number at its key
    """,
    hints=r"""
        An average of numbers f under softmax weights changes with score l by the weight times (the number at l minus the average).
        Here the number at key l is its value if l is visible, and 0 if it is hidden. Which average is subtracted?
        The weight `w_l` stands in front of a bracket: the number `[l \in A] v_l`, minus the average.
    """,
)


def _moved(normal, length, outputs, width):
    still = normal(outputs, width)
    return {"still": still, "moved": still + normal(length, outputs, width) * (normal(length, outputs, 1) > -0.5)}


TEXTS = """
seven tokens, five outputs: 7 5 3
two tokens, three outputs of many features: 2 3 7
five tokens, the newest output alone: 5 1 3
one token: 1 2 3
"""


@asked(
    "who-moves-whom",
    "Who moves whom",
    kind="write",
    equation="causal-mask-hides-future",
    points=1,
    difficulty=2,
    minutes=6,
    trains="an influence is read off outputs, rows for outputs and columns for the token that was moved",
    your_turn=True,
    cases=tried(_moved, TEXTS),
    slips="""
        rows and columns exchanged
            .max(axis=-1).T -> .max(axis=-1)
            `moved[j]` belongs to the token j that was moved, and that is the column of your answer: row i is the output
        signed changes
            np.abs(moved - still) -> (moved - still)
            an output that shrinks has moved too: take absolute values before the maximum
        the sum of the features
            np.abs(moved - still).max(axis=-1) -> np.abs((moved - still).sum(axis=-1))
            changes of two features may cancel in a sum: take the largest absolute change
        the mean of the features
            .max(axis=-1) -> .mean(axis=-1)
            wanted is the largest change among the features of an output, not the average one
        the sizes of the outputs compared
            np.abs(moved - still).max(axis=-1) -> np.abs(np.abs(moved).max(axis=-1) - np.abs(still).max(axis=-1))
            two outputs of the same size may differ: subtract first, feature by feature
    """,
    hints="""
        `moved - still` subtracts `still` from each of the outputs: its entry [j, i] is how output i has changed when token j was moved.
        Absolute values, then the largest over the last axis: that leaves an array with j in its rows and i in its columns.
        `np.abs(moved - still).max(axis=-1)`, transposed.
    """,
)
def my_influence(still, moved):
    r"""How far each output moves with each token.

    From $T$ tokens a layer makes $m$ outputs, `still`, $(m, d)$. (Where $m \ne T$, a forgotten transpose shows.) We move
    one token at a time: `moved[j]`, $(m, d)$, holds the outputs after token $j$ alone was moved. Write `my_influence(still, moved)`. It
    returns an $(m, T)$ array, in whose row $i$ and column $j$ stands how far output $i$ has moved with token $j$: the largest absolute
    change among its features.
    """
    return np.abs(moved - still).max(axis=-1).T
