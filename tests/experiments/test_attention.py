"""The writer of lesson attention: what it may read, what it never reads, and what the lesson says of its weights."""

import numpy as np
import torch

from attn_course.lessons.attention.experiments_writer import HELD_OUT, NUMBER, WORDS, WRITER, Writer, matrices, sentences, write


def test_nothing_that_is_held_out_is_read():
    read, kept_away = sentences(held_out=False), sentences(held_out=True)
    assert (len(read), len(kept_away)) == (68, 28)
    assert not any(noun in words and verb in words for words in read for noun, verb in HELD_OUT)
    assert "the cat sat because it was tired .".split() in kept_away  # noqa: SIM905
    assert {word for words in read for word in words} == set(WORDS)


def test_the_stored_matrices_write_what_the_lesson_shows_with_kept_keys_and_with_a_mask():
    vectors, places, w_query, w_key, w_value, w_output = matrices()
    words = ["the", "cat", "sat", "because", "it", "was"]
    x = vectors[[NUMBER[word] for word in words]] + places[: len(words)]
    model = Writer(torch.Generator()).double()
    model.load_state_dict(
        dict(zip(["words", "places", "w_query", "w_key", "w_value", "w_output"], map(torch.from_numpy, matrices()), strict=True))
    )
    _, weights = model(torch.tensor([[NUMBER[word] for word in words]]))
    for head, columns in enumerate((slice(0, 6), slice(6, 12))):
        newest = np.exp((x[-1] @ w_query[:, columns]) @ (x @ w_key[:, columns]).T / np.sqrt(6))  # one query, all keys so far
        np.testing.assert_allclose(newest / newest.sum(), weights[0, head, -1].detach(), atol=1e-12)
    assert write(model, words) == [*words, "tired", "."]
    assert w_value.shape == w_output.shape == (12, 12)


def test_the_lesson_is_right_about_the_weights_of_was():
    was = WRITER.load().values("was").round(2)  # seeds, heads, words
    sat, cat = was[..., 2], was[..., 1]
    assert (sat[1, 0], cat[1, 1]) == (0.77, 0.9)
    assert cat[0].max() == 0.25
    assert WRITER.load().values("never read").tolist() == WRITER.load().values("read").tolist() == [1, 1, 1]
