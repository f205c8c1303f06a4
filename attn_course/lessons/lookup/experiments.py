"""Recall at a distance: two named items, a stretch of distractions, then the question for one of the names.

A position is (name, colour, name asked for, distraction), each one-hot or all zero. An RNN, an LSTM and one layer of attention
are trained from scratch for each length of the stretch, on fresh batches, until they answer right or have seen 1000 batches.
The RNN did not learn the longest stretch in 1500 batches either (tried for two seeds and both of its step sizes).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules import Attention, RecurrentReader

ITEMS, COLOURS, SYMBOLS = 2, 4, 4  # two names; a colour and a distraction are each one of four
D_IN = ITEMS + COLOURS + ITEMS + SYMBOLS
D_HIDDEN, D_K = 64, 16
STRETCHES = (2, 8, 32)  # distractions between the items and the question, in training
DISTANCES = (2, 4, 8, 16, 32, 64, 128)  # the same, for gradients before training
MODELS = ("attention", "LSTM", "RNN")
FORGET_BIAS = math.log(STRETCHES[-1])  # the cell keeps 32 / 33 of its content in a step: a memory as long as the longest stretch
LEARNING_RATE = {"attention": 0.01, "LSTM": 0.01, "RNN": 0.003}  # tried: 0.01 and 0.003, for the RNN 0.003 and 0.001
MOST_STEPS, CHECK_EVERY, LEARNT = 1000, 50, 0.95
BATCH, TEST_EXAMPLES, GRADIENT_EXAMPLES = 64, 512, 256
LARGEST_GRADIENT = 1.0  # longer gradients are shortened to this, against the explosions of recurrent networks


class AttentionReader(nn.Module):
    """The last position asks all positions; a linear map turns the output into an answer."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.attention = Attention(D_IN, D_K, D_K, generator=generator)
        self.answer = nn.Linear(D_K, COLOURS)
        with torch.no_grad():
            self.answer.weight.copy_(torch.randn(COLOURS, D_K, generator=generator) / math.sqrt(D_K))
            self.answer.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Return the answers: (batch, len, d_in) -> (batch, colours)."""
        output, _ = self.attention(x[:, -1:], x)
        return self.answer(output[:, 0])


def new_model(name: str, generator: torch.Generator) -> nn.Module:
    """Return an untrained model by its name."""
    if name == "attention":
        return AttentionReader(generator)
    return RecurrentReader(D_IN, D_HIDDEN, COLOURS, "rnn" if name == "RNN" else "lstm", forget_bias=FORGET_BIAS, generator=generator)


def examples(count: int, stretch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw sequences with their answers.

    `stretch`: distractions between the items and the question. Returns `x` (count, 2 + stretch + 1, 12): the positions: both
    names in random order, each with a colour; distractions; the question; `colour` (count,): that of the item asked for; `wanted`
    (count,): its position, 0 or 1.
    """
    row = torch.arange(count)
    name = torch.rand(count, ITEMS, generator=generator).argsort(dim=1)
    colour = torch.randint(COLOURS, (count, ITEMS), generator=generator)
    symbol = torch.randint(SYMBOLS, (count, stretch), generator=generator)
    wanted = torch.randint(ITEMS, (count,), generator=generator)
    x = torch.zeros(count, ITEMS + stretch + 1, D_IN)
    its_name, its_colour, asked_for, distraction = x.split((ITEMS, COLOURS, ITEMS, SYMBOLS), dim=-1)  # views: x is filled
    its_name[:, :ITEMS], its_colour[:, :ITEMS] = torch.eye(ITEMS)[name], torch.eye(COLOURS)[colour]
    distraction[:, ITEMS:-1] = torch.eye(SYMBOLS)[symbol]
    asked_for[:, -1] = torch.eye(ITEMS)[name[row, wanted]]
    return x, colour[row, wanted], wanted


@torch.no_grad()
def accuracy(model: nn.Module, stretch: int, generator: torch.Generator) -> float:
    """Return the share of right answers on fresh examples: 1/4 by guessing, 5/8 by naming one of the two colours seen."""
    x, colour, _ = examples(TEST_EXAMPLES, stretch, generator)
    return float((model(x).argmax(dim=-1) == colour).float().mean())


def train(name: str, stretch: int, seed: int, most_steps: int = MOST_STEPS) -> tuple[int, float]:
    """Train a fresh model until it answers right, or until it has seen enough.

    `name`: "attention", "LSTM" or "RNN". `stretch`: distractions in every example. `seed`: of first weights and examples.
    `most_steps`: batches to see at most, each once. Returns `steps`: batches seen when more than 95 of 100 fresh answers were
    right (looked at every 50), or `most_steps`; `share`: share of right answers then.
    """
    generator = torch.Generator().manual_seed(seed)
    model = new_model(name, generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE[name])

    def loss() -> Tensor:
        x, colour, _ = examples(BATCH, stretch, generator)
        return cross_entropy(model(x), colour)

    step, share = 0, 0.0
    while step < most_steps and share <= LEARNT:
        step += len(descend(optimizer, loss, min(CHECK_EVERY, most_steps - step), longest=LARGEST_GRADIENT))
        if step % CHECK_EVERY == 0:
            share = accuracy(model, stretch, generator)
    return step, share


def gradient_norm(name: str, stretch: int, seed: int) -> float:
    """Return how strongly the loss of an untrained model answers to the item asked for.

    `name`, `stretch`, `seed`: as for `train`. Returns the mean over examples of the Euclidean norm of the gradient at the input
    that has to be recalled.
    """
    generator = torch.Generator().manual_seed(seed)
    model = new_model(name, generator)
    x, colour, wanted = examples(GRADIENT_EXAMPLES, stretch, generator)
    x.requires_grad_()
    cross_entropy(model(x), colour, reduction="sum").backward()
    assert x.grad is not None
    return float(x.grad[torch.arange(len(x)), wanted].norm(dim=-1).mean())


def recall(seed: int, models: Sequence[str] = MODELS, stretches: Sequence[int] = STRETCHES, most_steps: int = MOST_STEPS) -> dict[str, Any]:
    """Train each model at each stretch, and take gradient norms of untrained ones.

    Returns "stretches", "steps" and "accuracy" by model; "distances" and "gradient" by model.
    """
    trained = {name: [train(name, stretch, seed, most_steps) for stretch in stretches] for name in models}
    return {
        "stretches": list(stretches),
        "steps": {name: [steps for steps, _ in runs] for name, runs in trained.items()},
        "accuracy": {name: [round(share, 3) for _, share in runs] for name, runs in trained.items()},
        "distances": list(DISTANCES),
        "gradient": {name: [float(f"{gradient_norm(name, stretch, seed):.3g}") for stretch in DISTANCES] for name in models},
    }


def conclude(found: dict[str, Any]) -> dict[str, Any]:
    """Say what each model has learnt (the LSTM at the longest stretch is left out: close to the limit), and what its gradient does."""
    learnt = {
        f"{name}: learnt": [stretch for stretch, share in zip(STRETCHES, shares, strict=True) if share > LEARNT]
        for name, shares in found["accuracy"].items()
    }
    learnt["LSTM: learnt"] = [stretch for stretch in learnt["LSTM: learnt"] if stretch < STRETCHES[-1]]
    attention, lstm = found["steps"]["attention"], found["steps"]["LSTM"]
    fall = {name: norms[0] / norms[-1] for name, norms in found["gradient"].items()}
    return {
        **learnt,
        "LSTM: at least three times the steps of attention at the longest stretch": lstm[-1] >= 3 * attention[-1],
        "attention: gradient 10 to 100 times smaller at 128 than at 2": 10 < fall["attention"] < 100,
        "RNN: gradient more than a million times smaller": fall["RNN"] > 1e6,
        "LSTM: gradient not smaller": fall["LSTM"] < 1,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say at one stretch, in 100 steps, whether attention recalls what a recurrent network has not learnt yet, and why."""
    found = recall(seed, ("attention", "RNN"), stretches=(8,), most_steps=100)
    (attention,), (rnn,) = found["accuracy"]["attention"], found["accuracy"]["RNN"]
    fall = {name: norms[0] / norms[-1] for name, norms in found["gradient"].items()}
    return {
        "attention has learnt": attention > LEARNT,
        "the RNN has not": rnn < LEARNT,
        "its gradient fades a thousand times as much": fall["RNN"] > 1000 * fall["attention"],
    }


RECALL = Experiment("results/recall.json", recall, conclude, quick)
EXPERIMENTS = [RECALL]
