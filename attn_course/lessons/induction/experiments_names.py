"""Lesson induction: a real language model begins a made-up name again; which of its heads, silenced alone, makes it forget the rest."""

from typing import Any

import torch
from torch import Tensor

from attn_course.experiments.copying import EIGHT, copied, repeated
from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import HEADS, LAYERS, Head, logits, logits_from, maps, mean, model, silence, streams

NAMES = ("Brumela Quistok", "Fenna Quarl", "Brumela Zortik", "Tovian Drask", "Melora Pliskin", "Ondrek Vussa")
LATE: Head = (28, 2)  # without it Brumela's name is forgotten, too: where does it look, and is it needed to copy random tokens?


def begun(name: str) -> Tensor:
    """Return the tokens of a text that tells a name, and begins it again."""
    return model().ids(f"Our new teacher is called {name}. Everybody likes {name.split()[0]}")


def first(scores: Tensor) -> dict[str, float]:
    """Return the likeliest token with its chance."""
    chance, number = scores.softmax(-1).max(-1)
    return {model().tokenizer.decode([int(number)]): round(float(chance), 4)}


def without_each(ids: Tensor) -> dict[Head, dict[str, float]]:
    """Return the likeliest next token without each head, one at a time."""
    found = streams(ids)
    return {
        (layer, head): first(logits_from(layer, found[layer], hooks=silence([(layer, head)]))[-1]) for layer in LAYERS for head in HEADS
    }


def behind(ids: Tensor) -> Tensor:
    """Return the mean weight of the late head from a repeated token to the one behind its first occurrence."""
    half = len(ids) // 2
    weights: Tensor = maps(ids)[LATE[0]][LATE[1]]
    return weights.diagonal(1 - half)[1:].mean()


def run(seed: int) -> dict[str, Any]:
    """Begin a name: as it is, without each head, and without the eight; and let random tokens be repeated without the late head.

    "late head looks": its weight from the end to the token that the model says, and on random tokens, its induction score.
    """
    ids, drawn = begun(NAMES[seed]), repeated(seed)
    (said,) = whole = first(logits(ids, last=True))
    alone = without_each(ids)
    place = model().tokens(f"Our new teacher is called {NAMES[seed]}.").index(said)
    return {
        "name": NAMES[seed],
        "as it is": whole,
        "forgets without": {str(head): found for head, found in alone.items() if said not in found},
        "least of the others": min(found[said] for found in alone.values() if said in found),
        "without the eight": first(logits(ids, last=True, hooks=silence(EIGHT))),
        "late head looks": {"name": mean([maps(ids)[LATE[0]][LATE[1], -1, place]], 3), "random tokens": mean([behind(drawn)], 3)},
        "random tokens copied": {"as it is": copied(drawn), f"without {LATE}": copied(drawn, [LATE])},
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds for every name."""
    (said,), forgets = found["as it is"], found["forgets without"]
    copies = found["random tokens copied"]
    return {
        "the name comes first": found["name"].split()[1].startswith(said.strip()),
        "one head is enough": len(forgets) > 0,
        "five heads at most": len(forgets) < 6,
        "none of the eight": not any(str(head) in forgets for head in EIGHT),
        "the eight together are enough": said not in found["without the eight"],
        "where the late head is needed, it gives the name two fifths of its weight or more": str(LATE) not in forgets
        or found["late head looks"]["name"] > 0.4,
        "on random tokens it hardly looks at what comes next": found["late head looks"]["random tokens"] < 0.1,
        "and they are copied nearly as before without it": copies[f"without {LATE}"] > 0.9 * copies["as it is"],
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of one name that one head is enough, and that all layers read from what goes into a layer as from the words."""
    ids = begun(NAMES[seed % len(NAMES)])
    whole, part = logits(ids, last=True), logits_from(16, streams(ids)[16])[-1]
    head: Head = LATE if seed == 1 else (16, 0)
    forgotten = {*first(whole)}.isdisjoint(first(logits(ids, last=True, hooks=silence([head]))))
    return {"the same": torch.allclose(whole, part, atol=1e-3), "it forgets": forgotten}


NAMED = Experiment("results/names.json", run, conclude, quick, seeds=range(len(NAMES)), needs_model=True)
EXPERIMENTS = [NAMED]
