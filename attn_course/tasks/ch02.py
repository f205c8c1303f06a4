"""The graded tasks of chapter 02, softmax."""

import math
from typing import Any

import numpy as np

from attn_course.reference import softmax, softmax_jacobian, softmax_vjp
from attn_course.tasks.core import Case, Task, Wrong

SOFTMAX_CALLS = (
    ".softmax",
    ".log_softmax",
    ".logsumexp",
    "torch.nn.Softmax",
    "torch.nn.functional.softmax",
    "torch.nn.functional.log_softmax",
    "torch.softmax",
    "torch.logsumexp",
    "scipy.special.softmax",
    "scipy.special.logsumexp",
)
AUTOGRAD_CALLS = (
    ".backward",
    "torch.autograd.grad",
    "torch.autograd.functional.jacobian",
    "torch.autograd.functional.vjp",
    "torch.func.jacrev",
    "torch.func.jacfwd",
    "torch.func.vjp",
)


def _plain_softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    unnormalised = np.exp(scores)
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


def _global_max_softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    return _plain_softmax(scores - scores.max(), axis)


STABLE_SOFTMAX = Task(
    id="2.1",
    title="Stable softmax on any axis",
    entry="my_softmax",
    kind="write",
    equation="2.19",
    points=3,
    difficulty=2,
    minutes=10,
    trains="axes and the maximum trick",
    answer=softmax,
    forbid=SOFTMAX_CALLS,
    cases=lambda rng: [
        Case("rows of a matrix", scores=rng.normal(size=(3, 5)), axis=-1),
        Case("columns of a matrix", scores=rng.normal(size=(3, 5)), axis=0),
        Case("the middle one of three axes", scores=rng.normal(size=(2, 5, 3)), axis=1),
        Case("scores near a thousand", scores=1000.0 + 10.0 * rng.normal(size=(5, 7)), axis=-1),
        Case("scores near minus a thousand", scores=-1000.0 + 10.0 * rng.normal(size=(5, 7)), axis=-1),
        Case("one row a thousand above the other", scores=rng.normal(size=(2, 7)) + np.array([[1000.0], [0.0]]), axis=-1),
        Case("a single entry to share among", scores=rng.normal(size=(7, 1)), axis=1),
    ],
    wrong=[
        Wrong(
            "no maximum subtracted",
            _plain_softmax,
            "exp overflows to inf (or every term underflows to 0), and inf / inf or 0 / 0 is NaN: subtract the maximum first, Eq. (2.19)",
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
            "not normalised",
            lambda scores, axis: np.exp(scores - scores.max(axis=axis, keepdims=True)),
            "the exponentials are right, but nothing divides them by their sum",
        ),
    ],
    hints=[
        "Two reductions run along `axis`: a maximum and a sum. What do `keepdims=True` results broadcast against?",
        "Subtract the maximum along `axis`, take the exponential, divide by the sum along `axis`.",
        "`unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))`; divide it by its own `.sum(axis=axis, keepdims=True)`.",
    ],
)

ENTROPY = Task(
    id="2.2",
    title="Predict an entropy",
    entry="my_entropy",
    kind="predict",
    equation="2.25",
    points=1,
    difficulty=2,
    minutes=5,
    trains="working a softmax by hand",
    tolerance=1e-3,
    answer=lambda: 1.5 * math.log(2.0),
    wrong=[
        Wrong("measured in bits", lambda: 1.5, "that is the entropy in bits; with the natural logarithm the unit is the nat"),
        Wrong("the entropy of equal weights", lambda: math.log(3.0), "ln 3 belongs to three equal weights; here one score is larger"),
        Wrong(
            "the minus sign forgotten", lambda: -1.5 * math.log(2.0), "every ln s_i is negative, so an entropy is not: H = -sum s_i ln s_i"
        ),
        Wrong(
            "the logarithms not weighted",
            lambda: 5.0 * math.log(2.0),
            "you added -ln s_i with weight 1 each; the entropy weights each of them with s_i",
        ),
        Wrong(
            "the scores normalised instead of their exponentials",
            lambda: 0.0,
            "dividing the scores by their sum gives (0, 0, 1); the softmax takes exponentials first, Eq. (2.1)",
        ),
    ],
    hints=[
        "Which weights belong to these scores? They are simple fractions.",
        "exp gives (1, 1, 2), so the weights are (1/4, 1/4, 1/2).",
        "H = 2 * (1/4) * ln 4 + (1/2) * ln 2; write it with `np.log`.",
    ],
)


def _log_softmax_points(rng: np.random.Generator) -> list[Case]:
    """Points that honour the symbols: where delta_ij is 1, i and j are the same entry."""
    s_i, s_j = rng.uniform(0.05, 0.95, size=(2, 16))
    delta = np.repeat([0.0, 1.0], 8)
    return [Case("16 points", s_i=s_i, s_j=np.where(delta == 1.0, s_i, s_j), delta_ij=delta)]


LOG_SOFTMAX_DERIVATIVE = Task(
    id="2.3",
    title="Differentiate the logarithm of a weight",
    entry="my_derivative",
    kind="derive",
    equation="2.14",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the chain rule through log-sum-exp",
    symbols=("s_i", "s_j", "delta_ij"),
    cases=_log_softmax_points,
    answer=lambda s_i, s_j, delta_ij: delta_ij - s_j,
    wrong=[
        Wrong(
            "the derivative of s_i itself",
            lambda s_i, s_j, delta_ij: s_i * (delta_ij - s_j),
            "that is the derivative of s_i; the logarithm divides it by s_i",
        ),
        Wrong(
            "the Kronecker delta forgotten", lambda s_i, s_j, delta_ij: -s_j, "z_i itself depends on z_j when i = j: that term is missing"
        ),
        Wrong(
            "the normaliser forgotten",
            lambda s_i, s_j, delta_ij: delta_ij,
            "lse(z) depends on every z_j, with derivative s_j: that term is missing",
        ),
        Wrong("the sign turned round", lambda s_i, s_j, delta_ij: s_j - delta_ij, "ln s_i = z_i - lse(z): the term from z_i is positive"),
        Wrong(
            "s_i where s_j belongs",
            lambda s_i, s_j, delta_ij: delta_ij - s_i,
            "you differentiate by z_j, and lse(z) has derivative s_j there",
        ),
        Wrong(
            "the delta times s_j",
            lambda s_i, s_j, delta_ij: s_j * delta_ij - s_j,
            "the derivative of z_i by z_j is delta_ij alone, with no weight on it",
        ),
    ],
    hints=[
        "Start from Eq. (2.14), which writes the logarithm as a difference of two terms.",
        "The derivative of z_i by z_j is delta_ij; Eq. (2.15) has the derivative of lse(z).",
        "`my_derivative = delta_ij - ...`, where the dots are the derivative of lse(z) by z_j.",
    ],
)


def _diagonal(weights: np.ndarray) -> np.ndarray:
    return weights[..., :, None] * np.eye(weights.shape[-1])


def _outer(weights: np.ndarray) -> np.ndarray:
    return weights[..., :, None] * weights[..., None, :]


JACOBIAN = Task(
    id="2.4",
    title="The Jacobian of softmax",
    entry="my_jacobian",
    kind="write",
    equation="2.21",
    points=3,
    difficulty=3,
    minutes=10,
    trains="outer products with batch axes",
    answer=softmax_jacobian,
    forbid=AUTOGRAD_CALLS,
    cases=lambda rng: [
        Case("one row of weights", weights=softmax(rng.normal(size=5))),
        Case("three rows", weights=softmax(rng.normal(size=(3, 7)))),
        Case("two batch axes", weights=softmax(rng.normal(size=(2, 3, 5)))),
        Case("a saturated row", weights=softmax(40.0 * rng.normal(size=7))),
        Case("one weight only", weights=np.ones((3, 1))),
    ],
    wrong=[
        Wrong(
            "the off-diagonal terms forgotten",
            lambda weights: _diagonal(weights * (1.0 - weights)),
            "a softmax couples its entries: raising z_j lowers every other s_i by s_i s_j, off the diagonal",
        ),
        Wrong(
            "the diagonal term forgotten",
            lambda weights: -_outer(weights),
            "only -s_i s_j is there; the delta_ij s_i of Eq. (2.20) adds s_i on the diagonal",
        ),
        Wrong(
            "the outer product added",
            lambda weights: _diagonal(weights) + _outer(weights),
            "the outer product enters with a minus: rows of J sum to 0, Eq. (2.22); yours do not",
        ),
        Wrong(
            "the identity in place of diag(s)",
            lambda weights: np.eye(weights.shape[-1]) - _outer(weights),
            "the diagonal holds s_i, not 1: delta_ij is multiplied by s_i in Eq. (2.20)",
        ),
        Wrong(
            "the derivative of ln s_i",
            lambda weights: np.eye(weights.shape[-1]) - np.broadcast_to(weights[..., None, :], _outer(weights).shape),
            "that is d ln s_i / d z_j; multiply row i by s_i",
        ),
        Wrong(
            "the sign turned round",
            lambda weights: _outer(weights) - _diagonal(weights),
            "raising z_i raises s_i: the diagonal is positive",
        ),
    ],
    hints=[
        "`weights[..., :, None] * weights[..., None, :]` is an outer product for each row. Which axis is i, which is j?",
        "diag(s) with batch axes: `weights[..., :, None] * np.eye(n)`.",
        "`weights[..., :, None] * (np.eye(n) - weights[..., None, :])` is Eq. (2.20) in one line.",
    ],
)


def _tempered_broken(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Weights of each query (row) over the keys (columns); a higher temperature flattens them."""
    shifted = scores - scores.max()
    unnormalised = np.exp(shifted) / temperature
    return unnormalised / unnormalised.sum(axis=0)


TEMPERED_REPAIR = Task(
    id="2.5",
    title="Repair a softmax with temperature",
    entry="tempered_weights",
    kind="repair",
    equation="2.9",
    points=2,
    difficulty=3,
    minutes=10,
    trains="finding mistakes that raise no error",
    answer=lambda scores, temperature: softmax(scores, temperature=temperature),
    broken=_tempered_broken,
    forbid=SOFTMAX_CALLS,
    cases=lambda rng: [
        Case("a cold softmax", scores=rng.normal(size=(3, 5)), temperature=0.4),
        Case("a hot softmax", scores=rng.normal(size=(5, 7)), temperature=3.0),
        Case("rows a thousand apart", scores=rng.normal(size=(2, 5)) + np.array([[1000.0], [0.0]]), temperature=1.3),
    ],
    wrong=[
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
        "Both reductions take `axis=-1, keepdims=True`, and the temperature goes inside: `np.exp(shifted / temperature)`.",
    ],
)

VJP = Task(
    id="2.6",
    title="The backward pass without the Jacobian",
    entry="my_softmax_vjp",
    kind="write",
    equation="2.24",
    points=3,
    difficulty=3,
    minutes=12,
    trains="the product every backward pass needs",
    answer=softmax_vjp,
    forbid=AUTOGRAD_CALLS,
    cases=lambda rng: [
        Case("one row", weights=softmax(rng.normal(size=5)), d_weights=rng.normal(size=5)),
        Case("three rows", weights=softmax(rng.normal(size=(3, 7))), d_weights=rng.normal(size=(3, 7))),
        Case("two batch axes", weights=softmax(rng.normal(size=(2, 3, 5))), d_weights=rng.normal(size=(2, 3, 5))),
        Case("a saturated row", weights=softmax(40.0 * rng.normal(size=7)), d_weights=rng.normal(size=7)),
        Case("a gradient equal for all entries", weights=softmax(rng.normal(size=(2, 5))), d_weights=np.full((2, 5), 3.0)),
    ],
    wrong=[
        Wrong(
            "softmax treated entry by entry",
            lambda weights, d_weights: weights * (1.0 - weights) * d_weights,
            "s (1 - s) is only the diagonal of J; the entries of a softmax depend on each other",
        ),
        Wrong(
            "the mean subtracted, not the weighted mean",
            lambda weights, d_weights: weights * (d_weights - d_weights.mean(axis=-1, keepdims=True)),
            "what is subtracted is s . g, the mean of g under the weights s",
        ),
        Wrong(
            "the sum of g subtracted",
            lambda weights, d_weights: weights * (d_weights - d_weights.sum(axis=-1, keepdims=True)),
            "what is subtracted is s . g: each g_j counts with its weight s_j",
        ),
        Wrong("nothing subtracted", lambda weights, d_weights: weights * d_weights, "that is diag(s) g; the part from -s s^T is missing"),
        Wrong(
            "one sum over all rows",
            lambda weights, d_weights: weights * (d_weights - (weights * d_weights).sum()),
            "each row has its own s . g: sum along the last axis and keep it",
        ),
        Wrong(
            "the sign turned round",
            lambda weights, d_weights: weights * ((weights * d_weights).sum(axis=-1, keepdims=True) - d_weights),
            "J is diag(s) minus the outer product: g comes first, s . g is subtracted",
        ),
    ],
    hints=[
        "Multiply J = diag(s) - s s^T with g on paper, and do not write out the matrix.",
        "diag(s) g is an elementwise product; s s^T g is s times one number for each row.",
        "That number is `(weights * d_weights).sum(axis=-1, keepdims=True)`.",
    ],
)


def _three_temperatures() -> dict[str, Any]:
    scores, temperatures = np.array([2.0, 1.0, 0.0, -1.0]), (1.0, 4.0, 0.5)
    weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
    return {"scores": scores, "weights": weights, "temperatures": temperatures, "hide_temperatures": True}


READ_TEMPERATURES = Task(
    id="2.7",
    title="Read three temperatures",
    entry="my_temperatures",
    kind="figure",
    equation="2.9",
    points=1,
    difficulty=1,
    minutes=5,
    trains="reading a ratio of weights off a figure",
    tolerance=1e-3,
    answer=lambda: (1.0, 4.0, 0.5),
    figure_data=_three_temperatures,
    wrong=[
        Wrong("hot and cold exchanged", lambda: (1.0, 0.5, 4.0), "a high temperature flattens: B is the hot one, C the cold one"),
        Wrong("the inverse temperature", lambda: (1.0, 0.25, 2.0), "that is beta = 1 / T for each panel; the question is T"),
        Wrong("in order of size", lambda: (0.5, 1.0, 4.0), "the panels are not sorted: in which one do neighbours differ by the factor e?"),
    ],
    hints=[
        "Neighbouring scores differ by 1. What is the ratio of their weights?",
        "Neighbouring weights have the ratio e^(1/T): about 7.4, 2.7 and 1.3 for the three temperatures.",
        "The flattest panel has T = 4, the sharpest T = 0.5: `my_temperatures = (T of A, T of B, T of C)`.",
    ],
)


def _cross_entropy_points(rng: np.random.Generator) -> list[Case]:
    s_i, temperature = rng.uniform(0.05, 0.95, size=16), rng.uniform(0.3, 3.0, size=16)
    return [Case("16 points", s_i=s_i, delta_iy=np.repeat([0.0, 1.0], 8), T=temperature)]


CROSS_ENTROPY_GRADIENT = Task(
    id="2.8",
    title="Cross-entropy at a temperature",
    entry="my_gradient",
    kind="derive",
    equation="2.32",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the gradient that training starts from",
    symbols=("s_i", "delta_iy", "T"),
    cases=_cross_entropy_points,
    answer=lambda s_i, delta_iy, t: (s_i - delta_iy) / t,
    wrong=[
        Wrong(
            "the temperature forgotten",
            lambda s_i, delta_iy, t: s_i - delta_iy,
            "z enters as z / T, so the chain rule leaves a factor 1 / T",
        ),
        Wrong("multiplied by T", lambda s_i, delta_iy, t: t * (s_i - delta_iy), "the derivative of z / T by z is 1 / T, not T"),
        Wrong(
            "the sign turned round", lambda s_i, delta_iy, t: (delta_iy - s_i) / t, "that is the gradient of ln s_y; the loss is -ln s_y"
        ),
        Wrong("the label forgotten", lambda s_i, delta_iy, t: s_i / t, "the term -z_y / T of the loss depends on z_i when i = y"),
        Wrong(
            "one term without its 1 / T",
            lambda s_i, delta_iy, t: s_i / t - delta_iy,
            "both terms of the loss hold z / T: lse(z / T) and -z_y / T",
        ),
        Wrong("divided by T twice", lambda s_i, delta_iy, t: (s_i - delta_iy) / t**2, "the chain rule gives one factor 1 / T, not two"),
    ],
    hints=[
        "Write the loss with Eq. (2.31), with z / T in place of z.",
        "Loss = lse(z / T) - z_y / T. The derivative of lse is the softmax; what does the inner function z / T add?",
        "At T = 1 the answer is s_i - delta_iy, Eq. (2.32). A factor is missing.",
    ],
)


def _pairs(blocks: list[np.ndarray], rescale: float) -> tuple[np.ndarray, np.ndarray]:
    """The online pass with the exponent of its rescaling multiplied by `rescale` (1 is right)."""
    row_max, row_sum = -np.inf, 0.0
    for block in blocks:
        new_max = max(row_max, block.max())
        kept = row_sum * np.exp(rescale * (row_max - new_max)) if row_sum else 0.0
        row_sum = kept + np.exp(block - new_max).sum()
        row_max = new_max
    return np.asarray(row_max), np.asarray(row_sum)


def _last_max(blocks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    row_max, row_sum = blocks[0].max(), 0.0
    for block in blocks:
        row_sum = row_sum * np.exp(row_max - block.max()) + np.exp(block - block.max()).sum()
        row_max = block.max()
    return np.asarray(row_max), np.asarray(row_sum)


ONLINE_SOFTMAX = Task(
    id="2.9",
    title="Softmax in one pass over blocks",
    entry="my_online_normaliser",
    kind="write",
    equation="2.34",
    points=3,
    difficulty=4,
    minutes=15,
    trains="the running maximum and sum of FlashAttention",
    answer=lambda blocks: _pairs(blocks, 1.0),
    forbid=SOFTMAX_CALLS,
    cases=lambda rng: [
        Case("three blocks of different lengths", blocks=[rng.normal(size=n) for n in (3, 5, 2)]),
        Case("a maximum that keeps growing", blocks=[np.array([-2.0, 0.5]), np.array([3.0]), np.array([5.0, 4.0, 5.5])]),
        Case("the maximum in the first block", blocks=[5.0 + rng.uniform(size=3), rng.normal(size=7)]),
        Case("scores near a thousand", blocks=[1000.0 + rng.normal(size=3), 1002.0 + rng.normal(size=2)]),
        Case("scores near minus a thousand", blocks=[-1000.0 + rng.normal(size=2), -1001.0 + rng.normal(size=5)]),
        Case("a single block", blocks=[rng.normal(size=7)]),
    ],
    wrong=[
        Wrong(
            "the old sum not rescaled",
            lambda blocks: _pairs(blocks, 0.0),
            "when the maximum grows, the old sum is still measured from the old one: multiply it by exp(old maximum - new maximum)",
        ),
        Wrong(
            "rescaled in the wrong direction",
            lambda blocks: _pairs(blocks, -1.0),
            "the old terms shrink when the maximum grows: the factor is exp(old - new), at most 1",
        ),
        Wrong(
            "the maximum of the last block kept",
            _last_max,
            "the maximum must be the largest score so far, not that of the block at hand",
        ),
        Wrong(
            "no maximum subtracted",
            lambda blocks: (np.asarray(max(b.max() for b in blocks)), np.asarray(sum(np.exp(b).sum() for b in blocks))),
            "the sum holds e^z, not e^(z - m): it overflows for large scores",
        ),
        Wrong(
            "each block measured from its own maximum",
            lambda blocks: (
                np.asarray(max(b.max() for b in blocks)),
                np.asarray(sum(np.exp(b - b.max()).sum() for b in blocks)),
            ),
            "sums measured from different maxima cannot simply be added: bring both to the larger one first, Eq. (2.34)",
        ),
    ],
    hints=[
        "Two numbers are all you may remember between blocks: the largest score so far, and the sum measured from it.",
        "For each block: the new maximum; the old sum times exp(old maximum - new maximum); plus the block's own terms.",
        "From `row_max, row_sum = -np.inf, 0.0`: `row_sum = row_sum * np.exp(row_max - new_max) + np.exp(block - new_max).sum()`.",
    ],
)

TASKS = [
    STABLE_SOFTMAX,
    ENTROPY,
    LOG_SOFTMAX_DERIVATIVE,
    JACOBIAN,
    TEMPERED_REPAIR,
    VJP,
    READ_TEMPERATURES,
    CROSS_ENTROPY_GRADIENT,
    ONLINE_SOFTMAX,
]
