"""The keys and values of the past, kept so that no step of decoding computes them again."""

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, require_axes


class KeyValueCache:
    """Keep what attention needs of the past, and grow by a few positions at each step.

    The length of the cache is the number of past positions, which is the `q_offset` of the queries that come next.
    Attention to what the cache returns gives what one full pass gives, Eq. decoding-equals-full-pass. Latent attention keeps its latent
    vectors in the place of keys, and the shared rotary keys in the place of values.

    Shazeer (2019), section 2.4 ("incremental"), arXiv:1911.02150. An empty cache is falsy, as an empty list is: ask
    ``cache is None``, not ``not cache``.

    >>> cache = KeyValueCache()
    >>> for step in range(3):
    ...     keys, values = cache.append(np.full((1, 2), 1.0 * step), np.full((1, 1), 10.0 * step))
    >>> len(cache), values.ravel()
    (3, array([ 0., 10., 20.]))
    """

    def __init__(self) -> None:
        self._past: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        """Return the number of past positions."""
        return 0 if self._past is None else self._past[0].shape[-2]

    def append(
        self, key: Float[np.ndarray, "*batch len d_k"], value: Float[np.ndarray, "*batch_value len d_v"]
    ) -> tuple[Float[np.ndarray, "*batch total d_k"], Float[np.ndarray, "*batch_value total d_v"]]:
        """Add new positions; return those of the past and the new ones together.

        `key`: keys of the new positions; all but len as at the first call.

        Returns `keys`: all keys so far. Read-only: the cache keeps it.

        Raises TypeError if an argument is not floating, or its dtype is not that of the past; ValueError if the two
        differ in len, or a shape does not fit the past.

        >>> keys, values = KeyValueCache().append(np.array([[1.0]]), np.array([[2.0, 3.0]]))
        >>> keys, values
        (array([[1.]]), array([[2., 3.]]))
        """
        checked_floats(key=key, value=value)
        require_axes(2, "(..., len, features)", key=key, value=value)
        if key.shape[-2] != value.shape[-2]:
            raise ValueError(f"key and value must share len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
        past = self._past or (key[..., :0, :], value[..., :0, :])
        _check_fit("key", key, past[0])
        _check_fit("value", value, past[1])
        self._past = (np.concatenate([past[0], key], axis=-2), np.concatenate([past[1], value], axis=-2))
        for array in self._past:
            array.flags.writeable = False
        return self._past


def _check_fit(name: str, new: np.ndarray, past: np.ndarray) -> None:
    if new.dtype != past.dtype:
        raise TypeError(f"{name} must have the dtype of the past, {past.dtype}; got {new.dtype}")
    wanted = (*past.shape[:-2], new.shape[-2], past.shape[-1])
    if new.shape != wanted:
        raise ValueError(f"{name} must have the shape of the past but for len, {wanted}; got {new.shape}")
