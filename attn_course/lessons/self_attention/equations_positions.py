"""Positions: sinusoids to add, rotations of queries and keys."""

import math

import numpy as np
import sympy
from sympy import Integer, Matrix, cos, sin, symbols

from attn_course import reference
from attn_course.equations.claims import Claims, Equal, Sides
from attn_course.equations.moments import Expr
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, total

t, u, omega, shift = symbols("t u omega delta", real=True)
omegas = real_symbols("omega", 2)
q, k = Matrix(real_symbols("q", 2)), Matrix(real_symbols("k", 2))


# ---- 5.5 Positions to add: sines and cosines


@equation(
    "sinusoidal-positions",
    r"P_{t,2i} = \sin(\omega_i t), \qquad P_{t,2i+1} = \cos(\omega_i t), \qquad \omega_i = 10000^{-2i/d}",
    rows=["E1"],
    uses=["score-with-added-positions"],
    assumes=["d even", "positions t = 0, 1, 2, ..."],
    kind="numeric",
    scope="d = 6, t = 0 to 10",
)
def sinusoidal_positions(rng: np.random.Generator) -> Claims:
    """A clock with d / 2 hands: the first turns once in 6.3 positions, each next one is slower by the same factor."""
    P = reference.sinusoidal_positions(11, 6)
    for i in range(3):
        yield (
            (P[:, 2 * i], P[:, 2 * i + 1]),
            (
                np.array([math.sin(10000.0 ** (-2 * i / 6) * t) for t in range(11)]),
                np.array([math.cos(10000.0 ** (-2 * i / 6) * t) for t in range(11)]),
            ),
        )


@sinusoidal_positions.wrong("all sines first, then all cosines")
def _(rng: np.random.Generator) -> Claims:
    angles = np.outer(np.arange(11), 10000.0 ** (-2 * np.arange(3) / 6))
    yield reference.sinusoidal_positions(11, 6), np.hstack([np.sin(angles), np.cos(angles)])


@sinusoidal_positions.wrong("another frequency for each feature instead of each pair")
def _(rng: np.random.Generator) -> Claims:
    angles = np.outer(np.arange(11), 10000.0 ** (-np.arange(6) / 6))
    yield reference.sinusoidal_positions(11, 6), np.where(np.arange(6) % 2 == 0, np.sin(angles), np.cos(angles))


@equation(
    "sinusoid-shift-is-linear",
    r"\begin{pmatrix} \sin\omega(t + \delta) \\ \cos\omega(t + \delta) \end{pmatrix} ="
    r" \begin{pmatrix} \cos\omega\delta & \sin\omega\delta \\ -\sin\omega\delta & \cos\omega\delta \end{pmatrix}"
    r" \begin{pmatrix} \sin\omega t \\ \cos\omega t \end{pmatrix}",
    rows=["E1"],
    uses=["sinusoidal-positions"],
    scope="every t, delta and omega",
)
def step_of_the_clock() -> Sides:
    """The addition theorems. The matrix holds no t: going delta positions on is one linear map, the same from everywhere."""
    turn = Matrix([[cos(omega * shift), sin(omega * shift)], [-sin(omega * shift), cos(omega * shift)]])
    return _hand(t + shift), turn * Matrix([sin(omega * t), cos(omega * t)])


def _hand(at: Expr) -> Matrix:
    return Matrix([sin(omega * at), cos(omega * at)])


step_of_the_clock.wrong("turned the other way")(
    lambda: (
        _hand(t + shift),
        Matrix([[cos(omega * shift), -sin(omega * shift)], [sin(omega * shift), cos(omega * shift)]]) * _hand(t),
    )
)
step_of_the_clock.wrong("positions add like numbers")(lambda: (_hand(t + shift), _hand(t) + _hand(shift)))


@equation(
    "sinusoidal-position-similarity",
    r"P_t \cdot P_u = \sum_{i} \cos \omega_i (t - u)",
    rows=["E1"],
    uses=["sinusoidal-positions"],
    scope="d = 4, every frequency",
)
def likeness_of_positions() -> Sides:
    """sin a sin b + cos a cos b = cos(a - b): two places are alike by their distance only, whatever the direction."""
    return (_position(t).T * _position(u))[0], total(cos(w * (t - u)) for w in omegas)


def _position(at: Expr) -> Matrix:
    return Matrix([wave(w * at) for w in omegas for wave in (sin, cos)])


likeness_of_positions.wrong("of the sum of the positions")(
    lambda: ((_position(t).T * _position(u))[0], total(cos(w * (t + u)) for w in omegas))
)
likeness_of_positions.wrong("far positions are orthogonal: 0")(lambda: ((_position(t).T * _position(u))[0], Integer(0)))


# ---- 5.6 Positions to rotate by: RoPE


@equation(
    "angle-proportional-to-position",
    r"\theta(t + 1) - \theta(t) = \omega,\;\; \theta(0) = 0 \quad \Longrightarrow \quad \theta(t) = \omega\, t",
    rows=["E1"],
    uses=["sinusoidal-position-similarity"],
    assumes=["queries and keys at t are turned by theta(t)", "a score may depend on t and u through t - u only, so steps are equal"],
    scope="every integer t",
)
def angle_of_a_position() -> Sides:
    """theta(t + 1) - theta(t) is the angle between neighbours; if it is the same everywhere, angles grow in proportion to the position."""
    theta, n = sympy.Function("theta"), sympy.Symbol("n", integer=True, nonnegative=True)
    return sympy.rsolve(theta(n + 1) - theta(n) - omega, theta(n), {theta(0): 0}), omega * n


def _angle() -> tuple[Expr, Expr]:
    theta, n = sympy.Function("theta"), sympy.Symbol("n", integer=True, nonnegative=True)
    return sympy.rsolve(theta(n + 1) - theta(n) - omega, theta(n), {theta(0): 0}), n


angle_of_a_position.wrong("angles that grow geometrically")(lambda: (_angle()[0], omega ** _angle()[1]))
angle_of_a_position.wrong("one angle for all positions")(lambda: (_angle()[0], omega))


@equation(
    "rotations-compose",
    r"R_t^\top R_u = R_{u - t}, \qquad R_t = \begin{pmatrix} \cos\omega t & -\sin\omega t \\ \sin\omega t & \cos\omega t \end{pmatrix}",
    rows=["E1"],
    uses=["angle-proportional-to-position"],
    scope="every t, u and omega",
)
def rotations_compose() -> Sides:
    """To turn back by omega t and on by omega u is to turn by the difference."""
    a = omega * (u - t)
    return R(t).T * R(u), Matrix([[cos(a), -sin(a)], [sin(a), cos(a)]])


def R(at: Expr) -> Matrix:  # noqa: N802  # the letter of the equations
    """Rotate a pair of features by omega times the position."""
    return Matrix([[cos(omega * at), -sin(omega * at)], [sin(omega * at), cos(omega * at)]])


rotations_compose.wrong("the sum of the positions")(lambda: (R(t).T * R(u), R(t + u)))
rotations_compose.wrong("the other way round: R_{t-u}")(lambda: (R(t).T * R(u), R(t - u)))


@equation(
    "rotated-pair-score",
    r"(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos\omega(u - t) + (q_2 k_1 - q_1 k_2) \sin\omega(u - t)",
    rows=["E1"],
    uses=["rotations-compose"],
    assumes=["one pair of features"],
    scope="every q, k, t, u and omega",
)
def relative_scores() -> Sides:
    """q^T R_t^T R_u k = q^T R_{u-t} k, by Eq. rotations-compose.

    A score knows how far apart two tokens stand, and nothing else of their places.
    """
    a = omega * (u - t)
    return ((R(t) * q).T * (R(u) * k))[0], (q[0] * k[0] + q[1] * k[1]) * cos(a) + (q[1] * k[0] - q[0] * k[1]) * sin(a)


relative_scores.wrong("only the query turned")(lambda: (((R(t) * q).T * k)[0], (q.T * R(u - t) * k)[0]))
relative_scores.wrong("queries turned one way, keys the other")(lambda: (((R(t) * q).T * (R(-u) * k))[0], (q.T * R(u - t) * k)[0]))
relative_scores.wrong("the content alone: q.k")(lambda: (((R(t) * q).T * (R(u) * k))[0], (q.T * k)[0]))


@equation(
    "rope-as-complex-rotation",
    r"\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) = \mathrm{Re} \sum_{m} q_m \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad"
    r" \|R_t\, q\| = \|q\|",
    rows=["E1"],
    uses=["rotated-pair-score"],
    assumes=["pairs of features read as complex numbers q_m, k_m", "omega_m = 10000^{-2m/d_k}", "any common shift c"],
    kind="numeric",
    scope="d_k = 6, both layouts agree up to the order of features",
)
def relative_property_of_rope(rng: np.random.Generator) -> Claims:
    """A turn by an angle is a factor e^{i angle}; conjugation takes one of the two back. Lengths are kept, and values are not turned."""
    pairs, frequencies = rng.normal(size=(2, 2, 3)), 10000.0 ** (-2 * np.arange(3) / 6)
    q_m, k_m = pairs[:, 0] + 1j * pairs[:, 1]
    for t, u in ((0, 0), (3, 1), (1, 9), (100, 40)):
        for c in (0, 7, -2.5):
            query, key = _rotated(pairs[0], t + c), _rotated(pairs[1], u + c)
            yield Equal(query @ key, (q_m * k_m.conj() * np.exp(1j * frequencies * (t - u))).sum().real, scale=200.0)  # angles up to 100
            yield np.sqrt((query**2).sum()), np.linalg.norm(pairs[0])
            other, another = _interleaved(pairs[0], t + c), _interleaved(pairs[1], u + c)
            yield Equal(other @ another, (q_m * k_m.conj() * np.exp(1j * frequencies * (t - u))).sum().real, scale=200.0)


def _rotated(pair: np.ndarray, position: float) -> np.ndarray:
    """Turn three pairs, given as two rows, with the features side by side (the reference's "halves")."""
    return np.asarray(reference.rope(pair.reshape(1, 6), np.array([position]))[0])


def _interleaved(pair: np.ndarray, position: float) -> np.ndarray:
    """Turn the same three pairs with the two numbers of each next to each other."""
    return np.asarray(reference.rope(pair.T.reshape(1, 6), np.array([position]), layout="interleaved")[0])


@relative_property_of_rope.wrong("a common shift of all positions changes the score")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=(2, 2, 3))
    moved, still = (_rotated(query, 3 + c) @ _rotated(key, 1 + c) for c in (7, 0))
    yield abs(moved - still) > 1e-9, 1.0


@relative_property_of_rope.wrong("the pairs of the other layout")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=(2, 1, 6))
    halves, interleaved = (
        reference.rope(query, np.array([3]), layout=layout)[0] @ reference.rope(key, np.array([1]), layout=layout)[0]
        for layout in ("halves", "interleaved")
    )
    yield halves, interleaved
