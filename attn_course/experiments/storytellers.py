"""Small models that learn to tell stories: what lessons share of them."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attn_course.experiments.stories import LENGTH, WORDS, tables
from attn_course.experiments.training import descend
from attn_course.modules.transformer import Transformer

D_MODEL, N_HEADS, D_HIDDEN, N_BLOCKS = 48, 4, 96, 2
STEPS, BATCH, LEARNING_RATE = 300, 32, 1e-2


def new_model(seed: int, n_blocks: int = N_BLOCKS, **options: Any) -> Transformer:
    """Return a model of the shape of SmolLM2's, much smaller, before training."""
    parts: dict[str, Any] = {"norm": "rms", "activation": "silu", "gated": True, "d_hidden": D_HIDDEN, "rope_theta": 100.0}
    generator = torch.Generator().manual_seed(seed)
    return Transformer(len(WORDS), D_MODEL, N_HEADS, n_blocks, generator=generator, **parts | options)


def loss_of(model: Transformer, rows: Tensor, shift: int = 1) -> Tensor:
    """Return the mean loss of the words that stand `shift` places behind what is read; 1 is right."""
    logits = model(rows[:, :-1])
    return cross_entropy(logits.flatten(0, 1), rows[:, shift : shift + LENGTH].flatten())


def trained(model: Transformer, seed: int, *, steps: int = STEPS, rate: float = LEARNING_RATE, shift: int = 1) -> list[float]:
    """Train the model, and return the losses of its steps; the rate falls to 0 along half a cosine."""
    generator, (read, _) = torch.Generator().manual_seed(seed), tables()

    def loss() -> Tensor:
        return loss_of(model, read[torch.randint(len(read), (BATCH,), generator=generator)], shift)

    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    return descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))
