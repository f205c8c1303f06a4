"""Packed sequences of different lengths, against the eager formula on each of them alone."""

import pytest
import torch

from attn_course.gpu import attention, attention_varlen
from tests.gpu.support import interpreted, normal

pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")
pytestmark = interpreted

Q_LENGTHS, KV_LENGTHS = [3, 0, 39, 1, 4], [5, 2, 37, 0, 4]


def starts(lengths, dtype=torch.int32):
    return torch.tensor([0, *lengths]).cumsum(0).to(dtype)


def packed(q_lengths=Q_LENGTHS, kv_lengths=KV_LENGTHS, heads=4, kv_heads=2, d_k=5, d_v=3, dtype=torch.float64):
    shapes = [(sum(q_lengths), heads, d_k), (sum(kv_lengths), kv_heads, d_k), (sum(kv_lengths), kv_heads, d_v)]
    return [normal(*shape, dtype=dtype, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]


def varlen(tensors, q_lengths=Q_LENGTHS, kv_lengths=KV_LENGTHS, longest=None, **options):
    longest_q, longest_k = longest or (max(q_lengths), max(kv_lengths))
    longest = {"max_seqlen_q": longest_q, "max_seqlen_k": longest_k}
    return attention_varlen(*tensors, starts(q_lengths), starts(kv_lengths), **longest, enable_gqa=True, **options)


def one_by_one(query, key, value, lengths, offsets, options):
    """The results of every sequence, (heads, len, features) each, put together again."""
    parts = zip(query.split(lengths[0]), key.split(lengths[1]), value.split(lengths[1]), offsets, strict=True)
    pairs = []
    for *tensors, offset in parts:
        heads_first = [tensor.transpose(0, 1) for tensor in tensors]
        output, lse = attention(*heads_first, q_offset=int(offset), return_lse=True, backend="eager", **options)
        pairs.append((output.transpose(0, 1), lse.T))
    return [torch.cat(part) for part in zip(*pairs, strict=True)]


@pytest.mark.parametrize(
    ("options", "aligned"),
    [({}, False), ({"is_causal": True}, True), ({"window": (4, 2), "softcap": 2.0, "scale": 0.7}, False), ({"window": (9, None)}, True)],
)
@pytest.mark.parametrize("lengths", [(Q_LENGTHS, KV_LENGTHS), ([1, 0, 2, 1], [300, 3, 0, 167])], ids=["tiles", "few queries"])
def test_each_sequence_sees_itself_alone(lengths, options, aligned):
    leaves = packed(*lengths)
    offsets = [kv - q if aligned else 1 for q, kv in zip(*lengths, strict=True)]
    found = varlen(leaves, *lengths, q_offset=torch.tensor(offsets) if aligned else 1, return_lse=True, **options)
    wanted = one_by_one(*leaves, lengths, offsets, {**options, "enable_gqa": True})
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
        attention_varlen(query, key, value, *cu, max_seqlen_q=39 + more, max_seqlen_k=37 + more, enable_gqa=True) for more in (0, 30)
    )
    assert torch.equal(tight, wide)


def test_gradients_are_those_of_finite_differences():
    lengths = [2, 0, 1], [2, 1, 1]
    leaves = packed(*lengths, heads=2, kv_heads=1, d_k=2, d_v=1)
    assert torch.autograd.gradcheck(lambda *tensors: varlen(tensors, *lengths, is_causal=True, longest=(17, 2)), leaves)


def results_and_gradients(tensors, lengths, upstream, **options):
    output, lse = varlen(tensors, *lengths, return_lse=True, **options)
    return [output, lse, *torch.autograd.grad([output, lse.where(lse.isfinite(), 0.0)], tensors, [upstream, torch.ones_like(lse)])]


@pytest.mark.filterwarnings("ignore:(overflow|invalid value|All-NaN slice) encountered:RuntimeWarning")  # NumPy's, for what others hold
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("q_lengths", [[33, 5, 40, 3, 0, 35], [2, 1, 2, 1, 0, 2]], ids=["tiles", "few queries"])
def test_a_sequence_has_the_same_bits_alone_and_beside_others_whatever_they_hold(q_lengths, dtype):
    lengths = q_lengths, [37, 0, 33, 70, 6, 64]  # the third is looked at
    tensors, upstream = packed(*lengths, d_k=8, d_v=8, dtype=dtype), normal(sum(lengths[0]), 4, 8, dtype=dtype, seed=5)
    rows = [slice(sum(some[:2]), sum(some[:3])) for some in lengths]
    places = [rows[0], rows[0], rows[0], rows[1], rows[1]]  # output, lse, and gradients of query, key, value
    alone = results_and_gradients(
        [tensor[place].detach().requires_grad_() for tensor, place in zip(tensors, places[2:], strict=True)],
        (q_lengths[2:3], [33]), upstream[rows[0]], longest=(max(q_lengths), 70), is_causal=True,
    )  # fmt: skip
    for poison in (None, torch.nan, torch.finfo(dtype).max):
        held = [tensor.detach().clone() for tensor in (*tensors, upstream)]
        for tensor, place in zip(held, (rows[0], rows[1], rows[1], rows[0]), strict=True):
            if poison is not None:
                tensor[: place.start] = tensor[place.stop :] = poison
        found = results_and_gradients([tensor.requires_grad_() for tensor in held[:3]], lengths, held[3], is_causal=True)
        assert all(torch.equal(one[place], other) for one, place, other in zip(found, places, alone, strict=True)), poison


def test_the_kernels_read_and_write_packed_rows_where_they_lie(watch):
    from attn_course.gpu import flash_backward, flash_forward

    read, written = [], []
    watch(flash_forward, "flash_forward", lambda arguments: read.append(arguments[0]) or written.append(arguments[1]))
    watch(flash_backward, "flash_backward_query", lambda arguments: read.append(arguments[0]) or written.append(arguments[2]))
    watch(flash_backward, "flash_backward_key_value", lambda arguments: read.append(arguments[0]) or written.extend(arguments[2:4]))
    tensors = packed(d_k=16, d_v=8)
    output = varlen(tensors, is_causal=True)
    gradients = torch.autograd.grad(output, tensors, torch.ones_like(output))
    assert {tuple(rows.ptr.data_ptr() for rows in call[:3]) for call in read} == {tuple(tensor.data_ptr() for tensor in tensors)}
    assert {rows.ptr.data_ptr() for rows in written} == {tensor.data_ptr() for tensor in (output, *gradients)}
    assert all(tensor.is_contiguous() for tensor in (output, *gradients))


def test_memory_grows_with_the_rows_and_not_with_the_longest_sequence():
    tensors, made = packed([8] * 20, [8] * 20, heads=1, kv_heads=1, d_k=8, d_v=8), []
    for longest in (32, 192):
        with torch.autograd.profiler.profile(profile_memory=True) as profile:
            output = varlen(tensors, [8] * 20, [8] * 20, longest=(longest, longest), is_causal=True)
            torch.autograd.grad(output, tensors, torch.ones_like(output))
        made.append(sum(max(event.self_cpu_memory_usage, 0) for event in profile.function_events))
    assert made[1] - made[0] == 3 * 20 * 5  # a byte for each program: three kernels, five tiles more in each sequence
    assert made[1] < 6 * tensors[0].nbytes  # output, its gradient and three more; a few numbers for each row


def test_compiled_it_gives_the_same_gradients_for_other_lengths_too():
    def loss(*tensors, cu, longest):
        longest = {"max_seqlen_q": longest, "max_seqlen_k": longest}
        return attention_varlen(*tensors, cu, cu, **longest, enable_gqa=True, is_causal=True).square().sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=True)
    for lengths in ([3, 9], [4, 1, 7, 2], [20, 2]):
        tensors, call = packed(lengths, lengths), {"cu": starts(lengths), "longest": max(lengths)}
        found, wanted = (torch.autograd.grad(one(*tensors, **call), tensors) for one in (compiled, loss))
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="max_seqlen_q must be at least the longest length"):
        compiled(*tensors, cu=starts([20, 2]), longest=19)


def test_each_head_may_have_a_sink():
    tensors, sinks = packed(), torch.tensor([0.5, -torch.inf, 2.0, -1.0], dtype=torch.float64)
    output, lse = varlen(tensors, return_lse=True)
    sunk, with_sinks = varlen(tensors, return_lse=True, sink_logits=sinks)
    torch.testing.assert_close(with_sinks, torch.logaddexp(lse, sinks.expand_as(lse)))
    torch.testing.assert_close(sunk, output * torch.exp(lse - with_sinks).nan_to_num()[..., None])


@pytest.mark.parametrize("short", ["max_seqlen_q", "max_seqlen_k"])
def test_a_sequence_longer_than_the_longest_is_refused(short):
    longest = {"max_seqlen_q": 39, "max_seqlen_k": 37}
    longest[short] -= 1
    with pytest.raises(RuntimeError, match=f"{short} must be at least the longest length; got {longest[short]}"):
        attention_varlen(*packed(), starts(Q_LENGTHS), starts(KV_LENGTHS), **longest, enable_gqa=True)


@pytest.mark.parametrize("cu", [[1, 48], [0, 47], [0, 49], [0, 50, 48]], ids=str)
def test_starts_that_do_not_fit_the_rows_are_refused(cu):
    query, key, value = packed()
    cu_q = torch.tensor([0] * (len(cu) - 1) + [47])
    with pytest.raises(RuntimeError, match="cu_seqlens_k must go from 0 up to the number of rows"):
        attention_varlen(query, key, value, cu_q, torch.tensor(cu), max_seqlen_q=47, max_seqlen_k=60, enable_gqa=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": torch.ones(3, 5)}, r"query must be a Tensor \(total, heads, features\); got \(3, 5\)"),
        ({"value": torch.ones(7, 2, 3)}, "key and value must share their rows, the first axis; got 48 and 7"),
        ({"cu_seqlens_q": [0, 3]}, "cu_seqlens_q must be a Tensor of integers; got list"),
        ({"cu_seqlens_k": torch.zeros(6)}, "cu_seqlens_k must be a Tensor of integers; got a Tensor of float32"),
        ({"cu_seqlens_k": starts(KV_LENGTHS).to("meta")}, "cu_seqlens_k must be on the device of query, cpu; got meta"),
        ({"max_seqlen_q": None}, "max_seqlen_q must be an integer; got NoneType"),
        ({"max_seqlen_k": torch.tensor(37)}, "max_seqlen_k must be an integer; got a Tensor of int64"),
        ({"max_seqlen_q": -1}, r"max_seqlen_q must be 0 to 2\*\*30; got -1"),
        ({"max_seqlen_k": 2**31}, r"max_seqlen_k must be 0 to 2\*\*30; got 2147483648"),
        ({"q_offset": torch.zeros(4, dtype=torch.int64)}, r"q_offset must be \(sequences,\) = \(5,\) or an int; got shape \(4,\)"),
        ({"cu_seqlens_k": torch.tensor([0, 48])}, r"must be \(sequences \+ 1,\); got \(6,\), \(2,\)"),
        ({"mask": None}, "mask is not taken with packed sequences"),
    ],
)
def test_errors_say_what_is_wanted(changes, message):
    names = ("query", "key", "value", "cu_seqlens_q", "cu_seqlens_k")
    given = dict(zip(names, [*packed(), starts(Q_LENGTHS), starts(KV_LENGTHS)], strict=True)) | {"max_seqlen_q": 39, "max_seqlen_k": 37}
    with pytest.raises((TypeError, ValueError), match=message):
        attention_varlen(**given | changes)
