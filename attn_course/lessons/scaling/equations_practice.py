"""A new layer, whose tokens are normalised; and deeper: other similarities, and the shape of the distribution.

What is random is a list of points and weights with the moments that its formula needs, exactly: every outcome, or a rule for the normal
distribution.
"""

import itertools

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import Normal, uncorrelated
from attn_course.formulas import matrix, outcomes, row, rows
from attn_course.formulas.givens import Outcomes

claim = about("C1")


# ---- Three ways to be similar
@claim("dot-product-by-distance", serves="A4 C4")
def _(normal, d_k, draw):
    r"""q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr)
    where q, k real vectors of one length
    Multiply out |q - k|^2: near vectors have a large dot product, and so have long ones.
        the factor 1/2 forgotten: q \cdot k = \|q\|^2 + \|k\|^2 - \|q - k\|^2
        a function of the distance alone: q \cdot k = 1 - \tfrac{1}{2} \|q - k\|^2
        the sign of the distance: - \|q -> + \|q
    """
    q, k = normal(2, d_k)
    return {"q": row(q), "k": row(q if draw == 2 else k)}


def keys_at(rng: np.random.Generator, q: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return keys of random lengths, one at each of the angles to q."""
    ahead, aside = q / np.linalg.norm(q), rng.normal(size=(len(angles), len(q)))
    aside -= np.outer(aside @ ahead, ahead)
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    turned = np.cos(angles)[:, None] * ahead + np.sin(angles)[:, None] * aside
    return np.asarray(rng.uniform(0.5, 2.0, size=(len(angles), 1)) * turned)


@claim("cosine-similarity", serves="C4", rests_on="dot-product-by-distance")
def _(normal, rng, d_k):
    r"""\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|}
    where q, k not 0 ;; theta = the angle between q and k
    Solve the law of cosines for cos theta and put Eq. dot-product-by-distance in.
        divided by one norm only: \|q\|\,\|k\| -> \|k\|
        the norms not rooted: \|q\|\,\|k\| -> \|q\|^2\,\|k\|^2
        the dot product alone: \cos\theta = q \cdot k
    """
    q, theta = normal(d_k), rng.uniform(0.2, 3.0)
    return {"q": row(q), "k": row(keys_at(rng, q, np.array([theta]))[0]), r"\theta": theta}


@claim("equal-length-gaussian-weights", serves="A4", rests_on="bandwidth-limits softmax-shift-invariance dot-product-by-distance")
def _(normal, rng, n, d_k):
    r"""\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i
    where all keys have the same length
    Solve Eq. dot-product-by-distance for the squared distance: two of its terms are equal for all keys.
        bandwidth not squared: {h^2} -> {h}
        the factor 1/2 kept: {h^2} -> {2 h^2}
        the distance not squared: k_j\|^2 -> k_j\|

    Softmax does not see a common shift, Eq. softmax-shift-invariance.
    """
    k = normal(n, d_k)
    k *= rng.uniform(0.7, 1.7) / np.linalg.norm(k, axis=-1, keepdims=True)
    return {"q": row(normal(d_k)), "k": rows(k), "h": rng.uniform(0.6, 1.5)}


@claim("cosine-weight-bound", serves="C4", rests_on="softmax cosine-similarity")
def _(rng, n, draw):
    r"""\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}}
    where no temperature
    Scores lie in [-1, 1], so no ratio of weights exceeds e^2. For 64 keys the bound is 0.105.
        scores between 0 and 1: at most e^1 between two weights:
            -2 -> -1
        n other keys: (n - 1) -> n
        a matching key gets nearly all the weight: \max_i \sigma(\cos\theta)_i \ge 1 - \frac{1}{n}
    """
    theta = rng.uniform(0, np.pi, size=n)
    if draw == 2:  # one key along q, the others opposite
        theta[:] = np.pi
        theta[rng.integers(n)] = 0.0
    return {r"\theta": theta, "n": n}


# ---- Normal only in the limit
def normal_vectors(normal: Normal, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights with all moments of independent standard normal entries up to degree 5 (Stroud and Secrest, 1963)."""
    unit = np.sqrt(count / 2 + 1) * np.linalg.qr(normal(count, count))[0]  # perpendicular rows, turned at random
    pairs = [a * one + b * other for one, other in itertools.combinations(unit, 2) for a in (1, -1) for b in (1, -1)]
    points = np.vstack([np.zeros(count), np.sqrt(2) * unit, -np.sqrt(2) * unit, pairs])
    return points, np.repeat([2 * count + 4, 2 - count / 2, 1], [1, 2 * count, len(pairs)]) / (count + 2) ** 2


@claim("kurtosis-with-normal-entries", rests_on="variance-of-a-score")
def _(normal, d_k):
    r"""\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k}
    where all entries independent and standard normal
    Given q the score is normal with variance |q|^2, so its fourth moment is 3 E|q|^4. A normal variable has 3 alone.
        X5: q.k follows N(0, d_k) exactly: \mathbb{E}[(q \cdot k)^4] = 3\,\mathbb{E}[(q \cdot k)^2]^2 = 3\,d_k^2
        3 for the 6 that normal queries and keys bring: 6 -> 3
        that of a single product, shared: 3 + \frac{6} -> \frac{9}
    """
    points = {name: normal_vectors(normal, d_k) for name in "qk"}
    return {**{name: outcomes(chances, row(table), name) for name, (table, chances) in points.items()}, "d_k": d_k}


# ---- What LayerNorm fixes, and what it does not
def weights_of_variance(normal: Normal, rng: np.random.Generator, shape: tuple[int, int], deviation: float, name: str) -> Outcomes:
    """Return a random matrix: mean 0, uncorrelated entries of one deviation."""
    points, chances = uncorrelated(normal, rng, *shape)
    return outcomes(chances, matrix(deviation * points), name)


@claim("variance-after-projection", serves="C3")
def _(normal, rng, d_model, d_k):
    r"""\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2
    where x fixed ;; entries of W uncorrelated, as independent ones are, mean 0, variance sigma_w^2
    A sum of d_model independent terms. After LayerNorm |x|^2 = d_model, so the queries have variance sigma_w^2 d_model, not 1.
        sigma_w^2 alone: the sum forgotten:
            2\, \|x\|^2 -> 2
        the deviation for the variance: w^2 -> w
        length for squared length: 2\, \|x\|^2 -> 2\, \|x\|
    """
    deviation = rng.uniform(0.3, 0.8)
    return {"x": row(normal(d_model)), "W": weights_of_variance(normal, rng, (d_model, d_k), deviation, "W"), r"\sigma_w": deviation}


def alike(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return tokens with a squared length of d that share a part, and so have cosines of many sizes."""
    tokens = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=d)
    return np.asarray(np.sqrt(d) * tokens / np.linalg.norm(tokens, axis=-1, keepdims=True))


@claim("row-variance-at-initialisation", serves="C3", rests_on="score-variance-from-deviations variance-after-projection")
def _(normal, rng, n, d, d_k):
    r"""\mathbb{E}[v] = \bigl( d\, \sigma_Q^2 \bigr) \bigl( d\, \sigma_K^2 \bigr) (1 - \bar c), \qquad
        \bar c = \frac{1}{n^2} \sum_{j,\,l} \frac{y_j \cdot y_l}{d}
    where v = variance of a row over n keys, after the scale ;; all tokens of squared length d
        ;; entries of W_Q, W_K independent, mean 0, variances sigma_Q^2 and sigma_K^2
    v is the mean square of s_j - mean s, the score of x with y_j - mean y; the mean of its squared length is d (1 - c).
        X17: LayerNorm makes the row's variance 1: \mathbb{E}[v] = 1 - \bar c
        the tokens' likeness forgotten: (1 - \bar c) ->
        other pairs only: \frac{1}{n^2} -> \frac{1}{n (n - 1)}
    """
    x, y = alike(rng, n + 1, d)[0], alike(rng, n, d)
    sigma = {"Q": rng.uniform(0.3, 0.6), "K": rng.uniform(0.7, 0.9)}
    (w_query, p), (w_key, r) = (uncorrelated(normal, rng, d, d_k) for _ in sigma)
    scores = np.einsum("i,aij,bkj,nk->abn", x, sigma["Q"] * w_query, sigma["K"] * w_key, y) / np.sqrt(d_k)
    chances = np.outer(p, r)
    return {
        "v": outcomes(chances.ravel(), scores.var(axis=-1).ravel()),
        "y": rows(y),
        "n": n,
        "d": d,
        **{rf"\sigma_{name}": of_it for name, of_it in sigma.items()},
    }


@claim("query-key-normalisation", serves="C3 C4", beside=(r"\cos\theta = \frac{q \cdot k}{\|q\|\, \|k\|}",))
def _(normal, rng, d_k):
    r"""\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad
        \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}
    where q, k not 0 ;; theta = the angle between q and k ;; hat: divided by the root of the mean square of the entries
    Normalise queries and keys themselves: mean square 1 by construction, and a score within sqrt(d_k), whatever the weights.
        X17: normalising the input is enough: \frac{q \cdot k}{\sqrt{d_k}} = \frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta
        X4: the scaled dot product is a cosine: \frac{q \cdot k}{\sqrt{d_k}} = \frac{\hat q \cdot \hat k}{d_k} = \cos\theta
        the cosine itself: \frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \frac{q \cdot k}{\|q\|\,\|k\|} = \cos\theta
    """
    q, theta = normal(d_k), rng.uniform(0.2, 3.0)
    k = keys_at(rng, q, np.array([theta]))[0]
    normed = {rf"\hat {name}": row(entry / np.sqrt(np.mean(entry**2))) for name, entry in (("q", q), ("k", k))}
    return {"q": row(q), "k": row(k), **normed, r"\theta": theta, "d_k": d_k}
