"""Attention's matrix of scores, cut into blocks: each is that of a smaller attention whose queries stand elsewhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.reference.arrays import checked_floats, require_integer
from attn_course.reference.attention import ScoredPairs, score_pairs


@dataclass(frozen=True)
class Tiles:
    """The arguments of tiled attention, checked; options are is_causal, window, scale, softcap and enable_gqa."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    block_q: int
    block_kv: int
    mask: np.ndarray | None
    q_offset: Any
    options: dict[str, Any]

    def __post_init__(self) -> None:
        require_integer("block_q", self.block_q, 1)
        require_integer("block_kv", self.block_kv, 1)
        arrays = checked_floats(query=self.query, key=self.key, value=self.value)
        if min(array.ndim for array in arrays) >= 2 and self.key.shape[-2] != self.value.shape[-2]:
            raise ValueError(
                f"key and value must share kv_len, the axis before the last; got {self.key.shape[-2]} and {self.value.shape[-2]}"
            )
        empty = (array[..., :0, :] if array.ndim >= 2 else array for array in arrays)
        score_pairs(*empty, mask=None, q_offset=self.q_offset, **self.options)  # raises what attention would
        lengths = (self.query.shape[-2], self.key.shape[-2])
        if self.mask is not None:
            if not isinstance(self.mask, np.ndarray):
                raise TypeError(f"mask must be an ndarray of bool or float; got {type(self.mask).__name__}")
            if self.mask.ndim < 2 or any(have not in (1, want) for have, want in zip(self.mask.shape[-2:], lengths, strict=True)):
                wanted = f"(..., q_len, kv_len) = (..., {lengths[0]}, {lengths[1]})"
                raise ValueError(f"mask must broadcast to {wanted}; got shape {self.mask.shape}")

    @property
    def rows(self) -> list[slice]:
        """Blocks of queries; one empty block if there is no query, so that every loop runs."""
        return _blocks(self.query.shape[-2], self.block_q)

    @property
    def columns(self) -> list[slice]:
        """Blocks of keys; one empty block if there is no key."""
        return _blocks(self.key.shape[-2], self.block_kv)

    def nothing_seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return maximum, sum and output before the first block of keys, in the dtype of the arithmetic."""
        dtype = np.result_type(np.float32, self.query, self.key, self.value)
        return np.full((1, 1), -np.inf, dtype), np.zeros((1, 1), dtype), np.zeros((1, 1), dtype)

    def scored(self, rows: slice, columns: slice) -> ScoredPairs:
        """Return the scores of one block: query i of the block is number i + rows.start, key j is number j + columns.start."""
        return score_pairs(
            self.query[..., rows, :],
            self.key[..., columns, :],
            self.value[..., columns, :],
            mask=None if self.mask is None else self.mask[self.mask_index(rows, columns)],
            q_offset=self.q_offset + rows.start - columns.start,
            **self.options,
        )

    def mask_index(self, rows: slice, columns: slice) -> Any:
        """Return where the block's mask is; an axis of length 1 serves all blocks."""
        axes = () if self.mask is None else zip(self.mask.shape[-2:], (rows, columns), strict=True)
        return (..., *(slice(None) if length == 1 else block for length, block in axes))


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, max(length, 1), size)]
