"""What the lesson on lookups asks its reader before it shows its own: how far a width misses, and how loud a match must be."""

from typing import Any

import numpy as np

from attn_course.tasks.asked import asked, asked_formula, tried
from attn_course.tasks.core import at_sizes


def _points(rng, m, h):
    x = rng.uniform(0.0, 10.0, size=m)
    return {"x": x, "y": 2.0 * np.sin(x) + rng.normal(size=m), "h": h}


def _two_points_at_one_place(rng):
    points = _points(rng, 7, 1.5)
    points["x"][3] = points["x"][5]
    return points


POINTS = """
eleven points: 11 1.5
a wide bell: 7 40.0
two points: 2 2.5
"""


@asked(
    "miss-of-a-width",
    "How far a width misses",
    kind="write",
    equation="nadaraya-watson-regression",
    points=1,
    difficulty=2,
    minutes=8,
    trains="a lookup for each point, without the point itself",
    your_turn=True,
    cases=[tried(_points, POINTS), _two_points_at_one_place],
    slips="""
        the point takes part in its own guess
            ` * (1 - np.eye(len(x)))` ->
            each guess is to come from the *other* points: the similarity of a point with itself does not count
        left out above only
            s.sum(axis=1) -> (s + np.eye(len(x))).sum(axis=1)
            the point that is left out still stands in the sum of the similarities
        all points at the same place left out
            (1 - np.eye(len(x))) -> (x[:, None] != x)
            another point at the same place is another point: it takes part
        the 2 forgotten
            (2 * h**2) -> h**2
            the exponent is the squared distance over 2 h^2: the 2 is missing
        the width not squared
            h**2 -> h
            the width enters as h^2, so that distance and width have the same unit
        the plain mean of the others
            s @ y / s.sum(axis=1) -> (y.sum() - y) / (len(y) - 1)
            that is the limit of a very wide bell; near points must count more
        no root
            np.sqrt(((guess - y) ** 2).mean()) -> ((guess - y) ** 2).mean()
            that is the mean square: take its root, so that the miss has the unit of y
        the mean size of the misses
            np.sqrt(((guess - y) ** 2).mean()) -> np.abs(guess - y).mean()
            square the misses before you average them, and take the root in the end
        added, not averaged
            .mean()) -> .sum())
            average the squares over the points
    """,
    hints="""
        Each point asks all others. What similarity must a point have with itself, so that it takes no part?
        `x[:, None] - x` holds the differences of all pairs, with a row for each point that asks.
        `s = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2))`, then `np.fill_diagonal(s, 0)`, then the guesses, `s @ y / s.sum(axis=1)`.
    """,
)
def my_miss(x, y, h):
    r"""How far the guesses of the points from all others lie from y.

    Guess each $y^{(i)}$ by {eq}`nadaraya-watson-regression` from all points except point $i$, with $e^{-u^2 / 2 h^2}$ for $K_h(u)$. Write
    `my_miss(x, y, h)`, which returns the root of the mean square of guess minus $y^{(i)}$. `x` and `y` are float64 arrays of shape `(m,)`,
    with two points or more {case}`two points`, and no point is so far from all others that its similarities vanish.
    """
    s = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2)) * (1 - np.eye(len(x)))
    guess = s @ y / s.sum(axis=1)
    return np.sqrt(((guess - y) ** 2).mean())


def _loud_enough(rng: np.random.Generator, m: int) -> dict[str, Any]:
    """Turn a match up, by bisection, until it has its share among m pairs."""
    p, low, high = rng.uniform(0.15, 0.95), -20.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        similarities = [np.exp(middle), *np.ones(m - 1)]
        low, high = (middle, high) if similarities[0] / sum(similarities) < p else (low, middle)
    return {"m": m, "p": p, r"\beta": middle}


my_beta = asked_formula(
    "share-of-a-match",
    "How loud must a match be?",
    entry="my_beta",
    asks=r"""
        Among $m \ge 2$ pairs exactly one matches, and it is to have the weight $p$, with $0 < p < 1$. Which $\beta$ does
        this? Start from {eq}`lookup-by-name`, and write a formula in LaTeX with `m` and `p`.
    """,
    equation="lookup-by-name",
    points=1,
    difficulty=2,
    minutes=5,
    trains="a weight solved for its score",
    answer=r"\ln \frac{p (m - 1)}{1 - p}",
    your_turn=True,
    symbols=("m", "p"),
    functions=(r"\ln",),
    left=r"\beta",
    cases=at_sizes("m", _loud_enough),
    slips=r"""
        the match counted among the others
            (m - 1) -> m
            the match is one of the m pairs, so m - 1 others have the similarity 1
        the similarity for its score
            \ln ->
            that is the similarity of the match, e^beta: take its logarithm
        the share upside down
            \frac{p (m - 1)}{1 - p} -> \frac{(1 - p) (m - 1)}{p}
            a larger share needs a larger beta: p stands above and 1 - p beneath
        half of the weight, whatever p is
            \frac{p (m - 1)}{1 - p} -> (m - 1)
            this beta gives the match one half; the share p is missing
        as loud as the others' share
            {1 - p} -> {1}
            the sum of the similarities holds the match too: e^beta = p (e^beta + m - 1), so e^beta stands on both sides
    """,
    hints=r"""
        What is the weight of the match in the formula, the factor of its value?
        Set it equal to p, multiply by the sum beneath, and bring both terms with e^beta to one side.
        `e^{\beta} (1 - p) = p (m - 1)`
    """,
)
