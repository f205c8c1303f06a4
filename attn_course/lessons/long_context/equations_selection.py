"""Long context: a few keys chosen, and the error of what is left out; the difference of two maps; what theory forbids."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import of, row, rows, subset, vector
from attn_course.reference import (
    attention,
    causal_mask,
    differential_attention,
    differential_start,
    index_scores,
    native_sparse_attention,
    pool_blocks,
    softmax,
    top_k_mask,
    window_mask,
)

equation = about("O4")


# ---- what is left out
@equation(
    "selection-error",
    r"z - z_A = \varepsilon\, \bigl( z_{\bar{A}} - z_A \bigr), \qquad \varepsilon = \sum_{j \notin A} \sigma(s)_j",
    uses=["masking-renormalises-weights", "merge-of-finished-outputs"],
    assumes=["z_A = attention to the chosen keys A, z to all, z_(not A) to the others"],
    wrong={
        "the weight that is kept": r"j \notin A -> j \in A",
        "what is left out counts as zero": r"z_{\bar{A}} - z_A \bigr) -> z_{\bar{A}} \bigr)",
        "chosen keys keep their old weights": r"z - z_A = \varepsilon\, \bigl( z_{\bar{A}} - z_A \bigr) -> z - z_A = \varepsilon\, z",
    },
)
def error_of_a_selection(rng: np.random.Generator, T: int, d_v: int) -> Givens:
    """The output is a mean of two outputs; leaving one of them out moves it by its share of their difference."""
    s, V = rng.normal(size=T), rng.normal(size=(T, d_v))
    chosen = np.arange(T) < rng.integers(1, T)
    q, k = np.ones((1, 1)), s[:, None]
    whole, kept, rest = (attention(q, k, V, scale=1.0, mask=mask)[0] for mask in (np.ones(T, dtype=bool), chosen, ~chosen))
    return {"s": vector(s), "A": subset(chosen), "z": row(whole), "z_A": row(kept), r"z_{\bar{A}}": row(rest)}


@equation(
    "selection-error-bound",
    r"|z - z_A| \le \bigl( \max_j v_j - \min_j v_j \bigr) \sum_{j \notin A} \sigma(s)_j",
    uses=["selection-error", "output-in-convex-hull"],
    assumes=["one feature of the values"],
    wrong={
        "the weight that is kept": r"j \notin A -> j \in A",
        "squared, as if errors and weights were small alike": r"\sigma(s)_j -> \sigma(s)_j^2",
        "the largest value instead of the spread": r"\max_j v_j - \min_j v_j -> \max_j v_j",
    },
)
def bound_of_a_selection(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """Two means of values are no farther apart than the values are: what is left out with weight epsilon costs that share at most."""
    s, v, chosen = rng.normal(size=T), rng.normal(size=T) - 2, np.arange(T) < rng.integers(1, T)
    v = np.where(chosen, 1.5, -0.5) if draw == 2 else v
    q, k = np.ones((1, 1)), s[:, None]
    whole, kept = (attention(q, k, v[:, None], scale=1.0, mask=mask).item() for mask in (np.ones(T, dtype=bool), chosen))
    return {"s": vector(s), "A": subset(chosen), "v": vector(v), "z": whole, "z_A": kept}


@equation(
    "left-out-weight-bound",
    r"\sum_{j \notin A} \sigma(s)_j \le \frac{n - k}{n - k + k\, e^{\gamma}}, \qquad \gamma = \min_{j \in A} s_j - \max_{j \notin A} s_j",
    uses=["selection-error-bound"],
    assumes=["A = the k largest of n scores, 0 < k < n"],
    wrong={
        "as if one key were left out": r"\frac{n - k}{n - k + -> \frac{1}{1 +",
        "the gap of the mean": r"\gamma = \min_{j \in A} s_j -> \gamma = \max_{j \in A} s_j",
        "without a gap": r"k\, e^{\gamma} -> k",
    },
)
def bound_by_the_gap(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """A gap must beat ln of how many there are: ten thousand keys left out, with scores 9 lower, outweigh one that is chosen."""
    k, s = int(rng.integers(1, n)), 2 * rng.normal(size=n)
    if draw == 2:  # two levels
        s = np.where(np.arange(n) < k, rng.uniform(0.5, 2), 0.0)[rng.permutation(n)]
    return {"s": vector(s), "A": subset(top_k_mask(s[None], k)[0]), "n": n, "k": k}


# ---- who chooses
@equation(
    "pooled-score-bound",
    r"q \cdot \bar{k} + \ln b \le \ln \sum_{j=1}^{b} e^{q \cdot k_j}",
    assumes=["bar k = the mean of the b keys of a block", "q scaled"],
    wrong={
        "the number of keys forgotten": r"\ln \sum_{j=1}^{b} e^{q \cdot k_j} -> \sum_{j=1}^{b} e^{q \cdot k_j}",
        "an upper bound: no block is ever missed": r"\le -> \ge",
        "exact": r"\le -> =",
    },
)
def a_mean_hides_its_best_key(rng: np.random.Generator, b: int, d_k: int, draw: int) -> Givens:
    """By convexity: the score of a mean stands for the whole block only if its keys score alike; one good key among others is missed."""
    q, keys = rng.normal(size=d_k), rng.normal(size=(b, d_k))
    keys = np.repeat(keys[:1], b, axis=0) if draw == 2 else keys
    return {"q": vector(q), r"\bar{k}": vector(pool_blocks(keys, b)[0]), "k": vector(keys), "b": b}


@equation(
    "index-score",
    r"I_{ts} = \sum_{h=1}^{H} w_{th}\, \max\bigl( 0,\, q_{th} \cdot k_s \bigr)",
    uses=["left-out-weight-bound"],
    assumes=["q = few narrow heads, k = one key for all of them, w = weights of the heads at each query"],
    wrong={
        "a softmax in the place of the max": r"\max\bigl( 0,\, q_{th} \cdot k_s \bigr) -> e^{q_{th} \cdot k_s}",
        "cut off behind the sum": r"\sum_{h=1}^{H} w_{th}\, \max\bigl( 0,\, q_{th} \cdot k_s \bigr)"
        r" -> \max\bigl( 0,\, \sum_{h=1}^{H} w_{th}\, q_{th} \cdot k_s \bigr)",
        "no head is weighed": r"w_{th}\, -> ",
    },
)
def score_of_the_index(rng: np.random.Generator, T_q: int, T_k: int, H: int, d: int) -> Givens:
    """All pairs still, but narrow ones; its scores only choose, so they need neither an exponential nor a sum over the keys."""
    q, k, w = rng.normal(size=(T_q, H, d)), rng.normal(size=(T_k, d)), rng.normal(size=(T_q, H))
    return {"I": index_scores(q.swapaxes(0, 1), k, w), "q": vector(q), "k": vector(k), "w": w, "H": H}


@equation(
    "gated-branches",
    r"Z_t = g_{t1}\, M_t + g_{t2}\, B_t + g_{t3}\, W_t",
    uses=["selection-error", "pooled-score-bound", "window-pair-count"],
    assumes=[
        "M = attention to means of blocks that ended",
        "B = to the keys of blocks that have the largest weights there",
        "W = to a window",
        "g = gates, a row for each position",
    ],
    wrong={
        "the branches only averaged": r"g_{t1}\, M_t + g_{t2}\, B_t + g_{t3}\, W_t -> \tfrac{1}{3}\, (M_t + B_t + W_t)",
        "gates of the first position for all": r"g_{t1} -> g_{11}",
        "two branches exchanged": r"g_{t1}\, M_t + g_{t2}\, B_t -> g_{t2}\, M_t + g_{t1}\, B_t",
    },
)
def three_looks_at_the_past(rng: np.random.Generator, b: int, d_k: int, d_v: int, draw: int) -> Givens:
    """Coarse and everywhere, fine and far, fine and near: each is attention of its own, with its own softmax."""
    T, n, left = 4 * b + draw, 2, 2
    Q, K, V, g = (rng.normal(size=(T, width)) for width in (d_k, d_k, d_v, 3))
    M, B = np.zeros((T, d_v)), np.zeros((T, d_v))
    for t in range(T):
        ended, own = (t + 1) // b, t // b
        ranks = np.full(own + 1, -np.inf)
        if ended:
            means = [part[: ended * b].reshape(ended, b, -1).mean(axis=1) for part in (K, V)]
            out, weights = attention(Q[t : t + 1], *means, return_weights=True)
            M[t], ranks[:ended] = out[0], weights[0]
        ranks[own] = np.inf
        best = np.sort(np.argsort(-ranks, kind="stable")[:n])
        seen = [j for block in best if ranks[block] > -np.inf for j in range(block * b, min((block + 1) * b, t + 1))]
        B[t] = attention(Q[t : t + 1], K[seen], V[seen])[0]
    W = attention(Q, K, V, mask=window_mask(T, T, left, 0) & causal_mask(T, T))
    Z = native_sparse_attention(Q, K, V, g, block=b, n_selected=n, left=left)
    return {"Z": Z, "g": g, "M": M, "B": B, "W": W}


# ---- the difference of two maps
@equation(
    "differential-attention",
    r"z = \sum_j a_j\, v_j, \qquad a_j = \sigma(s)_j - \lambda\, \sigma(s')_j",
    topics=["O6"],
    uses=["output-of-a-query", "masking-renormalises-weights"],
    assumes=["s, s' = scores of two pairs of queries and keys", "one set of values"],
    wrong={
        "the difference of the scores": r"\sigma(s)_j - \lambda\, \sigma(s')_j -> \sigma(s - \lambda\, s')_j",
        "added": r"\sigma(s)_j - \lambda -> \sigma(s)_j + \lambda",
        "divided by 1 - lambda, so that weights sum to 1": r"a_j\, v_j -> \frac{a_j}{1 - \lambda}\, v_j",
    },
)
def difference_of_two_maps(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Two softmaxes, then the difference: weights below 0, and a sum that both norms behind it and 1 - lambda_init make up for."""
    Q, K, V, lam = rng.normal(size=(2, 1, d_k)), rng.normal(size=(2, T, d_k)), rng.normal(size=(T, d_v)), rng.uniform(0.2, 0.8)
    z = differential_attention((Q[0], Q[1]), (K[0], K[1]), V, np.array(lam))[0]
    s, other = (vector(np.array([q[0] @ key for key in k]) / np.sqrt(d_k)) for q, k in zip(Q, K, strict=True))
    return {"z": row(z), "s": s, "s'": other, r"\lambda": lam, "v": rows(V)}


@equation(
    "equal-weights-cancel",
    r"p_j = \lambda\, p'_j \iff \frac{\partial z}{\partial v_j} = 0",
    topics=["O6"],
    uses=["differential-attention"],
    assumes=["z = sum_j (p_j - lambda p'_j) v_j", "p, p' = weights of the two maps"],
    wrong={
        "equal weights, whatever lambda is": r"p_j = \lambda\, p'_j -> p_j = p'_j",
        "lambda on the other side": r"p_j = \lambda\, p'_j -> \lambda\, p_j = p'_j",
        "where the second map sees nothing": r"p_j = \lambda\, p'_j -> p'_j = 0",
    },
)
def what_both_maps_attend_to_cancels(rng: np.random.Generator, n: int) -> Givens:
    """Keys that both maps weigh alike, up to lambda, have no part in the output, whatever their values: noise, if training makes it so."""
    lam, p, other = rng.uniform(0.3, 0.9), softmax(rng.normal(size=n)), softmax(rng.normal(size=n))
    p, other = 0.5 * p, 0.5 * other
    other[0], other[1], other[2] = p[0] / lam, p[1], 0.0
    return {
        "p": vector(p),
        "p'": vector(other),
        r"\lambda": lam,
        "v": vector(rng.normal(size=n)),
        "z": of(lambda p, other, lam, v: sum(a * x - lam * b * x for a, b, x in zip(p, other, v, strict=True)), "p", "p'", r"\lambda", "v"),
    }


@equation(
    "differential-start",
    r"\lambda_l = 0.8 - 0.6\, e^{-0.3\, (l - 1)}",
    topics=["O6"],
    uses=["differential-attention"],
    assumes=["lambda_l = what lambda starts from in layer l, counted from 1"],
    wrong={
        "layers counted from 0": "l - 1 -> l",
        "it falls with depth": r"0.8 - 0.6 -> 0.2 + 0.6",
        "the first layer starts at 0.8": r"0.8 - 0.6\, -> 0.8 - 0.6\, (l - 1)\,",
    },
)
def where_lambda_starts(rng: np.random.Generator, L: int) -> Givens:
    """From 0.2 in the first layer to 0.8 in a deep one: the deeper, the more is subtracted."""
    return {r"\lambda": vector([differential_start(layer) for layer in range(1, L + 2)])}


# ---- what theory forbids
@equation(
    "normaliser-finds-maximum",
    r"\beta > \ln n:\qquad \max_j s_j = \Bigl\lfloor \frac{\mathrm{lse}(\beta\, s)}{\beta} \Bigr\rfloor",
    topics=["O8"],
    assumes=["n scores that are whole numbers, such as inner products of vectors of zeros and ones"],
    wrong={
        "at any temperature": r"\beta > \ln n -> \beta > 0",
        "the nearest whole number above": r"\lfloor -> \lceil",
        "the temperature not undone": r"\frac{\mathrm{lse}(\beta\, s)}{\beta} -> \mathrm{lse}(\beta\, s)",
    },
)
def the_normaliser_finds_the_maximum(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Who gets all normalisers precisely knows for each query its largest inner product.

    For vectors of zeros and ones of length c log n, to find all of these in time n^1.99, whatever c, would refute SETH. Alman and Song
    (2023), arXiv:2302.13214, sharpen this: given SETH, and d of order log n, no algorithm of time n^(2 - delta) approximates attention
    up to 1 over a polynomial in n if entries are of order sqrt(log n); if they are o(sqrt(log n)), one takes n^(1 + o(1)).
    """
    s = rng.integers(-3, 4, size=n).astype(float)
    if draw:  # as many keys as possible at the maximum
        s = np.full(n, float(rng.integers(1, 4)))
    return {"s": vector(s), "n": n, r"\beta": np.log(n) * (1.7, 1.0, 1.03)[draw]}
