"""What the lesson heads gives its reader: a training on rings, the matrices of its layer, and how a layer of SmolLM2 reads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.smollm2 import D_K, GROUP, THETA
from attn_course.language.model import LanguageModel
from attn_course.reference import rope

COLOURS = PLACES = 8


def neighbours(rings: Tensor) -> Tensor:
    """Return the colours before and after each place: (count, places) -> (count, places, 2)."""
    return torch.stack([rings.roll(1, dims=1), rings.roll(-1, dims=1)], dim=-1)


def named(answers: Tensor, rings: Tensor) -> str:
    """Say which part of the colours before and after each place is named right: answers (count, places, 2, colours)."""
    right = answers.argmax(dim=-1) == neighbours(rings)
    return "before {:.2f}, after {:.2f}".format(*right.float().mean(dim=(0, 1)))


def matrices(layer: nn.MultiheadAttention) -> list[np.ndarray]:
    """Return the matrices of queries, keys, values and output, to be used as `x @ w`.

    PyTorch keeps the first three in one, and all transposed.
    """
    inward, outward = (w.detach().numpy().T for w in (layer.in_proj_weight, layer.out_proj.weight))
    return [*np.split(inward, 3, axis=1), outward]


def answers(model: nn.Module, z: Sequence[np.ndarray]) -> Tensor:
    """Return what `model.names` makes of outputs of attention: (count, places, d_model) -> (count, places, 2, colours)."""
    names: Any = model.names
    return names(torch.tensor(np.array(z)).float()).unflatten(-1, (2, COLOURS))


def train(model: nn.Module, steps: int = 300) -> nn.Module:
    """Draw first weights, take `steps` steps of Adam on 64 new rings each, and return the model with its weights fixed.

    `model`: rings -> logits (count, places, 2, colours), and weights.
    """
    rng = np.random.default_rng(0)
    for w in model.parameters():
        w.data = torch.tensor(rng.normal(0, 0.2, w.shape)).float()
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in range(steps):
        rings = torch.tensor(rng.integers(COLOURS, size=(64, PLACES)))
        answers = model(rings)[0].flatten(0, 2)
        nn.functional.cross_entropy(answers, neighbours(rings).flatten()).backward()
        adam.step()
        slower.step()
        adam.zero_grad()
    return model.requires_grad_(False)


def turned_and_shared(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> list[np.ndarray]:
    """Turn the queries and keys of each head by their place, and give each key head and its values to three query heads.

    All heads stand side by side, (len, heads * 64); keys and values come as three heads and leave as nine.
    """
    places = np.arange(len(query))
    q, k, v = (side.reshape(len(side), -1, D_K).swapaxes(0, 1) for side in (query, key, value))
    q, k = (rope(side, places, THETA, "interleaved") for side in (q, k))
    k, v = (np.repeat(side, GROUP, axis=0) for side in (k, v))
    return [side.swapaxes(0, 1).reshape(len(places), -1) for side in (q, k, v)]


def differs_by(mine: Callable[[np.ndarray], np.ndarray], model: LanguageModel, layer: int, text: str) -> float:
    """Return the largest difference between what the heads of a layer add to the stream and what yours return, token by token.

    No token sees a later one, so yours are given the text up to each token, and the last row counts.
    """
    read, added = model.around_heads(layer, text)
    return max(float(np.abs(mine(read[: t + 1])[-1] - added[t]).max()) for t in range(len(read)))
