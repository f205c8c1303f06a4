"""Malformed calls of the converters: each message names the argument, what was wanted and what came."""

import numpy as np
import pytest
import torch

from attn_course import notation

ONE = np.ones((1, 1))
OURS = {name: np.ones((2, 2)) for name in ("w_query", "w_key", "w_value", "w_output")}
NAMES = "w_query, w_key, w_value, w_output, b_query, b_key, b_value, b_output"

CALLS = [
    (
        notation.table,
        ("latex",),
        {},
        ValueError,
        "dialect must be one of points, columns, features, transformer, sequences, torch; got 'latex'",
    ),
    (notation.table, (), {"style": "html"}, ValueError, "style must be one of text, markdown; got 'html'"),
    (notation.letters, (), {"style": None}, ValueError, "style must be one of text, markdown; got None"),
    (notation.invert_mask, (np.ones(3),), {}, TypeError, "mask must be an ndarray of bool; got float64 ndarray"),
    (notation.invert_mask, ([True],), {}, TypeError, "mask must be an ndarray; got list"),
    (notation.from_torch_masks, (np.ones((5, 7), int),), {}, TypeError, "attn_mask must be an ndarray of bool or float; got int64 ndarray"),
    (notation.from_torch_masks, (np.ones(7, bool),), {}, ValueError, "attn_mask must have 2 or 3 axes; got shape (7,)"),
    (
        notation.from_torch_masks,
        (np.ones((4, 5, 7), bool),),
        {"n_heads": 3},
        ValueError,
        "n_heads must divide the first axis of attn_mask; got 3 and 4",
    ),
    (notation.from_torch_masks, (None, np.ones((2, 3, 7), bool)), {}, ValueError, "key_padding_mask must have 2 axes; got shape (2, 3, 7)"),
    (
        notation.from_torch_masks,
        (np.ones((5, 7), bool), np.ones((2, 6), bool)),
        {},
        ValueError,
        "attn_mask and key_padding_mask must have one batch and one number of keys; got (5, 7) and (2, 1, 1, 6)",
    ),
    (
        notation.from_torch_masks,
        (np.ones((6, 5, 7), bool), np.ones((3, 7), bool)),
        {"n_heads": 3},
        ValueError,
        "attn_mask and key_padding_mask must have one batch and one number of keys; got (2, 3, 5, 7) and (3, 1, 1, 7)",
    ),
    (notation.from_torch_masks, (), {"n_heads": 0}, ValueError, "n_heads must be 1 or more; got 0"),
    (notation.to_torch_weights, ([ONE],), {}, TypeError, "weights must be a mapping of names to arrays; got list"),
    (notation.to_torch_weights, ({**OURS, "bias_k": ONE},), {}, ValueError, f"weights may hold {NAMES}; got 'bias_k'"),
    (notation.to_torch_weights, ({**OURS, "w_key": torch.ones(2, 2)},), {}, TypeError, "weights['w_key'] must be an ndarray; got Tensor"),
    (notation.to_torch_weights, ({"w_query": ONE},), {}, ValueError, "weights must hold w_key; got w_query"),
    (
        notation.to_torch_weights,
        ({**OURS, "b_query": np.ones(2)},),
        {},
        ValueError,
        "weights must hold all four biases or none; got b_query",
    ),
    (
        notation.to_torch_weights,
        ({**OURS, "w_value": np.ones((2, 4))},),
        {},
        ValueError,
        "weights['w_value'] must have shape (2, 2), w_query having 2 rows; got (2, 4)",
    ),
    (
        notation.to_torch_weights,
        ({**OURS, "w_output": np.ones((4, 2))},),
        {},
        ValueError,
        "weights['w_output'] must have shape (2, 2), w_query having 2 rows; got (4, 2)",
    ),
    (
        notation.to_torch_weights,
        ({**OURS, "w_key": np.ones((2, 2), int)},),
        {},
        TypeError,
        "weights['w_key'] must be an ndarray of floats; got int64 ndarray",
    ),
    (notation.columns_from_rows, (np.ones(3),), {}, ValueError, "array must have the axes (..., rows, columns); got shape (3,)"),
    (notation.rows_from_columns, ([[1.0]],), {}, TypeError, "array must be an ndarray; got list"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "options", "error", "message"), CALLS, ids=[f"{call[0].__name__}-{i}" for i, call in enumerate(CALLS)]
)
def test_the_message_names_the_argument_what_was_wanted_and_what_came(function, arguments, options, error, message):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert str(caught.value) == message


def test_every_public_function_has_a_malformed_call():
    functions = {name for name in notation.__all__ if callable(getattr(notation, name)) and name not in ("Letter", "Term")}
    assert {call[0].__name__ for call in CALLS} == functions
