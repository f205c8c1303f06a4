"""Positions: sinusoids to add, rotations of queries and keys."""

from typing import Literal

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import column, index, matrices, matrix, vector
from attn_course.reference import rope
from attn_course.reference import sinusoidal_positions as position_table

claim = about("E1")


def turns(angles: np.ndarray, features: int = 2, layout: Literal["halves", "interleaved"] = "interleaved") -> np.ndarray:
    """Return the matrices by which the reference turns a vector, one for each position; of a pair, by an angle."""
    units = np.eye(features)
    return np.stack([rope(units, np.full(features, angle), layout=layout).T for angle in angles])


def signed(rng: np.random.Generator) -> float:
    """Return a frequency, to the left or to the right."""
    return float(rng.uniform(0.3, 2) * rng.choice([-1, 1]))


# ---- Positions to add: sines and cosines
@claim("sinusoidal-positions", rests_on="score-with-added-positions")
def _(rng, T, h):
    r"""h_{t,2m} = \sin(\omega_m t), \qquad h_{t,2m+1} = \cos(\omega_m t), \qquad \omega_m = 10000^{-2m/d}
    where d even ;; positions t = 0, 1, 2, ...
    A clock with d / 2 hands: the first turns once in 6.3 positions, each next one is slower by the same factor.
        all sines first: h_{t,2m} -> h_{t,m} ;; t,2m+ -> t,m+ ;; +1 -> +d/2
        half as fast apart: -2m/d -> -m/d
    """
    return {"h": matrix(position_table(T, 2 * h), start=0), "d": 2 * h, "t": index(0, T - 1), "m": index(0, h - 1)}


# ---- Positions to rotate by: RoPE
@claim(
    "rotations-compose",
    rests_on="scaled-score",
    equivalent={r"R_{t}^\top\, R_{u} -> R_{u}\, R_{t}^\top": "rotations of a plane commute"},
)
def _(rng, T):
    r"""R_t^\top R_u = R_{u - t}, \qquad
        R_t = \begin{pmatrix} \cos(\omega t) & -\sin(\omega t) \\ \sin(\omega t) & \cos(\omega t) \end{pmatrix}
    To turn back by omega t and on by omega u is to turn by the difference.
        the sum of the positions: - t -> + t
        the other way round: u - t -> t - u
        turned clockwise: R_t = -> R_t^\top =
    """
    omega = signed(rng)
    R = matrices(turns(omega * np.arange(-T, 2 * T + 1)), start=-T)
    return {"R": R, r"\omega": omega, "t": index(0, T), "u": index(0, T)}


@claim("rotated-pair-score", rests_on="rotations-compose")
def _(normal, rng, T):
    r"""(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t)) + (q_2 k_1 - q_1 k_2) \sin(\omega(u - t))
    where one pair of features
    q^T R_t^T R_u k = q^T R_{u-t} k, by Eq. rotations-compose.
        two ways to turn: all - t -> + t
        only the query turned: (R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega t) - (q_2 k_1 - q_1 k_2) \sin(\omega t)
        the content alone: q.k, nearer or farther:
            (R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t))

    A score knows how far apart two tokens stand, and nothing else of their places.
    """
    omega, (q, k) = signed(rng), normal(2, 2)
    return {"R": matrices(turns(omega * np.arange(T)), start=0), "q": column(q), "k": column(k), r"\omega": omega}


@claim(
    "rope-as-complex-rotation",
    rests_on="rotated-pair-score",
    equivalent={r"t -> m": "a turn by any position keeps lengths", r"t -> u": "a turn by any position keeps lengths"},
)
def _(normal, rng, T, h, draw):
    r"""\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr)
        = \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad \|R_t\, q\| = \|q\|
    where pairs of features read as complex numbers, those of k conjugated ;; omega_m = 10000^{-2m/d_k} ;; any common shift c
    A turn by an angle is a factor e^{i angle}; conjugation takes one of the two back. Lengths are kept, and values are not turned.
        a common shift of all positions changes the score: - u -> - u + c
        turned the other way: t - u -> u - t
        one frequency for all pairs: \omega_m -> \omega_1
    """
    (q, k), c = normal(2, 2 * h), int(rng.integers(2, 8))
    R = turns(np.arange(T + c), 2 * h, "halves" if draw == 1 else "interleaved")
    first, second = (slice(0, h), slice(h, None)) if draw == 1 else (slice(0, None, 2), slice(1, None, 2))
    pairs = {r"\hat{q}": vector(q[first] + 1j * q[second]), r"\bar{k}": vector(k[first] - 1j * k[second]), "i": 1j}
    given = {"R": matrices(R, start=0), "q": column(q), "k": column(k), **pairs, r"\omega": 10000.0 ** (-np.arange(h) / h)}
    return {**given, "c": c, "t": index(0, T - 1), "u": index(0, T - 1)}
