"""Limits of a lookup, kernel regression, many queries, and what mixes what."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import claim
from attn_course.equations.drawing import named
from attn_course.formulas import function, matrix, of, row, rows, vector
from attn_course.lessons.lookup.equations import inputs


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


@claim("affine-maps-pass-through", serves="A3 A6", rests_on="weights-on-the-simplex")
def _(normal, rng, m, d_v, d_out):
    r"""\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + b
    Linearity, and for b that the weights sum to 1: a change of units of the values changes the answer alike, a constant is kept.
        the constant once for each pair: \sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + m\, b
        the constant lost: \sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A
        squares pass too: \sum_{i=1}^{m} \alpha_i\,(v_i A + b)^2 = \bigl( (\sum_{i=1}^{m} \alpha_i v_i) A + b \bigr)^2
    """
    alpha, v = rng.dirichlet(np.ones(m)), normal(m, d_v)
    return {r"\alpha": alpha, "v": rows(v), "A": normal(d_v, d_out), "b": row(normal(d_out)), "m": m}


# ---- Many queries: Z = P V
@claim("weights-times-values", serves="A6", rests_on="weights-on-the-simplex soft-lookup")
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


@claim("output-in-convex-hull", serves="A6", rests_on="weights-on-the-simplex weights-times-values")
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
@claim("output-derivative-by-value", serves="A1 A5", rests_on="recurrent-gradient-product weights-times-values")
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


@claim("opposite-query-inverts-ratios", serves="A1", rests_on="normalised-similarities")
def _(normal, m, d):
    r"""\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_j)}{\alpha(q, k_i)}
    where s(q, k) = e^{q.k}
    A ratio of weights is e^{q.(k_i - k_j)}: the opposite query turns it over. Fixed weights cannot do that.
        the ratios stay, as those of a fixed layer: \frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_i)}{\alpha(q, k_j)}
        the weights change sign: = -> = -
    """
    q, k, _ = inputs(normal, m, d, d)

    def share(q: np.ndarray, one: np.ndarray) -> float:
        weights = reference.softmax(reference.dot_scores(q[None], k))[0]
        return float(weights[[np.array_equal(key, one) for key in k].index(True)])

    return {r"\alpha": function(share, formula=r"\alpha(x, y) = e^{x \cdot y} / \sum_l e^{x \cdot k_l}"), "q": row(q), "k": rows(k)}


@claim("linear-attention-is-cubic", serves="A1", rests_on="linear-attention-two-readings")
def _(normal, m, d):
    r"""Z(c\,X) = c^3\, Z(X), \qquad Z(X) = X X^\top X
    where linear attention with all three projections left out
    X enters three times: once each as query, key and value. It is linear in each role, not in the input.
        linear in the input: c^3 -> c
        quadratic: the weights scale, the values do not:
            c^3 -> c^2
    """

    def mixed(X: np.ndarray) -> np.ndarray:
        return np.array([sum((query @ key) * key for key in X) for query in X])

    return {"X": normal(m, d), "c": normal(), "Z": function(mixed, "matrix")}
