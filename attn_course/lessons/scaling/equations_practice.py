"""Deeper: other similarities, the shape of the distribution, and norms before and after the projections.

What is random is a list of points and weights with the moments that its formula needs, exactly: every outcome, or a rule for the normal
distribution.
"""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import matrix, outcomes, row, rows
from attn_course.formulas.givens import Outcomes
from attn_course.lessons.scaling.equations import directions, normal_vectors

equation = about("C1")


# ---- Three ways to be similar
@equation(
    "dot-product-by-distance",
    r"q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr)",
    topics=["A4", "C4"],
    assumes=["q, k real vectors of one length"],
    wrong={
        "the factor 1/2 forgotten": r"q \cdot k = \|q\|^2 + \|k\|^2 - \|q - k\|^2",
        "a function of the distance alone": r"q \cdot k = 1 - \tfrac{1}{2} \|q - k\|^2",
        "the sign of the distance": r"q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 + \|q - k\|^2 \bigr)",
    },
)
def dot_product_by_lengths(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Multiply out |q - k|^2: near vectors have a large dot product, and so have long ones."""
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(q if draw == 2 else k)}


def keys_at(rng: np.random.Generator, q: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return keys of random lengths, one at each of the angles to q."""
    ahead, aside = q / np.linalg.norm(q), rng.normal(size=(len(angles), len(q)))
    aside -= np.outer(aside @ ahead, ahead)
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    turned = np.cos(angles)[:, None] * ahead + np.sin(angles)[:, None] * aside
    return np.asarray(rng.uniform(0.5, 2.0, size=(len(angles), 1)) * turned)


@equation(
    "cosine-similarity",
    r"\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|}",
    topics=["C4"],
    uses=["dot-product-by-distance"],
    assumes=["q, k not 0", "theta = the angle between q and k"],
    wrong={
        "divided by one norm only": r"\|q\|\,\|k\| -> \|k\|",
        "the norms not rooted": r"\|q\|\,\|k\| -> \|q\|^2\,\|k\|^2",
        "the dot product alone": r"\cos\theta = q \cdot k",
    },
)
def cosine_similarity(rng: np.random.Generator, d_k: int) -> Givens:
    """Solve the law of cosines for cos theta and put Eq. dot-product-by-distance in."""
    q, theta = rng.normal(size=d_k), rng.uniform(0.2, 3.0)
    return {"q": row(q), "k": row(keys_at(rng, q, np.array([theta]))[0]), r"\theta": theta}


@equation(
    "gaussian-score-expansion",
    r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2}",
    topics=["A4"],
    uses=["dot-product-by-distance"],
    assumes=["h > 0"],
    wrong={
        "the cross term halved as well": r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k - \|k\|^2 - \|q\|^2}{2 h^2}",
        "the lengths added": r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} + \frac{\|k\|^2}{2 h^2} + \frac{\|q\|^2}{2 h^2}",
        "only the cross term": r"-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2}",
    },
)
def gaussian_score(rng: np.random.Generator, d_k: int) -> Givens:
    """Eq. dot-product-by-distance solved for the squared distance. The last term is the same for every key."""
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(k), "h": rng.uniform(0.6, 1.5)}


@equation(
    "equal-length-gaussian-weights",
    r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i",
    topics=["A4"],
    uses=["bandwidth-limits", "softmax-shift-invariance", "gaussian-score-expansion"],
    assumes=["all keys have the same length"],
    wrong={
        "bandwidth not squared": r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h} \Bigr)_i",
        "the factor 1/2 kept": r"\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{2 h^2} \Bigr)_i",
        "the distance not squared": r"\sigma_j\Bigl( -\frac{\|q - k_j\|}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i",
    },
)
def gaussian_weights_on_equal_keys(rng: np.random.Generator, n: int, d_k: int) -> Givens:
    """Two of the terms of Eq. gaussian-score-expansion are equal for all keys.

    Softmax does not see a common shift, Eq. softmax-shift-invariance.
    """
    k = rng.normal(size=(n, d_k))
    k *= rng.uniform(0.7, 1.7) / np.linalg.norm(k, axis=-1, keepdims=True)
    return {"q": row(rng.normal(size=d_k)), "k": rows(k), "h": rng.uniform(0.6, 1.5)}


@equation(
    "cosine-weight-bound",
    r"\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}}",
    topics=["C4"],
    uses=["softmax", "cosine-similarity"],
    assumes=["no temperature"],
    wrong={
        "scores between 0 and 1: at most e^1 between two weights": r"\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-1}}",
        "n other keys": r"\sigma(\cos\theta)_i \le \frac{1}{1 + n\,e^{-2}}",
        "a matching key gets nearly all the weight": r"\max_i \sigma(\cos\theta)_i \ge 1 - \frac{1}{n}",
    },
)
def flat_weights_of_cosine(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Scores lie in [-1, 1], so no ratio of weights exceeds e^2. For 64 keys the bound is 0.105."""
    theta = rng.uniform(0, np.pi, size=n)
    if draw == 2:  # one key along q, the others opposite
        theta[:] = np.pi
        theta[rng.integers(n)] = 0.0
    return {r"\theta": theta, "n": n}


# ---- Normal only in the limit
@equation(
    "kurtosis-with-normal-entries",
    r"\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k}",
    uses=["variance-of-a-score"],
    assumes=["all entries independent and standard normal"],
    wrong={
        "X5: q.k follows N(0, d_k) exactly": r"\mathbb{E}[(q \cdot k)^4] = 3\,\mathbb{E}[(q \cdot k)^2]^2 = 3\,d_k^2",
        "3 for the 6 that normal queries and keys bring": "6 -> 3",
        "that of a single product, shared": r"\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = \frac{9}{d_k}",
    },
)
def kurtosis_with_normal_entries(rng: np.random.Generator, d_k: int) -> Givens:
    """Given q the score is normal with variance |q|^2, so its fourth moment is 3 E|q|^4. A normal variable has 3 alone."""
    points = {name: normal_vectors(rng, d_k) for name in "qk"}
    return {**{name: outcomes(chances, row(table), name) for name, (table, chances) in points.items()}, "d_k": d_k}


# ---- What LayerNorm fixes, and what it does not
def uncorrelated(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of entries with mean 0 and variance 1 that are uncorrelated, which is all that a variance sees."""
    chances = rng.dirichlet(np.full(count, 9.0))
    points = directions(rng, count) / np.sqrt(chances)[:, None]  # the rarer, the longer
    return np.vstack([points, -points]), np.tile(chances / 2, 2)


def weights_of_variance(rng: np.random.Generator, shape: tuple[int, int], deviation: float, name: str) -> Outcomes:
    """Return a random matrix: mean 0, uncorrelated entries of one deviation."""
    points, chances = uncorrelated(rng, shape[0] * shape[1])
    return outcomes(chances, matrix(deviation * points.reshape(-1, *shape)), name)


@equation(
    "variance-after-projection",
    r"\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2",
    topics=["C3"],
    assumes=["x fixed", "entries of W uncorrelated, as independent ones are, mean 0, variance sigma_w^2"],
    wrong={
        "sigma_w^2 alone: the sum forgotten": r"2\, \|x\|^2 -> 2",
        "the deviation for the variance": "w^2 -> w",
        "length for squared length": r"2\, \|x\|^2 -> 2\, \|x\|",
    },
)
def variance_after_a_projection(rng: np.random.Generator, d_model: int, d_k: int) -> Givens:
    """A sum of d_model independent terms. After LayerNorm |x|^2 = d_model, so the queries have variance sigma_w^2 d_model, not 1."""
    deviation = rng.uniform(0.3, 0.8)
    return {"x": row(rng.normal(size=d_model)), "W": weights_of_variance(rng, (d_model, d_k), deviation, "W"), r"\sigma_w": deviation}


@equation(
    "score-variance-at-initialisation",
    r"\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2",
    topics=["C3"],
    uses=["score-variance-from-deviations", "variance-after-projection"],
    assumes=["x, y fixed", "entries of W_Q, W_K independent, mean 0, variances sigma_Q^2 and sigma_K^2"],
    wrong={
        "X17: LayerNorm makes queries and keys unit-variance": r"2\, \|x\|^2\, \|y\|^2 -> 2",
        "the factor d_k left": r"= \sigma_Q^2 -> = d_k\, \sigma_Q^2",
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
    uses=["cosine-similarity"],
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
