"""Linear attention: three forms against the definition as loops, with decay, normaliser, states and shared heads."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attn_course.reference import attention, elu_features, linear_attention, repeat_key_value
from tests.reference.support import EPS, assert_same, assert_untouched

FORMS = ("parallel", "recurrent", "chunked")


def loop_linear(query, key, value, log_decay=None, scale=1.0, phi=lambda x: x, normalize=False, state=None):
    """One sequence of the definition, entry by entry; returns outputs, S and z."""
    length, d_v = value.shape
    q, k = phi(query), phi(key)
    d_k = k.shape[1]
    s, z = (np.zeros((d_k, d_v)), np.zeros(d_k)) if state is None else (state[0].copy(), state[1].copy())
    outputs = np.zeros((length, d_v))
    for t in range(length):
        for a in range(d_k):
            kept = 1.0 if log_decay is None else np.exp(log_decay[t, a if log_decay.shape[1] > 1 else 0])
            z[a] = kept * z[a] + k[t, a]
            for f in range(d_v):
                s[a, f] = kept * s[a, f] + k[t, a] * value[t, f]
        mass = sum(z[a] * q[t, a] for a in range(d_k))
        for f in range(d_v):
            read = scale * sum(s[a, f] * q[t, a] for a in range(d_k))
            outputs[t, f] = read if not normalize else (read / mass if mass != 0 else 0.0)
    return outputs, s, z


def sequences(length, d_k=3, d_v=5, features=1, batch=(), seed=7):
    """Queries, keys, values, decays and a state to start from."""
    rng = np.random.default_rng(seed + length)
    shapes = ((length, d_k), (length, d_k), (length, d_v))
    query, key, value = (rng.normal(size=(*batch, *shape)) for shape in shapes)
    log_decay = None if features == 0 else -rng.exponential(0.3, size=(*batch, length, features))
    return query, key, value, log_decay, (rng.normal(size=(*batch, d_k, d_v)), rng.random(size=(*batch, d_k)) + 0.5)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("features", [0, 1, 3])
@pytest.mark.parametrize("normalize", [False, True])
def test_all_forms_are_the_definition_from_any_state_with_any_decay(length, features, normalize):
    query, key, value, log_decay, state = sequences(length, features=features)
    phi = elu_features if normalize else None
    options = {"log_decay": log_decay, "scale": 0.7, "normalize": normalize, "feature_map": phi, "return_state": True}
    wanted, s, z = loop_linear(query, key, value, log_decay, 0.7, phi or (lambda x: x), normalize, state)
    for form in FORMS:
        output, after = linear_attention(query, key, value, **options, form=form, initial_state=state if normalize else state[0])
        assert_same(output, wanted, 1e-10)
        after_s, after_z = after if normalize else (after, z)
        assert_same(after_s, s, 1e-10)
        assert_same(after_z, z, 1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("cut", [0, 1, 17, 64, 70])
def test_two_parts_with_a_carried_state_are_one_pass(form, normalize, cut):
    query, key, value, log_decay, _ = sequences(70, features=3, batch=(2,))
    options = {"form": form, "chunk": 16, "normalize": normalize, "feature_map": elu_features, "return_state": True}
    whole, end = linear_attention(query, key, value, log_decay=log_decay, **options)
    first, state = linear_attention(query[:, :cut], key[:, :cut], value[:, :cut], log_decay=log_decay[:, :cut], **options)
    rest = (x[:, cut:] for x in (query, key, value))
    second, last = linear_attention(*rest, log_decay=log_decay[:, cut:], **options, initial_state=state)
    assert_same(np.concatenate([first, second], axis=1), whole, 1e-11)
    for got, wanted in zip(last if normalize else (last,), end if normalize else (end,), strict=True):
        assert_same(got, wanted, 1e-11)


@given(st.integers(1, 90), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_the_size_of_a_chunk_does_not_matter(chunk, length, seed):
    query, key, value, log_decay, state = sequences(length, features=3, seed=seed % 1000)
    options = {"log_decay": log_decay, "initial_state": state[0]}
    recurrent = linear_attention(query, key, value, form="recurrent", **options)
    assert_same(linear_attention(query, key, value, form="chunked", chunk=chunk, **options), recurrent, 1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [1, 3])
def test_violent_decay_neither_overflows_nor_cancels(form, features):
    query, key, value, log_decay, state = sequences(65, features=features)
    log_decay = log_decay * 1e4
    log_decay[7], log_decay[20:23] = -np.inf, 0.0  # forget everything, keep everything
    wanted, s, _ = loop_linear(query, key, value, log_decay, state=state)
    output, after = linear_attention(query, key, value, log_decay=log_decay, form=form, initial_state=state[0], return_state=True)
    assert_same(output, wanted, 1e-12)
    assert_same(after, s, 1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_shared_heads_are_repeated_and_have_one_state_each(form, kv_heads):
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(2, 6, 9, 3)), rng.normal(size=(2, kv_heads, 9, 3)), rng.normal(size=(2, kv_heads, 9, 5))
    log_decay, state = -rng.random(size=(2, kv_heads, 9, 1)), rng.normal(size=(2, kv_heads, 3, 5))
    options = {"log_decay": log_decay, "initial_state": state, "return_state": True, "form": form, "chunk": 4}
    output, after = linear_attention(query, key, value, enable_gqa=True, **options)
    assert after.shape == (2, kv_heads, 3, 5)
    for b, h in np.ndindex(2, 6):
        r = h // (6 // kv_heads)
        wanted, s, _ = loop_linear(query[b, h], key[b, r], value[b, r], log_decay[b, r], state=(state[b, r], np.zeros(3)))
        assert_same(output[b, h], wanted, 1e-12)
        assert_same(after[b, r], s, 1e-12)


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


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_broadcast(form):
    rng = np.random.default_rng(7)
    query, key, value = rng.normal(size=(2, 1, 7, 3)), rng.normal(size=(4, 7, 3)), rng.normal(size=(1, 7, 5))
    log_decay, state = -rng.random(size=(7, 3)), rng.normal(size=(4, 3, 5))
    output, after = linear_attention(query, key, value, log_decay=log_decay, initial_state=state, form=form, return_state=True)
    assert after.shape == (2, 4, 3, 5)
    for a, b in np.ndindex(2, 4):
        wanted, s, _ = loop_linear(query[a, 0], key[b], value[0], log_decay, state=(state[b], np.zeros(3)))
        assert_same(output[a, b], wanted, 1e-12)
        assert_same(after[a, b], s, 1e-12)


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


def test_the_last_causal_query_reads_what_every_query_reads_without_causality():
    query, key, value, _, _ = sequences(9)
    causal = linear_attention(query, key, value, feature_map=elu_features, normalize=True)
    assert_same(linear_attention(query, key, value, feature_map=elu_features, normalize=True, is_causal=False)[-1], causal[-1])


def test_with_one_feature_for_every_token_the_normalised_form_is_an_average():
    query, key, value, _, _ = sequences(7)
    averages = np.array([value[: t + 1].mean(axis=0) for t in range(7)])
    assert_same(linear_attention(query, key, value, feature_map=np.ones_like, normalize=True), averages)
    assert_same(averages, attention(query * 0, key, value, is_causal=True))


# --- scale and normaliser ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_scale_multiplies_the_output_and_not_the_state(form):
    query, key, value, log_decay, _ = sequences(9)
    once, state = linear_attention(query, key, value, log_decay=log_decay, form=form, return_state=True)
    scaled, same = linear_attention(query, key, value, log_decay=log_decay, form=form, scale=-2.5, return_state=True)
    assert_same(scaled, -2.5 * once)
    np.testing.assert_array_equal(same, state)


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
def test_the_present_key_belongs_to_the_normaliser(form):
    output = linear_attention(np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), 3.0), feature_map=np.exp, normalize=True, form=form)
    np.testing.assert_allclose(output, [[3.0]], rtol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_features_may_be_more_than_d_k_and_decay_each_for_itself(form):
    def both_signs(x):
        return np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)], axis=-1)

    query, key, value, log_decay, _ = sequences(9, features=6)
    wanted, s, _ = loop_linear(query, key, value, log_decay, phi=both_signs)
    output, state = linear_attention(query, key, value, feature_map=both_signs, log_decay=log_decay, form=form, return_state=True)
    assert_same(output, wanted)
    assert_same(state, s)


def test_only_the_parallel_form_holds_a_number_for_each_pair_of_positions():
    query, key, value, _, _ = sequences(1000)
    peaks = {}
    for form in FORMS:
        tracemalloc.start()
        linear_attention(query, key, value, form=form, chunk=10)
        peaks[form] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks["parallel"] > 8 * 1000**2
    assert peaks["recurrent"] < 8 * 1000**2 / 20
    assert peaks["chunked"] < 8 * 1000**2 / 20


# --- causality, dtypes, memory -----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [0, 1, 3])
def test_what_the_future_holds_does_not_matter_not_even_nan(form, features):
    query, key, value, log_decay, _ = sequences(9, features=features)
    before = linear_attention(query, key, value, log_decay=log_decay, form=form, chunk=5)
    key[7, 1], value[7, 2], value[8] = np.nan, np.inf, np.nan
    after = linear_attention(query, key, value, log_decay=log_decay, form=form, chunk=5)
    np.testing.assert_allclose(after[:7], before[:7], rtol=1e-13)
    assert np.isnan(after[7:]).any(axis=-1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", EPS)
def test_dtypes_are_kept_and_arithmetic_is_wide(form, dtype):
    query, key, value, log_decay, state = (x.astype(dtype) for x in (*sequences(20)[:4], sequences(20)[4][0]))
    wide = [x.astype(float) for x in (query, key, value, log_decay, state)]
    options = {"log_decay": log_decay, "initial_state": state, "form": form, "return_state": True}
    output, after = assert_untouched(linear_attention, query, key, value, **options)
    wanted, s, _ = loop_linear(*wide[:4], state=(wide[4], np.zeros(3)))
    assert_same(output, wanted, 16 * EPS[dtype], dtype)
    assert_same(after, s, 16 * EPS[dtype], dtype)


def test_a_state_keeps_the_wider_of_its_own_dtype_and_that_of_the_arrays():
    arrays = [x.astype(np.float16) for x in sequences(5)[:3]]
    assert linear_attention(*arrays, return_state=True)[1].dtype == np.float16
    output, state = linear_attention(*arrays, return_state=True, initial_state=np.zeros((3, 5), np.float32))
    assert (output.dtype, state.dtype) == (np.float16, np.float32)


def test_a_float16_result_that_is_too_large_is_infinite_without_a_warning():
    ones = np.full((4, 1), 200.0, np.float16)
    np.testing.assert_array_equal(np.isinf(linear_attention(ones, ones, ones)).ravel(), True)


@pytest.mark.usefixtures("no_shape_check")
class TestErrors:
    @pytest.mark.parametrize(
        ("changed", "error", "message"),
        [
            ({"query": [[1.0]]}, TypeError, "query must be an ndarray of floats; got list"),
            ({"value": np.zeros((5, 4), int)}, TypeError, "value must be an ndarray of floats; got int64 ndarray"),
            ({"key": np.zeros(3)}, ValueError, "key must have the axes (..., len, features); got shape (3,)"),
            ({"key": np.zeros((5, 2))}, ValueError, "query and key must share d_k, the last axis; got 3 and 2"),
            ({"query": np.zeros((6, 3))}, ValueError, "query and key must share len, the axis before the last; got 6 and 5"),
            ({"value": np.zeros((6, 4))}, ValueError, "value and key must share len, the axis before the last; got 6 and 5"),
            ({"log_decay": np.zeros((6, 1))}, ValueError, "log_decay and key must share len, the axis before the last; got 6 and 5"),
            ({"log_decay": np.zeros((5, 2))}, ValueError, "log_decay must have 1 or d_k = 3 features, the last axis; got 2"),
            ({"log_decay": np.full((5, 1), 0.25)}, ValueError, "log_decay must be at most 0 everywhere; got 0.25"),
            ({"log_decay": np.full((5, 1), np.nan)}, ValueError, "log_decay must be at most 0 everywhere; got nan"),
            ({"log_decay": -1.0}, TypeError, "log_decay must be an ndarray of floats; got float"),
            ({"form": "serial"}, ValueError, "form must be one of 'parallel', 'recurrent', 'chunked'; got 'serial'"),
            ({"chunk": 0}, ValueError, "chunk must be 1 or more; got 0"),
            ({"chunk": 8.0}, TypeError, "chunk must be an integer; got float 8.0"),
            ({"scale": None}, TypeError, "scale must be a number; got NoneType"),
            ({"scale": np.inf}, ValueError, "scale must be finite; got inf"),
            ({"is_causal": 1}, TypeError, "is_causal must be True or False; got int"),
            ({"normalize": True}, ValueError, "normalize needs a feature_map; got None"),
            ({"feature_map": "elu"}, TypeError, "feature_map must be callable or None; got str"),
            (
                {"feature_map": lambda x: x[:1]},
                ValueError,
                "feature_map must return an ndarray of floats, (5, 'd_phi') for the query; got float64 ndarray of shape (1, 3)",
            ),
            (
                {"feature_map": lambda x: x > 0},
                ValueError,
                "feature_map must return an ndarray of floats, (5, 'd_phi') for the query; got bool ndarray of shape (5, 3)",
            ),
            (
                {"feature_map": np.exp, "normalize": True, "initial_state": np.zeros((3, 4))},
                TypeError,
                "initial_state must be a pair (S, z) with normalize; got float64 ndarray",
            ),
            (
                {"feature_map": np.exp, "normalize": True, "initial_state": (np.zeros((3, 4)), np.zeros(4))},
                ValueError,
                "initial_state[1] must have shape (3,), or broadcast to it; got (4,)",
            ),
            ({"initial_state": np.zeros((4, 3))}, ValueError, "initial_state must have shape (3, 4), or broadcast to it; got (4, 3)"),
            ({"initial_state": np.zeros((1, 4))}, ValueError, "initial_state must have shape (3, 4), or broadcast to it; got (1, 4)"),
            ({"initial_state": np.zeros((2, 3, 4))}, ValueError, "initial_state must have shape (3, 4), or broadcast to it; got (2, 3, 4)"),
            ({"initial_state": (0.0,)}, TypeError, "initial_state must be an ndarray of floats; got tuple"),
            ({"enable_gqa": True}, ValueError, "query must have the axes (..., heads, len, features); got shape (5, 3)"),
        ],
    )
    def test_a_malformed_call(self, changed, error, message):
        call = {"query": np.zeros((5, 3)), "key": np.zeros((5, 3)), "value": np.zeros((5, 4))} | changed
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            linear_attention(**call)

    @pytest.mark.parametrize(
        ("name", "option"),
        [("form", "chunked"), ("log_decay", np.zeros((5, 1))), ("initial_state", np.zeros((3, 4))), ("return_state", True)],
    )
    def test_what_makes_no_sense_without_causality(self, name, option):
        with pytest.raises(ValueError, match=rf'^is_causal=False allows form="parallel" only, without decay and states; got {name}$'):
            linear_attention(np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((5, 4)), is_causal=False, **{name: option})

    @pytest.mark.parametrize(
        ("kv_heads", "decay_heads", "message"),
        [
            (4, 4, "query must have a multiple of the key's heads, axis -3; got 6 and 4"),
            (3, 2, "log_decay must have the key's 3 heads, axis -3, or 1; got 2"),
            (3, 6, "log_decay must have the key's 3 heads, axis -3, or 1; got 6"),
        ],
    )
    def test_heads_that_do_not_fit(self, kv_heads, decay_heads, message):
        query, key = np.zeros((6, 5, 3)), np.zeros((kv_heads, 5, 3))
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            linear_attention(query, key, key, log_decay=np.zeros((decay_heads, 5, 1)), enable_gqa=True)

    def test_leading_axes_that_do_not_broadcast(self):
        message = "leading axes must broadcast; got query (2,), key (3,), value (3,)"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            linear_attention(np.zeros((2, 5, 3)), np.zeros((3, 5, 3)), np.zeros((3, 5, 3)))
