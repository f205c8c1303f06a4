"""What measurements of the real model share: the model, the texts, the loss; a seed is the number of a text where nothing is drawn."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.gpu.ops import attention
from attn_course.language.getting import ModelMissing
from attn_course.language.model import LanguageModel, language_model
from attn_course.language.texts import NAMES, text
from attn_course.modules.hooks import Hook, hooked

TOKENS, START = 512, 64  # of each text; scored from START on
BY_TEXT = tuple(range(len(NAMES)))  # the seeds of a measurement in which a seed is a text


def model() -> LanguageModel:
    """Return the model; ModelMissing if it is not here."""
    found = language_model()
    if not found.is_here:
        raise ModelMissing("measurements need the language model: `attn-course model` fetches it (93 MB)")
    return found


def tokens(number: int, count: int = TOKENS) -> Tensor:
    """Return the first tokens of a text."""
    return model().ids(text(NAMES[number]))[:count]


def attending(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Any:
    """Attend as the network does by itself: to build other ways on."""
    return attention(query, key, value, **options)


@torch.inference_mode()
def logits(
    ids: Tensor,
    *,
    attend: Callable[..., Any] | None = None,
    hooks: dict[str, Hook] | None = None,
    positions: Tensor | None = None,
    frequencies: list[float] | None = None,
    temperature: float | None = None,
) -> Tensor:
    """Return the scores of each next token, with some parts of the network exchanged during this call.

    `attend`: called in place of attention in every layer, with `layer=` besides its keywords.
    """
    network = model().network
    assert network is not None
    layers: list[Any] = [block.attention for block in network.blocks]
    before = [(layer.attend, layer.frequencies, layer.temperature) for layer in layers]
    try:
        for number, layer in enumerate(layers):
            if attend is not None:
                layer.attend = lambda *arrays, number=number, **options: attend(*arrays, layer=number, **options)
            layer.frequencies = layer.frequencies if frequencies is None else frequencies
            layer.temperature = layer.temperature if temperature is None else temperature
        with hooked(network, hooks or {}):
            found: Tensor = network(ids, positions=positions)
        return found
    finally:
        for layer, (function, turns, divisor) in zip(layers, before, strict=True):
            layer.attend, layer.frequencies, layer.temperature = function, turns, divisor


def perplexity(scores: Tensor, ids: Tensor, start: int = START) -> float:
    """Return e to the mean loss of the tokens from `start` on."""
    return float(torch.nn.functional.cross_entropy(scores[start - 1 : -1], ids[start:]).exp())
