"""Every backend means what the reference means: outputs, weights, lse and gradients in float64, over any mix of options."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attn_course import reference
from attn_course.gpu import attention
from tests.gpu.support import assert_close, gradients, supports, tensors, torch_options
from tests.reference.support import attention_arrays, attention_calls


def fit_for_sdpa(call):
    """Leave out of a drawn call what torch's function cannot express, so that few draws are lost."""
    arrays, options = call
    options = {name: one for name, one in options.items() if name != "softcap"}
    if options.get("scale", 1.0) <= 0.0:
        options["scale"] = 0.3
    assume(supports("sdpa", arrays, options))
    return arrays, options


def assert_agrees(backend, call, *, guard=False):
    """Assert that output and gradients are those of the reference, and for eager also weights and log-sum-exp."""
    arrays, options = call
    asked = {"return_weights": True, "return_lse": True} if backend == "eager" else {}
    got = attention(*tensors(*arrays), **torch_options(options), **asked, guard_non_finite=guard, backend=backend)
    wanted = reference.attention(*arrays, **options, return_weights=True, return_lse=True)
    for part, expected in zip(got, wanted, strict=True) if asked else [(got, wanted[0])]:
        assert_close(part, expected)
    rng = np.random.default_rng(3)
    d_output, d_lse = rng.normal(size=wanted[0].shape), rng.normal(size=wanted[2].shape) if asked else None
    with_mask = "mask" in options and options["mask"].dtype != bool
    got = gradients(arrays, {**options, "guard_non_finite": guard}, d_output, d_lse=d_lse, with_mask=with_mask, backend=backend)
    wanted = reference.attention_backward(*arrays, d_output, d_lse=d_lse, return_d_mask=with_mask, **options)
    for part, expected in zip(got, wanted, strict=True):
        assert_close(part, expected)


@settings(max_examples=150)
@given(attention_calls())
def test_eager_gives_output_weights_lse_and_gradients_of_the_reference(call):
    assert_agrees("eager", call)


@settings(max_examples=150)
@given(attention_calls(lengths=(1, 2, 3, 5, 7)), st.booleans())
def test_sdpa_gives_the_output_and_the_gradients_of_the_reference(call, guard):
    assert_agrees("sdpa", fit_for_sdpa(call), guard=guard)


@pytest.mark.parametrize(
    "options",
    [
        {"is_causal": True, "softcap": 2.0},
        {"window": (2, 0), "q_offset": 1, "scale": -0.7},
        {"mask": torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()},
    ],
)
def test_first_and_second_derivatives_are_those_of_finite_differences(options):
    query, key, value = tensors(*attention_arrays(batch=(2,), q_len=3, kv_len=2, d_k=5, d_v=3))
    parts = [part.requires_grad_() for part in (query, key, value)] + ([options["mask"]] if "mask" in options else [])

    def function(query, key, value, *mask):
        again = {**options, **({"mask": mask[0]} if mask else {})}
        return attention(query, key, value, **again, return_weights=True, return_lse=True, backend="eager")

    assert torch.autograd.gradcheck(function, parts)
    assert torch.autograd.gradgradcheck(function, parts)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("bfloat16", 1.6e-2), ("float32", 2e-6)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"window": (3, 1)}, {"mask": torch.arange(11) < 8}])
def test_narrow_numbers_come_back_in_their_dtype_with_small_errors(backend, dtype, tolerance, options):
    narrow = [part.to(getattr(torch, dtype)).requires_grad_() for part in tensors(*attention_arrays())]
    wide = [part.detach().double().requires_grad_() for part in narrow]
    options = {name: one[None] if name == "mask" else one for name, one in options.items()}
    output, wanted = attention(*narrow, **options, backend=backend), attention(*wide, **options, backend="eager")
    assert output.dtype == narrow[0].dtype
    assert_close(output.double(), wanted.detach().numpy(), tolerance)
    for part, expected in zip(torch.autograd.grad(output.sum(), narrow), torch.autograd.grad(wanted.sum(), wide), strict=True):
        assert part.dtype == narrow[0].dtype
        assert_close(part.double(), expected.numpy(), 2 * tolerance)


def test_mixed_dtypes_give_the_common_one_and_lse_and_weights_follow_it():
    query, key, value = tensors(*attention_arrays())
    results = attention(query.half(), key.bfloat16(), value.half(), return_weights=True, return_lse=True)
    assert {result.dtype for result in results} == {torch.float32}
    assert attention(query.half(), key.half(), value.half(), return_lse=True)[1].dtype == torch.float16
    assert attention(query.half(), key, value.float(), backend="sdpa").dtype == torch.float64


def test_sums_are_taken_in_float32():
    query = torch.full((1, 8), 200.0, dtype=torch.float16)
    key = torch.stack([query[0], torch.zeros(8, dtype=torch.float16)])
    value = torch.tensor([[60_000.0], [-1.0]], dtype=torch.float16)
    assert attention(query, key, value, scale=1.0, backend="eager").item() == 60_000.0  # the score, 320 000, is no float16


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_the_offset_of_an_open_window_gives_the_output_its_axes(backend):
    query, key, value = np.ones((1, 2)), np.ones((3, 1, 2)), np.ones((3, 1, 2))
    options = {"window": (None, None), "q_offset": np.array([[-3], [4]])}
    wanted = reference.attention(query, key, value, **options)
    got = attention(*tensors(query, key, value), **torch_options(options), backend=backend)
    assert tuple(got.shape) == wanted.shape == (2, 3, 1, 2)
