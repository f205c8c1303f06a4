"""Softmax in practice: shifts, Jacobian, entropy, saturation, cross-entropy, blocks.

`s` is the softmax of three scores z, written out; `J()` differentiates it without any formula for the result.
"""

import numpy as np
import sympy
from sympy import Matrix, exp, log, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Limit, Sides
from attn_course.equations.points import score_vectors
from attn_course.equations.stated import equation
from attn_course.equations.symbols import (
    column,
    delta,
    entropy_symbols,
    lse_symbols,
    positive_symbols,
    real_symbols,
    softmax_symbols,
    total,
)

z = real_symbols("z", 3)
x, g, s_free = column(real_symbols("x", 3)), column(real_symbols("g", 3)), column(positive_symbols("s", 3))
c, m = symbols("c m", real=True)
beta = sympy.Symbol("beta", positive=True)
s, s_beta = softmax_symbols(z), softmax_symbols([beta * z_i for z_i in z])


def J() -> Matrix:  # noqa: N802  # the letter of the equations
    """Differentiate every weight with respect to every score."""
    return s.jacobian(column(z))


# ---- shifts and log-sum-exp


@equation(
    "lse-bounds",
    r"\max_j z_j \le \mathrm{lse}(z) \le \max_j z_j + \ln n",
    rows=["B2"],
    uses=["log-softmax"],
    kind="numeric",
    scope="n = 1 to 7, both bounds sharp",
)
def bounds_of_lse(rng: np.random.Generator) -> Claims:
    """The sum has at least its largest term and at most n times that: attained by one entry far above the rest, and by equal entries."""
    for scores in score_vectors(rng):
        tight = (_one_far_above(scores), np.ptp(scores) == 0)
        yield Chain(scores.max(), "<=", reference.logsumexp(scores), "<=", scores.max() + np.log(scores.size), tight=tight)


def _one_far_above(scores: np.ndarray) -> bool:
    return scores.size == 1 or bool(np.diff(np.sort(scores))[-1] > 100)


@bounds_of_lse.wrong("n instead of ln n: true, but nothing comes near it")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng):
        yield Chain(reference.logsumexp(scores), "<=", scores.max() + scores.size, tight=(np.ptp(scores) == 0,))


@bounds_of_lse.wrong("the largest score bounds it from above")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng):
        yield Chain(reference.logsumexp(scores), "<=", scores.max())


@equation(
    "softmax-shift-invariance",
    r"\sigma(z + c\,\mathbf{1}) = \sigma(z)",
    rows=["B2"],
    uses=["softmax"],
    assumes=["c real"],
    scope="n = 3, any c",
)
def shift_invariance() -> Sides:
    """e^c is a common factor of numerator and denominator."""
    return softmax_symbols([z_i + c for z_i in z]), Matrix(3, 1, lambda i, _: exp(z[i]) / total(exp(z_j) for z_j in z))


shift_invariance.wrong("a common factor would not matter either")(lambda: (softmax_symbols([c * z_i for z_i in z]), s))
shift_invariance.wrong("nor would a shift of one entry")(lambda: (softmax_symbols([z[0] + c, z[1], z[2]]), s))


@equation(
    "shifted-lse",
    r"\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m}",
    rows=["B2"],
    uses=["log-softmax"],
    assumes=["m real"],
    scope="n = 3, any m",
)
def shifted_lse() -> Sides:
    """Pull e^m out of the sum."""
    return lse_symbols(z), m + log(total(exp(z_j - m) for z_j in z))


shifted_lse.wrong("m is not added back")(lambda: (lse_symbols(z), lse_symbols([z_j - m for z_j in z])))
shifted_lse.wrong("m added inside and outside")(lambda: (lse_symbols(z), m + lse_symbols([z_j + m for z_j in z])))


@equation(
    "stable-softmax",
    r"\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j",
    rows=["B2"],
    follows="softmax",
    uses=["softmax", "softmax-shift-invariance"],
    scope="n = 3",
)
def stable_softmax() -> Sides:
    """Eq. softmax-shift-invariance with c = -m: no exponent is positive, and one of them is 0."""
    largest = sympy.Max(*z)
    return s, Matrix(3, 1, lambda i, _: exp(z[i] - largest) / total(exp(z_j - largest) for z_j in z))


stable_softmax.wrong("only the numerator is shifted")(lambda: (s, s * exp(-sympy.Max(*z))))
stable_softmax.wrong("divided by the largest score instead")(lambda: (s, softmax_symbols([z_i / sympy.Max(*z) for z_i in z])))


# ---- the Jacobian


@equation(
    "softmax-derivative", r"\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j)", rows=["B2"], uses=["softmax"], scope="n = 3"
)
def softmax_derivative() -> Sides:
    """Quotient rule on Eq. softmax."""
    return J(), Matrix(3, 3, lambda i, j: s[i] * (delta(i, j) - s[j]))


softmax_derivative.wrong("the diagonal term forgotten")(lambda: (J(), -s * s.T))
softmax_derivative.wrong("only the diagonal, as if each weight had its own sigmoid")(
    lambda: (J(), sympy.diag(*[s_i * (1 - s_i) for s_i in s]))
)


@equation(
    "softmax-jacobian",
    r"J = \mathrm{diag}(s) - s\,s^\top",
    rows=["B2"],
    follows="softmax-derivative",
    uses=["softmax-derivative"],
    scope="n = 3",
)
def softmax_jacobian() -> Sides:
    """Eq. softmax-derivative for all i and j at once."""
    return Matrix(3, 3, lambda i, j: s[i] * (delta(i, j) - s[j])), sympy.diag(*s) - s * s.T


softmax_jacobian.wrong("the square of the weights instead of the outer product")(
    lambda: (J(), sympy.diag(*s) - sympy.diag(*s.applyfunc(lambda s_i: s_i**2)))
)
softmax_jacobian.wrong("the sign of the outer product")(lambda: (J(), sympy.diag(*s) + s * s.T))


@equation(
    "softmax-jacobian-annihilates-constants",
    r"J\,\mathbf{1} = 0",
    rows=["B2"],
    uses=["softmax-shift-invariance", "softmax-jacobian"],
    scope="n = 3",
)
def jacobian_annihilates_constants() -> Sides:
    """Adding the same number to every score changes nothing, Eq. softmax-shift-invariance, so the derivative in that direction is 0."""
    return (sympy.diag(*s) - s * s.T) * sympy.ones(3, 1), Matrix([0, 0, 0])


jacobian_annihilates_constants.wrong("the null vector is s")(lambda: (J() * s, Matrix([0, 0, 0])))
jacobian_annihilates_constants.wrong("the diagonal term forgotten")(lambda: (-s * s.T * sympy.ones(3, 1), Matrix([0, 0, 0])))


@equation(
    "softmax-jacobian-is-variance",
    r"x^\top J\,x = \sum_i s_i\,(x_i - \bar{x})^2, \qquad \bar{x} = \sum_j s_j x_j",
    rows=["B2"],
    uses=["softmax-jacobian"],
    assumes=["x real"],
    scope="n = 3",
)
def jacobian_is_a_variance() -> Sides:
    """Never negative, and 0 only for constant x: positive semidefinite of rank n - 1."""
    mean = (s.T * x)[0]
    return (x.T * (sympy.diag(*s) - s * s.T) * x)[0], total(s[i] * (x[i] - mean) ** 2 for i in range(3))


jacobian_is_a_variance.wrong("the plain mean of x")(
    lambda: ((x.T * J() * x)[0], total(s[i] * (x[i] - total(x) / 3) ** 2 for i in range(3)))
)
jacobian_is_a_variance.wrong("squares not weighted")(lambda: ((x.T * J() * x)[0], total((x[i] - (s.T * x)[0]) ** 2 for i in range(3))))


@equation(
    "softmax-vector-jacobian-product",
    r"J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr)",
    rows=["B2"],
    uses=["softmax-derivative"],
    assumes=["g = gradient of a loss with respect to s"],
    scope="n = 3",
)
def vector_jacobian_product() -> Sides:
    """One dot product and two elementwise steps replace an n x n matrix."""
    return J().T * g, Matrix(3, 1, lambda i, _: s[i] * (g[i] - total(s[j] * g[j] for j in range(3))))


vector_jacobian_product.wrong("the weights multiply g only")(lambda: (J().T * g, column(s[i] * g[i] - (s.T * g)[0] for i in range(3))))
vector_jacobian_product.wrong("s (1 - s) g, entry by entry")(lambda: (J().T * g, column(s[i] * (1 - s[i]) * g[i] for i in range(3))))
vector_jacobian_product.wrong("the sum of g without weights")(lambda: (J().T * g, column(s[i] * (g[i] - total(g)) for i in range(3))))


# ---- entropy and temperature


@equation(
    "softmax-entropy",
    r"H(s) = \mathrm{lse}(z) - \sum_i s_i z_i",
    rows=["B2"],
    uses=["log-softmax"],
    assumes=["H(s) = -sum_i s_i ln s_i"],
    scope="n = 3",
)
def entropy_of_softmax() -> Sides:
    """Put Eq. log-softmax into -sum s ln s; the weights sum to 1."""
    return entropy_symbols(s), log(total(exp(z_j) for z_j in z)) - total(s[i] * z[i] for i in range(3))


entropy_of_softmax.wrong("the sign exchanged")(lambda: (entropy_symbols(s), (s.T * column(z))[0] - lse_symbols(z)))
entropy_of_softmax.wrong("the plain mean score")(lambda: (entropy_symbols(s), lse_symbols(z) - total(z) / 3))


@equation(
    "softmax-entropy-derivative",
    r"\frac{\mathrm{d} H}{\mathrm{d} \beta} = -\beta\, \mathrm{Var}_s(z)",
    rows=["B2"],
    uses=["softmax-jacobian-is-variance", "softmax-entropy"],
    assumes=["s = sigma(beta z)", "Var_s(z) = sum_i s_i (z_i - sum_j s_j z_j)^2"],
    scope="n = 3",
)
def entropy_falls_as_scores_sharpen() -> Sides:
    """Differentiate Eq. softmax-entropy at beta z: two terms cancel, and Eq. softmax-jacobian-is-variance is what is left."""
    return entropy_symbols(s_beta).diff(beta), -beta * total(s_beta[i] * (z[i] - _mean_score()) ** 2 for i in range(3))


def _mean_score() -> sympy.Expr:
    return (s_beta.T * column(z))[0]


def _variance() -> sympy.Expr:
    return total(s_beta[i] * (z[i] - _mean_score()) ** 2 for i in range(3))


entropy_falls_as_scores_sharpen.wrong("the sign: sharper scores have more entropy")(
    lambda: (entropy_symbols(s_beta).diff(beta), beta * _variance())
)
entropy_falls_as_scores_sharpen.wrong("the factor beta forgotten")(lambda: (entropy_symbols(s_beta).diff(beta), -_variance()))


@equation(
    "temperature-limits",
    r"\lim_{T \to 0^+} \sigma(z / T)_i = \frac{[\,z_i = \max_j z_j\,]}{k}, \qquad \lim_{T \to \infty} \sigma(z / T)_i = \frac{1}{n}",
    rows=["B2"],
    uses=["softmax-with-temperature", "stable-softmax"],
    assumes=["k = number of entries that equal the largest"],
    kind="numeric",
    scope="n = 1 to 7, with ties",
)
def temperature_limits(rng: np.random.Generator) -> Claims:
    """In Eq. stable-softmax every exponent (z_i - m) / T goes to -infinity unless it is 0; for large T they all go to 0."""
    for scores in _tied_scores(rng):
        largest = scores == scores.max()
        yield Limit(_cooled(scores), largest / largest.sum())
        yield Limit(_heated(scores), np.ones(scores.size) / scores.size)


def _tied_scores(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(-2, 3, size=n).astype(float) for n in range(1, 8) for _ in range(4)]


def _cooled(scores: np.ndarray) -> np.ndarray:
    return np.array([reference.softmax(scores, temperature=2.0**-step) for step in range(8)])


def _heated(scores: np.ndarray) -> np.ndarray:
    return np.array([reference.softmax(scores, temperature=10.0**step) for step in range(13)])


@temperature_limits.wrong("ties forgotten: weight 1 for each of the largest")
def _(rng: np.random.Generator) -> Claims:
    for scores in _tied_scores(rng):
        yield Limit(_cooled(scores), (scores == scores.max()).astype(float))


@temperature_limits.wrong("a hot softmax has weights 0")
def _(rng: np.random.Generator) -> Claims:
    for scores in _tied_scores(rng):
        yield Limit(_heated(scores), np.zeros(scores.size))


@temperature_limits.wrong("hot and cold exchanged")
def _(rng: np.random.Generator) -> Claims:
    for scores in _tied_scores(rng):
        yield Limit(_cooled(scores), np.full(scores.size, 1 / scores.size))


# ---- saturation


@equation(
    "softmax-jacobian-frobenius-norm",
    r"\|J\|_F^2 = \sum_i s_i^2\,(1 - 2 s_i) + \Bigl(\sum_i s_i^2\Bigr)^2",
    rows=["B2"],
    uses=["softmax-jacobian"],
    scope="n = 3, any s",
)
def frobenius_norm() -> Sides:
    """Square the entries of Eq. softmax-jacobian; the squares of the outer product are a square of a sum."""
    jacobian = sympy.diag(*s_free) - s_free * s_free.T
    return (jacobian.T * jacobian).trace(), total(s_i**2 * (1 - 2 * s_i) for s_i in s_free) + total(s_i**2 for s_i in s_free) ** 2


def _squares() -> sympy.Expr:
    return total(entry**2 for entry in sympy.diag(*s_free) - s_free * s_free.T)


frobenius_norm.wrong("only the diagonal counted")(lambda: (_squares(), total(s_i**2 * (1 - s_i) ** 2 for s_i in s_free)))
frobenius_norm.wrong("the last sum not squared")(lambda: (_squares(), total(s_i**2 * (1 - 2 * s_i) + s_i**2 for s_i in s_free)))


@equation(
    "softmax-jacobian-norm-bound",
    r"\|J\|_2 \le \tfrac{1}{2}",
    rows=["B2"],
    uses=["softmax-jacobian-is-variance"],
    kind="numeric",
    scope="n = 1 to 7, bound sharp",
)
def norm_at_most_one_half(rng: np.random.Generator) -> Claims:
    """By Eq. softmax-jacobian-is-variance it is the largest variance of a unit x.

    X then spreads by at most sqrt(2), and a variance is at most spread^2 / 4.
    """
    for scores in _nearly_one_hot(rng):
        weights = reference.softmax(scores)
        two_halves = weights.size > 1 and np.sort(weights)[-2] == 0.5
        yield Chain(_spectral_norm(weights), "<=", 1 / 2, tight=(two_halves,))


def _nearly_one_hot(rng: np.random.Generator) -> list[np.ndarray]:
    """Score vectors, some with one entry about 20 above the rest, some with two equal ones far above the rest."""
    sharp = [np.repeat([0.0, 20.0], [n - 1, 1]) for n in range(2, 8)]
    halves = [np.repeat([-1000.0, 3.0], [n - 2, 2]) for n in range(2, 8)]
    return [*score_vectors(rng), *sharp, *halves]


def _spectral_norm(weights: np.ndarray) -> float:
    return float(np.linalg.norm(reference.softmax_jacobian(weights), 2))


@norm_at_most_one_half.wrong("1/4, the bound of a single entry")
def _(rng: np.random.Generator) -> Claims:
    for scores in _nearly_one_hot(rng):
        yield Chain(_spectral_norm(reference.softmax(scores)), "<=", 1 / 4)


@norm_at_most_one_half.wrong("always below 1/2")
def _(rng: np.random.Generator) -> Claims:
    for scores in _nearly_one_hot(rng):
        yield Chain(_spectral_norm(reference.softmax(scores)), "<", 1 / 2)


@equation(
    "saturated-softmax-jacobian-vanishes",
    r"\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max})",
    rows=["B2"],
    uses=["softmax-jacobian", "softmax-jacobian-is-variance"],
    kind="numeric",
    scope="n = 1 to 7, both bounds sharp",
)
def saturation(rng: np.random.Generator) -> Claims:
    """No eigenvalue is negative, so the largest is at most their sum, the trace; as s_max goes to 1 all of it vanishes."""
    for scores in _nearly_one_hot(rng):
        s = reference.softmax(scores)
        tight = (s.size <= 2, 1 - s.max() < 1e-7)
        yield Chain(_spectral_norm(s), "<=", 1 - (s**2).sum(), "<=", 2 * (1 - s.max()), tight=tight, scale=1.0)


@saturation.wrong("1 - s_max, without the factor 2")
def _(rng: np.random.Generator) -> Claims:
    for scores in _nearly_one_hot(rng):
        s = reference.softmax(scores)
        yield Chain(1 - (s**2).sum(), "<=", 1 - s.max(), scale=1.0)


@saturation.wrong("the largest diagonal entry bounds the norm")
def _(rng: np.random.Generator) -> Claims:
    for scores in _nearly_one_hot(rng):
        s = reference.softmax(scores)
        yield Chain(_spectral_norm(s), "<=", (s * (1 - s)).max(), scale=1.0)


# ---- cross-entropy


@equation("cross-entropy", r"-\ln s_y = \mathrm{lse}(z) - z_y", rows=["B2"], uses=["log-softmax"], scope="n = 3, every y")
def cross_entropy() -> Sides:
    """Eq. log-softmax with the other sign: the logarithm of a rounded 0 is never taken."""
    return -s.applyfunc(log), Matrix(3, 1, lambda y, _: log(total(exp(z_j) for z_j in z)) - z[y])


cross_entropy.wrong("the sign exchanged")(lambda: (-s.applyfunc(log), column(z_y - lse_symbols(z) for z_y in z)))
cross_entropy.wrong("the normaliser forgotten")(lambda: (-s.applyfunc(log), -column(z)))


@equation(
    "cross-entropy-gradient",
    r"\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy}",
    rows=["B2"],
    uses=["lse-gradient", "cross-entropy"],
    scope="n = 3, every y",
)
def cross_entropy_gradient() -> Sides:
    """Eq. lse-gradient for the first term of Eq. cross-entropy; the second is linear."""
    return _loss_gradients(), Matrix(3, 3, lambda i, y: s[i] - delta(i, y))


def _loss_gradients() -> Matrix:
    return Matrix(3, 3, lambda i, y: (-log(s[y])).diff(z[i]))


cross_entropy_gradient.wrong("target minus weight")(lambda: (_loss_gradients(), Matrix(3, 3, lambda i, y: delta(i, y) - s[i])))
cross_entropy_gradient.wrong("only the entry of the target moves")(
    lambda: (_loss_gradients(), Matrix(3, 3, lambda i, y: delta(i, y) * (s[i] - 1)))
)


# ---- softmax over blocks


@equation(
    "online-softmax-update",
    r"m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'}",
    rows=["B2"],
    uses=["shifted-lse"],
    assumes=["m, l: maximum and sum of e^{z_j - m} so far; m = -inf, l = 0 before the first score"],
    kind="numeric",
    scope="n = 1 to 7",
)
def online_update(rng: np.random.Generator) -> Claims:
    """A new maximum rescales what was summed before; no score is looked at twice."""
    for scores in score_vectors(rng):
        x, (m, ell), (m_all, ell_all) = scores[-1], _max_and_sum(scores[:-1]), _max_and_sum(scores)
        m_new = max(m, x)
        yield (m_all, ell_all), (max(m, x), ell * np.exp(m - m_new) + np.exp(x - m_new))


def _max_and_sum(scores: np.ndarray) -> tuple[float, float]:
    largest = scores.max(initial=-np.inf)
    return largest, np.exp(scores - largest).sum()


@online_update.wrong("the old sum is not rescaled")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng):
        x, (m, ell) = scores[-1], _max_and_sum(scores[:-1])
        yield _max_and_sum(scores)[1], ell + np.exp(x - max(m, x))


@online_update.wrong("rescaled by e^{m' - m}")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng, range(2, 8)):
        x, (m, ell) = scores[-1], _max_and_sum(scores[:-1])
        yield _max_and_sum(scores)[1], ell * np.exp(max(m, x) - m) + np.exp(x - max(m, x))


@equation(
    "merge-of-softmax-sums",
    r"\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B)",
    rows=["B2"],
    uses=["shifted-lse", "online-softmax-update"],
    assumes=["A, B disjoint, not both empty"],
    kind="numeric",
    scope="n = 1 to 7, every split",
)
def merge_of_two_blocks(rng: np.random.Generator) -> Claims:
    """Bring both sums to the larger maximum, then add; order and grouping do not matter."""
    for scores in score_vectors(rng):
        for cut in range(scores.size + 1):
            (m_a, ell_a), (m_b, ell_b) = _max_and_sum(scores[:cut]), _max_and_sum(scores[cut:])
            m = max(m_a, m_b)
            yield _max_and_sum(scores), (max(m_a, m_b), ell_a * np.exp(m_a - m) + ell_b * np.exp(m_b - m))


@merge_of_two_blocks.wrong("the sums are added as they are")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng, range(2, 8)):
        yield _max_and_sum(scores)[1], _max_and_sum(scores[:1])[1] + _max_and_sum(scores[1:])[1]


@merge_of_two_blocks.wrong("only the second block is rescaled")
def _(rng: np.random.Generator) -> Claims:
    for scores in score_vectors(rng, range(2, 8)):
        (m_a, ell_a), (m_b, ell_b) = _max_and_sum(scores[:1]), _max_and_sum(scores[1:])
        yield _max_and_sum(scores)[1], ell_a + ell_b * np.exp(m_b - max(m_a, m_b))
