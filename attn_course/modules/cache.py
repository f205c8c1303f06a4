"""The keys and values of the past in torch, kept so that no step of decoding computes them again."""

import torch
from jaxtyping import Float
from torch import Tensor


class KeyValueCache:
    """Keep what attention needs of the past, and grow by a few positions at each step.

    The length of the cache is the number of past positions, which is the `q_offset` of the queries that come next, Eq.
    decoding-equals-full-pass.
    One cache serves one layer and one batch of sequences.

    An empty cache is falsy, as an empty list is: ask ``cache is None``, not ``not cache``. Gradients flow through what
    is kept; decode under `torch.no_grad`, or the cache keeps the graph of every step alive.

    >>> cache = KeyValueCache()
    >>> for step in range(3):
    ...     keys, values = cache.append(torch.full((1, 2), 1.0 * step), torch.full((1, 1), 10.0 * step))
    >>> len(cache), values.flatten()
    (3, tensor([ 0., 10., 20.]))
    """

    def __init__(self) -> None:
        self._past: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        """Return the number of past positions."""
        return 0 if self._past is None else self._past[0].shape[-2]

    def append(
        self, key: Float[Tensor, "*batch len d_k"], value: Float[Tensor, "*batch_value len d_v"]
    ) -> tuple[Float[Tensor, "*batch total d_k"], Float[Tensor, "*batch_value total d_v"]]:
        """Add new positions; return those of the past and the new ones together.

        `key`: keys of the new positions; all but len as at the first call.

        Returns `keys`: all keys so far; `values`: all values so far.

        Raises ValueError if the two differ in len, or a shape or dtype is not that of the past.

        >>> KeyValueCache().append(torch.tensor([[1.0]]), torch.tensor([[2.0, 3.0]]))
        (tensor([[1.]]), tensor([[2., 3.]]))
        """
        if key.shape[-2] != value.shape[-2]:
            raise ValueError(f"key and value must share len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
        if self._past is None:
            self._past = key, value
            return self._past
        for name, new, past in zip(("key", "value"), (key, value), self._past, strict=True):
            wanted = (*past.shape[:-2], new.shape[-2], past.shape[-1])
            if new.shape != wanted or new.dtype != past.dtype:
                what = f"the shape of the past but for len, {wanted}, and its dtype {past.dtype}"
                raise ValueError(f"{name} must have {what}; got {tuple(new.shape)} and {new.dtype}")
        self._past = torch.cat([self._past[0], key], dim=-2), torch.cat([self._past[1], value], dim=-2)
        return self._past
