"""The FlashAttention kernels, run by Triton's interpreter: every option, forward and backward, against the float64 reference."""

import os
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu.oracle import GATES, errors, relative_error

pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not to be had here (it is for Linux)"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="these tests are for Triton's interpreter; a GPU has its own"),
]


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def inputs(q_len=37, kv_len=45, *, heads=2, kv_heads=2, d_k=11, d_v=7, dtype=torch.float32, batch=()):
    shapes = [(*batch, heads, q_len, d_k), (*batch, kv_heads, kv_len, d_k), (*batch, kv_heads, kv_len, d_v)]
    return tuple(normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes))


def bool_mask(*shape):
    mask = normal(*shape, seed=9) > -0.3
    mask[..., 2, :] = False
    return mask


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
    "a negative scale": {"scale": -0.3},
    "a boolean mask with a row of nothing": {"mask": bool_mask(37, 45)},
    "a bias": {"mask": bias(2, 37, 45), "softcap": 3.0},
    "a bias that all heads and rows share": {"mask": bias(1, 1, 45), "is_causal": True, "q_offset": 8},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_output_lse_and_gradients_are_those_of_the_reference(name):
    assert max(errors(inputs(), OPTIONS[name])) < GATES[torch.float32]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_every_dtype_keeps_to_its_gate(dtype):
    assert max(errors(inputs(70, 99, heads=1, kv_heads=1, dtype=dtype), {"is_causal": True, "q_offset": 29})) < GATES[dtype]


@pytest.mark.parametrize("lengths", [(1, 1), (1, 45), (33, 1), (0, 5), (5, 0), (64, 32)])
def test_lengths_from_nothing_to_whole_tiles(lengths):
    assert max(errors(inputs(*lengths), {})) < GATES[torch.float32]


@pytest.mark.parametrize("widths", [(16, 16), (1, 33), (40, 1)])
def test_features_need_be_no_power_of_two(widths):
    assert max(errors(inputs(17, 35, heads=1, kv_heads=1, d_k=widths[0], d_v=widths[1]), {"is_causal": True})) < GATES[torch.float32]


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (3, 1)])
def test_query_heads_share_key_heads(heads, kv_heads):
    grouped = inputs(17, 35, heads=heads, kv_heads=kv_heads, batch=(2,))
    assert max(errors(grouped, {"enable_gqa": True, "is_causal": True, "q_offset": 18})) < GATES[torch.float32]


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
    from attn_course.gpu.flash import flash_attention

    query, key, value = inputs(17, 45, batch=(3,))
    lengths = torch.tensor([45, 0, 33])[:, None]
    mask = torch.arange(45) < lengths[..., None, None]
    for tensor in (key, value):
        tensor.masked_fill_(~mask.mT, torch.nan)
    leaves = [tensor.requires_grad_() for tensor in (query, key, value)]
    outputs = []
    for options in ({"kv_lengths": lengths}, {"mask": mask}):
        output = flash_attention(*leaves, is_causal=True, q_offset=30, **options)
        outputs.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
    for by_length, by_mask in zip(*outputs, strict=True):
        torch.testing.assert_close(by_length, by_mask)
        assert by_length.isfinite().all()
    assert not outputs[0][0][1].any()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's, for what the kernel computes and drops
@pytest.mark.parametrize("rotten", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(
    "options", [{"is_causal": True}, {"mask": torch.arange(45) < 40}, {"window": (3, 3)}], ids=["causal", "mask", "window"]
)
def test_what_is_hidden_may_hold_anything(rotten, options):
    from attn_course.gpu.flash import flash_attention

    if "mask" in options:
        options = {"mask": options["mask"].expand(37, 45)}
    query, key, value = inputs(heads=1, kv_heads=1)
    spoiled = [key.index_fill(-2, torch.tensor([41]), rotten), value.index_fill(-2, torch.tensor([41]), rotten)]
    results = []
    for tensors in ((query, key, value), (query, *spoiled)):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        output, lse = flash_attention(*leaves, return_lse=True, **options)
        loss = output[:, :36].square().sum() + lse[:, :36].sum()
        results.append([output, lse, *torch.autograd.grad(loss, leaves)])
    for clean, found in zip(*results, strict=True):
        rows = slice(0, 36) if clean.shape[1] == 37 else slice(0, 41)
        torch.testing.assert_close(found[:, rows], clean[:, rows], rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_nan_that_is_seen_spoils_exactly_the_rows_that_see_it():
    from attn_course.gpu.flash import flash_attention

    query, key, value = inputs(heads=1, kv_heads=1)
    value[:, 20] = torch.nan
    rows = flash_attention(query, key, value, is_causal=True).isnan().any(-1)[0]
    assert rows.tolist() == [False] * 20 + [True] * 17


def test_a_row_that_sees_nothing_is_zero_and_its_lse_is_minus_infinity():
    from attn_course.gpu.flash import flash_attention

    query, key, value = (tensor.requires_grad_() for tensor in inputs(heads=1, kv_heads=1))
    output, lse = flash_attention(query, key, value, mask=bool_mask(37, 45), return_lse=True)
    assert not output[0, 2].any()
    assert lse[0, 2] == -torch.inf
    (d_query,) = torch.autograd.grad(output.sum(), query)
    assert not d_query[0, 2].any()
    assert d_query[0, 3].any()


@pytest.mark.parametrize("options", [{"is_causal": True, "softcap": 2.0}, {"enable_gqa": True, "mask": bias(1, 3, 4, dtype=torch.float64)}])
def test_gradcheck_of_the_same_kernels_in_float64(options):
    from attn_course.gpu.flash import flash_attention

    heads = 2 if options.get("enable_gqa") else 1
    leaves = [tensor.requires_grad_() for tensor in inputs(3, 4, heads=heads, kv_heads=1, d_k=2, d_v=3, dtype=torch.float64)]
    mask = options.get("mask")
    if mask is not None:
        leaves.append(mask.where(mask.isfinite(), 0.5).requires_grad_())

    def output_and_lse(query, key, value, mask=None):
        return flash_attention(query, key, value, **{**options, "mask": mask}, return_lse=True)

    assert torch.autograd.gradcheck(output_and_lse, leaves, fast_mode=True)  # one random direction: the interpreter is slow


@st.composite
def calls(draw):
    """Draw lengths, widths, heads and any mixture of options."""
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
    assert max(errors(*call)) < 3e-6  # few numbers, some of which cancel


def test_the_relative_error_can_be_large():
    wanted = normal(3, 5, dtype=torch.float64).numpy()
    assert relative_error(torch.from_numpy(wanted), wanted) == 0.0
    assert relative_error(torch.from_numpy(wanted) * 1.01, wanted) == pytest.approx(0.01)
    assert relative_error(torch.full((3, 5), torch.nan), wanted) == float("inf")
    assert relative_error(torch.zeros(5, 3), wanted) == float("inf")


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        (inputs(d_k=300, d_v=3), {}, "takes 1 to 256 features; got d_k = 300"),
        ((normal(2, 3), normal(2, 4), normal(2, 3)), {}, "query and key must share d_k, the last axis; got 3 and 4"),
        ((normal(2, 3), normal(5, 3), normal(2, 3)), {}, "key and value must share kv_len"),
        (inputs(heads=3), {"enable_gqa": True}, "query must have a multiple of the heads of key and value, axis -3; got 3, 2, 2"),
        (inputs(heads=3), {}, "must broadcast over their leading axes"),
        (inputs(), {"mask": torch.ones(37, 44, dtype=torch.bool)}, r"mask must broadcast to \(..., q_len, kv_len\) = \(2, 37, 45\)"),
        (inputs(), {"mask": torch.ones(37, 45, dtype=torch.int64)}, "takes a mask of bool or float; got torch.int64"),
        (tuple(tensor.to(torch.int64) for tensor in inputs()), {}, "takes float16, bfloat16 and float32; got torch.int64"),
    ],
)
def test_errors_say_what_is_wanted(tensors, options, message):
    from attn_course.gpu.flash import flash_attention

    with pytest.raises(ValueError, match=message):
        flash_attention(*tensors, **options)
