"""Attention as a soft lookup: what a recurrent network forgets, weights from similarities, order and copies of pairs.

Similarities s are any non-negative numbers with a positive sum; softmax comes only in lesson softmax.
"""

from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, equation
from attn_course.formulas import function, of, opaque, row, rows, vector


def answer(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Look one query up with the similarity e^{q.k}."""
    return np.asarray(reference.attention(query[None], key, value, scale=1.0)[0])


def inputs(rng: np.random.Generator, m: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a query, keys and values, at random."""
    return rng.normal(size=d_k), rng.normal(size=(m, d_k)), rng.normal(size=(m, d_v))


# ---- Why attention: recall at a distance
def network(x: np.ndarray) -> Any:
    """Return the states of a recurrent network with one unit and these inputs."""

    def states(h_0: float, w: float) -> Any:
        h = [h_0]
        for x_t in x:
            h.append(np.tanh(w * h[-1] + x_t))
        return vector(h, start=0)

    return of(states, "h_0", "w")


@equation(
    "recurrent-gradient-product",
    r"\frac{\partial h_T}{\partial h_0} = \prod_{t=1}^{T} w\,(1 - h_t^2)",
    topics=["A5"],
    assumes=["h_t = tanh(w h_{t-1} + u x_t)"],
    wrong={"the factors added": r"\prod -> \sum", "only the last step counts": r"\prod_{t=1}^{T} w\,(1 - h_t^2) -> w\,(1 - h_T^2)"},
)
def memory_of_a_recurrent_network(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """Chain rule: what stood T steps ago is reached through T factors."""
    w = rng.uniform(0.6, 1.4) * (-1) ** draw
    return {"w": w, "h_0": rng.normal(), "h": network(rng.normal(size=T)), "T": T}


@equation(
    "recurrent-gradient-bound",
    r"\Bigl| \frac{\partial h_T}{\partial h_0} \Bigr| \le |w|^T",
    topics=["A5"],
    uses=["recurrent-gradient-product"],
    wrong={"it fades in proportion to the distance": r"|w|^T -> |w|\, T", "nothing is lost on the way": r"\le -> \ge"},
)
def memory_fades(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """Each factor of Eq. recurrent-gradient-product is at most |w|, and below |w| once a unit is off zero.

    For |w| < 1 the past fades geometrically.
    """
    w, h_0, x = (-0.9, 0.7, -1.6)[draw], rng.normal(), rng.normal(size=T)
    if draw == 2:  # the first input brings the unit back to zero, and there it stays
        x = -w * h_0 * np.eye(T)[0]
    return {"w": w, "h_0": h_0, "h": network(x), "T": T}


# ---- A dictionary that answers softly
@equation(
    "exact-lookup",
    r"D(q) = \sum_{i=1}^{m} [\,k_i = q\,]\; v_i",
    topics=["A2"],
    assumes=["the keys are distinct", "the answer is 0 if q is none of them", "[...] = 1 if true, else 0"],
    wrong={"it answers with the key": r"D(q) = \sum_{i=1}^{m} [\,v_i = q\,]\; k_i", "every pair but the right one": r"= q -> \ne q"},
)
def exact_lookup(rng: np.random.Generator, m: int, d: int, draw: int) -> Givens:
    """At most one term is not 0. Written so, a lookup is a sum over all pairs, and only the brackets are hard."""
    q, k, v = inputs(rng, m, d, d)
    k[0] = q * np.where(np.arange(d) % 2, -1, 1)  # as long as q
    k[1] = q + 1e-6 * np.array([q[1], -q[0], *np.zeros(d - 2)])  # near q, and with the same dot product
    if draw < 2:
        k[2] = q
    k = rng.permutation(k)
    pairs = {tuple(key): value for key, value in zip(k, v, strict=True)}
    return {"k": rows(k), "v": rows(v), "q": row(q), "m": m, "D": function(lambda q: pairs.get(tuple(q), np.zeros(d)))}


@equation(
    "normalised-similarities",
    r"\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)}",
    topics=["A3", "A4"],
    assumes=["similarities s >= 0 with a positive sum"],
    wrong={
        "X3: the same letter on both sides": r"\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_i)}",
        "X3: the same letter on both sides, worked out": r"\alpha(q, k_i) = \frac{s(q, k_i)}{m\, s(q, k_i)}",
        "divided by the number of pairs": r"\alpha(q, k_i) = \frac{s(q, k_i)}{m}",
    },
)
def normalised_weights(rng: np.random.Generator, m: int, d_q: int, d_k: int) -> Givens:
    """The only weights with sum 1 that are in the ratios of the similarities."""
    q, k, bilinear = rng.normal(size=d_q), rng.normal(size=(m, d_k)), rng.normal(size=(d_q, d_k))

    def similarity(q: np.ndarray, k: np.ndarray) -> float:
        return float(np.log1p(np.exp(q @ bilinear @ k)))

    def share(q: np.ndarray, one: np.ndarray) -> float:
        s = [similarity(q, key) for key in k]
        ratios = [np.ones(m), *(s[0] * np.eye(m)[i] - s[i] * np.eye(m)[0] for i in range(1, m))]
        alpha = np.linalg.solve(ratios, np.eye(m)[0])  # their sum is 1, and alpha_i s_1 = alpha_1 s_i
        return float(alpha[[np.array_equal(key, one) for key in k].index(True)])

    return {r"\alpha": function(share), "s": function(similarity), "q": row(q), "k": rows(k), "m": m}


@equation(
    "weights-on-the-simplex",
    r"0 \le \alpha_i \le 1, \qquad \sum_{i=1}^{m} \alpha_i = 1",
    topics=["A3", "A6"],
    uses=["normalised-similarities"],
    assumes=["s >= 0 with a positive sum"],
    wrong={"a weight is never 0": r"\le \alpha_i -> < \alpha_i", "all the same": r"0 \le \alpha_i \le 1 -> \alpha_i = \frac{1}{m}"},
)
def weights_of_nonnegative_similarities(rng: np.random.Generator, m: int, draw: int) -> Givens:
    """No term of a sum of non-negative terms exceeds the sum; a similarity of 0 gives weight 0, and if all others are 0, weight 1."""
    s = rng.uniform(0.1, 3.0, size=m)
    if draw == 2:
        s[1:] = 0.0
    return {r"\alpha": [s_i / sum(s) for s_i in s], "m": m}


NEAREST = r" = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2"


@equation(
    "soft-lookup",
    r"\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2",
    topics=["A2", "A4"],
    uses=["exact-lookup", "normalised-similarities"],
    wrong={
        "X32: one of the values": r"\mathrm{Attention}(q, D) = \sum_{i=1}^{m} [\alpha(q, k_i) = \max_j \alpha(q, k_j)]\, v_i" + NEAREST,
        "weighted twice": r"\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, s(q, k_i)\, v_i" + NEAREST,
    },
)
def soft_lookup(rng: np.random.Generator, m: int, d_k: int, d_v: int) -> Givens:
    """Eq. exact-lookup with weights for brackets: the one answer that is nearest to all values at once, similar pairs counting more."""
    q, k, v = inputs(rng, m, d_k, d_v)
    turn = rng.normal(size=(d_k, d_k))  # a similarity in which query and key have different roles
    functions = {
        r"\mathrm{Attention}": function(lambda q, D: answer(q @ turn, *D)),
        r"\alpha": function(lambda s, q, one: s(q, one) / sum(s(q, each) for each in k), names=("s",)),
        "s": function(lambda q, one: np.exp(q @ turn @ one)),
    }
    return {"q": row(q), "D": opaque((k, v)), "k": rows(k), "v": rows(v), "o": row(rng.normal(size=d_v)), "m": m, **functions}


# ---- Who asks, who answers, what is passed on: a lookup built by hand
@equation(
    "query-matches-key-name",
    r"(x_i W_Q) \cdot (x_j W_K) = [\,a_i = n_j\,]",
    topics=["A7"],
    assumes=["x = (name n, colour, name a asked for), each one-hot", "W_Q picks the last part, W_K the first"],
    wrong={
        "the roles swapped: the name asks, the question answers": r"(x_i W_K) \cdot (x_j W_Q) = [\,a_i = n_j\,]",
        "the indices swapped": r"(x_i W_Q) \cdot (x_j W_K) = [\,a_j = n_i\,]",
        "1 where the names differ": r"(x_i W_Q) \cdot (x_j W_K) = [\,a_i \ne n_j\,]",
    },
)
def question_meets_label(rng: np.random.Generator, m: int, c: int) -> Givens:
    """The query says what is wanted, the key what a position has: their dot product compares two names."""
    name, colour, asked = rng.permutation(m), rng.integers(0, c, size=m), rng.integers(0, m, size=m)
    asked[:2] = name[0]  # two ask for one, so that somebody is asked by nobody
    x = np.array([[*np.eye(m)[name[i]], *np.eye(c)[colour[i]], *np.eye(m)[asked[i]]] for i in range(m)])
    picks = {"W_Q": np.eye(m + c + m)[:, m + c :], "W_K": np.eye(m + c + m)[:, :m]}
    return {"x": rows(x), "a": vector(asked), "n": vector(name), **picks}


@equation(
    "lookup-by-name",
    r"z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j \ne r_i} v_j}{e^{\beta} + m - 1}",
    topics=["A7", "A2"],
    uses=["soft-lookup", "query-matches-key-name"],
    assumes=["s = e^{beta q.k}", "one of the m names matches: that of position r_i"],
    wrong={
        "with the roles of W_Q and W_K swapped": r"z_{r_i} = \frac{e^{\beta}\, v_i + \sum_{j \ne i} v_j}{e^{\beta} + m - 1}",
        "X32: exactly the matching value": r"z_i = \frac{e^{\beta}\, v_{r_i} + (m - 1)\, v_{r_i}}{e^{\beta} + m - 1}",
        "the match counted among the others too": r"z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j} v_j}{e^{\beta} + m}",
    },
)
def colour_by_name(rng: np.random.Generator, m: int, c: int) -> Givens:
    """Eq. soft-lookup with the scores of Eq. query-matches-key-name: for large beta the colour of the named token comes out."""
    name, asked, v, beta = rng.permutation(m), rng.integers(0, m, size=m), rng.normal(size=(m, c)), rng.normal()
    asked[:2] = name[1]
    z = reference.attention(np.eye(m)[asked], np.eye(m)[name], v, scale=beta)
    return {"z": rows(z), "v": rows(v), "r": vector([1 + list(name).index(one) for one in asked]), "m": m, r"\beta": beta}


# ---- A set of pairs, or rather a multiset
@equation(
    "pair-order-invariance",
    r"\mathrm{Attention}(q,\, \Pi K,\, \Pi V) = \mathrm{Attention}(q, K, V)",
    topics=["A8"],
    uses=["soft-lookup"],
    assumes=["Pi a permutation matrix: it rearranges the pairs"],
    wrong={
        "keys moved without their values": r"\mathrm{Attention}(q,\, \Pi K,\, V) = \mathrm{Attention}(q, K, V)",
        "values moved the other way": r"\mathrm{Attention}(q,\, \Pi K,\, \Pi^\top V) = \mathrm{Attention}(q, K, V)",
        "values moved without their keys": r"\mathrm{Attention}(q,\, K,\, \Pi V) = \mathrm{Attention}(q, K, V)",
    },
)
def order_of_pairs(rng: np.random.Generator, m: int, d_k: int, d_v: int) -> Givens:
    """Both sums of Eq. soft-lookup run over all pairs, in any order."""
    q, k, v = inputs(rng, m, d_k, d_v)
    names = np.eye(m)[rng.permutation(m)]
    moved = names.T @ np.roll(np.eye(m), 1, axis=0) @ names  # one cycle through all: nothing stays, and it is not its own inverse
    return {r"\mathrm{Attention}": function(answer), "q": row(q), "K": k, "V": v, r"\Pi": moved}


@equation(
    "duplicated-pair-counts-twice",
    r"\mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr)"
    r" = \frac{2\,s_1 v_1 + \sum_{i \ge 2} s_i v_i}{2\,s_1 + \sum_{i \ge 2} s_i}",
    topics=["A8"],
    uses=["soft-lookup"],
    assumes=["s_i = s(q, k_i)"],
    wrong={
        "a set ignores duplicates": r"\mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr) = \frac{\sum_{i} s_i v_i}{\sum_{i} s_i}",
        "counted twice above, once below": r"2\,s_1 + \sum_{i \ge 2} -> \sum_{i}",
    },
)
def duplicated_pair(rng: np.random.Generator, m: int, d_k: int, d_v: int) -> Givens:
    """A pair that occurs twice has two terms in each sum: a multiset, since a set would not count it again."""
    q, k, v = inputs(rng, m, d_k, d_v)
    s = vector([np.exp(q @ key) for key in k])
    return {r"\mathrm{Attention}": function(answer), "q": row(q), "K": k, "k": rows(k), "V": v, "v": rows(v), "s": s}
