"""A cache in blocks of fixed size: sequences hold tables of block numbers, and share blocks until one of them writes."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, require_axes, require_integer
from attn_course.reference.attention import attention
from attn_course.reference.tiling import merge_partial_attention


class PagedCache:
    """Keep the keys and values of many sequences in one pool of blocks, Eq. paged-address.

    Position t of a sequence lies in row t mod block_size of block table[t // block_size]. A table grows by a block only when the
    last one is full, so that less than one block for each sequence is empty, Eq. paged-waste. `fork` copies a table, not the
    blocks; who then writes into a shared block gets a copy of that block first, Eq. blocks-of-a-fork.

    Kwon et al. (2023), vLLM, sections 4.1 to 4.4, arXiv:2309.06180.

    >>> cache = PagedCache(n_blocks=4, block_size=2)
    >>> cache.append("a", np.ones((3, 1)), np.ones((3, 1)))
    >>> cache.fork("a", "b")
    >>> cache.append("b", np.zeros((1, 1)), np.zeros((1, 1)))
    >>> cache.tables, cache.read("b")[0].ravel()
    ({'a': [0, 1], 'b': [0, 2]}, array([1., 1., 1., 0.]))
    """

    def __init__(self, n_blocks: int, block_size: int) -> None:
        self.block_size = require_integer("block_size", block_size, 1)
        self.tables: dict[Hashable, list[int]] = {}
        """Sequence -> the numbers of its blocks, in order."""
        self.lengths: dict[Hashable, int] = {}
        """Sequence -> how many positions it has."""
        self.holders = [0] * require_integer("n_blocks", n_blocks, 1)
        """For each block, how many sequences hold it."""
        self.pool: tuple[np.ndarray, np.ndarray] | None = None
        """Keys and values (n_blocks, *batch, block_size, features); made when the first ones come."""

    def append(
        self, sequence: Hashable, key: Float[np.ndarray, "*batch len d_k"], value: Float[np.ndarray, "*batch_value len d_v"]
    ) -> None:
        """Add positions to a sequence, or begin one.

        `key`: keys of the new positions; all but len as at the first call for any sequence.

        Raises TypeError, ValueError if an argument does not fit the pool; MemoryError if too few blocks are free, in which case
        nothing was written.

        >>> cache = PagedCache(n_blocks=2, block_size=2)
        >>> cache.append("a", np.ones((3, 1)), np.ones((3, 1)))
        >>> cache.tables, cache.lengths
        ({'a': [0, 1]}, {'a': 3})
        """
        keys, values = self._pool_for(key, value)
        start, new, size = self.lengths.get(sequence, 0), key.shape[-2], self.block_size
        table = [*self.tables.get(sequence, [])]
        shared = bool(new and start % size and self.holders[table[-1]] > 1)
        wanted = -(-(start + new) // size) - len(table) + shared
        free = [block for block, holders in enumerate(self.holders) if not holders]
        if wanted > len(free):
            raise MemoryError(f"sequence {sequence!r} must get {wanted} more blocks; got {len(free)} that are free")
        if shared:  # copy on write
            own = free.pop(0)
            for pool in (keys, values):
                pool[own] = pool[table[-1]]
            self.holders[table[-1]], self.holders[own] = self.holders[table[-1]] - 1, 1
            table[-1] = own
        for block in free[: wanted - shared]:
            self.holders[block] = 1
            table.append(block)
        for place, position in enumerate(range(start, start + new)):
            for pool, rows in ((keys, key), (values, value)):
                pool[table[position // size], ..., position % size, :] = rows[..., place, :]
        self.tables[sequence], self.lengths[sequence] = table, start + new

    def read(self, sequence: Hashable) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and values of a sequence in order, as a cache without blocks would hold them.

        Raises ValueError if there is no such sequence.

        >>> cache = PagedCache(n_blocks=2, block_size=2)
        >>> cache.append("a", np.array([[1.0], [2.0], [3.0]]), np.ones((3, 1)))
        >>> cache.read("a")[0].ravel()
        array([1., 2., 3.])
        """
        blocks = [self._block(block) for block in self._known(sequence)]
        length = self.lengths[sequence]
        keys, values = (np.concatenate(parts, axis=-2)[..., :length, :] for parts in zip(*blocks, strict=True))
        return keys, values

    def fork(self, sequence: Hashable, name: Hashable) -> None:
        """Let another sequence begin with all that one holds; nothing is copied.

        Raises ValueError if there is no such sequence, or one of the new name.

        >>> cache = PagedCache(n_blocks=2, block_size=2)
        >>> cache.append("a", np.ones((3, 1)), np.ones((3, 1)))
        >>> cache.fork("a", "b")
        >>> cache.holders
        [2, 2]
        """
        table = self._known(sequence)
        if name in self.tables:
            raise ValueError(f"name must be new; got {name!r}, which is a sequence already")
        for block in table:
            self.holders[block] += 1
        self.tables[name], self.lengths[name] = [*table], self.lengths[sequence]

    def free(self, sequence: Hashable) -> None:
        """Forget a sequence; blocks that no other holds become free.

        Raises ValueError if there is no such sequence.

        >>> cache = PagedCache(n_blocks=2, block_size=2)
        >>> cache.append("a", np.ones((3, 1)), np.ones((3, 1)))
        >>> cache.free("a")
        >>> cache.holders
        [0, 0]
        """
        for block in self._known(sequence):
            self.holders[block] -= 1
        del self.tables[sequence], self.lengths[sequence]

    def _known(self, sequence: Hashable) -> list[int]:
        if sequence not in self.tables:
            raise ValueError(f"sequence must be one of {list(self.tables)}; got {sequence!r}")
        return self.tables[sequence]

    def _block(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.pool is not None
        return self.pool[0][block], self.pool[1][block]

    def _pool_for(self, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        checked_floats(key=key, value=value)
        require_axes(2, "(..., len, features)", key=key, value=value)
        if key.shape[-2] != value.shape[-2]:
            raise ValueError(f"key and value must share len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
        shapes = [(len(self.holders), *rows.shape[:-2], self.block_size, rows.shape[-1]) for rows in (key, value)]
        if self.pool is None:
            self.pool = np.zeros(shapes[0], key.dtype), np.zeros(shapes[1], value.dtype)
        for name, rows, pool, shape in zip(("key", "value"), (key, value), self.pool, shapes, strict=True):
            if pool.shape != shape:
                wanted = (*pool.shape[1:-2], rows.shape[-2], pool.shape[-1])
                raise ValueError(f"{name} must have the shape of the pool but for len, {wanted}; got {rows.shape}")
            if pool.dtype != rows.dtype:
                raise TypeError(f"{name} must have the dtype of the pool, {pool.dtype}; got {rows.dtype}")
        return self.pool


def paged_attention(query: Float[np.ndarray, "*batch q_len d_k"], cache: PagedCache, sequence: Hashable, **options: Any) -> np.ndarray:
    """Attend to a sequence block by block, where the blocks lie: no cache in one piece is ever made, Eq. paged-address.

    `query`: the last q_len positions of the sequence, whose keys are in the cache already; each sees the keys up to its own.
    `options`: scale, softcap, window and enable_gqa of `attention`.

    Returns `output` (*batch, q_len, d_v).

    Raises TypeError, ValueError as in `attention`; ValueError if there is no such sequence, or it is shorter than q_len.

    The parts are merged by their log-sum-exps, Eq. merge-of-finished-outputs. Kwon et al. (2023), Eq. 4, arXiv:2309.06180.

    >>> cache = PagedCache(n_blocks=3, block_size=2)
    >>> cache.append(0, np.zeros((3, 1)), np.array([[3.0], [6.0], [9.0]]))
    >>> paged_attention(np.ones((1, 1)), cache, 0)
    array([[6.]])
    """
    checked_floats(query=query)
    require_axes(2, "(..., len, features)", query=query)
    table, length = cache._known(sequence), cache.lengths[sequence]
    if query.shape[-2] > length:
        raise ValueError(f"query must be no longer than its sequence, {length}; got {query.shape[-2]}")
    parts = []
    for number, block in enumerate(table):
        start = number * cache.block_size
        keys, values = (rows[..., : length - start, :] for rows in cache._block(block))
        seen = {"is_causal": True, "q_offset": length - query.shape[-2] - start}
        parts.append(attention(query, keys, values, **seen, **options, return_lse=True))
    output, _ = merge_partial_attention(*zip(*parts, strict=True))
    return output
