"""Scores of every kind against loops over pairs, and what each of them does not see."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import additive_scores, cosine_scores, dot_scores, gaussian_scores, scaled_dot_scores
from tests.reference.oracles import element
from tests.reference.support import EPS, assert_same, sub_shape


def dot(a, b):
    return math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def cosine(a, b):
    lengths = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / lengths if lengths else 0.0


def gaussian(a, b, bandwidth=0.7):
    return -math.fsum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)) / (2 * bandwidth**2)


# name: (function of query and key, score of one pair)
KINDS = {
    "dot": (dot_scores, dot),
    "scaled": (scaled_dot_scores, lambda a, b: dot(a, b) / math.sqrt(len(a))),
    "scaled by 0.3": (lambda q, k: scaled_dot_scores(q, k, 0.3), lambda a, b: 0.3 * dot(a, b)),
    "cosine": (cosine_scores, cosine),
    "gaussian": (lambda q, k: gaussian_scores(q, k, 0.7), gaussian),
}


def over_pairs(query, key, score):
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    scores = np.zeros((*batch, query.shape[-2], key.shape[-2]))
    for index in np.ndindex(*scores.shape):
        scores[index] = score(element(query, index[:-2], 2)[index[-2]], element(key, index[:-2], 2)[index[-1]])
    return scores


@st.composite
def pairs(draw, dtypes=("float64",)):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=2)))
    lengths, dtype = st.sampled_from([0, 1, 2, 5]), st.sampled_from(dtypes)
    d_k = draw(st.sampled_from([1, 2, 7]))
    spread = draw(st.sampled_from([0.0, 1.0, 10.0]))
    query, key = ((rng.normal(size=(*sub_shape(draw, batch), draw(lengths), d_k)) * size).astype(draw(dtype)) for size in (spread, 1.0))
    return query, key


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(inputs=pairs(("float16", "float32", "float64")))
def test_scores_have_the_common_dtype_and_are_computed_in_float32_or_wider(kind, inputs):
    function, score = KINDS[kind]
    dtype = np.result_type(*inputs)
    wide = "float32" if dtype == "float16" else dtype.name
    assert_same(function(*inputs), over_pairs(*inputs, score), EPS[dtype.name] + 30 * EPS[wide], dtype)


@settings(max_examples=30)
@given(pairs(), st.sampled_from([0, 1, 3]), st.sampled_from([0, 1, 5]), st.integers(0, 2**32 - 1))
def test_additive_scores_are_a_network_with_one_hidden_layer_for_each_pair(inputs, d_q, d_hidden, seed):
    query, key = inputs
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(*query.shape[:-1], d_q))  # d_q and d_k may differ
    w_query, w_key, w_score = rng.normal(size=(d_q, d_hidden)), rng.normal(size=(key.shape[-1], d_hidden)), rng.normal(size=d_hidden)

    def score(a, b):
        hidden = [math.tanh(dot(a, w_query[:, h]) + dot(b, w_key[:, h])) for h in range(d_hidden)]
        return math.fsum(w * x for w, x in zip(w_score, hidden, strict=True))

    got = additive_scores(query, key, w_query, w_key, w_score)
    assert_same(got, over_pairs(query, key, score))
    assert (np.abs(got) <= np.abs(w_score).sum() + 1e-12).all()


def test_a_cosine_never_leaves_its_interval():
    many = np.random.default_rng(7).normal(size=(200, 3)).astype(np.float32)
    assert np.abs(cosine_scores(many, many * 3)).max() <= 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cosine_ignores_lengths_however_large_or_small(dtype):
    rng = np.random.default_rng(7)
    query, key = rng.normal(size=(3, 5)).astype(dtype), rng.normal(size=(4, 5)).astype(dtype)
    wanted = cosine_scores(query, key)
    limits = np.finfo(dtype)
    for factor in (limits.max / 10, limits.tiny * 100):
        assert_same(cosine_scores(query * np.dtype(dtype).type(factor), key), wanted, 1e-5 if dtype == "float32" else 1e-12, dtype)


def test_a_zero_vector_has_cosine_zero_with_everything_and_smallest_numbers_have_a_direction():
    assert_same(cosine_scores(np.zeros((1, 2)), np.array([[1.0, 2.0], [0.0, 0.0]])), [[0.0, 0.0]])
    assert_same(cosine_scores(np.array([[5e-324, 0.0]]), np.array([[0.0, 5e-324], [5e-324, 0.0]])), [[0.0, 1.0]])


def test_gaussian_scores_of_close_vectors_far_from_zero_keep_their_digits():
    query, key = np.array([[1e8]]), np.array([[1e8 + 0.5]])
    assert_same(gaussian_scores(query, key, 1.0), [[-0.125]])


@pytest.mark.parametrize("bandwidth", [1e-300, 5e-324, 1e300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_extreme_bandwidth_gives_zero_or_minus_infinity_without_a_warning(bandwidth, dtype):
    scores = gaussian_scores(np.array([[1.0]], dtype), np.array([[1.0], [3.0]], dtype), bandwidth)
    assert_same(scores, [[0.0, -np.inf if bandwidth < 1 else 0.0]], dtype=dtype)


@pytest.mark.parametrize("kind", [*KINDS, "additive"])
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e300])
def test_nan_infinity_and_overflow_in_one_key_stay_in_its_column_without_a_warning(kind, poison):
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=2)
    function = KINDS[kind][0] if kind in KINDS else lambda q, k: additive_scores(q, k, *weights)
    query, key = rng.normal(size=(5, 3)) * 1e9, rng.normal(size=(4, 3))
    wanted = function(query, key)
    key[2, :2] = poison
    got = function(query, key)
    assert_same(np.delete(got, 2, axis=1), np.delete(wanted, 2, axis=1))
    if np.isnan(poison):
        assert np.isnan(got[:, 2]).all()


@pytest.mark.parametrize("kind", ["dot", "additive"])
def test_a_float16_score_beyond_65504_is_infinite_without_a_warning(kind):
    big, one = np.full((1, 4), 60_000.0, np.float16), np.ones((1, 4), np.float16)
    weights = np.ones((4, 2), np.float16), np.ones((4, 2), np.float16), np.full(2, 60_000.0, np.float16)
    got = dot_scores(big, one) if kind == "dot" else additive_scores(big, one, *weights)
    assert_same(got, [[np.inf]], dtype="float16")
