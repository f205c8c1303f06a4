"""Additive attention.

Rows are positions: query (T_q, d_q), key (T_k, d_k), W_Q (d_q, d_h), W_K (d_k, d_h), score vector v (d_h).
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import column, columns, function, independent, index, normal_nodes, of, outcomes, row, vector
from attn_course.formulas.givens import Outcomes
from attn_course.reference import additive_scores, softmax

equation = about("F1")

SIZES = "T_q T_k d_q d_k d_h"


def network(rng: np.random.Generator, T_q: int, T_k: int, d_q: int, d_k: int, d_h: int) -> list[np.ndarray]:
    """Return queries, keys, W_Q, W_K, and v."""
    shapes = (T_q, d_q), (T_k, d_k), (d_q, d_h), (d_k, d_h)
    return [rng.normal(size=shape) for shape in (*shapes, (d_h,))]


def pair(rng: np.random.Generator, **sizes: int) -> Givens:
    """Return one query and one key as columns, the network, and its score of the two, which is made again where they change."""
    q, k, w_q, w_k, v = network(rng, 1, 1, **sizes)
    e = of(lambda q, k: v @ np.tanh(q @ w_q + k @ w_k), "q", "k")
    return {"e": e, "q": column(q[0]), "k": column(k[0]), "W_Q": w_q, "W_K": w_k, "v": column(v)}


# ---- from a vector to a score
@equation(
    "plain-sum-ignores-query",
    r"\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}}",
    uses=["softmax-shift-invariance"],
    assumes=["score = a + b_j: a depends on the query only, b_j on key j only"],
    wrong={
        "the query moves the weights": r"\sigma(a\,\mathbf{1} + b)_j = \frac{e^{a\,b_j}}{\sum_{l=1}^{n} e^{a\,b_l}}",
        "the query stays in the numerator": r"\sigma(a\,\mathbf{1} + b)_j = \frac{e^{a + b_j}}{\sum_{l=1}^{n} e^{b_l}}",
    },
)
def a_plain_sum_ignores_the_query(rng: np.random.Generator, n: int) -> Givens:
    """Without a nonlinearity the query shifts all scores alike and cancels: u . q + v . k_j would be no attention."""
    return {"a": rng.normal(), "b": column(rng.normal(size=n)), "n": n}


@equation(
    "additive-score",
    r"e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr)"
    r" = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i^\top W_Q)_r + (k_j^\top W_K)_r \bigr)",
    sizes=SIZES,
    topics=["F1", "A4"],
    uses=["soft-lookup"],
    assumes=["W_Q: d_q x d_h", "W_K: d_k x d_h", "v: d_h", "q_i, k_j columns"],
    wrong={
        "X6: the entries of tanh added up, without v": r"v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr) = "
        r"\sum_{r=1}^{d_h} \tanh(W_Q^\top q_i + W_K^\top k_j)_r = e_{ij}",
        "X6: tanh(q + k) itself: no projections, and no number": r"e_{ij} = \tanh(q_i + k_j)",
        "tanh of each projection": r"e_{ij} = \sum_{r=1}^{d_h} v_r \bigl( \tanh(W_Q^\top q_i)_r + \tanh(W_K^\top k_j)_r \bigr)",
        "the pair multiplied": r"e_{ij} = \sum_{r=1}^{d_h} v_r \tanh\bigl( (W_Q^\top q_i)_r\, (W_K^\top k_j)_r \bigr)",
    },
)
def additive_score(rng: np.random.Generator, **sizes: int) -> Givens:
    """Project both to d_h numbers, add, bend, and let v make one number of them."""
    q, k, w_q, w_k, v = network(rng, **sizes)
    e = additive_scores(q, k, w_q, w_k, v)
    return {"e": e, "q": columns(q), "k": columns(k), "W_Q": w_q, "W_K": w_k, "v": column(v), "d_h": sizes["d_h"]}


@equation(
    "concatenation-adds-projections",
    r"[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K",
    sizes="d_q d_k d_h",
    assumes=["q, k rows"],
    wrong={
        "the projections side by side": r"[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = [\,q\,W_Q,\, k\,W_K\,]",
        "the projections multiplied": r"[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q \odot k\,W_K",
        "the matrices in the other order": r"[\,q,\, k\,] \begin{pmatrix} W_K \\ W_Q \end{pmatrix} = q\,W_Q + k\,W_K",
    },
)
def one_hidden_layer(rng: np.random.Generator, **sizes: int) -> Givens:
    """So Eq. additive-score is a network with one hidden layer that reads the pair: tanh in the middle, v at the end."""
    q, k, w_q, w_k, _ = network(rng, 1, 1, **sizes)
    return {"q": row(q[0]), "k": row(k[0]), "W_Q": w_q, "W_K": w_k}


# ---- what the score can be
@equation(
    "additive-score-bound",
    r"|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1",
    sizes=SIZES,
    topics=["F1", "F2"],
    uses=["additive-score"],
    wrong={
        "by the length of v": r"|e_{ij}| \le \sqrt{\sum_{r=1}^{d_h} v_r^2}",
        "by the sum of v": r"|e_{ij}| \le \bigl| \sum_{r=1}^{d_h} v_r \bigr|",
        "by the largest entry of v": r"|e_{ij}| \le \max_r |v_r| = \frac{1}{d_h} \|v\|_1",
    },
    equivalent={r"\lvert e_{i j} \rvert -> e_{i j}": "a number is at most its absolute value"},
)
def scores_are_bounded(rng: np.random.Generator, draw: int, **sizes: int) -> Givens:
    """|tanh| < 1: a score stays within |v|_1, as close to it as tanh comes to 1, and attains it at v = 0 only."""
    q, k, w_q, w_k, v = network(rng, **sizes)
    if draw == 1:  # every unit nearly saturated, against the sign of its entry of v
        q, k, w_q = np.full_like(q, -4.0 / len(w_q)), np.zeros_like(k), np.ones_like(w_q) * np.sign(v)
    v *= draw < 2
    return {"e": additive_scores(q, k, w_q, w_k, v), "v": vector(v), "d_h": sizes["d_h"]}


@equation(
    "additive-weight-bound",
    r"\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}}",
    uses=["ratio-of-weights", "cosine-weight-bound", "additive-score-bound"],
    assumes=["n keys"],
    wrong={
        "only the largest score counted": r"\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-\|v\|_1}}",
        "n other keys": r"\max_j \alpha_{ij} \le \frac{1}{1 + n\, e^{-2 \|v\|_1}}",
        "the length of v": r"\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_2}}",
    },
    equivalent=dict.fromkeys(
        ("j -> i", r"\alpha_{i j} -> \alpha_{j i}", r"\max_{j} \alpha_{i j} -> \min_{j} \alpha_{i j}", "2 -> 3"),
        "every weight stays below the bound, and below a larger one",
    ),
)
def no_weight_is_arbitrarily_large(rng: np.random.Generator, draw: int, T_q: int, n: int, d_q: int, d_k: int, d_h: int) -> Givens:
    """By Eq. additive-score-bound two scores differ by at most 2 |v|_1, and so do the logarithms of two weights.

    Sharper attention needs a larger v.
    """
    q, k, w_q, w_k, v = network(rng, T_q, n, d_q, d_k, d_h)
    v /= d_h / 2
    if draw == 1:  # every unit nearly saturated: one way for one key, the other way for all others, whatever the query
        k, w_k = np.full_like(k, -9.0), np.abs(w_k) * np.sign(v)
        k[rng.integers(n)] = 9.0
    v *= draw < 2  # at v = 0 all weights are 1 / n, and the bound is attained
    return {r"\alpha": softmax(additive_scores(q, k, w_q, w_k, v)), "v": vector(v), "n": n}


@equation(
    "additive-score-is-odd",
    r"e(-q, -k) = -e(q, k)",
    sizes="d_q d_k d_h",
    uses=["additive-score"],
    assumes=["e as in {eq}`additive-score`, without a bias inside tanh"],
    wrong={"even, as the dot product is": r"e(-q, -k) = e(q, k)", "odd in the query alone": r"e(-q, k) = -e(q, k)"},
)
def score_is_odd(rng: np.random.Generator, draw: int, **sizes: int) -> Givens:
    """tanh is odd: turn query and keys round, and the ranking turns round. A dot product stays, so equality needs a bias to be seen."""
    q, k, *weights = network(rng, 1, 1, **sizes)
    q, k = q * min(draw, 1), k * min(draw, 1)  # once 0, where a score is 0
    return {"e": function(lambda q, k: additive_scores(q[None], k[None], *weights)[0, 0]), "q": row(q[0]), "k": row(k[0])}


@equation(
    "additive-derivative-by-query",
    r"\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t^2) \bigr), \qquad t = \tanh\bigl(W_Q^\top q + W_K^\top k\bigr)",
    sizes="d_q d_k d_h",
    uses=["additive-score"],
    wrong={
        "tanh itself": r"\frac{\partial e}{\partial q} = W_Q\, (v \odot t), \qquad t = \tanh(W_Q^\top q + W_K^\top k)",
        "1 - t": r"\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t) \bigr), \qquad t = \tanh(W_Q^\top q + W_K^\top k)",
        "W_Q transposed": r"\frac{\partial e}{\partial q} = W_Q^\top (v \odot (1 - t^2)), \qquad t = \tanh(W_Q^\top q + W_K^\top k)",
    },
)
def gradient_by_the_query(rng: np.random.Generator, **sizes: int) -> Givens:
    """Chain rule; where a unit is saturated, t = +-1, nothing passes."""
    return pair(rng, **sizes)


@equation(
    "additive-query-key-interaction",
    r"\frac{\partial^2 e}{\partial q_a\, \partial k_b} = -2 \sum_{r=1}^{d_h} v_r\, t_r\, (1 - t_r^2)\, (W_Q)_{ar}\, (W_K)_{br}",
    uses=["additive-derivative-by-query"],
    assumes=["t as in {eq}`additive-derivative-by-query`"],
    wrong={"tanh'": r"-2 \sum_{r=1}^{d_h} v_r\, t_r -> \sum_{r=1}^{d_h} v_r", "t' forgotten": r"(1 - t_r^2)\, (W_Q)_{ar} -> (W_Q)_{ar}"},
)
def interaction_of_query_and_key(rng: np.random.Generator, draw: int, d_h: int) -> Givens:
    """It is 0 at q = k = 0, where the dot product has delta_ab.

    Small additive scores are sums, and by Eq. plain-sum-ignores-query sums do not attend.
    """
    given = pair(rng, d_q=2, d_k=2 + draw // 2, d_h=d_h)  # small: second differences cost
    hidden = of(lambda q, k: column(np.tanh(q @ given["W_Q"] + k @ given["W_K"])), "q", "k")
    return {**given, "t": hidden, "d_h": d_h}


@equation(
    "square-units-make-products",
    r"q \cdot k = \tfrac{1}{4} \sum_{a=1}^{d} (q_a + k_a)^2 - \tfrac{1}{4} \sum_{a=1}^{d} (q_a - k_a)^2",
    topics=["F1", "A4"],
    uses=["dot-product-by-distance"],
    wrong={
        "the first sum alone": r"q \cdot k = \tfrac{1}{4} \sum_{a=1}^{d} (q_a + k_a)^2",
        "1/2 instead of 1/4": r"q \cdot k = \tfrac{1}{2} \sum_{a=1}^{d} (q_a + k_a)^2 - \tfrac{1}{2} \sum_{a=1}^{d} (q_a - k_a)^2",
    },
)
def dot_product_as_an_additive_score(rng: np.random.Generator, d: int, draw: int) -> Givens:
    """The form of Eq. additive-score with squares in place of tanh, 2 d hidden units and v = +-1/4: a sum bent once can hold a product."""
    q, k = rng.normal(size=(2, d))
    return {"q": row(q), "k": row(k if draw else q), "d": d}


@equation(
    "tanh-units-make-products",
    r"q\,k = \lim_{\varepsilon \to 0} \frac{f(q + k) - f(q - k)}{4\,\varepsilon^2 \tanh''(\beta)}, \qquad"
    r" f(x) = \tanh(\beta + \varepsilon x) + \tanh(\beta - \varepsilon x)",
    uses=["square-units-make-products"],
    assumes=["a bias beta inside tanh with tanh''(beta) not 0"],
    wrong={"the first derivative": r"\tanh'' -> \tanh'", "the factor 4 of the squares forgotten": r"4\,\varepsilon^2 -> \varepsilon^2"},
)
def tanh_units_make_a_square(rng: np.random.Generator, draw: int) -> Givens:
    """f is even, so it starts with a square: four tanh units with a bias for each feature come as close to q . k as one likes."""
    q, k, beta = rng.uniform(0.4, 0.9, size=3) * ((1, 1, -1), (-1, 1, 1), (1, -1, 1))[draw]
    return {"q": q, "k": k, r"\varepsilon": rng.uniform(0.05, 0.2), r"\beta": beta}


# ---- what it costs, and where it helps
@equation(
    "additive-score-flops",
    r"F_{\mathrm{add}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 4\, T_q\, T_k\, d_h",
    sizes=SIZES,
    topics=["F2"],
    uses=["additive-score"],
    assumes=["a multiply-add counts 2, a sum and a tanh 1 each"],
    wrong={
        "every pair projected again": r"F_{\mathrm{add}} = 2\, d_h\, T_q\, T_k\, (d_q + d_k) + 4\, T_q\, T_k\, d_h",
        "as many as the dot product": r"F_{\mathrm{add}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 2\, T_q\, T_k\, d_h",
    },
)
def flops_of_additive_scores(rng: np.random.Generator, T_q: int, T_k: int, d_q: int, d_k: int, d_h: int) -> Givens:
    """Each vector is projected once, not once for each pair; each pair and unit takes a sum, a tanh and a multiply-add."""
    shapes = (T_q, d_q), (T_k, d_k), (d_q, d_h), (d_k, d_h), (d_h,)
    products = multiplications(lambda q, k, w_q, w_k, v: ((q @ w_q)[:, None] + k @ w_k) @ v, *shapes)
    sums = np.zeros((T_q, 1, d_h)) + np.zeros((T_k, d_h))
    lengths = {"T_q": T_q, "T_k": T_k, "d_q": d_q, "d_k": d_k, "d_h": d_h}
    return {r"F_{\mathrm{add}}": 2 * products + sums.size + np.tanh(sums).size, **lengths}


@equation(
    "dot-score-flops",
    r"F_{\mathrm{dot}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 2\, T_q\, T_k\, d_h",
    sizes=SIZES,
    topics=["F2"],
    uses=["additive-score-flops"],
    assumes=["queries and keys projected to d_h", "a multiply-add counts 2"],
    wrong={
        "T_q T_k, one for each score": r"F_{\mathrm{dot}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 2\, T_q\, T_k",
        "additions not counted": r"F_{\mathrm{dot}} = d_h\, (T_q\, d_q + T_k\, d_k) + T_q\, T_k\, d_h",
    },
)
def flops_of_dot_scores(rng: np.random.Generator, T_q: int, T_k: int, d_q: int, d_k: int, d_h: int) -> Givens:
    """Half as many for each pair, and all of them in matrix products: a factor of 2 on paper, far more on hardware made for products."""
    shapes = (T_q, d_q), (T_k, d_k), (d_q, d_h), (d_k, d_h)
    flops = 2 * multiplications(lambda q, k, w_q, w_k: (q @ w_q) @ (k @ w_k).T, *shapes)
    return {r"F_{\mathrm{dot}}": flops, "T_q": T_q, "T_k": T_k, "d_q": d_q, "d_k": d_k, "d_h": d_h}


@equation(
    "additive-memory-overhead",
    r"M_{\mathrm{add}} = T_q\, T_k\, d_h = d_h\, M_{\mathrm{dot}}",
    topics=["F2"],
    uses=["additive-score"],
    assumes=["all pairs at once", "M: numbers in the largest array that is made for the pairs"],
    wrong={"none": r"d_h\, M -> M", "projections for each vector only": r"T_q\, T_k -> (T_q + T_k)"},
)
def memory_of_the_pairs(rng: np.random.Generator, T_q: int, T_k: int, d_h: int) -> Givens:
    """tanh stands between the sum and v, so a number for each pair and unit must exist; a matrix product sums as it goes."""
    query, key, v = rng.normal(size=(T_q, d_h)), rng.normal(size=(T_k, d_h)), rng.normal(size=d_h)
    arrays = {"add": [hidden := np.tanh(query[:, None] + key), hidden @ v], "dot": [query @ key.T]}
    stored = {rf"M_{{\mathrm{{{name}}}}}": max(len(array.ravel()) for array in made) for name, made in arrays.items()}
    return {**stored, "T_q": T_q, "T_k": T_k, "d_h": d_h}


@equation(
    "additive-score-variance",
    r"\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \mathbb{E}\bigl[\tanh^2(g)\bigr] < 1",
    topics=["F2"],
    uses=["variance-after-projection", "additive-score"],
    assumes=[
        "q, k independent, standard normal",
        "entries of W_Q, W_K independent, mean 0, variance 1/d, normal; those of v mean 0, variance 1/d_h",
        "over draws of vectors and weights",
        "g normal with mean 0 and variance 2",
    ],
    wrong={
        "tanh of the mean square": r"\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \tanh\bigl(\mathbb{E}[g^2]\bigr) < 1",
        "as for a dot product": r"\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \mathbb{E}[g^2] < 2 + 1",
        "tanh taken for +-1": r"\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \mathbb{E}\bigl[\tanh^2(g)\bigr] = 1",
    },
    equivalent={"1 -> 2": "what is below 1 is below 2"},
)
def spread_of_additive_scores(rng: np.random.Generator) -> Givens:
    """|q|^2 / d and |k|^2 / d tend to 1: no d is left. Unscaled dot products, of variance d_k, saturate softmax, additive ones do not."""
    nodes, weights = normal_nodes(20)
    units, chances = independent(nodes.tolist(), weights.tolist(), 2)  # given q and k, each hidden unit sees a normal number
    v, signs = independent([-(0.5**0.5), 0.5**0.5], [0.5, 0.5], 2)
    likely = np.einsum("a,b,c->abc", [0.5, 0.5], chances, signs).ravel()

    def score(d: float) -> Outcomes:
        squares = 2 + 2 / np.sqrt(d) * np.array([-1, 1])  # (|q|^2 + |k|^2) / d has mean 2 and variance 4 / d
        return outcomes(likely, (np.tanh(np.sqrt(squares)[:, None, None] * units) @ v.T).ravel())

    return {"e": of(score, "d"), "d": rng.uniform(3, 9), "g": outcomes(weights, np.sqrt(2) * nodes, "g")}


@equation(
    "unscaled-and-scaled-variance",
    r"\mathrm{Var}[\,q \cdot k\,] = d, \qquad \mathrm{Var}\Bigl[\frac{q \cdot k}{\sqrt{d}}\Bigr] = 1",
    topics=["F2"],
    uses=["variance-of-a-score", "scaled-score-variance", "additive-score-variance"],
    assumes=["entries of q, k independent, mean 0, variance 1"],
    wrong={
        "the deviation": r"\mathrm{Var}[\,q \cdot k\,] = \sqrt{d}, \qquad \mathrm{Var}\Bigl[\frac{q \cdot k}{\sqrt{d}}\Bigr] = 1",
        "1 without the scale": r"\mathrm{Var}[\,q \cdot k\,] = \mathrm{Var}\Bigl[\frac{q \cdot k}{\sqrt{d}}\Bigr] = 1",
        "divided by d": r"\mathrm{Var}[\,q \cdot k\,] = d, \qquad \mathrm{Var}\Bigl[\frac{q \cdot k}{d}\Bigr] = 1",
    },
)
def spread_of_dot_scores(rng: np.random.Generator, d: int) -> Givens:
    """The rival's scale: with sqrt(d) divided out, dot products spread as little as additive scores, and the two come level."""
    random = {}
    for name in "qk":
        rare = rng.uniform(0.25, 0.45)  # two values, the rarer one farther from 0
        points, chances = independent([np.sqrt(1 / rare - 1), -1 / np.sqrt(1 / rare - 1)], [rare, 1 - rare], d)
        random[name] = outcomes(chances, row(points), name)
    return {**random, "d": d}


# ---- the aligner
@equation(
    "additive-attention",
    r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad"
    r" \alpha_{ij} = \frac{e^{e_{ij}}}{\sum_{l=1}^{T_k} e^{e_{il}}}, \qquad"
    r" e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr)",
    sizes=SIZES,
    topics=["A5", "F1"],
    uses=["softmax", "additive-score"],
    assumes=[
        "s_{i-1}: state of the decoder before it writes word i",
        "h_j: annotation of source word j",
        "T_k real words: padding is left out",
    ],
    wrong={
        "X33: the similarity itself as a weight, without a softmax": r"c_i = \sum_{j=1}^{T_k} e_{ij}\, h_j, \qquad e_{ij} = "
        r"v^\top \tanh(W_Q^\top s_{i-1} + W_K^\top h_j)",
        "X33: values of their own": r"c_i = \sum_{j=1}^{T_k} \sigma(e_i)_j\, W_K^\top h_j, \qquad e_{ij} = v^\top \tanh(W_Q^\top s_{i-1}"
        r" + W_K^\top h_j)",
        "the new state asks": r"c_i = \sum_{j=1}^{T_k} \sigma(e_i)_j\, h_j, \qquad e_{ij} = v^\top \tanh(W_Q^\top s_i + W_K^\top h_j)",
    },
)
def context_of_the_aligner(rng: np.random.Generator, T_q: int, T_k: int, **sizes: int) -> Givens:
    """Keys and values are the same annotations: what is compared is what is passed on."""
    s, h, w_q, w_k, v = network(rng, T_q + 1, T_k, **sizes)
    e = additive_scores(s[:-1], h, w_q, w_k, v)
    names = {"s": columns(s, start=0, states=True), "h": columns(h), "W_Q": w_q, "W_K": w_k, "v": column(v), "T_k": T_k}
    return {**names, "e": e, "c": columns(softmax(e) @ h), "i": index(1, T_q)}
