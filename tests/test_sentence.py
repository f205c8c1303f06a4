"""What the docstring of the running example promises, number by number."""

import doctest
import math

import numpy as np
import pytest

from attn_course import sentence
from attn_course.reference import attention, merge_heads, multi_head_attention
from attn_course.sentence import (
    CONTENT,
    FEATURES,
    KEY,
    POSITIONS,
    QUERY,
    TOKENS,
    VALUE,
    W_KEY,
    W_OUTPUT,
    W_QUERY,
    W_VALUE,
    X,
    labelled,
)

WHO, BACK = 0, 1
THE, CAT, SAT, BECAUSE, IT, WAS, TIRED = range(7)
GIVEN = {"X": X, "W_QUERY": W_QUERY, "W_KEY": W_KEY, "W_VALUE": W_VALUE, "W_OUTPUT": W_OUTPUT}
PRODUCTS = {
    "QUERY": QUERY,
    "KEY": KEY,
    "VALUE": VALUE,
    "scores": QUERY @ KEY.swapaxes(1, 2),
    "W_Q W_K^T": W_QUERY @ W_KEY.swapaxes(1, 2),
    "W_V W_O": W_VALUE @ W_OUTPUT.reshape(2, 3, 5),
}
SCORES = PRODUCTS["scores"].astype(int)


def weights(is_causal: bool) -> np.ndarray:
    """Return the weights of both heads; the softmax has tests of its own."""
    return attention(QUERY, KEY, VALUE, is_causal=is_causal, return_weights=True)[1]


def with_mask(scores: np.ndarray, is_causal: bool) -> list[list[int]]:
    """Return the scores that each query sees, row by row."""
    return [list(map(int, row[: i + 1] if is_causal else row)) for i, row in enumerate(scores)]


def outputs(is_causal: bool) -> np.ndarray:
    return multi_head_attention(X, X, *map(merge_heads, (W_QUERY, W_KEY, W_VALUE)), W_OUTPUT, n_heads=2, is_causal=is_causal)


@pytest.mark.parametrize(("name", "array"), [*GIVEN.items(), *PRODUCTS.items()])
def test_every_number_is_whole_and_of_one_digit(name, array):
    assert array.dtype == np.float64
    assert np.array_equal(array, np.trunc(array))
    assert np.abs(array).max() <= 9


@pytest.mark.parametrize("array", [*GIVEN.values(), CONTENT, POSITIONS, QUERY, KEY, VALUE])
def test_no_lesson_can_change_the_numbers_of_the_next(array):
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_no_two_sizes_are_equal_and_the_scale_is_a_half():
    n_heads, d_model, d_k = W_QUERY.shape
    d_v = W_VALUE.shape[2]
    assert W_KEY.shape == W_QUERY.shape
    assert W_OUTPUT.shape == (n_heads * d_v, d_model)
    assert X.shape == (len(TOKENS), len(FEATURES)) == (7, 5)
    sizes = [len(TOKENS), d_model, d_k, d_v, n_heads, n_heads * d_k, n_heads * d_v]
    assert sizes == [7, 5, 4, 3, 2, 8, 6]
    assert len(set(sizes)) == len(sizes)
    assert 1 / math.sqrt(d_k) == 0.5


def test_queries_keys_and_values_are_those_of_x():
    for array, weights in ((QUERY, W_QUERY), (KEY, W_KEY), (VALUE, W_VALUE)):
        assert array.shape == (2, 7, weights.shape[2])
        for head in (WHO, BACK):
            by_hand = [[sum(x * w for x, w in zip(row, column, strict=True)) for column in weights[head].T] for row in X]
            assert array[head].tolist() == by_hand


def test_content_and_position_have_columns_of_their_own():
    assert np.array_equal(X, CONTENT + POSITIONS)
    assert not CONTENT[:, 3:].any()
    assert not POSITIONS[:, :3].any()
    assert len({tuple(row) for row in CONTENT}) == 7  # without positions, too, no two tokens are the same
    assert " ".join(TOKENS) == "the cat sat because it was tired"
    assert not W_QUERY[WHO, 3:].any()  # who asks for content alone ...
    assert not W_KEY[WHO, 3:].any()
    assert not W_QUERY[BACK, :3].any()  # ... and one back for the position alone
    assert not W_KEY[BACK, :3].any()


def test_positions_are_the_hours_of_a_clock():
    cosine, sine = POSITIONS[:, 3], POSITIONS[:, 4]
    assert (cosine**2 + 3 * sine**2).tolist() == [4] * 7  # a circle of radius 2, sines in units of sqrt(3)
    for i in range(7):
        angle = math.radians(60 * i)
        assert (cosine[i], sine[i] * math.sqrt(3)) == pytest.approx((2 * math.cos(angle), 2 * math.sin(angle)))
    assert POSITIONS[TIRED].tolist() == POSITIONS[THE].tolist()  # six hours later


def test_one_back_scores_only_the_distance():
    assert (KEY[BACK] ** 2).sum(axis=1).tolist() == [4] * 7
    assert (QUERY[BACK] ** 2).sum(axis=1).tolist() == [16] * 7
    by_distance = [8, 4, -4, -8, -4, 4]  # from the token before
    assert SCORES[BACK].tolist() == [[by_distance[(i - 1 - j) % 6] for j in range(7)] for i in range(7)]
    keys_one_hour_earlier = KEY[BACK][[5, 0, 1, 2, 3, 4, 5]]
    assert np.array_equal(QUERY[BACK], 2 * keys_one_hour_earlier)


@pytest.mark.parametrize("is_causal", [False, True])
def test_it_looks_at_the_cat(is_causal):
    row = with_mask(SCORES[WHO], is_causal)[IT]
    assert row == [-2, 8, -4, 0, -4, -2, 0][: len(row)]
    found = weights(is_causal)[WHO, IT]
    assert (0.97 if is_causal else 0.94) < found[CAT] < 0.98
    assert np.delete(found, CAT).max() == found[BECAUSE] < 0.02  # 54 times less


def test_who_asks_something_sensible_for_every_token():
    best = {TOKENS[i]: [TOKENS[j] for j in np.flatnonzero(row == row.max())] for i, row in enumerate(SCORES[WHO])}
    assert best == {
        "the": ["cat"],
        "cat": ["sat", "tired"],
        "sat": ["cat"],
        "because": list(TOKENS),
        "it": ["cat"],
        "was": ["cat"],
        "tired": ["cat"],
    }
    assert not QUERY[WHO, BECAUSE].any()
    for i, row in enumerate(SCORES[WHO].tolist()):
        ordered = sorted(set(row))
        assert i == BECAUSE or ordered[-1] - ordered[-2] >= (2 if i == CAT else 4)


def test_the_two_matrices_of_a_head_in_one():
    who, back = PRODUCTS["W_Q W_K^T"]
    assert who[:3, :3].tolist() == [[0, 1, 0], [2, -1, 0], [2, -1, -1]]  # alive, tells, open ask for alive, tells, open
    assert back[3:, 3:].tolist() == [[1, -3], [3, 3]]
    assert [np.linalg.matrix_rank(matrix) for matrix in (who, back)] == [3, 2]
    who, back = PRODUCTS["W_V W_O"]
    assert who[:3, :3].tolist() == [[1, 0, -1], [0, 1, 0], [0, 0, 1]]  # alive is handed on, and takes itself from open
    assert back[:3, :3].tolist() == np.eye(3).tolist()
    assert [np.abs(matrix).sum() for matrix in (who, back)] == [4, 3]  # positions are neither read nor written


@pytest.mark.parametrize("is_causal", [False, True])
def test_after_the_layer_it_is_nearly_the_cat(is_causal):
    after = (X + outputs(is_causal))[:, :3]
    assert after[IT] == pytest.approx([2, 0, 0], abs=0.32)
    assert np.abs(CONTENT[:, :3] - after[IT]).max(axis=1).argmin() == CAT
    assert CONTENT[IT].tolist() == [0, 0, 2, 0, 0]
    assert not outputs(is_causal)[:, 3:].any()  # positions stay as they are


def test_the_examples_of_its_docstrings_hold():
    assert doctest.testmod(sentence) == (0, 1)


@pytest.mark.parametrize(
    ("matrix", "options", "text"),
    [
        ([[-10, 2], [3, 40]], {"rows": ["a", "long"]}, "a     -10   2\nlong    3  40"),
        ([[0.125, -0.001], [1, -12]], {"rows": "ab"}, "a  0.12    0.00\nb  1.00  -12.00"),
        ([[0.5, 1.0]], {"rows": "a", "digits": 1}, "a  0.5  1.0"),
        ([[-0.0, -np.inf]], {"rows": "a"}, "a  0  -inf"),
        ([[0.5, -np.inf]], {"rows": "a"}, "a  0.50  -inf"),
        ([[True, False]], {"rows": "a", "columns": ["yes", "no"]}, "   yes  no\na    1   0"),
    ],
)
def test_a_matrix_is_printed_with_its_labels(matrix, options, text):
    assert labelled(matrix, **options) == text


@pytest.mark.parametrize(
    ("matrix", "labels", "complaint"),
    [
        (X, {"columns": TOKENS}, r"matrix must have the shape of its labels, \(7, 7\); got \(7, 5\)"),
        (X[:2], {}, r"matrix must have the shape of its labels, \(7, any width\); got \(2, 5\)"),
        (X[0], {}, r"matrix must have the shape of its labels, \(7, any width\); got \(5,\)"),
        (QUERY, {"columns": "abcd"}, r"matrix must have the shape of its labels, \(7, 4\); got \(2, 7, 4\)"),
    ],
)
def test_a_matrix_that_does_not_fit_its_labels_is_refused(matrix, labels, complaint):
    with pytest.raises(ValueError, match=complaint):
        labelled(matrix, **labels)
