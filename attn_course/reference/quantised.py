"""A cache of few bits: numbers rounded to steps between the least and the largest of their group, and what that may change."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Integer

from attn_course.reference.arrays import checked_floats, narrowed, require_axes, require_integer
from attn_course.reference.cache import KeyValueCache
from attn_course.reference.similarity import checked_scale

Shared = Literal["token", "channel"]


@dataclass(frozen=True)
class Quantised:
    """Whole numbers, and the step and the least number of each group, Eq. quantised-number.

    `codes`: 0 to 2^bits - 1, in one byte each, or two.
    `step`, `least` (*batch, len, 1) or (*batch, 1, features): what one token, or one channel, shares.
    """

    codes: Integer[np.ndarray, "*batch len features"]
    step: np.ndarray
    least: np.ndarray

    def restored(self) -> Float[np.ndarray, "*batch len features"]:
        """Return least + step * codes, which is off by half a step at most, Eq. quantisation-error."""
        return self.least + self.step * self.codes.astype(self.step.dtype)


def quantise(x: Float[np.ndarray, "*batch len features"], bits: int, shared_by: Shared) -> Quantised:
    r"""Round numbers to 2^bits levels between the least and the largest of their group, Eq. quantised-number.

    .. math:: c = \Bigl\lfloor \frac{x - x_{\min}}{\Delta} + \tfrac{1}{2} \Bigr\rfloor, \qquad \Delta = \frac{x_{\max} - x_{\min}}{2^B - 1}

    `bits`: 1 to 16.
    `shared_by`: who shares step and least number: the features of a "token", or the tokens of a "channel".

    Returns `quantised`: with steps in at least float32.

    Raises TypeError if `x` is not floating; ValueError if it has NaN or infinite entries, or an option is out of range.

    A group of equal numbers has step 0, and is restored exactly; none is ever divided by 0. Liu et al. (2024), KIVI, arXiv:2402.02750:
    keys share by channel, since a few channels are large in all tokens; values by token.

    >>> quantised = quantise(np.array([[0.0, 1.0, 2.9]]), bits=2, shared_by="token")
    >>> quantised.codes, quantised.restored().round(2)
    (array([[0, 1, 3]], dtype=uint8), array([[0.  , 0.97, 2.9 ]]))
    """
    (wide,) = checked_floats(x=x)
    require_axes(2, "(..., len, features)", x=x)
    levels = 2 ** _bits(bits) - 1
    if shared_by not in ("token", "channel"):
        raise ValueError(f'shared_by must be "token" or "channel"; got {shared_by!r}')
    if not np.isfinite(wide).all():
        raise ValueError("x must be finite; got NaN or infinity")
    axis = -1 if shared_by == "token" else -2
    if not wide.shape[axis]:
        raise ValueError(f"x must have a {'feature' if axis == -1 else 'token'} at least; got shape {x.shape}")
    least = wide.min(axis=axis, keepdims=True)
    step = (wide.max(axis=axis, keepdims=True) - least) / wide.dtype.type(levels)
    codes = np.floor((wide - least) / np.where(step > 0, step, 1) + wide.dtype.type(0.5)).clip(0, levels)
    return Quantised(codes.astype(np.uint8 if levels < 256 else np.uint16), step, least)


def quantisation_error_bound(
    query: Float[np.ndarray, "*#batch q_len d_k"], keys: Quantised, values: Quantised, scale: float | None = None
) -> Float[np.ndarray, "*batch q_len"]:
    r"""Bound what rounding can have changed in any entry of the output of attention, Eq. quantised-output-error.

    .. math:: \max_j \tfrac{1}{2} \Delta_j + \tanh\Bigl(\frac{\varepsilon}{2}\Bigr) \max_{i,j,c} (\hat v_{ic} - \hat v_{jc}),
        \qquad \varepsilon = \max_j \tfrac{1}{2}\, \alpha \sum_c |q_c|\, \Delta_{jc}

    `query`: those that attend to the restored keys and values; hidden keys count too.
    `scale`: alpha, the factor of the scores; 1 / sqrt(d_k) if left out.

    Returns `bound`: for each query, largest over the features.

    Raises TypeError, ValueError if an argument is not as `attention` wants it.

    Scores that move by up to epsilon move weights by up to 2 tanh(epsilon / 2) in sum: the Jacobian of softmax, followed along the
    way, Eq. weights-under-score-errors. Nothing but the cache is needed, not what was rounded.

    >>> keys, values = (quantise(np.array([[0.0], [3.0]]), 2, "channel") for _ in "kv")
    >>> quantisation_error_bound(np.array([[0.0]]), keys, values)
    array([0.5])
    """
    (q,) = checked_floats(query=query)
    require_axes(2, "(..., len, features)", query=query)
    if q.shape[-1] != keys.codes.shape[-1]:
        raise ValueError(f"query must have d_k features, {keys.codes.shape[-1]}; got {q.shape[-1]}")
    steps = np.broadcast_to(keys.step, keys.codes.shape)
    moved = abs(checked_scale(scale, q.shape[-1])) / 2 * np.abs(q) @ steps.swapaxes(-1, -2)
    restored = values.restored()
    spread = (restored.max(axis=-2) - restored.min(axis=-2)).max(axis=-1)
    bound = values.step.max(axis=(-2, -1))[..., None] / 2 + np.tanh(moved.max(axis=-1) / 2) * spread[..., None]
    return narrowed(bound, q.dtype)


class QuantisedCache:
    """Keep keys by channel in groups of tokens, values by token; the last few keys wait in full until their group is whole.

    What `append` returns is what a `KeyValueCache` returns, each number off by half a step at most, Eq. quantisation-error; the
    keys that wait are exact. The bytes are those of Eq. quantised-cache-bytes.

    `bits`: of one number, 1 to 16.
    `group`: number of tokens that share the steps of their keys.

    A channel has its least and largest number only when its tokens are there, hence the groups. Liu et al. (2024), KIVI,
    arXiv:2402.02750 (there the last values wait, too).

    >>> cache = QuantisedCache(bits=2, group=2)
    >>> keys, _ = cache.append(np.array([[0.0], [9.0], [5.0]]), np.ones((3, 1)))
    >>> keys.ravel(), len(cache.keys), cache.waiting.ravel()
    (array([0., 9., 5.]), 1, array([5.]))
    """

    def __init__(self, bits: int, group: int) -> None:
        self.bits, self.group = _bits(bits), require_integer("group", group, 1)
        self.keys: list[Quantised] = []
        """Whole groups of keys."""
        self.values: list[Quantised] = []
        """Values, as they came."""
        self.waiting = np.zeros((0, 0))
        """Keys (*batch, less than group, d_k) that wait for the rest of their group."""

    def __len__(self) -> int:
        """Return the number of past positions."""
        return sum(values.codes.shape[-2] for values in self.values)

    def append(
        self, key: Float[np.ndarray, "*batch len d_k"], value: Float[np.ndarray, "*batch_value len d_v"]
    ) -> tuple[Float[np.ndarray, "*batch total d_k"], Float[np.ndarray, "*batch_value total d_v"]]:
        """Add new positions; return keys and values so far, restored, in the dtype they came in.

        `key`: keys of the new positions; all but len as at the first call.

        Raises TypeError, ValueError as `KeyValueCache.append` does.

        >>> QuantisedCache(bits=8, group=4).append(np.array([[1.0]]), np.array([[2.0, 3.0]]))
        (array([[1.]]), array([[2., 3.]]))
        """
        held = KeyValueCache()
        if len(self):
            held.append(*self._restored(key.dtype, value.dtype))
        held.append(key, value)
        self.values.append(quantise(value, self.bits, "token"))
        waiting = np.concatenate([self.waiting, key], axis=-2) if self.waiting.size else key.copy()
        while waiting.shape[-2] >= self.group:
            self.keys.append(quantise(waiting[..., : self.group, :], self.bits, "channel"))
            waiting = waiting[..., self.group :, :]
        self.waiting = waiting
        return self._restored(key.dtype, value.dtype)

    def _restored(self, key_dtype: np.dtype, value_dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        keys = [narrowed(keys.restored(), key_dtype) for keys in self.keys]
        values = [narrowed(values.restored(), value_dtype) for values in self.values]
        return np.concatenate([*keys, self.waiting], axis=-2), np.concatenate(values, axis=-2)


def _bits(bits: int) -> int:
    if require_integer("bits", bits, 1) > 16:
        raise ValueError(f"bits must be 16 or less; got {bits}")
    return int(bits)
