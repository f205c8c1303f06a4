"""Positions: sinusoids to add, rotations of queries and keys."""

from typing import Literal

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, function, index, matrices, matrix, vector
from attn_course.reference import rope
from attn_course.reference import sinusoidal_positions as position_table

equation = about("E1")


def turns(angles: np.ndarray, features: int = 2, layout: Literal["halves", "interleaved"] = "interleaved") -> np.ndarray:
    """Return the matrices by which the reference turns a vector, one for each position; of a pair, by an angle."""
    units = np.eye(features)
    return np.stack([rope(units, np.full(features, angle), layout=layout).T for angle in angles])


def signed(rng: np.random.Generator) -> float:
    """Return a frequency, to the left or to the right."""
    return float(rng.uniform(0.3, 2) * rng.choice([-1, 1]))


# ---- Positions to add: sines and cosines
@equation(
    "sinusoidal-positions",
    r"P_{t,2i} = \sin(\omega_i t), \qquad P_{t,2i+1} = \cos(\omega_i t), \qquad \omega_i = 10000^{-2i/d}",
    uses=["score-with-added-positions"],
    assumes=["d even", "positions t = 0, 1, 2, ..."],
    wrong={
        "all sines first": r"P_{t,i} = \sin(\omega_i t), \qquad P_{t,i+d/2} = \cos(\omega_i t), \qquad \omega_i = 10000^{-2i/d}",
        "half as fast apart": r"P_{t,2i} = \sin(\omega_i t), \qquad P_{t,2i+1} = \cos(\omega_i t), \qquad \omega_i = 10000^{-i/d}",
    },
)
def sinusoidal_positions(rng: np.random.Generator, T: int, h: int) -> Givens:
    """A clock with d / 2 hands: the first turns once in 6.3 positions, each next one is slower by the same factor."""
    return {"P": matrix(position_table(T, 2 * h), start=0), "d": 2 * h, "t": index(0, T - 1), "i": index(0, h - 1)}


CLOCK_AT_SUM = r"\begin{pmatrix} \sin(\omega(t + \delta)) \\ \cos(\omega(t + \delta)) \end{pmatrix} ="


@equation(
    "sinusoid-shift-is-linear",
    r"\begin{pmatrix} \sin(\omega(t + \delta)) \\ \cos(\omega(t + \delta)) \end{pmatrix} ="
    r" \begin{pmatrix} \cos(\omega\delta) & \sin(\omega\delta) \\ -\sin(\omega\delta) & \cos(\omega\delta) \end{pmatrix}"
    r" \begin{pmatrix} \sin(\omega t) \\ \cos(\omega t) \end{pmatrix}",
    uses=["sinusoidal-positions"],
    wrong={
        "turned the other way": r"\sin(\omega\delta) \\ -\sin -> -\sin(\omega\delta) \\ \sin",
        "positions add like numbers": (
            CLOCK_AT_SUM + r" \begin{pmatrix} \sin(\omega t) \\ \cos(\omega t) \end{pmatrix}"
            r" + \begin{pmatrix} \sin(\omega\delta) \\ \cos(\omega\delta) \end{pmatrix}"
        ),
    },
)
def step_of_the_clock(rng: np.random.Generator) -> Givens:
    """The addition theorems. The matrix holds no t: going delta positions on is one linear map, the same from everywhere."""
    return {r"\omega": signed(rng), "t": rng.normal(scale=5), r"\delta": rng.normal(scale=5)}


@equation(
    "sinusoidal-position-similarity",
    r"P_t \cdot P_u = \sum_{i} \cos(\omega_i (t - u))",
    uses=["sinusoidal-positions"],
    wrong={
        "of the sum of the positions": r"P_t \cdot P_u = \sum_{i} \cos(\omega_i (t + u))",
        "different positions are orthogonal": r"P_t \cdot P_u = [\,t = u\,] \sum_{i} \cos(\omega_i (t - u))",
    },
)
def likeness_of_positions(rng: np.random.Generator, T: int, h: int) -> Givens:
    """sin a sin b + cos a cos b = cos(a - b): two places are alike by their distance only, whatever the direction."""
    return {"P": matrix(position_table(T, 2 * h), start=0), r"\omega": vector(10000.0 ** (-np.arange(h) / h), start=0)}


# ---- Positions to rotate by: RoPE
@equation(
    "angle-proportional-to-position",
    r"\theta(0) = 0,\;\; \theta(s + 1) - \theta(s) = \omega \quad \Longrightarrow \quad \theta(t) = \omega\, t",
    uses=["sinusoidal-position-similarity"],
    assumes=[
        "queries and keys at t are turned by theta(t)",
        "a score may depend on t and u through t - u only, so steps are equal, for all s",
    ],
    wrong={
        "one angle for all": r"\theta(0) = 0,\;\; \theta(s + 1) - \theta(s) = \omega \quad \Longrightarrow \quad \theta(t) = \omega",
        "geometric growth": r"\theta(0) = 0,\;\; \theta(s + 1) - \theta(s) = \omega \quad \Longrightarrow \quad \theta(t) = \omega^t",
        "wherever it starts": r"\theta(s + 1) - \theta(s) = \omega \quad \Longrightarrow \quad \theta(t) = \omega\, t",
        "the first step alone": r"\theta(0) = 0,\;\; \theta(1) = \omega \quad \Longrightarrow \quad \theta(t) = \omega\, t",
    },
    equivalent={
        r"\theta(0) = 0, \quad \theta(s + 1) - \theta(s) = \omega \; \Rightarrow \; \theta(t) = \omega\, t"
        r" -> \theta(t) = \omega\, t \; \Rightarrow \; \theta(0) = 0, \quad \theta(s + 1) - \theta(s) = \omega": "the converse is true too"
    },
)
def angle_of_a_position(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """theta(s + 1) - theta(s) is the angle between neighbours; if it is the same everywhere, angles grow in proportion to the position."""
    omega, off, one = signed(rng), (0.4, -0.4, 1e-4)[T % 3], T % 3 == 2
    angles = omega * np.arange(T + 1) + off * (draw == 1)
    if draw == 2:  # one position is out of place, or all but two
        angles[rng.integers(3, T + 1) if one else slice(2, None)] += off
    return {r"\theta": function(lambda t: angles[round(float(t))]), r"\omega": omega, "s": index(0, T - 1), "t": index(0, T)}


TURN = r"\qquad R_t = \begin{pmatrix} \cos(\omega t) & -\sin(\omega t) \\ \sin(\omega t) & \cos(\omega t) \end{pmatrix}"


@equation(
    "rotations-compose",
    r"R_t^\top R_u = R_{u - t}, \qquad"
    r" R_t = \begin{pmatrix} \cos(\omega t) & -\sin(\omega t) \\ \sin(\omega t) & \cos(\omega t) \end{pmatrix}",
    uses=["angle-proportional-to-position"],
    wrong={
        "the sum of the positions": r"R_t^\top R_u = R_{u + t}, " + TURN,
        "the other way round": r"R_t^\top R_u = R_{t - u}, " + TURN,
        "turned clockwise": r"R_t^\top R_u = R_{u - t}, " + TURN.replace("R_t", r"R_t^\top"),
    },
    equivalent={r"R_{t}^\top\, R_{u} -> R_{u}\, R_{t}^\top": "rotations of a plane commute"},
)
def rotations_compose(rng: np.random.Generator, T: int) -> Givens:
    """To turn back by omega t and on by omega u is to turn by the difference."""
    omega = signed(rng)
    R = matrices(turns(omega * np.arange(-T, 2 * T + 1)), start=-T)
    return {"R": R, r"\omega": omega, "t": index(0, T), "u": index(0, T)}


@equation(
    "rotated-pair-score",
    r"(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t)) + (q_2 k_1 - q_1 k_2) \sin(\omega(u - t))",
    uses=["rotations-compose"],
    assumes=["one pair of features"],
    wrong={
        "two ways to turn": r"(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u + t)) + (q_2 k_1 - q_1 k_2) \sin(\omega(u + t))",
        "only the query turned": r"(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega t) - (q_2 k_1 - q_1 k_2) \sin(\omega t)",
        "the content alone: q.k, nearer or farther": r"(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t))",
    },
)
def relative_scores(rng: np.random.Generator, T: int) -> Givens:
    """q^T R_t^T R_u k = q^T R_{u-t} k, by Eq. rotations-compose.

    A score knows how far apart two tokens stand, and nothing else of their places.
    """
    omega, (q, k) = signed(rng), rng.normal(size=(2, 2))
    return {"R": matrices(turns(omega * np.arange(T)), start=0), "q": column(q), "k": column(k), r"\omega": omega}


SHIFTED_SCORE = r"\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) = \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\,"


@equation(
    "rope-as-complex-rotation",
    r"\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) ="
    r" \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad \|R_t\, q\| = \|q\|",
    uses=["rotated-pair-score"],
    assumes=["pairs of features read as complex numbers, those of k conjugated", "omega_m = 10000^{-2m/d_k}", "any common shift c"],
    wrong={
        "a common shift of all positions changes the score": SHIFTED_SCORE + r" e^{i \omega_m (t - u + c)}, \qquad \|R_t\, q\| = \|q\|",
        "turned the other way": SHIFTED_SCORE + r" e^{i \omega_m (u - t)}, \qquad \|R_t\, q\| = \|q\|",
        "one frequency for all pairs": SHIFTED_SCORE + r" e^{i \omega_1 (t - u)}, \qquad \|R_t\, q\| = \|q\|",
    },
    equivalent={r"t -> m": "a turn by any position keeps lengths", r"t -> u": "a turn by any position keeps lengths"},
)
def relative_property_of_rope(rng: np.random.Generator, T: int, h: int, draw: int) -> Givens:
    """A turn by an angle is a factor e^{i angle}; conjugation takes one of the two back. Lengths are kept, and values are not turned."""
    (q, k), c = rng.normal(size=(2, 2 * h)), int(rng.integers(2, 8))
    R = turns(np.arange(T + c), 2 * h, "halves" if draw == 1 else "interleaved")
    first, second = (slice(0, h), slice(h, None)) if draw == 1 else (slice(0, None, 2), slice(1, None, 2))
    pairs = {r"\hat{q}": vector(q[first] + 1j * q[second]), r"\bar{k}": vector(k[first] - 1j * k[second]), "i": 1j}
    given = {"R": matrices(R, start=0), "q": column(q), "k": column(k), **pairs, r"\omega": 10000.0 ** (-np.arange(h) / h)}
    return {**given, "c": c, "t": index(0, T - 1), "u": index(0, T - 1)}
