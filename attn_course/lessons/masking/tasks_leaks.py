"""Tasks of lesson masking: what leaks through a finite fill, the gradient under a mask, and a leak test."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import log

from attn_course.tasks.core import Case, Task, Wrong

# --- 7.5 how large a finite fill must be ---------------------------------------------------------------


def _fill_points(rng: np.random.Generator) -> list[Case]:
    return [Case("16 points", r=rng.uniform(0.2, 9.0, size=16), epsilon=rng.uniform(0.01, 0.4, size=16))]


FILL = Task(
    id="large-enough-fill",
    title="How large is large enough?",
    entry="my_fill",
    kind="derive",
    equation="finite-fill-leaks",
    points=2,
    difficulty=2,
    minutes=8,
    trains="what a finite number hides",
    symbols=("r", "epsilon"),
    functions=("log",),
    cases=_fill_points,
    answer=lambda r, epsilon: log(r * (1 - epsilon) / epsilon),
    wrong=[
        Wrong(
            "the visible share taken as 1",
            lambda r, epsilon: log(r / epsilon),
            "the weight is r / (r + e^c), not r / e^c: the hidden terms are in the normaliser too, {eq}`finite-fill-leaks`",
        ),
        Wrong(
            "the scores forgotten",
            lambda r, epsilon: log((1 - epsilon) / epsilon),
            "that is right for r = 1 only: the larger the hidden scores, the larger c must be",
        ),
        Wrong(
            "r turned over",
            lambda r, epsilon: log((1 - epsilon) / (epsilon * r)),
            "r is hidden over visible: a larger r asks for a larger c",
        ),
        Wrong(
            "the sign of c",
            lambda r, epsilon: log(epsilon / (r * (1 - epsilon))),
            "c is what is subtracted, so it is positive for a small weight: you gave the number that is added",
        ),
        Wrong(
            "e^c instead of c",
            lambda r, epsilon: r * (1 - epsilon) / epsilon,
            "that is e^c: take the logarithm",
        ),
        Wrong(
            "the share outside the logarithm",
            lambda r, epsilon: log(r) * (1 - epsilon) / epsilon,
            "e^c is r (1 - epsilon) / epsilon: the logarithm is that of the whole product",
        ),
        Wrong(
            "the logarithm of the weight alone",
            lambda r, epsilon: -log(epsilon),
            "subtracting c does not divide a weight by e^c, since the rest is renormalised: solve r / (r + e^c) = epsilon",
        ),
    ],
    hints=[
        "Set the weight of {eq}`finite-fill-leaks` equal to epsilon and solve for c.",
        "Multiply by the denominator: r = epsilon (r + e^c). What is e^c?",
        "e^c is r (1 - epsilon) / epsilon; take the logarithm.",
    ],
)

# --- 7.8 the gradient of a visible score ---------------------------------------------------------------


def _gradient_points(rng: np.random.Generator) -> list[Case]:
    total = rng.uniform(0.3, 0.9, size=16)
    share = rng.uniform(0.1, 0.9, size=16)
    v_j, z = rng.normal(size=(2, 16))
    return [Case("16 points", w_j=total * share, w_all=total, v_j=v_j, z=z)]


SCORE_GRADIENT = Task(
    id="masked-score-gradient",
    title="The gradient of a score that may be seen",
    entry="my_score_gradient",
    kind="derive",
    equation="output-derivative-by-score",
    points=2,
    difficulty=3,
    minutes=10,
    trains="renormalised weights and their derivative",
    symbols=("w_j", "w_all", "v_j", "z"),
    cases=_gradient_points,
    answer=lambda w_j, w_all, v_j, z: w_j / w_all * (v_j - z),
    wrong=[
        Wrong(
            "the weight not renormalised",
            lambda w_j, w_all, v_j, z: w_j * (v_j - z),
            "the weight of key j under the mask is its share among the visible ones, {eq}`masking-renormalises-weights`",
        ),
        Wrong(
            "the other weights forgotten",
            lambda w_j, w_all, v_j, z: w_j / w_all * v_j,
            "raising one score lowers all other visible weights: what counts is v_j minus the present mixture z",
        ),
        Wrong(
            "the hidden weight left in the mixture",
            lambda w_j, w_all, v_j, z: w_j / w_all * (v_j - w_all * z),
            "z is already the mixture under the mask; it needs no other factor",
        ),
        Wrong(
            "renormalised twice",
            lambda w_j, w_all, v_j, z: w_j / w_all**2 * (v_j - z),
            "one division by the sum of the visible weights turns w_j into the weight under the mask",
        ),
        Wrong(
            "the softmax treated entry by entry",
            lambda w_j, w_all, v_j, z: w_j / w_all * (1 - w_j / w_all) * v_j,
            "p (1 - p) v_j is the part of key j alone; the other visible weights move as well, {eq}`softmax-derivative`",
        ),
        Wrong(
            "the sign turned round",
            lambda w_j, w_all, v_j, z: w_j / w_all * (z - v_j),
            "a larger score moves z towards v_j",
        ),
    ],
    hints=[
        "Under the mask, z is an ordinary mixture, of the visible keys only. Which equation gives its derivative by a score?",
        (
            "{eq}`output-derivative-by-score`: the weight under the mask, times the value minus the mixture. "
            "{eq}`masking-renormalises-weights` gives that weight."
        ),
        "The weight under the mask is `w_j / w_all`.",
    ],
)

# --- 7.9 a leak test -----------------------------------------------------------------------------------


def layer(x: np.ndarray, kind: int) -> np.ndarray:
    """A layer of seven kinds, 0 to 6, that should be causal: (length, 4) -> (length,
    3). Most are not.
    """
    scores = x[:, :2] @ x[:, 1:3].T
    seen = np.tri(len(x), k=1 if kind == 1 else 0) > 0
    if kind == 2:
        seen = seen.T
    axis = 0 if kind == 3 else 1
    hidden = scores if kind == 4 else np.where(seen, scores, -np.inf)
    unnormalised = np.exp(hidden - hidden.max(axis=axis, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=axis, keepdims=True) * seen
    output = weights @ x[:, 1:]
    if kind == 6:
        output[:, 2] += x[-1, 3]
    return output - output.mean(axis=0) if kind == 5 else output


def _influence(x: np.ndarray, kind: int, *, absolute: bool = True) -> np.ndarray:
    """Largest change of output i (row) when token j (column) moves."""
    influence = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += np.array([0.7, -0.4, 0.9, 0.5])
        change = layer(moved, kind) - layer(x, kind)
        influence[:, j] = (np.abs(change) if absolute else change).max(axis=1)
    return influence


def _loud(rng: np.random.Generator, kind: int, loud: int | None = None) -> dict[str, Any]:
    """Seven tokens whose scores fall by about 1000 from key to key, but for one key, which wins wherever it is seen."""
    x = rng.normal(size=(7, 4))
    x[:, 0] = 100.0
    x[:, 1] = -10.0 * np.arange(7)
    if loud is not None:
        x[loud, 1] = 20.0
    return {"x": x, "kind": kind}


def _found(x: np.ndarray, kind: int) -> np.ndarray:
    return 1.0 * (_influence(x, kind) > 1e-6)


def _not_put_back(x: np.ndarray, kind: int) -> np.ndarray:
    leaks, moved = np.zeros((len(x), len(x))), x.copy()
    for j in reversed(range(len(x))):
        moved[j] += 1.0
        leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind)).max(axis=1) > 1e-6
    return np.triu(leaks, k=1)


def _one_feature_watched(x: np.ndarray, kind: int) -> np.ndarray:
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1.0
        leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind))[:, 0] > 1e-6
    return np.triu(leaks, k=1)


def _restricted(region: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, int], np.ndarray]:
    return lambda x, kind: region(_found(x, kind))


def _last_token_only(x: np.ndarray, kind: int) -> np.ndarray:
    leaks = np.triu(_found(x, kind), k=1)
    leaks[:, :-1] = 0.0
    return leaks


LEAK_NAMES = (
    "everything in order, or not",
    "another mask",
    "yet another mask",
    "another softmax",
    "another place for the mask",
    "another end",
    "a way round the weights",
)

LEAKS = Task(
    id="leak-test",
    title="A leak test",
    entry="my_leaks",
    kind="write",
    equation="causal-mask-hides-future",
    points=3,
    difficulty=4,
    minutes=15,
    trains="testing what a layer does, not what its code says",
    given=(layer,),
    answer=_restricted(lambda found: np.triu(found, k=1)),
    cases=lambda rng: (
        [Case(name, x=0.8 * rng.normal(size=(7, 4)), kind=kind) for kind, name in enumerate(LEAK_NAMES)]
        + [
            Case("a text of five tokens", x=0.8 * rng.normal(size=(5, 4)), kind=3),
            Case("a single token", x=rng.normal(size=(1, 4)), kind=2),
            Case("another mask, and one token that all attend to who see it", **_loud(rng, 1, loud=4)),
            Case("another place for the mask, and tokens that nobody later is drawn to", **_loud(rng, 4)),
        ]
    ),
    wrong=[
        Wrong(
            "every dependence counted",
            _restricted(lambda found: found),
            "earlier tokens and the token itself may have influence: a leak is one with j > i",
        ),
        Wrong(
            "the token itself counted",
            _restricted(np.triu),
            "output i may depend on token i: the leaks lie strictly above the diagonal",
        ),
        Wrong(
            "rows and columns exchanged",
            _restricted(lambda found: np.triu(found, k=1).T),
            "row i is the output that moves, column j the token that was moved",
        ),
        Wrong(
            "the past searched",
            _restricted(lambda found: np.tril(found, k=-1)),
            "you looked below the diagonal, at tokens that are earlier than the output",
        ),
        Wrong(
            "only the last token moved",
            _last_token_only,
            "move every token in turn: each has its own column",
        ),
        Wrong(
            "moved tokens not put back",
            _not_put_back,
            "token j is moved together with all later ones, so their leaks are booked on j as well: start from x each time",
        ),
        Wrong(
            "one feature of the output watched",
            _one_feature_watched,
            "a leak may go through one feature only: move all features of the token, and take the largest change over those of the output",
        ),
        Wrong(
            "signed changes",
            lambda x, kind: np.triu(1.0 * (_influence(x, kind, absolute=False) > 1e-6), k=1),
            "an output that shrinks has moved too: take absolute values before the maximum",
        ),
        Wrong(
            "sizes instead of zeros and ones",
            lambda x, kind: np.triu(_influence(x, kind), k=1),
            "the question is whether there is a leak: return 1 where the change is larger than 1e-6, else 0",
        ),
    ],
    hints=[
        "Call the layer once as it is, and once for each token with that token moved. What differs?",
        "For token j: copy x, add a step to row j, and compare both outputs row by row: that gives column j.",
        "`leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind)).max(axis=1) > 1e-6`; at the end `np.triu(leaks, k=1)`.",
    ],
)
