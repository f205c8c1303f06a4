"""Malformed calls of costs: each message names the argument, what was wanted and what came."""

import re

import numpy as np

from attn_course import costs
from tests.reference.support import refusals, unlike

SIZES = costs.LatentSizes(d_model=7, n_heads=3, d_query_latent=5, d_latent=4, d_head=3, d_rope=2, d_v=6)
MODEL = costs.TransformerSizes(5, 4, 2, 1)
TILES = {"block_q": 2, "block_kv": 2}

CALLS = """
attended_pairs(-1, 3) -> ValueError: q_len must be 0 or more; got -1
attended_pairs(3, 2.0) -> TypeError: kv_len must be an integer; got float 2.0
attended_pairs(3, True) -> TypeError: kv_len must be an integer; got bool True
attended_pairs(3, 3, q_offset=np.array([1])) -> TypeError: q_offset must be an integer; got ndarray array([1])
attended_pairs(3, 3, is_causal=1) -> TypeError: is_causal must be True or False; got int 1
attended_pairs(3, 3, window=2) -> TypeError: window must be None or a tuple (left, right); got 2
attended_pairs(3, 3, window=(1, 2, 3)) -> TypeError: window must be None or a tuple (left, right); got (1, 2, 3)
attended_pairs(3, 3, window=(-1, 0)) -> ValueError: window (left) must be 0 or more; got -1
attended_pairs(3, 3, window=(0, 1.5)) -> TypeError: window (right) must be an integer; got float 1.5
ring_attention_bytes(1, 0, 2, 3, 5) -> ValueError: n_devices must be 1 or more; got 0
ring_attention_bytes(-1, 2, 2, 3, 5) -> ValueError: length must be 0 or more; got -1
ring_attention_bytes(1, 1, 2, 3, 5, with_backward=1) -> TypeError: with_backward must be True or False; got int 1
head_parallel_bytes(1, 3, 4, 3, 5) -> ValueError: n_devices must divide the heads of keys; got 3 and 4
head_parallel_bytes(1, 2, 4, 3, 5, n_kv_heads=3) -> ValueError: n_kv_heads must divide n_heads; got 3 and 4
ring_step_pairs(4, 2, order="even") -> ValueError: order must be one of contiguous, striped, zigzag; got 'even'
ring_idle_pairs(4, 2.0) -> TypeError: n_devices must be an integer; got float 2.0
attention_flops(-2, 1, 1) -> ValueError: pairs must be 0 or more; got -2
attention_flops(2, "8", 1) -> TypeError: d_k must be an integer; got str '8'
attention_backward_flops(2, 1, -1) -> ValueError: d_v must be 0 or more; got -1
projection_flops(1, 1, -1) -> ValueError: d_out must be 0 or more; got -1
multi_head_attention_flops(1, 1, 8, n_heads=3) -> ValueError: n_heads must divide d_model when d_k is left out; got 3 and 8
multi_head_attention_flops(1, 1, 8, n_heads=0) -> ValueError: n_heads must be 1 or more; got 0
multi_head_attention_flops(1, 1, 8, n_heads=4, n_kv_heads=3) -> ValueError: n_kv_heads must divide n_heads; got 3 and 4
multi_head_attention_flops(1, 5, 8, n_heads=4, projected_kv_len=6) -> ValueError: projected_kv_len must be at most kv_len = 5; got 6
multi_head_parameters(8, n_heads=2, bias=0) -> TypeError: bias must be True or False; got int 0
multi_head_parameters(8.0, n_heads=2) -> TypeError: d_model must be an integer; got float 8.0
rotation_flops(1, 1, 3) -> ValueError: d_rotated must be even; got 3
rotation_flops(1, -1, 2) -> ValueError: n_heads must be 0 or more; got -1
alibi_flops(1.0, 2) -> TypeError: pairs must be an integer; got float 1.0
alibi_bias_bytes(1, 1, 1, bytes_per_number=0) -> ValueError: bytes_per_number must be 1 or more; got 0
recurrent_flops(1, 1, 1, n_gates=0) -> ValueError: n_gates must be 1 or more; got 0
linear_attention_flops(1, 1, 1, form="loop") -> ValueError: form must be one of parallel, recurrent, chunked; got 'loop'
linear_attention_flops(1, 1, 1, form="chunked", chunk=0) -> ValueError: chunk must be 1 or more; got 0
linear_attention_flops(1, 1, 1, normalize="no") -> TypeError: normalize must be True or False; got str 'no'
delta_rule_flops(1, 1, 1, form="parallel") -> ValueError: form must be one of recurrent, chunked; got 'parallel'
gated_delta_rule_flops(1, 1, 1, form="parallel") -> ValueError: form must be one of recurrent, chunked; got 'parallel'
gated_delta_rule_flops(1, 1, 1, per_channel=1) -> TypeError: per_channel must be True or False; got int 1
hybrid_cache_bytes(1, 2, every=0, n_heads=1, n_kv_heads=1, d_k=1, d_v=1) -> ValueError: every must be 1 or more; got 0
mixed_cache_bytes(9, 1, 1, 1, n_global=1, n_window=1, left=-1) -> ValueError: left must be 0 or more; got -1
reach_length([2, -1]) -> ValueError: lefts[1] must be 0 or more; got -1
paged_cache_bytes([9, 4], 1, 1, 1, block_size=2, shared=5) -> ValueError: shared must be no larger than each of the lengths; got 5 and 4
paged_cache_bytes([2.0], 1, 1, 1, block_size=2) -> TypeError: lengths[0] must be an integer; got float 2.0
quantised_cache_bytes(1, 1, 1, 1, bits=2, group=0) -> ValueError: group must be 1 or more; got 0
selected_attention_flops(1, 1, 1, k=-1) -> ValueError: k must be 0 or more; got -1
differential_attention_flops(1, 1, 1, one_product=1) -> TypeError: one_product must be True or False; got int 1
query_key_flops(1, 2, 1, 1, 1, absorbed=1) -> TypeError: absorbed must be True or False; got int 1
LatentSizes(7, 0, 5, 4, 3, 2, 6) -> ValueError: n_heads must be 1 or more; got 0
LatentSizes(7, 3, 5, 4, 3, 2.0, 6) -> TypeError: d_rope must be an integer; got float 2.0
latent_attention_flops({}, 1, 1) -> TypeError: sizes must be LatentSizes; got dict
latent_attention_flops(SIZES, 3, 2) -> ValueError: kv_len must be at least q_len = 3, as it holds the new tokens too; got 2
latent_attention_flops(SIZES, 1, 1, form=True) -> ValueError: form must be one of naive, factored, absorbed; got True
cache_bytes_per_token(-1, 1, 1) -> ValueError: n_kv_heads must be 0 or more; got -1
latent_cache_bytes_per_token(1, 1, bytes_per_number=0.5) -> TypeError: bytes_per_number must be an integer; got float 0.5
linear_state_bytes(1, 1, 1, n_layers=-1) -> ValueError: n_layers must be 0 or more; got -1
materialised_attention_bytes(1, -1, 1, 1) -> ValueError: kv_len must be 0 or more; got -1
tiled_attention_bytes(1, 1, 1, 1, block_q=0, block_kv=1) -> ValueError: block_q must be 1 or more; got 0
tiled_attention_bytes(1, 1, 1, 1, **TILES, window=(None,)) -> TypeError: window must be None or a tuple (left, right); got (None,)
TransformerSizes(23, 24, 5, 1) -> ValueError: n_heads must divide d_model when d_k is left out; got 5 and 24
TransformerSizes(23, 24, 6, 1, n_kv_heads=4) -> ValueError: n_kv_heads must divide n_heads; got 4 and 6
TransformerSizes(-1, 24, 6, 1) -> ValueError: n_tokens must be 0 or more; got -1
TransformerSizes(23, 24, 6, 1, tied=1) -> TypeError: tied must be True or False; got int 1
TransformerSizes(23, 24, 6, 1.0) -> TypeError: n_layers must be an integer; got float 1.0
transformer_parameters(24) -> TypeError: sizes must be TransformerSizes; got int
transformer_flops(MODEL, 3, 2) -> ValueError: kv_len must be at least q_len = 3, as it holds the new tokens too; got 2
transformer_flops(MODEL, 1, 2, logits_len=-1) -> ValueError: logits_len must be 0 or more; got -1
generation_flops(MODEL, 3, -2) -> ValueError: n_new must be 0 or more; got -2
generation_flops(MODEL, 3, 2, use_cache=1) -> TypeError: use_cache must be True or False; got int 1
decoding_bytes(MODEL, 3, n_sequences=-1) -> ValueError: n_sequences must be 0 or more; got -1
feed_forward_flops(3, 4, 5, gated="no") -> TypeError: gated must be True or False; got str 'no'
"""


def test_the_message_names_the_argument_what_was_wanted_and_what_came():
    assert unlike(refusals(CALLS, vars(costs) | globals() | {"np": np})) == []


def test_every_public_function_has_a_malformed_call():
    assert set(re.findall(r"^(\w+)\(", CALLS, re.MULTILINE)) == set(costs.__all__)
