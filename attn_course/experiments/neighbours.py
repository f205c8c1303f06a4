"""A small training that several lessons look into: each position names both its neighbours, and heads may be shared later."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attn_course.experiments.training import descend
from attn_course.modules.multi_head import MultiHeadAttention

SYMBOLS = 8
LENGTH = 8
D_MODEL = 32
D_HIDDEN = 128
OFFSETS = (-1, 1)
BATCH = 64
STEPS = 600
LEARNING_RATE = 5e-3
TEST_EXAMPLES = 1024


class Neighbours(nn.Module):
    """One layer of attention over symbols on a ring; each position names the symbol before it and the symbol after it.

    `n_heads`: heads of width D_MODEL / n_heads. `n_kv_heads`: key and value heads; `n_heads` if left out. `hidden`: whether a
    layer of rectified linear units stands between the layer and the answers; without it answers are linear.
    """

    def __init__(self, n_heads: int, generator: torch.Generator, *, n_kv_heads: int | None = None, hidden: bool = False) -> None:
        super().__init__()
        self.symbols = nn.Parameter(torch.randn(SYMBOLS, D_MODEL, generator=generator))
        self.places = nn.Parameter(torch.randn(LENGTH, D_MODEL, generator=generator))
        self.attention = MultiHeadAttention(D_MODEL, n_heads, n_kv_heads=n_kv_heads, backend="eager", generator=generator)
        self.hidden = nn.Parameter(torch.randn(D_MODEL, D_HIDDEN, generator=generator) * (2.0 / D_MODEL) ** 0.5) if hidden else None
        width = D_HIDDEN if hidden else D_MODEL
        self.answers = nn.Parameter(torch.randn(width, len(OFFSETS) * SYMBOLS, generator=generator) / width**0.5)

    def forward(self, text: Tensor) -> Tensor:
        """Return logits: (batch, LENGTH) symbols -> (batch, LENGTH, 2, SYMBOLS)."""
        output = self.attention(self.symbols[text] + self.places)
        if self.hidden is not None:
            output = torch.relu(output @ self.hidden)
        return (output @ self.answers).unflatten(-1, (len(OFFSETS), SYMBOLS))

    def weights(self, text: Tensor) -> Tensor:
        """Return the weights of each head: (batch, LENGTH) -> (batch, n_heads, LENGTH, LENGTH)."""
        return self.attention(self.symbols[text] + self.places, return_weights=True)[1]


def texts(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return random symbols on a ring, (count, LENGTH), and the neighbours of each, (count, LENGTH, 2)."""
    text = torch.randint(SYMBOLS, (count, LENGTH), generator=generator)
    return text, torch.stack([text.roll(-offset, dims=1) for offset in OFFSETS], dim=-1)


def train(model: Neighbours, generator: torch.Generator, steps: int = STEPS) -> None:
    """Train a model in place on fresh texts."""

    def loss() -> Tensor:
        text, wanted = texts(BATCH, generator)
        return cross_entropy(model(text).flatten(0, 2), wanted.flatten())

    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))


@torch.no_grad()
def accuracies(model: Neighbours, generator: torch.Generator) -> list[float]:
    """Return the share of symbols named right: before, after, and both at once."""
    text, wanted = texts(TEST_EXAMPLES, generator)
    right = model(text).argmax(dim=-1) == wanted
    return [*right.float().mean(dim=(0, 1)).tolist(), right.all(dim=-1).float().mean().item()]


@torch.no_grad()
def shared(model: Neighbours, n_kv_heads: int, how: str, generator: torch.Generator) -> Neighbours:
    """Return a copy of a model whose key and value heads are shared: the "mean" of each group, its "first" head, or "random" ones."""
    old = model.attention
    copy = Neighbours(old.n_heads, generator, n_kv_heads=n_kv_heads)
    state = model.state_dict()
    for role, width in (("key", old.d_k), ("value", old.d_v)):
        groups = state[f"attention.w_{role}"].unflatten(1, (n_kv_heads, -1, width))  # (d_model, n_kv_heads, heads of a group, width)
        random = getattr(copy.attention, f"w_{role}").clone()
        chosen = {"mean": groups.mean(dim=2).flatten(1), "first": groups[:, :, 0].flatten(1), "random": random}[how]
        state[f"attention.w_{role}"] = chosen
    copy.load_state_dict(state)
    return copy
