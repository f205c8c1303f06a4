"""Rotary positions beyond the trained length: frequencies stretched in three ways, and a part of the features rotated."""

import math
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from attn_course.reference.arrays import checked_floats, require_axes, require_flags, require_integer, require_positive
from attn_course.reference.positions import rope

Ramp = Literal["turns", "pairs"]


def rope_frequencies(d_rotated: int, theta: float = 10_000.0) -> Float[np.ndarray, "n_pairs"]:
    r"""Return how fast each pair of features turns, in radians for each position, from the fastest on, Eq. turns-in-training.

    .. math:: \omega_i = \theta^{-2i/d_r}, \qquad i = 0, \ldots, d_r / 2 - 1

    `d_rotated`: features that are rotated, even: all of a head, some (partial RoPE, Eq. partial-rope-score), or none (NoPE).
    `theta`: base of the frequencies.

    Raises TypeError if `d_rotated` is not an integer or `theta` no number; ValueError if the one is odd or negative, or
    the other not positive and finite.

    Su et al. (2021), section 3.2.2, arXiv:2104.09864. The exponent divides by the features that are rotated, not by all.

    >>> rope_frequencies(4)
    array([1.  , 0.01])
    """
    if require_integer("d_rotated", d_rotated, 0) % 2:
        raise ValueError(f"d_rotated must be even; got {d_rotated}")
    return require_positive("theta", theta) ** (-2 * np.arange(d_rotated // 2) / max(d_rotated, 1))


def linear_frequencies(d_rotated: int, factor: float, theta: float = 10_000.0) -> Float[np.ndarray, "n_pairs"]:
    r"""Return frequencies that stretch all positions by one factor, Eq. interpolated-positions.

    .. math:: \omega'_i = \omega_i / s

    `factor`: s, length at test over length at training, 1 or more: a sequence s times as long turns no pair farther than training did.
    `theta`: base of the frequencies.

    Raises TypeError, ValueError as `rope_frequencies`; also if `factor` is no number of 1 or more.

    Position interpolation: Chen et al. (2023), section 2.3, arXiv:2306.15595. Neighbours come s times closer, too.

    >>> linear_frequencies(4, 2.0)
    array([0.5  , 0.005])
    """
    return rope_frequencies(d_rotated, theta) / _stretch(factor)


def ntk_frequencies(d_rotated: int, factor: float, theta: float = 10_000.0) -> Float[np.ndarray, "n_pairs"]:
    r"""Return frequencies of a larger base: the slowest pair is stretched by the factor, the fastest not at all, Eq. ntk-base.

    .. math:: \omega'_i = \bigl( \theta\, s^{d_r / (d_r - 2)} \bigr)^{-2i/d_r} = \omega_i\, s^{-2i/(d_r - 2)}

    `factor`: s, 1 or more. The pairs between are stretched by less, so a sequence s times as long turns them farther than training did.
    `theta`: base of the frequencies.

    Raises TypeError, ValueError as `linear_frequencies`; also if there are fewer than two pairs.

    "NTK-aware" interpolation: Peng et al. (2023), arXiv:2309.00071. With s = T / L for a text of T > L tokens it
    is the dynamic form; keys that were rotated by older frequencies do not fit then, Eq. stale-keys-drift.

    >>> rope_frequencies(6) / ntk_frequencies(6, 4.0)
    array([1., 2., 4.])
    """
    d_rotated = require_integer("d_rotated", d_rotated, 4)
    base = require_positive("theta", theta) * _stretch(factor) ** (d_rotated / (d_rotated - 2))
    return rope_frequencies(d_rotated, base)


def yarn_frequencies(
    d_rotated: int,
    factor: float,
    trained_length: int,
    theta: float = 10_000.0,
    *,
    slow: float = 1.0,
    fast: float = 32.0,
    ramp: Ramp = "turns",
    truncate: bool = True,
) -> Float[np.ndarray, "n_pairs"]:
    r"""Return frequencies stretched by the factor where training saw no full turn, and left alone where it saw many, Eq. yarn-frequencies.

    .. math:: \omega'_i = \gamma_i\, \omega_i + (1 - \gamma_i)\, \omega_i / s, \qquad
              \gamma_i = \min\Bigl( 1, \max\Bigl( 0, \frac{r_i - \alpha}{\beta - \alpha} \Bigr) \Bigr), \qquad
              r_i = \frac{L\, \omega_i}{2 \pi}

    `factor`: s, 1 or more. `trained_length`: L, before any stretching. `theta`: base of the frequencies.
    `slow`, `fast`: alpha and beta, in turns: stretched fully up to the one, not at all from the other on.
    `ramp`: "turns" is the formula above. "pairs" is what the authors' code does, and models trained with it expect: gamma falls
    evenly from pair to pair, so with the logarithm of the turns, Eq. ramp-over-pairs, and between whole pairs.
    `truncate`: with "pairs", whether the ramp begins and ends at whole pairs; gpt-oss was trained with False: with True one of
    its pairs would turn 1.8 times as fast.

    Raises TypeError, ValueError as `linear_frequencies`; also if `trained_length` is below 1, not 0 < `slow` < `fast`, `ramp` is
    unknown, or it goes by pairs and `theta` is 1 or less; TypeError if `truncate` is neither True nor False.

    "NTK-by-parts", the first half of YaRN: Peng et al. (2023), arXiv:2309.00071. The other half is `yarn_temperature`.

    >>> (rope_frequencies(6) / yarn_frequencies(6, 4.0, 512)).round(2)
    array([1.  , 3.15, 4.  ])
    """
    frequencies, factor = rope_frequencies(d_rotated, theta), _stretch(factor)
    length, slow, fast = (
        require_integer("trained_length", trained_length, 1),
        require_positive("slow", slow),
        require_positive("fast", fast),
    )
    require_flags(truncate=truncate)
    if slow >= fast:
        raise ValueError(f"slow must be below fast; got {slow} and {fast}")
    if ramp == "turns":
        share = (length * frequencies / (2 * math.pi) - slow) / (fast - slow)
    elif ramp == "pairs":
        share = _shares_by_pair(d_rotated, length, theta, slow, fast, truncate=truncate)
    else:
        raise ValueError(f'ramp must be "turns" or "pairs"; got {ramp!r}')
    kept = share.clip(0.0, 1.0)
    return frequencies * (kept + (1.0 - kept) / factor)


def yarn_temperature(factor: float) -> float:
    r"""Return the temperature of the softmax behind stretched frequencies, Eq. yarn-sharpens-weights.

    .. math:: \tau = \frac{1}{(0.1 \ln s + 1)^2}

    `factor`: s, 1 or more. Divide the scores by the result: the scale is 1 / (tau sqrt(d_k)).

    Raises TypeError, ValueError if `factor` is no number of 1 or more.

    The second half of YaRN: Peng et al. (2023), arXiv:2309.00071: a fit, not a derivation. Codes that multiply cosines and sines by
    0.1 ln s + 1 do the same only where all features are rotated, Eq. temperature-on-rotated-features.

    >>> yarn_temperature(1.0), round(yarn_temperature(16.0), 4)
    (1.0, 0.613)
    """
    return (0.1 * math.log(_stretch(factor)) + 1.0) ** -2


def rotate_pairs(
    x: Float[np.ndarray, "*#batch len d_k"],
    positions: Shaped[np.ndarray, "*#batch_positions len"],
    frequencies: Float[np.ndarray, "n_pairs"],
    layout: Literal["halves", "interleaved"] = "halves",
) -> Float[np.ndarray, "*batch len d_k"]:
    """Rotate the first 2 n_pairs features, each pair by its own frequency, and pass the others on, Eq. partial-rope-score.

    A pair by itself turns by its position, so `rope` turns each by its position times its frequency.

    `x`: queries or keys, after their projection.
    `positions`: position t of each row; any numbers. With a head axis in `x`, pass ``positions[..., None, :]``.
    `frequencies`: radians for each position; those of `rope_frequencies` or stretched ones. None of them: nothing is rotated.
    `layout`: which of the rotated features form pair i: i and i + n_pairs, or 2 i and 2 i + 1.

    Returns `rotated`: same dtype as `x`.

    Raises TypeError, ValueError as `rope`; also if `frequencies` is no list of numbers, or has more pairs than `x`.

    Su et al. (2021), section 3.2.2, arXiv:2104.09864. Only some features: GPT-NeoX, Black et al. (2022), arXiv:2204.06745.

    >>> rotate_pairs(np.array([[1.0, 0.0, 5.0]]), np.array([1]), np.array([np.pi]))
    array([[-1.0000000e+00,  1.2246468e-16,  5.0000000e+00]])
    """
    _, turns = checked_floats(x=x, frequencies=frequencies)
    require_axes(2, "(..., len, d_k)", x=x)
    n_pairs = len(frequencies) if frequencies.ndim == 1 else -1
    if not 0 <= 2 * n_pairs <= x.shape[-1]:
        raise ValueError(f"frequencies must have one axis of at most d_k / 2 = {x.shape[-1] / 2:g} pairs; got shape {frequencies.shape}")
    rotated = [rope(x[..., :0], positions, layout=layout)]  # all errors, and the batch axes of the result
    order = np.arange(2 * n_pairs).reshape(2, n_pairs).T if layout == "halves" else np.arange(2 * n_pairs).reshape(n_pairs, 2)
    rotated += [rope(x[..., pair], positions * turn) for pair, turn in zip(order, turns.astype(np.float64), strict=True)]
    passed = np.broadcast_to(x[..., 2 * n_pairs :], (*rotated[0].shape[:-1], x.shape[-1] - 2 * n_pairs))
    return np.concatenate([*rotated, passed], axis=-1)[..., np.argsort([*order.ravel(), *range(2 * n_pairs, x.shape[-1])])]


def _stretch(factor: float) -> float:
    if require_positive("factor", factor) < 1.0:
        raise ValueError(f"factor must be 1 or more; got {factor!r}")
    return float(factor)


def _shares_by_pair(d_rotated: int, length: int, theta: float, slow: float, fast: float, *, truncate: bool) -> Float[np.ndarray, "n_pairs"]:
    """Return 1 up to the last pair that makes `fast` turns, 0 from the first that makes less than `slow`, evenly between."""

    if theta <= 1.0:
        raise ValueError(f'theta must be above 1 for ramp "pairs"; got {theta!r}')

    def place(turns: float) -> float:
        return d_rotated * math.log(length / (2 * math.pi * turns)) / (2 * math.log(theta))

    first, last = place(fast), place(slow)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_rotated - 1)
    width = max(last - first, 0.001)  # theirs would run backwards where last < first
    return np.asarray((first + width - np.arange(d_rotated // 2)) / width)
