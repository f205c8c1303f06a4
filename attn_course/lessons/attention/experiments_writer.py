"""Lesson attention: a layer of two heads that learned to write, small enough to be run by hand.

"the dog stopped because it was curious": how a sentence ends depends on its noun (living or not) and on its verb, both of them words
back. Some nouns never stand with some verbs in what the model reads, among them "cat" with "sat".
"""

import copy
import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.attention import attention

LIVING = ("cat", "dog", "fox", "owl")
THINGS = ("clock", "stone", "lamp", "cart")
ENDS = {"sat": ("tired", "heavy"), "stopped": ("curious", "broken"), "fell": ("clumsy", "loose")}  # of the living, and of things
WORDS = ("the", "and", "because", "it", "they", "was", "were", ".", *LIVING, *THINGS, *ENDS, *itertools.chain(*ENDS.values()))
NUMBER = {word: number for number, word in enumerate(WORDS)}
HELD_OUT = (("cat", "sat"), ("clock", "stopped"), ("owl", "fell"), ("cart", "sat"))
LONGEST = 10  # words before the full stop of "the cat and the dog sat because they were tired ."

D_MODEL, N_HEADS = 12, 2
STEPS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 2000, 64, 1e-2, 0.1
SHOWN = 1  # the seed whose matrices are stored


class Writer(nn.Module):
    """One causal layer of attention over words and places, its input added to its output; the logits are products with the words."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()

        def normal(rows: int, std: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, D_MODEL, generator=generator) * std)

        self.words, self.places = normal(len(WORDS)), normal(LONGEST)
        self.w_query, self.w_key, self.w_value, self.w_output = (normal(D_MODEL, D_MODEL**-0.5) for _ in range(4))

    def forward(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of each next word, (batch, length, n_words), and the weights, (batch, heads, length, length)."""
        x = self.words[numbers] + self.places[: numbers.shape[1]]
        heads = [(x @ w).unflatten(-1, (N_HEADS, -1)).transpose(1, 2) for w in (self.w_query, self.w_key, self.w_value)]
        output, weights = attention(*heads, is_causal=True)
        return (x + output.transpose(1, 2).flatten(2) @ self.w_output) @ self.words.T, weights


def sentences(held_out: bool) -> list[list[str]]:
    """Return all sentences with a noun and a verb of HELD_OUT, or all others, of one noun and of two of a kind."""
    found = []
    for kind, nouns in enumerate((LIVING, THINGS)):
        for verb, named in itertools.product(ENDS, [*itertools.permutations(nouns, 1), *itertools.permutations(nouns, 2)]):
            if any((noun, verb) in HELD_OUT for noun in named) == held_out:
                subject = " and ".join(f"the {noun}" for noun in named)
                found.append(f"{subject} {verb} because {('it was', 'they were')[len(named) - 1]} {ENDS[verb][kind]} .".split())
    return found


def train(seed: int, steps: int = STEPS) -> Writer:
    """Return a model trained to name each next word of the sentences that are not held out."""
    generator = torch.Generator().manual_seed(seed)
    model = Writer(generator)
    read = sentences(held_out=False)
    table = torch.tensor([[NUMBER[word] for word in (*words, *"." * (LONGEST + 1 - len(words)))] for words in read])

    def loss() -> Tensor:
        batch = table[torch.randint(len(table), (BATCH,), generator=generator)]
        return nn.functional.cross_entropy(model(batch[:, :-1])[0].flatten(0, 1), batch[:, 1:].flatten())

    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    descend(optimiser, loss, steps, schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.round(decimals=2))  # so that what is measured is what is stored
    return model


@torch.no_grad()
def write(model: Writer, words: list[str]) -> list[str]:
    """Go on from these words, always with the likeliest, to the end of the sentence."""
    while words[-1] != "." and len(words) <= LONGEST:
        logits, _ = model(torch.tensor([[NUMBER[word] for word in words]]))
        words = [*words, WORDS[int(logits[0, -1].argmax())]]
    return words


def share_right(model: Writer, wanted: list[list[str]], silent: int | None = None) -> float:
    """Return the share of sentences that the model ends as they end, if it is given them up to "because", with all heads or all but one."""
    if silent is not None:
        model = copy.deepcopy(model)
        with torch.no_grad():
            model.w_output.unflatten(0, (N_HEADS, -1))[silent] = 0.0
    return sum(write(model, words[: words.index("because") + 1]) == words for words in wanted) / len(wanted)


def writer(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train the model, let it write sentences that it never read, and look at the weights of "was" in "the cat sat because it was".

    Returns `result`: "read" and "never read", the shares written right; "one head silent", the latter without each head; "was", the row of
    each head; for SHOWN its "matrices".
    """
    model = train(seed, steps)
    with torch.no_grad():
        _, weights = model(torch.tensor([[NUMBER[word] for word in ("the", "cat", "sat", "because", "it", "was")]]))
    found: dict[str, Any] = {
        "read": share_right(model, sentences(held_out=False)),
        "never read": share_right(model, sentences(held_out=True)),
        "one head silent": [round(share_right(model, sentences(held_out=True), silent=head), 3) for head in range(N_HEADS)],
        "was": [[round(weight, 3) for weight in row] for row in weights[0, :, -1].tolist()],
    }
    if seed == SHOWN:
        found["matrices"] = {
            name: [[round(entry, 2) for entry in row] for row in parameter.tolist()] for name, parameter in model.named_parameters()
        }
    return found


def conclude(found: dict[str, Any]) -> dict[str, float]:
    """Return the shares of sentences that are written right."""
    return {name: round(found[name], 2) for name in ("read", "never read")}


def quick(seed: int) -> dict[str, bool]:
    """Say after half of the steps whether most sentences are ended right, also of those never read."""
    found = writer(seed, STEPS // 2)
    return {"most that it read": found["read"] > 0.8, "most that it never read": found["never read"] > 0.7}


def matrices() -> list[np.ndarray]:
    """Return the stored words, places, and matrices of queries, keys, values and output: rows of d_model numbers, to two decimals."""
    stored = WRITER.load().results[SHOWN]["matrices"]
    return [np.array(stored[name]) for name in ("words", "places", "w_query", "w_key", "w_value", "w_output")]


@torch.no_grad()
def looks(words: list[str]) -> np.ndarray:
    """Return the weights of the stored model when it reads these words, (n_heads, n, n)."""
    model = Writer(torch.Generator()).double()
    for parameter, stored in zip(model.parameters(), matrices(), strict=True):
        parameter.copy_(torch.from_numpy(stored))
    return model(torch.tensor([[NUMBER[word] for word in words]]))[1][0].numpy()


WRITER = Experiment("results/writer.json", writer, conclude, quick)
EXPERIMENTS = [WRITER]
