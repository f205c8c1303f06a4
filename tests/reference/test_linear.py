"""Linear attention: its normaliser, its feature maps, and what it is without causality."""

import numpy as np
import pytest

from attn_course.reference import elu_features, linear_attention, repeat_key_value
from tests.reference.support import assert_same
from tests.reference.test_recurrences import loop_linear, sequences

FORMS = ("parallel", "recurrent", "chunked")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [0, 1, 64, 65])
@pytest.mark.parametrize("features", [0, 1, 3])
def test_every_form_divides_by_the_normaliser_of_the_definition(form, length, features):
    query, key, value, _, log_decay, state = sequences(length, features=features)
    start = state, np.random.default_rng(7).random(3) + 0.5
    options = {"log_decay": log_decay, "feature_map": elu_features, "normalize": True, "initial_state": start, "return_state": True}
    output, after = linear_attention(query, key, value, **options, scale=0.7, form=form)
    wanted, *states = loop_linear(query, key, value, log_decay, 0.7, start, elu_features, True)
    for got, part in zip((output, *after), (wanted, *states), strict=True):
        assert_same(got, part, 1e-10)
    half = length // 2
    parts = [
        (query[here], key[here], value[here], None if log_decay is None else log_decay[here]) for here in (slice(half), slice(half, None))
    ]
    options |= {"scale": 0.7, "form": form}
    for *arrays, decay in parts:  # in two parts, the pair of states carried on
        last, options["initial_state"] = linear_attention(*arrays, **options | {"log_decay": decay})
    for got, part in zip((last, *options["initial_state"]), (wanted[half:], *states), strict=True):
        assert_same(got, part, 1e-10)


def test_shared_heads_with_a_normaliser_have_one_pair_of_states_each():
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(4, 9, 3)), rng.normal(size=(2, 9, 3)), rng.normal(size=(2, 9, 5))
    options = {"feature_map": elu_features, "normalize": True, "return_state": True}
    output, (s, z) = linear_attention(query, key, value, enable_gqa=True, **options)
    plain, (s_all, z_all) = linear_attention(query, repeat_key_value(key, 2), repeat_key_value(value, 2), **options)
    assert_same(output, plain)
    assert_same(s, s_all[::2])
    assert_same(z, z_all[::2])
    again, _ = linear_attention(query, key, value, enable_gqa=True, initial_state=(s, z), **options)
    assert_same(again, linear_attention(query, *(repeat_key_value(x, 2) for x in (key, value)), initial_state=(s_all, z_all), **options)[0])


# --- not causal --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q_len", "kv_len"), [(5, 7), (7, 5), (0, 3), (3, 0), (1, 1)])
def test_without_causality_every_query_reads_every_key(q_len, kv_len):
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(2, q_len, 3)), rng.normal(size=(2, kv_len, 3)), rng.normal(size=(2, kv_len, 5))
    plain = linear_attention(query, key, value, is_causal=False, scale=0.3)
    normed = linear_attention(query, key, value, is_causal=False, scale=0.3, feature_map=elu_features, normalize=True)
    for b, i, f in np.ndindex(2, q_len, 5):
        products = [query[b, i] @ key[b, j] for j in range(kv_len)]
        weights = [elu_features(query[b, i]) @ elu_features(key[b, j]) for j in range(kv_len)]
        assert plain[b, i, f] == pytest.approx(0.3 * sum(p * value[b, j, f] for j, p in enumerate(products)), abs=1e-12)
        mean = sum(w * value[b, j, f] for j, w in enumerate(weights)) / sum(weights) if kv_len else 0.0
        assert normed[b, i, f] == pytest.approx(0.3 * mean, abs=1e-12)


# --- scale and normaliser ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_normaliser_of_zero_gives_zero_and_not_nan(form):
    def rectified(x):
        return np.maximum(x, 0.0)

    query, key = np.array([[1.0], [-1.0], [1.0], [1.0]]), np.array([[-1.0], [2.0], [-3.0], [2.0]])
    value = np.array([[5.0], [7.0], [9.0], [1.0]])
    output = linear_attention(query, key, value, feature_map=rectified, normalize=True, form=form, chunk=3)
    np.testing.assert_allclose(output.ravel(), [0.0, 0.0, 7.0, 4.0], rtol=1e-15)  # nothing written; query 0; one; the mean of 7 and 1


@pytest.mark.parametrize("form", FORMS)
def test_where_keys_cancel_in_the_normaliser_the_output_is_zero_whatever_the_state_holds(form):
    key, value = np.array([[1.0], [-1.0], [2.0]]), np.array([[5.0], [7.0], [1.0]])
    output, (s, z) = linear_attention(np.ones((3, 1)), key, value, feature_map=np.copy, normalize=True, form=form, return_state=True)
    np.testing.assert_allclose(output.ravel(), [5.0, 0.0, 0.0], rtol=1e-15)  # (5 - 7) / 0, then (5 - 7 + 2) / 2
    assert (s.item(), z.item()) == (0.0, 2.0)


@pytest.mark.parametrize("form", FORMS)
def test_features_may_be_more_than_d_k_and_decay_each_for_itself(form):
    def both_signs(x):
        return np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)], axis=-1)

    query, key, value, _, log_decay, _ = sequences(9, features=6)
    wanted, s, _ = loop_linear(query, key, value, log_decay, phi=both_signs)
    output, state = linear_attention(query, key, value, feature_map=both_signs, log_decay=log_decay, form=form, return_state=True)
    assert_same(output, wanted)
    assert_same(state, s)


# --- causality, dtypes, memory -----------------------------------------------------------------------


def test_a_state_keeps_the_wider_of_its_own_dtype_and_that_of_the_arrays():
    arrays = [x.astype(np.float16) for x in sequences(5)[:3]]
    assert linear_attention(*arrays, return_state=True)[1].dtype == np.float16
    output, state = linear_attention(*arrays, return_state=True, initial_state=np.zeros((3, 5), np.float32))
    assert (output.dtype, state.dtype) == (np.float16, np.float32)


def test_a_float16_result_that_is_too_large_is_infinite_without_a_warning():
    ones = np.full((4, 1), 200.0, np.float16)
    np.testing.assert_array_equal(np.isinf(linear_attention(ones, ones, ones)).ravel(), True)
