"""Fast attention: the backward pass with recomputation.

A loss reads the output O and perhaps L, the log-sum-exp of each row; dX stands for its gradient by X.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import Normal, tables
from attn_course.formulas import columns, derivative, matrices, matrix, of, vector
from attn_course.formulas.givens import Given

claim = about("M1")


def drawn(normal: Normal, T_q: int, T_k: int, d_k: int, d_v: int) -> list[np.ndarray]:
    """Return Q, K, V and dO."""
    return tables(normal, (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v))


def loss(weights: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> float:
    """Return a loss whose gradient by the output P V is d_output."""
    return float(((weights @ value) * d_output).sum())


def score_givens(normal: Normal, T_q: int, T_k: int, d_v: int, d_lse: np.ndarray | None = None) -> dict[str, Given]:
    """Return p, dP, dS and delta, where the loss reads the output and, if d_lse is given, L; all gradients by differences."""
    S, V, dO = 1.5 * normal(T_q, T_k), normal(T_k, d_v), normal(T_q, d_v)
    P = reference.softmax(S)

    def by_scores(scores: np.ndarray) -> float:
        shares = np.exp(scores)
        sums = shares.sum(axis=1)
        return loss(shares / sums[:, None], V, dO) + (0.0 if d_lse is None else float(np.log(sums) @ d_lse))

    gradients = {"dP": derivative(lambda weights: loss(weights, V, dO), P), "dS": derivative(by_scores, S)}
    return {"p": matrix(P), r"\delta": row_deltas(P, V, dO), **gradients}


def row_deltas(P: np.ndarray, V: np.ndarray, dO: np.ndarray) -> Given:
    """Return the sum of p_il dP_il over the keys: the derivative of the loss by a factor on row i of P."""
    return derivative(lambda factors: loss(factors[:, None] * P, V, dO), np.ones(len(P)))


# ---- recompute instead of store
@claim("weights-from-lse", rests_on="log-softmax row-lse-and-output")
def _(normal, T_q, T_k, d_k, d_v):
    r"""p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{j} e^{s_{ij}}
    One number for each row, kept from the forward pass, gives back any tile of weights without a second pass over the row.
        the maximum kept instead: \ln \sum_{j} e^{s_{ij}} -> \max_{j} s_{ij}
        the sum without its logarithm: = \ln -> =
        a column instead of a row: p_{ij} = e^{s_{ij} - L_j}, \qquad L_j = \ln \sum_{i} e^{s_{ij}}
    """
    Q, K, V, _ = drawn(normal, T_q, T_k, d_k, d_v)
    weights, lse = reference.attention(Q, K, V, return_weights=True, return_lse=True)[1:]
    return {"p": matrix(weights), "L": vector(lse), "s": matrix(reference.scaled_dot_scores(Q, K))}


@claim(
    "score-gradient-with-lse",
    rests_on="score-gradient-against-mixture lse-gradient weights-from-lse",
    beside=(r"\delta_i = \sum_l p_{il}\, dP_{il}",),
)
def _(normal, T_q, T_k, d_v):
    r"""dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i - dL_i) \bigr)
    where the loss reads O and L
    Add p_ij dL_i and collect: the gradient of L costs nothing but a subtraction.
        delta + dL: - dL_i -> + dL_i
        dL not weighted: dS_{ij} = p_{ij}\, ( dP_{ij} - \delta_i ) + dL_i
        dL for delta: dS_{ij} = p_{ij}\, ( dP_{ij} - dL_i ) - \delta_i

    So merged outputs, Eq. merge-of-finished-outputs, can be trained.
    """
    d_lse = normal(T_q)
    return score_givens(normal, T_q, T_k, d_v, d_lse) | {"dL": vector(d_lse)}


@claim("key-gradient-in-blocks", rests_on="weights-from-lse score-gradient-against-mixture query-and-key-gradients")
def _(normal, g, B, T_k, d_k, d_v):
    r"""dK = \frac{1}{\sqrt{d_k}} \sum_{r} \bigl( P_r \odot (dO_r V^\top - \delta_r\, \mathbf{1}^\top) \bigr)^{\!\top} Q_r
    where r: blocks of queries ;; P_r = e^{Q_r K^T / sqrt(d_k) - L_r}, recomputed ;; delta_r = row sums of dO_r * O_r
    Tiles of queries pass by a block of keys, which sums up its gradient: no two programs add to the same place, so no atomics.
        always the first block of queries: Q_r -> Q_1
        without the scale: \frac{1}{\sqrt{d_k}} ->
        delta added: - \delta -> + \delta
        delta not weighted: (dO_r V^\top - \delta_r\, \mathbf{1}^\top) -> (dO_r V^\top) - \delta_r\, \mathbf{1}^\top
    """
    Q, K, V, dO = drawn(normal, g * B, T_k, d_k, d_v)
    output, weights = reference.attention(Q, K, V, return_weights=True)
    blocks = {name: matrices(np.split(array, g)) for name, array in {"P": weights, "dO": dO, "Q": Q}.items()}
    deltas = [sum(float(a * b) for a, b in zip(*pair, strict=True)) for pair in zip(dO, output, strict=True)]
    by_key = of(lambda d_k: reference.attention_backward(Q, K, V, dO, scale=d_k**-0.5)[1], "d_k")
    return {**blocks, r"\delta": columns(np.split(np.array(deltas), g)), "dK": by_key, "V": V, "d_k": d_k}


# ---- what the backward pass costs
def five_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_o: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what one kernel computes: S, dP, dV, dQ and dK (a tile stands for P and for dS)."""
    return q @ k.T, d_o @ v.T, tile.T @ d_o, tile @ k, tile.T @ q


@claim("attention-backward-flops", rests_on="attention-forward-flops query-and-key-gradients")
def _(rng, T_q, T_k, d_k, d_v, draw):
    r"""F_{\mathrm{backward}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \qquad d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2}
    where the scores computed again ;; a multiply-add counts 2
    Five products for the two of the forward pass: S again, dP, dV, dQ, dK.
        twice the forward pass: the scores were kept:
            F_{\mathrm{backward}} = 2\, T_q T_k\, (2\, d_k + 2\, d_v), \qquad d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = 2
        the widths exchanged: 3\, d_k + 2 -> 2\, d_k + 3
        five halves for any widths: d_k = d_v:\; ->
    """
    d_k, d_v = ((d_k, d_v), (d_k, d_k), (1, T_q))[draw]
    T_k = T_q if draw == 2 else T_k  # neither a width equal to a length nor equal lengths are a reason for the ratio
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    forward = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes[:3])
    counted = {r"F_{\mathrm{backward}}": 2 * multiplications(five_products, *shapes), "F": 2 * forward}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@claim("tiled-training-memory", rests_on="weights-from-lse score-gradient-against-mixture")
def _(normal, T, d_k, d_v, draw):
    r"""N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + 1), \qquad N_{\mathrm{stored}}^{\mathrm{plain}} = T\, (d_v + T)
    where numbers kept for the backward pass beside Q, K, V: O and L, against O and P ;; T_q = T_k = T
    O(T) instead of O(T^2): recomputing is cheaper than storing, because memory is what is slow and short.
        the maximum kept beside the sum: d_v + 1 -> d_v + 2
        the output not kept: \, (d_v + T) -> ^2
        the same: P must be kept:
            N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + T) = N_{\mathrm{stored}}^{\mathrm{plain}}
    """
    T = T if draw else 1
    output, weights, lse = reference.attention(*drawn(normal, T, T, d_k, d_v)[:3], return_weights=True, return_lse=True)
    stored = {"tiled": output.size + lse.size, "plain": output.size + weights.size}
    return {rf"N_{{\mathrm{{stored}}}}^{{\mathrm{{{name}}}}}": size for name, size in stored.items()} | {"T": T, "d_v": d_v}
