"""Lesson heads: naming both neighbours of a position, with one head and with several; what each head does; heads that are shared later."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attn_course.experiments.core import Experiment
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

    Parameters
    ----------
    n_heads : int
        Heads of width D_MODEL / n_heads.
    generator : torch.Generator
        Source of the first weights.
    n_kv_heads : int, optional
        Key and value heads; `n_heads` if left out.
    hidden : bool
        Whether a layer of rectified linear units stands between the layer and the answers; without it answers are linear.
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
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        text, wanted = texts(BATCH, generator)
        loss = cross_entropy(model(text).flatten(0, 2), wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


@torch.no_grad()
def accuracies(model: Neighbours, generator: torch.Generator) -> list[float]:
    """Return the share of symbols named right: before, after, and both at once."""
    text, wanted = texts(TEST_EXAMPLES, generator)
    right = model(text).argmax(dim=-1) == wanted
    return [*right.float().mean(dim=(0, 1)).tolist(), right.all(dim=-1).float().mean().item()]


@torch.no_grad()
def without_head(model: Neighbours, head: int, generator: torch.Generator) -> list[float]:
    """Return the accuracies when the rows of W_O that belong to one head are zero."""
    rows = slice(head * model.attention.d_v, (head + 1) * model.attention.d_v)
    kept = model.attention.w_output[rows].clone()
    model.attention.w_output[rows] = 0.0
    found = accuracies(model, generator)
    model.attention.w_output[rows] = kept
    return found


MODELS: dict[str, dict[str, Any]] = {
    "one head": {"n_heads": 1},
    "one head, then a network": {"n_heads": 1, "hidden": True},
    "two heads": {"n_heads": 2},
}


def heads(seed: int) -> dict[str, Any]:
    """Train each model, and look at the heads of the one that has two.

    Parameters
    ----------
    seed : int
        Of the first weights and of the texts.

    Returns
    -------
    result : dict
        "accuracies": before, after, both, by model. "maps": the mean weights of the two heads. "without head": accuracies of the
        model with two heads when one of them is silent.
    """
    generator = torch.Generator().manual_seed(seed)
    models = {name: Neighbours(generator=generator, **options) for name, options in MODELS.items()}
    for model in models.values():
        train(model, generator)
    pair = models["two heads"]
    with torch.no_grad():
        maps = pair.weights(texts(TEST_EXAMPLES, generator)[0]).mean(dim=0)
    return {
        "accuracies": {name: accuracies(model, generator) for name, model in models.items()},
        "maps": maps.tolist(),
        "without head": [without_head(pair, head, generator) for head in range(2)],
    }


def conclude_heads(result: dict[str, Any]) -> dict[str, Any]:
    """Return how often both neighbours are named, and what becomes of each when a head is silent."""
    both = {name: found[-1] for name, found in result["accuracies"].items()}
    silent = sorted([round(share, 1) for share in found[:2]] for found in result["without head"])
    return {
        "one head names both": round(both["one head"], 1),
        "a network behind one head helps": both["one head, then a network"] > 0.5,
        "two heads name both": round(both["two heads"], 1),
        "before and after, one head silent": silent,
    }


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


WAYS = ("mean", "first", "random")
UPTRAINING = (0, STEPS // 20, STEPS // 5)  # steps after the conversion: none, 5 and 20 % of those before


def sharing(seed: int) -> dict[str, Any]:
    """Train four heads, convert them to two and to one key head in each way, and train on.

    Parameters
    ----------
    seed : int
        Of the first weights and of the texts.

    Returns
    -------
    result : dict
        "steps": those after the conversion. "four heads": how often both neighbours are named before it. "two key heads" and
        "one key head": how often after these steps, by the way of conversion.
    """
    generator = torch.Generator().manual_seed(seed)
    model = Neighbours(4, generator)
    train(model, generator)
    result: dict[str, Any] = {"steps": list(UPTRAINING), "four heads": accuracies(model, generator)[-1]}
    for name, n_kv_heads in (("two key heads", 2), ("one key head", 1)):
        result[name] = {how: _uptrained(shared(model, n_kv_heads, how, generator), generator) for how in WAYS}
    return result


def _uptrained(model: Neighbours, generator: torch.Generator) -> list[float]:
    found = []
    for before, after in zip((0, *UPTRAINING[:-1]), UPTRAINING, strict=True):
        train(model, generator, after - before)
        found.append(accuracies(model, generator)[-1])
    return found


def conclude_sharing(result: dict[str, Any]) -> dict[str, Any]:
    """Return which conversion is ahead after 5 % more steps, and whether sharing costs anything in the end."""
    ranking = {name: sorted(WAYS, key=lambda how: -result[name][how][1]) for name in ("two key heads", "one key head")}
    return {
        "best after 5 %": ranking,
        "one key head from the mean, at once: below half": result["one key head"]["mean"][0] < 0.5,
        "one key head from the mean, after 20 %": round(result["one key head"]["mean"][-1], 1),
    }


HEADS = Experiment("results/heads.json", heads, conclude_heads)
SHARING = Experiment("results/sharing.json", sharing, conclude_sharing)
EXPERIMENTS = [HEADS, SHARING]
