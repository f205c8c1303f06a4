"""Lesson positions: where the tokens of a real language model stand: moved together, moved apart, and turned at other frequencies."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import BY_TEXT, D_K, THETA, TRAINED, logits, maps, perplexity, tokens
from attn_course.reference.rotary import ntk_frequencies, rope_frequencies, yarn_frequencies, yarn_temperature

LENGTH, SHIFT = 256, 1000
NEAR, MOVED = 256, 128  # tokens that stay, and the last ones, that are moved away
GAPS = (0, 6000, 14_000)  # the last lands behind the TRAINED positions
LAYER, HEAD = 16, 0  # looks one back

Change = dict[str, Any]


def frequencies() -> dict[str, Change]:
    """Return the ways to turn: what `changed` is to exchange, by name."""
    trained = rope_frequencies(D_K, THETA)
    return {
        "trained": {},
        "half speed": {"frequencies": trained / 2},
        "double speed": {"frequencies": trained * 2},
        "NTK, factor 2": {"frequencies": ntk_frequencies(D_K, 2.0, THETA)},
        "YaRN, factor 2": {"frequencies": yarn_frequencies(D_K, 2.0, TRAINED, THETA), "temperature": yarn_temperature(2.0)},
        "none": {"frequencies": []},
    }


def by_distance(ids: Tensor, change: Change, distances: Sequence[int] = range(5), first: int = 32) -> list[float]:
    """Return the mean weights of layer 16, head 0 on the token so many back."""
    weights = maps(ids, lambda weights: weights[HEAD], **change)[LAYER]
    return [round(float(weights.diagonal(-distance)[first - distance :].mean()), 4) for distance in distances]


def moved(ids: Tensor, gap: int, change: Change) -> float:
    """Return the perplexity of the last tokens, but for the first eight of them, moved away from the others by a gap."""
    positions = torch.arange(len(ids))
    positions[NEAR:] += gap
    return round(perplexity(logits(ids, positions=positions, **change), ids, NEAR + 8), 3)


def run(seed: int, length: int = LENGTH, gaps: Sequence[int] = GAPS) -> dict[str, Any]:
    """Measure one text at other positions and frequencies."""
    ids, ways = tokens(seed, length), frequencies()
    trained = logits(ids)
    shifted = logits(ids, positions=torch.arange(length) + SHIFT)
    far, alone = tokens(seed, NEAR + MOVED), tokens(seed, NEAR + MOVED)[NEAR:]
    return {
        "perplexity": {name: round(perplexity(logits(ids, **change), ids), 3) for name, change in ways.items()},
        "shifted by 1,000": {
            "largest change of a logit": float(f"{(shifted - trained).abs().max():.2g}"),
            "largest logit": round(float(trained.abs().max()), 1),
        },
        "layer 16, head 0: weights 0 to 4 back": {
            name: by_distance(ids[:160], ways[name]) for name in ("trained", "half speed", "double speed")
        },
        "the last 128 moved away": {
            "trained": {str(gap): moved(far, gap, {}) for gap in gaps},
            "NTK, factor 2": {str(gaps[-1]): moved(far, gaps[-1], ways["NTK, factor 2"])},
            "YaRN, factor 2": {str(gaps[-1]): moved(far, gaps[-1], ways["YaRN, factor 2"])},
            "without the others": round(perplexity(logits(alone), alone, 8), 3),
        },
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every text."""
    cost, away = found["perplexity"], found["the last 128 moved away"]
    trained, half, _ = found["layer 16, head 0: weights 0 to 4 back"].values()
    return {
        "all shifted: no logit changes by 0.01": found["shifted by 1,000"]["largest change of a logit"] < 0.01,
        "half and double speed: 1.2 times the perplexity or more": min(cost["half speed"], cost["double speed"]) > 1.2 * cost["trained"],
        "NTK and YaRN: less than 1.2 times": max(cost["NTK, factor 2"], cost["YaRN, factor 2"]) < 1.2 * cost["trained"],
        "no rotation: 2.5 times or more": cost["none"] > 2.5 * cost["trained"],
        "layer 16, head 0 looks one back": trained[1] > 0.5 and max(trained) == trained[1],
        "at half speed two back": max(half) == half[2],
        "moved within training: less than three times the perplexity": away["trained"]["6000"] < 3 * away["trained"]["0"],
        "moved beyond it: more than three times": away["trained"]["14000"] > 3 * max(away["trained"][gap] for gap in ("0", "6000")),
        "as far with NTK or YaRN: less than that": max(away[name]["14000"] for name in ("NTK, factor 2", "YaRN, factor 2"))
        < 0.5 * away["trained"]["14000"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say on the start of one text what holds there."""
    ids = tokens(seed % len(BY_TEXT), 64)
    change = (logits(ids, positions=torch.arange(64) + SHIFT) - logits(ids)).abs().max()
    half = by_distance(ids, frequencies()["half speed"])
    return {"all shifted: no change": float(change) < 0.01, "at half speed it looks two back": max(half) == half[2]}


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=BY_TEXT, needs_model=True)
EXPERIMENTS = [SMOLLM2]
