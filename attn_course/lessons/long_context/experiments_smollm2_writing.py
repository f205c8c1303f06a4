"""Lesson long_context: a real language model writes 300 tokens in a window, with the first token kept and without."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import attending, changed, logits, losses, mean, model

WINDOW, COUNT, START, TEMPERATURE = 64, 300, 24, 0.8
PROMPTS = (
    "Once upon a time there was a small dog who lived in a big house near the river. Every morning the dog walked down to the",
    "The history of bread begins many thousands of years ago, when people first learned to grind the seeds of wild grasses between two",
    "My grandmother has a garden behind her house. In spring she plants tomatoes, beans and flowers, and in summer the whole family comes",
)
WAYS = ("whole", "window", "window and the first")


def seen(rows: Tensor, kv_len: int, way: str) -> Tensor:
    """Return which keys the queries at `rows` see, (rows, kv_len); both windows hold as many."""
    ahead = rows[:, None] - torch.arange(kv_len)
    near = {"whole": ahead >= 0, "window": ahead < WINDOW, "window and the first": ahead < WINDOW - 1}[way]
    if way == "window and the first":
        near[:, 0] = True
    return near & (ahead >= 0)


@torch.inference_mode()
def write(ids: Tensor, ways: list[str], count: int, random: torch.Generator) -> Tensor:
    """Return texts (texts, len) with `count` tokens more; each sees its own way, and the noise of a draw is the same in all ways."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        rows = options["q_offset"] + torch.arange(query.shape[-2])
        mask = torch.stack([seen(rows, key.shape[-2], way) for way in ways])[:, None]
        return attending(query, key, value, **options | {"mask": mask, "is_causal": False})

    with changed(attend=attend) as network:
        cache, new = network.new_cache(), ids
        for _ in range(count):
            scores = network(new, cache=cache, last=True)[:, 0] / TEMPERATURE
            noise = torch.empty(len(ids) // len(WAYS), scores.shape[-1]).exponential_(generator=random).log()
            scores = scores - noise.repeat(len(WAYS), 1)  # the largest is a draw from the softmax
            scores[:, :3] = -torch.inf  # no end
            new = scores.argmax(-1, keepdim=True)
            ids = torch.cat([ids, new], dim=-1)
    return ids


def judge(ids: Tensor, start: int) -> dict[str, Any]:
    """Return how likely the whole model finds a written text behind its first 60 tokens, and how much in it is new."""
    own = ids[start:].tolist()
    triples = list(zip(own, own[1:], own[2:], strict=False))
    return {
        "perplexity": round(float(losses(logits(ids), ids, start + 60).mean().exp()), 1),
        "different triples": round(len({*triples}) / len(triples), 3),
        "end": model().tokenizer.decode(own[-20:]),
    }


def run(seed: int, count: int = COUNT) -> dict[str, Any]:
    """Let the model go on with three starts in three ways, and let the whole model judge what it wrote."""
    starts = torch.stack([model().ids(prompt)[:START] for prompt in PROMPTS])
    ways = [way for way in WAYS for _ in PROMPTS]
    texts = write(starts.repeat(len(WAYS), 1), ways, count, torch.Generator().manual_seed(seed))
    found: dict[str, Any] = {way: [judge(text, START) for own, text in zip(ways, texts, strict=True) if own == way] for way in WAYS}
    return found | {
        "mean of different triples": {way: mean((text["different triples"] for text in texts), 3) for way, texts in found.items()},
        "mean of the log of perplexity": {
            way: mean(torch.tensor([text["perplexity"] for text in texts]).log().tolist(), 3) for way, texts in found.items()
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every seed."""
    whole, window, first = found["mean of the log of perplexity"].values()
    return {
        "in a window without the first token what it writes is less likely to the whole model": window > first + 0.3,
        "with it, about as likely as what it writes with the whole text in view": abs(first - whole) < 0.7,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say whether writing in a window as wide as the text is writing with all of it in view."""
    starts = model().ids(PROMPTS[0])[None, :8].repeat(len(WAYS), 1)
    whole, window, first = write(starts, [*WAYS], 3, torch.Generator().manual_seed(seed))
    return {"a window that holds the whole text changes nothing": bool((whole == window).all() and (whole == first).all())}


WRITING = Experiment("results/smollm2_writing.json", run, conclude, quick, needs_model=True)
EXPERIMENTS = [WRITING]
