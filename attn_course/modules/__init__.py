"""Trainable layers in torch, on CPU or GPU. Names and meanings are those of `attn_course.reference`, with which tests compare them."""

from attn_course.modules.additive import AdditiveAttention
from attn_course.modules.attention import Attention, attention
from attn_course.modules.block import Block
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.encoder_decoder import EncoderDecoder
from attn_course.modules.feed_forward import FeedForward
from attn_course.modules.gated_memory import GatedMemory
from attn_course.modules.hooks import Place, hooked
from attn_course.modules.latent import LatentAttention
from attn_course.modules.leaks import Leak, influence, leaks
from attn_course.modules.linear import LinearAttention
from attn_course.modules.long_context import CausalHeads, DifferentialAttention, GatedAttention, SinkAttention
from attn_course.modules.multi_head import MultiHeadAttention
from attn_course.modules.positional import PositionalAttention, rotate_pairs
from attn_course.modules.positions import rope, sinusoidal_positions
from attn_course.modules.recurrent import RecurrentReader
from attn_course.modules.transformer import Transformer

__all__ = [
    "AdditiveAttention",
    "Attention",
    "Block",
    "CausalHeads",
    "DifferentialAttention",
    "EncoderDecoder",
    "FeedForward",
    "GatedAttention",
    "GatedMemory",
    "KeyValueCache",
    "LatentAttention",
    "Leak",
    "LinearAttention",
    "MultiHeadAttention",
    "Place",
    "PositionalAttention",
    "RecurrentReader",
    "SinkAttention",
    "Transformer",
    "attention",
    "hooked",
    "influence",
    "leaks",
    "rope",
    "rotate_pairs",
    "sinusoidal_positions",
]
