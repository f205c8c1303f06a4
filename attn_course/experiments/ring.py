"""The layer that names both neighbours, trained while a lesson runs."""

import torch

from attn_course.experiments.neighbours import Neighbours, accuracies, train


def trained(n_heads: int, *, steps: int, seed: int) -> list[float]:
    """Train a layer and return how often it names the symbol before, the symbol after, and both.

    `n_heads`: heads of width 32 / n_heads. `seed`: of the first weights and of the texts.
    """
    generator = torch.Generator().manual_seed(seed)
    layer = Neighbours(n_heads, generator)
    train(layer, generator, steps)
    return accuracies(layer, generator)
