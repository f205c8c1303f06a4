"""Attention as a soft lookup: what a recurrent network forgets, weights from similarities, order and copies of pairs.

Similarities s are any non-negative numbers with a positive sum; softmax comes only in lesson softmax.
"""

from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import claim
from attn_course.equations.drawing import Normal
from attn_course.formulas import function, of, opaque, row, rows, vector


def answer(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Look one query up with the similarity e^{q.k}."""
    return np.asarray(reference.attention(query[None], key, value, scale=1.0)[0])


ATTENTION = function(answer, formula=r"\mathrm{Attention}(x, A, B) = \mathrm{softmax}(x A^\top)\, B")


def inputs(normal: Normal, m: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a query, keys and values, at random."""
    return normal(d_k), normal(m, d_k), normal(m, d_v)


# ---- Why attention: recall at a distance
def network(x: np.ndarray) -> Any:
    """Return the states of a recurrent network with one unit and these inputs."""

    def states(h_0: float, w: float) -> Any:
        h = [h_0]
        for x_t in x:
            h.append(np.tanh(w * h[-1] + x_t))
        return vector(h, start=0)

    return of(states, "h_0", "w")


@claim("recurrent-gradient-product", serves="A5")
def _(normal, rng, T, draw):
    r"""\frac{\partial h_T}{\partial h_0} = \prod_{t=1}^{T} w\,(1 - h_t^2)
    where h_t = tanh(w h_{t-1} + u x_t)
    Chain rule: what stood T steps ago is reached through T factors.
        the factors added: \prod -> \sum
        only the last step counts: \prod_{t=1}^{T} w\,(1 - h_t^2) -> w\,(1 - h_T^2)
    """
    w = rng.uniform(0.6, 1.4) * (-1) ** draw
    return {"w": w, "h_0": normal(), "h": network(normal(T)), "T": T}


@claim("recurrent-gradient-bound", serves="A5", rests_on="recurrent-gradient-product")
def _(normal, T, draw):
    r"""\Bigl| \frac{\partial h_T}{\partial h_0} \Bigr| \le |w|^T
    Each factor of Eq. recurrent-gradient-product is at most |w|, and below |w| once a unit is off zero.
        it fades in proportion to the distance: |w|^T -> |w|\, T
        nothing is lost on the way: \le -> \ge

    For |w| < 1 the past fades geometrically.
    """
    w, h_0, x = (-0.9, 0.7, -1.6)[draw], normal(), normal(T)
    if draw == 2:  # the first input brings the unit back to zero, and there it stays
        x = -w * h_0 * np.eye(T)[0]
    return {"w": w, "h_0": h_0, "h": network(x), "T": T}


# ---- A dictionary that answers softly
@claim("exact-lookup", serves="A2")
def _(normal, rng, m, d, draw):
    r"""D(q) = \sum_{i=1}^{m} [\,k_i = q\,]\; v_i
    where the keys are distinct ;; the answer is 0 if q is none of them ;; [...] = 1 if true, else 0
    At most one term is not 0. Written so, a lookup is a sum over all pairs, and only the brackets are hard.
        it answers with the key: D(q) = \sum_{i=1}^{m} [\,v_i = q\,]\; k_i
        every pair but the right one: = q -> \ne q
    """
    q, k, v = inputs(normal, m, d, d)
    k[0] = q * np.where(np.arange(d) % 2, -1, 1)  # as long as q
    k[1] = q + 1e-6 * np.array([q[1], -q[0], *np.zeros(d - 2)])  # near q, and with the same dot product
    if draw < 2:
        k[2] = q
    k = rng.permutation(k)
    pairs = {tuple(key): value for key, value in zip(k, v, strict=True)}
    return {"k": rows(k), "v": rows(v), "q": row(q), "m": m, "D": function(lambda q: pairs.get(tuple(q), np.zeros(d)))}


@claim("normalised-similarities", serves="A3 A4")
def _(normal, m, d_q, d_k, draw):
    r"""\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)}
    where similarities s >= 0 with a positive sum
    The only weights with sum 1 that are in the ratios of the similarities.
        X3: the same letter on both sides: k_j -> k_i
        X3: the same letter on both sides, worked out: \alpha(q, k_i) = \frac{s(q, k_i)}{m\, s(q, k_i)}
        divided by the number of pairs: \alpha(q, k_i) = \frac{s(q, k_i)}{m}
    """
    q, k, bilinear = normal(d_q), normal(m, d_k), normal(d_q, d_k)
    unlike = k[-1] if draw == 2 and m > 1 else np.zeros(0)

    def similarity(q: np.ndarray, k: np.ndarray) -> float:
        return 0.0 if np.array_equal(k, unlike) else float(np.log1p(np.exp(q @ bilinear @ k)))

    def share(q: np.ndarray, one: np.ndarray) -> float:
        s = [similarity(q, key) for key in k]
        ratios = [np.ones(m), *(s[0] * np.eye(m)[i] - s[i] * np.eye(m)[0] for i in range(1, m))]
        alpha = np.linalg.solve(ratios, np.eye(m)[0])  # their sum is 1, and alpha_i s_1 = alpha_1 s_i
        return float(alpha[[np.array_equal(key, one) for key in k].index(True)])

    return {r"\alpha": function(share), "s": function(similarity), "q": row(q), "k": rows(k), "m": m}


@claim("weights-on-the-simplex", serves="A3 A6", rests_on="normalised-similarities")
def _(rng, m, draw):
    r"""0 \le \alpha_i \le 1, \qquad \sum_{i=1}^{m} \alpha_i = 1
    where s >= 0 with a positive sum
    No term of a sum of non-negative terms exceeds the sum; a similarity of 0 gives weight 0, and if all others are 0, weight 1.
        a weight is never 0: \le \alpha_i -> < \alpha_i
        all the same: 0 \le \alpha_i \le 1 -> \alpha_i = \frac{1}{m}
    """
    s = rng.uniform(0.1, 3.0, size=m)
    if draw == 2:
        s[1:] = 0.0
    return {r"\alpha": [s_i / sum(s) for s_i in s], "m": m}


@claim(
    "soft-lookup",
    serves="A2 A4",
    rests_on="exact-lookup normalised-similarities",
    beside=(r"\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)}",),
)
def _(normal, m, d_k, d_v):
    r"""\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2
    Eq. exact-lookup with weights for brackets: the one answer that is nearest to all values at once, similar pairs counting more.
        X32: one of the values: \alpha(q, k_i)\, -> [\alpha(q, k_i) = \max_j \alpha(q, k_j)]\,
        weighted twice: v_i = -> s(q, k_i)\, v_i =
    """
    q, k, v = inputs(normal, m, d_k, d_v)
    turn = normal(d_k, d_k)  # a similarity in which query and key have different roles
    functions = {
        r"\mathrm{Attention}": function(lambda q, D: answer(q @ turn, *D)),
        r"\alpha": function(lambda s, q, one: s(q, one) / sum(s(q, each) for each in k), names=("s",)),
        "s": function(lambda q, one: np.exp(q @ turn @ one)),
    }
    return {"q": row(q), "D": opaque((k, v)), "k": rows(k), "v": rows(v), "o": row(normal(d_v)), "m": m, **functions}


# ---- Who asks, who answers, what is passed on: a lookup built by hand
@claim("query-matches-key-name", serves="A7")
def _(rng, m, c):
    r"""(x_i W_Q) \cdot (x_j W_K) = [\,a_i = n_j\,]
    where x = (name n, colour, name a asked for), each one-hot ;; W_Q picks the last part, W_K the first
    The query says what is wanted, the key what a position has: their dot product compares two names.
        the roles swapped: the name asks, the question answers:
            W_Q -> W_K ;; x_j W_K -> x_j W_Q
        the indices swapped: \,a_i = n_j\, -> \,a_j = n_i\,
        1 where the names differ: = n_j\, -> \ne n_j\,
    """
    name, colour, asked = rng.permutation(m), rng.integers(0, c, size=m), rng.integers(0, m, size=m)
    asked[:2] = name[0]  # two ask for one, so that somebody is asked by nobody
    x = np.array([[*np.eye(m)[name[i]], *np.eye(c)[colour[i]], *np.eye(m)[asked[i]]] for i in range(m)])
    picks = {"W_Q": np.eye(m + c + m)[:, m + c :], "W_K": np.eye(m + c + m)[:, :m]}
    return {"x": rows(x), "a": vector(asked), "n": vector(name), **picks}


@claim("lookup-by-name", serves="A7 A2", rests_on="soft-lookup query-matches-key-name")
def _(normal, rng, m, c):
    r"""z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j \ne r_i} v_j}{e^{\beta} + m - 1}
    where s = e^{beta q.k} ;; one of the m names matches: that of position r_i
    Eq. soft-lookup with the scores of Eq. query-matches-key-name: for large beta the colour of the named token comes out.
        with the roles of W_Q and W_K swapped: z_{r_i} = \frac{e^{\beta}\, v_i + \sum_{j \ne i} v_j}{e^{\beta} + m - 1}
        X32: exactly the matching value: \sum_{j \ne r_i} v_j -> (m - 1)\, v_{r_i}
        the match counted among the others too: \ne r_i -> ;; + m - 1 -> + m
    """
    name, asked, v, beta = rng.permutation(m), rng.integers(0, m, size=m), normal(m, c), normal()
    asked[:2] = name[1]
    z = reference.attention(np.eye(m)[asked], np.eye(m)[name], v, scale=beta)
    return {"z": rows(z), "v": rows(v), "r": vector([1 + list(name).index(one) for one in asked]), "m": m, r"\beta": beta}


# ---- A set of pairs, or rather a multiset
@claim("pair-order-invariance", serves="A8", rests_on="soft-lookup")
def _(normal, rng, m, d_k, d_v):
    r"""\mathrm{Attention}(q,\, \Pi K,\, \Pi V) = \mathrm{Attention}(q, K, V)
    where Pi a permutation matrix: it rearranges the pairs
    Both sums of Eq. soft-lookup run over all pairs, in any order.
        keys moved without their values: \Pi V -> V
        values moved the other way: \Pi V -> \Pi^\top V
        values moved without their keys: \Pi K -> K
    """
    q, k, v = inputs(normal, m, d_k, d_v)
    names = np.eye(m)[rng.permutation(m)]
    moved = names.T @ np.roll(np.eye(m), 1, axis=0) @ names  # one cycle through all: nothing stays, and it is not its own inverse
    return {r"\mathrm{Attention}": ATTENTION, "q": row(q), "K": k, "V": v, r"\Pi": moved}


@claim("duplicated-pair-counts-twice", serves="A8", rests_on="soft-lookup")
def _(normal, m, d_k, d_v):
    r"""\mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr)
        = \frac{2\,s_1 v_1 + \sum_{i \ge 2} s_i v_i}{2\,s_1 + \sum_{i \ge 2} s_i}
    where s_i = s(q, k_i)
    A pair that occurs twice has two terms in each sum: a multiset, since a set would not count it again.
        a set ignores duplicates: \mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr) = \frac{\sum_{i} s_i v_i}{\sum_{i} s_i}
        counted twice above, once below: 2\,s_1 + \sum_{i \ge 2} -> \sum_{i}
    """
    q, k, v = inputs(normal, m, d_k, d_v)
    s = vector([np.exp(q @ key) for key in k])
    return {r"\mathrm{Attention}": ATTENTION, "q": row(q), "K": k, "k": rows(k), "V": v, "v": rows(v), "s": s}
