"""Lesson linear: how many pairs of key and value softmax, sums of outer products and the delta rule can recall, and which of two values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.linear import LinearAttention
from attn_course.modules.multi_head import MultiHeadAttention

KEYS = 32
VALUES = 16
D_MODEL = 48
D_K = 8
D_V = 16
PAIRS = (4, 8, 16, 32)
QUESTIONS = 8
BATCH = 32
STEPS = 500
LEARNING_RATE = 1e-2
TEST_EXAMPLES = 512

MIXERS = {
    "softmax": "softmax",
    "softmax, nearer is better": "softmax",
    "sums, positive features": {"rule": "linear", "features": "elu"},
    "sums, unit keys": {"rule": "linear", "features": "unit"},
    "delta rule, unit keys": {"rule": "delta", "features": "unit"},
}


class Recall(nn.Module):
    """One layer with one head of width D_K that reads pairs in order and is then asked for the values of some keys.

    `name`: one of MIXERS. "nearer is better" takes a learned multiple of the distance off the scores.
    """

    def __init__(self, name: str, generator: torch.Generator) -> None:
        super().__init__()
        chosen: Any = MIXERS[name]
        widths: Any = {"d_k": D_K, "d_v": D_V, "generator": generator}
        self.keys = nn.Parameter(torch.randn(KEYS, D_MODEL, generator=generator))
        self.values = nn.Parameter(torch.randn(VALUES, D_MODEL, generator=generator))
        self.mixer: nn.Module = (
            MultiHeadAttention(D_MODEL, 1, backend="eager", **widths)
            if chosen == "softmax"
            else LinearAttention(D_MODEL, 1, **chosen, **widths)
        )
        self.answers = nn.Parameter(torch.randn(D_MODEL, VALUES, generator=generator) / D_MODEL**0.5)
        self.slope = nn.Parameter(torch.zeros(())) if "nearer" in name else None

    def forward(self, keys: Tensor, values: Tensor, asked: Tensor) -> Tensor:
        """Return logits of the values: pairs (batch, n) and (batch, n), questions (batch, QUESTIONS) -> (batch, QUESTIONS, VALUES)."""
        pairs, questions = self.keys[keys] + self.values[values], self.keys[asked]
        if isinstance(self.mixer, LinearAttention):
            _, state = self.mixer(pairs, return_state=True)
            return self.mixer.read(questions, state) @ self.answers
        places = torch.arange(keys.shape[1], dtype=torch.float32)[None, None, :]
        mask = None if self.slope is None else softplus(self.slope) * places  # later is nearer; a constant per row plays no part
        return self.mixer(questions, pairs, mask=mask) @ self.answers


def pairs(n: int, count: int, generator: torch.Generator, *, twice: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return keys and values (count, n) in order, the keys asked for (count, QUESTIONS), and the value last written under each.

    `n`, `count`: pairs in one example, and examples. `twice`: every key is written twice, with values drawn apart; else once.
    """
    order = torch.rand(count, KEYS, generator=generator).argsort(dim=1)
    keys = order[:, : n // 2].repeat(1, 2) if twice else order[:, :n]
    keys = keys.gather(1, torch.rand(count, n, generator=generator).argsort(dim=1))
    values = torch.randint(VALUES, (count, n), generator=generator)
    asked = keys.gather(1, torch.randint(n, (count, QUESTIONS), generator=generator))
    last = ((keys[:, None, :] == asked[:, :, None]) * torch.arange(1, n + 1)).argmax(dim=-1)
    return keys, values, asked, values.gather(1, last)


def train(model: Recall, generator: torch.Generator, steps: int = STEPS, *, twice: bool) -> None:
    """Train a model in place on fresh examples of all lengths."""

    def loss() -> Tensor:
        n = PAIRS[int(torch.randint(len(PAIRS), (1,), generator=generator))]
        *given, wanted = pairs(n, BATCH, generator, twice=twice)
        return cross_entropy(model(*given).flatten(0, 1), wanted.flatten())

    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))


@torch.no_grad()
def accuracies(model: Recall, generator: torch.Generator, *, twice: bool) -> list[float]:
    """Return the share of questions answered right, for each number of pairs."""
    found = []
    for n in PAIRS:
        *given, wanted = pairs(n, TEST_EXAMPLES, generator, twice=twice)
        found.append((model(*given).argmax(dim=-1) == wanted).float().mean().item())
    return found


def _measure(seed: int, names: Sequence[str], steps: int, *, twice: bool) -> dict[str, Any]:
    shares = {}
    for name in names:
        generator = torch.Generator().manual_seed(seed)
        model = Recall(name, generator)
        train(model, generator, steps, twice=twice)
        shares[name] = accuracies(model, generator, twice=twice)
    return {"pairs": list(PAIRS), "accuracies": shares}


ONCE = [name for name in MIXERS if "nearer" not in name]
TWICE = [name for name in MIXERS if "positive" not in name]


def recall(seed: int, names: Sequence[str] = ONCE, steps: int = STEPS) -> dict[str, Any]:
    """Train each layer where every key is written once.

    `seed`: of the first weights and of the examples. Returns "pairs": how many there are. "accuracies": the share answered right
    for each of these numbers, by layer.
    """
    return _measure(seed, names, steps, twice=False)


def conclude_recall(result: dict[str, Any]) -> dict[str, Any]:
    """Return how softmax does with many pairs, and in which order the states follow."""
    most = {name: found[-1] for name, found in result["accuracies"].items()}
    return {
        "softmax, 32 pairs": round(most["softmax"], 1),
        "positive features, 32 pairs: below .55": most["sums, positive features"] < 0.55,
        "unit keys, 32 pairs: between .6 and .85": all(0.6 < most[name] < 0.85 for name in ("sums, unit keys", "delta rule, unit keys")),
        "all states, 4 pairs: above .9": all(found[0] > 0.9 for found in result["accuracies"].values()),
    }


def overwriting(seed: int, names: Sequence[str] = TWICE, steps: int = STEPS) -> dict[str, Any]:
    """Train each layer where every key is written twice and the later value counts.

    `seed`: of the first weights and of the examples. Returns the same as `recall`.
    """
    return _measure(seed, names, steps, twice=True)


def conclude_overwriting(result: dict[str, Any]) -> dict[str, Any]:
    """Return who can tell the later value from the earlier one."""
    shares = result["accuracies"]
    return {
        "softmax without order: about half": all(0.4 < share < 0.65 for share in shares["softmax"]),
        "softmax with distance: above .95": min(shares["softmax, nearer is better"]) > 0.95,
        "sums: at most .65": max(shares["sums, unit keys"]) < 0.65,
        "delta rule, 4 pairs": round(shares["delta rule, unit keys"][0], 1),
        "delta rule ahead of sums by .1 and more": all(
            delta > plain + 0.1 for delta, plain in zip(shares["delta rule, unit keys"], shares["sums, unit keys"], strict=True)
        ),
    }


def quick_recall(seed: int) -> dict[str, bool]:
    """Say after a fifth of the steps whether softmax recalls 32 pairs, more of them than a state does."""
    found = recall(seed, ["softmax", "sums, positive features"], STEPS // 5)["accuracies"]
    return {
        "softmax recalls most of 32 pairs": found["softmax"][-1] > 0.8,
        "a state recalls fewer": found["sums, positive features"][-1] < found["softmax"][-1] - 0.3,
    }


def quick_overwriting(seed: int) -> dict[str, bool]:
    """Say after two fifths of the steps whether softmax needs the distance to tell the later of two values."""
    found = overwriting(seed, ["softmax", "softmax, nearer is better"], 2 * STEPS // 5)["accuracies"]
    return {
        "without order about half": max(found["softmax"]) < 0.65,
        "with the distance more than three quarters": min(found["softmax, nearer is better"]) > 0.75,
    }


RECALL = Experiment("results/recall.json", recall, conclude_recall, quick_recall)
OVERWRITING = Experiment("results/overwriting.json", overwriting, conclude_overwriting, quick_overwriting)
EXPERIMENTS = [RECALL, OVERWRITING]
