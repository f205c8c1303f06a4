"""Softmax derived in three ways."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.formulas import function, vector

equation = about("B1")


# ---- B1, first derivation: positive, normalised, shift-invariant, one continuous map for every entry
@equation(
    "softmax",
    r"\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}}",
    assumes=["z real"],
    wrong={
        "X24: a function of one entry alone, as if all other scores were 0": r"\sigma(z)_i = \frac{e^{z_i}}{e^{z_i} + n - 1}",
        "scores divided by their sum": r"\sigma(z)_i = \frac{z_i}{\sum_{j=1}^{n} z_j}",
        "exponentials over the sum of the scores": r"\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} z_j}",
    },
)
def softmax(rng: np.random.Generator, n: int) -> Givens:
    """The only weights that sum to 1 and have the ratios e^{z_i - z_j}."""

    def weights_by_ratios(z: np.ndarray) -> np.ndarray:
        """Solve w_i = e^{z_i - z_1} w_1 and sum_i w_i = 1."""
        conditions = np.eye(n)
        conditions[:, 0] -= np.exp(z - z[0])
        conditions[0] = 1.0
        return np.linalg.solve(conditions, np.eye(n)[0])

    return {"z": vector(rng.normal(size=n)), "n": n, r"\sigma": function(weights_by_ratios)}


@equation(
    "softmax-inside-the-simplex",
    r"0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1",
    uses=["softmax"],
    assumes=["n >= 2", "finite z", "exact arithmetic (checked where float64 has room: scores within 32 of each other)"],
    wrong={
        "X16: also for a single entry": r"0 < \sigma(z_{1:1})_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1",
        "X16: also for a score of -inf": r"0 < \lim_{z_1 \to -\infty} \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1",
        "X21: only a few weights are positive": r"\min_i \sigma(z)_i = 0, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1",
    },
    equivalent={"1 -> 2": "weaker: what is below 1 is below 2, and no weight reaches its bound"},
)
def weights_between_zero_and_one(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """Each numerator is positive and smaller than the sum of two or more of them."""
    z = rng.uniform(-16, 16, size=n)
    if draw == 2:  # one weight is all but 1
        z = np.append(16, z[1:] / 8 - 13)
    return {"z": vector(z), "n": n}


@equation(
    "ratio-of-weights",
    r"\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)}",
    assumes=["w_i = f(z_i) / sum_j f(z_j)", "f > 0"],
    wrong={
        "the difference of the values": r"\frac{w_i}{w_j} = f(z_i) - f(z_j)",
        "the value of the difference, which needs f = exp": r"\frac{w_i}{w_j} = f(z_i - z_j)",
        "upside down": r"\frac{w_i}{w_j} = \frac{f(z_j)}{f(z_i)}",
    },
)
def ratio_of_weights(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """The normaliser cancels in a ratio."""
    z = rng.normal(size=n)
    f = (np.exp, lambda t: t**2 + 1, lambda t: np.log1p(np.exp(t)))[draw]
    total = sum(f(one) for one in z)
    return {"z": z, "f": function(f, entrywise=True), "w": np.array([f(one) / total for one in z])}


@equation(
    "softmax-with-temperature",
    r"w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}",
    uses=["softmax", "ratio-of-weights"],
    assumes=["T > 0: a larger score must not get a smaller weight"],
    wrong={
        "multiplied by T": r"w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = T",
        "weights divided by T": r"w_i = \frac{\beta\, e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} = \beta\, \sigma(z)_i, \qquad \beta = \frac{1}{T}",
        "the sign of an energy": r"\beta = \frac{1}{T} -> \beta = -\frac{1}{T}",
    },
)
def softmax_with_temperature(rng: np.random.Generator, n: int) -> Givens:
    """The constant f(0) cancels, and what is left free is the temperature."""
    z, T = rng.normal(size=n), rng.uniform(0.4, 3)
    return {"z": z, "n": n, "T": T, "w": reference.softmax(z, temperature=T)}


# ---- B1, second derivation: the largest entropy at a given mean score
def entropy(p: np.ndarray) -> float:
    """Return the entropy of weights in nats, by its definition."""
    return -sum(one * np.log(one) for one in p)


@equation(
    "log-softmax",
    r"\ln \sigma(z)_i = z_i - \mathrm{lse}(z)",
    topics=["B1", "B2"],
    uses=["softmax"],
    assumes=["lse(z) = ln sum_j e^{z_j}"],
    wrong={
        "the largest score instead of lse": r"\ln \sigma(z)_i = z_i - \max_j z_j",
        "divided by lse": r"\ln \sigma(z)_i = \frac{z_i}{\mathrm{lse}(z)}",
        "the sign exchanged": r"\ln \sigma(z)_i = \mathrm{lse}(z) - z_i",
    },
)
def log_softmax(rng: np.random.Generator, n: int) -> Givens:
    """The logarithm of the quotient in Eq. softmax."""
    return {"z": rng.normal(size=n)}


@equation(
    "free-energy-identity",
    r"H(p) = \mathrm{lse}(\beta z) - \beta\, p \cdot z - \mathrm{KL}(p \,\|\, \sigma(\beta z))",
    uses=["log-softmax"],
    assumes=["p on the simplex, p > 0 here (with 0 ln 0 = 0 it holds on the edge too)", "beta real, of either sign"],
    wrong={
        "KL with its arguments exchanged": (r"H(p) = \mathrm{lse}(\beta z) - \beta\, p \cdot z - \mathrm{KL}(\sigma(\beta z) \,\|\, p)"),
        "no beta before the mean score": r"\beta\, p \cdot z -> p \cdot z",
        "the divergence added": r"- \mathrm{KL} -> + \mathrm{KL}",
    },
)
def free_energy(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """KL >= 0 with equality only at p = softmax(beta z): of all p with one mean score, that one has the largest entropy."""
    z, beta, weights = rng.normal(size=n), rng.uniform(0.4, 1.6) * (-1) ** draw, rng.uniform(0.1, 0.9, size=n)
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


@equation(
    "expected-maximum",
    r"M(z) = \mathrm{lse}(z) + \gamma",
    assumes=["M(z) = E[max_j (z_j + xi_j)]", "xi_j independent, P(xi_j <= t) = exp(-e^{-t})", "gamma = E[xi_j], about 0.577"],
    wrong={
        "the largest score in place of lse": r"M(z) = \max_j z_j + \gamma",
        "the noise has no mean": r"M(z) = \mathrm{lse}(z)",
        "the noise pulls down": r"M(z) = \mathrm{lse}(z) - \gamma",
    },
)
def maximum_of_noisy_scores(rng: np.random.Generator, n: int) -> Givens:
    """The product of the distribution functions is that of one noise, moved by lse(z)."""
    return {"z": rng.normal(size=n), "M": function(expected_maximum), r"\gamma": expected_maximum(np.zeros(1))}


@equation(
    "lse-gradient",
    r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i",
    uses=["softmax", "expected-maximum"],
    wrong={
        "the inner derivative forgotten": r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \frac{1}{\sum_j e^{z_j}}",
        "the logarithm of the weight": r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \ln \sigma(z)_i",
        "multiplied by the score": r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = z_i\, \sigma(z)_i",
    },
)
def gradient_of_lse(rng: np.random.Generator, n: int) -> Givens:
    """Chain rule: the derivative of the sum over the sum. By Eq. expected-maximum it is the chance that entry i wins."""
    return {"z": rng.normal(size=n)}
