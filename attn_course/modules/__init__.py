"""Trainable layers in torch, on CPU or GPU. Names and meanings are those of `attn_course.reference`, with which tests compare them."""

from attn_course.modules.additive import AdditiveAttention
from attn_course.modules.attention import Attention, attention
from attn_course.modules.encoder_decoder import EncoderDecoder

__all__ = ["AdditiveAttention", "Attention", "EncoderDecoder", "attention"]
