"""The figures of lesson attention say what their numbers say."""

import math
import re
from functools import partial

import numpy as np

from attn_course.lessons.attention import figures
from tests.figures.support import Pictures

KEYS = np.array([[1.0, 0.0], [4.0, 3.0], [-2.0, -3.0]])
VALUES = np.array([1.0, -1.0, 0.4])
AXIS = np.linspace(-6, 6, 25)


def naive_attention(query, key, value) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests."""
    terms = [math.exp(sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query))) for k in key]
    return sum(term * v for term, v in zip(terms, value, strict=True)) / sum(terms)


ON_KEYS = [f"{naive_attention(key, KEYS, VALUES):.1f}".replace("-", "−") for key in KEYS]

QUERY_TO_SHOW = [2.0, 0.0], [[1.0, 0.0], [0.0, 3.0]], [2.0, 0.0], [0.75, 0.25], [[4.0, 0.0], [0.0, 4.0]], [3.0, 1.0]

DRAWN = [
    (
        partial(figures.weights_by, {"right": [[0.25, 0.75], [0.5, 0.5]], "other": [[0.5, 0.75], [0.5, 0.25]]}, ["the", "cat"]),
        ["right: rows with the sums 1.00 and 1.00, columns with 0.75 and 1.25.", "other: rows with the sums 1.25 and 0.75"],
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
    (partial(figures.weights_by, {"one": np.zeros((2, 3))}, ["the", "cat"]), r"maps\['one'\] must have shape \(2, 2\); got \(2, 3\)"),
    (partial(figures.query_plane, AXIS, {"a": (np.zeros((25, 24)), KEYS)}, VALUES), r"maps\['a'\] must have shape \(25, 25\)"),
    (partial(figures.query_plane, AXIS, {"a": (np.zeros((25, 25)), KEYS[1:])}, VALUES), r"keys\['a'\] must have shape \(3, 2\)"),
    (partial(figures.one_query, ["the"], *QUERY_TO_SHOW), r"tokens, keys and values must be equally many; got 1, \(2, 2\) and \(2, 2\)"),
    (
        partial(figures.one_query, ["the", "cat"], *QUERY_TO_SHOW[:3], [0.75, 0.5], *QUERY_TO_SHOW[4:]),
        r"weights must sum to 1; got 1\.25",
    ),
]

TestPictures = Pictures


def test_the_machine_has_the_sizes_of_the_sentence(shown):
    figures.machine()
    assert "Here T = 7, d_k = 4 and d_v = 2." in shown[0].alt


def test_the_picture_of_one_query_says_every_number_it_draws(shown):
    figures.one_query(["the", "cat"], *QUERY_TO_SHOW)
    assert "A query (2, 0) meets the keys of 2 tokens. Dot product and weight: the 2 and 0.750; cat 0 and 0.250." in shown[0].alt
    assert shown[0].alt.endswith("is the output, (3.00, 1.00).")
    drawn = re.findall(r"<text[^>]*>([^<]+)</text>", shown[0].html)
    assert drawn[-3:] == ["3.00", "1.00", "output"]
    assert {"the", "cat", "0.750", "1.4"} <= set(drawn)  # the score of "the" is 2 over the root of 2
