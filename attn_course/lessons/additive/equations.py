"""Additive attention.

Rows are positions: query (T_q, d_q), key (T_k, d_k), W_Q (d_q, d_h), W_K (d_k, d_h), score vector v (d_h).
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import Normal, tables
from attn_course.formulas import column, columns, function, index, of, row, vector
from attn_course.reference import additive_scores, softmax

claim = about("F1")

SIZES = "T_q T_k d_q d_k d_h"


def network(normal: Normal, T_q: int, T_k: int, d_q: int, d_k: int, d_h: int) -> list[np.ndarray]:
    """Return queries, keys, W_Q, W_K, and v."""
    return tables(normal, (T_q, d_q), (T_k, d_k), (d_q, d_h), (d_k, d_h), (d_h,))


def pair(normal: Normal, **sizes: int) -> Givens:
    """Return one query and one key as columns, the network, and its score of the two, which is made again where they change."""
    q, k, w_q, w_k, v = network(normal, 1, 1, **sizes)
    e = of(lambda q, k: v @ np.tanh(q @ w_q + k @ w_k), "q", "k")
    return {"e": e, "q": column(q[0]), "k": column(k[0]), "W_Q": w_q, "W_K": w_k, "v": column(v)}


# ---- from a vector to a score
@claim("plain-sum-ignores-query", rests_on="softmax-shift-invariance")
def _(normal, n):
    r"""\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}}
    where score = a + b_j: a depends on the query only, b_j on key j only
    Without a nonlinearity the query shifts all scores alike and cancels: u . q + v . k_j would be no attention.
        the query moves the weights: all b_ -> a\,b_
        the query stays in the numerator: b_j -> a + b_j
    """
    return {"a": normal(), "b": column(normal(n)), "n": n}


@claim("additive-score", serves="F1 A4", rests_on="soft-lookup", sizes=SIZES)
def _(normal, **sizes):
    r"""e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr)
        = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i^\top W_Q)_r + (k_j^\top W_K)_r \bigr)
    where W_Q: d_q x d_h ;; W_K: d_k x d_h ;; v: d_h ;; q_i, k_j columns
    Project both to d_h numbers, add, bend, and let v make one number of them.
        X6: the entries of tanh added up, without v:
            v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr) = \sum_{r=1}^{d_h} \tanh(W_Q^\top q_i + W_K^\top k_j)_r = e_{ij}
        X6: tanh(q + k) itself: no projections, and no number:
            e_{ij} = \tanh(q_i + k_j)
        tanh of each projection: e_{ij} = \sum_{r=1}^{d_h} v_r \bigl( \tanh(W_Q^\top q_i)_r + \tanh(W_K^\top k_j)_r \bigr)
        the pair multiplied: e_{ij} = \sum_{r=1}^{d_h} v_r \tanh\bigl( (W_Q^\top q_i)_r\, (W_K^\top k_j)_r \bigr)
    """
    q, k, w_q, w_k, v = network(normal, **sizes)
    e = additive_scores(q, k, w_q, w_k, v)
    return {"e": e, "q": columns(q), "k": columns(k), "W_Q": w_q, "W_K": w_k, "v": column(v), "d_h": sizes["d_h"]}


@claim("concatenation-adds-projections", sizes="d_q d_k d_h")
def _(normal, **sizes):
    r"""[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K
    where q, k rows
    So Eq. additive-score is a network with one hidden layer that reads the pair: tanh in the middle, v at the end.
        the projections side by side: q\,W_Q + k\,W_K -> [\,q\,W_Q,\, k\,W_K\,]
        the projections multiplied: + -> \odot
        the matrices in the other order: W_Q \\ W_K -> W_K \\ W_Q
    """
    q, k, w_q, w_k, _ = network(normal, 1, 1, **sizes)
    return {"q": row(q[0]), "k": row(k[0]), "W_Q": w_q, "W_K": w_k}


# ---- what the score can be
@claim(
    "additive-score-bound",
    serves="F1 F2",
    rests_on="additive-score",
    sizes=SIZES,
    equivalent={r"\lvert e_{i j} \rvert -> e_{i j}": "a number is at most its absolute value"},
)
def _(normal, draw, **sizes):
    r"""|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1
    |tanh| < 1: a score stays within |v|_1, as close to it as tanh comes to 1, and attains it at v = 0 only.
        by the length of v: |e_{ij}| \le \sqrt{\sum_{r=1}^{d_h} v_r^2}
        by the sum of v: |e_{ij}| \le \bigl| \sum_{r=1}^{d_h} v_r \bigr|
        by the largest entry of v: |e_{ij}| \le \max_r |v_r| = \frac{1}{d_h} \|v\|_1
    """
    q, k, w_q, w_k, v = network(normal, **sizes)
    if draw == 1:  # every unit nearly saturated, against the sign of its entry of v
        q, k, w_q = np.full_like(q, -4.0 / len(w_q)), np.zeros_like(k), np.ones_like(w_q) * np.sign(v)
    v *= draw < 2
    return {"e": additive_scores(q, k, w_q, w_k, v), "v": vector(v), "d_h": sizes["d_h"]}


@claim(
    "additive-weight-bound",
    rests_on="softmax cosine-weight-bound additive-score-bound",
    equivalent=dict.fromkeys(
        ("j -> i", r"\alpha_{i j} -> \alpha_{j i}", r"\max_{j} \alpha_{i j} -> \min_{j} \alpha_{i j}", "2 -> 3"),
        "every weight stays below the bound, and below a larger one",
    ),
)
def _(normal, rng, draw, T_q, n, d_q, d_k, d_h):
    r"""\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}}
    where n keys
    By Eq. additive-score-bound two scores differ by at most 2 |v|_1, and so do the logarithms of two weights.
        only the largest score counted: -2 -> -
        n other keys: (n - 1)\, -> n\,
        the length of v: \|v\|_1 -> \|v\|_2

    Sharper attention needs a larger v.
    """
    q, k, w_q, w_k, v = network(normal, T_q, n, d_q, d_k, d_h)
    v /= d_h / 2
    if draw == 1:  # every unit nearly saturated: one way for one key, the other way for all others, whatever the query
        k, w_k = np.full_like(k, -9.0), np.abs(w_k) * np.sign(v)
        k[rng.integers(n)] = 9.0
    v *= draw < 2  # at v = 0 all weights are 1 / n, and the bound is attained
    return {r"\alpha": softmax(additive_scores(q, k, w_q, w_k, v)), "v": vector(v), "n": n}


@claim("additive-score-is-odd", rests_on="additive-score", sizes="d_q d_k d_h")
def _(normal, draw, **sizes):
    r"""e(-q, -k) = -e(q, k)
    where e as in {eq}`additive-score`, without a bias inside tanh
    tanh is odd: turn query and keys round, and the ranking turns round. A dot product stays, so equality needs a bias to be seen.
        even, as the dot product is: e(-q, -k) = e(q, k)
        odd in the query alone: -k -> k
    """
    q, k, *weights = network(normal, 1, 1, **sizes)
    q, k = q * min(draw, 1), k * min(draw, 1)  # once 0, where a score is 0
    return {"e": function(lambda q, k: additive_scores(q[None], k[None], *weights)[0, 0]), "q": row(q[0]), "k": row(k[0])}


@claim("additive-derivative-by-query", rests_on="additive-score", sizes="d_q d_k d_h")
def _(normal, **sizes):
    r"""\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t^2) \bigr), \qquad t = \tanh\bigl(W_Q^\top q + W_K^\top k\bigr)
    Chain rule; where a unit is saturated, t = +-1, nothing passes.
        tanh itself: \frac{\partial e}{\partial q} = W_Q\, (v \odot t), \qquad t = \tanh(W_Q^\top q + W_K^\top k)
        1 - t: \frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t) \bigr), \qquad t = \tanh(W_Q^\top q + W_K^\top k)
        W_Q transposed: \frac{\partial e}{\partial q} = W_Q^\top (v \odot (1 - t^2)), \qquad t = \tanh(W_Q^\top q + W_K^\top k)
    """
    return pair(normal, **sizes)


@claim("additive-query-key-interaction", rests_on="additive-derivative-by-query")
def _(normal, draw, d_h):
    r"""\frac{\partial^2 e}{\partial q_a\, \partial k_b} = -2 \sum_{r=1}^{d_h} v_r\, t_r\, (1 - t_r^2)\, (W_Q)_{ar}\, (W_K)_{br}
    where t as in {eq}`additive-derivative-by-query`
    It is 0 at q = k = 0, where the dot product has delta_ab.
        tanh': -2 \sum_{r=1}^{d_h} v_r\, t_r -> \sum_{r=1}^{d_h} v_r
        t' forgotten: (1 - t_r^2)\, (W_Q)_{ar} -> (W_Q)_{ar}

    Small additive scores are sums, and by Eq. plain-sum-ignores-query sums do not attend.
    """
    given = pair(normal, d_q=2, d_k=2 + draw // 2, d_h=d_h)  # small: second differences cost
    hidden = of(lambda q, k: column(np.tanh(q @ given["W_Q"] + k @ given["W_K"])), "q", "k")
    return {**given, "t": hidden, "d_h": d_h}


# ---- what it costs
@claim("additive-memory-overhead", serves="F2", rests_on="additive-score")
def _(normal, T_q, T_k, d_h):
    r"""M_{\mathrm{add}} = T_q\, T_k\, d_h = d_h\, M_{\mathrm{dot}}
    where all pairs at once ;; M: numbers in the largest array that is made for the pairs
    tanh stands between the sum and v, so a number for each pair and unit must exist; a matrix product sums as it goes.
        none: d_h\, M -> M
        projections for each vector only: T_q\, T_k -> (T_q + T_k)
    """
    query, key, v = normal(T_q, d_h), normal(T_k, d_h), normal(d_h)
    arrays = {"add": [hidden := np.tanh(query[:, None] + key), hidden @ v], "dot": [query @ key.T]}
    stored = {rf"M_{{\mathrm{{{name}}}}}": max(len(array.ravel()) for array in made) for name, made in arrays.items()}
    return {**stored, "T_q": T_q, "T_k": T_k, "d_h": d_h}


# ---- the aligner
@claim("additive-attention", serves="A5 F1", rests_on="softmax additive-score", sizes=SIZES)
def _(normal, T_q, T_k, **sizes):
    r"""c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})}, \qquad
        e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr)
    where s_{i-1}: state of the decoder before it writes word i ;; h_j: annotation of source word j ;; T_k real words: padding is left out
    Keys and values are the same annotations: what is compared is what is passed on.
        X33: the similarity itself as a weight, without a softmax:
            c_i = \sum_{j=1}^{T_k} e_{ij}\, h_j, \qquad e_{ij} = v^\top \tanh(W_Q^\top s_{i-1} + W_K^\top h_j)
        X33: values of their own:
            c_i = \sum_{j=1}^{T_k} \sigma(e_i)_j\, W_K^\top h_j, \qquad e_{ij} = v^\top \tanh(W_Q^\top s_{i-1} + W_K^\top h_j)
        the new state asks: c_i = \sum_{j=1}^{T_k} \sigma(e_i)_j\, h_j, \qquad e_{ij} = v^\top \tanh(W_Q^\top s_i + W_K^\top h_j)
    """
    s, h, w_q, w_k, v = network(normal, T_q + 1, T_k, **sizes)
    e = additive_scores(s[:-1], h, w_q, w_k, v)
    names = {"s": columns(s, start=0, states=True), "h": columns(h), "W_Q": w_q, "W_K": w_k, "v": column(v), "T_k": T_k}
    return {**names, "e": e, "c": columns(softmax(e) @ h), "i": index(1, T_q)}
