"""What attention costs: FLOPs, bytes, cache; every formula exact, every unit in its name.

One convention for all: a multiplication and its addition count 2 FLOPs, so a product of an (m, k) with a (k, n) matrix
costs 2 m k n (Kaplan et al., 2020, section 2.1, arXiv:2001.08361). Only such products count, and what is as large as
they are; exponentials, hyperbolic tangents, divisions and biases do not, because a machine does them elsewhere and at
another rate. Numbers are for one sequence; a batch multiplies them. Lengths, features and heads are integers of 0 or
more, sizes in bytes and of blocks of 1 or more: anything else raises a TypeError or ValueError that names the argument.
"""

from attn_course.costs.cache import cache_bytes_per_token, latent_cache_bytes_per_token, linear_state_bytes
from attn_course.costs.devices import head_parallel_bytes, ring_attention_bytes, ring_idle_pairs, ring_step_pairs
from attn_course.costs.gated import gated_delta_rule_flops, hybrid_cache_bytes
from attn_course.costs.latent import LatentSizes, latent_attention_flops
from attn_course.costs.layers import multi_head_attention_flops, multi_head_parameters, projection_flops, recurrent_flops
from attn_course.costs.linear import delta_rule_flops, linear_attention_flops
from attn_course.costs.long_context import (
    differential_attention_flops,
    mixed_cache_bytes,
    paged_cache_bytes,
    quantised_cache_bytes,
    reach_length,
    selected_attention_flops,
)
from attn_course.costs.pairs import attended_pairs
from attn_course.costs.positions import alibi_bias_bytes, alibi_flops, rotation_flops
from attn_course.costs.scores import attention_backward_flops, attention_flops, query_key_flops
from attn_course.costs.traffic import materialised_attention_bytes, tiled_attention_bytes
from attn_course.costs.transformer import (
    TransformerSizes,
    decoding_bytes,
    feed_forward_flops,
    generation_flops,
    transformer_flops,
    transformer_parameters,
)

__all__ = [
    "LatentSizes",
    "TransformerSizes",
    "alibi_bias_bytes",
    "alibi_flops",
    "attended_pairs",
    "attention_backward_flops",
    "attention_flops",
    "cache_bytes_per_token",
    "decoding_bytes",
    "delta_rule_flops",
    "differential_attention_flops",
    "feed_forward_flops",
    "gated_delta_rule_flops",
    "generation_flops",
    "head_parallel_bytes",
    "hybrid_cache_bytes",
    "latent_attention_flops",
    "latent_cache_bytes_per_token",
    "linear_attention_flops",
    "linear_state_bytes",
    "materialised_attention_bytes",
    "mixed_cache_bytes",
    "multi_head_attention_flops",
    "multi_head_parameters",
    "paged_cache_bytes",
    "projection_flops",
    "quantised_cache_bytes",
    "query_key_flops",
    "reach_length",
    "recurrent_flops",
    "ring_attention_bytes",
    "ring_idle_pairs",
    "ring_step_pairs",
    "rotation_flops",
    "selected_attention_flops",
    "tiled_attention_bytes",
    "transformer_flops",
    "transformer_parameters",
]
