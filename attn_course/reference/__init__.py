"""The formulas of the course in NumPy: clarity first, defined in every corner.

Arrays are ``(..., len, features)``; leading axes broadcast; rows are positions; a boolean mask is True where a
query may attend. Imported eagerly, so that ``from attn_course.reference import attention`` is always the
function and never a module of that name.
"""

from attn_course.reference.absorption import absorb_query_key, absorb_value_output
from attn_course.reference.attention import attention
from attn_course.reference.attention_backward import attention_backward
from attn_course.reference.cache import KeyValueCache
from attn_course.reference.delta import delta_rule_attention
from attn_course.reference.features import draw_projections, elu_features, positive_random_features
from attn_course.reference.heads import merge_heads, multi_head_attention, repeat_key_value, split_heads
from attn_course.reference.latent import latent_attention, latent_attention_absorbed
from attn_course.reference.latent_weights import LatentWeights
from attn_course.reference.leaks import leak_matrix
from attn_course.reference.linear import linear_attention
from attn_course.reference.masks import causal_mask, padding_mask, window_mask
from attn_course.reference.positions import rope, sinusoidal_positions
from attn_course.reference.ring import device_places, ring_attention
from attn_course.reference.similarity import additive_scores, cosine_scores, dot_scores, gaussian_scores, scaled_dot_scores
from attn_course.reference.softmax import logsumexp, softmax, softmax_jacobian, softmax_vjp
from attn_course.reference.tiling import flash_attention, merge_partial_attention, online_softmax
from attn_course.reference.tiling_backward import flash_attention_backward

__all__ = [
    "KeyValueCache",
    "LatentWeights",
    "absorb_query_key",
    "absorb_value_output",
    "additive_scores",
    "attention",
    "attention_backward",
    "causal_mask",
    "cosine_scores",
    "delta_rule_attention",
    "device_places",
    "dot_scores",
    "draw_projections",
    "elu_features",
    "flash_attention",
    "flash_attention_backward",
    "gaussian_scores",
    "latent_attention",
    "latent_attention_absorbed",
    "leak_matrix",
    "linear_attention",
    "logsumexp",
    "merge_heads",
    "merge_partial_attention",
    "multi_head_attention",
    "online_softmax",
    "padding_mask",
    "positive_random_features",
    "repeat_key_value",
    "ring_attention",
    "rope",
    "scaled_dot_scores",
    "sinusoidal_positions",
    "softmax",
    "softmax_jacobian",
    "softmax_vjp",
    "split_heads",
    "window_mask",
]
