"""What the lesson on gradients takes as given is what it says."""

import numpy as np
import pytest

from attn_course.lessons.gradients import tasks_checking as given
from attn_course.reference import attention, attention_backward


def test_an_open_turn_is_filled_and_a_written_one_is_kept():
    assert given.or_ours(..., max) == (given.score_gradient, max)
    assert given.or_ours(min, ...) == (min, given.key_gradient)


def test_the_sentences_say_what_the_lesson_says_of_them():
    words = {(given.ENDINGS[ending], *(given.NOUNS[noun] for noun in pair)) for pair, ending in given.READ}
    pairs = [(animal, thing) for animal in ("cat", "dog") for thing in ("clock", "stone")]
    rare = {(ending, "dog", "stone") for ending in ("curious", "broken")}
    assert words == rare | {(ending, *pair) for ending in ("tired", "heavy") for pair in pairs}
    assert {(ending, noun) for pair, ending in given.READ for noun in pair}.isdisjoint(given.NEVER)


@pytest.mark.parametrize("key_step", [0, 1])
def test_pytorch_learns_what_the_backward_pass_of_one_sentence_after_the_other_learns(key_step):
    queries, keys = np.zeros((4, 4)), np.eye(4)
    for pair, ending in 50 * given.READ:
        value = np.eye(2)[:, [given.RIGHT[ending]]]
        d_output = -1 / attention(queries[[ending]], keys[pair], value)
        d_query, d_key, _ = attention_backward(queries[[ending]], keys[pair], value, d_output)
        queries[[ending]] -= d_query
        keys[pair] -= key_step * d_key
    np.testing.assert_allclose(given.scores_by_torch(key_step), queries @ keys.T / 2, atol=1e-10)


def one_by_one(sentences, asked, right, starts):
    """What `share_found` counts, by the backward pass of a single query after the other."""
    found = []
    for start in np.random.default_rng(0).normal(size=(2, starts, 4, 4)).swapaxes(0, 1):
        queries, keys = start.copy()
        for pair, ending in 500 // len(sentences) * sentences:
            weights = attention(queries[[ending]], keys[pair], np.eye(2))[0]
            d_output = np.zeros((1, 2))
            d_output[0, right[ending]] = -1 / weights[right[ending]]
            d_query, d_key, _ = attention_backward(queries[[ending]], keys[pair], np.eye(2), d_output)
            queries[[ending]] -= d_query
            keys[pair] -= d_key
        found += [attention(queries[[ending]], keys[pair], np.eye(2))[0, right[ending]] > 0.5 for pair, ending in asked]
    return np.mean(found)


@pytest.mark.parametrize("sentences", [[([0, 2], 0), ([1, 2], 3), ([3, 1], 1)], [([0, 1], 2), ([3, 2], 0)]])
def test_many_starts_trained_at_once_find_what_each_finds_alone(sentences):
    asked, right = [([0, 2], 1), ([0, 3], 3), ([2, 1], 0)], [0, 0, 1, 1]
    found = given.share_found(sentences, asked, right, starts=7)
    assert 0 < found < 1
    assert found == one_by_one(sentences, asked, right, starts=7)
