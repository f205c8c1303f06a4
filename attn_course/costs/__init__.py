"""What attention costs: FLOPs, bytes, cache, arithmetic intensity, time at best; every formula exact, every unit in its name.

One convention for all: a multiplication and its addition count 2 FLOPs, so a product of an (m, k) with a (k, n) matrix
costs 2 m k n (Kaplan et al., 2020, section 2.1, arXiv:2001.08361). Only such products count, and what is as large as
they are; exponentials, hyperbolic tangents, divisions and biases do not, because a machine does them elsewhere and at
another rate: where they matter they have a function of their own. Numbers are for one sequence; a batch multiplies them.
"""

from attn_course.costs.absorbed import absorption_break_even_d_k, query_key_flops, query_key_parameters
from attn_course.costs.additive import additive_attention_flops, additive_intermediate_bytes, additive_parameters, additive_tanhs
from attn_course.costs.cache import cache_bytes_per_token, latent_cache_bytes_per_token, linear_state_bytes
from attn_course.costs.latent import LatentSizes, latent_attention_flops, latent_attention_parameters
from attn_course.costs.layers import multi_head_attention_flops, multi_head_parameters, projection_flops
from attn_course.costs.linear import delta_rule_flops, linear_attention_crossover_length, linear_attention_flops
from attn_course.costs.pairs import attended_pairs
from attn_course.costs.recurrent import recurrent_flops, recurrent_parameters, sequential_products
from attn_course.costs.roofline import (
    arithmetic_intensity_flops_per_byte,
    attainable_flops_per_s,
    ridge_point_flops_per_byte,
    roofline_time_s,
)
from attn_course.costs.scores import attention_backward_flops, attention_exps, attention_flops, cosine_norm_flops
from attn_course.costs.traffic import materialised_attention_bytes, tiled_attention_bytes

__all__ = [
    "LatentSizes",
    "absorption_break_even_d_k",
    "additive_attention_flops",
    "additive_intermediate_bytes",
    "additive_parameters",
    "additive_tanhs",
    "arithmetic_intensity_flops_per_byte",
    "attainable_flops_per_s",
    "attended_pairs",
    "attention_backward_flops",
    "attention_exps",
    "attention_flops",
    "cache_bytes_per_token",
    "cosine_norm_flops",
    "delta_rule_flops",
    "latent_attention_flops",
    "latent_attention_parameters",
    "latent_cache_bytes_per_token",
    "linear_attention_crossover_length",
    "linear_attention_flops",
    "linear_state_bytes",
    "materialised_attention_bytes",
    "multi_head_attention_flops",
    "multi_head_parameters",
    "projection_flops",
    "query_key_flops",
    "query_key_parameters",
    "recurrent_flops",
    "recurrent_parameters",
    "ridge_point_flops_per_byte",
    "roofline_time_s",
    "sequential_products",
    "tiled_attention_bytes",
]
