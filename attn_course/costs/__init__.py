"""What attention costs: FLOPs, bytes, cache; every formula exact, every unit in its name.

One convention for all: a multiplication and its addition count 2 FLOPs, so a product of an (m, k) with a (k, n) matrix
costs 2 m k n (Kaplan et al., 2020, section 2.1, arXiv:2001.08361). Only such products count, and what is as large as
they are; exponentials, hyperbolic tangents, divisions and biases do not, because a machine does them elsewhere and at
another rate. Numbers are for one sequence; a batch multiplies them. Lengths, features and heads are integers of 0 or
more, sizes in bytes and of blocks of 1 or more: anything else raises a TypeError or ValueError that names the argument.
"""

from attn_course.costs.cache import cache_bytes_per_token, linear_state_bytes
from attn_course.costs.hybrid import hybrid_cache_bytes
from attn_course.costs.latent import LatentSizes, latent_attention_flops
from attn_course.costs.layers import projection_flops, recurrent_flops
from attn_course.costs.pairs import attended_pairs
from attn_course.costs.scores import attention_backward_flops, attention_flops
from attn_course.costs.traffic import materialised_attention_bytes, tiled_attention_bytes
from attn_course.costs.transformer import TransformerSizes, transformer_parameters

__all__ = [
    "LatentSizes",
    "TransformerSizes",
    "attended_pairs",
    "attention_backward_flops",
    "attention_flops",
    "cache_bytes_per_token",
    "hybrid_cache_bytes",
    "latent_attention_flops",
    "linear_state_bytes",
    "materialised_attention_bytes",
    "projection_flops",
    "recurrent_flops",
    "tiled_attention_bytes",
    "transformer_parameters",
]
