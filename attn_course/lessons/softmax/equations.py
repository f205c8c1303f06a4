"""Softmax derived in three ways."""

from collections.abc import Callable

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.formulas import derivative, function, of, vector

equation = about("B1")


# ---- B1, first derivation: positive, normalised, shift-invariant, one continuous map for every entry
@equation(
    "softmax",
    r"\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}}",
    assumes=["z real"],
    wrong={
        "X24: a function of one entry alone, as if all other scores were 0": r"\sigma(z)_i = \frac{e^{z_i}}{e^{z_i} + n - 1}",
        "scores divided by their sum": r"\sigma(z)_i = \frac{z_i}{\sum_{j=1}^{n} z_j}",
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
    "shift-invariant-ratios",
    r"\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)}",
    uses=["ratio-of-weights"],
    assumes=["shift invariance is demanded of f"],
    wrong={
        "softplus, ln(1 + e^x), would do as well": (r"\frac{h(z_i + c)}{h(z_j + c)} = \frac{h(z_i)}{h(z_j)}, \qquad h(x) = \ln(1 + f(x))"),
        "a square beside it would do no harm": (r"\frac{h(z_i + c)}{h(z_j + c)} = \frac{h(z_i)}{h(z_j)}, \qquad h(x) = f(x) + x^2"),
        "a common factor would not matter either": r"\frac{f(c\, z_i)}{f(c\, z_j)} = \frac{f(z_i)}{f(z_j)}",
    },
)
def shift_invariance_of_ratios(rng: np.random.Generator, n: int) -> Givens:
    """Adding c to every score must leave every weight, hence every ratio, as it is: a demand that f(x) = k e^{beta x} meets."""
    k, (beta, c) = rng.uniform(0.5, 2), rng.normal(size=2)
    return {"z": rng.normal(size=n), "c": c, "f": function(lambda x: k * np.exp(beta * x), entrywise=True)}


@equation(
    "exponential-functional-equation",
    r"g(x + c) = g(x)\,g(c)",
    uses=["shift-invariant-ratios"],
    assumes=["g(x) = f(x) / f(0)", "f > 0"],
    wrong={
        "a sum instead of a product": r"g(x + c) = g(x) + g(c)",
        "f itself, not divided by f(0) = 2": r"f(x + c) = f(x)\,f(c), \qquad f(t) = 2\, g(t)",
    },
)
def product_rule_of_the_map(rng: np.random.Generator) -> Givens:
    """Eq. shift-invariant-ratios with scores x and 0, solved for f(x + c), then both sides divided by f(0)."""
    k, (beta, c, x) = rng.uniform(0.5, 1.5), rng.normal(size=3)

    def f(t: np.ndarray) -> np.ndarray:
        return np.asarray(k * np.exp(beta * t))

    return {"g": function(lambda t: f(t) / f(np.zeros(1)), entrywise=True), "x": x, "c": c}


@equation(
    "functional-equation-integrated",
    r"g(x) \int_0^1 g(c)\,dc = \int_x^{x+1} g(c)\,dc",
    uses=["exponential-functional-equation"],
    assumes=["g continuous"],
    wrong={"the interval does not move with x": r"\int_x^{x+1} -> \int_0^1", "the interval grows with x": "{x+1} -> {2x+1}"},
)
def smoothing_by_integration(rng: np.random.Generator) -> Givens:
    """Integrate Eq. exponential-functional-equation over c.

    The right side can be differentiated in x, so g on the left can be too: continuity is enough.
    """
    beta, x = rng.normal(size=2)
    return {"g": function(lambda t: np.exp(beta * t), entrywise=True), "x": x}


@equation(
    "exponential-differential-equation",
    r"g'(x) = \beta\,g(x)",
    uses=["exponential-functional-equation", "functional-equation-integrated"],
    assumes=["beta = g'(0)"],
    wrong={"the slope is constant": r"g'(x) = \beta", "beta = g(0)": r"g'(x) = \beta\,g(x), \qquad \beta = g(0)"},
)
def differential_equation_of_the_map(rng: np.random.Generator) -> Givens:
    """The slope at x is that of g(x + c) at c = 0; there Eq. exponential-functional-equation turns it into g(x) g'(0)."""
    base, x = rng.uniform(0.2, 4), rng.normal()
    return {"g": function(lambda t: base**t, entrywise=True), "x": x, r"\beta": derivative(lambda t: base**t, 0.0)}


@equation(
    "exponential-unique-solution",
    r"g(x) = e^{\beta x}",
    uses=["exponential-differential-equation"],
    assumes=["g(0) = 1"],
    wrong={"the factor beta comes along": r"g(x) = \beta\, e^{\beta x}", "only its tangent": r"g(x) = 1 + \beta x"},
)
def exponential_map(rng: np.random.Generator, draw: int) -> Givens:
    """The only solution of Eq. exponential-differential-equation with g(0) = 1."""
    beta, x = rng.normal(), rng.normal() * (draw < 2)

    def solution(x: float) -> float:
        """Find the power series that solves g' = beta g and g(0) = 1 term by term."""
        coefficients = [1.0]
        for power in range(1, 60):
            coefficients.append(beta * coefficients[-1] / power)
        return float(np.polyval(coefficients[::-1], x))

    return {"g": function(solution), "x": x, r"\beta": beta}


@equation(
    "softmax-with-temperature",
    r"w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}",
    uses=["softmax", "ratio-of-weights", "exponential-unique-solution"],
    assumes=["T > 0: a larger score must not get a smaller weight"],
    wrong={
        "multiplied by T": r"w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = T",
        "weights divided by T": r"w_i = \frac{\beta\, e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} = \beta\, \sigma(z)_i, \qquad \beta = \frac{1}{T}",
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
    "entropy-lagrangian-gradient",
    r"\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda",
    assumes=["p > 0", "L = H(p) + beta (sum_i p_i z_i - mu) + lambda (sum_i p_i - 1)"],
    wrong={
        "the product rule forgotten: no -1": r"\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i + \beta z_i + \lambda",
        "the entropy with the wrong sign": r"\frac{\partial \mathcal{L}}{\partial p_i} = \ln p_i + 1 + \beta z_i + \lambda",
    },
)
def lagrangian_gradient(rng: np.random.Generator, n: int) -> Givens:
    """Differentiate -p ln p with the product rule; the constraints are linear."""
    z, p, (beta, lam, mu) = rng.normal(size=n), rng.uniform(0.1, 0.9, size=n), rng.normal(size=3)

    def lagrangian(p: np.ndarray) -> float:
        return entropy(p) + beta * (p @ z - mu) + lam * (p.sum() - 1)

    return {"z": z, "p": p, r"\beta": beta, r"\lambda": lam, r"\mathcal{L}": of(lagrangian, "p")}


def root(falling: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where each entry of a falling function is zero, by halving intervals."""
    for _ in range(80):
        middle = (low + high) / 2
        above = falling(middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


@equation(
    "unnormalised-gibbs-form",
    r"p_i = e^{\lambda - 1}\, e^{\beta z_i}",
    uses=["entropy-lagrangian-gradient"],
    wrong={"the sign of an energy": r"\beta z_i -> -\beta z_i", "the 1 on the wrong side": r"p_i = e^{\lambda + 1}\, e^{\beta z_i}"},
)
def gibbs_form(rng: np.random.Generator, n: int) -> Givens:
    """Set Eq. entropy-lagrangian-gradient to zero and solve for p_i."""
    z, (beta, lam) = rng.normal(size=n), rng.uniform(-1.6, 1.6, size=2)
    p = root(lambda p: -np.log(p) - 1 + beta * z + lam, np.full(n, 1e-9), np.full(n, 1e3))
    return {"z": z, r"\beta": beta, r"\lambda": lam, "p": p}


@equation(
    "gibbs-distribution",
    r"p_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}}",
    uses=["unnormalised-gibbs-form"],
    assumes=["sum_i p_i = 1"],
    wrong={"no beta in the denominator": r"\beta z_j -> z_j", "divided by n": r"p_i = \frac{e^{\beta z_i}}{n}"},
)
def gibbs_distribution(rng: np.random.Generator, n: int) -> Givens:
    """The constraint fixes the factor e^{lambda - 1} in Eq. unnormalised-gibbs-form."""
    z, beta = rng.normal(size=n), rng.uniform(-1.6, 1.6)
    lam = root(lambda lam: 1 - np.exp(lam - 1 + beta * z).sum(), np.array(-30.0), np.array(30.0))
    return {"z": z, "n": n, r"\beta": beta, "p": np.exp(lam - 1 + beta * z)}


@equation(
    "free-energy-identity",
    r"\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - T\,\mathrm{KL}(p \,\|\, \sigma(z/T))",
    uses=["softmax-with-temperature"],
    assumes=["p on the simplex, p > 0", "T > 0"],
    wrong={
        "KL with its arguments exchanged": (r"\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - T\,\mathrm{KL}(\sigma(z/T) \,\|\, p)"),
        "no temperature before the KL term": (r"\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - \mathrm{KL}(p \,\|\, \sigma(z/T))"),
    },
)
def free_energy(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """KL >= 0 with equality only at p = softmax(z / T): the stationary point is the one maximum."""
    z, T, weights = rng.normal(size=n), rng.uniform(0.4, 3), rng.uniform(0.1, 0.9, size=n)
    p = reference.softmax(z, temperature=T) if draw == 2 else weights / weights.sum()  # the last is the maximum
    return {"z": z, "p": p, "T": T, "H": function(entropy)}


# ---- B1, third derivation: the gradient of log-sum-exp
@equation(
    "log-softmax",
    r"\ln \sigma(z)_i = z_i - \mathrm{lse}(z)",
    topics=["B1", "B2"],
    uses=["softmax"],
    assumes=["lse(z) = ln sum_j e^{z_j}"],
    wrong={
        "the largest score instead of lse": r"\ln \sigma(z)_i = z_i - \max_j z_j",
        "divided by lse": r"\ln \sigma(z)_i = \frac{z_i}{\mathrm{lse}(z)}",
    },
)
def log_softmax(rng: np.random.Generator, n: int) -> Givens:
    """The logarithm of the quotient in Eq. softmax."""
    return {"z": rng.normal(size=n)}


@equation(
    "lse-gradient",
    r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i",
    uses=["softmax"],
    wrong={
        "the inner derivative forgotten": r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \frac{1}{\sum_j e^{z_j}}",
        "the logarithm of the weight": r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \ln \sigma(z)_i",
    },
)
def gradient_of_lse(rng: np.random.Generator, n: int) -> Givens:
    """Chain rule: the derivative of the sum over the sum."""
    return {"z": rng.normal(size=n)}
