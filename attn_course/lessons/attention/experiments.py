"""Lesson attention: how many random bits one output of attention can hold, and how many one output per question."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.attention import Attention

LENGTHS = (2, 4, 6, 8, 16, 32)
WIDTHS = (4, 8)
D_MODEL = 32
D_K = 16
D_HIDDEN = 256
BATCH = 64
STEPS = 500
LEARNING_RATE = 1e-2
TEST_EXAMPLES = 2048


class OneOutput(nn.Module):
    """A single learned query reads all positions; from its one output a small network tells every bit."""

    def __init__(self, length: int, d_v: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(length, 2, D_MODEL, generator=generator))
        self.question = nn.Parameter(torch.randn(1, D_MODEL, generator=generator))
        self.attention = Attention(D_MODEL, D_K, d_v, generator=generator)
        self.hidden, self.logits = _linear(d_v, D_HIDDEN, generator), _linear(D_HIDDEN, length, generator)

    def forward(self, bits: Tensor) -> Tensor:
        """Return a logit for each bit: (batch, length) -> (batch, length)."""
        output, _ = self.attention(self.question, _embed(self.tokens, bits))
        return self.logits(torch.relu(self.hidden(output[..., 0, :])))


class OneOutputPerQuestion(nn.Module):
    """One query for each bit, so there are as many outputs as positions; each tells its own bit.

    It starts at random like the other model: no question knows its position.
    """

    def __init__(self, length: int, d_v: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(length, 2, D_MODEL, generator=generator))
        self.questions = nn.Parameter(torch.randn(length, D_MODEL, generator=generator))
        self.attention = Attention(D_MODEL, D_K, d_v, generator=generator)
        self.hidden, self.logit = _linear(d_v, D_HIDDEN // 4, generator), _linear(D_HIDDEN // 4, 1, generator)

    def forward(self, bits: Tensor) -> Tensor:
        """Return a logit for each bit: (batch, length) -> (batch, length)."""
        output, _ = self.attention(self.questions, _embed(self.tokens, bits))
        return self.logit(torch.relu(self.hidden(output)))[..., 0]


def _linear(d_in: int, d_out: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(d_in, d_out)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(d_out, d_in, generator=generator) * (2.0 / d_in) ** 0.5)
        layer.bias.zero_()
    return layer


def _embed(tokens: Tensor, bits: Tensor) -> Tensor:
    """Pick for each position the token of its bit: (length, 2, d_model), (batch, length) -> (batch, length, d_model)."""
    return torch.where(bits[..., None] > 0.5, tokens[:, 1], tokens[:, 0])


def accuracy(model: nn.Module, length: int, generator: torch.Generator, steps: int = STEPS) -> float:
    """Train a model on random bits, and return the share of bits it tells right on fresh ones.

    `model`: the model, trained in place. `length`: how many bits an example has. The share lies between 0.5 (guessing) and 1.
    """

    def loss() -> Tensor:
        bits = torch.randint(2, (BATCH, length), generator=generator).float()
        return binary_cross_entropy_with_logits(model(bits), bits)

    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))
    with torch.no_grad():
        bits = torch.randint(2, (TEST_EXAMPLES, length), generator=generator).float()
        return float(((model(bits) > 0) == (bits > 0.5)).float().mean())


def capacity(seed: int, lengths: Sequence[int] = LENGTHS, widths: Sequence[int] = WIDTHS, steps: int = STEPS) -> dict[str, Any]:
    """Train each model at each length, and return the accuracies.

    `seed`: of the first weights and of the bits. Returns "lengths", "widths", "one output" (a row for each width) and "one output
    per question" (at the smaller width).
    """
    generator = torch.Generator().manual_seed(seed)
    one = [[accuracy(OneOutput(length, d_v, generator), length, generator, steps) for length in lengths] for d_v in widths]
    many = [accuracy(OneOutputPerQuestion(length, widths[0], generator), length, generator, steps) for length in lengths]
    return {"lengths": list(lengths), "widths": list(widths), "one output": one, "one output per question": many}


def conclude(result: dict[str, Any]) -> dict[str, Any]:
    """Return up to which length each model tells at least 95 of 100 bits right, at this length and at all shorter ones."""

    def longest(row: list[float]) -> int:
        held = itertools.takewhile(lambda pair: pair[1] >= 0.95, zip(result["lengths"], row, strict=True))
        return max((length for length, _ in held), default=0)

    held = {f"one output, d_v = {width}": longest(row) for width, row in zip(result["widths"], result["one output"], strict=True)}
    return {**held, "one output per question": longest(result["one output per question"])}


def quick(seed: int) -> dict[str, bool]:
    """Say after a fifth of the steps whether one narrow output holds two bits and not 32, and one per question holds more of them."""
    found = capacity(seed, lengths=(2, 32), widths=WIDTHS[:1], steps=STEPS // 5)
    (few, many), (few_each, many_each) = found["one output"][0], found["one output per question"]
    return {
        "one output holds two bits": few > 0.95,
        "one output does not hold 32 bits": many < 0.8,
        "one output per question holds two bits": few_each > 0.95,
        "one output per question tells more of 32 bits": many_each > many + 0.05,
    }


CAPACITY = Experiment("results/capacity.json", capacity, conclude, quick)
EXPERIMENTS = [CAPACITY]
