"""The FlashAttention kernels, run by Triton's interpreter: every option, forward and backward, against the float64 reference."""

import functools
import heapq

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.gpu import attention
from attn_course.gpu.flash import flash_attention
from attn_course.gpu.flash_operators import CACHED, heads_together
from attn_course.reference import sink_attention
from tests.gpu import support
from tests.gpu.oracle import GATES, errors, relative_error

triton = pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")
tl = pytest.importorskip("triton.language")
tanh = pytest.importorskip("attn_course.gpu.tiles").tanh
own_block = pytest.importorskip("attn_course.gpu.tiles").own_block
pytestmark = support.interpreted
normal = functools.partial(support.normal, dtype=torch.float32)


def inputs(q_len=37, kv_len=45, *, heads=2, kv_heads=2, d_k=11, d_v=7, dtype=torch.float32, batch=()):
    shapes = [(*batch, heads, q_len, d_k), (*batch, kv_heads, kv_len, d_k), (*batch, kv_heads, kv_len, d_v)]
    return tuple(normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes))


def bias(*shape, dtype=torch.float32):
    mask = normal(*shape, dtype=dtype, seed=8)
    mask[..., 3] = -torch.inf
    return mask


OPTIONS = {
    "causal, with an offset": {"is_causal": True, "q_offset": 13},
    "causal, with a negative offset: some rows see nothing": {"is_causal": True, "q_offset": -5},
    "a window, open on neither side": {"window": (6, 9), "q_offset": 3},
    "a window that a causal mask closes": {"window": (20, None), "is_causal": True},
    "an offset for each head": {"is_causal": True, "q_offset": torch.tensor([4, 11])},
    "a softcap and a scale": {"softcap": 1.5, "scale": 0.7},
    "a softcap far above all scores": {"softcap": 1e4},
    "a softcap that bounds nothing": {"softcap": 1e300},
    "a negative scale": {"scale": -0.3},
    "a boolean mask with a row of nothing": {"mask": support.bool_mask(37, 45)},
    "a bias": {"mask": bias(2, 37, 45), "softcap": 3.0},
    "a bias that all heads and rows share": {"mask": bias(1, 1, 45), "is_causal": True, "q_offset": 8},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])  # scores are natural, and in units of ln 2
@pytest.mark.parametrize("name", OPTIONS)
def test_output_lse_and_gradients_are_those_of_the_reference(name, dtype):
    assert max(errors(inputs(dtype=dtype), OPTIONS[name])) < GATES[dtype]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_every_dtype_keeps_to_its_gate(dtype):
    assert max(errors(inputs(70, 99, heads=1, kv_heads=1, dtype=dtype), {"is_causal": True, "q_offset": 29})) < GATES[dtype]


@pytest.mark.parametrize("lengths", [(1, 1), (1, 45), (33, 1), (0, 5), (5, 0), (64, 32)])
def test_lengths_from_nothing_to_whole_tiles(lengths):
    assert max(errors(inputs(*lengths), {})) < GATES[torch.float32]


@pytest.mark.parametrize(
    "shapes",
    [
        ((17, 5), (19, 5), (19, 3)),
        ((2, 3, 17, 5), (19, 5), (1, 19, 3)),  # one key head for all: summed inside the kernel
        ((1, 17, 5), (2, 1, 19, 5), (2, 3, 19, 3)),
        ((1, 2, 3, 17, 5), (2, 1, 1, 19, 5), (19, 3)),
    ],
)
def test_leading_axes_broadcast_and_their_gradients_are_summed(shapes):
    tensors = tuple(normal(*shape, seed=seed) for seed, shape in enumerate(shapes))
    assert max(errors(tensors, {"window": (30, 2)})) < GATES[torch.float32]


def test_strides_may_be_any():
    query, key, value = inputs(17, 35)
    turned = (query.mT.contiguous().mT, key.transpose(0, 1).contiguous().transpose(0, 1), value.flip(0).flip(0)[:, :, :5])
    assert max(errors(turned, {})) < GATES[torch.float32]


def test_padding_lengths_are_the_mask_that_hides_the_padding():
    query, key, value = inputs(17, 45, batch=(3,))
    lengths = torch.tensor([45, 0, 33])[:, None]
    mask = torch.arange(45) < lengths[..., None, None]
    for tensor in (key, value):
        tensor.masked_fill_(~mask.mT, torch.nan)
    leaves = [tensor.requires_grad_() for tensor in (query, key, value)]
    outputs = []
    for options in ({"kv_lengths": lengths.to(torch.uint8)}, {"mask": mask}):
        output = flash_attention(*leaves, is_causal=True, q_offset=30, **options)
        outputs.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
    for by_length, by_mask in zip(*outputs, strict=True):
        torch.testing.assert_close(by_length, by_mask)
        assert by_length.isfinite().all()
    assert not outputs[0][0][1].any()


@pytest.mark.parametrize("q_len", [37, 1])  # one program for all keys of a row, and several
def test_a_sink_is_one_more_key_whose_value_is_nothing(q_len):
    query, key, value = leaves = [tensor.requires_grad_() for tensor in inputs(q_len, dtype=torch.float64, batch=(2,))]
    sinks = torch.tensor([[0.7, -torch.inf], [-3.0, 40.0]], dtype=torch.float64, requires_grad=True)
    seen = torch.ones(q_len, 45, dtype=torch.bool).tril(4)
    seen[q_len // 2] = q_len == 1
    output, lse = flash_attention(*leaves, sink_logits=sinks, mask=seen, return_lse=True)

    mask = torch.cat([sinks[..., None, None].expand(-1, -1, q_len, 1), torch.where(seen, 0.0, -torch.inf).expand(2, 2, -1, -1)], -1)
    key_of_sink, value_of_sink = ((part[..., :1, :] * 0.0).detach() for part in (key, value))
    beside = torch.cat([key_of_sink, key], -2), torch.cat([value_of_sink, value], -2)
    wanted, lse_wanted = attention(query, *beside, mask=mask, return_lse=True, backend="eager")
    torch.testing.assert_close((output, lse), (wanted, lse_wanted), rtol=1e-12, atol=1e-13)
    by_reference = sink_attention(*(leaf.detach().numpy() for leaf in leaves), sinks.detach().numpy(), mask=seen.numpy())
    assert relative_error(output, by_reference) < 1e-13
    losses = [one.square().sum() + two.where(two.isfinite(), 0.0).sum() for one, two in ((output, lse), (wanted, lse_wanted))]
    gradients = [torch.autograd.grad(loss, (*leaves, sinks)) for loss in losses]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)
    assert gradients[0][3].all(dim=0).tolist() == [True, False]


HIDING = {  # options under which no query sees column 41; there are queries up to number 36 only
    "causal": {"is_causal": True},
    "mask": {"mask": (torch.arange(45) < 40).expand(37, 45)},
    "bias": {"mask": torch.where(torch.arange(45) < 40, 0.5, -torch.inf).expand(37, 45)},
    "window": {"window": (3, 3), "softcap": 2.0},
}


@functools.cache
def results_with_column_41(places, value, name):
    """Output, log-sum-exp and gradients where column 41 of keys, values or both holds a value; None leaves it as it is."""
    tensors = zip(("query", "key", "value"), inputs(heads=1, kv_heads=1), strict=True)
    hidden = torch.tensor([41])
    leaves = [(one.index_fill(-2, hidden, value) if role in places else one).requires_grad_() for role, one in tensors]
    output, lse = flash_attention(*leaves, return_lse=True, **HIDING[name])
    loss = output[:, :36].square().sum() + lse[:, :36].sum()
    return [output, lse, *torch.autograd.grad(loss, leaves)]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's, for what the kernel computes and drops
@pytest.mark.parametrize(("places", "rotten"), [("key", torch.inf), ("value", -torch.inf), ("key and value", torch.nan)])
@pytest.mark.parametrize("name", HIDING)
def test_what_is_hidden_may_hold_anything(rotten, places, name):
    for clean, found in zip(results_with_column_41("", None, name), results_with_column_41(places, rotten, name), strict=True):
        torch.testing.assert_close(found, clean, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("rule", ["it sees nothing", "the loss leaves it out"])
def test_a_query_that_holds_nan_spoils_no_gradient_of_keys(rule):
    tensors = inputs(heads=1, kv_heads=1)
    mask = torch.ones(37, 45, dtype=torch.bool)
    mask[20] = rule != "it sees nothing"
    mask[20, 30:] = False
    gradients = []
    for spoil in (False, True):
        query, key, value = (tensor.clone() for tensor in tensors)
        query[:, 20] = torch.nan if spoil else query[:, 20]
        leaves = [tensor.requires_grad_() for tensor in (query, key, value)]
        output = flash_attention(*leaves, mask=mask)
        rows = [row for row in range(37) if row != 20]
        gradients.append(torch.autograd.grad(output[:, rows].square().sum(), leaves[1:]))
    blind = 0 if rule == "it sees nothing" else 30  # keys from here on are hidden from it
    for clean, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found[:, blind:], clean[:, blind:], rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_row_that_sees_nan_alone_has_an_lse_of_nan():
    query, key, value = inputs(5, 3)
    output, lse = flash_attention(query, torch.full_like(key, torch.nan), value, return_lse=True)
    assert output.isnan().all()
    assert lse.isnan().all()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("options", [{"is_causal": True}, {"mask": torch.ones(37, 37, dtype=torch.bool).tril()}])
def test_a_row_of_the_upstream_gradient_that_is_nan_spoils_what_it_touches(options):
    leaves = [tensor.requires_grad_() for tensor in inputs(37, 37, heads=1, kv_heads=1)]
    output = flash_attention(*leaves, **options)
    upstream = normal(1, 37, 7, seed=5)
    clean = torch.autograd.grad(output, leaves, upstream, retain_graph=True)
    upstream[:, 11, 3] = torch.nan
    query, key, value = torch.autograd.grad(output, leaves, upstream)
    assert query.isnan().any(-1).nonzero()[:, 1].tolist() == [11]
    assert key[:, :12].isnan().all()
    assert value[:, :12].isnan().all()
    for found, wanted in zip((key, value), clean[1:], strict=True):
        torch.testing.assert_close(found[:, 12:], wanted[:, 12:])


FAR, TOP = torch.tensor([[-1e19]]), torch.full((2, 1), 3e38)
EXTREMES = {  # query, key, value, scale
    "the largest scores below 0": (FAR, torch.full((2, 1), 3e19), torch.tensor([[1.0], [3.0]]), 1.0),
    "a scale that is huge": (torch.ones(1, 1), torch.tensor([[1e-38], [0.0]]), torch.tensor([[1.0], [3.0]]), 3e38),
    "the largest values": (torch.ones(1, 1), torch.ones(2, 1), TOP, 1.0),
}


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("copies", [(1, 1), (20, 1), (1, 300)], ids=["decode", "general", "split"])
@pytest.mark.parametrize("name", EXTREMES)
def test_the_largest_numbers_of_float32_give_what_the_formula_gives(name, copies):
    *tensors, scale = EXTREMES[name]
    query, key, value = (tensor.repeat(times, 1) for tensor, times in zip(tensors, (copies[0], copies[1], copies[1]), strict=True))
    found, wanted = (attention(query, key, value, scale=scale, return_lse=True, backend=one) for one in ("triton", "eager"))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)


def test_large_scores_have_the_gradients_of_the_formula():
    leaves = [tensor.requires_grad_() for tensor in (torch.ones(20, 1), torch.full((4, 1), 1e9), normal(4, 1))]
    losses = [attention(*leaves, backend=one).square().sum() for one in ("triton", "eager")]
    found, wanted = (torch.autograd.grad(loss, leaves[2]) for loss in losses)
    torch.testing.assert_close(found, wanted)


def test_only_the_gradients_that_are_needed_are_computed(monkeypatch):
    from attn_course.gpu import flash_backward

    query, key, value = inputs(5, 7, d_k=16)
    wanted = torch.autograd.grad(flash_attention(query.requires_grad_(), key.requires_grad_(), value).sum(), (query, key))
    for frozen, kernel in ((key, "flash_backward_key_value"), (query, "flash_backward_query")):
        leaf = key if frozen is query else query
        with monkeypatch.context() as without:
            without.setattr(flash_backward, kernel, None)
            output = flash_attention(*(one if one is leaf else one.detach() for one in (query, key, value)))
            (found,) = torch.autograd.grad(output.sum(), leaf)
        assert torch.equal(found, wanted[leaf is key])


@pytest.mark.parametrize("shape", [(45,), (2, 1, 45), (37, 1), (1, 1, 1)])
def test_the_gradient_of_a_bias_that_rows_share_makes_no_array_of_all_scores(shape, watch):
    from attn_course.gpu import flash_backward_mask

    written = []
    watch(flash_backward_mask, "flash_backward_mask", lambda arguments: written.append(arguments[2].numel()))
    tensors = inputs(batch=(3,))
    assert max(errors(tensors, {"mask": normal(*shape, seed=4), "is_causal": True, "q_offset": 8})) < GATES[torch.float32]
    assert written[0] <= 3 * 2 * 45


def test_rows_too_far_apart_for_32_bits_are_brought_together():
    from attn_course.gpu.arguments import mask_arguments
    from attn_course.gpu.layout import FARTHEST, aligned, laid_out

    far = torch.empty(FARTHEST + 16).as_strided((1, 1, 2, 16), (0, 0, FARTHEST, 1))
    assert aligned(far).stride(-2) == 16
    lengths_first = torch.empty_strided((FARTHEST // 64, 1, 2, 64), (64, 64, FARTHEST, 1), device="meta")
    assert laid_out(lengths_first, 64).stride(-2) == 64
    mask = torch.empty_strided((1, 1, 2, 3), (0, 0, 1, FARTHEST), dtype=torch.bool, device="meta")
    assert mask_arguments(mask)[1] == (0, 0, 3, 1)


@st.composite
def calls(draw):
    lengths = st.sampled_from([1, 5, 31, 32, 33, 64, 71])
    q_len, kv_len = draw(lengths), draw(lengths)
    group = draw(st.sampled_from([1, 2]))
    tensors = inputs(q_len, kv_len, heads=group, kv_heads=1, d_k=draw(st.sampled_from([3, 16])), d_v=draw(st.sampled_from([1, 19])))
    side = st.none() | st.integers(0, 70)
    options = {
        "is_causal": draw(st.booleans()),
        "window": draw(st.none() | st.tuples(side, side)),
        "q_offset": draw(st.integers(-40, 70)),
        "softcap": draw(st.none() | st.just(2.5)),
        "enable_gqa": True,
        "mask": draw(st.none() | st.sampled_from([normal(q_len, kv_len, seed=5) > -0.5, normal(group, 1, kv_len, seed=6)])),
    }
    return tensors, options


@settings(max_examples=8, deadline=None)
@given(calls())
def test_any_mixture_of_options_is_that_of_the_reference(call):
    assert max(errors(*call)) < 1e-5  # few numbers, some of which cancel: one key, one feature and 33 queries give 3.2e-6


def test_the_relative_error_can_be_large():
    wanted = normal(3, 5, dtype=torch.float64).numpy()
    assert relative_error(torch.from_numpy(wanted), wanted) == 0.0
    assert relative_error(torch.from_numpy(wanted) * 1.01, wanted) == pytest.approx(0.01)
    assert relative_error(torch.full((3, 5), torch.nan), wanted) == float("inf")
    assert relative_error(torch.zeros(5, 3), wanted) == float("inf")


@pytest.mark.parametrize("far", [2**30, 2**31, 2**70])
def test_offset_and_window_may_each_be_beyond_any_length(far):
    tensors = inputs(17, 19)
    everything = flash_attention(*tensors)
    assert torch.equal(flash_attention(*tensors, window=(None, far), q_offset=far), everything)
    assert not flash_attention(*tensors, window=(None, 3), q_offset=-far).any()
    near = flash_attention(*tensors, window=(None, far), q_offset=3 - far)
    torch.testing.assert_close(near, flash_attention(*tensors, window=(None, 3)))
    if far < 2**60:
        table = torch.tensor([3 - far, far])
        by_head = flash_attention(*tensors, window=(None, far), q_offset=table)
        torch.testing.assert_close(by_head, torch.stack([near[0], everything[1]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_whose_mask_is_the_lowest_number_throughout_takes_the_mean(dtype):
    tensors = inputs(5, 45, dtype=dtype)
    mask = torch.zeros(5, 45)
    mask[2] = torch.finfo(dtype).min
    torch.testing.assert_close(flash_attention(*tensors, mask=mask)[:, 2], tensors[2].float().mean(-2).to(dtype))
    assert max(errors(tensors, {"mask": mask})) < GATES[dtype]


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_cap_that_is_tiny_makes_all_scores_equal():
    query, key, value = inputs(5, 45)
    torch.testing.assert_close(flash_attention(query, key, value, softcap=1e-45), value.mean(-2, keepdim=True).expand(2, 5, 7))


def test_tanh_loses_no_digits_anywhere():
    @triton.jit
    def kernel(x_ptr, y_ptr):
        tl.store(y_ptr + tl.arange(0, 512), tanh(tl.load(x_ptr + tl.arange(0, 512))))

    x = torch.cat([torch.logspace(-30, 2, 255, dtype=torch.float64), torch.tensor([0.0])])
    x = torch.cat([x, -x])
    found = torch.empty_like(x)
    kernel[(1,)](x, found)
    torch.testing.assert_close(found, x.tanh(), rtol=1e-15, atol=0)


@pytest.mark.parametrize(("heads", "width", "length"), [(32, 128, 1024), (8, 128, 8192), (16, 128, 16384), (128, 64, 2048)])
def test_under_a_causal_mask_the_short_programs_come_last_and_fill_132_multiprocessors(heads, width, length):
    """Counted in tiles, of which beginning and end of a program take two. Head after head, 32 of length 1024 would fill two thirds."""

    @triton.jit
    def kernel(found_ptr, n_blocks, together):
        block, head = own_block(n_blocks, together)
        tl.store(found_ptr + tl.program_id(0) * 2, block)
        tl.store(found_ptr + tl.program_id(0) * 2 + 1, head)

    blocks = length // 128
    found = torch.zeros(heads * blocks, 2, dtype=torch.int32)
    kernel[(heads * blocks,)](found, blocks, heads_together(heads, CACHED // (length * width * 4)))
    assert sorted(map(tuple, found.tolist())) == [(block, head) for block in range(blocks) for head in range(heads)]
    tiles = [2 + 2 * (blocks - block) for block, _ in found.tolist()]
    busy = [0] * 132
    for each in tiles:
        heapq.heapreplace(busy, busy[0] + each)
    assert sum(tiles) / (132 * max(busy)) > 0.95


def test_results_lie_in_memory_as_the_inputs_do():
    tensors = [normal(2, length, heads, 16, seed=seed).transpose(1, 2) for seed, (length, heads) in enumerate([(9, 4), (11, 2), (11, 2)])]
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    output = flash_attention(*leaves, enable_gqa=True)
    assert output.stride() == tensors[0].stride()
    d_output = torch.ones_like(output)
    assert [d.stride() for d in torch.autograd.grad(output, leaves, d_output)] == [tensor.stride() for tensor in tensors]


def test_kernels_are_launched_on_the_device_of_their_tensors(monkeypatch, watch):
    from attn_course.gpu import flash_backward, flash_backward_mask, flash_decode, flash_forward, flash_row_terms

    kernels = {
        flash_forward: ["flash_forward"],
        flash_decode: ["flash_decode", "flash_merge"],
        flash_row_terms: ["flash_row_terms"],
        flash_backward: ["flash_backward_key_value", "flash_backward_query"],
        flash_backward_mask: ["flash_backward_mask"],
    }
    entered, launched = [], []

    class Guard:
        def __init__(self, tensor):
            self.tensor = tensor

        def __enter__(self):
            entered.append(tuple(self.tensor.shape))

        def __exit__(self, *error):
            entered.pop()

    monkeypatch.setattr(torch.cuda, "device_of", Guard)
    for module, names in kernels.items():
        for name in names:
            watch(module, name, lambda _: launched.append(list(entered)))
    query, key, value = (tensor.requires_grad_() for tensor in inputs(5, 7, d_k=16))
    mask = normal(5, 7).requires_grad_()
    flash_attention(query, key, value, mask=mask).sum().backward()
    flash_attention(*inputs(1, 260, d_k=16))
    assert launched == [[(1, 2, 5, 16)]] * 8 + [[(1, 2, 1, 16)]] * 2


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        (inputs(), {"kv_lengths": torch.ones(2)}, "kv_lengths must be a Tensor of integers; got a Tensor of float32"),
        (inputs(), {"kv_lengths": 3}, "kv_lengths must be a Tensor of integers; got int"),
        (inputs(), {"sink_logits": torch.ones(2, dtype=torch.int64)}, "sink_logits must be a Tensor of floats; got a Tensor of int64"),
        (inputs(), {"sink_logits": torch.ones(3)}, r"sink_logits must broadcast to the leading axes \(2,\); got shape \(3,\)"),
        (inputs(d_k=300, d_v=3), {}, "takes 1 to 256 features; got d_k = 300"),
        ((normal(2, 3), normal(2, 4), normal(2, 3)), {}, "query and key must share d_k, the last axis; got 3 and 4"),
        ((normal(2, 3), normal(5, 3), normal(2, 3)), {}, "key and value must share kv_len"),
        (inputs(), {"return_weights": True}, "it never has the weights as a whole"),
        (
            inputs(),
            {"kv_lengths": torch.ones(3, dtype=torch.int64)},
            r"kv_lengths must broadcast to the leading axes \(2,\); got shape \(3,\)",
        ),
    ],
)
def test_errors_say_what_is_wanted(tensors, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        flash_attention(*tensors, **options)
