"""Fast attention: the backward pass with recomputation.

A loss reads the output O and perhaps L, the log-sum-exp of each row; dX stands for its gradient by X.
"""

from typing import NamedTuple

import numpy as np
import sympy
from sympy import Matrix, exp

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.derivatives import jacobian
from attn_course.equations.matrices import weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, lse_symbols, positive_symbols, real_symbols, total

s = real_symbols("s", 3)


class _Pass(NamedTuple):
    """Inputs, gradients from above, and what the forward pass computed: T_q = 4, T_k = 5, d_k = 3, d_v = 2."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    d_output: np.ndarray
    d_lse: np.ndarray
    S: np.ndarray
    P: np.ndarray
    O: np.ndarray  # noqa: E741  # the letter of the equations
    L: np.ndarray


def _pass(rng: np.random.Generator) -> _Pass:
    Q, K, V, dO = (rng.normal(size=shape) for shape in ((4, 3), (5, 3), (5, 2), (4, 2)))
    S = Q @ K.T / np.sqrt(3)
    P = weights_of(S)
    return _Pass(Q, K, V, dO, rng.normal(size=4), S, P, P @ V, np.log(np.exp(S).sum(axis=1)))


def _loss(scores: np.ndarray, value: np.ndarray, of: _Pass, with_lse: bool = False) -> np.ndarray:
    """Return a loss whose gradients by O (and L) are dO (and dL); complex arrays pass."""
    loss = ((weights_of(scores) @ value) * of.d_output).sum()
    return np.asarray(loss + (np.log(np.exp(scores).sum(axis=1)) * of.d_lse).sum() if with_lse else loss)


# ---- 12.5 recompute instead of store


@equation(
    "weights-from-lse",
    r"p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{l} e^{s_{il}}",
    rows=["M1"],
    uses=["log-softmax", "row-lse-and-output"],
    kind="numeric",
    scope="T_q = 4, T_k = 5",
)
def weights_from_the_log_sum_exp(rng: np.random.Generator) -> Claims:
    """One number for each row, kept from the forward pass, gives back any tile of weights without a second pass over the row."""
    for _ in range(3):
        of = _pass(rng)
        weights, lse = reference.attention(of.Q, of.K, of.V, return_weights=True, return_lse=True)[1:]
        yield (weights, lse), (np.exp(of.S - lse[:, None]), np.log(sum(np.exp(of.S[:, j]) for j in range(5))))


@weights_from_the_log_sum_exp.wrong("e^{s - m}, with the maximum kept instead")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    return of.P, np.exp(of.S - of.S.max(axis=1, keepdims=True))


@equation(
    "gradients-through-weighted-sum",
    r"dV = P^\top dO, \qquad dP = dO\, V^\top",
    rows=["M1", "D2"],
    uses=["gradient-of-values", "gradient-of-weights"],
    assumes=["O = P V"],
    kind="numeric",
    scope="T_q = 4, T_k = 5, d_v = 2",
)
def gradients_of_the_product(rng: np.random.Generator) -> Claims:
    """A value sums up what its weights sent out; a weight gets the product of what came back with its value."""
    for _ in range(3):
        of = _pass(rng)
        by_value = jacobian(lambda value, of=of: (of.P @ value * of.d_output).sum(), of.V)  # type: ignore[misc]
        by_weight = jacobian(lambda weights, of=of: (weights @ of.V * of.d_output).sum(), of.P)  # type: ignore[misc]
        yield by_value, np.array([[sum(of.P[i, j] * of.d_output[i, c] for i in range(4)) for c in range(2)] for j in range(5)])
        yield by_weight, of.d_output @ of.V.T


@gradients_of_the_product.wrong("P instead of its transpose")
def _(rng: np.random.Generator) -> Sides:
    S, V, dO = rng.normal(size=(4, 4)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    return jacobian(lambda value: (weights_of(S) @ value * dO).sum(), V), weights_of(S) @ dO


@equation(
    "score-gradient-by-entry",
    r"dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \sum_{l} p_{il}\, dP_{il}",
    rows=["M1", "D2"],
    uses=["softmax-vector-jacobian-product", "gradient-of-scores", "gradients-through-weighted-sum"],
    assumes=["P = softmax of the rows of S"],
    kind="numeric",
    scope="T_q = 4, T_k = 5",
)
def gradient_of_the_scores(rng: np.random.Generator) -> Claims:
    """The Jacobian of softmax, row by row. delta_i is a sum over all keys, which a tile does not have."""
    for _ in range(3):
        of = _pass(rng)
        dP = of.d_output @ of.V.T
        by_scores = jacobian(lambda scores, of=of: _loss(scores, of.V, of), of.S)  # type: ignore[misc]
        yield by_scores, of.P * (dP - sum(of.P[:, j] * dP[:, j] for j in range(5))[:, None])


@gradient_of_the_scores.wrong("P times dP, the normaliser forgotten")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    return jacobian(lambda scores: _loss(scores, of.V, of), of.S), of.P * (of.d_output @ of.V.T)


@gradient_of_the_scores.wrong("the sum over queries instead of keys")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    dP = of.d_output @ of.V.T
    return jacobian(lambda scores: _loss(scores, of.V, of), of.S), of.P * (dP - (of.P * dP).sum(axis=0))


@equation(
    "row-delta-from-output",
    r"\delta_i = \sum_{l} p_{il}\, (dO_i \cdot v_l) = dO_i \cdot z_i",
    rows=["M1"],
    uses=["score-gradient-against-mixture", "gradients-through-weighted-sum", "score-gradient-by-entry"],
    assumes=["z_i = sum_l p_il v_l, a row of O"],
    scope="3 keys, d_v = 2",
)
def delta_trick() -> Sides:
    """Pull the product out of the sum: delta needs the output only, and is known before the first tile of the backward pass."""
    P, V, dO = positive_symbols("p", 3), Matrix(3, 2, real_symbols("v", 6)), real_symbols("d", 2)
    o = [total(P[j] * V[j, c] for j in range(3)) for c in range(2)]
    return total(P[j] * (dO[0] * V[j, 0] + dO[1] * V[j, 1]) for j in range(3)), dO[0] * o[0] + dO[1] * o[1]


@delta_trick.wrong("the sum of dO")
def _() -> Sides:
    P, V, dO = positive_symbols("p", 3), Matrix(3, 2, real_symbols("v", 6)), real_symbols("d", 2)
    return total(P[j] * (dO[0] * V[j, 0] + dO[1] * V[j, 1]) for j in range(3)), total(dO)


@equation(
    "gradients-through-scaled-scores",
    r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    rows=["M1", "D2"],
    uses=["query-and-key-gradients", "score-gradient-by-entry"],
    assumes=["S = Q K^T / sqrt(d_k)"],
    kind="numeric",
    scope="T_q = 4, T_k = 5, d_k = 3",
)
def gradients_of_queries_and_keys(rng: np.random.Generator) -> Claims:
    """The scale is part of the scores, so it comes back in both."""
    for _ in range(3):
        of = _pass(rng)
        by_query = jacobian(lambda query, of=of: _loss(query @ of.K.T / np.sqrt(3), of.V, of), of.Q)  # type: ignore[misc]
        by_key = jacobian(lambda key, of=of: _loss(of.Q @ key.T / np.sqrt(3), of.V, of), of.K)  # type: ignore[misc]
        dS = of.P * (of.d_output @ of.V.T - (of.d_output * of.O).sum(axis=1, keepdims=True))
        yield (by_query, by_key), (dS @ of.K / np.sqrt(3), dS.T @ of.Q / np.sqrt(3))


@gradients_of_queries_and_keys.wrong("without the scale")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    dS = of.P * (of.d_output @ of.V.T - (of.d_output * of.O).sum(axis=1, keepdims=True))
    return jacobian(lambda query: _loss(query @ of.K.T / np.sqrt(3), of.V, of), of.Q), dS @ of.K


@equation(
    "row-lse-gradient",
    r"\frac{\partial L_i}{\partial s_{ij}} = p_{ij}",
    rows=["M1"],
    uses=["lse-gradient", "weights-from-lse"],
    scope="n = 3",
)
def gradient_of_the_log_sum_exp() -> Sides:
    """Eq. lse-gradient: the same tile of weights that the backward pass rebuilds anyway."""
    return column(lse_symbols(s).diff(s_j) for s_j in s), Matrix(3, 1, lambda j, _: exp(s[j]) / total(exp(s_l) for s_l in s))


gradient_of_the_log_sum_exp.wrong("1 at the largest score, else 0")(
    lambda: (lse_symbols(s).diff(s[0]), sympy.Piecewise((1, s[0] >= sympy.Max(*s)), (0, True)))
)


@equation(
    "score-gradient-with-lse",
    r"dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i - dL_i) \bigr)",
    rows=["M1"],
    uses=["score-gradient-by-entry", "row-delta-from-output", "row-lse-gradient"],
    assumes=["the loss reads O and L"],
    kind="numeric",
    scope="T_q = 4, T_k = 5",
)
def gradient_with_the_log_sum_exp(rng: np.random.Generator) -> Claims:
    """Add p_ij dL_i and collect: the gradient of L costs nothing but a subtraction.

    So merged outputs, Eq. merge-of-finished-outputs, can be trained.
    """
    for _ in range(3):
        of = _pass(rng)
        dP, delta = of.d_output @ of.V.T, (of.d_output * of.O).sum(axis=1)
        by_scores = jacobian(lambda scores, of=of: _loss(scores, of.V, of, with_lse=True), of.S)  # type: ignore[misc]
        yield by_scores, of.P * (dP - (delta - of.d_lse)[:, None])


@gradient_with_the_log_sum_exp.wrong("delta + dL")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    delta = (of.d_output * of.O).sum(axis=1)
    by_scores = jacobian(lambda scores: _loss(scores, of.V, of, with_lse=True), of.S)
    return by_scores, of.P * (of.d_output @ of.V.T - (delta + of.d_lse)[:, None])


@gradient_with_the_log_sum_exp.wrong("dL left out")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    delta = (of.d_output * of.O).sum(axis=1)
    by_scores = jacobian(lambda scores: _loss(scores, of.V, of, with_lse=True), of.S)
    return by_scores, of.P * (of.d_output @ of.V.T - delta[:, None])


@equation(
    "key-gradient-in-blocks",
    r"dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b",
    rows=["M1"],
    uses=["weights-from-lse", "row-delta-from-output", "gradients-through-scaled-scores"],
    assumes=["b: blocks of queries", "P_b = e^{Q_b K^T / sqrt(d_k) - L_b}, recomputed", "delta_b = row sums of dO_b * O_b"],
    kind="numeric",
    scope="T_q = 4 in blocks of 1, 3 and 4; against the backward pass of the package",
)
def backward_in_blocks(rng: np.random.Generator) -> Claims:
    """Tiles of queries pass by a block of keys, which sums up its gradient: no two programs add to the same place, so no atomics."""
    of = _pass(rng)
    d_key = reference.attention_backward(of.Q, of.K, of.V, of.d_output)[1]
    for size in (1, 3, 4):
        blocks = [slice(start, start + size) for start in range(0, 4, size)]
        P = [np.exp(of.Q[block] @ of.K.T / np.sqrt(3) - of.L[block, None]) for block in blocks]
        delta = [(of.d_output[block] * of.O[block]).sum(axis=1, keepdims=True) for block in blocks]
        yield d_key, sum((P[i] * (of.d_output[c] @ of.V.T - delta[i])).T @ of.Q[c] for i, c in enumerate(blocks)) / np.sqrt(3)


@backward_in_blocks.wrong("P normalised within each block of keys")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    P = np.hstack([weights_of(of.S[:, :2]), weights_of(of.S[:, 2:])])
    dS = P * (of.d_output @ of.V.T - (of.d_output * of.O).sum(axis=1, keepdims=True))
    return reference.attention_backward(of.Q, of.K, of.V, of.d_output)[1], dS.T @ of.Q / np.sqrt(3)


# ---- 12.6 what the backward pass costs


@equation(
    "attention-backward-flops",
    r"F_{\mathrm{backward}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \qquad d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2}",
    rows=["M1"],
    uses=["attention-forward-flops", "gradients-through-scaled-scores"],
    assumes=["the scores computed again", "a multiply-add counts 2"],
    kind="numeric",
    scope="three shapes, counted while computing",
)
def flops_of_the_backward_pass(rng: np.random.Generator) -> Claims:
    """Five products for the two of the forward pass: S again, dP, dV, dQ, dK."""
    for q_len, kv_len, d_k, d_v in ((3, 5, 4, 2), (1, 7, 3, 3), (6, 6, 2, 5)):
        yield 2 * _five(q_len, kv_len, d_k, d_v), 2 * q_len * kv_len * (3 * d_k + 2 * d_v)
    forward = multiplications(lambda q, k, v: (q @ k.T) @ v, (3, 4), (5, 4), (5, 4))
    yield _five(3, 5, 4, 4) / forward, 5 / 2


def _five(q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    shapes = (q_len, d_k), (kv_len, d_k), (kv_len, d_v), (q_len, d_v), (q_len, kv_len)
    return multiplications(lambda q, k, v, d_o, tile: (q @ k.T, d_o @ v.T, tile.T @ d_o, tile @ k, tile.T @ q), *shapes)


flops_of_the_backward_pass.wrong("twice the forward pass: the scores were kept")(
    lambda rng: (2 * _five(3, 5, 4, 2), 2 * 3 * 5 * (2 * 4 + 2 * 2))
)


@equation(
    "two-kernel-backward-flops",
    r"F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \qquad d_k = d_v:\;"
    r" \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5}",
    rows=["M1"],
    uses=["key-gradient-in-blocks", "attention-backward-flops"],
    assumes=["one kernel for dK and dV, one for dQ; each rebuilds S and dP", "a multiply-add counts 2"],
    kind="numeric",
    scope="three shapes, counted while computing",
)
def flops_without_atomics(rng: np.random.Generator) -> Claims:
    """Seven products where five are counted: the price of sums in a fixed order, the same to the last bit in every run."""
    for q_len, kv_len, d_k, d_v in ((3, 5, 4, 2), (1, 7, 3, 3), (6, 6, 2, 5)):
        yield 2 * _seven(q_len, kv_len, d_k, d_v), 2 * q_len * kv_len * (4 * d_k + 3 * d_v)
    yield _seven(3, 5, 4, 4) / _five(3, 5, 4, 4), 7 / 5


def _seven(q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    shapes = (q_len, d_k), (kv_len, d_k), (kv_len, d_v), (q_len, d_v), (q_len, kv_len)
    by_keys = multiplications(lambda q, k, v, d_o, tile: (k @ q.T, v @ d_o.T, tile.T @ d_o, tile.T @ q), *shapes)
    return by_keys + multiplications(lambda q, k, v, d_o, tile: (q @ k.T, d_o @ v.T, tile @ k), *shapes)


flops_without_atomics.wrong("five, as counted")(lambda rng: (2 * _seven(3, 5, 4, 2), 2 * 3 * 5 * (3 * 4 + 2 * 2)))


@equation(
    "tiled-training-memory",
    r"\frac{N_{\mathrm{stored}}^{\mathrm{tiled}}}{N_{\mathrm{stored}}^{\mathrm{plain}}} = \frac{T\, (d_v + 1)}{T\, (d_v + T)}",
    rows=["M1"],
    uses=["weights-from-lse", "row-delta-from-output"],
    assumes=["numbers kept for the backward pass beside Q, K, V: O and L, against O and P", "T_q = T_k = T"],
    kind="numeric",
    scope="T = 4, d_v = 2, and T = 1 to 9",
)
def memory_of_training(rng: np.random.Generator) -> Claims:
    """O(T) instead of O(T^2): recomputing is cheaper than storing, because memory is what is slow and short."""
    for length in range(1, 10):
        query, key, value = rng.normal(size=(length, 3)), rng.normal(size=(length, 3)), rng.normal(size=(length, 2))
        output, weights, lse = reference.attention(query, key, value, return_weights=True, return_lse=True)
        yield (output.size + lse.size) / (output.size + weights.size), length * (2 + 1) / (length * (2 + length))


@memory_of_training.wrong("the same: P must be kept")
def _(rng: np.random.Generator) -> Sides:
    of = _pass(rng)
    return (of.O.size + of.L.size) / (of.O.size + of.P.size), 1.0
