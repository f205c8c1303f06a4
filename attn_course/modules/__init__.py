"""Trainable layers in torch, on CPU or GPU. Names and meanings are those of `attn_course.reference`, with which tests compare them."""

from attn_course.modules.attention import Attention, attention

__all__ = ["Attention", "attention"]
