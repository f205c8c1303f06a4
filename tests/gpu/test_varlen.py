"""Packed sequences of different lengths, against the eager formula on each of them alone."""

import pytest
import torch

from attn_course.gpu import attention, attention_varlen
from tests.gpu.support import interpreted, normal

pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")
pytestmark = interpreted

Q_LENGTHS, KV_LENGTHS = [3, 0, 19, 1, 4], [5, 2, 37, 0, 4]


def starts(lengths, dtype=torch.int32):
    return torch.tensor([0, *lengths]).cumsum(0).to(dtype)


def packed(heads=4, kv_heads=2, d_k=5, d_v=3):
    shapes = [(sum(Q_LENGTHS), heads, d_k), (sum(KV_LENGTHS), kv_heads, d_k), (sum(KV_LENGTHS), kv_heads, d_v)]
    return [normal(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]


def one_by_one(query, key, value, offsets, options):
    """The results of every sequence, (heads, len, features) each, put together again."""
    parts = zip(query.split(Q_LENGTHS), key.split(KV_LENGTHS), value.split(KV_LENGTHS), offsets, strict=True)
    pairs = []
    for *tensors, offset in parts:
        heads_first = [tensor.transpose(0, 1) for tensor in tensors]
        output, lse = attention(*heads_first, q_offset=int(offset), return_lse=True, backend="eager", **options)
        pairs.append((output.transpose(0, 1), lse.T))
    return [torch.cat(part) for part in zip(*pairs, strict=True)]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({}, [0] * 5),
        ({"is_causal": True}, [q - kv for q, kv in zip(KV_LENGTHS, Q_LENGTHS, strict=True)]),
        ({"window": (4, 2), "softcap": 2.0, "scale": 0.7}, [1] * 5),
    ],
)
def test_each_sequence_sees_itself_alone(options, offsets):
    leaves, options = packed(), {**options, "enable_gqa": True}
    q_offset = torch.tensor(offsets) if len(set(offsets)) > 1 else offsets[0]
    longest = {"max_seqlen_q": max(Q_LENGTHS), "max_seqlen_k": max(KV_LENGTHS)}
    found = attention_varlen(*leaves, starts(Q_LENGTHS), starts(KV_LENGTHS), **longest, q_offset=q_offset, return_lse=True, **options)
    wanted = one_by_one(*leaves, offsets, options)
    torch.testing.assert_close(found, tuple(wanted), rtol=1e-12, atol=1e-13)
    upstream = [normal(*found[0].shape, seed=7), normal(*found[1].shape, seed=8).where(wanted[1].isfinite(), 0.0)]
    gradients = [torch.autograd.grad([one.where(one.isfinite(), 0.0) for one in pair], leaves, upstream) for pair in (found, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)


def test_there_may_be_no_sequence_and_room_to_spare():
    query, key, value = packed()
    none = attention_varlen(query[:0], key[:0], value[:0], starts([]), starts([]), max_seqlen_q=0, max_seqlen_k=0, enable_gqa=True)
    assert none.shape == (0, 4, 3)
    cu = (starts(Q_LENGTHS, torch.int64), starts(KV_LENGTHS, torch.int64))
    tight, wide = (
        attention_varlen(query, key, value, *cu, max_seqlen_q=19 + more, max_seqlen_k=37 + more, enable_gqa=True) for more in (0, 30)
    )
    torch.testing.assert_close(tight, wide, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("short", ["max_seqlen_q", "max_seqlen_k"])
def test_a_sequence_longer_than_the_longest_is_refused(short):
    longest = {"max_seqlen_q": 19, "max_seqlen_k": 37}
    longest[short] -= 1
    with pytest.raises(RuntimeError, match=f"{short} must be at least the longest length; got {longest[short]}"):
        attention_varlen(*packed(), starts(Q_LENGTHS), starts(KV_LENGTHS), **longest, enable_gqa=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": torch.ones(3, 5)}, r"query must be a Tensor \(total, heads, features\); got \(3, 5\)"),
        ({"value": torch.ones(7, 2, 3)}, "key and value must share their rows, the first axis; got 48 and 7"),
        ({"cu_seqlens_q": [0, 3]}, "cu_seqlens_q must be a Tensor of integers; got list"),
        ({"cu_seqlens_k": torch.zeros(6)}, "cu_seqlens_k must be a Tensor of integers; got a Tensor of float32"),
        ({"cu_seqlens_k": torch.tensor([0, 48])}, r"must be \(sequences \+ 1,\); got \(6,\), \(2,\)"),
        ({"mask": None}, "mask is not taken with packed sequences"),
    ],
)
def test_errors_say_what_is_wanted(changes, message):
    names = ("query", "key", "value", "cu_seqlens_q", "cu_seqlens_k")
    given = dict(zip(names, [*packed(), starts(Q_LENGTHS), starts(KV_LENGTHS)], strict=True)) | {"max_seqlen_q": 19, "max_seqlen_k": 37}
    with pytest.raises((TypeError, ValueError), match=message):
        attention_varlen(**given | changes)
