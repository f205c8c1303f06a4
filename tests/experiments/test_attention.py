"""The writer of lesson attention: what it may read, what it never reads, and what the lesson says of its weights."""

import numpy as np
import pytest

from attn_course.lessons.attention.experiments_writer import (
    HELD_OUT,
    NUMBER,
    SHOWN,
    WORDS,
    WRITER,
    looks,
    matrices,
    sentences,
)


def test_nothing_that_is_held_out_is_read():
    read, kept_away = sentences(held_out=False), sentences(held_out=True)
    assert (len(read), len(kept_away)) == (68, 28)
    assert not any(noun in words and verb in words for words in read for noun, verb in HELD_OUT)
    assert ["the", "cat", "sat", "because", "it", "was", "tired", "."] in kept_away
    assert {word for words in read for word in words} == set(WORDS)


def test_one_query_with_kept_keys_and_values_writes_what_the_masked_model_writes():
    words_table, places, w_query, w_key, w_value, w_output = matrices()
    words = ["the", "cat", "sat", "because", "it", "was"]
    masked = looks(words)
    x = words_table[[NUMBER[word] for word in words]] + places[: len(words)]
    newest = x[-1].copy()
    for head, columns in enumerate((slice(0, 6), slice(6, 12))):
        weights = np.exp((x[-1] @ w_query[:, columns]) @ (x @ w_key[:, columns]).T / np.sqrt(6))  # one query, all keys so far
        weights /= weights.sum()
        np.testing.assert_allclose(weights, masked[head, -1], atol=1e-12)
        newest += weights @ (x @ w_value[:, columns]) @ w_output[columns]
    assert WORDS[(words_table @ newest).argmax()] == "tired"


def test_the_lesson_is_right_about_the_weights_of_was_and_about_heads_that_are_silent():
    record = WRITER.load()
    assert record.values("never read").tolist() == record.values("read").tolist() == [1, 1, 1]
    assert max(record.results[SHOWN]["one head silent"]) * 28 == pytest.approx(1, abs=0.01)
    cat, clock = (looks(["the", noun, "sat", "because", "it", "was"])[:, -1].round(2) for noun in ("cat", "clock"))
    assert (cat[0, 1], cat[1, 2], clock[0, 1]) == (0.75, 0.87, 0.08)


def test_a_sentence_in_which_the_first_head_gives_its_noun_little_does_not_end_right_without_it():
    words_table, places, _, _, w_value, w_output = matrices()
    words = ["the", "clock", "sat", "because", "it", "was"]
    x = words_table[[NUMBER[word] for word in words]] + places[: len(words)]
    ends = {}
    for silent in (None, 0):
        stream = x[-1].copy()
        for head, columns in enumerate((slice(0, 6), slice(6, 12))):
            weights = looks(words)[head, -1]
            stream += 0 if head == silent else weights @ (x @ w_value[:, columns]) @ w_output[columns]
        ends[silent] = WORDS[(words_table @ stream).argmax()]
    assert ends[None] == "heavy"
    assert ends[0] != "heavy"
