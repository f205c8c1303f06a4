"""Rotations beyond the trained length: which pairs see new angles, and three ways to stretch their frequencies."""

import math
from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import column, function, index, matrices, matrix, rows, vector
from attn_course.reference import (
    attention,
    linear_frequencies,
    ntk_frequencies,
    rope,
    rope_frequencies,
    rotate_pairs,
    yarn_frequencies,
    yarn_temperature,
)

equation = about("O1")


def turned(frequencies: np.ndarray, positions: np.ndarray, d: int) -> np.ndarray:
    """Return the matrices by which vectors of d features are turned, one for each position."""
    return np.stack([rotate_pairs(np.eye(d), np.full(d, position), frequencies).T for position in positions])


def halves(q: np.ndarray, k: np.ndarray, n: int) -> dict[str, Any]:
    """Return the first n pairs as complex numbers, those of k conjugated."""
    complex_pairs = {r"\hat{q}": q[:n] + 1j * q[n : 2 * n], r"\bar{k}": k[:n] - 1j * k[n : 2 * n]}
    return {name: vector(pairs, start=0) for name, pairs in complex_pairs.items()} | {"i": 1j}


def counted_turns(L: int, b: float, n: int) -> np.ndarray:
    """Return how often each pair comes round over L positions: the angles of a rotated vector, followed step by step."""
    steps = rope(np.tile(np.repeat([1.0, 0.0], n), (L + 1, 1)), np.arange(L + 1), b)
    angles = np.unwrap(np.arctan2(steps[:, n:], steps[:, :n]), axis=0)
    return np.asarray((angles[-1] - angles[0]) / (2 * math.pi))


# ---- what training has seen
@equation(
    "turns-in-training",
    r"r_i = \frac{L\, \omega_i}{2\pi}, \qquad \omega_i = b^{-2i/d}",
    uses=["rope-as-complex-rotation"],
    assumes=["r_i: how often pair i comes round over L positions", "i = 0, ..., d/2 - 1"],
    wrong={
        "radians": r"\frac{L\, \omega_i}{2\pi} -> L\, \omega_i",
        "positions for each turn": r"\frac{L\, \omega_i}{2\pi} -> \frac{2\pi}{L\, \omega_i}",
        "half as fast apart": r"b^{-2i/d} -> b^{-i/d}",
    },
)
def turns_during_training(rng: np.random.Generator, h: int) -> Givens:
    """A pair with r_i >= 1 has shown all its angles in training; one with r_i < 1 comes to new ones as soon as a text is longer than L."""
    L, b = int(rng.integers(20, 60)), rng.uniform(50, 200)
    return {"r": vector(counted_turns(L, b, h), start=0), "L": L, "b": b, "d": 2 * h, "i": index(0, h - 1)}


@equation(
    "interpolated-positions",
    r"R'(t) = R\Bigl( \frac{t}{s} \Bigr)",
    uses=["turns-in-training"],
    assumes=["R': frequencies divided by s"],
    wrong={
        "the wrong way": r"\frac{t}{s} -> s\, t",
        "the rotated vector divided": r"R'(t) = \frac{1}{s} R(t)",
        "each position moved": r"\frac{t}{s} -> t - s",
    },
)
def positions_between_positions(rng: np.random.Generator, h: int) -> Givens:
    """Only the product of frequency and position counts: a text s times as long fits between the positions of training."""
    s = rng.uniform(1.5, 4)
    by_position = function(lambda t: np.asarray(rope(np.eye(2 * h), np.full(2 * h, float(t)))).T)
    stretched = function(lambda t: turned(linear_frequencies(2 * h, s), np.array([float(t)]), 2 * h)[0])
    return {"R'": stretched, "R": by_position, "s": s, "t": rng.uniform(1, 50)}


@equation(
    "ntk-base",
    r"b' = b\, s^{d / (d - 2)}",
    uses=["interpolated-positions"],
    assumes=["with the base b' the slowest pair, i = d/2 - 1, turns s times slower than with b", "the fastest, i = 0, turns as fast"],
    wrong={
        "the base stretched like the text": r"s^{d / (d - 2)} -> s",
        "the exponent upside down": r"d / (d - 2) -> (d - 2) / d",
        "as if there were a pair d / 2": r"d / (d - 2) -> d / (d + 2)",
    },
)
def base_that_stretches_the_slowest_pair(rng: np.random.Generator, h: int) -> Givens:
    """Pair 0 turns by 1 whatever the base; the last one, b'^{-(d - 2)/d}, is asked to be b^{-(d - 2)/d} / s."""
    b, s, low, high = rng.uniform(100, 1000), rng.uniform(1.5, 4), 1.0, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rope_frequencies(2 * h, middle)[-1] > rope_frequencies(2 * h, b)[-1] / s else (low, middle)
    return {"b'": math.sqrt(low * high), "b": b, "s": s, "d": 2 * h}


@equation(
    "ntk-frequencies",
    r"\omega'_i = \omega_i\, s^{-2i / (d - 2)}",
    uses=["ntk-base"],
    assumes=["omega', omega: frequencies with the bases b' and b", "i = 0, ..., d/2 - 1"],
    wrong={
        "all alike": r"-2i / (d - 2) -> -1",
        "the slowest not quite": r"(d - 2) -> d",
        "the fast ones slowed": r"-2i / (d - 2) -> -1 + 2i / (d - 2)",
    },
)
def stretched_more_the_slower(rng: np.random.Generator, h: int) -> Givens:
    """From 1 for the fastest pair to 1/s for the slowest: neighbours stay apart, and only one pair is kept from all new angles."""
    b, s = rng.uniform(100, 1000), rng.uniform(1.5, 4)
    frequencies = {r"\omega'": ntk_frequencies(2 * h, s, b), r"\omega": rope_frequencies(2 * h, b)}
    return {name: vector(given, start=0) for name, given in frequencies.items()} | {"s": s, "d": 2 * h, "i": index(0, h - 1)}


YARN = (
    r"\omega'_i = \gamma_i\, \omega_i + (1 - \gamma_i)\, \frac{\omega_i}{s}, \qquad"
    r" \gamma_i = \min\Bigl( 1,\; \max\Bigl( 0,\; \frac{r_i - \alpha}{\beta - \alpha} \Bigr) \Bigr), \qquad r_i = \frac{L\, \omega_i}{2\pi}"
)


@equation(
    "yarn-frequencies",
    YARN,
    uses=["turns-in-training", "interpolated-positions"],
    assumes=["L: the trained length", "alpha < beta, in turns; 1 and 32 in use"],
    wrong={
        "the fast pairs stretched": YARN.replace(r"\gamma_i\, \omega_i + (1 - \gamma_i)", r"(1 - \gamma_i)\, \omega_i + \gamma_i"),
        "mixed as wavelengths": YARN.replace(
            r"\gamma_i\, \omega_i + (1 - \gamma_i)\, \frac{\omega_i}{s}", r"\frac{1}{\gamma_i / \omega_i + (1 - \gamma_i)\, s / \omega_i}"
        ),
        "a ramp over pairs": r"\frac{r_i - \alpha}{\beta - \alpha} -> \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)}",
        "the length at test": r"\frac{L\, \omega_i}{2\pi} -> \frac{s\, L\, \omega_i}{2\pi}",
    },
)
def stretched_by_turns(rng: np.random.Generator, h: int) -> Givens:
    """Pairs that came round often keep their angles, those that never did are interpolated, those between get some of both."""
    L, b, s, alpha, beta = int(rng.integers(600, 1000)), 10_000.0, rng.uniform(2, 8), rng.uniform(0.7, 1.5), rng.uniform(20, 40)
    stretched = yarn_frequencies(2 * h, s, L, b, slow=alpha, fast=beta)
    frequencies = {r"\omega'": vector(stretched, start=0), r"\omega": vector(rope_frequencies(2 * h, b), start=0)}
    return frequencies | {"s": s, "L": L, r"\alpha": alpha, r"\beta": beta, "i": index(0, h - 1)}


@equation(
    "ramp-over-pairs",
    r"\frac{j(\alpha) - i}{j(\alpha) - j(\beta)} = \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)}, \qquad"
    r" j(x) = \frac{d}{2 \ln b} \ln\Bigl( \frac{L}{2\pi x} \Bigr)",
    uses=["turns-in-training", "yarn-frequencies"],
    assumes=[
        "j(x): where a pair would stand that comes round x times",
        "before places are rounded and the ramp is cut off",
    ],
    wrong={
        "even in the turns": r"= \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)} -> = \frac{r_i - \alpha}{\beta - \alpha}",
        "the other way round": r"\frac{j(\alpha) - i}{ -> \frac{i - j(\beta)}{",
        "places of features, not of pairs": r"\frac{d}{2 \ln b} -> \frac{d}{\ln b}",
    },
)
def a_ramp_over_pairs(rng: np.random.Generator, h: int) -> Givens:
    """Turns fall by one factor from pair to pair, so steps that are even in i are even in ln r: what the authors' code does."""
    L, b, alpha, beta = int(rng.integers(20, 60)), rng.uniform(50, 200), rng.uniform(0.3, 0.9), rng.uniform(2, 6)
    known = {"r": vector(counted_turns(L, b, h), start=0), "L": L, "b": b, "d": 2 * h}
    return known | {r"\alpha": alpha, r"\beta": beta, "i": index(0, h - 1)}


@equation(
    "yarn-sharpens-weights",
    r"p'_j = \frac{p_j^{1/\tau}}{\sum_{l} p_l^{1/\tau}}, \qquad \tau = \frac{1}{(0.1 \ln s + 1)^2}",
    uses=["softmax-with-temperature", "yarn-frequencies"],
    assumes=["p', p: weights of one query with and without the temperature", "the factor 0.1 is a fit"],
    wrong={
        "flattened": r"\tau = \frac{1}{(0.1 \ln s + 1)^2} -> \tau = (0.1 \ln s + 1)^2",
        "once instead of for query and key": r"(0.1 \ln s + 1)^2 -> 0.1 \ln s + 1",
        "the weights divided by the temperature": r"\frac{p_j^{1/\tau}}{\sum_{l} p_l^{1/\tau}} -> \frac{p_j / \tau}{\sum_{l} p_l}",
    },
)
def weights_become_sharper(rng: np.random.Generator, T: int, d_k: int) -> Givens:
    """Scores times 1 / tau are weights to that power: over more keys the same scores would give each less, and this works against it."""
    s, q, K = rng.uniform(2, 40), rng.normal(size=(1, d_k)), rng.normal(size=(T, d_k))
    scale = 1 / math.sqrt(d_k)
    p, sharper = (attention(q, K, K, scale=each, return_weights=True)[1][0] for each in (scale, scale / yarn_temperature(s)))
    return {"p": vector(p), "p'": vector(sharper), "s": s}


# ---- a part of the features, and keys of yesterday
PARTIAL = (
    r"\bigl( R_t\, q \bigr) \cdot \bigl( R_u\, k \bigr) = \mathrm{Re} \Bigl( \sum_{m=0}^{n-1}"
    r" \hat{q}_m\, \bar{k}_m\, e^{i\, b^{-m/n} (t - u)} \Bigr) + \sum_{l=2n+1}^{d} q_l\, k_l"
)


@equation(
    "partial-rope-score",
    PARTIAL,
    sizes="T n e",
    uses=["rope-as-complex-rotation"],
    assumes=["the first 2n of d features rotated, in pairs read as complex numbers, those of k conjugated"],
    wrong={
        "frequencies spread over the head": r"b^{-m/n} -> b^{-2m/d}",
        "the others do not count": PARTIAL.replace(r" + \sum_{l=2n+1}^{d} q_l\, k_l", ""),
        "the others turned, too": PARTIAL.replace(r"\sum_{l=2n+1}^{d} q_l\, k_l", r"\sum_{l=2n+1}^{d} q_l\, k_l\, \cos(t - u)"),
    },
)
def scores_with_a_part_rotated(rng: np.random.Generator, T: int, n: int, e: int) -> Givens:
    """A rotary score and a dot product without positions, side by side: n = d/2 is RoPE, n = 0 is NoPE, and the latter never gets far."""
    d, b = 2 * n + e, rng.uniform(5, 50)
    q, k = rng.normal(size=(2, d))
    R = turned(rope_frequencies(2 * n, b), np.arange(T), d)
    known = {"R": matrices(R, start=0), "q": column(q), "k": column(k), "b": b, "n": n, "d": d}
    return known | halves(q, k, n) | {"t": index(0, T - 1), "u": index(0, T - 1)}


@equation(
    "temperature-on-rotated-features",
    r"s'_{tu} = c^2\, s_{tu} - (c^2 - 1)\, q_t \cdot k_u",
    uses=["partial-rope-score", "yarn-sharpens-weights"],
    assumes=["s': cosines and sines multiplied by c", "s: by 1", "q, k: the features that are not rotated"],
    wrong={
        "the same as a temperature": r"s'_{tu} = c^2\, s_{tu}",
        "c counts once": r"s'_{tu} = c\, s_{tu} - (c - 1)\, q_t \cdot k_u",
        "it counts for the others": r"s'_{tu} = s_{tu} + (c^2 - 1)\, q_t \cdot k_u",
    },
)
def a_factor_of_the_rotation(rng: np.random.Generator, T: int, n: int, e: int) -> Givens:
    """The factor reaches what is rotated: all scores if all is, else a part of each, and then it is no temperature."""
    (q, k), c, where = rng.normal(size=(2, T, 2 * n + e)), rng.uniform(1.1, 1.5), np.arange(T)
    factors = np.where(np.arange(2 * n + e) < 2 * n, c, 1.0)
    frequencies = rope_frequencies(2 * n, 10.0)
    plain, scaled = (
        [[float(rows_q[t] @ rows_k[u]) for u in range(T)] for t in range(T)]
        for rows_q, rows_k in (tuple(rotate_pairs(x * each, where, frequencies) for x in (q, k)) for each in (1.0, factors))
    )
    return {"s'": matrix(scaled), "s": matrix(plain), "c": c, "q": rows(q[:, 2 * n :]), "k": rows(k[:, 2 * n :])}


STALE = r"\bigl( R'_t\, q \bigr) \cdot \bigl( R_u\, k \bigr) = \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega'_m (t - u)}"


@equation(
    "stale-keys-drift",
    STALE + r"\, e^{i (\omega'_m - \omega_m)\, u}",
    uses=["rope-as-complex-rotation", "ntk-frequencies"],
    assumes=["a query turned by new frequencies, a key in the cache by old ones"],
    wrong={
        "as if both were new": STALE,
        "an error of the distance": STALE + r"\, e^{i (\omega'_m - \omega_m) (t - u)}",
        "an error of the query's place": STALE + r"\, e^{i (\omega'_m - \omega_m)\, t}",
    },
)
def keys_of_older_frequencies(rng: np.random.Generator, T: int, h: int) -> Givens:
    """Frequencies that change while a text grows need keys that are kept unrotated: else scores depend on places, not on distances."""
    s, (q, k) = rng.uniform(1.5, 4), rng.normal(size=(2, 2 * h))
    frequencies = {"": rope_frequencies(2 * h, 30.0), "'": ntk_frequencies(2 * h, s, 30.0)}
    known = {f"R{mark}": matrices(turned(each, np.arange(T), 2 * h), start=0) for mark, each in frequencies.items()}
    known |= {rf"\omega{mark}": vector(each, start=0) for mark, each in frequencies.items()}
    return known | {"q": column(q), "k": column(k)} | halves(q, k, h) | {"t": index(0, T - 1), "u": index(0, T - 1)}


@equation(
    "rotation-flops",
    r"F = 4\, T\, (H + H_{kv})\, d_r",
    sizes="H g H_kv T n, H = g H_kv",
    uses=["partial-rope-score"],
    assumes=["d_r of the features of each query and key rotated, as products of 2 x 2 matrices", "a multiply-add counts 2"],
    wrong={
        "every query head with every key head": r"(H + H_{kv}) -> H\, H_{kv}",
        "by matrices of the whole head": r"4\, T\, (H + H_{kv})\, d_r -> 2\, T\, (H + H_{kv})\, d_r^2",
        "one product for each feature": r"4 -> 2",
    },
)
def flops_of_rotations(rng: np.random.Generator, H: int, g: int, H_kv: int, T: int, n: int) -> Givens:
    """Four products for each pair: once for every key if its frequencies stay, again for the whole cache wherever they change."""
    count = multiplications(lambda turns, x: [turn @ pair for turn in turns for pair in x], (n, 2, 2), (T * (H + H_kv), 2))
    return {"F": 2 * count, "T": T, "H": H, "H_{kv}": H_kv, "d_r": 2 * n}
