"""Attention without softmax: the exponential kernel, its features, random features.

From Eq. exponential-and-gaussian-kernel on, queries are taken as already divided by sqrt(d_k), so that a score is q . k.
"""

from itertools import product
from math import factorial

import numpy as np
import sympy
from sympy import exp, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Limit, Moment, Sides
from attn_course.equations.matrices import matrix_symbols, weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, real_symbols, total

q, k = column(real_symbols("q", 2)), column(real_symbols("k", 2))


# ---- 11.1 the kernel inside softmax attention


@equation(
    "softmax-as-kernel-smoother",
    r"z_i = \frac{\sum_j \kappa(q_i, k_j)\, v_j}{\sum_j \kappa(q_i, k_j)}, \qquad \kappa(q, k) = e^{q \cdot k / \sqrt{d_k}}",
    rows=["K1", "A4"],
    uses=["soft-lookup", "softmax"],
    kind="numeric",
    scope="T_q = 3, T_k = 5, d_k = 4",
)
def softmax_attention_is_a_smoother(rng: np.random.Generator) -> Claims:
    """Two steps, similarity and normalised average: the kernel is the numerator, softmax its row-normalised smoother."""
    for _ in range(3):
        query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
        kernel = np.array([[np.exp(q_i @ k_j / np.sqrt(4)) for k_j in key] for q_i in query])
        yield reference.attention(query, key, value), kernel @ value / kernel.sum(axis=1)[:, None]


@softmax_attention_is_a_smoother.wrong("not normalised: the kernel itself as weights")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    return reference.attention(query, key, value), np.exp(query @ key.T / 2) @ value


@equation(
    "exponential-and-gaussian-kernel",
    r"e^{q \cdot k} = e^{|q|^2 / 2}\; e^{-|q - k|^2 / 2}\; e^{|k|^2 / 2}",
    rows=["K1"],
    uses=["softmax-as-kernel-smoother"],
    scope="d = 2",
)
def exponential_and_gaussian_kernel() -> Sides:
    """Complete the square: a Gaussian of the distance, times a factor that cancels in each row and one that favours long keys."""
    gap = q - k
    return exp((q.T * k)[0]), exp((q.T * q)[0] / 2) * exp(-(gap.T * gap)[0] / 2) * exp((k.T * k)[0] / 2)


exponential_and_gaussian_kernel.wrong("the Gaussian alone")(lambda: (exp((q.T * k)[0]), exp(-((q - k).T * (q - k))[0] / 2)))


@equation(
    "power-kernel-features",
    r"\frac{(q \cdot k)^n}{n!} = \sum_{|\alpha| = n} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}",
    rows=["K1"],
    assumes=["alpha: exponents, one for each feature; q^alpha = product of q_a^{alpha_a}; alpha! = product of alpha_a!"],
    scope="d = 2, n = 3",
)
def features_of_a_power() -> Sides:
    """The multinomial theorem: a power of a dot product is a dot product of monomials."""
    degree = 3
    features = [(m, degree - m) for m in range(degree + 1)]
    monomials = total(q[0] ** a * k[0] ** a * q[1] ** b * k[1] ** b / (factorial(a) * factorial(b)) for a, b in features)
    return (q.T * k)[0] ** degree / factorial(degree), monomials


@features_of_a_power.wrong("without the mixed monomials")
def _() -> Sides:
    return (q.T * k)[0] ** 3 / 6, ((q[0] * k[0]) ** 3 + (q[1] * k[1]) ** 3) / 6


@equation(
    "exponential-kernel-features",
    r"e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}",
    rows=["K1"],
    uses=["power-kernel-features"],
    kind="numeric",
    scope="d = 2, N up to 36",
)
def infinite_feature_map(rng: np.random.Generator) -> Claims:
    """Sum Eq. power-kernel-features over n.

    The features of the exponential kernel are all monomials, and no finite number of them will do.
    """
    for _ in range(3):
        query, key = rng.uniform(-1.5, 1.5, size=(2, 2))
        partial = np.array([_monomials(query, degree) @ _monomials(key, degree) for degree in range(0, 40, 4)])
        yield Limit(partial, np.exp(query[0] * key[0] + query[1] * key[1]))


def _monomials(x: np.ndarray, degree: int) -> np.ndarray:
    pairs = [(a, b) for a, b in product(range(degree + 1), repeat=2) if a + b <= degree]
    return np.array([x[0] ** a * x[1] ** b / np.sqrt(float(factorial(a) * factorial(b))) for a, b in pairs])


@infinite_feature_map.wrong("the monomials up to degree 2 are enough")
def _(rng: np.random.Generator) -> Sides:
    query, key = rng.uniform(1, 1.5, size=(2, 2))
    return _monomials(query, 2) @ _monomials(key, 2), np.exp(query @ key)


@equation(
    "exponential-kernel-positive-definite",
    r"\sum_{i,j} c_i\, c_j\, e^{x_i \cdot x_j} = \Bigl\| \sum_i c_i\, \phi(x_i) \Bigr\|^2 \ge 0",
    rows=["K1"],
    uses=["exponential-kernel-features"],
    assumes=["phi: the features of {eq}`exponential-kernel-features`", "both arguments from the same space"],
    kind="numeric",
    scope="n = 5 points, d = 2; smallest eigenvalue against rounding",
)
def the_kernel_is_positive_definite(rng: np.random.Generator) -> Claims:
    """A square is never negative: e^{x . y} is a Mercer kernel of queries and keys."""
    for _ in range(3):
        x, c = rng.uniform(-1, 1, size=(5, 2)), rng.normal(size=5)
        quadratic = c @ np.exp(x @ x.T) @ c
        phi = np.array([_monomials(row, 30) for row in x])
        yield quadratic, np.sum((c[:, None] * phi).sum(axis=0) ** 2)
        yield Chain(0.0, "<", np.linalg.eigvalsh(np.exp(x @ x.T)), scale=1.0)


@the_kernel_is_positive_definite.wrong("so is the row-normalised smoother: symmetric, at least")
def _(rng: np.random.Generator) -> Sides:
    x = rng.uniform(-1, 1, size=(5, 2))
    return weights_of(x @ x.T), weights_of(x @ x.T).T


@the_kernel_is_positive_definite.wrong("so is any function of a dot product, such as its absolute value")
def _(rng: np.random.Generator) -> Chain:
    x = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 1.0]])
    return Chain(0.0, "<=", np.linalg.eigvalsh(np.abs(x @ x.T)))


@equation(
    "token-kernel-is-asymmetric",
    r"\ln \kappa(x, y) - \ln \kappa(y, x) = x\, (W - W^\top)\, y^\top, \qquad \kappa(x, y) = e^{x W y^\top}",
    rows=["K1"],
    uses=["symmetric-and-antisymmetric-scores"],
    assumes=["W = W_Q W_K^T"],
    scope="d = 2",
)
def asymmetric_on_tokens() -> Sides:
    """Queries and keys live in two spaces: unless W happens to be symmetric, the kernel of two tokens is not, so it is no Mercer kernel."""
    x, y, W = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 2), matrix_symbols("w", 2, 2)
    first, second = exp((x * W * y.T)[0]), exp((y * W * x.T)[0])
    return sympy.log(first) - sympy.log(second), (x * (W - W.T) * y.T)[0]


@asymmetric_on_tokens.wrong("symmetric")
def _() -> Sides:
    x, y, W = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 2), matrix_symbols("w", 2, 2)
    return (x * W * y.T)[0] - (y * W * x.T)[0], sympy.Integer(0)


# ---- 11.2 random features


@equation(
    "gaussian-moment-generating-function",
    r"\mathbb{E}\bigl[ e^{\omega \cdot x} \bigr] = e^{|x|^2 / 2}, \qquad \omega \sim N(0, I)",
    rows=["K1"],
    scope="one coordinate; coordinates are independent",
)
def gaussian_moment_generating_function() -> Sides:
    """Complete the square in the exponent; what is left is the integral of a normal density."""
    w, x = symbols("omega x", real=True)
    density = exp(-(w**2) / 2) / sympy.sqrt(2 * sympy.pi)
    return sympy.integrate(exp(w * x) * density, (w, -sympy.oo, sympy.oo)), exp(x**2 / 2)


@gaussian_moment_generating_function.wrong("e^{|x|^2}")
def _() -> Sides:
    w, x = symbols("omega x", real=True)
    density = exp(-(w**2) / 2) / sympy.sqrt(2 * sympy.pi)
    return sympy.integrate(exp(w * x) * density, (w, -sympy.oo, sympy.oo)), exp(x**2)


def _positive(omega: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp(omega @ x - x @ x / 2)


def _pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a query, a key (d = 3, short) and 200 000 random directions."""
    return rng.uniform(-0.5, 0.5, size=3), rng.uniform(-0.5, 0.5, size=3), rng.normal(size=(200_000, 3))


@equation(
    "positive-features-are-unbiased",
    r"\mathbb{E}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{q \cdot k}, \qquad"
    r" \phi_\omega(x) = e^{\omega \cdot x - |x|^2 / 2}",
    rows=["K1"],
    uses=["gaussian-moment-generating-function"],
    assumes=["omega ~ N(0, I)"],
    kind="statistical",
    scope="d = 3, 200 000 draws, 1 %",
)
def positive_random_features_are_unbiased(rng: np.random.Generator) -> Claims:
    """Eq. gaussian-moment-generating-function at x = q + k: |q + k|^2 = |q|^2 + |k|^2 + 2 q . k, and the squares are divided out.

    All features are positive.
    """
    for _ in range(2):
        query, key, omega = _pair(rng)
        yield Moment(_positive(omega, query) * _positive(omega, key), np.exp(query[0] * key[0] + query[1] * key[1] + query[2] * key[2]))


@positive_random_features_are_unbiased.wrong("without the norms: e^{omega . x}")
def _(rng: np.random.Generator) -> Moment:
    query, key, omega = _pair(rng)
    return Moment(np.exp(omega @ query) * np.exp(omega @ key), np.exp(query @ key))


@positive_random_features_are_unbiased.wrong("of the Gaussian kernel")
def _(rng: np.random.Generator) -> Moment:
    query, key, omega = _pair(rng)
    return Moment(_positive(omega, query) * _positive(omega, key), np.exp(-((query - key) ** 2).sum() / 2))


@equation(
    "variance-of-positive-features",
    r"\mathrm{Var}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)",
    rows=["K1"],
    uses=["gaussian-moment-generating-function", "positive-features-are-unbiased"],
    assumes=["one feature; m independent ones divide it by m"],
    kind="statistical",
    scope="d = 3, 200 000 draws, 3 %",
)
def variance_of_positive_features(rng: np.random.Generator) -> Claims:
    """Eq. gaussian-moment-generating-function at 2 (q + k), less the square of the mean.

    0 at q = -k, where the kernel is smallest, and huge for long vectors.
    """
    for _ in range(2):
        query, key, omega = _pair(rng)
        product_of_features = _positive(omega, query) * _positive(omega, key)
        both = query + key
        squares = (product_of_features - np.exp(query @ key)) ** 2
        yield Moment(squares, np.exp(2 * (query @ key)) * (np.exp(both @ both) - 1), resolution=0.03)


@variance_of_positive_features.wrong("with |q - k|")
def _(rng: np.random.Generator) -> Moment:
    query, key, omega = _pair(rng)
    squares = (_positive(omega, query) * _positive(omega, key) - np.exp(query @ key)) ** 2
    gap = query - key
    return Moment(squares, np.exp(2 * (query @ key)) * (np.exp(gap @ gap) - 1), resolution=0.03)


@equation(
    "trigonometric-features-are-unbiased",
    r"\mathbb{E}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr] = e^{q \cdot k}",
    rows=["K1"],
    uses=["exponential-and-gaussian-kernel", "gaussian-moment-generating-function"],
    assumes=["omega ~ N(0, I); cos(a - b) = cos a cos b + sin a sin b makes two features of it"],
    scope="one coordinate",
)
def trigonometric_features_are_unbiased() -> Sides:
    """Eq. gaussian-moment-generating-function at an imaginary x gives E cos(omega .

    X) = e^{-|x|^2 / 2}: right on average, but single terms are often negative.
    """
    w, x, y = symbols("omega q k", real=True)
    density = exp(-(w**2) / 2) / sympy.sqrt(2 * sympy.pi)
    mean = sympy.integrate(sympy.cos(w * (x - y)) * density, (w, -sympy.oo, sympy.oo))
    return sympy.expand(exp((x**2 + y**2) / 2) * mean), exp(x * y)


@trigonometric_features_are_unbiased.wrong("without the factor of the norms")
def _() -> Sides:
    w, x, y = symbols("omega q k", real=True)
    density = exp(-(w**2) / 2) / sympy.sqrt(2 * sympy.pi)
    return sympy.integrate(sympy.cos(w * (x - y)) * density, (w, -sympy.oo, sympy.oo)), exp(x * y)


@equation(
    "variance-of-trigonometric-features",
    r"\mathrm{Var}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr]"
    r" = \tfrac{1}{2}\, e^{|q|^2 + |k|^2} \bigl( 1 - e^{-|q - k|^2} \bigr)^2",
    rows=["K1"],
    uses=["gaussian-moment-generating-function", "variance-of-positive-features", "trigonometric-features-are-unbiased"],
    assumes=["omega ~ N(0, I); one omega, m independent ones divide it by m"],
    kind="statistical",
    scope="d = 3, 200 000 draws, 3 %",
)
def variance_of_trigonometric_features(rng: np.random.Generator) -> Claims:
    """It is largest where the kernel is small: weights near 0 come out with either sign, and so may the normaliser."""
    for _ in range(2):
        query, key, omega = _pair(rng)
        gap = query - key
        size = np.exp(query @ query + key @ key)
        squares = (np.sqrt(size) * np.cos(omega @ gap) - np.exp(query @ key)) ** 2
        yield Moment(squares, size * (1 - np.exp(-(gap @ gap))) ** 2 / 2, resolution=0.03)


@variance_of_trigonometric_features.wrong("the same as for positive features")
def _(rng: np.random.Generator) -> Moment:
    query, key, omega = np.array([0.8, 0.0, 0.0]), np.array([0.0, 0.8, 0.0]), rng.normal(size=(200_000, 3))
    size, both = np.exp(query @ query + key @ key), query + key
    squares = (np.sqrt(size) * np.cos(omega @ (query - key)) - np.exp(query @ key)) ** 2
    return Moment(squares, np.exp(2 * (query @ key)) * (np.exp(both @ both) - 1), resolution=0.03)


@variance_of_trigonometric_features.wrong("single estimates are positive")
def _(rng: np.random.Generator) -> Chain:
    _query, _key, omega = _pair(rng)
    return Chain(0.0, "<=", np.cos(omega @ np.array([1.0, 1.0, 1.0])))
