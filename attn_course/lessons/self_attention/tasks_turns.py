"""What the lesson on self-attention asks its reader before it shows its own."""

from typing import Any

import numpy as np

from attn_course.reference import scaled_dot_scores
from attn_course.tasks.asked import asked, asked_formula, tried
from attn_course.tasks.core import at_sizes


def _shuffled(rng: np.random.Generator, T: int) -> dict[str, Any]:
    (Q, K), places = rng.normal(size=(2, T, 4)), rng.permutation(T)
    order = np.eye(T)[places][:, np.roll(places, 1)]  # a cycle through all places: not its own inverse
    return {"S": scaled_dot_scores(Q, K), r"\Pi": order, "S'": scaled_dot_scores(order @ Q, order @ K)}


my_shuffled = asked_formula(
    "scores-of-shuffled-words",
    "The scores of shuffled words",
    entry="my_shuffled",
    asks=r"""
        With the queries $\Pi Q$ and the keys $\Pi K$, the table of scores is $S'$. Write it in LaTeX with $\Pi$ and the old table
        $S = Q K^\top / \sqrt{d_k}$ alone.
    """,
    equation="permutation-equivariance",
    points=1,
    difficulty=1,
    minutes=3,
    trains="what a permutation does on either side of a table",
    answer=r"\Pi S \Pi^\top",
    your_turn=True,
    symbols=("S", r"\Pi"),
    left="S'",
    cases=at_sizes("T", _shuffled),
    slips=r"""
        only the rows move
            ` \Pi^\top` ->
            the keys are shuffled too, and they are the columns of the table
        only the columns move
            \Pi S -> S
            the queries are shuffled too, and they are the rows of the table
        nothing moves
            \Pi S \Pi^\top -> S
            a pair of words keeps its score, but the two stand in other places now, so the score does too
        the columns not transposed
            \Pi^\top -> \Pi
            the transpose of a product is the product of the transposes, in reverse order: it is K that is transposed, and so is Pi
        the other way round
            \Pi S \Pi^\top -> \Pi^\top S \Pi
            rows are moved by Pi from the left, as the rows of Q are
    """,
    hints=r"""
        Put the new queries and keys into Q K^T, and transpose the second factor.
        The transpose of a product is the product of the transposes in reverse order.
        One permutation stands on each side of `S`, and the one on the right is transposed: `^\top`.
    """,
)


def _pair(normal, length, pairs):
    angles = 3.0 * normal(length, pairs)
    return {"a": normal(2, length, pairs), "b": normal(2, length, pairs), "cos": np.cos(angles), "sin": np.sin(angles)}


PAIRS = """
five words, two pairs of features: 5 2
one word, three pairs: 1 3
three words, seven pairs: 3 7
"""


@asked(
    "turn-of-a-pair",
    "Turn a pair of features",
    kind="write",
    equation="rotations-compose",
    points=1,
    difficulty=1,
    minutes=4,
    trains="a rotation, written for arrays of every library",
    your_turn=True,
    cases=tried(_pair, PAIRS),
    slips="""
        turned the other way
            a * cos - b * sin, a * sin + b * cos -> a * cos + b * sin, b * cos - a * sin
            the signs of the sines are exchanged, so the pair is turned backwards
        a reflection
            a * sin + b * cos -> a * sin - b * cos
            with this sign the pair is reflected: for the angle 0 it must stay as it is
        the second made from the first after its turn
            return a * cos - b * sin, a * sin + b * cos -> c = a * cos - b * sin; return c, c * sin + b * cos
            both numbers are made from a and b as they came
        sine and cosine exchanged
            a * cos - b * sin, a * sin + b * cos -> a * sin - b * cos, a * cos + b * sin
            for the angle 0 the cosine is 1 and the sine 0, and the pair must stay as it is
        the second alone
            return a * cos - b * sin, a * sin + b * cos -> return a, a * sin + b * cos
            both features of the pair move
    """,
    hints="""
        Multiply the matrix $R_t$ with the column of a and b.
        Its first row gives a cos minus b sin.
        `return a * cos - b * sin, ...`, and the second is `a * sin + b * cos`.
    """,
)
def my_turn(a, b, cos, sin):
    r"""The pairs (a, b), turned by angles.

    Write `my_turn(a, b, cos, sin)`. The arrays `a` and `b` hold the first and the second features of many pairs, `cos` and `sin` the
    cosines and sines of their angles. It returns the two turned arrays. With `*`, `+` and `-` alone it serves NumPy and PyTorch.
    """
    return a * cos - b * sin, a * sin + b * cos
