"""Fast attention: the backward pass with recomputation.

A loss reads the output O and perhaps L, the log-sum-exp of each row; dX stands for its gradient by X.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import columns, derivative, matrices, matrix, of, rows, vector
from attn_course.formulas.givens import Given, Of

equation = about("M1")


def drawn(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, K, V and dO."""
    Q, K, V, dO = (rng.normal(size=shape) for shape in ((T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v)))
    return Q, K, V, dO


def loss(weights: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> float:
    """Return a loss whose gradient by the output P V is d_output."""
    return float(((weights @ value) * d_output).sum())


def score_givens(rng: np.random.Generator, T_q: int, T_k: int, d_v: int, d_lse: np.ndarray | None = None) -> dict[str, Given]:
    """Return p, dP, dS and delta, where the loss reads the output and, if d_lse is given, L; all gradients by differences."""
    S, V, dO = 1.5 * rng.normal(size=(T_q, T_k)), rng.normal(size=(T_k, d_v)), rng.normal(size=(T_q, d_v))
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
@equation(
    "weights-from-lse",
    r"p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{l} e^{s_{il}}",
    uses=["log-softmax", "row-lse-and-output"],
    wrong={
        "the maximum kept instead": r"p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \max_{l} s_{il}",
        "the sum without its logarithm": r"p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \sum_{l} e^{s_{il}}",
        "a column instead of a row": r"p_{ij} = e^{s_{ij} - L_j}, \qquad L_j = \ln \sum_{l} e^{s_{lj}}",
    },
)
def weights_from_the_log_sum_exp(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """One number for each row, kept from the forward pass, gives back any tile of weights without a second pass over the row."""
    Q, K, V, _ = drawn(rng, T_q, T_k, d_k, d_v)
    weights, lse = reference.attention(Q, K, V, return_weights=True, return_lse=True)[1:]
    return {"p": matrix(weights), "L": vector(lse), "s": matrix(reference.scaled_dot_scores(Q, K))}


@equation(
    "gradients-through-weighted-sum",
    r"dV = P^\top dO, \qquad dP = dO\, V^\top",
    topics=["M1", "D2"],
    uses=["gradient-of-values", "gradient-of-weights"],
    assumes=["O = P V"],
    wrong={
        "P instead of its transpose": r"dV = P\, dO, \qquad dP = dO\, V^\top",
        "V instead of its transpose": r"dV = P^\top dO, \qquad dP = dO\, V",
        "from the other side": r"dV = P^\top dO, \qquad dP = V\, dO^\top",
    },
)
def gradients_of_the_product(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """A value sums up what its weights sent out; a weight gets the product of what came back with its value."""
    P, V, dO = reference.softmax(rng.normal(size=(T_q, T_k))), rng.normal(size=(T_k, d_v)), rng.normal(size=(T_q, d_v))
    by_value, by_weight = derivative(lambda value: loss(P, value, dO), V), derivative(lambda weights: loss(weights, V, dO), P)
    return {"P": P, "V": V, "dO": dO, "dV": by_value, "dP": by_weight}


@equation(
    "score-gradient-by-entry",
    r"dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \sum_{l} p_{il}\, dP_{il}",
    topics=["M1", "D2"],
    uses=["softmax-vector-jacobian-product", "gradient-of-scores", "gradients-through-weighted-sum"],
    assumes=["P = softmax of the rows of S"],
    wrong={
        "P times dP, the normaliser forgotten": r"dS_{ij} = p_{ij}\, dP_{ij}",
        "the sum over queries instead of keys": r"dS_{ij} = p_{ij}\, (dP_{ij} - \delta_j), \qquad \delta_j = \sum_{l} p_{lj}\, dP_{lj}",
        "the plain mean of dP": r"dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \frac{\sum_{l} dP_{il}}{\sum_l p_{il}}",
        "delta not weighted": r"dS_{ij} = p_{ij}\, dP_{ij} - \delta_i, \qquad \delta_i = \sum_{l} p_{il}\, dP_{il}",
    },
)
def gradient_of_the_scores(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """The Jacobian of softmax, row by row. delta_i is a sum over all keys, which a tile does not have."""
    given = score_givens(rng, T_q, T_k, d_v)
    return {name: given[name] for name in ("p", "dP", "dS")}


@equation(
    "row-delta-from-output",
    r"\delta_i = \sum_{l} p_{il}\, (dO_i \cdot v_l) = dO_i \cdot z_i",
    uses=["score-gradient-against-mixture", "gradients-through-weighted-sum", "score-gradient-by-entry"],
    assumes=["z_i = sum_l p_il v_l, a row of O", "delta_i = sum_l p_il dP_il"],
    wrong={
        "the gradient of another query": r"\delta_i = \sum_{l} p_{il}\, (dO_l \cdot v_l) = dO_i \cdot z_i",
        "the sum over queries": r"\delta_i = \sum_{l} p_{li}\, (dO_l \cdot v_i) = dO_i \cdot z_i",
        "the length of the output": r"\delta_i = \sum_{l} p_{il}\, (dO_i \cdot v_l) = \|z_i\|^2",
    },
)
def delta_trick(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Pull the product out of the sum: delta needs the output only, and is known before the first tile of the backward pass."""
    Q, K, V, dO = drawn(rng, T_q, T_k, d_k, d_v)
    output, weights = reference.attention(Q, K, V, return_weights=True)
    return {r"\delta": row_deltas(weights, V, dO), "p": matrix(weights), "dO": rows(dO), "v": rows(V), "z": rows(output)}


@equation(
    "gradients-through-scaled-scores",
    r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    topics=["M1", "D2"],
    uses=["query-and-key-gradients", "score-gradient-by-entry"],
    assumes=["S = Q K^T / sqrt(d_k)"],
    wrong={
        "without the scale": r"dQ = dS\, K, \qquad dK = dS^\top Q",
        "dS instead of its transpose": r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS\, Q}{\sqrt{d_k}}",
        "divided by d_k": r"dQ = \frac{dS\, K}{d_k}, \qquad dK = \frac{dS^\top Q}{d_k}",
    },
)
def gradients_of_queries_and_keys(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """The scale is part of the scores, so it comes back in both."""
    Q, K, V, dO = drawn(rng, T_q, T_k, d_k, d_v)

    def gradient(place: int) -> Of:
        return of(lambda d_k: reference.attention_backward(Q, K, V, dO, scale=d_k**-0.5)[place], "d_k")

    S = Q @ K.T / np.sqrt(d_k)
    by_scores = derivative(lambda scores: loss(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), V, dO), S)
    return {"dQ": gradient(0), "dK": gradient(1), "dS": by_scores, "Q": Q, "K": K, "d_k": d_k}


@equation(
    "row-lse-gradient",
    r"\frac{\partial L_i}{\partial s_{ij}} = p_{ij}",
    uses=["lse-gradient", "weights-from-lse"],
    wrong={
        "1 at the largest score, else 0": r"\frac{\partial L_i}{\partial s_{ij}} = [\, p_{ij} = \max_l p_{il} \,]",
        "the logarithm of the weight": r"\frac{\partial L_i}{\partial s_{ij}} = \ln p_{ij}",
        "the derivative of the weight": r"\frac{\partial L_i}{\partial s_{ij}} = p_{ij}\, (1 - p_{ij})",
    },
)
def gradient_of_the_log_sum_exp(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Eq. lse-gradient: the same tile of weights that the backward pass rebuilds anyway."""
    Q, K, V, _ = drawn(rng, T_q, T_k, d_k, 1)
    weights = reference.attention(Q, K, V, return_weights=True)[1]
    S = matrix(reference.scaled_dot_scores(Q, K))
    return {"s": S, "L": of(lambda scores: np.log(np.exp(scores).sum(axis=1)), "s"), "p": matrix(weights)}


@equation(
    "score-gradient-with-lse",
    r"dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i - dL_i) \bigr)",
    uses=["score-gradient-by-entry", "row-delta-from-output", "row-lse-gradient"],
    assumes=["the loss reads O and L"],
    wrong={
        "delta + dL": r"dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i + dL_i) \bigr)",
        "dL not weighted": r"dS_{ij} = p_{ij}\, ( dP_{ij} - \delta_i ) + dL_i",
        "dL for delta": r"dS_{ij} = p_{ij}\, ( dP_{ij} - dL_i ) - \delta_i",
    },
)
def gradient_with_the_log_sum_exp(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Add p_ij dL_i and collect: the gradient of L costs nothing but a subtraction.

    So merged outputs, Eq. merge-of-finished-outputs, can be trained.
    """
    d_lse = rng.normal(size=T_q)
    return score_givens(rng, T_q, T_k, d_v, d_lse) | {"dL": vector(d_lse)}


@equation(
    "key-gradient-in-blocks",
    r"dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b",
    uses=["weights-from-lse", "row-delta-from-output", "gradients-through-scaled-scores"],
    assumes=["b: blocks of queries", "P_b = e^{Q_b K^T / sqrt(d_k) - L_b}, recomputed", "delta_b = row sums of dO_b * O_b"],
    wrong={
        "always the first block of queries": "Q_b -> Q_1",
        "without the scale": r"dK = \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b",
        "delta added": r"- \delta -> + \delta",
        "delta not weighted": r"dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top)"
        r" - \delta_b\, \mathbf{1}^\top \bigr)^{\!\top} Q_b",
    },
)
def backward_in_blocks(rng: np.random.Generator, g: int, B: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Tiles of queries pass by a block of keys, which sums up its gradient: no two programs add to the same place, so no atomics."""
    Q, K, V, dO = drawn(rng, g * B, T_k, d_k, d_v)
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


@equation(
    "attention-backward-flops",
    r"F_{\mathrm{backward}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \qquad d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2}",
    uses=["attention-forward-flops", "gradients-through-scaled-scores"],
    assumes=["the scores computed again", "a multiply-add counts 2"],
    wrong={
        "twice the forward pass: the scores were kept": r"F_{\mathrm{backward}} = 2\, T_q T_k\, (2\, d_k + 2\, d_v), \qquad"
        r" d_k = d_v:\; \frac{F_{\mathrm{backward}}}{F} = 2",
        "the widths exchanged": r"3\, d_k + 2 -> 2\, d_k + 3",
        "five halves for any widths": r"d_k = d_v:\; \frac{F_{\mathrm{backward}}} -> \frac{F_{\mathrm{backward}}}",
    },
)
def flops_of_the_backward_pass(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int, draw: int) -> Givens:
    """Five products for the two of the forward pass: S again, dP, dV, dQ, dK."""
    d_k, d_v = ((d_k, d_v), (d_k, d_k), (1, T_q))[draw]
    T_k = T_q if draw == 2 else T_k  # neither a width equal to a length nor equal lengths are a reason for the ratio
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    forward = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes[:3])
    counted = {r"F_{\mathrm{backward}}": 2 * multiplications(five_products, *shapes), "F": 2 * forward}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@equation(
    "two-kernel-backward-flops",
    r"F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \qquad d_k = d_v:\;"
    r" \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5}",
    uses=["key-gradient-in-blocks", "attention-backward-flops"],
    assumes=["one kernel for dK and dV, one for dQ; each rebuilds S and dP", "a multiply-add counts 2"],
    wrong={
        "five, as counted": r"F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \qquad d_k = d_v:\;"
        r" \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = 1",
        "dP rebuilt by one of them only": r"F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 2\, d_v), \qquad d_k = d_v:\;"
        r" \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{6}{5}",
        "everything twice": r"F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (6\, d_k + 4\, d_v), \qquad d_k = d_v:\;"
        r" \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = 2",
    },
)
def flops_without_atomics(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int, draw: int) -> Givens:
    """Seven products where five are counted: the price of sums in a fixed order, the same to the last bit in every run."""
    d_k, d_v = ((d_k, d_v), (d_k, d_k), (1, T_q))[draw]
    T_k = T_q if draw == 2 else T_k  # neither a width equal to a length nor equal lengths are a reason for the ratio
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    kernels = {r"F_{\mathrm{backward}}": five_products, r"F_{\mathrm{two\ kernels}}": seven_products}
    counted = {name: 2 * multiplications(products, *shapes) for name, products in kernels.items()}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@equation(
    "tiled-training-memory",
    r"N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + 1), \qquad N_{\mathrm{stored}}^{\mathrm{plain}} = T\, (d_v + T)",
    uses=["weights-from-lse", "row-delta-from-output"],
    assumes=["numbers kept for the backward pass beside Q, K, V: O and L, against O and P", "T_q = T_k = T"],
    wrong={
        "the maximum kept beside the sum": "d_v + 1 -> d_v + 2",
        "the output not kept": r"\, (d_v + T) -> ^2",
        "the same: P must be kept": r"N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + T) = N_{\mathrm{stored}}^{\mathrm{plain}}",
    },
)
def memory_of_training(rng: np.random.Generator, T: int, d_k: int, d_v: int, draw: int) -> Givens:
    """O(T) instead of O(T^2): recomputing is cheaper than storing, because memory is what is slow and short."""
    T = T if draw else 1
    output, weights, lse = reference.attention(*drawn(rng, T, T, d_k, d_v)[:3], return_weights=True, return_lse=True)
    stored = {"tiled": output.size + lse.size, "plain": output.size + weights.size}
    return {rf"N_{{\mathrm{{stored}}}}^{{\mathrm{{{name}}}}}": size for name, size in stored.items()} | {"T": T, "d_v": d_v}
