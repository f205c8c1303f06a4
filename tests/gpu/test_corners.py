"""Where attention could break: nothing to attend to, NaN and infinity behind a mask, offsets beyond any length."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course import reference
from attn_course.gpu import attention
from attn_course.gpu.call import validate
from tests.gpu.support import assert_close, gradients, supports, tensors, torch_options
from tests.reference.support import attention_arrays, attention_calls
from tests.reference.test_attention_properties import poisoned

BACKENDS = ["eager", "sdpa"]
BLIND = [
    {"is_causal": True, "q_offset": -5},
    {"window": (0, 0), "q_offset": 11},
    {"mask": np.zeros((1, 1), bool)},
    {"mask": np.full((5, 1), -np.inf)},
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", BLIND)
def test_queries_that_see_nothing_get_zeros_and_pass_no_gradient_on(backend, options):
    arrays = attention_arrays()
    output = attention(*tensors(*arrays), **torch_options(options), backend=backend)
    assert_close(output, np.zeros((2, 3, 5, 13)))
    for part in gradients(arrays, options, np.ones((2, 3, 5, 13)), backend=backend):
        np.testing.assert_array_equal(part, 0.0)
    arrays[1][..., 0], arrays[2][..., 3, :] = math.nan, math.inf  # whatever keys and values hold, without a guard
    assert not attention(*tensors(*arrays), **torch_options(options), backend=backend).any()
    np.testing.assert_array_equal(gradients(arrays, options, np.ones((2, 3, 5, 13)), backend=backend)[0], 0.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "rule", [{"mask": None}, {"is_causal": True, "q_offset": 2}, {"window": (3, 0), "q_offset": 2}, {"is_causal": True}]
)
def test_what_keys_hold_that_nobody_sees_changes_neither_output_nor_gradients(backend, poison, rule):
    arrays = attention_arrays()
    rule = {"mask": np.arange(11) < np.full((5, 1), 8)} if "mask" in rule else rule
    rule = {**rule, "guard_non_finite": backend == "sdpa"}  # the others hold without being asked
    spoilt = [array.copy() for array in arrays]
    spoilt[1][..., 8:, :], spoilt[2][..., 8:, 0] = poison, poison
    wanted, got = (attention(*tensors(*inputs), **torch_options(rule), backend=backend) for inputs in (arrays, spoilt))
    assert_close(got, wanted.numpy(), 1e-14)
    d_output = np.random.default_rng(3).normal(size=got.shape)
    clean, dirty = (gradients(inputs, rule, d_output, backend=backend) for inputs in (arrays, spoilt))
    for part, expected in zip(dirty, clean, strict=True):
        assert_close(part, expected, 1e-14)


@settings(max_examples=100)
@given(attention_calls(lengths=(1, 2, 3, 5)), st.sampled_from([np.nan, np.inf, -np.inf]), st.sampled_from(BACKENDS))
def test_nan_and_infinity_spoil_only_the_queries_that_see_them(call, bad, backend):
    (arrays, options), (spoilt, clean) = call, poisoned(call, bad)
    if not supports(backend, arrays, options):
        return
    options = {**options, "guard_non_finite": backend == "sdpa"}
    wanted, got = (attention(*tensors(*inputs), **torch_options(options), backend=backend) for inputs in (arrays, spoilt))
    assert_close(got[torch.from_numpy(clean)], wanted.numpy()[clean])
    d_output = clean[..., None] * np.ones(got.shape)  # no loss on what is spoilt
    expected = gradients(arrays, options, d_output, backend=backend)[0]
    d_query = gradients(spoilt, options, d_output, backend=backend)[0]
    if arrays[0].shape[:-1] == clean.shape:  # no axis of the query was broadcast: its gradients are its own
        assert_close(d_query[clean], expected[clean])


@settings(max_examples=60)
@given(attention_calls(lengths=(1, 2, 3, 5)), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_eager_gives_what_the_reference_gives_where_nan_and_infinity_are_seen(call, bad):
    (_, options), (spoilt, _) = call, poisoned(call, bad)
    got = attention(*tensors(*spoilt), **torch_options(options), return_weights=True, return_lse=True, backend="eager")
    wanted = reference.attention(*spoilt, **options, return_weights=True, return_lse=True)
    for part, expected in zip(got, wanted, strict=True):
        assert_close(part, expected)


def test_a_loss_that_is_nan_has_gradients_that_are_nan():
    query, key, value = (part.requires_grad_() for part in tensors(*attention_arrays(batch=())))
    with torch.no_grad():
        value[0] = math.nan
    for backend in BACKENDS:
        (d_query,) = torch.autograd.grad(attention(query, key, value, is_causal=True, backend=backend).square().sum(), query)
        assert d_query.isnan().any()


@pytest.mark.parametrize("far", [2**31, 2**63 - 1, 2**70])
def test_offsets_and_sides_beyond_any_length_open_or_close_everything(far):
    inputs = tensors(*attention_arrays())
    everything = attention(*inputs)
    assert torch.equal(attention(*inputs, is_causal=True, q_offset=far), everything)
    assert torch.equal(attention(*inputs, window=(far, far)), everything)
    assert not attention(*inputs, window=(0, 0), q_offset=-far).any()
    assert not attention(*inputs, is_causal=True, q_offset=-far).any()
    assert not attention(*inputs, window=(far, 0), q_offset=2 * far).any()


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_offsets_may_be_integers_of_any_kind(kind):
    arrays, offset = attention_arrays(), [[6], [2]]
    got = attention(*tensors(*arrays), is_causal=True, q_offset=torch.tensor(offset, dtype=kind), window=(9, 0))
    assert_close(got, reference.attention(*arrays, is_causal=True, q_offset=np.array(offset), window=(9, 0)))


@pytest.mark.parametrize(("q_offset", "window"), [(10, None), (12, (30, None)), (10, (None, 0)), (0, (4, 10))])
def test_rules_that_hide_nothing_make_no_mask(q_offset, window):
    call = validate(*tensors(*attention_arrays()), is_causal=q_offset > 0, q_offset=q_offset, window=window)
    assert call.allowed_pairs() is None


def test_infinite_scores_and_biases_make_their_row_nan_and_no_other():
    query, key, value = (torch.tensor(rows, dtype=torch.float64) for rows in ([[1e200], [1.0]], [[1e200], [0.0]], [[1.0], [1.0]]))
    output, lse = attention(query, key, value, return_lse=True)
    assert output[:, 0].isnan().tolist() == lse.isnan().tolist() == [True, False]
    assert_close(attention(query, key, value, softcap=5.0), np.ones((2, 1)))  # a cap bounds infinity too
    bias = torch.tensor([[0.0, 0.0], [math.inf, 0.0]], dtype=torch.float64)
    for backend in BACKENDS:
        assert attention(query[1:].expand(2, 1), key, value, mask=bias, backend=backend)[:, 0].isnan().tolist() == [False, True]


def test_the_lse_of_a_row_of_huge_scores_has_the_weights_as_its_gradient():
    mask = torch.full((1, 4), torch.finfo(torch.float32).min).requires_grad_()
    lse = attention(torch.ones(1, 1), torch.ones(4, 1), torch.ones(4, 1), mask=mask, return_lse=True, backend="eager")[1]
    (d_mask,) = torch.autograd.grad(lse.sum(), mask)
    assert d_mask.tolist() == [[0.25] * 4]


@pytest.mark.parametrize("softcap", [1e-300, 1e-45])
def test_a_tiny_cap_makes_all_scores_equal(softcap):
    query, key, value = (part.float() for part in tensors(*attention_arrays()))
    key[..., 0, :] = 0.0  # 0 / 0 if the cap were rounded to 0
    weights = attention(query, key, value, softcap=softcap, return_weights=True)[1]
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 11))


@pytest.mark.parametrize(("q_len", "kv_len", "d_v"), [(0, 11, 13), (5, 0, 13), (5, 11, 0), (0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_lengths_of_zero_give_empty_or_zero_results_with_gradients(q_len, kv_len, d_v):
    parts = [part.requires_grad_() for part in tensors(*attention_arrays(q_len=q_len, kv_len=kv_len, d_v=d_v))]
    output, weights, lse = attention(*parts, is_causal=True, return_weights=True, return_lse=True)
    assert (output.shape, weights.shape, lse.shape) == ((2, 3, q_len, d_v), (2, 3, q_len, kv_len), (2, 3, q_len))
    assert not output.any()
    for part, d_part in zip(parts, torch.autograd.grad(attention(*parts).sum(), parts), strict=True):
        assert d_part.shape == part.shape
        assert not d_part.any()


def test_inputs_are_never_written_to():
    arrays = attention_arrays()
    mask = np.where(np.random.default_rng(1).random((5, 11)) < 0.7, 0.5, -np.inf)
    for backend in BACKENDS:
        inputs, given_mask = tensors(*arrays), torch.from_numpy(mask.copy())
        attention(*inputs, mask=given_mask, is_causal=True, backend=backend)
        for part, array in zip((*inputs, given_mask), (*arrays, mask), strict=True):
            np.testing.assert_array_equal(part.numpy(), array)
