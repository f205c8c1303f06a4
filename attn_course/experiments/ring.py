"""The layer that names both neighbours, trained while a lesson runs, and the same layer as a function of NumPy arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.neighbours import Neighbours, accuracies, train
from attn_course.reference import attention, merge_heads, split_heads


def trained(n_heads: int, *, steps: int, seed: int) -> Neighbours:
    """Train a layer with heads of width 32 / `n_heads`; `seed`: of the first weights and of the texts."""
    generator = torch.Generator().manual_seed(seed)
    ring = Neighbours(n_heads, generator)
    train(ring, generator, steps)
    return ring


def named(ring: Any) -> list[float]:
    """Return how often a layer, or a function from symbols to logits, names the symbol before, the symbol after, and both."""
    return accuracies(ring, torch.Generator().manual_seed(0))


@torch.no_grad()
def named_by(layer: Callable[..., np.ndarray], ring: Neighbours, silent: int) -> list[float]:
    """Return the same for a trained layer that `layer` computes, text by text, without head `silent`; its arguments are those below."""
    found = ring.attention
    *projections, w_output = (w.double().numpy() for w in (found.w_query, found.w_key, found.w_value, found.w_output))

    def answers(text: Tensor) -> Tensor:
        read = (ring.symbols[text] + ring.places).double().numpy()
        written = [layer(*(x @ w for w in projections), w_output, found.n_heads, silent) for x in read]
        return (torch.from_numpy(np.stack(written)).to(ring.answers) @ ring.answers).unflatten(-1, (2, -1))

    return named(answers)


def layer(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, w_output: np.ndarray, n_heads: int, silent: int | None = None
) -> np.ndarray:
    """Return what a layer writes to which head `silent` adds nothing, Eq. output-projection-sums-heads."""
    heads = attention(*(split_heads(side, n_heads) for side in (query, key, value)))
    heads[[] if silent is None else silent] = 0.0
    return np.asarray(merge_heads(heads) @ w_output)
