"""Fast attention: the backward pass with recomputation.

A loss reads the output O and perhaps L, the log-sum-exp of each row; dX stands for its gradient by X.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import Normal, tables
from attn_course.formulas import columns, derivative, matrices, matrix, of, rows, vector
from attn_course.formulas.givens import Given, Of

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
    r"""p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{l} e^{s_{il}}
    One number for each row, kept from the forward pass, gives back any tile of weights without a second pass over the row.
        the maximum kept instead: \ln \sum_{l} e^{s_{il}} -> \max_{l} s_{il}
        the sum without its logarithm: = \ln -> =
        a column instead of a row: p_{ij} = e^{s_{ij} - L_j}, \qquad L_j = \ln \sum_{l} e^{s_{lj}}
    """
    Q, K, V, _ = drawn(normal, T_q, T_k, d_k, d_v)
    weights, lse = reference.attention(Q, K, V, return_weights=True, return_lse=True)[1:]
    return {"p": matrix(weights), "L": vector(lse), "s": matrix(reference.scaled_dot_scores(Q, K))}


@claim("gradients-through-weighted-sum", serves="M1 D2", rests_on="gradient-of-values gradient-of-weights")
def _(normal, T_q, T_k, d_v):
    r"""dV = P^\top dO, \qquad dP = dO\, V^\top
    where O = P V
    A value sums up what its weights sent out; a weight gets the product of what came back with its value.
        P instead of its transpose: P^\top -> P\,
        V instead of its transpose: V^\top -> V
        from the other side: dO\, V -> V\, dO
    """
    P, V, dO = reference.softmax(normal(T_q, T_k)), normal(T_k, d_v), normal(T_q, d_v)
    by_value, by_weight = derivative(lambda value: loss(P, value, dO), V), derivative(lambda weights: loss(weights, V, dO), P)
    return {"P": P, "V": V, "dO": dO, "dV": by_value, "dP": by_weight}


@claim(
    "score-gradient-by-entry", serves="M1 D2", rests_on="softmax-vector-jacobian-product gradient-of-scores gradients-through-weighted-sum"
)
def _(normal, T_q, T_k, d_v):
    r"""dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \sum_{l} p_{il}\, dP_{il}
    where P = softmax of the rows of S
    The Jacobian of softmax, row by row. delta_i is a sum over all keys, which a tile does not have.
        P times dP, the normaliser forgotten: dS_{ij} = p_{ij}\, dP_{ij}
        the sum over queries instead of keys: dS_{ij} = p_{ij}\, (dP_{ij} - \delta_j), \qquad \delta_j = \sum_{l} p_{lj}\, dP_{lj}
        the plain mean of dP: \sum_{l} p_{il}\, dP_{il} -> \frac{\sum_{l} dP_{il}}{\sum_l p_{il}}
        delta not weighted: (dP_{ij} - \delta_i) -> dP_{ij} - \delta_i
    """
    given = score_givens(normal, T_q, T_k, d_v)
    return {name: given[name] for name in ("p", "dP", "dS")}


@claim("row-delta-from-output", rests_on="score-gradient-against-mixture gradients-through-weighted-sum score-gradient-by-entry")
def _(normal, T_q, T_k, d_k, d_v):
    r"""\delta_i = \sum_{l} p_{il}\, (dO_i \cdot v_l) = dO_i \cdot z_i
    where z_i = sum_l p_il v_l, a row of O ;; delta_i = sum_l p_il dP_il
    Pull the product out of the sum: delta needs the output only, and is known before the first tile of the backward pass.
        the gradient of another query: dO_i \cdot v_l -> dO_l \cdot v_l
        the sum over queries: \delta_i = \sum_{l} p_{li}\, (dO_l \cdot v_i) = dO_i \cdot z_i
        the length of the output: dO_i \cdot z_i -> \|z_i\|^2
    """
    Q, K, V, dO = drawn(normal, T_q, T_k, d_k, d_v)
    output, weights = reference.attention(Q, K, V, return_weights=True)
    return {r"\delta": row_deltas(weights, V, dO), "p": matrix(weights), "dO": rows(dO), "v": rows(V), "z": rows(output)}


@claim("gradients-through-scaled-scores", serves="M1 D2", rests_on="query-and-key-gradients score-gradient-by-entry")
def _(normal, T_q, T_k, d_k, d_v):
    r"""dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}
    where S = Q K^T / sqrt(d_k)
    The scale is part of the scores, so it comes back in both.
        without the scale: dQ = dS\, K, \qquad dK = dS^\top Q
        dS instead of its transpose: dS^\top -> dS\,
        divided by d_k: dQ = \frac{dS\, K}{d_k}, \qquad dK = \frac{dS^\top Q}{d_k}
    """
    Q, K, V, dO = drawn(normal, T_q, T_k, d_k, d_v)

    def gradient(place: int) -> Of:
        return of(lambda d_k: reference.attention_backward(Q, K, V, dO, scale=d_k**-0.5)[place], "d_k")

    S = Q @ K.T / np.sqrt(d_k)
    by_scores = derivative(lambda scores: loss(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), V, dO), S)
    return {"dQ": gradient(0), "dK": gradient(1), "dS": by_scores, "Q": Q, "K": K, "d_k": d_k}


@claim("row-lse-gradient", rests_on="lse-gradient weights-from-lse")
def _(normal, T_q, T_k, d_k):
    r"""\frac{\partial L_i}{\partial s_{ij}} = p_{ij}
    Eq. lse-gradient: the same tile of weights that the backward pass rebuilds anyway.
        1 at the largest score, else 0: p_{ij} -> [\, p_{ij} = \max_l p_{il} \,]
        the logarithm of the weight: = -> = \ln
        the derivative of the weight: p_{ij} -> p_{ij}\, (1 - p_{ij})
    """
    Q, K, V, _ = drawn(normal, T_q, T_k, d_k, 1)
    weights = reference.attention(Q, K, V, return_weights=True)[1]
    S = matrix(reference.scaled_dot_scores(Q, K))
    return {"s": S, "L": of(lambda scores: np.log(np.exp(scores).sum(axis=1)), "s"), "p": matrix(weights)}


@claim(
    "score-gradient-with-lse",
    rests_on="score-gradient-by-entry row-delta-from-output row-lse-gradient",
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


@claim("key-gradient-in-blocks", rests_on="weights-from-lse row-delta-from-output gradients-through-scaled-scores")
def _(normal, g, B, T_k, d_k, d_v):
    r"""dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b
    where b: blocks of queries ;; P_b = e^{Q_b K^T / sqrt(d_k) - L_b}, recomputed ;; delta_b = row sums of dO_b * O_b
    Tiles of queries pass by a block of keys, which sums up its gradient: no two programs add to the same place, so no atomics.
        always the first block of queries: Q_b -> Q_1
        without the scale: \frac{1}{\sqrt{d_k}} ->
        delta added: - \delta -> + \delta
        delta not weighted: (dO_b V^\top - \delta_b\, \mathbf{1}^\top) -> (dO_b V^\top) - \delta_b\, \mathbf{1}^\top
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


def seven_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_o: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what two kernels compute: S, dP, dV and dK; then S, dP and dQ."""
    return (k @ q.T, v @ d_o.T, tile.T @ d_o, tile.T @ q, q @ k.T, d_o @ v.T, tile @ k)


@claim("attention-backward-flops", rests_on="attention-forward-flops gradients-through-scaled-scores")
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


@claim("two-kernel-backward-flops", rests_on="key-gradient-in-blocks attention-backward-flops")
def _(rng, T_q, T_k, d_k, d_v, draw):
    r"""F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \qquad
        d_k = d_v:\; \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5}
    where one kernel for dK and dV, one for dQ; each rebuilds S and dP ;; a multiply-add counts 2
    Seven products where five are counted: the price of sums in a fixed order, the same to the last bit in every run.
        five, as counted: 4\, -> 3\, ;; + 3\, -> + 2\, ;; \frac{7}{5} -> 1
        dP rebuilt by one of them only: + 3\, -> + 2\, ;; 7 -> 6
        everything twice: 4\, -> 6\, ;; + 3\, -> + 4\, ;; \frac{7}{5} -> 2
    """
    d_k, d_v = ((d_k, d_v), (d_k, d_k), (1, T_q))[draw]
    T_k = T_q if draw == 2 else T_k  # neither a width equal to a length nor equal lengths are a reason for the ratio
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    kernels = {r"F_{\mathrm{backward}}": five_products, r"F_{\mathrm{two\ kernels}}": seven_products}
    counted = {name: 2 * multiplications(products, *shapes) for name, products in kernels.items()}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@claim("tiled-training-memory", rests_on="weights-from-lse row-delta-from-output")
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
