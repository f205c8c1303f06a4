"""Malformed calls of the reference: each message names the argument, what was wanted and what came.

That an argument is no array of the right kind, or a flag no flag, is in test_contract.py.
"""

import dataclasses

import jaxtyping
import numpy as np
import pytest

from attn_course import reference
from attn_course.reference import KeyValueCache, flash_attention, softmax, softmax_vjp
from tests.reference.support import refusals, unlike
from tests.reference.test_latent import some_weights

pytestmark = pytest.mark.usefixtures("no_shape_check")


def some(*shape):
    return np.ones(shape)


X = some(2, 5, 6)
ATTENTION = {"query": some(2, 3, 5, 7), "key": some(2, 3, 11, 7), "value": some(2, 3, 11, 13)}
BLOCKS = {"block_q": 2, "block_kv": 3}
HEADS = {"x_query": X, "x_key_value": X, "w_query": some(6, 12), "w_key": some(6, 6), "w_value": some(6, 6)}
HEADS |= {"w_output": some(12, 6), "n_heads": 4, "n_kv_heads": 2}
ROWS = {"query": some(5, 3), "key": some(5, 3), "value": some(5, 4)}
GROUPED = {"query": some(6, 5, 3), "enable_gqa": True}
LATENT = {"x": some(5, 11), "weights": some_weights(), "n_heads": 3, "positions": np.arange(5)}


def filled_cache():
    cache = KeyValueCache()
    cache.append(some(3, 2, 4), some(3, 2, 5))
    return cache


def pages():
    cache = reference.PagedCache(3, 2)
    cache.append("a", some(3, 1), some(3, 1))
    return cache


# What is wrong with a call of attention is wrong with its backward pass too.
ATTENTION_CHANGES = """
query=np.ones(7) -> ValueError: query must have the axes (..., len, features); got shape (7,)
key=some(2, 3, 11, 6) -> ValueError: query and key must share d_k, the last axis; got 7 and 6
value=some(2, 3, 10, 13) -> ValueError: key and value must share kv_len, the axis before the last; got 11 and 10
key=some(4, 11, 7) -> ValueError: leading axes must broadcast; got query (2, 3), key (4,), value (2, 3)
query=some(5, 0), key=some(11, 0) -> ValueError: scale must be given when d_k is 0; got None
mask=np.ones(5, dtype=bool) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (5,)
mask=np.array(True) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape ()
mask=some(11, 5) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (11, 5)
mask=some(5, 0) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 5, 11); got shape (5, 0)
mask=some(4, 5, 11) -> ValueError: leading axes must broadcast; got mask (4,), q_offset (), query, key and value (2, 3)
q_offset=1.5 -> TypeError: q_offset must be an integer or an ndarray of integers; got float
q_offset=True -> TypeError: q_offset must be an integer or an ndarray of integers; got bool
q_offset=[0, 1] -> TypeError: q_offset must be an integer or an ndarray of integers; got list
q_offset=np.array([0.0]) -> TypeError: q_offset must be an integer or an ndarray of integers; got float64 ndarray
q_offset=np.zeros(4, int) -> ValueError: leading axes must broadcast; got q_offset (4,), query, key and value (2, 3)
window=3 -> TypeError: window must be a tuple (left, right); got 3
window=[1, 0] -> TypeError: window must be a tuple (left, right); got [1, 0]
window=(1, 0, 2) -> TypeError: window must be a tuple (left, right); got (1, 0, 2)
window=(1.0, 0) -> TypeError: window (left) must be an integer; got float 1.0
window=(0, -1) -> ValueError: window (right) must be 0 or more; got -1
scale="1" -> TypeError: scale must be a number or None; got str
scale=np.ones(3) -> TypeError: scale must be a number or None; got ndarray
scale=True -> TypeError: scale must be a number or None; got bool
scale=float("nan") -> ValueError: scale must be finite; got nan
scale=-float("inf") -> ValueError: scale must be finite; got -inf
softcap=0.0 -> ValueError: softcap must be positive and finite; got 0.0
softcap="30" -> TypeError: softcap must be a number; got str
enable_gqa=True, query=some(5, 7) -> ValueError: query must have the axes (..., heads, len, features); got shape (5, 7)
enable_gqa=True, key=some(2, 2, 11, 7), value=some(2, 2, 11, 13)
    -> ValueError: query must have a multiple of the key's heads, axis -3; got 3 and 2
enable_gqa=True, key=some(2, 1, 11, 7) -> ValueError: key and value must share their heads, axis -3; got 1 and 3
"""
GRADIENT_CHANGES = """
d_output=some(5, 13) -> ValueError: d_output must have shape (2, 3, 5, 13), that of the output; got (5, 13)
d_lse=some(2, 3, 5, 1) -> ValueError: d_lse must have shape (2, 3, 5), that of the log-sum-exp; got (2, 3, 5, 1)
return_d_mask=True -> ValueError: return_d_mask needs a float mask; got no mask
"""

# functions, a call that is right, and what is changed in it
CHANGES = {
    "attention": (ATTENTION, ATTENTION_CHANGES),
    "attention_backward": (ATTENTION | {"d_output": some(2, 3, 5, 13)}, ATTENTION_CHANGES + GRADIENT_CHANGES),
    "flash_attention": (
        ATTENTION | BLOCKS,
        ATTENTION_CHANGES
        + """
block_q=0 -> ValueError: block_q must be 1 or more; got 0
block_kv=2.0 -> TypeError: block_kv must be an integer; got float 2.0
""",
    ),
    "flash_attention_backward": (
        ATTENTION | BLOCKS | {"d_output": some(2, 3, 5, 13)},
        ATTENTION_CHANGES
        + GRADIENT_CHANGES
        + """
output=some(2, 3, 5, 13) -> ValueError: output and lse must be given together; got output alone
lse=some(2, 3, 5) -> ValueError: output and lse must be given together; got lse alone
output=some(2, 3, 5, 13), lse=np.ones(4) -> ValueError: lse must have shape (2, 3, 5), that of the log-sum-exp; got (4,)
output=some(6, 4), lse=np.ones(6), d_output=some(6, 4)
    -> ValueError: output must have shape (2, 3, 5, 13), that of the output of attention; got (6, 4)
""",
    ),
    "multi_head_attention": (
        HEADS,
        """
n_heads=0 -> ValueError: n_heads must be 1 or more; got 0
n_heads=4.0 -> TypeError: n_heads must be an integer; got float 4.0
n_kv_heads=3 -> ValueError: n_kv_heads must divide n_heads; got 3 and 4
n_kv_heads=0 -> ValueError: n_kv_heads must be 1 or more; got 0
n_heads=5, n_kv_heads=1 -> ValueError: n_heads must divide the columns of w_query; got 5 and 12
w_key=some(6, 5) -> ValueError: n_kv_heads must divide the columns of w_key; got 2 and 5
w_key=some(6, 8) -> ValueError: w_query and w_key must give heads of one size d_k; got 3 and 4
w_query=some(12, 6) -> ValueError: w_query must have shape (features of its input, ...) = (6, ...); got (12, 6)
w_output=some(7, 6) -> ValueError: w_output must have shape (features of its input, ...) = (12, ...); got (7, 6)
b_key=np.ones(12) -> ValueError: b_key must have shape (6,), one entry for each column of w_key; got (12,)
x_query=np.ones(6) -> ValueError: x_query must have the axes (..., len, features); got shape (6,)
x_key_value=some(3, 7, 6) -> ValueError: leading axes must broadcast; got x_query (2,), x_key_value (3,)
enable_gqa=True -> TypeError: enable_gqa must be left out: n_heads and n_kv_heads say it; got True
mask=np.ones((2, 5, 5), bool) -> ValueError: leading axes must broadcast; got mask (2,), q_offset (), query, key and value (2, 4)
""",
    ),
    "linear_attention": (
        ROWS,
        """
key=np.zeros(3) -> ValueError: key must have the axes (..., len, features); got shape (3,)
key=some(5, 2) -> ValueError: query and key must share d_k, the last axis; got 3 and 2
query=some(6, 3) -> ValueError: query and key must share len, the axis before the last; got 6 and 5
value=some(6, 4) -> ValueError: value and key must share len, the axis before the last; got 6 and 5
log_decay=np.zeros((6, 1)) -> ValueError: log_decay and key must share len, the axis before the last; got 6 and 5
log_decay=np.zeros((5, 2)) -> ValueError: log_decay must have 1 or d_k = 3 features, the last axis; got 2
log_decay=np.full((5, 1), 0.25) -> ValueError: log_decay must be at most 0 everywhere; got 0.25
log_decay=np.full((5, 1), np.nan) -> ValueError: log_decay must be at most 0 everywhere; got nan
form="serial" -> ValueError: form must be one of 'parallel', 'recurrent', 'chunked'; got 'serial'
chunk=0 -> ValueError: chunk must be 1 or more; got 0
chunk=8.0 -> TypeError: chunk must be an integer; got float 8.0
scale=None -> TypeError: scale must be a number; got NoneType
scale=np.inf -> ValueError: scale must be finite; got inf
normalize=True -> ValueError: normalize needs a feature_map; got None
feature_map="elu" -> TypeError: feature_map must be callable or None; got str
feature_map=lambda x: x[:1]
    -> ValueError: feature_map must return an ndarray of floats, (5, 'd_phi') for the query; got float64 ndarray of shape (1, 3)
feature_map=lambda x: x > 0
    -> ValueError: feature_map must return an ndarray of floats, (5, 'd_phi') for the query; got bool ndarray of shape (5, 3)
feature_map=np.exp, normalize=True, initial_state=some(3, 4)
    -> TypeError: initial_state must be a pair (S, z) with normalize; got float64 ndarray
feature_map=np.exp, normalize=True, initial_state=(some(3, 4), np.zeros(4))
    -> ValueError: initial_state[1] must have shape (3,), or broadcast to it; got (4,)
initial_state=some(4, 3) -> ValueError: initial_state must have shape (3, 4), or broadcast to it; got (4, 3)
initial_state=some(1, 4) -> ValueError: initial_state must have shape (3, 4), or broadcast to it; got (1, 4)
initial_state=some(2, 3, 4) -> ValueError: initial_state must have shape (3, 4), or broadcast to it; got (2, 3, 4)
initial_state=(0.0,) -> TypeError: initial_state must be an ndarray of floats; got tuple
enable_gqa=True -> ValueError: query must have the axes (..., heads, len, features); got shape (5, 3)
query=some(2, 5, 3), key=some(3, 5, 3) -> ValueError: leading axes must broadcast; got query (2,), key (3,), value ()
**GROUPED, key=some(4, 5, 3), value=some(4, 5, 3) -> ValueError: query must have a multiple of the key's heads, axis -3; got 6 and 4
**GROUPED, key=some(3, 5, 3), value=some(3, 5, 3), log_decay=np.zeros((2, 5, 1))
    -> ValueError: log_decay must have the key's 3 heads, axis -3, or 1; got 2
**GROUPED, key=some(3, 5, 3), value=some(3, 5, 3), log_decay=np.zeros((6, 5, 1))
    -> ValueError: log_decay must have the key's 3 heads, axis -3, or 1; got 6
is_causal=False, form="chunked" -> ValueError: is_causal=False allows form="parallel" only, without decay and states; got form
is_causal=False, log_decay=np.zeros((5, 1))
    -> ValueError: is_causal=False allows form="parallel" only, without decay and states; got log_decay
is_causal=False, initial_state=some(3, 4)
    -> ValueError: is_causal=False allows form="parallel" only, without decay and states; got initial_state
is_causal=False, return_state=True -> ValueError: is_causal=False allows form="parallel" only, without decay and states; got return_state
""",
    ),
    "delta_rule_attention": (
        ROWS | {"beta": some(5, 1)},
        """
beta=some(5, 3) -> ValueError: beta must have one number for each position, (..., len, 1); got shape (5, 3)
beta=some(4, 1) -> ValueError: beta and key must share len, the axis before the last; got 4 and 5
key=some(5, 2) -> ValueError: query and key must share d_k, the last axis; got 3 and 2
query=some(6, 3) -> ValueError: query and key must share len, the axis before the last; got 6 and 5
form="parallel" -> ValueError: form must be one of 'recurrent', 'chunked'; got 'parallel'
scale="1" -> TypeError: scale must be a number; got str
initial_state=some(4, 3) -> ValueError: initial_state must have shape (3, 4), or broadcast to it; got (4, 3)
initial_state=np.zeros(4) -> ValueError: initial_state must have shape (3, 4), or broadcast to it; got (4,)
""",
    ),
    "latent_attention latent_attention_absorbed": (
        LATENT,
        """
x=some(5, 10) -> ValueError: x must have d_model = 11 features, the rows of w_query_down; got 10
x=np.zeros(11) -> ValueError: x must have the axes (..., len, d_model); got shape (11,)
weights={} -> TypeError: weights must be LatentWeights; got dict
n_heads=2 -> ValueError: n_heads must divide the columns of w_query_up; got 2 and 15
n_heads=0 -> ValueError: n_heads must be 1 or more; got 0
n_heads="3" -> TypeError: n_heads must be an integer; got str '3'
n_heads=1 -> ValueError: w_query_rope must have n_heads * d_rope = 4 columns; got 12
positions=np.arange(4) -> ValueError: positions must have the axes (..., len) with len = 5, one for each row of x; got (4,)
positions=some(2, 5) -> ValueError: positions must broadcast to (5,), the axes of x but for its features; got (2, 5)
cache=[] -> TypeError: cache must be a KeyValueCache or None; got list
norm_q=1.0 -> TypeError: norm_q must be callable or None; got float
norm_kv=lambda c: c[:1] -> ValueError: norm_kv must return an ndarray of shape (5, 6); got (1, 6)
""",
    ),
    "delta_product_attention": (
        {"query": some(7, 5), "key": some(7, 3, 5), "value": some(7, 3, 2), "beta": some(7, 3, 1)},
        """
key=np.ones((7, 5)) -> ValueError: key must have the axes (..., len, n_steps, features); got shape (7, 5)
key=np.ones((7, 0, 5)) -> ValueError: key must have at least one step, the axis before the last; got 0
value=np.ones((7, 2, 2)) -> ValueError: value and key must share len and n_steps; got (7, 2) and (7, 3)
beta=np.ones((6, 3, 1)) -> ValueError: beta and key must share len and n_steps; got (6, 3) and (7, 3)
query=np.ones((6, 5)) -> ValueError: query and key must share len; got 6 and 7
log_decay=-np.ones((21, 5)) -> ValueError: log_decay and key must share len; got 21 and 7
log_decay=np.ones((7, 5)) -> ValueError: log_decay must be at most 0 everywhere; got 1.0
log_decay=-np.ones((7, 2)) -> ValueError: log_decay must have 1 or d_k = 5 features, the last axis; got 2
beta=np.ones((7, 3, 5)) -> ValueError: beta must have one number for each position, (..., len, 1); got shape (21, 5)
form="parallel" -> ValueError: form must be one of 'recurrent', 'chunked'; got 'parallel'
""",
    ),
}

CALLS = """
causal_mask(-1, 3) -> ValueError: q_len must be 0 or more; got -1
causal_mask(3, 2.0) -> TypeError: kv_len must be an integer; got float 2.0
causal_mask(True, 2) -> TypeError: q_len must be an integer; got bool True
causal_mask(3, 2, "0") -> TypeError: q_offset must be an integer or an ndarray of integers; got str
window_mask(3, 2, -1, None) -> ValueError: left must be 0 or more; got -1
window_mask(3, 2, None, 0.5) -> TypeError: right must be an integer; got float 0.5
window_mask(3, -2, 1, 1) -> ValueError: kv_len must be 0 or more; got -2
padding_mask(np.array([1, 4]), 3) -> ValueError: lengths must lie in 0 .. kv_len = 3; got 1 to 4
padding_mask(np.array([-1]), 3) -> ValueError: lengths must lie in 0 .. kv_len = 3; got -1 to -1
padding_mask(np.array([1]), None) -> TypeError: kv_len must be an integer; got NoneType None
dot_scores(some(3, 2), some(3, 4)) -> ValueError: query and key must share d_k, the last axis; got 2 and 4
dot_scores(np.ones(2), some(3, 2)) -> ValueError: query must have the axes (..., len, d_k); got shape (2,)
cosine_scores(some(2, 1, 2), some(3, 1, 2)) -> ValueError: leading axes must broadcast; got query (2,), key (3,)
scaled_dot_scores(some(1, 2), some(1, 2), "a") -> TypeError: scale must be a number or None; got str
scaled_dot_scores(some(1, 2), some(1, 2), np.inf) -> ValueError: scale must be finite; got inf
scaled_dot_scores(some(1, 0), some(1, 0)) -> ValueError: scale must be given when d_k is 0; got None
gaussian_scores(some(1, 2), some(1, 2), 0.0) -> ValueError: bandwidth must be positive and finite; got 0.0
gaussian_scores(some(1, 2), some(1, 2), None) -> TypeError: bandwidth must be a number; got NoneType
gaussian_scores(some(1, 2), some(1, 3), 1.0) -> ValueError: query and key must share d_k, the last axis; got 2 and 3
additive_scores(some(1, 2), some(1, 3), some(3, 4), some(3, 4), np.ones(4))
    -> ValueError: w_query must have shape (2, 4), (d_q of query, d_hidden of w_score); got (3, 4)
additive_scores(some(1, 2), some(1, 3), some(2, 4), some(3, 5), np.ones(4))
    -> ValueError: w_key must have shape (3, 4), (d_k of key, d_hidden of w_score); got (3, 5)
additive_scores(some(1, 2), some(1, 3), some(2, 4), some(3, 4), some(4, 1))
    -> ValueError: w_score must have the one axis d_hidden; got shape (4, 1)
split_heads(X, 4) -> ValueError: n_heads must divide d_model, the last axis of x; got 4 and 6
split_heads(X, 0) -> ValueError: n_heads must be 1 or more; got 0
split_heads(X, 2.0) -> TypeError: n_heads must be an integer; got float 2.0
split_heads(np.ones(6), 2) -> ValueError: x must have the axes (..., len, d_model); got shape (6,)
merge_heads(some(5, 6)) -> ValueError: x must have the axes (..., n_heads, len, d_head); got shape (5, 6)
repeat_key_value(X, 0) -> ValueError: n_repeats must be 1 or more; got 0
repeat_key_value(some(5, 6), 2) -> ValueError: x must have the axes (..., n_kv_heads, len, d_head); got shape (5, 6)
repeat_key_value(X, None) -> TypeError: n_repeats must be an integer; got NoneType None
positive_random_features(np.zeros(3), some(5, 3)) -> ValueError: x must have the axes (..., len, d_k); got shape (3,)
positive_random_features(some(2, 3), some(5, 4)) -> ValueError: projections must have shape (n_features, d_k) with d_k = 3; got (5, 4)
draw_projections(0, 3, np.random.default_rng(0)) -> ValueError: d_k must be 1 or more; got 0
draw_projections(3, 2.5, np.random.default_rng(0)) -> TypeError: n_features must be an integer; got float 2.5
draw_projections(3, 2, 0) -> TypeError: rng must be a numpy.random.Generator; got int
absorb_query_key(np.eye(2), some(2, 2, 2)) -> ValueError: w_key must have two axes; got shape (2, 2, 2)
absorb_value_output(np.eye(2), np.zeros(2)) -> ValueError: w_output must have two axes; got shape (2,)
absorb_query_key(np.eye(4), np.eye(4), 3) -> ValueError: n_heads must divide the heads' total width in w_query; got 3 and 4
absorb_query_key(np.eye(4), np.eye(4), 0) -> ValueError: n_heads must be 1 or more; got 0
absorb_query_key(np.eye(4), np.eye(4), 2.0) -> TypeError: n_heads must be an integer; got float 2.0
absorb_query_key(some(4, 8), some(4, 6), 4)
    -> ValueError: w_key must hold 4 heads of width 2 as w_query does, or a divisor; got a total width of 6
absorb_value_output(some(4, 5), some(8, 4), 4)
    -> ValueError: w_value must hold 4 heads of width 2 as w_output does, or a divisor; got a total width of 5
sinusoidal_positions(-1, 4) -> ValueError: length must be 0 or more; got -1
sinusoidal_positions(3, 0) -> ValueError: d_model must be 1 or more; got 0
sinusoidal_positions(3.0, 4) -> TypeError: length must be an integer; got float 3.0
rope(np.zeros(4), np.array([0])) -> ValueError: x must have the axes (..., len, d_k); got shape (4,)
rope(some(2, 3), np.arange(2)) -> ValueError: x must have an even number of features, the last axis; got 3
rope(some(2, 4), np.arange(3)) -> ValueError: positions must have the axes (..., len) with len = 2, one for each row of x; got (3,)
rope(some(3, 2, 4), some(5, 2)) -> ValueError: leading axes must broadcast; got x (3,), positions (5,)
rope(some(2, 4), np.arange(2), theta=0.0) -> ValueError: theta must be positive and finite; got 0.0
rope(some(2, 4), np.arange(2), layout="pairs") -> ValueError: layout must be "halves" or "interleaved"; got 'pairs'
rope_frequencies(3) -> ValueError: d_rotated must be even; got 3
rope_frequencies(-2) -> ValueError: d_rotated must be 0 or more; got -2
rope_frequencies(4.0) -> TypeError: d_rotated must be an integer; got float 4.0
rope_frequencies(4, -1.0) -> ValueError: theta must be positive and finite; got -1.0
linear_frequencies(4, 0.5) -> ValueError: factor must be 1 or more; got 0.5
linear_frequencies(4, "2") -> TypeError: factor must be a number; got str
ntk_frequencies(2, 2.0) -> ValueError: d_rotated must be 4 or more; got 2
ntk_frequencies(4, np.inf) -> ValueError: factor must be positive and finite; got inf
yarn_frequencies(4, 2.0, 0) -> ValueError: trained_length must be 1 or more; got 0
yarn_frequencies(4, 2.0, 64.0) -> TypeError: trained_length must be an integer; got float 64.0
yarn_frequencies(4, 2.0, 64, slow=32.0) -> ValueError: slow must be below fast; got 32.0 and 32.0
yarn_frequencies(4, 2.0, 64, slow=0.0) -> ValueError: slow must be positive and finite; got 0.0
yarn_frequencies(4, 2.0, 64, ramp="linear") -> ValueError: ramp must be "turns" or "pairs"; got 'linear'
yarn_frequencies(4, 2.0, 64, 1.0, ramp="pairs") -> ValueError: theta must be above 1 for ramp "pairs"; got 1.0
yarn_temperature(0.9) -> ValueError: factor must be 1 or more; got 0.9
rotate_pairs(some(2, 5), np.arange(2), some(3))
    -> ValueError: frequencies must have one axis of at most d_k / 2 = 2.5 pairs; got shape (3,)
rotate_pairs(some(2, 5), np.arange(2), some(1, 1))
    -> ValueError: frequencies must have one axis of at most d_k / 2 = 2.5 pairs; got shape (1, 1)
rotate_pairs(some(2, 5), np.arange(2), some(0), "pairs") -> ValueError: layout must be "halves" or "interleaved"; got 'pairs'
alibi_slopes(0) -> ValueError: n_heads must be 1 or more; got 0
alibi_bias(2, -1, 3) -> ValueError: q_len must be 0 or more; got -1
alibi_bias(2, 1, 3.0) -> TypeError: kv_len must be an integer; got float 3.0
alibi_bias(2, 1, 3, 1.5) -> TypeError: q_offset must be an integer or an ndarray of integers; got float
alibi_bias(2, 1, 3, some(2)) -> TypeError: q_offset must be an integer or an ndarray of integers; got float64 ndarray
online_softmax(3.0) -> TypeError: blocks must be an iterable of ndarrays; got float
online_softmax([]) -> ValueError: blocks must hold at least one block; got none
online_softmax([np.array(1.0)]) -> ValueError: blocks[0] must have at least one axis; got shape ()
online_softmax([some(2, 3), some(4, 3)]) -> ValueError: leading axes must broadcast; got blocks[0] (2,), blocks[1] (4,)
merge_partial_attention([], []) -> ValueError: outputs and lses must hold the same number of arrays, at least one; got 0 and 0
merge_partial_attention([some(5, 3)], [np.zeros(5)] * 2)
    -> ValueError: outputs and lses must hold the same number of arrays, at least one; got 1 and 2
merge_partial_attention([some(5, 3)], [np.zeros(4)]) -> ValueError: lses[0] must have shape (5,), that of its output but for d_v; got (4,)
merge_partial_attention([some(5, 3), some(5, 4)], [np.zeros(5)] * 2)
    -> ValueError: outputs[1] must have shape (5, 3), that of outputs[0]; got (5, 4)
merge_partial_attention([np.zeros(3)], [np.zeros(())]) -> ValueError: outputs[0] must have the axes (..., q_len, d_v); got shape (3,)
filled_cache().append(np.zeros(4), some(1, 5)) -> ValueError: key must have the axes (..., len, features); got shape (4,)
filled_cache().append(some(3, 1, 4), some(3, 2, 5)) -> ValueError: key and value must share len, the axis before the last; got 1 and 2
filled_cache().append(np.zeros((3, 1, 4), np.float32), some(3, 1, 5))
    -> TypeError: key must have the dtype of the past, float64; got float32
filled_cache().append(some(3, 1, 4), some(3, 1, 6))
    -> ValueError: value must have the shape of the past but for len, (3, 1, 5); got (3, 1, 6)
filled_cache().append(some(2, 1, 4), some(3, 1, 5))
    -> ValueError: key must have the shape of the past but for len, (3, 1, 4); got (2, 1, 4)
filled_cache().append(some(1, 4), some(1, 5)) -> ValueError: key must have the shape of the past but for len, (3, 1, 4); got (1, 4)
pages().read("b") -> ValueError: sequence must be one of ['a']; got 'b'
paged_attention(some(3, 1), pages(), "b") -> ValueError: sequence must be one of ['a']; got 'b'
paged_attention(some(4, 1), pages(), "a") -> ValueError: query must be no longer than its sequence, 3; got 4
pages().fork("a", "a") -> ValueError: name must be new; got 'a', which is a sequence already
pages().append("a", some(1, 2), some(1, 1)) -> ValueError: key must have the shape of the pool but for len, (1, 1); got (1, 2)
pages().append("a", some(1, 1).astype("float32"), some(1, 1)) -> TypeError: key must have the dtype of the pool, float64; got float32
pages().append("a", some(1, 1), some(2, 1)) -> ValueError: key and value must share len, the axis before the last; got 1 and 2
PagedCache(3, 0) -> ValueError: block_size must be 1 or more; got 0
leak_matrix(X, X[0]) -> TypeError: function must be callable; got ndarray
leak_matrix(np.copy, X) -> ValueError: x must have the axes (kv_len, d_model); got shape (2, 5, 6)
leak_matrix(lambda x: x[:, 0], X[0]) -> ValueError: function must return rows, (q_len, d_output); got shape (5,)
leak_matrix(np.copy, X[0], size=0.0) -> ValueError: size must be positive and finite; got 0.0
leak_matrix(lambda x, sizes=iter([2, 3]): np.zeros((next(sizes), 1)), X[0])
    -> ValueError: function must return the same shape each time; got (2, 1) and (3, 1)
softmax_vjp(some(3, 5), np.ones(5)) -> ValueError: d_weights must have the shape of weights, (3, 5); got (5,)
softmax(some(3, 5), 2) -> ValueError: axis must be one of the 2 axes of scores; got 2 for shape (3, 5)
softmax(some(3, 5), -3) -> ValueError: axis must be one of the 2 axes of scores; got -3 for shape (3, 5)
logsumexp(some(3, 5), 2) -> ValueError: axis must be one of the 2 axes of scores; got 2 for shape (3, 5)
softmax(some(3, 5), None) -> TypeError: axis must be an integer; got NoneType
softmax(some(3, 5), 1.0) -> TypeError: axis must be an integer; got float
logsumexp(some(3, 5), (0, 1)) -> TypeError: axis must be an integer; got tuple
softmax(some(3, 5), temperature=0.0) -> ValueError: temperature must be a positive finite number; got 0.0
softmax(some(3, 5), temperature=-1.0) -> ValueError: temperature must be a positive finite number; got -1.0
softmax(some(3, 5), temperature=np.inf) -> ValueError: temperature must be a positive finite number; got inf
softmax(some(3, 5), temperature=np.nan) -> ValueError: temperature must be a positive finite number; got nan
softmax(some(3, 5), temperature=0) -> ValueError: temperature must be a positive finite number; got 0
softmax(some(3, 5), temperature="1") -> TypeError: temperature must be a number; got str
softmax(some(3, 5), temperature=None) -> TypeError: temperature must be a number; got NoneType
softmax(some(3, 5), temperature=np.ones(3)) -> TypeError: temperature must be a number; got ndarray
softmax(some(3, 5), temperature=1j) -> TypeError: temperature must be a number; got complex
replace(some_weights(), w_query_up=np.zeros((12, 15)))
    -> ValueError: w_query_up must have 13 entries on axis 0, as w_query_down has on axis 1; got 12
replace(some_weights(), w_key_up=np.zeros((6, 16)))
    -> ValueError: w_key_up must have 15 entries on axis 1, as w_query_up has on axis 1; got 16
replace(some_weights(), w_latent_down=np.zeros((10, 6)))
    -> ValueError: w_latent_down must have 11 entries on axis 0, as w_query_down has on axis 0; got 10
replace(some_weights(), w_output=np.zeros((20, 11)))
    -> ValueError: w_output must have 21 entries on axis 0, as w_value_up has on axis 1; got 20
replace(some_weights(), w_value_up=np.zeros((6,))) -> ValueError: w_value_up must have two axes; got shape (6,)
layer_norm(some(2, 3), some(4)) -> ValueError: gain must have shape (3,), one number for each feature; got (4,)
layer_norm(some(2, 3), None, some(3, 1)) -> ValueError: bias must have shape (3,), one number for each feature; got (3, 1)
layer_norm(some(2, 3), eps=0.0) -> ValueError: eps must be positive and finite; got 0.0
layer_norm(some(2, 3), eps="small") -> TypeError: eps must be a number; got str
rms_norm(np.array(1.0)) -> ValueError: x must have the axes (..., d_model); got shape ()
feed_forward(some(2, 3), some(4, 5), some(5, 2)) -> ValueError: w_in must have shape (3, 5), to fit x and w_out; got (4, 5)
feed_forward(some(3), some(3, 5), some(5)) -> ValueError: w_out must have the axes (d_hidden, d_output); got shape (5,)
feed_forward(some(2, 3), some(3, 5), some(5, 2), activation="tanh")
    -> ValueError: activation must be one of relu, gelu, gelu_tanh, silu; got 'tanh'
feed_forward(some(2, 3), some(3, 5), some(5, 2), w_gate=some(3, 4))
    -> ValueError: w_gate must have shape (3, 5), to fit x and w_out; got (3, 4)
ring_attention(some(3, 2), some(2, 2), some(3, 2), n_devices=2) -> ValueError: query, key and value must be of one length; got [3, 2, 3]
ring_attention(some(3, 2), some(3, 2), some(3, 2), n_devices=0) -> ValueError: n_devices must be 1 or more; got 0
device_places(3.0, 2) -> TypeError: length must be an integer; got float 3.0
device_places(3, 2, "even") -> ValueError: order must be one of contiguous, striped, zigzag; got 'even'
quantise(X, 17, "token") -> ValueError: bits must be 16 or less; got 17
QuantisedCache(0, 4) -> ValueError: bits must be 1 or more; got 0
QuantisedCache(2, 0) -> ValueError: group must be 1 or more; got 0
quantise(X, 2, "head") -> ValueError: shared_by must be "token" or "channel"; got 'head'
quantise(X * np.inf, 2, "token") -> ValueError: x must be finite; got NaN or infinity
quantise(some(0, 3), 2, "channel") -> ValueError: x must have a token at least; got shape (0, 3)
quantisation_error_bound(some(1, 2), *[quantise(some(2, 3), 2, "token")] * 2) -> ValueError: query must have d_k features, 3; got 2
sink_attention(X, X, X, some(3)) -> ValueError: sink_logits must broadcast to the leading axes (2,); got shape (3,)
sink_attention(X, X, X, some(2, 1)) -> ValueError: sink_logits must broadcast to the leading axes (2,); got shape (2, 1)
gate_output(X, some(2, 2)) -> ValueError: gate_scores must broadcast to the shape of output, (2, 5, 6); got (2, 2)
sink_window_mask(2, 3, 1, -1) -> ValueError: left must be 0 or more; got -1
RollingCache(1, -1) -> ValueError: n_sinks must be 0 or more; got -1
RollingCache(None) -> TypeError: left must be an integer; got NoneType None
differential_attention(X, (X, X), X, some(2)) -> ValueError: query must be a tuple of two arrays, one for each map; got ndarray
differential_attention((X, X), (X, X), X, some(3)) -> ValueError: factor must broadcast to the leading axes (2,); got shape (3,)
differential_attention((X, X), (X, [1.0]), X, some(2)) -> TypeError: key[1] must be an ndarray of floats; got list
differential_start(0) -> ValueError: layer must be 1 or more; got 0
native_sparse_attention(X, X, X, some(5, 2), block=2, n_selected=1, left=1)
    -> ValueError: key must have len rows and gates (len, 3), len = 5; got 5 and (5, 2)
native_sparse_attention(X, X, X, some(5, 3), block=2, n_selected=0, left=1) -> ValueError: n_selected must be 1 or more; got 0
pool_blocks(X, 0) -> ValueError: block must be 1 or more; got 0
top_k_mask(X, -1) -> ValueError: k must be 0 or more; got -1
selection_error_bound(some(5, 3), np.ones((5, 3), bool), some(5, 3)) -> ValueError: value must have kv_len rows, 3; got 5
selection_error_bound(some(5, 3), some(5, 3), some(5, 3)) -> TypeError: mask must be an ndarray of bool; got float64
index_scores(some(2, 5, 3), some(5, 3), some(2, 5))
    -> ValueError: head_weights must have the axes (..., q_len, heads) = (..., 5, 2); got (2, 5)
decay_matrix(np.array([-1.0, 0.9])) -> ValueError: log_decay must be at most 0 everywhere; got 0.9
decay_matrix(np.array(-1.0)) -> ValueError: log_decay must have the axes (..., len); got shape ()
softmax(np.array(1.0)) -> ValueError: axis must be one of the 0 axes of scores; got -1 for shape ()
logsumexp(np.array(1.0)) -> ValueError: axis must be one of the 0 axes of scores; got -1 for shape ()
softmax_jacobian(np.array(1.0)) -> ValueError: axis must be one of the 0 axes of weights; got -1 for shape ()
"""
NAMES = {name: getattr(reference, name) for name in reference.__all__} | globals() | {"replace": dataclasses.replace}


@pytest.mark.parametrize("names", CHANGES)
def test_a_call_is_right_and_each_change_of_it_is_refused_by_the_name_of_its_argument(names):
    right, changes = CHANGES[names]
    for name in names.split():
        NAMES[name](**right)
        assert unlike(refusals(changes, NAMES | {"right": right}, name + "(**right | dict({}))")) == []


def test_a_malformed_call_is_refused_by_the_name_of_its_argument():
    assert unlike(refusals(CALLS, NAMES)) == []


@pytest.mark.parametrize("option", ["is_casual", "return_wieghts"])
def test_an_option_that_does_not_exist_is_named(option):
    for names, (right, _) in CHANGES.items():
        for name in names.split():
            with pytest.raises(TypeError, match=option):
                NAMES[name](**right, **{option: True})


def test_the_weights_of_tiled_attention_cannot_be_asked_for():
    with pytest.raises(TypeError, match="return_weights"):
        flash_attention(**ATTENTION, **BLOCKS, return_weights=True)


def test_the_shape_check_of_the_tests_is_on_where_it_is_not_switched_off():
    jaxtyping.config.update("jaxtyping_disable", False)
    with pytest.raises(Exception, match="d_weights"):
        softmax_vjp(np.zeros((3, 5)), np.zeros((3, 7)))
    with pytest.raises(Exception, match="scores"):
        softmax(np.arange(3))
