"""The graded tasks on softmax."""

import math

import numpy as np

from attn_course.lessons.softmax.tasks_derivations import CAUCHY, MULTIPLIER
from attn_course.lessons.softmax.tasks_derivatives import CROSS_ENTROPY_GRADIENT, JACOBIAN, LOG_SOFTMAX_DERIVATIVE
from attn_course.lessons.softmax.tasks_formulas import COOLING, SHIFT_INVARIANCE
from attn_course.lessons.softmax.tasks_turns import TURNS
from attn_course.reference import logsumexp, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _plain_softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    unnormalised = np.exp(scores)
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _global_max_softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    return _plain_softmax(scores - scores.max(), axis)


STABLE_SOFTMAX = Task(
    id="stable-softmax",
    title="Stable softmax on any axis",
    entry="my_softmax",
    kind="write",
    equation="stable-softmax",
    points=3,
    difficulty=2,
    minutes=10,
    trains="axes and the maximum trick",
    answer=softmax,
    forbid=(forbidden.SOFTMAX,),
    cases=lambda rng: [
        Case("rows of a matrix", scores=rng.normal(size=(3, 5)), axis=-1),
        Case("columns of a matrix", scores=rng.normal(size=(3, 5)), axis=0),
        Case("the middle one of three axes", scores=rng.normal(size=(2, 5, 3)), axis=1),
        Case("scores near a thousand", scores=1000.0 + 10.0 * rng.normal(size=(5, 7)), axis=-1),
        Case("scores near minus a thousand", scores=-1000.0 + 10.0 * rng.normal(size=(5, 7)), axis=-1),
        Case("one row near 1000, one near -1000", scores=rng.normal(size=(2, 7)) + np.array([[1000.0], [-1000.0]]), axis=-1),
        Case("a wide spread within each row", scores=rng.normal(size=(3, 7)) + 1500.0 * np.array([-1, -1, -1, -1, 1, 1, 1]), axis=-1),
        Case("an axis counted from the end", scores=rng.normal(size=(2, 5, 3)), axis=-3),
        Case("a single axis", scores=rng.normal(size=5), axis=0),
        Case("a single entry to share among", scores=rng.normal(size=(7, 1)), axis=1),
    ],
    wrong=[
        Wrong(
            "no maximum subtracted",
            _plain_softmax,
            "exp overflows to inf (or every term underflows to 0), and inf / inf or 0 / 0 is NaN: subtract the maximum first, "
            "{eq}`stable-softmax`",
        ),
        Wrong(
            "the maximum of the whole array subtracted",
            _global_max_softmax,
            "a row far below the largest score of the array underflows to 0 / 0: take the maximum along `axis`, with keepdims=True",
        ),
        Wrong(
            "softmax over the last axis, whatever `axis` says",
            lambda scores, axis: softmax(scores, -1),
            "the argument `axis` says along which axis the weights sum to 1; you always used the last",
        ),
        Wrong(
            "softmax over the first axis, whatever `axis` says",
            lambda scores, axis: softmax(scores, 0),
            "the argument `axis` says along which axis the weights sum to 1; you always used the first",
        ),
        Wrong(
            "softmax over all entries at once",
            lambda scores, axis: softmax(scores.ravel()).reshape(scores.shape),
            "your weights sum to 1 over the whole array; they must sum to 1 along `axis`",
        ),
        Wrong(
            "NaN replaced by 0",
            lambda scores, axis: np.nan_to_num(_plain_softmax(scores, axis)),
            "the NaN came from an overflow, and the weights behind it are lost: subtract the maximum, and no NaN arises",
        ),
        Wrong(
            "the logarithm of the weights",
            lambda scores, axis: scores - np.expand_dims(logsumexp(scores, axis), axis),
            "that is ln s, {eq}`log-softmax`, a log-softmax: take its exponential",
        ),
        Wrong(
            "not normalised",
            lambda scores, axis: np.exp(scores - scores.max(axis=axis, keepdims=True)),
            "the exponentials are right, but nothing divides them by their sum",
        ),
    ],
    hints=[
        "Two reductions run along `axis`: a maximum and a sum. What do `keepdims=True` results broadcast against?",
        "A slice may lie anywhere, and its exponentials must neither overflow nor all vanish. Which number may you subtract from it?",
        "For scores of shape (2, 5, 3) and `axis=1`, the maximum and the sum both have the shape (2, 1, 3).",
    ],
)


def _entropy(n: int, r: int, *, of_low: float = 1.0, of_high: float = 1.0) -> float:
    """The entropy of n weights 1/(n + r) and one r/(n + r), of which a part may be left out."""
    low, high = 1 / (n + r), r / (n + r)
    return -of_low * n * low * math.log(low) - of_high * high * math.log(high)


ENTROPY = Task(
    id="entropy-by-hand",
    title="The most undecided weights",
    entry="my_entropy",
    kind="predict",
    equation="free-energy-identity",
    points=1,
    difficulty=3,
    minutes=8,
    trains="finding beta, and with it the largest entropy",
    tolerance=4e-3,  # three digits are promised: 1.15 for 1.1537 is off by 3.2e-3
    variants=every(n=(2, 3, 5), r=(2, 4, 6)),
    answer=_entropy,
    wrong=[
        Wrong(
            "measured in bits",
            lambda n, r: _entropy(n, r) / math.log(2.0),
            "that is the entropy in bits; with the natural logarithm the unit is the nat",
        ),
        Wrong(
            "the entropy of equal weights",
            lambda n, r: math.log(n + 1.0),
            "equal weights have the largest entropy of all, but their average score is another: here it is given",
        ),
        Wrong(
            "the minus sign forgotten", lambda n, r: -_entropy(n, r), "every ln p_i is negative, so an entropy is not: H = -sum p_i ln p_i"
        ),
        Wrong(
            "the logarithms not weighted",
            lambda n, r: (n + 1) * math.log(n + r) - math.log(r),
            "you added -ln p_i with weight 1 each; the entropy weights each of them with p_i",
        ),
        Wrong(
            "the mean score forgotten",
            lambda n, r: math.log(n + r),
            "that is lse(beta z), the first term of {eq}`free-energy-identity`; beta times the average must be subtracted",
        ),
        Wrong(
            "one of the equal weights left out",
            lambda n, r: _entropy(n, r, of_low=1 - 1 / n),
            "each of the n equal weights adds its part",
        ),
        Wrong(
            "beta taken for one",
            lambda n, r: math.log(n + math.e) - r / (n + r),
            "that is lse(z) less the average score, the entropy if beta were one; the average asks for another beta",
        ),
    ],
    hints=[
        "Which weights have the largest entropy among all with a given average? One number in them is unknown.",
        "They are softmax(beta z). With one score 1 and n scores 0, their average is the weight of the score 1.",
        "Set that weight equal to the given average, which tells e^beta. What is the divergence in {eq}`free-energy-identity` then?",
    ],
)


def _tempered_broken(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Weights of each query (row) over the keys (columns); a higher temperature
    flattens them.
    """
    shifted = scores - scores.max()
    unnormalised = np.exp(shifted) / temperature
    return unnormalised / unnormalised.sum(axis=0)


TEMPERED_REPAIR = Task(
    id="repair-softmax-temperature",
    title="Repair a softmax with temperature",
    entry="tempered_weights",
    kind="repair",
    equation="softmax-with-temperature",
    points=2,
    difficulty=3,
    minutes=10,
    trains="finding mistakes that raise no error",
    answer=lambda scores, temperature: softmax(scores, temperature=temperature),
    broken=_tempered_broken,
    forbid=(forbidden.SOFTMAX,),
    cases=lambda rng: [
        Case("a cold softmax", scores=rng.normal(size=(3, 5)), temperature=0.4),
        Case("a hot softmax", scores=rng.normal(size=(5, 7)), temperature=3.0),
        Case("one row near 1000, one near -1000, cold", scores=rng.normal(size=(2, 5)) + np.array([[1000.0], [-1000.0]]), temperature=0.4),
        Case("scores near minus four thousand, hot", scores=rng.normal(size=(3, 7)) - 4000.0, temperature=3.0),
        Case("thousands within each row, very hot", scores=2000.0 * rng.normal(size=(3, 5)), temperature=1000.0),
        Case("one query", scores=rng.normal(size=(1, 5)), temperature=2.0),
    ],
    wrong=[
        Wrong("not repaired yet", _tempered_broken, "each of the three lines holds one mistake: an axis twice, and once a place"),
        Wrong(
            "the temperature outside the exponential",
            lambda scores, temperature: softmax(scores),
            "a factor outside the exponential cancels against the sum: the temperature must divide the scores",
        ),
        Wrong(
            "softmax over the queries",
            lambda scores, temperature: softmax(scores, axis=0, temperature=temperature),
            "each query's weights must sum to 1: sum along the keys, the last axis",
        ),
        Wrong(
            "the maximum of all queries",
            lambda scores, temperature: _global_max_softmax(scores / temperature, -1),
            "a row far below the largest score of the array becomes 0 / 0: each row needs its own maximum",
        ),
        Wrong(
            "the temperature multiplied",
            lambda scores, temperature: softmax(scores * temperature),
            "a higher temperature must flatten the weights: divide the scores by it",
        ),
    ],
    hints=[
        "Three lines, three mistakes. Try the function on two rows whose scores differ by a thousand, and at two temperatures.",
        "Which reductions must run along the keys? What becomes of a factor that stands in both numerator and denominator?",
        "Both reductions belong to a row, one number for each; and a factor can act only where it does not cancel.",
    ],
)


TASKS = [
    STABLE_SOFTMAX,
    ENTROPY,
    LOG_SOFTMAX_DERIVATIVE,
    JACOBIAN,
    TEMPERED_REPAIR,
    CROSS_ENTROPY_GRADIENT,
    COOLING,
    SHIFT_INVARIANCE,
    MULTIPLIER,
    CAUCHY,
    *TURNS,
]
