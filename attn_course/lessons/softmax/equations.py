"""Softmax derived in three ways."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.formulas import function, vector

claim = about("B1")


# ---- B1, first derivation: positive, normalised, shift-invariant, one continuous map for every entry
@claim("softmax")
def _(normal, n):
    r"""\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}}
    where z real
    The only weights that sum to 1 and have the ratios e^{z_i - z_j}.
        X24: a function of one entry alone, as if all other scores were 0: \sigma(z)_i = \frac{e^{z_i}}{e^{z_i} + n - 1}
        scores divided by their sum: \sigma(z)_i = \frac{z_i}{\sum_{j=1}^{n} z_j}
        exponentials over the sum of the scores: e^{z_j} -> z_j
    """

    def weights_by_ratios(z: np.ndarray) -> np.ndarray:
        """Solve w_i = e^{z_i - z_1} w_1 and sum_i w_i = 1."""
        conditions = np.eye(n)
        conditions[:, 0] -= np.exp(z - z[0])
        conditions[0] = 1.0
        return np.linalg.solve(conditions, np.eye(n)[0])

    return {"z": vector(normal(n)), "n": n, r"\sigma": function(weights_by_ratios)}


@claim(
    "softmax-inside-the-simplex",
    rests_on="softmax",
    equivalent={"1 -> 2": "weaker: what is below 1 is below 2, and no weight reaches its bound"},
)
def _(rng, n, draw):
    r"""0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1
    where n >= 2 ;; finite z ;; exact arithmetic (checked where float64 has room: scores within 32 of each other)
    Each numerator is positive and smaller than the sum of two or more of them.
        X16: also for a single entry: (z)_i < -> (z_{1:1})_i <
        X16: also for a score of -inf: 0 < -> 0 < \lim_{z_1 \to -\infty}
        X21: only a few weights are positive: 0 < -> \min_i ;; < 1 -> = 0
    """
    z = rng.uniform(-16, 16, size=n)
    if draw == 2:  # one weight is all but 1
        z = np.append(16, z[1:] / 8 - 13)
    return {"z": vector(z), "n": n}


@claim("ratio-of-weights")
def _(normal, n, draw):
    r"""\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)}
    where w_i = f(z_i) / sum_j f(z_j) ;; f > 0
    The normaliser cancels in a ratio.
        the difference of the values: \frac{w_i}{w_j} = f(z_i) - f(z_j)
        the value of the difference, which needs f = exp: \frac{w_i}{w_j} = f(z_i - z_j)
        upside down: \frac{w_i}{w_j} = \frac{f(z_j)}{f(z_i)}
    """
    z = normal(n)
    f = (np.exp, lambda t: t**2 + 1, lambda t: np.log1p(np.exp(t)))[draw]
    total = sum(f(one) for one in z)
    return {"z": z, "f": function(f, entrywise=True), "w": np.array([f(one) / total for one in z])}


@claim("softmax-with-temperature", rests_on="softmax ratio-of-weights")
def _(normal, rng, n):
    r"""w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}
    where T > 0: a larger score must not get a smaller weight
    The constant f(0) cancels, and what is left free is the temperature.
        multiplied by T: \frac{1}{T} -> T
        weights divided by T: w_i = \frac{\beta\, e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} = \beta\, \sigma(z)_i, \qquad \beta = \frac{1}{T}
        the sign of an energy: \beta = -> \beta = -
    """
    z, T = normal(n), rng.uniform(0.4, 3)
    return {"z": z, "n": n, "T": T, "w": reference.softmax(z, temperature=T)}


# ---- B1, second derivation: the largest entropy at a given mean score
def entropy(p: np.ndarray) -> float:
    """Return the entropy of weights in nats, by its definition."""
    return -sum(one * np.log(one) for one in p)


@claim("log-softmax", serves="B1 B2", rests_on="softmax")
def _(normal, n):
    r"""\ln \sigma(z)_i = z_i - \mathrm{lse}(z)
    where lse(z) = ln sum_j e^{z_j}
    The logarithm of the quotient in Eq. softmax.
        the largest score instead of lse: \mathrm{lse}(z) -> \max_j z_j
        divided by lse: \ln \sigma(z)_i = \frac{z_i}{\mathrm{lse}(z)}
        the sign exchanged: \ln \sigma(z)_i = \mathrm{lse}(z) - z_i
    """
    return {"z": normal(n)}


@claim("free-energy-identity", rests_on="log-softmax")
def _(normal, rng, n, draw):
    r"""H(p) = \mathrm{lse}(\beta z) - \beta\, p \cdot z - \mathrm{KL}(p \,\|\, \sigma(\beta z))
    where p on the simplex, p > 0 here (with 0 ln 0 = 0 it holds on the edge too) ;; beta real, of either sign
    KL >= 0 with equality only at p = softmax(beta z): of all p with one mean score, that one has the largest entropy.
        KL with its arguments exchanged: p \,\|\, \sigma(\beta z) -> \sigma(\beta z) \,\|\, p
        no beta before the mean score: \beta\, p \cdot z -> p \cdot z
        the divergence added: - \mathrm{KL} -> + \mathrm{KL}
    """
    z, beta, weights = normal(n), rng.uniform(0.4, 1.6) * (-1) ** draw, rng.uniform(0.1, 0.9, size=n)
    p = reference.softmax(beta * z) if draw == 2 else weights / weights.sum()  # the last is the maximum
    return {"z": z, "p": p, r"\beta": beta, "H": function(entropy)}


# ---- B1, third derivation: the expected maximum of noisy scores, and its gradient
def expected_maximum(z: np.ndarray) -> float:
    """Integrate t times the density of max_j (z_j + xi_j): the noises are independent, so their distribution functions multiply."""
    t = np.arange(-12.0, 60.0, 0.02)
    below, rate = np.ones_like(t), np.zeros_like(t)
    for score in z:
        below, rate = below * np.exp(-np.exp(score - t)), rate + np.exp(score - t)
    return float((t * below * rate).sum() * 0.02)


@claim("expected-maximum")
def _(normal, n):
    r"""M(z) = \mathrm{lse}(z) + \gamma
    where M(z) = E[max_j (z_j + xi_j)] ;; xi_j independent, P(xi_j <= t) = exp(-e^{-t}) ;; gamma = E[xi_j], about 0.577
    The product of the distribution functions is that of one noise, moved by lse(z).
        the largest score in place of lse: M(z) = \max_j z_j + \gamma
        the noise has no mean: + \gamma ->
        the noise pulls down: + -> -
    """
    return {"z": normal(n), "M": function(expected_maximum), r"\gamma": expected_maximum(np.zeros(1))}


@claim("lse-gradient", rests_on="softmax expected-maximum")
def _(normal, n):
    r"""\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i
    Chain rule: the derivative of the sum over the sum. By Eq. expected-maximum it is the chance that entry i wins.
        the inner derivative forgotten: \sigma(z)_i -> \frac{1}{\sum_j e^{z_j}}
        the logarithm of the weight: = -> = \ln
        multiplied by the score: = -> = z_i\,
    """
    return {"z": normal(n)}
