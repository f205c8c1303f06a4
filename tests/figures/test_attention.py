"""The figures of lesson attention say what their numbers say."""

import math
import re
from functools import partial

import numpy as np
import pytest

from attn_course.lessons.attention import figures
from tests.figures.support import Pictures

KEYS = np.array([[1.0, 0.0], [4.0, 3.0], [-2.0, -3.0]])
VALUES = np.array([1.0, -1.0, 0.4])
AXIS = np.linspace(-6, 6, 25)
SCORES = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
WEIGHTS = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)


def naive_attention(query, key, value) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    terms = [math.exp(sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query))) for k in key]
    return sum(term * v for term, v in zip(terms, value, strict=True)) / sum(terms)


ON_KEYS = [f"{naive_attention(key, KEYS, VALUES):.1f}".replace("-", "−") for key in KEYS]

QUERY_TO_SHOW = [2.0, 0.0], [[1.0, 0.0], [0.0, 3.0]], [2.0, 0.0], [0.75, 0.25], [[4.0, 0.0], [0.0, 4.0]], [3.0, 1.0]

DRAWN = [
    (
        partial(figures.attention_steps, np.zeros((2, 2)), np.full((2, 2), 0.5), np.ones((2, 1)), ["the", "cat"]),
        ["the largest weight of each row is 0.50 and 0.50."],
    ),
    (
        partial(figures.attention_steps, SCORES, WEIGHTS, WEIGHTS @ np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])),
        [
            "Scores, 2 by 3, from −1.00 to 2.00.",
            f"the largest weight of each row is {WEIGHTS[0].max():.2f} and {WEIGHTS[1].max():.2f}. Output, 2 by 2.",
        ],
    ),
    (
        partial(
            figures.query_plane,
            AXIS,
            {"as they are": ([[naive_attention((a, b), KEYS, VALUES) for a in AXIS] for b in AXIS], KEYS)},
            VALUES,
        ),
        [f"with value 1.0, on it the output {ON_KEYS[0]};", f"(−2.0, −3.0) with value 0.4, on it the output {ON_KEYS[2]}."],
    ),
]
REFUSED = [
    (
        partial(figures.attention_steps, np.zeros((2, 2)), [[0.6, 0.5], [0.5, 0.5]], np.zeros((2, 3))),
        r"weights must sum to 1 in each row; got 1\.10 and 1\.00",
    ),
    (
        partial(figures.attention_steps, np.zeros((2, 3)), np.full((2, 2), 0.5), np.zeros((2, 3))),
        "weights must have the shape of scores and output as many rows",
    ),
    (partial(figures.query_plane, AXIS, {"a": (np.zeros((25, 24)), KEYS)}, VALUES), r"maps\['a'\] must have shape \(25, 25\)"),
    (partial(figures.query_plane, AXIS, {"a": (np.zeros((25, 25)), KEYS[1:])}, VALUES), r"keys\['a'\] must have shape \(3, 2\)"),
    (partial(figures.one_query, ["the"], *QUERY_TO_SHOW), r"tokens, keys and values must be equally many; got 1, \(2, 2\) and \(2, 2\)"),
    (
        partial(figures.one_query, ["the", "cat"], *QUERY_TO_SHOW[:3], [0.75, 0.5], *QUERY_TO_SHOW[4:]),
        r"weights must sum to 1; got 1\.25",
    ),
]


class TestPictures(Pictures):
    """Steps and plane."""


def test_the_machine_has_the_sizes_of_the_arrays(shown):
    figures.machine("attention", np.ones((5, 3)), np.ones((5, 3)), np.ones((5, 2)))
    assert "Here T = 5, d_k = 3 and d_v = 2." in shown[0].alt
    with pytest.raises(ValueError, match=r"key must have the shape of query and value as many rows; got \(5, 3\), \(4, 3\) and \(4, 2\)"):
        figures.machine("attention", np.ones((5, 3)), np.ones((4, 3)), np.ones((4, 2)))


def test_the_picture_of_one_query_says_every_number_it_draws(shown):
    figures.one_query(["the", "cat"], *QUERY_TO_SHOW)
    assert "A query (2, 0) meets the keys of 2 tokens. Dot product and weight: the 2 and 0.750; cat 0 and 0.250." in shown[0].alt
    assert shown[0].alt.endswith("is the output, (3.00, 1.00).")
    drawn = re.findall(r"<text[^>]*>([^<]+)</text>", shown[0].html)
    assert drawn[-3:] == ["3.00", "1.00", "output"]
    assert {"the", "cat", "0.750", "1.4"} <= set(drawn)  # the score of "the" is 2 over the root of 2
