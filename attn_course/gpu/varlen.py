"""Sequences of different lengths, packed one behind the other without padding: the form in which training batches often come."""

from typing import Any

import torch
from torch import Tensor

from attn_course.gpu.call import INTEGERS, described, validate
from attn_course.gpu.flash import NEAR, attended


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
    sink_logits: Tensor | None = None,
    **options: Any,
) -> Any:
    r"""Return attention of each sequence to itself, from our kernels, Eq. attention for each; differentiable.

    The packed form and its names are those of flash-attn (Dao, 2023, arXiv:2307.08691). Sequence b has the rows
    cu_seqlens_q[b] .. cu_seqlens_q[b + 1] - 1 of query, and those of cu_seqlens_k of key and value; the first entry is 0, the last the
    number of rows. The host never waits for the device to look at these numbers (so it has to be told the longest): the device asserts
    that they fit the rows, and that no sequence is longer than the longest.

    `query` (total_q, heads, d_k): as `attn_course.gpu.flash.flash_attention` takes them: float16, bfloat16 or float32.
    `key` (total_k, kv_heads, d_k): with `enable_gqa` kv_heads divides heads.
    `value` (total_k, kv_heads, d_v): what each position passes on.
    `cu_seqlens_q`, `cu_seqlens_k` (sequences + 1,), integers: where the sequences begin, and where the last one ends.
    `max_seqlen_q`, `max_seqlen_k`: the length of the longest, or more.
    `q_offset` (sequences,) or an int: position of the first query of a sequence among its keys; 0 aligns a causal mask at the top
    left, and the difference of the lengths at the bottom right, as flash-attn does.
    `sink_logits` (heads,): as `flash_attention` takes them.
    `**options`: is_causal, window, scale, softcap, enable_gqa, return_lse: as in `attn_course.gpu.attention`.

    Returns `output` (total_q, heads, d_v): in the common dtype; `lse` (total_q, heads): natural, float32; only with `return_lse`.

    Raises TypeError or ValueError as `attn_course.gpu.attention` does, and if the packed form is none. A mask is refused: it
    would have no axes here. RuntimeError if a sequence is longer than `max_seqlen_q` or `max_seqlen_k`, or the starts do not go from 0 up
    to the number of rows; a GPU finds it when it gets there, and then the process can use that GPU no more.

    The kernels read and write packed rows where they lie; only rows that are not 8 n features side by side are copied. There is a program
    for each tile of the longest sequence in each sequence and head; those behind the end of a shorter one end at once. Beside the results
    memory holds a few numbers for each row and a byte for each program, and where few queries meet many keys the output of each part of the
    keys. Each number is summed by one program in one order, as ever.
    """
    if "mask" in options:
        raise TypeError("mask is not taken with packed sequences; got one")
    _check_packed(query, key, value, cu_seqlens_q, cu_seqlens_k)
    for name, longest in {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}.items():
        if isinstance(longest, bool) or not isinstance(longest, int):
            raise TypeError(f"{name} must be an integer; got {described(longest)}")
        if not 0 <= longest <= NEAR:
            raise ValueError(f"{name} must be 0 to 2**30; got {longest}")
    if isinstance(q_offset, Tensor):
        if q_offset.shape != (len(cu_seqlens_q) - 1,):
            raise ValueError(f"q_offset must be (sequences,) = ({len(cu_seqlens_q) - 1},) or an int; got shape {tuple(q_offset.shape)}")
        q_offset = q_offset[:, None]
    starts = torch.stack([cu_seqlens_q, cu_seqlens_k], 1).int()
    _assert_fit("q", starts[:, 0], query.shape[0], max_seqlen_q)
    _assert_fit("k", starts[:, 1], key.shape[0], max_seqlen_k)
    heads_first = (tensor.transpose(0, 1)[None] for tensor in (query, key, value))
    call = validate(*heads_first, q_offset=q_offset, **options)
    call = call._replace(batch=(1, call.batch[-1]), return_lse=True)
    output, lse = attended(call, None, sink_logits, torch.cat([starts[-1:], starts]), [max_seqlen_q, max_seqlen_k])
    output = output.squeeze(0).transpose(0, 1)  # whose gradient is a view, unlike that of output[0]
    return (output, lse.squeeze(0).T) if options.get("return_lse") else output


def _check_packed(query: Any, key: Any, value: Any, cu_seqlens_q: Any, cu_seqlens_k: Any) -> None:
    """Raise if the tensors are not of the packed form."""
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if not isinstance(tensor, Tensor) or tensor.ndim != 3:
            raise ValueError(f"{name} must be a Tensor (total, heads, features); got {_shape(tensor)}")
    for name, starts in {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}.items():
        if not isinstance(starts, Tensor) or starts.dtype not in INTEGERS:
            raise TypeError(f"{name} must be a Tensor of integers; got {described(starts)}")
        if starts.device != query.device:
            raise ValueError(f"{name} must be on the device of query, {query.device}; got {starts.device}")
        if starts.ndim != 1 or starts.shape != cu_seqlens_q.shape or len(starts) == 0:
            raise ValueError(f"cu_seqlens_q and cu_seqlens_k must be (sequences + 1,); got {_shape(cu_seqlens_q)}, {_shape(cu_seqlens_k)}")
    if key.shape[0] != value.shape[0]:
        raise ValueError(f"key and value must share their rows, the first axis; got {key.shape[0]} and {value.shape[0]}")


def _shape(thing: Any) -> str:
    return str(tuple(thing.shape)) if isinstance(thing, Tensor) else type(thing).__name__


def _assert_fit(side: str, starts: Tensor, total: int, longest: int) -> None:
    """Have the device look whether the starts of sequences fit the packed rows."""
    lengths = starts.diff()
    fit = (starts[0] == 0) & (starts[-1] == total) & (lengths >= 0).all()
    torch._assert_async(fit, f"cu_seqlens_{side} must go from 0 up to the number of rows")
    got = "" if torch.compiler.is_compiling() else f"; got {longest}"  # not yet a number there
    torch._assert_async((lengths <= longest).all(), f"max_seqlen_{side} must be at least the longest length{got}")
