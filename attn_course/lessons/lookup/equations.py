"""Attention as a soft lookup: weights from similarities, one dial, kernel regression, the hull, order and copies, what mixes what.

Similarities s are any non-negative numbers with a positive sum; softmax comes only in lesson softmax.
"""

from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import claim
from attn_course.equations.drawing import Normal, named
from attn_course.formulas import function, matrix, of, opaque, row, rows, vector


def answer(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Look one query up with the similarity e^{q.k}."""
    return np.asarray(reference.attention(query[None], key, value, scale=1.0)[0])


ATTENTION = function(answer, formula=r"\mathrm{Attention}(x, A, B) = \mathrm{softmax}(x A^\top)\, B")


def inputs(normal: Normal, m: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a query, keys and values, at random."""
    return normal(d_k), normal(m, d_k), normal(m, d_v)


# ---- What a recurrent network forgets
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


# ---- A lookup built by hand


@claim("lookup-by-name", serves="A7 A2", rests_on="soft-lookup")
def _(normal, rng, m, c):
    r"""z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j \ne r_i} v_j}{e^{\beta} + m - 1}
    where s = e^{beta q.k} ;; one of the m names matches: that of position r_i
    Eq. soft-lookup with the score 1 for equal names and 0 for others: for large beta the colour of the named token comes out.
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


# ---- Exact lookup and plain average: the two ends of one dial
@claim("bandwidth-limits", serves="A2 A3", rests_on="normalised-similarities soft-lookup")
def _(normal, rng, m, d):
    r"""\lim_{h \to 0^+} \alpha_i = \bigl[\, \|q - k_i\| = \min_j \|q - k_j\| \,\bigr], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}
    where s(q, k) = e^{-|q - k|^2 / 2 h^2} ;; one key is nearest
    The ratio of two similarities is e to the difference of squared distances over 2 h^2: infinite at one end, 1 at the other.
        X32: nearest key at any h: \alpha_i = [\|q - k_i\| = \min_j \|q - k_j\|], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}
        swapped: \lim_{h \to \infty} \alpha_i = [\|q - k_i\| = \min_j \|q - k_j\|], \qquad \lim_{h \to 0^+} \alpha_i = \frac{1}{m}
    """
    q, k, _ = inputs(normal, m, d, d)
    k[1] = q + (1 + 1e-7) * (k[0] - q)  # hardly farther than another
    alpha = of(lambda h: vector(reference.softmax(reference.gaussian_scores(q[None], k, float(h)))[0]), "h")
    return {"q": row(q), "k": rows(k), "m": m, "h": rng.uniform(0.5, 2.0), r"\alpha": alpha}


# ---- An old friend: kernel regression
@claim("nadaraya-watson-regression", serves="A3", rests_on="normalised-similarities soft-lookup")
def _(normal, rng, m):
    r"""\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy}
        = \sum_{i=1}^{m} \frac{K_h(x - x^{(i)})}{\sum_{j=1}^{m} K_h(x - x^{(j)})}\, y^{(i)}
    where p(x, y) estimated by (1/m) sum_i K_h(x - x^(i)) K_h(y - y^(i)) ;; K_h a Gaussian of width h
    The conditional mean of a kernel density is attention: x asks, x^(i) are the keys, y^(i) the values.
        divided by the number of points:
            \frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy} = \frac{1}{m} \sum_{i=1}^{m} K_h(x - x^{(i)})\, y^{(i)}
        the kernel compares x with y: x^{(i)} -> y^{(i)}
    """
    keys, values, h = normal(m), 3 * normal(m), rng.uniform(0.6, 1.2)

    def kernel(u: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-(u**2) / (2 * h**2)) / (h * np.sqrt(2 * np.pi)))

    def density(x: float, y: float) -> float:
        return float(np.mean(kernel(x - keys) * kernel(y - values)))

    functions = {r"\hat p": function(density), "K_h": function(kernel, entrywise=True)}
    return {"x": normal(), "x^{(i)}": vector(keys), "y^{(i)}": vector(values), "m": m, **functions}


# ---- Many queries: Z = P V
@claim("weights-times-values", serves="A6", rests_on="soft-lookup")
def _(normal, T_out, T_in, d_v, draw):
    r"""z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \;\Longleftrightarrow\; Z = P\,V, \qquad P\,\mathbf{1} = \mathbf{1}
    where row i of P holds the weights of query i
    P has one row for each query and one column for each pair: the output is as long as the list of queries, not as the context.
        the columns sum to 1: \;\Longleftrightarrow\; -> \iff ;; \qquad P\, -> \qquad P^\top
        each row sums to the length: \;\Longleftrightarrow\; -> \iff ;; = \mathbf{1} -> = T_{in}\,\mathbf{1}
    """
    _, k, v = inputs(normal, T_in, 2, d_v)
    z, p = reference.attention(normal(T_out, 2), k, v, return_weights=True)
    if draw == 1:  # any other list of outputs
        z = normal(T_out, d_v)
    return {"p": p, "v": rows(v), "z": rows(z), "Z": z, "P": p, "V": v, "T_{in}": T_in}


@claim("output-in-convex-hull", serves="A6", rests_on="soft-lookup")
def _(normal, m, d_v, draw):
    r"""\min_j\, a \cdot v_j \;\le\; a \cdot z \;\le\; \max_j\, a \cdot v_j
    where a any direction
    An average with weights in [0, 1] lies between the extremes, in every direction: in the convex hull of the values.
        in no direction an extreme: all \le -> <
        beyond all values: \max_j\, a \cdot v_j \;\le\; a \cdot z
    """
    _, k, v = inputs(normal, m, 2, d_v)
    a, mask = normal(d_v), np.ones(m, bool)
    if draw:  # all weight on the first or on the last value along a
        mask = np.arange(m) == np.argsort(v @ a)[0 if draw == 1 else -1]
    return {"a": row(a), "v": rows(v), "z": row(reference.attention(k[:1], k, v, mask=mask[None])[0])}


# ---- Fixed weights and weights that depend on the data; positions and features
@claim("output-derivative-by-value", serves="A1 A5", rests_on="weights-times-values")
def _(normal, rng, T_out, T_in, d_v):
    r"""\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ab}
    where P does not depend on V
    Weights from the left mix positions and leave features alone; any position is one factor away, however far it stands.
        X10: weights that mix features: \delta_{ab} -> (1 - \delta_{ab})
        positions and features alike: \, \delta_{ab} ->
        only the own position counts: \delta_{ab} -> \delta_{ij}\, \delta_{ab}
    """
    p = rng.dirichlet(np.ones(T_in), size=T_out)
    return {"p": p, "v": normal(T_in, d_v), "z": of(lambda v: matrix(p @ v), "v")}


@claim("linear-attention-two-readings", serves="A1", rests_on="weights-times-values output-derivative-by-value")
def _(normal, m, d_model, d_k, d_v):
    r"""\bigl( X W_Q W_K^\top X^\top \bigr)\, X W_V = X\, \bigl( W_Q W_K^\top X^\top X W_V \bigr)
    where no softmax: linear attention
    Brackets move: P(X), m x m, mixes positions; W(X), v x v', mixes features. Both depend on the data.
        X10: features gathered first: ( X W_Q W_K^\top X^\top ) X W_V = X ( X^\top X W_Q W_K^\top W_V )
        softmax in between: \mathrm{softmax}(X W_Q W_K^\top X^\top)\, X W_V = X\, \mathrm{softmax}(W_Q W_K^\top X^\top X)\, W_V
    """
    return named(normal, X=(m, d_model), W_Q=(d_model, d_k), W_K=(d_model, d_k), W_V=(d_model, d_v))
