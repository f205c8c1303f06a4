"""Sequences of different lengths, packed one behind the other without padding: the form in which training batches often come."""

from typing import Any

import torch
from torch import Tensor

from attn_course.gpu.call import INTEGERS, described
from attn_course.gpu.flash import flash_attention


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    q_offset: int | Tensor = 0,
    **options: Any,
) -> Any:
    r"""Return attention of each sequence to itself, from our kernels, Eq. attention for each; differentiable.

    The packed form and its names are those of flash-attn (Dao, 2023, arXiv:2307.08691). Sequence b has the rows
    cu_seqlens_q[b] .. cu_seqlens_q[b + 1] - 1 of query, and those of cu_seqlens_k of key and value; the first entry is 0, the last the
    number of rows. Nobody waits for the device to look at these numbers: it asserts that no sequence is longer than the longest.

    `query` (total_q, heads, d_k): as `attn_course.gpu.flash.flash_attention` takes them: float16, bfloat16 or float32.
    `key` (total_k, kv_heads, d_k): with `enable_gqa` kv_heads divides heads.
    `value` (total_k, kv_heads, d_v): what each position passes on.
    `cu_seqlens_q`, `cu_seqlens_k` (sequences + 1,), integers: where the sequences begin, and where the last one ends.
    `max_seqlen_q`, `max_seqlen_k`: the length of the longest, or more.
    `q_offset` (sequences,) or an int: position of the first query of a sequence among its keys; 0 aligns a causal mask at the top
    left, and the difference of the lengths at the bottom right, as flash-attn does.
    `**options`: is_causal, window, scale, softcap, enable_gqa, return_lse: as in `attn_course.gpu.attention`.

    Returns `output` (total_q, heads, d_v): in the common dtype; `lse` (total_q, heads): natural, float32; only with `return_lse`.

    Raises TypeError or ValueError as `attn_course.gpu.attention` does, and if the packed form is none. A mask is refused: it
    would have no axes here. RuntimeError, on a GPU when it gets there, if a sequence is longer than `max_seqlen_q` or `max_seqlen_k`.

    The kernels take padded batches, so query, key and value are copied to (sequences, heads, longest, features), and the rows of
    the padding are computed and dropped: time and memory are those of sequences that are all as long as the longest.
    """
    if "mask" in options:
        raise TypeError("mask is not taken with packed sequences; got one")
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if not isinstance(tensor, Tensor) or tensor.ndim != 3:
            raise ValueError(f"{name} must be a Tensor (total, heads, features); got {_shape(tensor)}")
    for name, starts in {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}.items():
        if not isinstance(starts, Tensor) or starts.dtype not in INTEGERS:
            raise TypeError(f"{name} must be a Tensor of integers; got {described(starts)}")
        if starts.ndim != 1 or starts.shape != cu_seqlens_q.shape or len(starts) == 0:
            raise ValueError(f"cu_seqlens_q and cu_seqlens_k must be (sequences + 1,); got {_shape(cu_seqlens_q)}, {_shape(cu_seqlens_k)}")
    if key.shape[0] != value.shape[0]:
        raise ValueError(f"key and value must share their rows, the first axis; got {key.shape[0]} and {value.shape[0]}")
    q_places = _places("max_seqlen_q", cu_seqlens_q, query.shape[0], max_seqlen_q)
    kv_places = _places("max_seqlen_k", cu_seqlens_k, key.shape[0], max_seqlen_k)
    sequences = len(cu_seqlens_q) - 1
    results = flash_attention(
        _padded(query, q_places, sequences, max_seqlen_q),
        _padded(key, kv_places, sequences, max_seqlen_k),
        _padded(value, kv_places, sequences, max_seqlen_k),
        kv_lengths=cu_seqlens_k.diff()[:, None],
        q_offset=q_offset[:, None] if isinstance(q_offset, Tensor) else q_offset,
        **options,
    )
    if not options.get("return_lse"):
        return _packed(results, q_places)
    return _packed(results[0], q_places), _packed(results[1][..., None], q_places)[..., 0]


def _shape(thing: Any) -> str:
    return str(tuple(thing.shape)) if isinstance(thing, Tensor) else type(thing).__name__


def _places(name: str, starts: Tensor, total: int, longest: int) -> Tensor:
    """Where each packed row stands in a batch padded to the longest sequence, both counted in rows."""
    torch._assert_async((starts.diff() <= longest).all(), f"{name} must be at least the longest length; got {longest}")
    rows = torch.arange(total, device=starts.device)
    sequence = torch.searchsorted(starts[1:].contiguous(), rows, right=True)  # an empty sequence owns no row
    return sequence * longest + rows - starts[sequence]


def _padded(packed: Tensor, places: Tensor, sequences: int, longest: int) -> Tensor:
    """(total, heads, d) to (sequences, heads, longest, d), 0 where there is no row."""
    room = packed.new_zeros(sequences * longest, *packed.shape[1:])
    return room.index_copy(0, places, packed).unflatten(0, (sequences, longest)).transpose(1, 2)


def _packed(padded: Tensor, places: Tensor) -> Tensor:
    """The way back."""
    return padded.transpose(1, 2).flatten(0, 1).index_select(0, places)
