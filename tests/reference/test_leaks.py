"""The leak test finds every leak we know how to make, and none in an honest layer."""

import numpy as np
import pytest

from attn_course.reference import causal_mask, leak_matrix
from tests.reference.support import assert_untouched

LENGTH, D_MODEL = 7, 3
CAUSAL = causal_mask(LENGTH, LENGTH)
FUTURE = ~CAUSAL
X = np.random.default_rng(7).normal(size=(LENGTH, D_MODEL))
W_QUERY, W_KEY, W_VALUE = np.random.default_rng(8).normal(size=(3, D_MODEL, 5))


def weights_of(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum(axis=axis, keepdims=True)


def layer(put_on):
    def run(x):
        return put_on((x @ W_QUERY) @ (x @ W_KEY).T / np.sqrt(5)) @ (x @ W_VALUE)

    return run


HONEST = layer(lambda scores: weights_of(np.where(CAUSAL, scores, -np.inf)))
LEAKS = {
    "no mask": weights_of,
    "transposed": lambda scores: weights_of(np.where(CAUSAL.T, scores, -np.inf)),
    "one column too wide": lambda scores: weights_of(np.where(np.tri(LENGTH, k=1) > 0, scores, -np.inf)),
    "added as zeros and ones": lambda scores: weights_of(scores + CAUSAL),
    "after the softmax": lambda scores: weights_of(scores) * CAUSAL,
    "softmax over the queries": lambda scores: weights_of(np.where(CAUSAL, scores, -np.inf), axis=0),
    "scores multiplied": lambda scores: weights_of(scores * CAUSAL),
}


def test_a_causal_layer_has_no_influence_from_the_future_and_some_from_everywhere_else():
    influence = leak_matrix(HONEST, X)
    assert influence.shape == (LENGTH, LENGTH)
    assert (influence[FUTURE] == 0.0).all()
    assert (influence[CAUSAL] > 1e-3).all()


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_every_leak_is_found_in_its_own_places(name, size):
    influence = leak_matrix(layer(LEAKS[name]), X, size=size)
    found = influence[FUTURE] > 1e-9
    if name == "one column too wide":
        assert found.sum() == LENGTH - 1
        assert (np.diagonal(influence, offset=1) > 1e-6).all()
    else:
        assert found.all()


def test_a_linear_layer_shows_its_own_matrix():
    mixing = np.random.default_rng(9).normal(size=(5, LENGTH))
    steps = 0.5 * np.random.default_rng(4).normal(size=X.shape)
    expected = np.abs(mixing) * np.abs(steps).max(axis=1)
    np.testing.assert_allclose(leak_matrix(lambda x: mixing @ x, X, size=0.5, seed=4), expected, rtol=1e-9)


def test_a_change_that_is_no_number_counts_as_infinite_and_one_that_was_there_before_as_none():
    poisoned = leak_matrix(lambda x: np.where(np.arange(LENGTH)[:, None] == 2, np.nan if x[3, 0] != X[3, 0] else 0.0, 1.0), X)
    assert poisoned[2, 3] == np.inf
    assert poisoned.sum() == np.inf
    assert np.isfinite(np.delete(poisoned.ravel(), 2 * LENGTH + 3)).all()
    assert (leak_matrix(lambda x: np.full((2, 3), np.nan), X) == 0.0).all()


def test_float32_stays_float32_and_the_input_stays_as_it_is():
    seen = []

    def spoil(x):
        seen.append(x.dtype)
        result = x[::-1].copy()
        x[:] = 0.0
        return result

    x = X.astype(np.float32)
    assert_untouched(lambda array: leak_matrix(spoil, array), x)
    assert set(seen) == {np.dtype(np.float32)}
