"""Lesson additive: additive scores against dot products, learnt from the output alone; and translation with and without an aligner.

Two lookups and one translation. In the first lookup keys are words, in the second they are vectors; a layer without value
projection has to find the key that the query asks for. The translation has a dictionary and writes its sentences backwards.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.additive import AdditiveAttention
from attn_course.modules.encoder_decoder import Aligner, DotAttention, EncoderDecoder

BATCH, N_KEYS, D_VALUE = 32, 16, 4
N_WORDS, D_WORD, WORD_STEPS, WORD_RATE = 32, 32, 450, 3e-3
WIDTHS = (8, 64, 256)
D_VECTOR, D_HIDDEN, VECTOR_STEPS, VECTOR_RATE = 4, 64, 300, 1e-2
WINDOW, LEARNT = 10, 0.9  # learnt: the largest weight lies on the right key in more than 90 % of the last 10 batches
KINDS = ("additive", "scaled dot", "unscaled dot")


def layer_of(kind: str, size: int, d_hidden: int, generator: torch.Generator) -> AdditiveAttention | DotAttention:
    """Return a fresh layer for queries and keys of `size` features.

    `kind`: "additive", "additive without bias", "scaled dot" or "unscaled dot". `size`, `d_hidden`: features before and after the
    projections. It has the methods `project_keys` and `attend`.
    """
    if kind.startswith("additive"):
        return AdditiveAttention(size, size, d_hidden, bias=kind == "additive", generator=generator)
    return DotAttention(size, size, d_hidden, scaled=kind == "scaled dot", generator=generator)


class Words:
    """Keys are words and the query is the translation of one of them: two trained tables of embeddings, one for each language."""

    def __init__(self, generator: torch.Generator) -> None:
        self.tables = [nn.Parameter(torch.randn(N_WORDS, D_WORD, generator=generator)) for _ in range(2)]
        self.generator = generator

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (batch, 1, 32), keys (batch, 16, 32) and the right key (batch,)."""
        words = torch.rand(BATCH, N_WORDS, generator=self.generator).argsort(dim=1)[:, :N_KEYS]
        wanted = torch.randint(N_KEYS, (BATCH,), generator=self.generator)
        return self.tables[0][words[torch.arange(BATCH), wanted]][:, None], self.tables[1][words], wanted


class Vectors:
    """Keys are fresh normal vectors and the query is one of them, turned by a rotation that never changes."""

    def __init__(self, generator: torch.Generator) -> None:
        self.tables: list[nn.Parameter] = []
        self.rotation = torch.linalg.qr(torch.randn(D_VECTOR, D_VECTOR, generator=generator))[0]
        self.generator = generator

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (batch, 1, 4), keys (batch, 16, 4) and the right key (batch,)."""
        key = torch.randn(BATCH, N_KEYS, D_VECTOR, generator=self.generator)
        wanted = torch.randint(N_KEYS, (BATCH,), generator=self.generator)
        return (key[torch.arange(BATCH), wanted] @ self.rotation)[:, None], key, wanted


def train_lookup(
    layer: AdditiveAttention | DotAttention, task: Words | Vectors, steps: int, rate: float, *, stop_when_learnt: bool = False
) -> dict[str, Any]:
    """Train by the squared error of the output, whose right value is random and belongs to the right key.

    `layer`: changed in place. `task`: makes the batches; its tables are trained as well. `steps`: batches to see, each once.
    `rate`: step size of Adam. `stop_when_learnt`: stop at the first step at which the accuracy is above 0.9. Returns "accuracy":
    share of lookups with the largest weight on the right key, mean of the last 10 batches, for each step; "steps": the first step
    at which it is above 0.9 (`steps` + 1 if there is none).
    """
    rights: list[float] = []
    accuracy: list[float] = []

    def loss() -> Tensor:
        query, key, wanted = task.batch()
        value = torch.randn(BATCH, N_KEYS, D_VALUE, generator=task.generator)
        output, weights = layer.attend(query, layer.project_keys(key), value)
        rights.append(float((weights[:, 0].argmax(dim=-1) == wanted).float().mean()))
        accuracy.append(round(float(np.mean(rights[-WINDOW:])), 3))
        return (output[:, 0] - value[torch.arange(BATCH), wanted]).square().mean()

    def learnt() -> bool:
        return stop_when_learnt and len(accuracy) >= WINDOW and accuracy[-1] > LEARNT

    descend(torch.optim.Adam([*layer.parameters(), *task.tables], lr=rate), loss, steps, stop=learnt)
    first = next((step for step, share in enumerate(accuracy, 1) if step >= WINDOW and share > LEARNT), steps + 1)
    return {"accuracy": accuracy, "steps": first}


def lookups(seed: int, kinds: Sequence[str] = KINDS, widths: Sequence[int] = WIDTHS, vector_steps: int = VECTOR_STEPS) -> dict[str, Any]:
    """Train each score at each width on words, and each once on vectors.

    `seed`: of weights and batches. Returns "words": kind -> d_hidden -> steps until learnt; "vectors": kind -> what
    `train_lookup` saw.
    """
    found: dict[str, Any] = {"words": {}, "vectors": {}}
    for kind in kinds:
        for width in widths:
            generator = torch.Generator().manual_seed(seed)
            layer = layer_of(kind, D_WORD, width, generator)
            seen = train_lookup(layer, Words(generator), WORD_STEPS, WORD_RATE, stop_when_learnt=True)
            found["words"].setdefault(kind, {})[str(width)] = seen["steps"]
    for kind in ("additive", "additive without bias", "scaled dot"):
        generator = torch.Generator().manual_seed(seed)
        layer = layer_of(kind, D_VECTOR, D_HIDDEN, generator)
        found["vectors"][kind] = train_lookup(layer, Vectors(generator), vector_steps, VECTOR_RATE)
    return found


def conclude_lookups(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no who learns in time; "as fast" means within a factor of two of the steps."""
    words, vectors = found["words"], found["vectors"]

    def last(kind: str) -> float:
        return float(vectors[kind]["accuracy"][-1])

    said = {}
    for width in map(str, WIDTHS):
        steps = {kind: words[kind][width] for kind in KINDS}
        said[f"words, d_h = {width}: additive learns"] = steps["additive"] <= WORD_STEPS
        said[f"words, d_h = {width}: scaled dot as fast as additive"] = 0.5 <= steps["scaled dot"] / steps["additive"] <= 2.0
        said[f"words, d_h = {width}: unscaled dot learns"] = steps["unscaled dot"] <= WORD_STEPS
    return {
        **said,
        "vectors: additive above 0.9": last("additive") > 0.9,
        "vectors: additive without bias above 0.55": last("additive without bias") > 0.55,
        "vectors: scaled dot above 0.75": last("scaled dot") > 0.75,
    }


# ---- a translation, with and without an aligner

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


def train_translation(attention: Aligner | None, seed: int, steps: int = STEPS) -> EncoderDecoder:
    """Train an encoder-decoder on sentences of 2 to 8 words.

    `attention`: "additive", "dot" or None. `seed`: of weights, dictionary and sentences. `steps`: batches to see, each once.
    """
    task = Translation(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        size = VOCABULARY + N_SPECIAL
        model = EncoderDecoder(size, size, attention=attention, d_embed=D_EMBED, d_state=D_STATE)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    descend(optimizer, lambda: model.loss(*task.batch(SENTENCES, 2, LONGEST_TRAINED)), steps, schedule=schedule, longest=1.0)
    return model


def translations(seed: int, lengths: Sequence[int] = TEST_LENGTHS, steps: int = STEPS) -> dict[str, Any]:
    """Train with and without an aligner, and translate fresh sentences of one length at a time.

    `seed`: of weights, dictionary and sentences. Returns "lengths"; "additive" and "none": share of words right at each length;
    "on the right word": mean weight there, for each length; "alignment" (7, 6): weights of one sentence of 6 words, its end token
    included.
    """
    found: dict[str, Any] = {"lengths": list(lengths)}
    aligners: dict[str, Aligner | None] = {"additive": "additive", "none": None}
    for name, attention in aligners.items():
        model = train_translation(attention, seed, steps)
        task = Translation(seed)
        task.generator.manual_seed(1000 + seed)
        shares, right_weights = [], []
        for length in lengths:
            source, target = task.batch(TEST_EXAMPLES, length, length)
            tokens, alignments = model.greedy(source, length + 1)
            shares.append(round(float((tokens == target)[:, :length].float().mean()), 3))
            if alignments is not None:
                right_weights.append(round(float(alignments[:, torch.arange(length), torch.arange(length).flip(0)].mean()), 3))
                if length == 6:
                    found["alignment"] = [[round(float(weight), 3) for weight in row] for row in alignments[0]]
        found[name] = shares
        if right_weights:
            found["on the right word"] = right_weights
    return found


def conclude_translations(found: dict[str, Any]) -> dict[str, Any]:
    """Say up to which length 80 % of the words are right, and who is ahead beyond the lengths of the training."""
    lengths = found["lengths"]

    def longest(name: str) -> int:
        return max((length for length, share in zip(lengths, found[name], strict=True) if share >= 0.8), default=0)

    beyond = lengths.index(12)
    return {
        "with an aligner: 80 % right up to length": longest("additive"),
        "without: 80 % right up to length": longest("none"),
        "12 words: with an aligner right more often": found["additive"][beyond] > 1.3 * found["none"][beyond],
        "12 words: with an aligner 80 % right": found["additive"][beyond] >= 0.8,
    }


def quick_lookups(seed: int) -> dict[str, bool]:
    """Say at one width whether words are learnt with the scale only, and whether vectors need a bias in additive scores."""
    found = lookups(seed, widths=(64,), vector_steps=VECTOR_STEPS // 3)
    steps, last = found["words"], {kind: seen["accuracy"][-1] for kind, seen in found["vectors"].items()}
    return {
        "words: additive and scaled dot learn": max(steps["additive"]["64"], steps["scaled dot"]["64"]) <= WORD_STEPS,
        "words: unscaled dot takes twice the steps of scaled dot": steps["unscaled dot"]["64"] >= 2 * steps["scaled dot"]["64"],
        "vectors: the bias helps": last["additive"] > last["additive without bias"],
    }


def quick_translations(seed: int) -> dict[str, bool]:
    """Say after a third of the steps whether sentences of 12 words are translated better with an aligner."""
    found = translations(seed, lengths=(4, 12), steps=STEPS // 3)
    return {
        "4 words: more than 0.8 right with an aligner": found["additive"][0] > 0.8,
        "12 words: twice as many right as without": found["additive"][1] > 2 * found["none"][1],
    }


LOOKUPS = Experiment("results/lookups.json", lookups, conclude_lookups, quick_lookups)
TRANSLATIONS = Experiment("results/translations.json", translations, conclude_translations, quick_translations)
EXPERIMENTS = [LOOKUPS, TRANSLATIONS]
