"""Malformed calls of the converters: each message names the argument, what was wanted and what came."""

import numpy as np
import pytest
import torch

from attn_course import notation

ONE = np.ones((1, 1))
TORCH = {"in_proj_weight": np.ones((6, 2)), "out_proj.weight": np.ones((2, 2))}
OURS = {name: np.ones((2, 2)) for name in ("w_query", "w_key", "w_value", "w_output")}
TORCH_NAMES = "in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias"

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
    (notation.additive_mask, (np.ones(3, int),), {}, TypeError, "mask must be an ndarray of bool; got int64 ndarray"),
    (notation.additive_mask, (np.ones(3, bool), int), {}, TypeError, "dtype must be floating; got int64"),
    (notation.boolean_mask, (np.array([0.0, -1e9]),), {}, ValueError, "added must hold 0 and -inf only, to be a mask; got -1000000000.0"),
    (notation.boolean_mask, (np.array([0.0, np.nan]),), {}, ValueError, "added must hold 0 and -inf only, to be a mask; got nan"),
    (notation.boolean_mask, (np.ones(2, bool),), {}, TypeError, "added must be an ndarray of floats; got bool ndarray"),
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
    (notation.from_torch_weights, ([ONE],), {}, TypeError, "state must be a mapping of names to arrays; got list"),
    (notation.from_torch_weights, ({},), {}, ValueError, "state must hold out_proj.weight; got nothing"),
    (notation.from_torch_weights, ({**TORCH, "bias_k": ONE},), {}, ValueError, f"state may hold {TORCH_NAMES}; got 'bias_k'"),
    (
        notation.from_torch_weights,
        ({"out_proj.weight": ONE},),
        {},
        ValueError,
        "state must hold either in_proj_weight or q_proj_weight, k_proj_weight, v_proj_weight; got out_proj.weight",
    ),
    (
        notation.from_torch_weights,
        ({"out_proj.weight": ONE, "q_proj_weight": ONE},),
        {},
        ValueError,
        "state must hold k_proj_weight; got out_proj.weight, q_proj_weight",
    ),
    (
        notation.from_torch_weights,
        ({**TORCH, "in_proj_weight": np.ones((2, 6))},),
        {},
        ValueError,
        "state['in_proj_weight'] must have shape (6, 2), (3 embed_dim, embed_dim); got (2, 6)",
    ),
    (
        notation.from_torch_weights,
        ({**TORCH, "out_proj.weight": np.ones((2, 3))},),
        {},
        ValueError,
        "state['out_proj.weight'] must have shape (2, 2), (embed_dim, embed_dim); got (2, 3)",
    ),
    (
        notation.from_torch_weights,
        ({**TORCH, "in_proj_weight": torch.ones(6, 2)},),
        {},
        TypeError,
        "state['in_proj_weight'] must be an ndarray; got Tensor",
    ),
    (
        notation.from_torch_weights,
        ({**TORCH, "in_proj_bias": np.ones(6)},),
        {},
        ValueError,
        "state must hold both in_proj_bias and out_proj.bias or neither; got in_proj_weight, out_proj.weight, in_proj_bias",
    ),
    (
        notation.from_torch_weights,
        ({**TORCH, "in_proj_bias": np.ones(5), "out_proj.bias": np.ones(2)},),
        {},
        ValueError,
        "state['in_proj_bias'] must have shape (6,), one for each output feature; got (5,)",
    ),
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
        "weights['w_value'] must have shape (2, 2), with as many columns as w_query has rows, 2; got (2, 4)",
    ),
    (
        notation.to_torch_weights,
        ({**OURS, "w_output": np.ones((4, 2))},),
        {},
        ValueError,
        "weights['w_output'] must have shape (2, 2), with as many columns as w_query has rows, 2; got (4, 2)",
    ),
    (
        notation.to_torch_weights,
        ({**OURS, "w_key": np.ones((2, 2), int)},),
        {},
        TypeError,
        "weights['w_key'] must be an ndarray of floats; got int64 ndarray",
    ),
    (
        notation.unpack_query_key_value,
        (np.ones(7),),
        {"n_heads": 2},
        ValueError,
        "packed must hold 2 queries, 2 keys and 2 values in its last axis; got 7",
    ),
    (
        notation.unpack_query_key_value,
        (np.ones(7),),
        {"n_heads": 2, "d_v": 4},
        ValueError,
        "packed must hold 2 queries, 2 keys and 2 values of 4 features in its last axis; got 7",
    ),
    (
        notation.unpack_query_key_value,
        (np.ones(6),),
        {"n_heads": 3, "n_kv_heads": 2},
        ValueError,
        "n_kv_heads must divide n_heads; got 2 and 3",
    ),
    (
        notation.unpack_query_key_value,
        (np.ones(6),),
        {"n_heads": 2, "order": "qkv"},
        ValueError,
        "order must be one of blocks, groups; got 'qkv'",
    ),
    (
        notation.unpack_query_key_value,
        (np.array(1.0),),
        {"n_heads": 1},
        ValueError,
        "packed must have the axes (..., heads * features); got shape ()",
    ),
    (notation.unpack_query_key_value, (np.ones(6),), {"n_heads": 2.0}, TypeError, "n_heads must be an integer; got float 2.0"),
    (
        notation.pack_query_key_value,
        (np.ones((3, 4)), np.ones((2, 4)), np.ones((3, 4))),
        {"n_heads": 2},
        ValueError,
        "key must have the leading axes of query, (3,); got (2,)",
    ),
    (
        notation.pack_query_key_value,
        (np.ones(4), np.ones(4), np.ones(3)),
        {"n_heads": 2},
        ValueError,
        "value must hold 2 heads in its last axis; got 3",
    ),
    (
        notation.pack_query_key_value,
        (np.ones(4), np.ones(6), np.ones(4)),
        {"n_heads": 2},
        ValueError,
        "query and key must have heads of one size; got 2 and 3",
    ),
    (
        notation.pack_query_key_value,
        (np.ones(4), np.ones(4, int), np.ones(4)),
        {"n_heads": 2},
        TypeError,
        "key must be an ndarray of floats; got int64 ndarray",
    ),
    (notation.columns_from_rows, (np.ones(3),), {}, ValueError, "array must have the axes (..., rows, columns); got shape (3,)"),
    (notation.rows_from_columns, ([[1.0]],), {}, TypeError, "array must be an ndarray; got list"),
    (notation.swap_state_layout, (np.ones(3),), {}, ValueError, "state must have the axes (..., d_k, d_v); got shape (3,)"),
    (
        notation.interleaved_from_halves,
        (np.ones(6),),
        {"n_heads": 2},
        ValueError,
        "x must hold 2 heads of an even number of features in its last axis; got 6",
    ),
    (notation.halves_from_interleaved, (np.ones(6, int),), {}, TypeError, "x must be an ndarray of floats; got int64 ndarray"),
    (notation.halves_from_interleaved, (np.ones(6),), {"n_heads": True}, TypeError, "n_heads must be an integer; got bool True"),
    (notation.rescale_query, (ONE,), {"scale": 1.0, "new_scale": 0.0}, ValueError, "new_scale must be finite and not 0; got 0.0"),
    (notation.rescale_query, (ONE,), {"scale": None, "new_scale": 1.0}, TypeError, "scale must be a number; got NoneType None"),
    (notation.base2_from_natural, ("1",), {}, TypeError, "exponent must be a number or an ndarray of floats; got str"),
    (notation.natural_from_base2, (np.ones(2, int),), {}, TypeError, "exponent must be an ndarray of floats; got int64 ndarray"),
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
