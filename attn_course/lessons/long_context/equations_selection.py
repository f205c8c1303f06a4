"""Long context: a few keys chosen, and the error of what is left out; the difference of two maps; what theory forbids."""

import numpy as np

from attn_course.equations.core import about
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

claim = about("O4")


# ---- what is left out
@claim("selection-error", rests_on="masking-renormalises-weights merge-of-finished-outputs")
def _(normal, rng, T, d_v):
    r"""z - z_A = \varepsilon\, \bigl( z_{\bar{A}} - z_A \bigr), \qquad \varepsilon = \sum_{j \notin A} \sigma(s)_j
    where z_A = attention to the chosen keys A, z to all, z_(not A) to the others
    The output is a mean of two outputs; leaving one of them out moves it by its share of their difference.
        the weight that is kept: j \notin A -> j \in A
        what is left out counts as zero: z_{\bar{A}} - z_A \bigr) -> z_{\bar{A}} \bigr)
        chosen keys keep their old weights: \bigl( z_{\bar{A}} - z_A \bigr) -> z
    """
    s, V = normal(T), normal(T, d_v)
    chosen = np.arange(T) < rng.integers(1, T)
    q, k = np.ones((1, 1)), s[:, None]
    whole, kept, rest = (attention(q, k, V, scale=1.0, mask=mask)[0] for mask in (np.ones(T, dtype=bool), chosen, ~chosen))
    return {"s": vector(s), "A": subset(chosen), "z": row(whole), "z_A": row(kept), r"z_{\bar{A}}": row(rest)}


@claim("selection-error-bound", rests_on="selection-error output-in-convex-hull")
def _(normal, rng, T, draw):
    r"""|z - z_A| \le \bigl( \max_j v_j - \min_j v_j \bigr) \sum_{j \notin A} \sigma(s)_j
    where one feature of the values
    Two means of values are no farther apart than the values are: what is left out with weight epsilon costs that share at most.
        the weight that is kept: j \notin A -> j \in A
        squared, as if errors and weights were small alike: \sigma(s)_j -> \sigma(s)_j^2
        the largest value instead of the spread: \max_j v_j - \min_j v_j -> \max_j v_j
    """
    s, v, chosen = normal(T), normal(T) - 2, np.arange(T) < rng.integers(1, T)
    v = np.where(chosen, 1.5, -0.5) if draw == 2 else v
    q, k = np.ones((1, 1)), s[:, None]
    whole, kept = (attention(q, k, v[:, None], scale=1.0, mask=mask).item() for mask in (np.ones(T, dtype=bool), chosen))
    return {"s": vector(s), "A": subset(chosen), "v": vector(v), "z": whole, "z_A": kept}


@claim("left-out-weight-bound", rests_on="selection-error-bound")
def _(normal, rng, n, draw):
    r"""\sum_{j \notin A} \sigma(s)_j \le \frac{n - k}{n - k + k\, e^{\gamma}}, \qquad \gamma = \min_{j \in A} s_j - \max_{j \notin A} s_j
    where A = the k largest of n scores, 0 < k < n
    A gap must beat ln of how many there are: ten thousand keys left out, with scores 9 lower, outweigh one that is chosen.
        as if one key were left out: all n - k -> 1
        the gap of the mean: \min_{j \in A} -> \max_{j \in A}
        without a gap: k\, e^{\gamma} -> k
    """
    k, s = int(rng.integers(1, n)), 2 * normal(n)
    if draw == 2:  # two levels
        s = np.where(np.arange(n) < k, rng.uniform(0.5, 2), 0.0)[rng.permutation(n)]
    return {"s": vector(s), "A": subset(top_k_mask(s[None], k)[0]), "n": n, "k": k}


# ---- who chooses
@claim("pooled-score-bound")
def _(normal, b, d_k, draw):
    r"""q \cdot \bar{k} + \ln b \le \ln \sum_{j=1}^{b} e^{q \cdot k_j}
    where bar k = the mean of the b keys of a block ;; q scaled
    By convexity: the score of a mean stands for the whole block only if its keys score alike; one good key among others is missed.
        the number of keys forgotten: \le \ln -> \le
        an upper bound: no block is ever missed:
            \le -> \ge
        exact: \le -> =
    """
    q, keys = normal(d_k), normal(b, d_k)
    keys = np.repeat(keys[:1], b, axis=0) if draw == 2 else keys
    return {"q": vector(q), r"\bar{k}": vector(pool_blocks(keys, b)[0]), "k": vector(keys), "b": b}


@claim("index-score", rests_on="left-out-weight-bound")
def _(normal, T_q, T_k, H, d):
    r"""I_{ts} = \sum_{h=1}^{H} w_{th}\, \max\bigl( 0,\, q_{th} \cdot k_s \bigr)
    where q = few narrow heads, k = one key for all of them, w = weights of the heads at each query
    All pairs still, but narrow ones; its scores only choose, so they need neither an exponential nor a sum over the keys.
        a softmax in the place of the max: \max\bigl( 0,\, q_{th} \cdot k_s \bigr) -> e^{q_{th} \cdot k_s}
        cut off behind the sum:
            \sum_{h=1}^{H} w_{th}\, \max\bigl( 0,\, q_{th} \cdot k_s \bigr)
            -> \max\bigl( 0,\, \sum_{h=1}^{H} w_{th}\, q_{th} \cdot k_s \bigr)
        no head is weighed: w_{th}\, ->
    """
    q, k, w = normal(T_q, H, d), normal(T_k, d), normal(T_q, H)
    return {"I": index_scores(q.swapaxes(0, 1), k, w), "q": vector(q), "k": vector(k), "w": w, "H": H}


@claim("gated-branches", rests_on="selection-error pooled-score-bound window-pair-count")
def _(normal, b, d_k, d_v, draw):
    r"""Z_t = g_{t1}\, M_t + g_{t2}\, B_t + g_{t3}\, W_t
    where M = attention to means of blocks that ended ;; B = to the keys of blocks that have the largest weights there ;; W = to a window
        ;; g = gates, a row for each position
    Coarse and everywhere, fine and far, fine and near: each is attention of its own, with its own softmax.
        the branches only averaged: g_{t1}\, M_t + g_{t2}\, B_t + g_{t3}\, W_t -> \tfrac{1}{3}\, (M_t + B_t + W_t)
        gates of the first position for all: g_{t1} -> g_{11}
        two branches exchanged: g_{t1}\, M_t + g_{t2}\, B_t -> g_{t2}\, M_t + g_{t1}\, B_t
    """
    T, n, left = 4 * b + draw, 2, 2
    Q, K, V, g = (normal(T, width) for width in (d_k, d_k, d_v, 3))
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
@claim("differential-attention", serves="O6", rests_on="output-of-a-query masking-renormalises-weights", may_be="negative")
def _(normal, rng, T, d_k, d_v):
    r"""z = \sum_j a_j\, v_j, \qquad a_j = \sigma(s)_j - \lambda\, \sigma(s')_j
    where s, s' = scores of two pairs of queries and keys ;; one set of values
    Two softmaxes, then the difference: weights below 0, and a sum that both norms behind it and 1 - lambda_init make up for.
        the difference of the scores: \sigma(s)_j - \lambda\, \sigma(s')_j -> \sigma(s - \lambda\, s')_j
        added: - -> +
        divided by 1 - lambda, so that weights sum to 1: a_j\, v_j -> \frac{a_j}{1 - \lambda}\, v_j
    """
    Q, K, V, lam = normal(2, 1, d_k), normal(2, T, d_k), normal(T, d_v), rng.uniform(0.2, 0.8)
    z = differential_attention((Q[0], Q[1]), (K[0], K[1]), V, np.array(lam))[0]
    s, other = (vector(np.array([q[0] @ key for key in k]) / np.sqrt(d_k)) for q, k in zip(Q, K, strict=True))
    return {"z": row(z), "s": s, "s'": other, r"\lambda": lam, "v": rows(V)}


@claim("equal-weights-cancel", serves="O6", rests_on="differential-attention", may_be="negative")
def _(normal, rng, n):
    r"""p_j = \lambda\, p'_j \iff \frac{\partial z}{\partial v_j} = 0
    where z = sum_j (p_j - lambda p'_j) v_j ;; p, p' = weights of the two maps
    Keys that both maps weigh alike, up to lambda, have no part in the output, whatever their values: noise, if training makes it so.
        equal weights, whatever lambda is: p_j = \lambda\, p'_j -> p_j = p'_j
        lambda on the other side: p_j = \lambda\, p'_j -> \lambda\, p_j = p'_j
        where the second map sees nothing: p_j = \lambda\, p'_j -> p'_j = 0
    """
    lam, p, other = rng.uniform(0.3, 0.9), softmax(normal(n)), softmax(normal(n))
    p, other = 0.5 * p, 0.5 * other
    other[0], other[1], other[2] = p[0] / lam, p[1], 0.0
    return {
        "p": vector(p),
        "p'": vector(other),
        r"\lambda": lam,
        "v": vector(normal(n)),
        "z": of(lambda p, other, lam, v: sum(a * x - lam * b * x for a, b, x in zip(p, other, v, strict=True)), "p", "p'", r"\lambda", "v"),
    }


@claim("differential-start", serves="O6", rests_on="differential-attention")
def _(rng, L):
    r"""\lambda_l = 0.8 - 0.6\, e^{-0.3\, (l - 1)}
    where lambda_l = what lambda starts from in layer l, counted from 1
    From 0.2 in the first layer to 0.8 in a deep one: the deeper, the more is subtracted.
        layers counted from 0: l - 1 -> l
        it falls with depth: 0.8 - 0.6 -> 0.2 + 0.6
        the first layer starts at 0.8: 0.8 - 0.6\, -> 0.8 - 0.6\, (l - 1)\,
    """
    return {r"\lambda": vector([differential_start(layer) for layer in range(1, L + 2)])}


# ---- what theory forbids
@claim("normaliser-finds-maximum", serves="O8")
def _(rng, n, draw):
    r"""\beta > \ln n:\qquad \max_j s_j = \Bigl\lfloor \frac{\mathrm{lse}(\beta\, s)}{\beta} \Bigr\rfloor
    where n scores that are whole numbers, such as inner products of vectors of zeros and ones
    Who gets all normalisers precisely knows for each query its largest inner product.
        at any temperature: \beta > \ln n -> \beta > 0
        the nearest whole number above: \lfloor -> \lceil
        the temperature not undone: \frac{\mathrm{lse}(\beta\, s)}{\beta} -> \mathrm{lse}(\beta\, s)

    For vectors of zeros and ones of length c log n, to find all of these in time n^1.99, whatever c, would refute SETH. Alman and Song
    (2023), arXiv:2302.13214, sharpen this: given SETH, and d of order log n, no algorithm of time n^(2 - delta) approximates attention
    up to 1 over a polynomial in n if entries are of order sqrt(log n); if they are o(sqrt(log n)), one takes n^(1 + o(1)).
    """
    s = rng.integers(-3, 4, size=n).astype(float)
    if draw:  # as many keys as possible at the maximum
        s = np.full(n, float(rng.integers(1, 4)))
    return {"s": vector(s), "n": n, r"\beta": np.log(n) * (1.7, 1.0, 1.03)[draw] + (n == 1)}
