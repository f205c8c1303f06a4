"""Malformed calls of attention and its parts: each message names the argument, what was wanted and what came."""

import numpy as np
import pytest
import torch

from attn_course.reference import (
    additive_scores,
    attention,
    attention_backward,
    causal_mask,
    cosine_scores,
    dot_scores,
    gaussian_scores,
    merge_heads,
    multi_head_attention,
    padding_mask,
    repeat_key_value,
    scaled_dot_scores,
    split_heads,
    window_mask,
)

pytestmark = pytest.mark.usefixtures("no_shape_check")


def good(**changes):
    """Return a call of attention with some arguments replaced."""
    return {"query": np.ones((2, 3, 5, 7)), "key": np.ones((2, 3, 11, 7)), "value": np.ones((2, 3, 11, 13))} | changes


ATTENTION = [
    # arrays
    ({"query": [[1.0]]}, TypeError, "query must be an ndarray of floats; got list"),
    ({"query": np.ones((5, 7), dtype=int)}, TypeError, "query must be an ndarray of floats; got int64 ndarray"),
    ({"key": np.ones((11, 7), dtype=complex)}, TypeError, "key must be an ndarray of floats; got complex128 ndarray"),
    ({"key": torch.ones(11, 7)}, TypeError, "key must be an ndarray of floats; got Tensor"),
    ({"value": np.ones((11, 13), dtype=bool)}, TypeError, "value must be an ndarray of floats; got bool ndarray"),
    ({"value": None}, TypeError, "value must be an ndarray of floats; got NoneType"),
    # shapes
    ({"query": np.ones(7)}, ValueError, "query must have the axes (..., len, features); got shape (7,)"),
    ({"key": np.array(1.0)}, ValueError, "key must have the axes (..., len, features); got shape ()"),
    ({"value": np.ones(11)}, ValueError, "value must have the axes (..., len, features); got shape (11,)"),
    ({"key": np.ones((2, 3, 11, 6))}, ValueError, "query and key must share d_k, the last axis; got 7 and 6"),
    ({"value": np.ones((2, 3, 10, 13))}, ValueError, "key and value must share kv_len, the axis before the last; got 11 and 10"),
    ({"key": np.ones((4, 11, 7))}, ValueError, "leading axes must broadcast; got query (2, 3), key (4,), value (2, 3)"),
    ({"query": np.ones((5, 0)), "key": np.ones((11, 0))}, ValueError, "scale must be given when d_k is 0; got None"),
    # masks
    ({"mask": [[True]]}, TypeError, "mask must be an ndarray of bool or float; got list"),
    ({"mask": np.ones((5, 11), dtype=int)}, TypeError, "mask must be an ndarray of bool or float; got int64 ndarray"),
    ({"mask": torch.ones(5, 11)}, TypeError, "mask must be an ndarray of bool or float; got Tensor"),
    ({"mask": np.ones(11, dtype=bool)}, ValueError, "mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (11,)"),
    ({"mask": np.ones((11, 5))}, ValueError, "mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (11, 5)"),
    ({"mask": np.ones((5, 0))}, ValueError, "mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (5, 0)"),
    (
        {"mask": np.ones((4, 5, 11))},
        ValueError,
        "leading axes must broadcast; got mask (4,), q_offset (), query, key and value (2, 3)",
    ),
    # options
    ({"is_causal": 1}, TypeError, "is_causal must be True or False; got int"),
    ({"is_causal": np.ones((5, 11), dtype=bool)}, TypeError, "is_causal must be True or False; got ndarray"),
    ({"enable_gqa": None}, TypeError, "enable_gqa must be True or False; got NoneType"),
    ({"return_weights": "yes"}, TypeError, "return_weights must be True or False; got str"),
    ({"return_lse": 0}, TypeError, "return_lse must be True or False; got int"),
    ({"q_offset": 1.5}, TypeError, "q_offset must be an integer or an ndarray of integers; got float"),
    ({"q_offset": True}, TypeError, "q_offset must be an integer or an ndarray of integers; got bool"),
    ({"q_offset": [0, 1]}, TypeError, "q_offset must be an integer or an ndarray of integers; got list"),
    ({"q_offset": np.array([0.0])}, TypeError, "q_offset must be an integer or an ndarray of integers; got float64 ndarray"),
    ({"q_offset": np.zeros(4, int)}, ValueError, "leading axes must broadcast; got q_offset (4,), query, key and value (2, 3)"),
    (
        {"q_offset": np.zeros(3, int), "mask": np.ones((2, 5, 11), dtype=bool), "is_causal": True},
        ValueError,
        "leading axes must broadcast; got mask (2,), q_offset (3,), query, key and value (2, 3)",
    ),
    ({"window": 3}, TypeError, "window must be a tuple (left, right); got 3"),
    ({"window": [1, 0]}, TypeError, "window must be a tuple (left, right); got [1, 0]"),
    ({"window": (1, 0, 2)}, TypeError, "window must be a tuple (left, right); got (1, 0, 2)"),
    ({"window": (1.0, 0)}, TypeError, "window (left) must be an integer; got float 1.0"),
    ({"window": (0, -1)}, ValueError, "window (right) must be 0 or more; got -1"),
    ({"scale": "1"}, TypeError, "scale must be a number or None; got str"),
    ({"scale": np.ones(3)}, TypeError, "scale must be a number or None; got ndarray"),
    ({"scale": True}, TypeError, "scale must be a number or None; got bool"),
    ({"scale": float("nan")}, ValueError, "scale must be finite; got nan"),
    ({"scale": -float("inf")}, ValueError, "scale must be finite; got -inf"),
    ({"softcap": 0.0}, ValueError, "softcap must be positive and finite; got 0.0"),
    ({"softcap": -2}, ValueError, "softcap must be positive and finite; got -2"),
    ({"softcap": float("inf")}, ValueError, "softcap must be positive and finite; got inf"),
    ({"softcap": "30"}, TypeError, "softcap must be a number; got str"),
    # grouped queries
    (
        {"enable_gqa": True, "query": np.ones((5, 7))},
        ValueError,
        "query must have the axes (..., heads, len, features); got shape (5, 7)",
    ),
    (
        {"enable_gqa": True, "key": np.ones((2, 2, 11, 7)), "value": np.ones((2, 2, 11, 13))},
        ValueError,
        "query must have a multiple of the key's heads, axis -3; got 3 and 2",
    ),
    ({"enable_gqa": True, "key": np.ones((2, 1, 11, 7))}, ValueError, "key and value must share their heads, axis -3; got 1 and 3"),
    (
        {"enable_gqa": True, "query": np.ones((4, 3, 5, 7))},
        ValueError,
        "leading axes must broadcast; got query (4, 3), key (2, 3), value (2, 3)",
    ),
]


def assert_says(error, message, function, *arguments, **options):
    """Assert that the call raises exactly this error with exactly this message."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert type(caught.value) is error
    assert str(caught.value) == message


def test_assert_says_fails_on_another_message_another_error_and_no_error():
    assert_says(ValueError, "x must be 1; got 2", _raise, ValueError("x must be 1; got 2"))
    with pytest.raises(AssertionError):
        assert_says(ValueError, "x must be 1; got 2", _raise, ValueError("x must be 1; got 3"))
    with pytest.raises(AssertionError):
        assert_says(ValueError, "x", _raise, UnicodeError("x"))
    with pytest.raises(pytest.fail.Exception):
        assert_says(ValueError, "x", lambda: None)


def _raise(error):
    raise error


@pytest.mark.parametrize(("changes", "error", "message"), ATTENTION, ids=[message for *_, message in ATTENTION])
def test_a_malformed_call_of_attention(changes, error, message):
    assert_says(error, message, attention, **good(**changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [row for row in ATTENTION if not row[0].keys() & {"return_weights", "return_lse"}][::3],
)
def test_the_backward_pass_checks_like_the_forward_one(changes, error, message):
    assert_says(error, message, attention_backward, **good(**changes), d_output=np.ones((2, 3, 5, 13)))


X = np.ones((2, 5, 6))
OTHERS = {
    "backward": [
        ({"d_output": np.ones((5, 13))}, ValueError, "d_output must have shape (2, 3, 5, 13), that of the output; got (5, 13)"),
        ({"d_output": np.ones((2, 3, 5, 13), int)}, TypeError, "d_output must be an ndarray of floats; got int64 ndarray"),
        ({"d_output": 1.0}, TypeError, "d_output must be an ndarray of floats; got float"),
        ({"d_lse": np.ones((2, 3, 5, 1))}, ValueError, "d_lse must have shape (2, 3, 5), that of the log-sum-exp; got (2, 3, 5, 1)"),
        ({"d_lse": 0.0}, TypeError, "d_lse must be an ndarray of floats; got float"),
        ({"return_d_mask": True}, ValueError, "return_d_mask needs a float mask; got no mask"),
        ({"return_d_mask": True, "mask": np.ones((5, 11), bool)}, ValueError, "return_d_mask needs a float mask; got a boolean one"),
        ({"return_d_mask": True, "mask": [[0.0]]}, TypeError, "mask must be an ndarray of bool or float; got list"),
        ({"return_d_mask": "yes"}, TypeError, "return_d_mask must be True or False; got str"),
    ],
    "masks": [
        ((causal_mask, -1, 3), ValueError, "q_len must be 0 or more; got -1"),
        ((causal_mask, 3, 2.0), TypeError, "kv_len must be an integer; got float 2.0"),
        ((causal_mask, True, 2), TypeError, "q_len must be an integer; got bool True"),
        ((causal_mask, 3, 2, "0"), TypeError, "q_offset must be an integer or an ndarray of integers; got str"),
        ((window_mask, 3, 2, -1, None), ValueError, "left must be 0 or more; got -1"),
        ((window_mask, 3, 2, None, 0.5), TypeError, "right must be an integer; got float 0.5"),
        ((window_mask, 3, -2, 1, 1), ValueError, "kv_len must be 0 or more; got -2"),
        ((padding_mask, [1, 2], 3), TypeError, "lengths must be an ndarray of integers; got list"),
        ((padding_mask, np.array([1.0]), 3), TypeError, "lengths must be an ndarray of integers; got float64 ndarray"),
        ((padding_mask, np.array([1, 4]), 3), ValueError, "lengths must lie in 0 .. kv_len = 3; got 1 to 4"),
        ((padding_mask, np.array([-1]), 3), ValueError, "lengths must lie in 0 .. kv_len = 3; got -1 to -1"),
        ((padding_mask, np.array([1]), None), TypeError, "kv_len must be an integer; got NoneType None"),
    ],
    "scores": [
        ((dot_scores, np.ones((3, 2)), np.ones((3, 4))), ValueError, "query and key must share d_k, the last axis; got 2 and 4"),
        ((dot_scores, np.ones(2), np.ones((3, 2))), ValueError, "query must have the axes (..., len, d_k); got shape (2,)"),
        ((dot_scores, np.ones((1, 2), int), np.ones((3, 2))), TypeError, "query must be an ndarray of floats; got int64 ndarray"),
        ((cosine_scores, np.ones((2, 1, 2)), np.ones((3, 1, 2))), ValueError, "leading axes must broadcast; got query (2,), key (3,)"),
        ((cosine_scores, np.ones((1, 2)), [[1.0, 2.0]]), TypeError, "key must be an ndarray of floats; got list"),
        ((scaled_dot_scores, np.ones((1, 2)), np.ones((1, 2)), "a"), TypeError, "scale must be a number or None; got str"),
        ((scaled_dot_scores, np.ones((1, 2)), np.ones((1, 2)), np.inf), ValueError, "scale must be finite; got inf"),
        ((scaled_dot_scores, np.ones((1, 0)), np.ones((1, 0))), ValueError, "scale must be given when d_k is 0; got None"),
        ((gaussian_scores, np.ones((1, 2)), np.ones((1, 2)), 0.0), ValueError, "bandwidth must be positive and finite; got 0.0"),
        ((gaussian_scores, np.ones((1, 2)), np.ones((1, 2)), None), TypeError, "bandwidth must be a number; got NoneType"),
        ((gaussian_scores, np.ones((1, 2)), np.ones((1, 3)), 1.0), ValueError, "query and key must share d_k, the last axis; got 2 and 3"),
        (
            (additive_scores, np.ones((1, 2)), np.ones((1, 3)), np.ones((3, 4)), np.ones((3, 4)), np.ones(4)),
            ValueError,
            "w_query must have shape (2, 4), (d_q of query, d_hidden of w_score); got (3, 4)",
        ),
        (
            (additive_scores, np.ones((1, 2)), np.ones((1, 3)), np.ones((2, 4)), np.ones((3, 5)), np.ones(4)),
            ValueError,
            "w_key must have shape (3, 4), (d_k of key, d_hidden of w_score); got (3, 5)",
        ),
        (
            (additive_scores, np.ones((1, 2)), np.ones((1, 3)), np.ones((2, 4)), np.ones((3, 4)), np.ones((4, 1))),
            ValueError,
            "w_score must have the one axis d_hidden; got shape (4, 1)",
        ),
        (
            (additive_scores, np.ones((1, 2)), np.ones((1, 3)), np.ones((2, 4)), np.ones((3, 4)), 1.0),
            TypeError,
            "w_score must be an ndarray of floats; got float",
        ),
    ],
    "heads": [
        ((split_heads, X, 4), ValueError, "n_heads must divide d_model, the last axis of x; got 4 and 6"),
        ((split_heads, X, 0), ValueError, "n_heads must be 1 or more; got 0"),
        ((split_heads, X, 2.0), TypeError, "n_heads must be an integer; got float 2.0"),
        ((split_heads, np.ones(6), 2), ValueError, "x must have the axes (..., len, d_model); got shape (6,)"),
        ((merge_heads, np.ones((5, 6))), ValueError, "x must have the axes (..., n_heads, len, d_head); got shape (5, 6)"),
        ((merge_heads, X.astype(int)), TypeError, "x must be an ndarray of floats; got int64 ndarray"),
        ((repeat_key_value, X, 0), ValueError, "n_repeats must be 1 or more; got 0"),
        ((repeat_key_value, np.ones((5, 6)), 2), ValueError, "x must have the axes (..., n_kv_heads, len, d_head); got shape (5, 6)"),
        ((repeat_key_value, X, None), TypeError, "n_repeats must be an integer; got NoneType None"),
    ],
    "multi-head": [
        ({"n_heads": 0}, ValueError, "n_heads must be 1 or more; got 0"),
        ({"n_heads": 4.0}, TypeError, "n_heads must be an integer; got float 4.0"),
        ({"n_kv_heads": 3}, ValueError, "n_kv_heads must divide n_heads; got 3 and 4"),
        ({"n_kv_heads": 0}, ValueError, "n_kv_heads must be 1 or more; got 0"),
        ({"n_heads": 5, "n_kv_heads": 1}, ValueError, "n_heads must divide the columns of w_query; got 5 and 12"),
        ({"w_key": np.ones((6, 5))}, ValueError, "n_kv_heads must divide the columns of w_key; got 2 and 5"),
        ({"w_key": np.ones((6, 8))}, ValueError, "w_query and w_key must give heads of one size d_k; got 3 and 4"),
        ({"w_query": np.ones((12, 6))}, ValueError, "w_query must have shape (features of its input, ...) = (6, ...); got (12, 6)"),
        ({"w_value": np.ones(6)}, ValueError, "w_value must have shape (features of its input, ...) = (6, ...); got (6,)"),
        ({"w_output": np.ones((7, 6))}, ValueError, "w_output must have shape (features of its input, ...) = (12, ...); got (7, 6)"),
        ({"w_output": None}, TypeError, "w_output must be an ndarray of floats; got NoneType"),
        ({"b_key": np.ones(12)}, ValueError, "b_key must have shape (6,), one entry for each column of w_key; got (12,)"),
        ({"b_output": 1.0}, TypeError, "b_output must be an ndarray of floats; got float"),
        ({"x_query": np.ones(6)}, ValueError, "x_query must have the axes (..., len, features); got shape (6,)"),
        ({"x_key_value": np.ones((3, 7, 6))}, ValueError, "leading axes must broadcast; got x_query (2,), x_key_value (3,)"),
        ({"x_key_value": [[1.0]]}, TypeError, "x_key_value must be an ndarray of floats; got list"),
        ({"enable_gqa": True}, TypeError, "enable_gqa must be left out: n_heads and n_kv_heads say it; got True"),
        (
            {"mask": np.ones((2, 5, 5), bool)},
            ValueError,
            "leading axes must broadcast; got mask (2,), q_offset (), query, key and value (2, 4)",
        ),
    ],
}


@pytest.mark.parametrize(("changes", "error", "message"), OTHERS["backward"])
def test_a_malformed_call_of_the_backward_pass(changes, error, message):
    assert_says(error, message, attention_backward, **good(d_output=np.ones((2, 3, 5, 13))) | changes)


@pytest.mark.parametrize(("call", "error", "message"), [row for room in ("masks", "scores", "heads") for row in OTHERS[room]])
def test_a_malformed_call_of_a_part(call, error, message):
    function, *arguments = call
    assert_says(error, message, function, *arguments)


@pytest.mark.parametrize(("changes", "error", "message"), OTHERS["multi-head"])
def test_a_malformed_call_of_multi_head_attention(changes, error, message):
    right = {"x_query": X, "x_key_value": X, "w_query": np.ones((6, 12)), "w_key": np.ones((6, 6)), "w_value": np.ones((6, 6))}
    right |= {"w_output": np.ones((12, 6)), "n_heads": 4, "n_kv_heads": 2}
    assert multi_head_attention(**right).shape == (2, 5, 6)
    assert_says(error, message, multi_head_attention, **right | changes)


def test_an_option_that_does_not_exist_is_named():
    for function, arguments in ((attention, good()), (multi_head_attention, {"x_query": X, "x_key_value": X, "n_heads": 2})):
        weights = {} if function is attention else {f"w_{role}": np.eye(6) for role in ("query", "key", "value", "output")}
        with pytest.raises(TypeError, match="is_casual"):
            function(**arguments, **weights, is_casual=True)
