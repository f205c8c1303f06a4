"""Lesson self_attention: who is "it"? Small models read sentences of two nouns and tell which of them the pronoun stands for.

"the cat chased the dog because it was angry": one who chases is angry, one who is chased is slow. The two nouns of a test
sentence never stood in the same sentence in training, and every test sentence comes with its mirror image, nouns exchanged.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.attention import attention
from attn_course.modules.positions import rope

NOUNS = ("cat", "dog", "fox", "owl", "pig", "hen", "goat", "crow", "mule", "wolf")
VERBS = ("chased", "bit", "pushed")
OF_THE_FIRST = ("angry", "hungry", "fierce")
OF_THE_SECOND = ("loud", "slow", "rude")
ADJECTIVES = OF_THE_FIRST + OF_THE_SECOND
LEADS = ((), ("today",), ("early", "today"))
WORDS = ("the", "because", "it", "was", "today", "early", *NOUNS, *VERBS, *ADJECTIVES)
NUMBER = {word: number for number, word in enumerate(WORDS)}
IT = -3  # the place of "it", counted from the end

D_MODEL, D_K = 32, 16
STEPS, BATCH, LEARNING_RATE = 400, 64, 6e-3
HELD_OUT = 9  # of the 45 pairs of nouns
MODELS = ("with places", "words as values", "one layer", "without places")


class Resolver(nn.Module):
    """Two layers of attention with rotated queries and keys; the noun whose word is most like the last state of "it" is the answer.

    `kind`: "with places" is Eq. residual-stream with two layers. "words as values" lets the second layer average the words as they came
    in and takes that average alone, so that a noun can reach the answer only by its own weight. The others leave something out of
    "with places": a layer, or the rotation.
    """

    def __init__(self, kind: str, generator: torch.Generator) -> None:
        super().__init__()
        if kind not in MODELS:
            raise ValueError(f"kind must be one of {MODELS}; got {kind!r}")
        self.kind = kind
        self.words = nn.Parameter(torch.randn(len(WORDS), D_MODEL, generator=generator))
        depth = 1 if kind == "one layer" else 2
        widths = (D_K, D_K, D_MODEL)
        self.layers = nn.ModuleList(
            nn.ParameterList(torch.randn(D_MODEL, width, generator=generator) / D_MODEL**0.5 for width in widths) for _ in range(depth)
        )

    def forward(self, sentences: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Return a logit for each noun, and the weights of each layer.

        `sentences` (batch, length), integers: numbers of the words. `hidden` (batch,), integers: a place that "it" may not attend
        to in the last layer. Returns `logits` (batch, n_nouns): products of the last state of "it" and the word of each noun,
        divided by the root of d_model; `weights`, each (batch, length, length): rows are queries.
        """
        x = words = self.words[sentences]
        maps = []
        for number, layer in enumerate(self.layers, 1):
            assert isinstance(layer, nn.ParameterList)
            w_query, w_key, w_value = layer
            last = number == len(self.layers)
            mask = None
            if last and hidden is not None:
                mask = torch.ones(*sentences.shape, sentences.shape[1], dtype=torch.bool)
                mask[torch.arange(len(sentences)), IT, hidden] = False
            named = last and self.kind == "words as values"
            query, key = self._placed(x @ w_query), self._placed(x @ w_key)
            output, weights = attention(query, key, words if named else x @ w_value, mask=mask)
            x = output if named else x + output
            maps.append(weights)
        first = NUMBER[NOUNS[0]]
        return x[:, IT] @ self.words[first : first + len(NOUNS)].T / D_MODEL**0.5, maps

    def _placed(self, rows: Tensor) -> Tensor:
        return rows if self.kind == "without places" else rope(rows, torch.arange(rows.shape[-2]))


def pairs_of_nouns(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs for training, (36, 2), and the pairs held out, (9, 2): numbers of nouns."""
    pairs = rng.permutation(np.array([(a, b) for a in range(len(NOUNS)) for b in range(a + 1, len(NOUNS))]))
    return pairs[HELD_OUT:], pairs[:HELD_OUT]


def sentences_of(first: np.ndarray, second: np.ndarray, verb: np.ndarray, adjective: np.ndarray, lead: int) -> tuple[Tensor, Tensor]:
    """Write sentences down.

    `first`, `second`, `verb`, `adjective` (batch,): which of NOUNS, NOUNS, VERBS and ADJECTIVES. `lead`: how many words stand
    before the sentence. Returns `sentences` (batch, lead + 9): numbers of the words; `place` (batch,): where the noun stands that
    "it" stands for.
    """
    columns: list[Any] = [*LEADS[lead], "the", NUMBER[NOUNS[0]] + first, NUMBER[VERBS[0]] + verb, "the", NUMBER[NOUNS[0]] + second]
    columns += ["because", "it", "was", NUMBER[ADJECTIVES[0]] + adjective]
    numbers = [np.full(len(first), NUMBER[column]) if isinstance(column, str) else column for column in columns]
    place = lead + np.where(adjective < len(OF_THE_FIRST), 1, 4)
    return torch.from_numpy(np.stack(numbers, axis=1)), torch.from_numpy(place)


def draw(rng: np.random.Generator, pairs: np.ndarray, count: int, lead: int) -> tuple[Tensor, Tensor]:
    """Return `count` random sentences about these pairs in either order, and the places of their answers."""
    chosen = rng.permuted(pairs[rng.integers(len(pairs), size=count)], axis=1)
    return sentences_of(chosen[:, 0], chosen[:, 1], rng.integers(len(VERBS), size=count), rng.integers(len(ADJECTIVES), size=count), lead)


def all_sentences(pairs: np.ndarray, lead: int) -> tuple[Tensor, Tensor]:
    """Return every sentence about these pairs, in both orders."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    pair, verb, adjective = (part.ravel() for part in np.indices((len(both), len(VERBS), len(ADJECTIVES))))
    return sentences_of(both[pair, 0], both[pair, 1], verb, adjective, lead)


def answers(sentences: Tensor, place: Tensor) -> Tensor:
    """Return which noun stands at the place of each answer."""
    return sentences[torch.arange(len(sentences)), place] - NUMBER[NOUNS[0]]


def train(kind: str, pairs: np.ndarray, seed: int, steps: int = STEPS) -> Resolver:
    """Return a model trained to name the noun; nobody tells it where to look."""
    rng, model = np.random.default_rng(seed), Resolver(kind, torch.Generator().manual_seed(seed))

    def loss() -> Tensor:
        sentences, place = draw(rng, pairs, BATCH, int(rng.integers(len(LEADS))))
        return nn.functional.cross_entropy(model(sentences)[0], answers(sentences, place))

    descend(torch.optim.Adam(model.parameters(), lr=LEARNING_RATE), loss, steps)
    return model


def look(model: Resolver, pairs: np.ndarray) -> dict[str, Any]:
    """Return how often the model is right about all sentences of these pairs, and where the row of "it" has its weight.

    `pairs` (n, 2): numbers of nouns. Returns "accuracy"; "other noun": weight of the row of "it" in the last layer on the noun
    meant, and on the other; "hidden": the accuracy when "it" may not attend to the noun meant in the last layer.
    """
    right, on_noun, on_other, blind = [], [], [], []
    with torch.no_grad():
        for lead in range(len(LEADS)):
            sentences, place = all_sentences(pairs, lead)
            meant, rows = answers(sentences, place), torch.arange(len(sentences))
            logits, maps = model(sentences)
            right.append((logits.argmax(dim=-1) == meant).double().mean())
            row = maps[-1][:, IT]
            on_noun.append(row[rows, place].double().mean())
            on_other.append(row[rows, 2 * lead + 5 - place].double().mean())  # the nouns stand at lead + 1 and lead + 4
            blind.append((model(sentences, hidden=place)[0].argmax(dim=-1) == meant).double().mean())
    parts = {"accuracy": right, "noun": on_noun, "other noun": on_other, "hidden": blind}
    return {name: round(float(torch.stack(values).mean()), 3) for name, values in parts.items()}


def example(model: Resolver, pairs: np.ndarray) -> dict[str, Any]:
    """Return one held-out sentence with two endings: the row of "it" in the last layer, and the first row of the token it looks at most."""
    first, second = (np.repeat(pairs[0, side], 2) for side in (0, 1))
    adjectives = np.array([ADJECTIVES.index("angry"), ADJECTIVES.index("slow")])
    sentences, _ = sentences_of(first, second, np.zeros(2, dtype=int), adjectives, 0)
    with torch.no_grad():
        logits, maps = model(sentences)
    looked_at = maps[-1][:, IT].argmax(dim=-1)
    return {
        "words": [[WORDS[number] for number in sentence] for sentence in sentences.tolist()],
        "rows": [[round(weight, 3) for weight in row] for row in maps[-1][:, IT].tolist()],
        "looked at": looked_at.tolist(),
        "first rows of these": [[round(weight, 3) for weight in row] for row in maps[0][torch.arange(2), looked_at].tolist()],
        "answers": [NOUNS[number] for number in logits.argmax(dim=-1).tolist()],
    }


def pronouns(seed: int, models: Sequence[str] = MODELS, steps: int = STEPS) -> dict[str, Any]:
    """Train the models on the same pairs of nouns, and look at each on the pairs held out."""
    seen, unseen = pairs_of_nouns(np.random.default_rng(seed))
    found: dict[str, Any] = {"held out": [[NOUNS[a], NOUNS[b]] for a, b in unseen.tolist()]}
    for kind in models:
        model = train(kind, seen, seed, steps)
        found[kind] = look(model, unseen)
        if kind in MODELS[:2]:
            found[kind]["example"] = example(model, unseen)
    return found


def conclude_pronouns(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no what held-out sentences show; the nearest noun is right in half of them."""
    accuracy = {kind: found[kind]["accuracy"] for kind in MODELS}
    free, direct = found["with places"], found["words as values"]
    return {
        "two layers with places: above 0.75": min(free["accuracy"], direct["accuracy"]) > 0.75,
        "one layer: above 0.6": accuracy["one layer"] > 0.6,
        "without places: above 0.5": accuracy["without places"] > 0.5,
        "words as values: more than 0.7 of the weight on the noun meant": direct["noun"] > 0.7,
        "words as values: right without that weight in more than 0.2": direct["hidden"] > 0.2,
        "with places: right without that weight in more than 0.3": free["hidden"] > 0.3,
    }


def quick_pronouns(seed: int) -> dict[str, bool]:
    """Say after a fifth of the steps whether the answers, and the weights of "it", leave guessing behind on held-out pairs."""
    found = pronouns(seed, ["words as values"], STEPS // 5)["words as values"]
    return {
        "more answers right than the nearest noun has": found["accuracy"] > 0.55,
        "more weight on the noun meant than on the other": found["noun"] > found["other noun"],
    }


PRONOUNS = Experiment("results/pronouns.json", pronouns, conclude_pronouns, quick_pronouns)
EXPERIMENTS = [PRONOUNS]
