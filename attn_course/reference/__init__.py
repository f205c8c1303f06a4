"""The formulas of the course in NumPy: clarity first, defined in every corner.

Arrays are ``(..., len, features)``; leading axes broadcast; rows are positions; a boolean mask is True where a
query may attend. Imported eagerly, so that ``from attn_course.reference import attention`` is always the
function and never a module of that name.
"""

from attn_course.reference.absorption import absorb_query_key, absorb_value_output
from attn_course.reference.alibi import alibi_bias, alibi_slopes
from attn_course.reference.attention import attention
from attn_course.reference.attention_backward import attention_backward
from attn_course.reference.cache import KeyValueCache
from attn_course.reference.delta import delta_rule_attention
from attn_course.reference.delta_product import delta_product_attention
from attn_course.reference.differential import differential_attention, differential_start
from attn_course.reference.features import draw_projections, elu_features, positive_random_features
from attn_course.reference.feed_forward import feed_forward, gelu, silu
from attn_course.reference.heads import merge_heads, multi_head_attention, repeat_key_value, split_heads
from attn_course.reference.latent import latent_attention, latent_attention_absorbed
from attn_course.reference.latent_weights import LatentWeights
from attn_course.reference.leaks import leak_matrix
from attn_course.reference.linear import linear_attention
from attn_course.reference.masks import causal_mask, padding_mask, window_mask
from attn_course.reference.norms import layer_norm, rms_norm
from attn_course.reference.paged import PagedCache, paged_attention
from attn_course.reference.positions import rope, sinusoidal_positions
from attn_course.reference.quantised import QuantisedCache, quantisation_error_bound, quantise
from attn_course.reference.ring import device_places, ring_attention
from attn_course.reference.rolling import RollingCache
from attn_course.reference.rotary import (
    linear_frequencies,
    ntk_frequencies,
    rope_frequencies,
    rotate_pairs,
    yarn_frequencies,
    yarn_temperature,
)
from attn_course.reference.selection import (
    index_scores,
    native_sparse_attention,
    pool_blocks,
    selection_error_bound,
    top_k_mask,
)
from attn_course.reference.similarity import additive_scores, cosine_scores, dot_scores, gaussian_scores, scaled_dot_scores
from attn_course.reference.sinks import gate_output, sink_attention, sink_window_mask
from attn_course.reference.softmax import logsumexp, softmax, softmax_jacobian, softmax_vjp
from attn_course.reference.state_space import decay_matrix
from attn_course.reference.tiling import flash_attention, merge_partial_attention, online_softmax
from attn_course.reference.tiling_backward import flash_attention_backward

__all__ = [
    "KeyValueCache",
    "LatentWeights",
    "PagedCache",
    "QuantisedCache",
    "RollingCache",
    "absorb_query_key",
    "absorb_value_output",
    "additive_scores",
    "alibi_bias",
    "alibi_slopes",
    "attention",
    "attention_backward",
    "causal_mask",
    "cosine_scores",
    "decay_matrix",
    "delta_product_attention",
    "delta_rule_attention",
    "device_places",
    "differential_attention",
    "differential_start",
    "dot_scores",
    "draw_projections",
    "elu_features",
    "feed_forward",
    "flash_attention",
    "flash_attention_backward",
    "gate_output",
    "gaussian_scores",
    "gelu",
    "index_scores",
    "latent_attention",
    "latent_attention_absorbed",
    "layer_norm",
    "leak_matrix",
    "linear_attention",
    "linear_frequencies",
    "logsumexp",
    "merge_heads",
    "merge_partial_attention",
    "multi_head_attention",
    "native_sparse_attention",
    "ntk_frequencies",
    "online_softmax",
    "padding_mask",
    "paged_attention",
    "pool_blocks",
    "positive_random_features",
    "quantisation_error_bound",
    "quantise",
    "repeat_key_value",
    "ring_attention",
    "rms_norm",
    "rope",
    "rope_frequencies",
    "rotate_pairs",
    "scaled_dot_scores",
    "selection_error_bound",
    "silu",
    "sink_attention",
    "sink_window_mask",
    "sinusoidal_positions",
    "softmax",
    "softmax_jacobian",
    "softmax_vjp",
    "split_heads",
    "top_k_mask",
    "window_mask",
    "yarn_frequencies",
    "yarn_temperature",
]
