"""What the lesson self_attention gives its reader: sentences in which "it" stands for an animal, and a training on them."""

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.training import descend
from attn_course.lessons.self_attention.experiments import BATCH, LEARNING_RATE, STEPS, all_sentences, answers, pairs_of_nouns

SEEN, NEW = pairs_of_nouns(np.random.default_rng(0))


def sentences(pairs: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return all sentences about these pairs, (count, 9), as numbers of words, and the animals meant, 0 to 9 (as words 6 to 15)."""
    texts, place = all_sentences(pairs, lead=0)
    return texts, answers(texts, place)


def train(model: nn.Module, seed: int = 0, steps: int = STEPS) -> nn.Module:
    """Draw first weights, and return the model trained on the sentences about the pairs seen.

    Vectors, (count, d), have the standard deviation 1, and stacked matrices, (3, d, d), one over the root of d.
    """
    rng, (texts, meant) = np.random.default_rng(seed), sentences(SEEN)
    for w in model.parameters():
        w.data = torch.tensor(rng.normal(0, 1 if w.ndim == 2 else w.shape[-1] ** -0.5, w.shape)).float()

    def loss() -> Tensor:
        rows = rng.integers(len(texts), size=BATCH)
        return nn.functional.cross_entropy(model(texts[rows]), meant[rows])

    descend(torch.optim.Adam(model.parameters(), lr=LEARNING_RATE), loss, steps)
    return model.requires_grad_(False)
