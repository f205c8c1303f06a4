"""A cache that says how many bytes of memory it holds: measured, not computed from a formula."""

from attn_course.modules.cache import KeyValueCache


class MeasuredCache(KeyValueCache):
    """A `KeyValueCache` for any layer, which also measures itself.

    `n_bytes`: size of the memory behind the tensors that the cache keeps alive. A tensor that shows only a part of a
    larger one keeps the whole of it, and counts as the whole; two tensors in one piece of memory count once.

    For multi-head attention n_bytes is len(cache) times Eq. kv-cache-bytes, for latent attention len(cache) times Eq.
    latent-cache-bytes, and both times the number of sequences in the batch. `append` makes longer tensors and drops the
    old ones, so that for a moment it needs room for both.

    >>> import torch
    >>> cache = MeasuredCache()
    >>> _ = cache.append(torch.zeros(3, 2), torch.zeros(3, 1))
    >>> len(cache), cache.n_bytes  # 3 tokens of 2 + 1 numbers of 4 bytes
    (3, 36)
    """

    @property
    def n_bytes(self) -> int:
        """Bytes of the memory that the cache keeps alive."""
        storages = [tensor.untyped_storage() for tensor in self._past or ()]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
