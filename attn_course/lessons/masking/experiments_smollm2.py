"""Lesson masking: the causal mask of a real language model taken away in one layer, and in all."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, LAYERS, TOKENS, attending, changed, logits, perplexity, tokens

CUT = 70  # from here on the words of a text are exchanged


def without_mask(*layers: int) -> Any:
    """In these layers every token also sees those behind it."""

    def attend(query: Tensor, key: Tensor, value: Tensor, *, layer: int, **options: Any) -> Any:
        return attending(query, key, value, **options | ({"is_causal": False} if layer in layers else {}))

    return attend


@torch.inference_mode()
def token_by_token(ids: Tensor, **changes: Any) -> Tensor:
    """Return the scores of each next token if the tokens come one at a time, as they do while the model writes."""
    with changed(**changes) as found:
        cache = found.new_cache()
        return torch.cat([found(token, cache=cache) for token in ids.split(1)])


def run(seed: int, count: int = TOKENS) -> dict[str, Any]:
    """Measure perplexities of one text with the mask and without it, and how far earlier logits move when later words are exchanged."""
    ids, chosen = tokens(seed, count), without_mask(20)
    other = torch.randint(1000, 20_000, (count,), generator=torch.Generator().manual_seed(seed))
    other[:CUT] = ids[:CUT]
    scores = {
        "masked": logits(ids),
        "no mask in layer 20": logits(ids, attend=chosen),
        "no mask in layer 19": logits(ids, attend=without_mask(19)),
        "no mask in any layer": logits(ids, attend=without_mask(*LAYERS)),
        "no mask in layer 20, token by token": token_by_token(ids, attend=chosen),
    }
    after = {"masked": logits(other), "no mask in layer 20": logits(other, attend=chosen)}
    moves = {way: float((found - scores[way])[:CUT].abs().max()) for way, found in after.items()}
    return {
        "perplexity": {way: round(perplexity(found, ids), 3) for way, found in scores.items()},
        "earlier logits move by": {way: float(f"{move:.3g}") for way, move in moves.items()},  # a true zero stays one
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text, and in the start of one."""
    guessing, moves = found["perplexity"], found["earlier logits move by"]
    masked, chosen = guessing["masked"], guessing["no mask in layer 20"]
    return {
        "without a mask in layer 20 it is a better guesser": chosen < 0.95 * masked,
        "token by token it is as good as it was": abs(guessing["no mask in layer 20, token by token"] - masked) < 0.01,
        "later words move what is before them only without the mask": moves["masked"] == 0.0 < 1.0 < moves["no mask in layer 20"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    return conclude(run(seed, count=80))


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
