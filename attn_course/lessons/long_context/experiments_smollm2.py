"""Lesson long_context: a real language model sees a window of the text, with its first token and without; which token it is."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, attending, logits, maps, mean, model, perplexity, token, tokens

LENGTH, SCORED = 400, 256  # scored from here on
WINDOWS = (64, 256)
DRAWS = 2
QUESTION, ANSWER = "The capital of France is", " Paris"


def in_a_window(length: int, window: int, kept: tuple[int, ...] = ()) -> Tensor:
    """Return which keys a query sees, (length, length): `window` in all, its own included, those to be kept among them."""
    rows, columns = torch.arange(length)[:, None], torch.arange(length)
    always = torch.zeros(length, dtype=torch.bool)
    always[[*kept]] = True
    return (columns <= rows) & ((rows - columns < window - len(kept)) | always)


def through(ids: Tensor, mask: Tensor) -> Tensor:
    """Return the logits where queries see what a mask lets through."""
    return logits(ids, attend=_seeing(mask))


def _seeing(mask: Tensor) -> Callable[..., Any]:
    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        return attending(query, key, value, **options | {"mask": mask, "is_causal": False})

    return attend


def in_windows(ids: Tensor, window: int, scored: int, seed: int) -> dict[str, Any]:
    """Return the perplexity in one window, with nothing kept, with first tokens kept, and with others kept."""

    def cost(*kept: int) -> float:
        return round(perplexity(through(ids, in_a_window(len(ids), window, kept)), ids, scored), 3)

    found: dict[str, Any] = {"nothing kept": cost(), "the first": cost(0)}
    if window == WINDOWS[0]:
        random = torch.Generator().manual_seed(seed)
        drawn = [tuple((20 + torch.randperm(scored // 2, generator=random)[:4]).tolist()) for _ in range(DRAWS)]
        found |= {"the first four": cost(0, 1, 2, 3), "tokens 1 to 4": cost(1, 2, 3, 4), "four drawn": [cost(*kept) for kept in drawn]}
        other = ids.clone()
        other[0] = token("\n")
        found["the first, a newline in its place"] = round(
            perplexity(through(other, in_a_window(len(ids), window, (0,))), other, scored), 3
        )
    return found


def without(length: int, place: int) -> Tensor:
    """Return the causal mask in which later tokens do not see one token."""
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    mask[place + 1 :, place] = False
    return mask


def answer_without(place: int) -> float:
    """Return how likely the answer is where later tokens do not see one of the question's."""
    ids = model().ids(QUESTION)
    return round(float(through(ids, without(len(ids), place))[-1].softmax(-1)[token(ANSWER)]), 4)


def weight_on(ids: Tensor, place: int, hidden: int | None = None) -> float:
    """Return the mean weight of later tokens on one token, over all heads and layers, with another token hidden."""
    mask = torch.ones(len(ids), len(ids), dtype=torch.bool).tril() if hidden is None else without(len(ids), hidden)
    return mean(maps(ids, lambda weights: weights[:, place + 8 :, place].mean(), attend=_seeing(mask)), 3)


def run(seed: int, length: int = LENGTH, scored: int = SCORED) -> dict[str, Any]:
    """Measure one text through windows; and with one token hidden from the later ones."""
    ids = tokens(seed, length)
    random = torch.Generator().manual_seed(100 + seed)

    def hidden(place: int) -> float:
        return round(perplexity(through(ids, without(length, place)), ids, scored), 3)

    places = (1 + torch.randperm(scored - 1, generator=random)[:DRAWS]).tolist()
    return {
        "whole": round(perplexity(logits(ids), ids, scored), 3),
        "a newline in place of the first": _with_a_newline(ids, scored),
        "windows": {str(window): in_windows(ids, window, scored, seed) for window in WINDOWS},
        "hidden from all later ones": {
            "the first": hidden(0),
            "one drawn": {str(place): hidden(place) for place in places},
        },
        "mean weight": {
            "on the first": weight_on(ids[:160], 0),
            "on the second": weight_on(ids[:160], 1),
            "on the second, the first hidden": weight_on(ids[:160], 1, 0),
        },
        "Paris, one token hidden": {word: answer_without(place) for place, word in enumerate(QUESTION.split()[:-1])},
        "Paris": round(float(logits(model().ids(QUESTION), last=True).softmax(-1)[token(ANSWER)]), 4),
    }


def _with_a_newline(ids: Tensor, scored: int) -> float:
    other = ids.clone()
    other[0] = token("\n")
    return round(perplexity(logits(other), other, scored), 3)


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    narrow, wide, whole = found["windows"]["64"], found["windows"]["256"], found["whole"]
    kept, gone = narrow["the first"], narrow["nothing kept"]
    rest = [narrow["tokens 1 to 4"], *narrow["four drawn"]]
    paris, question, weight = found["Paris"], found["Paris, one token hidden"], found["mean weight"]
    return {
        "window 64: without the first token 1.4 times the perplexity or more": gone > 1.4 * kept,
        "window 256: worse without it, too": wide["nothing kept"] > wide["the first"],
        "window 256 with it: within a tenth of the whole": wide["the first"] < 1.1 * whole,
        "other tokens kept instead: not half as good": min(rest) - kept > 0.5 * (gone - kept),
        "a newline in its place does as well": abs(narrow["the first, a newline in its place"] - kept) < 0.1 * kept,
        "the first hidden from all later tokens: within a tenth": found["hidden from all later ones"]["the first"] < 1.1 * whole,
        "for then the second gets more than half of the weight that the first had": weight["on the second, the first hidden"]
        > 0.5 * weight["on the first"],
        "which it does not else": weight["on the second"] < 0.25 * weight["on the first"],
        "Paris falls below a tenth with any one of the four words hidden": max(question.values()) < 0.1 * paris,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 96)
    kept, gone = (perplexity(through(ids, in_a_window(96, 16, which)), ids, 32) for which in ((0,), ()))
    return {"a window without the first token is worse": gone > kept}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
