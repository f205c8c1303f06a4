"""What measurements of the real model share: the model, the texts, the loss; a seed is the number of a text where nothing is drawn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attn_course.gpu.ops import attention
from attn_course.language.getting import ModelMissing
from attn_course.language.model import LanguageModel, language_model
from attn_course.language.texts import NAMES, text
from attn_course.modules.hooks import Hook, hooked

if TYPE_CHECKING:
    from attn_course.modules.transformer import Transformer

TOKENS, START = 512, 64  # of each text; scored from START on
BY_TEXT = tuple(range(len(NAMES)))  # the seeds of a measurement in which a seed is a text
LAYERS, HEADS, GROUP = range(30), range(9), 3  # GROUP query heads share a key head
D_K, THETA, TRAINED = 64, 100_000.0, 8192
Head = tuple[int, int]  # layer and head, both from 0


def model() -> LanguageModel:
    """Return the model; ModelMissing if it is not here."""
    found = language_model()
    if not found.is_here:
        raise ModelMissing("measurements need the language model: `attn-course model` fetches it (93 MB)")
    return found


def network() -> "Transformer":
    """Return the model as the Transformer it is."""
    found = model().network
    assert found is not None
    return found


def tokens(number: int, count: int = TOKENS) -> Tensor:
    """Return the first tokens of a text."""
    return model().ids(text(NAMES[number]))[:count]


def attending(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Any:
    """Attend as the network does by itself: to build other ways on."""
    return attention(query, key, value, **options)


@contextmanager
def changed(
    *,
    attend: Callable[..., Any] | None = None,
    hooks: dict[str, Hook] | None = None,
    frequencies: Sequence[float] | None = None,
    temperature: float | None = None,
) -> "Iterator[Transformer]":
    """Give the network with some parts exchanged, and put them back.

    `attend`: called in place of attention in every layer, with `layer=` besides its keywords.
    """
    found = network()
    layers: list[Any] = [block.attention for block in found.blocks]
    before = [(layer.attend, layer.frequencies, layer.temperature) for layer in layers]
    try:
        for number, layer in enumerate(layers):
            if attend is not None:
                layer.attend = lambda *arrays, number=number, **options: attend(*arrays, layer=number, **options)
            layer.frequencies = layer.frequencies if frequencies is None else frequencies
            layer.temperature = layer.temperature if temperature is None else temperature
        with hooked(found, hooks or {}):
            yield found
    finally:
        for layer, (function, turns, divisor) in zip(layers, before, strict=True):
            layer.attend, layer.frequencies, layer.temperature = function, turns, divisor


@torch.inference_mode()
def logits(ids: Tensor, *, positions: Tensor | None = None, last: bool = False, **changes: Any) -> Tensor:
    """Return the scores of each next token, or of the last one alone, with the `changes` of `changed` during this call."""
    with changed(**changes) as found:
        scores: Tensor = found(ids, positions=positions, last=last)
        return scores[..., 0, :] if last else scores


@torch.inference_mode()
def streams(ids: Tensor) -> list[Tensor]:
    """Return what goes into each layer."""
    found: list[Tensor] = []
    logits(ids, last=True, hooks={"embedded": found.append} | {f"blocks.{layer}.stream": found.append for layer in LAYERS[:-1]})
    return found


@torch.inference_mode()
def logits_from(layer: int, stream: Tensor, **changes: Any) -> Tensor:
    """Return the scores of each next token from what goes into a layer: where nothing below changes, nothing below is computed again."""
    with changed(**changes) as found:
        for block in found.blocks[layer:]:
            stream = block(stream)
        scores: Tensor = found.norm(stream) @ found.w_tokens.T
        return scores


def losses(scores: Tensor, ids: Tensor, start: int = START) -> Tensor:
    """Return the loss of each token from `start` on."""
    return torch.nn.functional.cross_entropy(scores[..., start - 1 : -1, :].movedim(-1, 1), ids[..., start:], reduction="none")


def perplexity(scores: Tensor, ids: Tensor, start: int = START) -> float:
    """Return e to the mean loss of the tokens from `start` on."""
    return float(losses(scores, ids, start).mean().exp())


def silence(heads: Iterable[Head]) -> dict[str, Hook]:
    """Return hooks that let heads pass on zeros."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def without(own: list[int]) -> Hook:
        return lambda found: found.index_fill(-2, torch.tensor(own), 0.0)

    return {f"blocks.{layer}.attention.heads": without(own) for layer, own in by_layer.items()}


def others(heads: Sequence[Head], seed: int, avoid: Sequence[Head] = ()) -> list[Head]:
    """Draw as many other heads of the same layers, none of those to `avoid`."""
    random, drawn = np.random.default_rng(seed), []
    for layer in sorted({layer for layer, _ in heads}):
        free = [head for head in HEADS if (layer, head) not in (*heads, *avoid)]
        count = sum(own == layer for own, _ in heads)
        drawn += [(layer, int(head)) for head in sorted(random.choice(free, count, replace=False))]
    return drawn


def maps(ids: Tensor, look: Callable[[Tensor], Any] = lambda weights: weights, **changes: Any) -> list[Any]:
    """Return what `look` makes of the weights of each layer, (heads, len, len), layer by layer."""
    found: list[Any] = []
    watch = {f"blocks.{layer}.attention.weights": lambda weights: found.append(look(weights)) for layer in LAYERS}
    logits(ids, last=True, hooks=watch | changes.pop("hooks", {}), **changes)
    return found


def token(word: str) -> int:
    """Return the number of a word that is one token, a space before it if it has one."""
    numbers: list[int] = model().ids(word).tolist()
    if len(numbers) != 1:
        raise ValueError(f"word must be one token; got {word!r} of {len(numbers)}")
    return numbers[0]


def mean(found: Iterable[Any], digits: int = 4) -> float:
    """Return a rounded mean."""
    return round(float(np.mean([float(each) for each in found])), digits)
