"""Lesson absorption: what may be read from a trained head, what a small latent vector loses, and what decoding from one takes."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot
from torch.utils.flop_counter import FlopCounterMode

from attn_course.experiments.core import Experiment
from attn_course.experiments.neighbours import Neighbours, accuracies, shared
from attn_course.experiments.neighbours import train as train_neighbours
from attn_course.experiments.timing import cpu_seconds
from attn_course.experiments.training import descend
from attn_course.modules.latent import LatentAttention
from attn_course.modules.measured_cache import MeasuredCache
from attn_course.modules.multi_head import MultiHeadAttention

NAMES = 6
COLOURS = 5
BATCH = 64
STEPS = 800
LEARNING_RATE = 2e-2
DECAY = 2e-3
TEST_EXAMPLES = 1024


class Asker(nn.Module):
    """One head over tokens that are a name and a colour, one-hot; name n shall tell the colour of name n + 1 (the last of the first).

    `d_k`: width of queries and keys.
    """

    def __init__(self, d_k: int, generator: torch.Generator) -> None:
        super().__init__()
        d_model = NAMES + COLOURS
        self.w_query = nn.Parameter(torch.randn(d_model, d_k, generator=generator) / math.sqrt(d_k))
        self.w_key = nn.Parameter(torch.randn(d_model, d_k, generator=generator) / math.sqrt(d_k))
        self.w_value = nn.Parameter(torch.randn(d_model, COLOURS, generator=generator) / math.sqrt(COLOURS))
        self.w_output = nn.Parameter(torch.randn(COLOURS, COLOURS, generator=generator) / math.sqrt(COLOURS))

    def form(self) -> Tensor:
        """Return W_Q W_K^T / sqrt(d_k), the score of each feature that asks with each that answers."""
        return self.w_query @ self.w_key.T / math.sqrt(self.w_query.shape[1])

    def forward(self, x: Tensor, form: Tensor | None = None) -> Tensor:
        """Return logits, (batch, NAMES, COLOURS), with the layer's own bilinear form or with another one."""
        scores = x @ (self.form() if form is None else form) @ x.mT
        return scores.softmax(dim=-1) @ x @ (self.w_value @ self.w_output)


def tokens(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return tokens in random order, (count, NAMES, NAMES + COLOURS), and the colours to be told, (count, NAMES)."""
    names = torch.rand(count, NAMES, generator=generator).argsort(dim=1)
    colour_of = torch.randint(COLOURS, (count, NAMES), generator=generator)  # by name
    colours = colour_of.gather(1, names)
    wanted = colour_of.gather(1, (names + 1) % NAMES)
    return torch.cat([one_hot(names, NAMES), one_hot(colours, COLOURS)], dim=-1).float(), wanted


def train_asker(d_k: int, seed: int, steps: int = STEPS) -> Asker:
    """Train a head; the squares of W_Q and W_K are added to the loss (weight decay)."""
    generator = torch.Generator().manual_seed(seed)
    model = Asker(d_k, generator)

    def loss() -> Tensor:
        x, wanted = tokens(BATCH, generator)
        mistakes = cross_entropy(model(x).flatten(0, 1), wanted.flatten())
        return mistakes + DECAY / 2 * (model.w_query.square().sum() + model.w_key.square().sum())

    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))
    return model


@torch.no_grad()
def told(model: Asker, seed: int, form: Tensor | None = None) -> float:
    """Return the share of colours told right on fresh tokens."""
    x, wanted = tokens(TEST_EXAMPLES, torch.Generator().manual_seed(10_000 + seed))
    return (model(x, form).argmax(dim=-1) == wanted).float().mean().item()


def truncated(form: Tensor, rank: int) -> Tensor:
    """Return the nearest matrix of that rank."""
    left, singular, right = torch.linalg.svd(form)
    return left[:, :rank] * singular[:rank] @ right[:rank]


def balance(w_query: Tensor, w_key: Tensor) -> float:
    """Return the sum of the singular values of W_Q W_K^T over half the sum of squares of both.

    1 in the balanced gauge, Eq. frobenius-bounds-nuclear-norm.
    """
    total = torch.linalg.svdvals(w_query @ w_key.T).sum()
    return (2 * total / (w_query.square().sum() + w_key.square().sum())).item()


RANKS = (1, 2, 3, 4, 5, 6)
TRAINED_RANKS = RANKS[:3]


@torch.no_grad()
def circuits(seed: int, trained_ranks: Sequence[int] = TRAINED_RANKS, steps: int = STEPS) -> dict[str, Any]:
    """Train a head, change its gauge, and use parts of its bilinear form.

    `seed`: of the first weights and of the tokens. Returns "form" (names x names, with the scale) and "map" (features x colours):
    the QK and OV circuits. "w_query" and "w_key" of the names as trained and in the "other gauge". "told": shares told right, by
    what stands for the form. "balance": by gauge. "truncated" and "trained": shares told right by rank: cut from the trained form,
    RANKS, or trained at that width, `trained_ranks`.
    """
    with torch.enable_grad():
        model = train_asker(NAMES, seed, steps)
        narrow = [train_asker(rank, seed, steps) for rank in trained_ranks]
    form = model.form()
    change = torch.randn(NAMES, NAMES, generator=torch.Generator().manual_seed(20_000 + seed), dtype=torch.float64)
    query, key = model.w_query.double() @ change, model.w_key.double() @ torch.linalg.inv(change).T
    in_other_gauge = query @ key.T / math.sqrt(NAMES)
    parts = {
        "as trained": form,
        "other gauge": in_other_gauge.float(),
        "symmetric part": (form + form.T) / 2,
        "antisymmetric part": (form - form.T) / 2,
        "transposed": form.T,
    }
    return {
        "form": form[:NAMES, :NAMES].tolist(),
        "map": (model.w_value @ model.w_output).tolist(),
        "w_query": {"as trained": model.w_query[:NAMES].tolist(), "other gauge": query[:NAMES].tolist()},
        "w_key": {"as trained": model.w_key[:NAMES].tolist(), "other gauge": key[:NAMES].tolist()},
        "largest change of the form": (in_other_gauge - form).abs().max().item(),
        "told": {name: told(model, seed, part) for name, part in parts.items()},
        "balance": {"as trained": balance(model.w_query, model.w_key), "other gauge": balance(query, key)},
        "truncated": [told(model, seed, truncated(form, rank)) for rank in RANKS],
        "trained": [told(each, seed) for each in narrow],
    }


def conclude_circuits(result: dict[str, Any]) -> dict[str, Any]:
    """Return what the two circuits say, which parts of the form work, and the ranks that do."""
    form, written = torch.tensor(result["form"]), torch.tensor(result["map"])
    told_right = result["told"]
    return {
        "each name asks for": form.argmax(dim=1).tolist(),
        "each colour is written as": written[NAMES:].argmax(dim=1).tolist(),
        "told as trained and in the other gauge": [round(told_right[name], 1) for name in ("as trained", "other gauge")],
        "the symmetric part tells less than 0.8": told_right["symmetric part"] < 0.8,
        "transposed, less than 0.5": told_right["transposed"] < 0.5,
        "balance as trained": round(result["balance"]["as trained"], 1),
        "the other gauge is further from balance": result["balance"]["other gauge"] < 0.9 * result["balance"]["as trained"],
        "at rank 2 training beats cutting": result["trained"][1] > result["truncated"][1] + 0.1,
    }


LATENT = (2, 4, 6, 8, 12, 16)


@torch.no_grad()
def squeezed(model: Neighbours, d_latent: int, generator: torch.Generator) -> Neighbours:
    """Return a copy whose keys and values of all heads are made from one latent vector: the nearest for the tokens there are.

    All tokens give one wide matrix X [W_K W_V]; its first right singular vectors span the latent space, Eq. joint-key-value-rank.
    """
    copy = Neighbours(model.attention.n_heads, generator)
    copy.load_state_dict(model.state_dict())
    x = (model.symbols[:, None] + model.places).flatten(0, 1)
    both = torch.cat([model.attention.w_key, model.attention.w_value], dim=1)
    up = torch.linalg.svd(x @ both)[2][:d_latent]  # (d_latent, keys and values of all heads)
    down = both @ up.T  # (d_model, d_latent)
    key, value = (down @ up).chunk(2, dim=1)
    copy.attention.w_key.copy_(key)
    copy.attention.w_value.copy_(value)
    return copy


def compression(seed: int, **training: int) -> dict[str, Any]:
    """Train four heads on the neighbours of lesson heads; then keep fewer numbers of each token, in two ways, without more training.

    `seed`: of the first weights and of the texts. `**training`: "steps" of the training, if not those of lesson heads. Returns
    "four heads": how often both neighbours are named. "latent": by numbers kept for a token. "shared": the same for two key heads
    and one (means), which keep 32 and 16. "spectrum": singular values of all keys and values over the first.
    """
    generator = torch.Generator().manual_seed(seed)
    model = Neighbours(4, generator)
    train_neighbours(model, generator, **training)
    with torch.no_grad():
        x = (model.symbols[:, None] + model.places).flatten(0, 1)
        singular = torch.linalg.svdvals(x @ torch.cat([model.attention.w_key, model.attention.w_value], dim=1))
    return {
        "four heads": accuracies(model, generator)[-1],
        "latent": {str(d_latent): accuracies(squeezed(model, d_latent, generator), generator)[-1] for d_latent in LATENT},
        "shared": {str(16 * heads): accuracies(shared(model, heads, "mean", generator), generator)[-1] for heads in (2, 1)},
        "spectrum": (singular / singular[0]).tolist(),
    }


def conclude_compression(result: dict[str, Any]) -> dict[str, Any]:
    """Return what 16 numbers of each token can do, and how many directions the keys and values have."""
    return {
        "directions": sum(value > 1e-4 for value in result["spectrum"]),
        "16 numbers, latent": round(result["latent"]["16"], 1),
        "16 numbers, one key head: below half": result["shared"]["16"] < 0.5,
        "2 numbers, latent: below half": result["latent"]["2"] < 0.5,
    }


D_MODEL, N_HEADS, D_HEAD, D_LATENT, D_ROPE = 256, 8, 128, 512, 64  # the heads of DeepSeek-V2, but 8 instead of 128
LENGTHS = (64, 256, 1024)
REPEATS = 5


def counted_flops(work: Callable[[], Any]) -> int:
    """Return the FLOPs of all matrix products, as torch counts them while they run."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


@torch.no_grad()
def decoding(seed: int, lengths: Sequence[int] = LENGTHS) -> dict[str, Any]:
    """Fill the caches of four layers, and time one step and one prompt of latent attention in both forms, on one thread.

    `seed`: of the weights and of the tokens. Returns "bytes per token": measured, by layer; all heads are of width D_HEAD,
    numbers are float32. "lengths": of the past before a step, and of prompts. "step ms" and "prompt ms": CPU time by form and
    length; "step flops" and "prompt flops": counted while running. "largest difference": between the outputs of both forms.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    latent = LatentAttention(D_MODEL, N_HEADS, d_latent=D_LATENT, d_head=D_HEAD, d_rope=D_ROPE, backend="eager", generator=generator)
    layers: dict[str, Any] = {
        name: MultiHeadAttention(D_MODEL, N_HEADS, n_kv_heads=heads, d_k=D_HEAD, d_v=D_HEAD, is_causal=True, generator=generator)
        for name, heads in (("multi-head", N_HEADS), ("grouped, 2 key heads", 2), ("multi-query", 1))
    }
    text = torch.randn(1, max(lengths) + 1, D_MODEL, generator=generator)
    result: dict[str, Any] = {"bytes per token": {}, "lengths": list(lengths)}
    for name, layer in {**layers, "latent": latent}.items():
        cache = MeasuredCache()
        for t in range(64):
            layer(text[:, t : t + 1], cache=cache)
        result["bytes per token"][name] = cache.n_bytes / len(cache)
    for kind, work in (("step", _step), ("prompt", _prompt)):
        runs = {form: [functools.partial(work, latent, text, t, form) for t in lengths] for form in ("naive", "absorbed")}
        result[f"{kind} ms"] = {form: (1000 * cpu_seconds(runs[form], REPEATS).min(axis=1)).tolist() for form in runs}
        result[f"{kind} flops"] = {form: [counted_flops(run) for run in runs[form]] for form in runs}
    outputs = [_step(latent, text, max(lengths), form) for form in ("naive", "absorbed")]
    result["largest difference"] = (outputs[0] - outputs[1]).abs().max().item()
    torch.set_num_threads(threads)
    return result


def _step(layer: LatentAttention, text: Tensor, past: int, form: Any) -> Tensor:
    """Return the output for one token, with the tokens as latent vectors of the past, which is all the same to the time."""
    cache = MeasuredCache()
    cache.append(text[:, :past].repeat(1, 1, D_LATENT // D_MODEL), text[:, :past, :D_ROPE])
    return layer(text[:, past : past + 1], cache=cache, form=form)


def _prompt(layer: LatentAttention, text: Tensor, length: int, form: Any) -> Tensor:
    """Return the outputs for a text without a past."""
    return layer(text[:, :length], form=form)


def conclude_decoding(result: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes, and which form is ahead where."""
    flops = {kind: result[f"{kind} flops"] for kind in ("step", "prompt")}
    return {
        "bytes per token": result["bytes per token"],
        "a step behind 1024 tokens, naive over absorbed, FLOPs": round(flops["step"]["naive"][-1] / flops["step"]["absorbed"][-1]),
        "a prompt of 1024 tokens, absorbed over naive, FLOPs": round(flops["prompt"]["absorbed"][-1] / flops["prompt"]["naive"][-1], 1),
        "a step behind 1024 tokens takes at least twice as long in the naive form": 2 * result["step ms"]["absorbed"][-1]
        < result["step ms"]["naive"][-1],
        "same output": result["largest difference"] < 1e-4,
    }


def quick_circuits(seed: int) -> dict[str, bool]:
    """Say after a quarter of the steps whether the form works in every gauge and only in the right direction."""
    told_right = circuits(seed, [], STEPS // 4)["told"]
    return {
        "as trained most are told": told_right["as trained"] > 0.8,
        "as many in the other gauge": abs(told_right["other gauge"] - told_right["as trained"]) < 0.05,
        "transposed less than 0.5": told_right["transposed"] < 0.5,
    }


def quick_compression(seed: int) -> dict[str, bool]:
    """Say after 200 steps whether 16 numbers of each token do more as a latent vector than as one key head."""
    result = compression(seed, steps=200)
    return {
        "latent beats one key head": result["latent"]["16"] > result["shared"]["16"] + 0.3,
        "2 numbers, latent: below half": result["latent"]["2"] < 0.5,
    }


def quick_decoding(seed: int) -> dict[str, bool]:
    """Say behind 128 tokens how many bytes a token takes, and which form has fewer FLOPs where."""
    result = decoding(seed, lengths=(8, 128))
    held, flops = result["bytes per token"], {kind: result[f"{kind} flops"] for kind in ("step", "prompt")}
    return {
        "latent: fewer bytes than multi-head, more than two key heads": held["multi-head"] > held["latent"] > held["grouped, 2 key heads"],
        "a step: the naive form has more": flops["step"]["naive"][-1] > 4 * flops["step"]["absorbed"][-1],
        "a prompt: the absorbed form has more": flops["prompt"]["absorbed"][-1] > flops["prompt"]["naive"][-1],
        "same output": result["largest difference"] < 1e-4,
    }


CIRCUITS = Experiment("results/circuits.json", circuits, conclude_circuits, quick_circuits)
COMPRESSION = Experiment("results/compression.json", compression, conclude_compression, quick_compression)
DECODING = Experiment("results/decoding.json", decoding, conclude_decoding, quick_decoding)
EXPERIMENTS = [CIRCUITS, COMPRESSION, DECODING]
