"""Malformed calls of the converters: each message names the argument, what was wanted and what came."""

import re

import numpy as np
import torch

from attn_course import notation
from tests.reference.support import refusals, unlike

ONE = np.ones((1, 1))
OURS = {name: np.ones((2, 2)) for name in ("w_query", "w_key", "w_value", "w_output")}
CALLS = """
table("latex") -> ValueError: dialect must be one of points, columns, features, transformer, sequences, torch; got 'latex'
table(style="html") -> ValueError: style must be one of text, markdown; got 'html'
letters(style=None) -> ValueError: style must be one of text, markdown; got None
invert_mask(np.ones(3)) -> TypeError: mask must be an ndarray of bool; got float64 ndarray
invert_mask([True]) -> TypeError: mask must be an ndarray; got list
to_torch_weights([ONE]) -> TypeError: weights must be a mapping of names to arrays; got list
to_torch_weights({**OURS, "bias_k": ONE})
    -> ValueError: weights may hold w_query, w_key, w_value, w_output, b_query, b_key, b_value, b_output; got 'bias_k'
to_torch_weights({**OURS, "w_key": torch.ones(2, 2)}) -> TypeError: weights['w_key'] must be an ndarray; got Tensor
to_torch_weights({"w_query": ONE}) -> ValueError: weights must hold w_key; got w_query
to_torch_weights({**OURS, "b_query": np.ones(2)}) -> ValueError: weights must hold all four biases or none; got b_query
to_torch_weights({**OURS, "w_value": np.ones((2, 4))})
    -> ValueError: weights['w_value'] must have shape (2, 2), w_query having 2 rows; got (2, 4)
to_torch_weights({**OURS, "w_output": np.ones((4, 2))})
    -> ValueError: weights['w_output'] must have shape (2, 2), w_query having 2 rows; got (4, 2)
to_torch_weights({**OURS, "w_key": np.ones((2, 2), int)}) -> TypeError: weights['w_key'] must be an ndarray of floats; got int64 ndarray
columns_from_rows(np.ones(3)) -> ValueError: array must have the axes (..., rows, columns); got shape (3,)
rows_from_columns([[1.0]]) -> TypeError: array must be an ndarray; got list
"""


def test_the_message_names_the_argument_what_was_wanted_and_what_came():
    assert unlike(refusals(CALLS, vars(notation) | globals() | {"np": np, "torch": torch})) == []


def test_every_public_function_has_a_malformed_call():
    functions = {name for name in notation.__all__ if callable(getattr(notation, name)) and name not in ("Letter", "Term")}
    assert set(re.findall(r"^(\w+)\(", CALLS, re.MULTILINE)) == functions
