"""Rotations beyond the trained length: which pairs see new angles, and three ways to stretch their frequencies."""

import math
from typing import Any

import numpy as np

from attn_course.equations.core import about
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

claim = about("O1")


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
@claim("turns-in-training", rests_on="rope-as-complex-rotation")
def _(rng, h):
    r"""r_i = \frac{L\, \omega_i}{2\pi}, \qquad \omega_i = b^{-2i/d}
    where r_i: how often pair i comes round over L positions ;; i = 0, ..., d/2 - 1
    A pair with r_i >= 1 has shown all its angles in training; one with r_i < 1 comes to new ones as soon as a text is longer than L.
        radians: \frac{L\, \omega_i}{2\pi} -> L\, \omega_i
        positions for each turn: \frac{L\, \omega_i}{2\pi} -> \frac{2\pi}{L\, \omega_i}
        half as fast apart: b^{-2i/d} -> b^{-i/d}
    """
    L, b = int(rng.integers(20, 60)), rng.uniform(50, 200)
    return {"r": vector(counted_turns(L, b, h), start=0), "L": L, "b": b, "d": 2 * h, "i": index(0, h - 1)}


@claim("interpolated-positions", rests_on="turns-in-training")
def _(rng, h):
    r"""R'(t) = R\Bigl( \frac{t}{s} \Bigr)
    where R': frequencies divided by s
    Only the product of frequency and position counts: a text s times as long fits between the positions of training.
        the wrong way: \frac{t}{s} -> s\, t
        the rotated vector divided: R'(t) = \frac{1}{s} R(t)
        each position moved: \frac{t}{s} -> t - s
    """
    s = rng.uniform(1.5, 4)
    by_position = function(lambda t: np.asarray(rope(np.eye(2 * h), np.full(2 * h, float(t)))).T)
    stretched = function(lambda t: turned(linear_frequencies(2 * h, s), np.array([float(t)]), 2 * h)[0])
    return {"R'": stretched, "R": by_position, "s": s, "t": rng.uniform(1, 50)}


@claim("ntk-base", rests_on="interpolated-positions")
def _(rng, h):
    r"""b' = b\, s^{d / (d - 2)}
    where with the base b' the slowest pair, i = d/2 - 1, turns s times slower than with b ;; the fastest, i = 0, turns as fast
    Pair 0 turns by 1 whatever the base; the last one, b'^{-(d - 2)/d}, is asked to be b^{-(d - 2)/d} / s.
        the base stretched like the text: s^{d / (d - 2)} -> s
        the exponent upside down: d / (d - 2) -> (d - 2) / d
        as if there were a pair d / 2: d / (d - 2) -> d / (d + 2)
    """
    b, s, low, high = rng.uniform(100, 1000), rng.uniform(1.5, 4), 1.0, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rope_frequencies(2 * h, middle)[-1] > rope_frequencies(2 * h, b)[-1] / s else (low, middle)
    return {"b'": math.sqrt(low * high), "b": b, "s": s, "d": 2 * h}


@claim("ntk-frequencies", rests_on="ntk-base")
def _(rng, h):
    r"""\omega'_i = \omega_i\, s^{-2i / (d - 2)}
    where omega', omega: frequencies with the bases b' and b ;; i = 0, ..., d/2 - 1
    From 1 for the fastest pair to 1/s for the slowest: neighbours stay apart, and only one pair is kept from all new angles.
        all alike: -2i / (d - 2) -> -1
        the slowest not quite: (d - 2) -> d
        the fast ones slowed: -2i / (d - 2) -> -1 + 2i / (d - 2)
    """
    b, s = rng.uniform(100, 1000), rng.uniform(1.5, 4)
    frequencies = {r"\omega'": ntk_frequencies(2 * h, s, b), r"\omega": rope_frequencies(2 * h, b)}
    return {name: vector(given, start=0) for name, given in frequencies.items()} | {"s": s, "d": 2 * h, "i": index(0, h - 1)}


@claim("yarn-frequencies", rests_on="turns-in-training interpolated-positions")
def _(rng, h):
    r"""\omega'_i = \gamma_i\, \omega_i + (1 - \gamma_i)\, \frac{\omega_i}{s}, \qquad
        \gamma_i = \min\Bigl( 1,\; \max\Bigl( 0,\; \frac{r_i - \alpha}{\beta - \alpha} \Bigr) \Bigr), \qquad r_i = \frac{L\, \omega_i}{2\pi}
    where L: the trained length ;; alpha < beta, in turns; 1 and 32 in use
    Pairs that came round often keep their angles, those that never did are interpolated, those between get some of both.
        the fast pairs stretched: \gamma_i\, \omega_i + (1 - \gamma_i)\, -> (1 - \gamma_i)\, \omega_i + \gamma_i\,
        mixed as wavelengths:
            \gamma_i\, \omega_i + (1 - \gamma_i)\, \frac{\omega_i}{s} -> \frac{1}{\gamma_i / \omega_i + (1 - \gamma_i)\, s / \omega_i}
        a ramp over pairs: \frac{r_i - \alpha}{\beta - \alpha} -> \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)}
        the length at test: L\, -> s\, L\,
    """
    L, b, s, alpha, beta = int(rng.integers(600, 1000)), 10_000.0, rng.uniform(2, 8), rng.uniform(0.7, 1.5), rng.uniform(20, 40)
    stretched = yarn_frequencies(2 * h, s, L, b, slow=alpha, fast=beta)
    frequencies = {r"\omega'": vector(stretched, start=0), r"\omega": vector(rope_frequencies(2 * h, b), start=0)}
    return frequencies | {"s": s, "L": L, r"\alpha": alpha, r"\beta": beta, "i": index(0, h - 1)}


@claim("ramp-over-pairs", rests_on="turns-in-training yarn-frequencies")
def _(rng, h):
    r"""\frac{j(\alpha) - i}{j(\alpha) - j(\beta)} = \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)}, \qquad
        j(x) = \frac{d}{2 \ln b} \ln\Bigl( \frac{L}{2\pi x} \Bigr)
    where j(x): where a pair would stand that comes round x times ;; before places are rounded and the ramp is cut off
    Turns fall by one factor from pair to pair, so steps that are even in i are even in ln r: what the authors' code does.
        even in the turns: = \frac{\ln(r_i / \alpha)}{\ln(\beta / \alpha)} -> = \frac{r_i - \alpha}{\beta - \alpha}
        the other way round: \frac{j(\alpha) - i}{ -> \frac{i - j(\beta)}{
        places of features, not of pairs: \frac{d}{2 \ln b} -> \frac{d}{\ln b}
    """
    L, b, alpha, beta = int(rng.integers(20, 60)), rng.uniform(50, 200), rng.uniform(0.3, 0.9), rng.uniform(2, 6)
    known = {"r": vector(counted_turns(L, b, h), start=0), "L": L, "b": b, "d": 2 * h}
    return known | {r"\alpha": alpha, r"\beta": beta, "i": index(0, h - 1)}


@claim("yarn-sharpens-weights", rests_on="softmax-with-temperature yarn-frequencies")
def _(normal, rng, T, d_k):
    r"""p'_j = \frac{p_j^{1/\tau}}{\sum_{l} p_l^{1/\tau}}, \qquad \tau = \frac{1}{(0.1 \ln s + 1)^2}
    where p', p: weights of one query with and without the temperature ;; the factor 0.1 is a fit
    Scores times 1 / tau are weights to that power: over more keys the same scores would give each less, and this works against it.
        flattened: \tau = \frac{1}{(0.1 \ln s + 1)^2} -> \tau = (0.1 \ln s + 1)^2
        once instead of for query and key: (0.1 \ln s + 1)^2 -> 0.1 \ln s + 1
        the weights divided by the temperature: \frac{p_j^{1/\tau}}{\sum_{l} p_l^{1/\tau}} -> \frac{p_j / \tau}{\sum_{l} p_l}
    """
    s, q, K = rng.uniform(2, 40), normal(1, d_k), normal(T, d_k)
    scale = 1 / math.sqrt(d_k)
    p, sharper = (attention(q, K, K, scale=each, return_weights=True)[1][0] for each in (scale, scale / yarn_temperature(s)))
    return {"p": vector(p), "p'": vector(sharper), "s": s}


# ---- a part of the features, and keys of yesterday


@claim("partial-rope-score", rests_on="rope-as-complex-rotation", sizes="T n e")
def _(normal, rng, T, n, e):
    r"""\bigl( R_t\, q \bigr) \cdot \bigl( R_u\, k \bigr)
        = \mathrm{Re} \Bigl( \sum_{m=0}^{n-1} \hat{q}_m\, \bar{k}_m\, e^{i\, b^{-m/n} (t - u)} \Bigr) + \sum_{l=2n+1}^{d} q_l\, k_l
    where the first 2n of d features rotated, in pairs read as complex numbers, those of k conjugated
    A rotary score and a dot product without positions, side by side: n = d/2 is RoPE, n = 0 is NoPE, and the latter never gets far.
        frequencies spread over the head: b^{-m/n} -> b^{-2m/d}
        the others do not count: + \sum_{l=2n+1}^{d} q_l\, k_l ->
        the others turned, too: k_l -> k_l\, \cos(t - u)
    """
    d, b = 2 * n + e, rng.uniform(5, 50)
    q, k = normal(2, d)
    R = turned(rope_frequencies(2 * n, b), np.arange(T), d)
    known = {"R": matrices(R, start=0), "q": column(q), "k": column(k), "b": b, "n": n, "d": d}
    return known | halves(q, k, n) | {"t": index(0, T - 1), "u": index(0, T - 1)}


@claim("temperature-on-rotated-features", rests_on="partial-rope-score yarn-sharpens-weights", may_be="negative")
def _(normal, rng, T, n, e):
    r"""s'_{tu} = c^2\, s_{tu} - (c^2 - 1)\, q_t \cdot k_u
    where s': cosines and sines multiplied by c ;; s: by 1 ;; q, k: the features that are not rotated
    The factor reaches what is rotated: all scores if all is, else a part of each, and then it is no temperature.
        the same as a temperature: s'_{tu} = c^2\, s_{tu}
        c counts once: all c^2 -> c
        it counts for the others: c^2\, s_{tu} - -> s_{tu} +
    """
    (q, k), c, where = normal(2, T, 2 * n + e), rng.uniform(1.1, 1.5), np.arange(T)
    factors = np.where(np.arange(2 * n + e) < 2 * n, c, 1.0)
    frequencies = rope_frequencies(2 * n, 10.0)
    plain, scaled = (
        [[float(rows_q[t] @ rows_k[u]) for u in range(T)] for t in range(T)]
        for rows_q, rows_k in (tuple(rotate_pairs(x * each, where, frequencies) for x in (q, k)) for each in (1.0, factors))
    )
    return {"s'": matrix(scaled), "s": matrix(plain), "c": c, "q": rows(q[:, 2 * n :]), "k": rows(k[:, 2 * n :])}


@claim("stale-keys-drift", rests_on="rope-as-complex-rotation ntk-frequencies")
def _(normal, rng, T, h):
    r"""\bigl( R'_t\, q \bigr) \cdot \bigl( R_u\, k \bigr)
        = \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega'_m (t - u)}\, e^{i (\omega'_m - \omega_m)\, u}
    where a query turned by new frequencies, a key in the cache by old ones
    Frequencies that change while a text grows need keys that are kept unrotated: else scores depend on places, not on distances.
        as if both were new: \, e^{i (\omega'_m - \omega_m)\, u} ->
        an error of the distance: \, u -> (t - u)
        an error of the query's place: \, u -> \, t
    """
    s, (q, k) = rng.uniform(1.5, 4), normal(2, 2 * h)
    frequencies = {"": rope_frequencies(2 * h, 30.0), "'": ntk_frequencies(2 * h, s, 30.0)}
    known = {f"R{mark}": matrices(turned(each, np.arange(T), 2 * h), start=0) for mark, each in frequencies.items()}
    known |= {rf"\omega{mark}": vector(each, start=0) for mark, each in frequencies.items()}
    return known | {"q": column(q), "k": column(k)} | halves(q, k, h) | {"t": index(0, T - 1), "u": index(0, T - 1)}


@claim("rotation-flops", rests_on="partial-rope-score", sizes="H g H_kv T n, H = g H_kv")
def _(rng, H, g, H_kv, T, n):
    r"""F = 4\, T\, (H + H_{kv})\, d_r
    where d_r of the features of each query and key rotated, as products of 2 x 2 matrices ;; a multiply-add counts 2
    Four products for each pair: once for every key if its frequencies stay, again for the whole cache wherever they change.
        every query head with every key head: (H + H_{kv}) -> H\, H_{kv}
        by matrices of the whole head: 4\, -> 2\, ;; d_r -> d_r^2
        one product for each feature: 4 -> 2
    """
    count = multiplications(lambda turns, x: [turn @ pair for turn in turns for pair in x], (n, 2, 2), (T * (H + H_kv), 2))
    return {"F": 2 * count, "T": T, "H": H, "H_{kv}": H_kv, "d_r": 2 * n}
