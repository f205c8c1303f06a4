"""Attention's matrix of scores, cut into blocks: each is that of a smaller attention whose queries stand elsewhere."""

from typing import Any

import numpy as np

from attn_course.reference.arrays import checked_floats, require_axes, require_integer, require_mask_shape
from attn_course.reference.attention import ScoredPairs, score_pairs


class Tiles:
    """The arguments of tiled attention, checked; options are is_causal, window, scale, softcap and enable_gqa."""

    def __init__(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        block_q: int,
        block_kv: int,
        mask: np.ndarray | None,
        q_offset: int | np.ndarray,
        options: dict[str, Any],
    ) -> None:
        self.block_q, self.block_kv = require_integer("block_q", block_q, 1), require_integer("block_kv", block_kv, 1)
        self.query, self.key, self.value = checked_floats(query=query, key=key, value=value)
        self.mask, self.q_offset, self.options = mask, q_offset, options
        grouped = options["enable_gqa"] is True
        require_axes(2 + grouped, "(..., heads, len, features)" if grouped else "(..., len, features)", query=query, key=key, value=value)
        if key.shape[-2] != value.shape[-2]:
            raise ValueError(f"key and value must share kv_len, the axis before the last; got {key.shape[-2]} and {value.shape[-2]}")
        if isinstance(mask, np.ndarray):
            require_mask_shape(mask, query.shape[-2], key.shape[-2])
        nothing = self.scored(slice(0, 0), slice(0, 0))  # raises what attention would
        self.output_shape = (*nothing.scores.shape[:-2], query.shape[-2], value.shape[-1])

    @property
    def rows(self) -> list[slice]:
        """Blocks of queries; one empty block if there is no query, so that every loop runs."""
        return _blocks(self.query.shape[-2], self.block_q)

    @property
    def columns(self) -> list[slice]:
        """Blocks of keys; one empty block if there is no key."""
        return _blocks(self.key.shape[-2], self.block_kv)

    def nothing_seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return maximum, sum and output before the first block of keys; they grow by broadcasting."""
        zero = np.zeros((1, 1), self.query.dtype)
        return zero - np.inf, zero, zero

    def scored(self, rows: slice, columns: slice) -> ScoredPairs:
        """Return the scores of one block: query i of the block is number i + rows.start, key j is number j + columns.start."""
        shift = rows.start - columns.start
        return score_pairs(
            self.query[..., rows, :],
            self.key[..., columns, :],
            self.value[..., columns, :],
            mask=self.mask[self.mask_index(rows, columns)] if isinstance(self.mask, np.ndarray) else self.mask,
            q_offset=np.asarray(self.q_offset + shift) if shift else self.q_offset,
            **self.options,
        )

    def mask_index(self, rows: slice, columns: slice) -> Any:
        """Return where the block's mask is; an axis of length 1 serves all blocks."""
        lengths = () if self.mask is None else self.mask.shape[-2:]
        blocks = (rows, columns)[2 - len(lengths) :]
        return (..., *(slice(None) if length == 1 else block for length, block in zip(lengths, blocks, strict=True)))


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, max(length, 1), size)]
