"""Limits of a lookup, kernel regression, many queries, and what mixes what."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, equation
from attn_course.formulas import function, matrix, of, row, rows, vector
from attn_course.lessons.lookup.equations import inputs


# ---- Exact lookup and plain average: the two ends of one dial
@equation(
    "bandwidth-limits",
    r"\lim_{h \to 0^+} \alpha_i = \bigl[\, \|q - k_i\| = \min_j \|q - k_j\| \,\bigr], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}",
    topics=["A2", "A3"],
    uses=["normalised-similarities", "soft-lookup"],
    assumes=["s(q, k) = e^{-|q - k|^2 / 2 h^2}", "one key is nearest"],
    wrong={
        "X32: nearest key at any h": r"\alpha_i = [\|q - k_i\| = \min_j \|q - k_j\|], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}",
        "swapped": r"\lim_{h \to \infty} \alpha_i = [\|q - k_i\| = \min_j \|q - k_j\|], \qquad \lim_{h \to 0^+} \alpha_i = \frac{1}{m}",
    },
)
def two_limits_of_a_lookup(rng: np.random.Generator, m: int, d: int) -> Givens:
    """The ratio of two similarities is e to the difference of squared distances over 2 h^2: infinite at one end, 1 at the other."""
    q, k, _ = inputs(rng, m, d, d)
    k[1] = q + (1 + 1e-7) * (k[0] - q)  # hardly farther than another
    alpha = of(lambda h: vector(reference.softmax(reference.gaussian_scores(q[None], k, float(h)))[0]), "h")
    return {"q": row(q), "k": rows(k), "m": m, "h": rng.uniform(0.5, 2.0), r"\alpha": alpha}


# ---- An old friend: kernel regression
@equation(
    "nadaraya-watson-regression",
    r"\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy}"
    r" = \sum_{i=1}^{m} \frac{K_h(x - x^{(i)})}{\sum_{j=1}^{m} K_h(x - x^{(j)})}\, y^{(i)}",
    topics=["A3"],
    uses=["normalised-similarities", "soft-lookup"],
    assumes=["p(x, y) estimated by (1/m) sum_i K_h(x - x^(i)) K_h(y - y^(i))", "K_h a Gaussian of width h"],
    wrong={
        "divided by the number of points": r"\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy}"
        r" = \frac{1}{m} \sum_{i=1}^{m} K_h(x - x^{(i)})\, y^{(i)}",
        "the kernel compares x with y": "x^{(i)} -> y^{(i)}",
    },
)
def nadaraya_watson(rng: np.random.Generator, m: int) -> Givens:
    """The conditional mean of a kernel density is attention: x asks, x^(i) are the keys, y^(i) the values."""
    keys, values, h = rng.normal(size=m), 3 * rng.normal(size=m), rng.uniform(0.6, 1.2)

    def kernel(u: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-(u**2) / (2 * h**2)) / (h * np.sqrt(2 * np.pi)))

    def density(x: float, y: float) -> float:
        return float(np.mean(kernel(x - keys) * kernel(y - values)))

    functions = {r"\hat p": function(density), "K_h": function(kernel, entrywise=True)}
    return {"x": rng.normal(), "x^{(i)}": vector(keys), "y^{(i)}": vector(values), "m": m, **functions}


@equation(
    "affine-maps-pass-through",
    r"\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + b",
    topics=["A3", "A6"],
    uses=["weights-on-the-simplex"],
    wrong={
        "the constant once for each pair": r"\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + m\, b",
        "the constant lost": r"\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A",
        "squares pass too": r"\sum_{i=1}^{m} \alpha_i\,(v_i A + b)^2 = \bigl( (\sum_{i=1}^{m} \alpha_i v_i) A + b \bigr)^2",
    },
)
def affine_maps_pass_through(rng: np.random.Generator, m: int, d_v: int, d_out: int) -> Givens:
    """Linearity, and for b that the weights sum to 1: a change of units of the values changes the answer alike, a constant is kept."""
    alpha, v = rng.dirichlet(np.ones(m)), rng.normal(size=(m, d_v))
    return {r"\alpha": alpha, "v": rows(v), "A": rng.normal(size=(d_v, d_out)), "b": row(rng.normal(size=d_out)), "m": m}


# ---- Many queries: Z = P V
@equation(
    "weights-times-values",
    r"z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \;\Longleftrightarrow\; Z = P\,V, \qquad P\,\mathbf{1} = \mathbf{1}",
    topics=["A6"],
    uses=["weights-on-the-simplex", "soft-lookup"],
    assumes=["row i of P holds the weights of query i"],
    wrong={
        "the columns sum to 1": r"z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \iff Z = P\,V, \qquad P^\top \mathbf{1} = \mathbf{1}",
        "each row sums to the length": r"z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \iff Z = P\,V, \qquad P\,\mathbf{1} = T_{in}\,\mathbf{1}",
    },
)
def one_row_for_each_query(rng: np.random.Generator, T_out: int, T_in: int, d_v: int, draw: int) -> Givens:
    """P has one row for each query and one column for each pair: the output is as long as the list of queries, not as the context."""
    _, k, v = inputs(rng, T_in, 2, d_v)
    z, p = reference.attention(rng.normal(size=(T_out, 2)), k, v, return_weights=True)
    if draw == 1:  # any other list of outputs
        z = rng.normal(size=(T_out, d_v))
    return {"p": p, "v": rows(v), "z": rows(z), "Z": z, "P": p, "V": v, "T_{in}": T_in}


@equation(
    "output-in-convex-hull",
    r"\min_j\, a \cdot v_j \;\le\; a \cdot z \;\le\; \max_j\, a \cdot v_j",
    topics=["A6"],
    uses=["weights-on-the-simplex", "weights-times-values"],
    assumes=["a any direction"],
    wrong={"in no direction an extreme": r"\le -> <", "beyond all values": r"\max_j\, a \cdot v_j \;\le\; a \cdot z"},
)
def convex_hull(rng: np.random.Generator, m: int, d_v: int, draw: int) -> Givens:
    """An average with weights in [0, 1] lies between the extremes, in every direction: in the convex hull of the values."""
    _, k, v = inputs(rng, m, 2, d_v)
    a, mask = rng.normal(size=d_v), np.ones(m, bool)
    if draw:  # all weight on the first or on the last value along a
        mask = np.arange(m) == np.argsort(v @ a)[0 if draw == 1 else -1]
    return {"a": row(a), "v": rows(v), "z": row(reference.attention(k[:1], k, v, mask=mask[None])[0])}


# ---- Fixed weights and weights that depend on the data; positions and features
@equation(
    "output-derivative-by-value",
    r"\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ab}",
    topics=["A1", "A5"],
    uses=["recurrent-gradient-product", "weights-times-values"],
    assumes=["P does not depend on V"],
    wrong={
        "X10: weights that mix features": r"\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, (1 - \delta_{ab})",
        "positions and features alike": r"\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}",
        "only the own position counts": r"\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ij}\, \delta_{ab}",
    },
)
def positions_are_mixed(rng: np.random.Generator, T_out: int, T_in: int, d_v: int) -> Givens:
    """Weights from the left mix positions and leave features alone; any position is one factor away, however far it stands."""
    p = rng.dirichlet(np.ones(T_in), size=T_out)
    return {"p": p, "v": rng.normal(size=(T_in, d_v)), "z": of(lambda v: matrix(p @ v), "v")}


@equation(
    "linear-attention-two-readings",
    r"\bigl( X W_Q W_K^\top X^\top \bigr)\, X W_V = X\, \bigl( W_Q W_K^\top X^\top X W_V \bigr)",
    topics=["A1"],
    uses=["weights-times-values", "output-derivative-by-value"],
    assumes=["no softmax: linear attention"],
    wrong={
        "X10: features gathered first": r"( X W_Q W_K^\top X^\top ) X W_V = X ( X^\top X W_Q W_K^\top W_V )",
        "softmax in between": r"\mathrm{softmax}(X W_Q W_K^\top X^\top)\, X W_V = X\, \mathrm{softmax}(W_Q W_K^\top X^\top X)\, W_V",
    },
)
def two_readings_of_linear_attention(rng: np.random.Generator, m: int, d_model: int, d_k: int, d_v: int) -> Givens:
    """Brackets move: P(X), m x m, mixes positions; W(X), v x v', mixes features. Both depend on the data."""
    shapes = {"X": (m, d_model), "W_Q": (d_model, d_k), "W_K": (d_model, d_k), "W_V": (d_model, d_v)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@equation(
    "opposite-query-inverts-ratios",
    r"\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_j)}{\alpha(q, k_i)}",
    topics=["A1"],
    uses=["normalised-similarities"],
    assumes=["s(q, k) = e^{q.k}"],
    wrong={
        "the ratios stay, as those of a fixed layer": r"\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_i)}{\alpha(q, k_j)}",
        "the weights change sign": r"\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = -\frac{\alpha(q, k_j)}{\alpha(q, k_i)}",
    },
)
def weights_that_flip(rng: np.random.Generator, m: int, d: int) -> Givens:
    """A ratio of weights is e^{q.(k_i - k_j)}: the opposite query turns it over. Fixed weights cannot do that."""
    q, k, _ = inputs(rng, m, d, d)

    def share(q: np.ndarray, one: np.ndarray) -> float:
        weights = reference.softmax(reference.dot_scores(q[None], k))[0]
        return float(weights[[np.array_equal(key, one) for key in k].index(True)])

    return {r"\alpha": function(share), "q": row(q), "k": rows(k)}


@equation(
    "linear-attention-is-cubic",
    r"Z(c\,X) = c^3\, Z(X), \qquad Z(X) = X X^\top X",
    topics=["A1"],
    uses=["linear-attention-two-readings"],
    assumes=["linear attention with all three projections left out"],
    wrong={"linear in the input": "c^3 -> c", "quadratic: the weights scale, the values do not": "c^3 -> c^2"},
)
def linear_attention_is_cubic(rng: np.random.Generator, m: int, d: int) -> Givens:
    """X enters three times: once each as query, key and value. It is linear in each role, not in the input."""

    def mixed(X: np.ndarray) -> np.ndarray:
        return np.array([sum((query @ key) * key for key in X) for query in X])

    return {"X": rng.normal(size=(m, d)), "c": rng.normal(), "Z": function(mixed, "matrix")}
