"""A cache that forgets: the last keys and values in a ring of slots, and the first ones beside it."""

import numpy as np
from jaxtyping import Bool, Float

from attn_course.reference.arrays import require_integer
from attn_course.reference.cache import KeyValueCache
from attn_course.reference.sinks import sink_window_mask


class RollingCache:
    """Keep the first `n_sinks` positions and the last left + 1, Eq. rolling-slot-position; attention to them is that of a window.

    Position i lies in slot i while i < n_sinks, later in slot n_sinks + (i - n_sinks) mod (left + 1): it overwrites the one that no
    query to come can see, Eq. rolling-cache-equals-window. Slots are not in the order of positions, which attention does not mind.

    `left`: number of keys before its own that a query sees.
    `n_sinks`: number of first keys that stay.

    Jiang et al. (2023), Mistral 7B, "rolling buffer cache", arXiv:2310.06825; first keys: Xiao et al. (2024), arXiv:2309.17453.

    >>> cache = RollingCache(left=1)
    >>> for step in range(4):
    ...     keys, values, mask = cache.append(np.full((1, 1), 1.0 * step), np.full((1, 1), 10.0 * step))
    >>> len(cache), cache.positions
    (4, array([2, 3]))
    """

    def __init__(self, left: int, n_sinks: int = 0) -> None:
        self.left, self.n_sinks = require_integer("left", left, 0), require_integer("n_sinks", n_sinks, 0)
        self.positions = np.arange(0)
        """Which position lies in each slot."""
        self.slots: tuple[np.ndarray, np.ndarray] | None = None
        """Keys and values, slot by slot."""
        self._length = 0

    def __len__(self) -> int:
        """Return the number of past positions, forgotten ones too."""
        return self._length

    def append(
        self, key: Float[np.ndarray, "*batch len d_k"], value: Float[np.ndarray, "*batch_value len d_v"]
    ) -> tuple[Float[np.ndarray, "*batch held d_k"], Float[np.ndarray, "*batch_value held d_v"], Bool[np.ndarray, "len held"]]:
        """Add new positions; return what their queries may see, and the mask: several at once see each other before anything is dropped.

        `key`: keys of the new positions; all but len as at the first call.

        Returns `keys`, `values`: what was in the slots, then the new ones; `mask`: True where a new query may attend.

        Raises TypeError, ValueError as `KeyValueCache.append` does.

        >>> RollingCache(left=1).append(np.ones((3, 1)), np.ones((3, 2)))[2].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 1, 1]])
        """
        held = KeyValueCache()
        if self.slots is not None:
            held.append(*self.slots)
        keys, values = held.append(key, value)
        new = key.shape[-2]
        positions = np.append(self.positions, np.arange(self._length, self._length + new))
        mask = sink_window_mask(new, self._length + new, self.n_sinks, self.left, q_offset=self._length)[:, positions]
        ring = self.n_sinks + (positions - self.n_sinks) % (self.left + 1)
        slots = np.where(positions < self.n_sinks, positions, ring)
        latest = dict(zip(slots.tolist(), range(len(slots)), strict=True))  # later entries overwrite earlier ones
        kept = [latest[slot] for slot in sorted(latest)]
        self.positions, self.slots, self._length = positions[kept], (keys[..., kept, :], values[..., kept, :]), self._length + new
        return keys, values, mask
