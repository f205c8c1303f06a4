"""Lesson induction: each head of a real model by its induction score, and by its weight on what a begun name needs."""

from typing import Any

import torch

from attn_course.experiments.copying import EIGHT, repeated
from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import maps, model
from attn_course.lessons.induction.experiments import looks
from attn_course.lessons.induction.experiments_names import LATE, NAMES, begun


@torch.no_grad()
def run(seed: int) -> dict[str, Any]:
    """Return of each head (layers, heads) its "score" on random tokens, and at the end of a begun "name" its weight on the next token."""
    place = model().tokens(f"Our new teacher is called {NAMES[0]}.").index(" Qu")
    weights = {
        "score": [looks(layer)[0] for layer in maps(repeated(seed))],
        "name": [layer[:, -1, place] for layer in maps(begun(NAMES[0]))],
    }
    rounded = {name: [[round(float(weight), 3) for weight in row] for row in rows] for name, rows in weights.items()}
    return {**rounded, "late": LATE, "eight": EIGHT}


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds of the late head."""
    score, name = (torch.tensor(found[which]) for which in ("score", "name"))
    others = name.clone()
    for head in (*EIGHT, LATE):
        others[head] = 0.0
    return {
        "the late head has a small score": bool(score[LATE] < 0.06),
        "no other but some of the eight gives the name as much": bool(others.max() < 0.4 < name[LATE]),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say what holds of the late head, measured again."""
    return conclude(run(seed))


HEADS_OF_NAME = Experiment("results/late.json", run, conclude, quick, needs_model=True)
EXPERIMENTS = [HEADS_OF_NAME]
