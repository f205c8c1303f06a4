"""The variance of a score in practice: broken assumptions, the normal limit, softmax, training, norms.

What is random is a list of points and weights with the moments that its formula needs, exactly: every outcome, or a rule for the normal
distribution.
"""

import itertools

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import function, independent, matrix, normal_nodes, outcomes, row, vector
from attn_course.formulas.givens import Outcomes
from attn_course.lessons.scaling.equations import entries, keys_at, scores
from attn_course.reference import scaled_dot_scores, softmax

equation = about("C1")


def directions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return perpendicular rows of length 1, turned at random."""
    return np.asarray(np.linalg.qr(rng.normal(size=(count, count)))[0])


def normal_vectors(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights with all moments of independent standard normal entries up to degree 5 (Stroud and Secrest, 1963)."""
    unit = np.sqrt(count / 2 + 1) * directions(rng, count)
    pairs = [a * one + b * other for one, other in itertools.combinations(unit, 2) for a in (1, -1) for b in (1, -1)]
    points = np.vstack([np.zeros(count), np.sqrt(2) * unit, -np.sqrt(2) * unit, pairs])
    return points, np.repeat([2 * count + 4, 2 - count / 2, 1], [1, 2 * count, len(pairs)]) / (count + 2) ** 2


def uncorrelated(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of entries with mean 0 and variance 1 that are uncorrelated, which is all that a variance sees."""
    chances = rng.dirichlet(np.full(count, 9.0))
    points = directions(rng, count) / np.sqrt(chances)[:, None]  # the rarer, the longer
    return np.vstack([points, -points]), np.tile(chances / 2, 2)


# ---- Break each assumption
@equation(
    "correlated-query-key-moments",
    r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k",
    uses=["variance-of-a-score"],
    assumes=["normal entries with mean 0 and variance 1", "correlation rho between q_i and k_i, no other dependence"],
    wrong={
        "the mean stays 0": r"\mathbb{E}[q \cdot k] = 0, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k",
        "the variance stays d_k": r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = d_k",
        "the variance shrinks": r"\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 - \rho^2)\,d_k",
    },
)
def correlated_query_and_key(rng: np.random.Generator, d_k: int) -> Givens:
    """Write k_i = rho q_i + sqrt(1 - rho^2) e_i with e_i independent of q_i, and use E[q_i^4] = 3."""
    (q, p_q), (e, p_e), rho = normal_vectors(rng, d_k), normal_vectors(rng, d_k), rng.uniform(-0.9, 0.9)
    k = rho * q[:, None] + np.sqrt(1 - rho**2) * e
    q, chances = np.broadcast_to(q[:, None], k.shape), np.outer(p_q, p_e).ravel()
    random = {name: outcomes(chances, row(table.reshape(-1, d_k))) for name, table in (("q", q), ("k", k))}
    return {**random, r"\rho": rho, "d_k": d_k}


@equation(
    "equal-query-key-moments",
    r"\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k",
    uses=["variance-of-a-score"],
    assumes=["k = q", "entries independent, mean 0, variance 1", "kappa = E[q_i^4]: 3 for normal entries, 1 for +1 and -1"],
    wrong={
        "mean 0, as for independent vectors": r"\mathbb{E}[q \cdot q] = 0, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k",
        "variance d_k, as for independent vectors": r"\kappa > 1: \qquad \mathbb{E}[q \cdot q] = \mathrm{Var}[q \cdot q] = d_k",
        "variance 2 d_k for any entries": r"\kappa > 1: \qquad \mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = 2\,d_k",
    },
)
def query_equal_to_key(rng: np.random.Generator, d_k: int) -> Givens:
    """Each term is q_i^2, with mean 1 and variance kappa - 1: for normal entries mean d_k and variance 2 d_k."""
    q, chances, fourth = entries(rng, d_k)
    return {"q": outcomes(chances, row(q)), r"\kappa": fourth, "d_k": d_k}


@equation(
    "covariance-within-a-row",
    r"\mathrm{Cov}[q \cdot k,\, q \cdot k'] = 0, \qquad \mathrm{Cov}\bigl[ (q \cdot k)^2, (q \cdot k')^2 \bigr] = 2\,d_k",
    uses=["variance-of-a-score", "equal-query-key-moments"],
    assumes=["two keys, one query", "all entries independent and standard normal"],
    wrong={
        "uncorrelated, hence independent": r"\mathbb{E}\bigl[ (q \cdot k)^2 (q \cdot k')^2 \bigr] = d_k^2",
        "scores that share q are correlated": r"\mathrm{Cov}[q \cdot k,\, q \cdot k'] = d_k",
    },
    equivalent=dict.fromkeys(
        ("q -> k", "q -> k'", "k -> q", "k' -> q"), "any two different scores of independent vectors with mean 0 are uncorrelated"
    ),
)
def scores_of_one_row(rng: np.random.Generator, d_k: int) -> Givens:
    """Given q each square has mean |q|^2, so their covariance is Var |q|^2: a long query makes the whole row large."""
    points = {name: normal_vectors(rng, d_k) for name in ("q", "k", "k'")}
    return {**{name: outcomes(chances, row(table), name) for name, (table, chances) in points.items()}, "d_k": d_k}


@equation(
    "score-normal-given-query",
    r"\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{t^2 \|q\|^2 / 2}",
    assumes=["k standard normal, q given"],
    wrong={
        "standard deviation |q|^2": r"\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{t^2 \|q\|^4 / 2}",
        "the factor 1/2 forgotten": r"\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{t^2 \|q\|^2}",
        "e to the mean": r"\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{\mathbb{E}_k[t\,q \cdot k]}",
    },
)
def normal_given_the_query(rng: np.random.Generator, d_k: int) -> Givens:
    """The moment generating function of N(0, |q|^2): given q, and only then, a score is exactly normal."""
    count, longest = (12, 1.0) if d_k < 5 else (4, 0.1)  # so many nodes are enough for numbers t q_i up to this
    nodes, weights = normal_nodes(count)
    k, chances = independent(nodes.tolist(), weights.tolist(), d_k)
    q, t = rng.uniform(-longest, longest, size=d_k), rng.choice([-1, 1]) * rng.uniform(0.6, 0.8)
    return {"k": outcomes(chances, row(k)), "q": row(q), "t": t}


# ---- Normal only in the limit
@equation(
    "kurtosis-of-a-score",
    r"\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = 3 + \frac{\kappa_q \kappa_k - 3}{d_k}",
    uses=["variance-of-a-score"],
    assumes=["all entries independent, mean 0, variance 1, fourth moments kappa_q and kappa_k"],
    wrong={
        "the kurtoses added": r"\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = 3 + \frac{\kappa_q + \kappa_k - 3}{d_k}",
        "it does not depend on d_k": r"\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = \kappa_q \kappa_k",
        "3 not subtracted": r"\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = 3 + \frac{\kappa_q \kappa_k}{d_k}",
    },
)
def kurtosis_of_a_score(rng: np.random.Generator, d_k: int) -> Givens:
    """Of the fourth power survive d_k terms with one index and 3 d_k (d_k - 1) with two pairs of indices."""
    (q, p_q, fourth_q), (k, p_k, fourth_k) = entries(rng, d_k), entries(rng, d_k)
    random = {"q": outcomes(p_q, row(q), "q"), "k": outcomes(p_k, row(k), "k")}
    return {**random, "d_k": d_k, r"\kappa_q": fourth_q, r"\kappa_k": fourth_k}


@equation(
    "kurtosis-with-normal-entries",
    r"\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k}",
    uses=["kurtosis-of-a-score"],
    assumes=["all entries independent and standard normal"],
    wrong={
        "X5: q.k follows N(0, d_k) exactly": r"\mathbb{E}[(q \cdot k)^4] = 3\,\mathbb{E}[(q \cdot k)^2]^2 = 3\,d_k^2",
        "that of a single product, shared": r"\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = \frac{9}{d_k}",
    },
)
def kurtosis_with_normal_entries(rng: np.random.Generator, d_k: int) -> Givens:
    """Eq. kurtosis-of-a-score with kappa_q = kappa_k = 3. A normal variable has 3, so no score of finite d_k is normal."""
    points = {name: normal_vectors(rng, d_k) for name in "qk"}
    return {**{name: outcomes(chances, row(table), name) for name, (table, chances) in points.items()}, "d_k": d_k}


@equation(
    "scaled-score-approaches-normal",
    r"\mathbb{E}\bigl[ e^{t\,q \cdot k / \sqrt{d_k}} \bigr] = \Bigl( 1 - \frac{t^2}{d_k} \Bigr)^{-d_k / 2}"
    r" \xrightarrow[d_k \to \infty]{} e^{t^2 / 2}",
    uses=["score-normal-given-query"],
    assumes=["all entries independent and standard normal", "t^2 < d_k"],
    wrong={
        "X5: that of a normal variable at every d_k": r"\mathbb{E}\bigl[ e^{t\,q \cdot k / \sqrt{d_k}} \bigr] = e^{t^2 / 2}",
        "d_k for d_k / 2": r"\mathbb{E}[e^{t\,q \cdot k / \sqrt{d_k}}] = \Bigl( 1 - \frac{t^2}{d_k} \Bigr)^{-d_k}",
        "the limit": r"\mathbb{E}[e^{t\,q \cdot k / \sqrt{d_k}}] = (1 - t^2 / d_k)^{-d_k / 2} \xrightarrow[d_k \to \infty]{} e^{t^2}",
    },
)
def approach_to_the_normal(rng: np.random.Generator, draw: int) -> Givens:
    """Average Eq. score-normal-given-query over q at t / sqrt(d_k): one integral for each entry of q.

    The limit is that of a standard normal variable.
    """
    d_k, (count, largest) = draw + 1, ((10, 0.3), (10, 0.4), (5, 0.14))[draw]  # so many nodes are enough for t up to this
    nodes, weights = normal_nodes(count)
    points, chances = independent(nodes.tolist(), weights.tolist(), d_k)
    random = {name: outcomes(chances, row(points), name) for name in "qk"}
    return {**random, "t": rng.choice([-1, 1]) * rng.uniform(0.7, 1) * largest, "d_k": d_k}


# ---- What the spread does to softmax
@equation(
    "log-weight-ratio-variance",
    r"\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = 2\,c^2\,d_k \quad (i \ne j)",
    topics=["C2"],
    uses=["ratio-of-weights", "log-softmax", "variance-of-a-score"],
    assumes=["w = softmax of the scores c q.k", "all entries independent, mean 0, variance 1"],
    wrong={
        "the variance of one score": r"\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = c^2\,d_k \quad (i \ne j)",
        "the scale not squared": r"\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = 2\,c\,d_k \quad (i \ne j)",
        "one query, so both scores are one": r"\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = 4\,c^2\,d_k \quad (i \ne j)",
    },
)
def spread_of_log_ratios(rng: np.random.Generator, n: int, d_k: int) -> Givens:
    """ln(w_i / w_j) = c q.(k_i - k_j). With c = 1 typical ratios of weights grow like e^{sqrt(2 d_k)}; with c = 1 / sqrt(d_k) they stay."""
    (q, p_q), (k, p_k), c = uncorrelated(rng, d_k), uncorrelated(rng, n * d_k), rng.normal()
    w = softmax(scaled_dot_scores(q, k.reshape(-1, n, d_k), c))  # (keys drawn, queries drawn, n)
    return {"w": outcomes(np.outer(p_k, p_q).ravel(), vector(w.reshape(-1, n))), "c": c, "d_k": d_k}


def normal_scores(rng: np.random.Generator) -> Givens:
    """Return normal scores of mean 0, and their deviation."""
    (nodes, weights), s = normal_nodes(60), rng.uniform(0.5, 1.2)
    return {"z": outcomes(weights, s * nodes), "s": s}


@equation(
    "effective-share-of-keys",
    r"\frac{(\mathbb{E}\,e^{z})^2}{\mathbb{E}\,e^{2z}} = e^{-s^2}",
    topics=["C2"],
    uses=["softmax", "score-normal-given-query"],
    assumes=["scores z normal with mean 0 and variance s^2", "n keys, n large: 1 / sum_j w_j^2 is about n times the left side"],
    wrong={"the spread not squared": "s^2 -> s", "only the denominator counted": "s^2 -> 2 s^2"},
)
def share_of_keys_in_use(rng: np.random.Generator) -> Givens:
    """1 / sum w^2 counts the keys that matter. Scaled scores (s = 1) leave 37 % of them; unscaled ones e^{-d_k}, that is: a single one."""
    return normal_scores(rng)


@equation(
    "entropy-lost-to-spread",
    r"\frac{\mathbb{E}[z\,e^{z}]}{\mathbb{E}[e^{z}]} - \ln \mathbb{E}[e^{z}] = \frac{s^2}{2}",
    topics=["C2"],
    uses=["softmax-entropy", "score-normal-given-query"],
    assumes=["scores z normal with mean 0 and variance s^2", "n keys, n large: ln n - H(w) is about the left side"],
    wrong={"s^2, the shift of the mean alone": r"\frac{s^2}{2} -> s^2", "linear in the spread": "s^2 -> s"},
)
def entropy_below_its_maximum(rng: np.random.Generator) -> Givens:
    """Eq. softmax-entropy with means for sums.

    Half a nat is lost at s = 1; at s^2 = d_k more than ln n would be: then one key has it all.
    """
    return normal_scores(rng)


# ---- What the scale is not: a new class of functions
@equation(
    "scale-as-reparametrisation",
    r"c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) = W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
    topics=["C2"],
    assumes=["the loss sees W_Q through the scores c x W_Q k^T only", "one step of gradient descent"],
    wrong={
        "X14: the scale changes nothing at all: the same step": r"c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - \eta"
        r"\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
        "the step times c": r"c\,(W - \eta\, \nabla_W \mathcal{L}(c\,W)) = W' - c\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W",
    },
    whatever={r"\mathcal{L}": "the chain rule does not ask which loss it is"},
)
def scale_as_reparametrisation(rng: np.random.Generator, n: int) -> Givens:
    """With W' = c W_Q the scores are the same. What changes is where W' starts, and its step, which is c^2 times as long."""
    x, keys = rng.normal(size=2), rng.normal(size=(n, 3))

    def loss(projection: np.ndarray) -> float:
        fits = keys @ (x @ projection)
        return float(np.log(np.exp(fits - fits[2]).sum()))  # minus the logarithm of the weight of the key wanted

    w = rng.normal(size=(2, 3)) / 2
    return {"W": w, "c": rng.normal(), r"\eta": rng.uniform(0.3, 0.7), r"\mathcal{L}": function(loss)}


@equation(
    "scale-in-the-initialisation",
    r"\sigma_q^2 = \frac{1}{d_k}: \qquad \mathrm{Var}[q \cdot k] = 1, \qquad"
    r" \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = \frac{1}{d_k}",
    topics=["C1", "C2"],
    uses=["score-variance-from-deviations", "scale-as-reparametrisation"],
    assumes=["entries independent, mean 0", "Var q_i = sigma_q^2, Var k_i = 1"],
    wrong={
        "X14: the scale is needed always": r"\sigma_q^2 = \frac{1}{d_k}: \qquad \mathrm{Var}[q \cdot k / \sqrt{d_k}] = 1",
        "unscaled scores always have variance d_k": r"\sigma_q^2 = \frac{1}{d_k}: \qquad \mathrm{Var}[q \cdot k] = d_k",
    },
)
def scale_inside_the_initialisation(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """A start that already holds the factor: here dividing by sqrt(d_k) once more makes the weights uniform, and does not help."""
    sigma_q = (1.0, 1 - 1e-6, rng.uniform(1.1, 1.7))[draw] * d_k**-0.5  # the second hardly misses it
    return {**scores(rng, d_k, sigma_q), r"\sigma_q": sigma_q}


# ---- What LayerNorm fixes, and what it does not
@equation(
    "layer-norm-moments",
    r"\sum_{i=1}^{d} \mathrm{LN}(x)_i = 0, \qquad \frac{1}{d} \sum_{i=1}^{d} \mathrm{LN}(x)_i^2 = \frac{v}{v + \varepsilon}",
    topics=["C3"],
    assumes=["LN(x)_i = (x_i - mean) / sqrt(v + epsilon), before gain and bias", "v = variance of the entries of x"],
    wrong={"length 1": r"\frac{1}{d} \sum -> \sum", "each square 1": r"\frac{1}{d} \sum_{i=1}^{d} \mathrm{LN} -> \mathrm{LN}"},
)
def layer_norm(rng: np.random.Generator, d: int) -> Givens:
    """It fixes the mean square of each token, so its length is about sqrt(d); nothing is said about single entries."""
    x, epsilon = rng.normal(size=d) + 0.6, rng.uniform(0.05, 0.3)
    normed = function(lambda token: (token - token.mean()) / np.sqrt(np.mean((token - token.mean()) ** 2) + epsilon))
    return {r"\mathrm{LN}": normed, "x": row(x), "d": d, "v": np.var(x), r"\varepsilon": epsilon}


def weights_of_variance(rng: np.random.Generator, shape: tuple[int, int], deviation: float, name: str) -> Outcomes:
    """Return a random matrix: mean 0, uncorrelated entries of one deviation."""
    points, chances = uncorrelated(rng, shape[0] * shape[1])
    return outcomes(chances, matrix(deviation * points.reshape(-1, *shape)), name)


@equation(
    "variance-after-projection",
    r"\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2",
    topics=["C3"],
    uses=["layer-norm-moments"],
    assumes=["x fixed", "entries of W uncorrelated, as independent ones are, mean 0, variance sigma_w^2"],
    wrong={"sigma_w^2 alone: the sum forgotten": r"2\, \|x\|^2 -> 2", "the deviation for the variance": "w^2 -> w"},
)
def variance_after_a_projection(rng: np.random.Generator, d_model: int, d_k: int) -> Givens:
    """A sum of d_model independent terms. After LayerNorm |x|^2 = d_model, so the queries have variance sigma_w^2 d_model, not 1."""
    deviation = rng.uniform(0.3, 0.8)
    return {"x": row(rng.normal(size=d_model)), "W": weights_of_variance(rng, (d_model, d_k), deviation, "W"), r"\sigma_w": deviation}


@equation(
    "default-initialisation-variances",
    r"d\;\mathrm{Var}\Bigl[ U\bigl(-\tfrac{1}{\sqrt{d}}, \tfrac{1}{\sqrt{d}}\bigr) \Bigr] = \tfrac{1}{3}, \qquad"
    r" d\;\mathrm{Var}\Bigl[ U\bigl(-\sqrt{\tfrac{6}{d + 3d}}, \sqrt{\tfrac{6}{d + 3d}}\bigr) \Bigr] = \tfrac{1}{2}",
    topics=["C3"],
    uses=["variance-after-projection"],
    assumes=["d = d_model", "torch's nn.Linear, and the packed (3d, d) matrix of nn.MultiheadAttention under Xavier's rule"],
    wrong={
        "nn.Linear keeps unit variance": r"d\;\mathrm{Var}\Bigl[ U\bigl(-\tfrac{1}{\sqrt{d}}, \tfrac{1}{\sqrt{d}}\bigr) \Bigr] = 1",
        "Xavier on the packed matrix is Xavier on each of the three": (
            r"\mathrm{Var}\Bigl[ U\bigl(-\sqrt{\tfrac{6}{d + 3d}}, \sqrt{\tfrac{6}{d + 3d}}\bigr) \Bigr] = \frac{2}{d + d}"
        ),
    },
)
def variance_at_initialisation(rng: np.random.Generator, d: int) -> Givens:
    """U(-b, b) has variance b^2 / 3. With a standard deviation of 0.02 instead it is 0.0004 d_model."""
    nodes, weights = np.polynomial.legendre.leggauss(5)

    def uniform(low: float, high: float) -> Outcomes:
        if low >= high:
            raise ValueError("there is no interval from the larger to the smaller number")
        return outcomes(weights / 2, (low + high) / 2 + (high - low) / 2 * nodes)

    return {"U": function(uniform), "d": d}


@equation(
    "score-variance-at-initialisation",
    r"\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2",
    topics=["C3"],
    uses=["score-variance-from-deviations", "variance-after-projection"],
    assumes=["x, y fixed", "entries of W_Q, W_K independent, mean 0, variances sigma_Q^2 and sigma_K^2"],
    wrong={
        "X17: LayerNorm makes queries and keys unit-variance": r"2\, \|x\|^2\, \|y\|^2 -> 2",
        "x . y": r"\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, (x \cdot y)^2",
    },
)
def score_variance_at_initialisation(rng: np.random.Generator, d_model: int, d_k: int) -> Givens:
    """Eq. score-variance-from-deviations after Eq. variance-after-projection.

    With |x|^2 = |y|^2 = d_model: 1/9 for nn.Linear, 1/4 for packed Xavier.
    """
    (x, y), deviations = rng.normal(size=(2, d_model)), {"Q": rng.uniform(0.3, 0.6), "K": rng.uniform(0.7, 0.9)}
    random = {f"W_{name}": weights_of_variance(rng, (d_model, d_k), deviation, name) for name, deviation in deviations.items()}
    return {"x": row(x), "y": row(y), "d_k": d_k, **random, **{rf"\sigma_{name}": deviation for name, deviation in deviations.items()}}


@equation(
    "query-key-normalisation",
    r"\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad"
    r" \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}",
    topics=["C3", "C4"],
    uses=["cosine-similarity", "layer-norm-moments"],
    assumes=["q, k not 0", "theta = the angle between q and k", "hat: divided by the root of the mean square of the entries"],
    wrong={
        "X17: normalising the input is enough": r"\frac{q \cdot k}{\sqrt{d_k}} = \frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}"
        r"\,\cos\theta",
        "X4: the scaled dot product is a cosine": r"\frac{q \cdot k}{\sqrt{d_k}} = \frac{\hat q \cdot \hat k}{d_k} = \cos\theta",
        "the cosine itself": r"\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \frac{q \cdot k}{\|q\|\,\|k\|} = \cos\theta",
    },
)
def query_key_norm(rng: np.random.Generator, d_k: int) -> Givens:
    """Normalise queries and keys themselves: mean square 1 by construction, and a score within sqrt(d_k), whatever the weights."""
    q, theta = rng.normal(size=d_k), rng.uniform(0.2, 3.0)
    k = keys_at(rng, q, np.array([theta]))[0]
    normed = {rf"\hat {name}": row(entry / np.sqrt(np.mean(entry**2))) for name, entry in (("q", q), ("k", k))}
    return {"q": row(q), "k": row(k), **normed, r"\theta": theta, "d_k": d_k}
