"""Lesson masking: the causal mask of a real language model taken away, in all layers, by one token, and in one layer at a time."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, TOKENS, attending, changed, logits, logits_from, perplexity, tokens

LAYERS = tuple(range(30))
CHOSEN = 20  # the layer that the lesson tells of
CUT = 70  # from here on the words of a text are exchanged


def _seeing(ahead: int, layers: tuple[int, ...]) -> Any:
    """In these layers every token also sees so many behind it."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        others = {"is_causal": False, "window": (None, ahead)} if layer in layers else {}
        return attending(query, key, value, **options | others)

    return attend


@torch.inference_mode()
def _token_by_token(ids: Tensor, **changes: Any) -> Tensor:
    """The scores of each next token if the tokens come one at a time, as they do while the model writes."""
    with changed(**changes) as found:
        cache = found.new_cache()
        return torch.cat([found(token, cache=cache) for token in ids.split(1)])


def run(seed: int, count: int = TOKENS, layers: tuple[int, ...] = LAYERS) -> dict[str, Any]:
    """Measure perplexities of one text with the mask and without it, and how far earlier logits move when later words are exchanged."""
    ids, open_layer = tokens(seed, count), _seeing(count, (CHOSEN,))
    other = torch.randint(1000, 20_000, (count,), generator=torch.Generator().manual_seed(seed))
    other[:CUT] = ids[:CUT]
    entering: list[Tensor] = []
    watch = {"embedded": entering.append} | {f"blocks.{layer}.stream": entering.append for layer in LAYERS}
    masked, unmasked = logits(ids, hooks=watch), logits(ids, attend=open_layer)

    def guessing(scores: Tensor) -> float:
        return round(perplexity(scores, ids), 3)

    def moved(by: Tensor) -> float:
        return float(f"{by[:CUT].abs().max():.3g}")  # a true zero stays one

    return {
        "masked": guessing(masked),
        "no mask": guessing(logits(ids, attend=_seeing(count, LAYERS))),
        "next token visible": guessing(logits(ids, attend=_seeing(1, LAYERS))),
        "no mask in one layer": {
            str(layer): guessing(logits_from(layer, entering[layer], attend=_seeing(count, (layer,)))) for layer in layers
        },
        "no mask in layer 20, token by token": guessing(_token_by_token(ids, attend=open_layer)),
        "earlier logits move by": {
            "masked": moved(logits(other) - masked),
            "no mask in layer 20": moved(logits(other, attend=open_layer) - unmasked),
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text, and in the start of one."""
    masked, chosen = found["masked"], found["no mask in one layer"][str(CHOSEN)]
    moves = found["earlier logits move by"]
    return {
        "with the next token visible it is the best guesser": found["next token visible"] < min(chosen, masked),
        "without a mask in layer 20 alone it is a better guesser": chosen < 0.95 * masked,
        "token by token it is as good as it was": abs(found["no mask in layer 20, token by token"] - masked) < 0.01,
        "later words move what is before them only without the mask": moves["masked"] == 0.0 < 1.0 < moves["no mask in layer 20"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    return conclude(run(seed, count=80, layers=(CHOSEN,)))


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
