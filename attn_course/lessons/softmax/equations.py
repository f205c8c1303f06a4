"""Softmax derived in three ways.

Symbolic statements use n = 3 scores z and spell their right sides out, entry by entry; left sides are computed.
"""

from collections.abc import Callable

import numpy as np
import sympy
from sympy import Derivative, Integral, Matrix, Subs, exp, log, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, entropy_symbols, lse_symbols, positive_symbols, real_symbols, softmax_symbols, total

z, p = real_symbols("z", 3), positive_symbols("p", 3)
x, c, m, beta, lam = symbols("x c m beta lambda", real=True)
T, k = symbols("T k", positive=True)
f, g = sympy.Function("f"), sympy.Function("g")
s, s_beta = softmax_symbols(z), softmax_symbols([beta * z_i for z_i in z])
slope = Subs(Derivative(g(c), c), c, 0)  # g'(0)


# ---- B1, first derivation: positive, normalised, shift-invariant, one continuous map for every entry


@equation("softmax", r"\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}}", rows=["B1"], assumes=["z real"], scope="n = 3")
def softmax() -> Sides:
    """The only weights that sum to 1 and have the ratios e^{z_i - z_j}."""
    return _weights_by_ratios(), Matrix(3, 1, lambda i, _: exp(z[i]) / total(exp(z_j) for z_j in z))


def _weights_by_ratios() -> Matrix:
    w = positive_symbols("w", 3)
    ratios = [w[i] - exp(z[i] - z[0]) * w[0] for i in (1, 2)]
    (solution,) = sympy.linsolve([*ratios, total(w) - 1], w)
    return column(solution)


softmax.wrong("a function of one entry alone: e^{z_i} / (1 + e^{z_i})", trap="X24")(
    lambda: (_weights_by_ratios(), column(exp(z_i) / (1 + exp(z_i)) for z_i in z))
)
softmax.wrong("scores divided by their sum")(lambda: (_weights_by_ratios(), column(z) / total(z)))


@equation(
    "softmax-inside-the-simplex",
    r"0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1",
    rows=["B1"],
    uses=["softmax"],
    assumes=["n >= 2", "finite z", "exact arithmetic (checked where float64 has room: scores within 30 of each other)"],
    kind="numeric",
    scope="n = 2 to 7",
)
def weights_between_zero_and_one(rng: np.random.Generator) -> Claims:
    """Each numerator is positive and smaller than the sum of two or more of them."""
    for n in range(2, 8):
        for scores in (rng.normal(size=n), np.zeros(n), rng.uniform(-15, 15, size=n), np.repeat([0.0, 30.0], [n - 1, 1])):
            yield Chain(0.0, "<", np.exp(scores) / np.exp(scores).sum(), "<", 1.0)
            yield reference.softmax(scores).sum(), 1.0


def _between(scores: np.ndarray) -> Chain:
    return Chain(0, "<", reference.softmax(scores), "<", 1)


weights_between_zero_and_one.wrong("also for a single entry", trap="X16")(lambda rng: _between(rng.normal(size=1)))
weights_between_zero_and_one.wrong("also for an entry of minus infinity", trap="X16")(lambda rng: _between(np.array([0.5, -np.inf, 1.0])))
weights_between_zero_and_one.wrong("also in float32 with scores 200 apart", trap="X16")(
    lambda rng: _between(np.array([0.0, 200.0], dtype=np.float32))
)
weights_between_zero_and_one.wrong("only a few weights are positive", trap="X21")(
    lambda rng: (reference.softmax(np.arange(7.0)).min(), 0.0)
)


@equation(
    "ratio-of-weights",
    r"\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)}",
    rows=["B1"],
    assumes=["w_i = f(z_i) / sum_j f(z_j)", "f > 0"],
    kind="numeric",
    scope="n = 1 to 7, four maps f",
)
def ratio_of_weights(rng: np.random.Generator) -> Claims:
    """The normaliser cancels in a ratio."""
    maps: list[Callable[[np.ndarray], np.ndarray]] = [np.exp, np.cosh, lambda t: t**2 + 1, lambda t: np.log1p(np.exp(t))]
    for f_map in maps:
        for n in range(1, 8):
            values = f_map(rng.normal(size=n))
            weights = values / values.sum()
            yield np.divide.outer(weights, weights), values[:, None] / values[None, :]


@ratio_of_weights.wrong("the ratio of the scores themselves")
def _(rng: np.random.Generator) -> Claims:
    scores = rng.uniform(1, 2, size=3)
    weights = reference.softmax(scores)
    yield weights[:, None] / weights[None, :], scores[:, None] / scores[None, :]


@ratio_of_weights.wrong("the difference of the values")
def _(rng: np.random.Generator) -> Claims:
    scores = rng.uniform(1, 2, size=3)
    weights = reference.softmax(scores)
    yield weights[:, None] / weights[None, :], np.exp(scores)[:, None] - np.exp(scores)[None, :]


@equation(
    "shift-invariant-ratios",
    r"\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)}",
    rows=["B1"],
    uses=["ratio-of-weights"],
    assumes=["shift invariance is demanded of f"],
    scope="for f = k exp(beta x), n = 3",
)
def shift_invariance_of_ratios() -> Sides:
    """Adding c to every score must leave every weight, hence every ratio, as it is: a demand that f(x) = k e^{beta x} meets."""
    return _shifted_ratios(_exponential), Matrix(3, 3, lambda i, j: _exponential(z[i]) / _exponential(z[j]))


def _exponential(t: sympy.Expr) -> sympy.Expr:
    return k * exp(beta * t)


def _shifted_ratios(f_map: Callable[[sympy.Expr], sympy.Expr], shift: sympy.Expr = c) -> Matrix:
    return Matrix(3, 3, lambda i, j: f_map(z[i] + shift) / f_map(z[j] + shift))


def _would_do(f_map: Callable[[sympy.Expr], sympy.Expr]) -> Callable[[], Sides]:
    return lambda: (_shifted_ratios(f_map), _shifted_ratios(f_map, shift=sympy.Integer(0)))


shift_invariance_of_ratios.wrong("f(x) = x^2 + 1 would do as well")(_would_do(lambda t: t**2 + 1))
shift_invariance_of_ratios.wrong("softplus, f(x) = ln(1 + e^x), would do as well")(_would_do(lambda t: log(1 + exp(t))))


@equation(
    "exponential-functional-equation",
    r"g(x + c) = g(x)\,g(c)",
    rows=["B1"],
    uses=["shift-invariant-ratios"],
    assumes=["g(x) = f(x) / f(0)", "f > 0"],
    scope="any f",
)
def product_rule_of_the_map() -> Sides:
    """Eq. shift-invariant-ratios with scores x and 0, solved for f(x + c), then both sides divided by f(0)."""
    return _shifted_map(), f(x) / f(0) * (f(c) / f(0))


def _shifted_map() -> sympy.Expr:
    (shifted,) = sympy.solve(f(x + c) / f(c) - f(x) / f(0), f(x + c))
    return shifted / f(0)


product_rule_of_the_map.wrong("a sum instead of a product")(lambda: (_shifted_map(), f(x) / f(0) + f(c) / f(0)))
product_rule_of_the_map.wrong("f itself, not divided by f(0)")(lambda: (_shifted_map() * f(0), f(x) * f(c)))


@equation(
    "functional-equation-integrated",
    r"g(x) \int_0^1 g(c)\,dc = \int_x^{x+1} g(c)\,dc",
    rows=["B1"],
    uses=["exponential-functional-equation"],
    assumes=["g continuous"],
    scope="any g",
)
def smoothing_by_integration() -> Sides:
    """Integrate Eq. exponential-functional-equation over c.

    The right side can be differentiated in x, so g on the left can be too: continuity is enough.
    """
    return g(x) * Integral(g(c), (c, 0, 1)), _by_product_rule(Integral(g(m), (m, x, x + 1)))


def _by_product_rule(integral: Integral) -> sympy.Expr:
    """Substitute m = x + c in the integral, then apply Eq. exponential-functional-equation under it."""
    return integral.transform(m, (x + c, c)).xreplace({g(x + c): g(x) * g(c)})


smoothing_by_integration.wrong("the interval does not move with x")(lambda: (g(x) * Integral(g(c), (c, 0, 1)), Integral(g(m), (m, 0, 1))))
smoothing_by_integration.wrong("the interval grows with x")(
    lambda: (g(x) * Integral(g(c), (c, 0, 1)), _by_product_rule(Integral(g(m), (m, x, 2 * x + 1))))
)


@equation(
    "exponential-differential-equation",
    r"g'(x) = \beta\,g(x)",
    rows=["B1"],
    uses=["exponential-functional-equation", "functional-equation-integrated"],
    assumes=["beta = g'(0)"],
    scope="any g",
)
def differential_equation_of_the_map() -> Sides:
    """The slope at x is that of g(x + c) at c = 0; there Eq. exponential-functional-equation turns it into g(x) g'(0)."""
    moved = Subs(Derivative(g(x + c), c), c, 0)
    return (g(x).diff(x), moved.xreplace({g(x + c): g(x) * g(c)}).doit()), (moved, slope * g(x))


differential_equation_of_the_map.wrong("the slope is constant")(lambda: ((g(x) * g(c)).diff(c).subs(c, 0), slope))
differential_equation_of_the_map.wrong("beta = g(0)")(lambda: ((g(x) * g(c)).diff(c).subs(c, 0), g(0) * g(x)))


@equation(
    "exponential-unique-solution",
    r"g(x) = e^{\beta x}",
    rows=["B1"],
    uses=["exponential-differential-equation"],
    assumes=["g(0) = 1"],
    scope="any beta",
)
def exponential_map() -> Sides:
    """The only solution of Eq. exponential-differential-equation with g(0) = 1."""
    return sympy.dsolve(g(x).diff(x) - beta * g(x), g(x), ics={g(0): 1}).rhs, exp(beta * x)


exponential_map.wrong("the factor beta comes along")(lambda: (exp(beta * x), beta * exp(beta * x)))
exponential_map.wrong("only its tangent, 1 + beta x")(lambda: (exp(beta * x), 1 + beta * x))


@equation(
    "softmax-with-temperature",
    r"w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}",
    rows=["B1"],
    uses=["softmax", "ratio-of-weights", "exponential-unique-solution"],
    assumes=["T > 0: a larger score must not get a smaller weight"],
    scope="n = 3",
)
def softmax_with_temperature() -> Sides:
    """The constant f(0) cancels, and what is left free is the temperature."""
    w = column(_exponential(z_i) / total(_exponential(z_j) for z_j in z) for z_i in z)
    return (w, w.subs(beta, 1 / T)), (
        Matrix(3, 1, lambda i, _: exp(beta * z[i]) / total(exp(beta * z_j) for z_j in z)),
        softmax_symbols([z_i / T for z_i in z]),
    )


softmax_with_temperature.wrong("multiplied by T")(lambda: (s_beta.subs(beta, 1 / T), softmax_symbols([T * z_i for z_i in z])))
softmax_with_temperature.wrong("the weights divided by T instead of the scores")(lambda: (s_beta.subs(beta, 1 / T), s / T))


# ---- B1, second derivation: the largest entropy at a given mean score


@equation(
    "entropy-lagrangian-gradient",
    r"\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda",
    rows=["B1"],
    assumes=["p > 0", "L = H(p) + beta (sum_i p_i z_i - m) + lambda (sum_i p_i - 1)"],
    scope="n = 3",
)
def lagrangian_gradient() -> Sides:
    """Differentiate -p ln p with the product rule; the constraints are linear."""
    lagrangian = entropy_symbols(p) + beta * (total(p_i * z_i for p_i, z_i in zip(p, z, strict=True)) - m) + lam * (total(p) - 1)
    return column(lagrangian.diff(p_i) for p_i in p), Matrix(3, 1, lambda i, _: -log(p[i]) - 1 + beta * z[i] + lam)


lagrangian_gradient.wrong("the product rule forgotten: no -1")(
    lambda: (entropy_symbols(p).diff(p[0]) + beta * z[0] + lam, -log(p[0]) + beta * z[0] + lam)
)
lagrangian_gradient.wrong("the entropy with the wrong sign")(
    lambda: (entropy_symbols(p).diff(p[0]) + beta * z[0] + lam, log(p[0]) + 1 + beta * z[0] + lam)
)


@equation(
    "unnormalised-gibbs-form", r"p_i = e^{\lambda - 1}\, e^{\beta z_i}", rows=["B1"], uses=["entropy-lagrangian-gradient"], scope="n = 3"
)
def gibbs_form() -> Sides:
    """Set Eq. entropy-lagrangian-gradient to zero and solve for p_i."""
    return _stationary(), Matrix(3, 1, lambda i, _: exp(lam - 1) * exp(beta * z[i]))


def _stationary() -> Matrix:
    return column(sympy.solve(-log(p_i) - 1 + beta * z_i + lam, p_i)[0] for p_i, z_i in zip(p, z, strict=True))


gibbs_form.wrong("e^{-beta z_i}, with the sign of an energy")(lambda: (_stationary(), column(exp(lam - 1 - beta * z_i) for z_i in z)))
gibbs_form.wrong("e^{lambda + 1}")(lambda: (_stationary(), column(exp(lam + 1 + beta * z_i) for z_i in z)))


@equation(
    "gibbs-distribution",
    r"p_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}}",
    rows=["B1"],
    uses=["unnormalised-gibbs-form"],
    assumes=["sum_i p_i = 1"],
    scope="n = 3",
)
def gibbs_distribution() -> Sides:
    """The constraint fixes the factor e^{lambda - 1} in Eq. unnormalised-gibbs-form."""
    return _normalised(), Matrix(3, 1, lambda i, _: exp(beta * z[i]) / total(exp(beta * z_j) for z_j in z))


def _normalised() -> Matrix:
    p_of_lambda = column(exp(lam - 1) * exp(beta * z_i) for z_i in z)
    (solved,) = sympy.solve(total(p_of_lambda) - 1, lam)
    return p_of_lambda.subs(lam, solved)


gibbs_distribution.wrong("no beta in the denominator")(lambda: (_normalised(), column(exp(beta * z_i) / total(map(exp, z)) for z_i in z)))
gibbs_distribution.wrong("divided by n")(lambda: (_normalised(), column(exp(beta * z_i) / 3 for z_i in z)))


@equation(
    "free-energy-identity",
    r"\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - T\,\mathrm{KL}(p \,\|\, \sigma(z/T))",
    rows=["B1"],
    uses=["softmax-with-temperature"],
    assumes=["p on the simplex, p > 0", "T > 0"],
    scope="n = 3, every p",
)
def free_energy() -> Sides:
    """KL >= 0 with equality only at p = softmax(z / T): the stationary point is the one maximum."""
    on_simplex = [p_i / total(p) for p_i in p]
    return _mean_score_and_entropy(), T * lse_symbols([z_i / T for z_i in z]) - T * _kl(on_simplex, softmax_symbols([z_i / T for z_i in z]))


def _mean_score_and_entropy() -> sympy.Expr:
    return total(p_i * z_i for p_i, z_i in zip(p, z, strict=True)) / total(p) + T * entropy_symbols([p_i / total(p) for p_i in p])


def _kl(first: Matrix, second: Matrix) -> sympy.Expr:
    return total(a * log(a / b) for a, b in zip(first, second, strict=True))


free_energy.wrong("KL with its arguments exchanged")(
    lambda: (
        _mean_score_and_entropy(),
        T * lse_symbols([z_i / T for z_i in z]) - T * _kl(softmax_symbols([z_i / T for z_i in z]), column(p) / total(p)),
    )
)
free_energy.wrong("no temperature before the KL term")(
    lambda: (
        _mean_score_and_entropy(),
        T * lse_symbols([z_i / T for z_i in z]) - _kl(column(p) / total(p), softmax_symbols([z_i / T for z_i in z])),
    )
)


# ---- B1, third derivation: the gradient of log-sum-exp


@equation(
    "log-softmax",
    r"\ln \sigma(z)_i = z_i - \mathrm{lse}(z)",
    rows=["B1", "B2"],
    uses=["softmax"],
    assumes=["lse(z) = ln sum_j e^{z_j}"],
    scope="n = 3",
)
def log_softmax() -> Sides:
    """The logarithm of the quotient in Eq. softmax."""
    return s.applyfunc(log), Matrix(3, 1, lambda i, _: z[i] - lse_symbols(z))


log_softmax.wrong("the largest score instead of lse")(lambda: (s.applyfunc(log), column(z_i - sympy.Max(*z) for z_i in z)))
log_softmax.wrong("divided by lse")(lambda: (s.applyfunc(log), column(z_i / lse_symbols(z) for z_i in z)))


@equation("lse-gradient", r"\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i", rows=["B1"], uses=["softmax"], scope="n = 3")
def gradient_of_lse() -> Sides:
    """Chain rule: the derivative of the sum over the sum."""
    return column(lse_symbols(z).diff(z_i) for z_i in z), Matrix(3, 1, lambda i, _: exp(z[i]) / total(exp(z_j) for z_j in z))


gradient_of_lse.wrong("the inner derivative forgotten")(lambda: (lse_symbols(z).diff(z[0]), 1 / total(map(exp, z))))
gradient_of_lse.wrong("the logarithm of the weight")(lambda: (lse_symbols(z).diff(z[0]), log(s[0])))
