"""Lesson additive: a translation with and without an aligner. It has a dictionary and writes its sentences backwards."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.encoder_decoder import EncoderDecoder

N_SPECIAL, VOCABULARY, D_EMBED, D_STATE = 3, 24, 32, 48
LONGEST_TRAINED, TEST_LENGTHS, TEST_EXAMPLES = 8, (2, 4, 6, 8, 10, 12, 16), 200
SENTENCES, STEPS, RATE = 32, 350, 1e-2


class Translation:
    """Sentences of different words; the translation looks each up in a dictionary, the last word first.

    `seed`: of the dictionary and the sentences.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.dictionary = torch.randperm(VOCABULARY, generator=self.generator) + N_SPECIAL

    def batch(self, n: int, shortest: int, longest: int) -> tuple[Tensor, Tensor]:
        """Return sources (n, longest) and targets (n, longest + 1), which end with the token 2; 0 is padding."""
        words = torch.rand(n, VOCABULARY, generator=self.generator).argsort(dim=1)[:, :longest]
        lengths = torch.randint(shortest, longest + 1, (n, 1), generator=self.generator)
        place = torch.arange(longest)
        backwards = (lengths - 1 - place).clamp(min=0)
        target = torch.zeros(n, longest + 1, dtype=torch.long)
        target[:, :longest] = self.dictionary[words.take_along_dim(backwards, dim=1)].masked_fill(place >= lengths, 0)
        target.scatter_(1, lengths, 2)
        return (words + N_SPECIAL).masked_fill(place >= lengths, 0), target


def train(aligned: bool, seed: int, steps: int = STEPS) -> EncoderDecoder:
    """Train an encoder-decoder, with an additive aligner or with a fixed vector, on sentences of 2 to 8 words.

    `seed`: of weights, dictionary and sentences. `steps`: batches to see, each once.
    """
    task = Translation(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        size = VOCABULARY + N_SPECIAL
        model = EncoderDecoder(size, size, attention="additive" if aligned else None, d_embed=D_EMBED, d_state=D_STATE)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    descend(optimizer, lambda: model.loss(*task.batch(SENTENCES, 2, LONGEST_TRAINED)), steps, schedule=schedule, longest=1.0)
    return model


def translations(seed: int, lengths: Sequence[int] = TEST_LENGTHS, steps: int = STEPS) -> dict[str, Any]:
    """Train with and without an aligner, and return the share of words right in fresh sentences of each length."""
    found: dict[str, Any] = {"lengths": list(lengths)}
    for name, aligned in (("aligner", True), ("fixed vector", False)):
        model = train(aligned, seed, steps)
        task = Translation(seed)
        task.generator.manual_seed(1000 + seed)
        found[name] = []
        for length in lengths:
            source, target = task.batch(TEST_EXAMPLES, length, length)
            tokens, _ = model.greedy(source, length + 1)
            found[name].append(round(float((tokens == target)[:, :length].float().mean()), 3))
    return found


def conclude(found: dict[str, Any]) -> dict[str, Any]:
    """Say up to which length 80 % of the words are right, and who is ahead beyond the lengths of the training."""
    lengths = found["lengths"]

    def longest(name: str) -> int:
        return max((length for length, share in zip(lengths, found[name], strict=True) if share >= 0.8), default=0)

    beyond = lengths.index(12)
    return {
        "with an aligner: 80 % right up to length": longest("aligner"),
        "without: 80 % right up to length": longest("fixed vector"),
        "12 words: with an aligner right more often": found["aligner"][beyond] > 1.3 * found["fixed vector"][beyond],
        "12 words: with an aligner 80 % right": found["aligner"][beyond] >= 0.8,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say after a third of the steps whether sentences of 12 words are translated better with an aligner."""
    found = translations(seed, lengths=(4, 12), steps=STEPS // 3)
    return {
        "4 words: more than 0.8 right with an aligner": found["aligner"][0] > 0.8,
        "12 words: twice as many right as without": found["aligner"][1] > 2 * found["fixed vector"][1],
    }


TRANSLATIONS = Experiment("results/translations.json", translations, conclude, quick)
EXPERIMENTS = [TRANSLATIONS]
