"""Malformed calls of costs: each message names the argument, what was wanted and what came."""

import re

import numpy as np

from attn_course import costs
from tests.reference.support import refusals, unlike

SIZES = costs.LatentSizes(d_model=7, n_heads=3, d_query_latent=5, d_latent=4, d_head=3, d_rope=2, d_v=6)
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
attention_flops(-2, 1, 1) -> ValueError: pairs must be 0 or more; got -2
attention_flops(2, "8", 1) -> TypeError: d_k must be an integer; got str '8'
attention_backward_flops(2, 1, -1) -> ValueError: d_v must be 0 or more; got -1
projection_flops(1, 1, -1) -> ValueError: d_out must be 0 or more; got -1
recurrent_flops(1, 1, 1, n_gates=0) -> ValueError: n_gates must be 1 or more; got 0
hybrid_cache_bytes(1, 2, every=0, n_heads=1, n_kv_heads=1, d_k=1, d_v=1) -> ValueError: every must be 1 or more; got 0
LatentSizes(7, 0, 5, 4, 3, 2, 6) -> ValueError: n_heads must be 1 or more; got 0
LatentSizes(7, 3, 5, 4, 3, 2.0, 6) -> TypeError: d_rope must be an integer; got float 2.0
latent_attention_flops({}, 1, 1) -> TypeError: sizes must be LatentSizes; got dict
latent_attention_flops(SIZES, 3, 2) -> ValueError: kv_len must be at least q_len = 3, as it holds the new tokens too; got 2
latent_attention_flops(SIZES, 1, 1, form=True) -> ValueError: form must be one of naive, factored, absorbed; got True
cache_bytes_per_token(-1, 1, 1) -> ValueError: n_kv_heads must be 0 or more; got -1
linear_state_bytes(1, 1, 1, n_layers=-1) -> ValueError: n_layers must be 0 or more; got -1
materialised_attention_bytes(1, -1, 1, 1) -> ValueError: kv_len must be 0 or more; got -1
tiled_attention_bytes(1, 1, 1, 1, block_q=0, block_kv=1) -> ValueError: block_q must be 1 or more; got 0
tiled_attention_bytes(1, 1, 1, 1, **TILES, window=(None,)) -> TypeError: window must be None or a tuple (left, right); got (None,)
TransformerSizes(23, 24, 5, 1) -> ValueError: n_heads must divide d_model; got 5 and 24
TransformerSizes(23, 24, 6, 1, n_kv_heads=4) -> ValueError: n_kv_heads must divide n_heads; got 4 and 6
TransformerSizes(-1, 24, 6, 1) -> ValueError: n_tokens must be 0 or more; got -1
TransformerSizes(23, 24, 6, 1, tied=1) -> TypeError: tied must be True or False; got int 1
TransformerSizes(23, 24, 6, 1.0) -> TypeError: n_layers must be an integer; got float 1.0
transformer_parameters(24) -> TypeError: sizes must be TransformerSizes; got int
"""


def test_the_message_names_the_argument_what_was_wanted_and_what_came():
    assert unlike(refusals(CALLS, vars(costs) | globals() | {"np": np})) == []


def test_every_public_function_has_a_malformed_call():
    assert set(re.findall(r"^(\w+)\(", CALLS, re.MULTILINE)) == set(costs.__all__)
