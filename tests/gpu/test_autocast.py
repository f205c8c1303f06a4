"""Under torch.autocast every backend computes what it computes on tensors cast by hand, and casts what torch's own function casts."""

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from attn_course.gpu import attention
from tests.gpu.support import needs_triton, tensors
from tests.reference.support import attention_arrays

NARROW = torch.bfloat16
BIAS = torch.from_numpy(np.random.default_rng(2).normal(size=(5, 11))).float()
OPTIONS = [{"is_causal": True}, {"mask": BIAS > 0.0}, {"mask": BIAS, "window": (3, 4)}]
CALLS = [*product(["auto", "sdpa", "eager"], OPTIONS), pytest.param("triton", OPTIONS[2], marks=needs_triton)]


def autocast(enabled=True):
    return torch.autocast("cpu", dtype=NARROW, enabled=enabled)


def inputs(*dtypes):
    parts = tensors(*attention_arrays(d_v=7))
    return [part.to(dtype).requires_grad_() for part, dtype in zip(parts, dtypes or [torch.float32] * 3, strict=True)]


def output_and_gradients(function, parts):
    output = function(*parts)
    return output, *torch.autograd.grad(output.float().sum(), parts)


@pytest.mark.parametrize(("backend", "options"), CALLS)
def test_results_are_those_of_inputs_cast_by_hand_and_gradients_come_back_wide(backend, options):
    by_hand = {**options, "mask": BIAS.to(NARROW)} if options.get("mask") is BIAS else options

    def under_autocast(*parts):
        with autocast():
            return attention(*parts, **options, backend=backend)

    got = output_and_gradients(under_autocast, inputs())
    wanted = output_and_gradients(lambda *parts: attention(*(part.to(NARROW) for part in parts), **by_hand, backend=backend), inputs())
    assert [part.dtype for part in got] == [NARROW, *[torch.float32] * 3]
    for part, expected in zip(got, wanted, strict=True):
        assert torch.equal(part, expected)


@pytest.mark.parametrize(
    ("dtype", "mask"),
    [
        *((dtype, mask) for dtype in (torch.float16, torch.bfloat16, torch.float32) for mask in (None, BIAS, BIAS.half(), BIAS > 0.0)),
        (torch.float64, None),
        (torch.float64, BIAS > 0.0),
    ],
)
def test_what_is_cast_and_what_stays_is_as_in_torchs_own_function(dtype, mask):
    query, key, value = inputs(*[dtype] * 3)
    with autocast():
        wanted = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        got = attention(query, key, value, mask=mask)
    assert got.dtype == wanted.dtype == (dtype if dtype == torch.float64 else NARROW)
    assert torch.equal(got, wanted)


@pytest.mark.parametrize("kinds", [(torch.float64, torch.float32, torch.float16), (torch.float32, torch.float16, torch.bfloat16)])
@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_each_tensor_is_cast_before_the_common_dtype_is_found(backend, kinds):
    parts = inputs(*kinds)
    with autocast():
        got = attention(*parts, backend=backend)
    cast = [part if part.dtype == torch.float64 else part.to(NARROW) for part in parts]
    assert got.dtype == cast[0].dtype
    assert torch.equal(got, attention(*cast, backend=backend))


@pytest.mark.parametrize(("backend", "where"), [("auto", "inside"), ("eager", "around")])
def test_a_compiled_call_follows_the_same_rule(backend, where):
    torch.compiler.reset()

    def plain(*parts):
        return attention(*parts, mask=BIAS, is_causal=True, q_offset=6, backend=backend)

    def under_autocast(*parts):
        with autocast():
            return plain(*parts)

    compiled = torch.compile(under_autocast if where == "inside" else plain, backend="aot_eager", fullgraph=True)
    assert compiled(*inputs()).dtype == (NARROW if where == "inside" else torch.float32)

    def ours(*parts):
        with autocast(where == "around"):
            return compiled(*parts)

    (output, *gradients), (wanted, *expected) = (output_and_gradients(each, inputs()) for each in (ours, under_autocast))
    torch.testing.assert_close(output, wanted)
    for part, other in zip(gradients, expected, strict=True):  # torch compiles the backward pass for the autocast around the call
        torch.testing.assert_close(part, other, rtol=0, atol=2**-8 * other.abs().max().item())
