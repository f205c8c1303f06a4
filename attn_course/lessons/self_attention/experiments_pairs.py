"""Lesson self_attention: which features go together? Planted pairs in a table like those of geneticists, found by four methods.

Each of 20 features counts copies of a variant, 0, 1 or 2, in each of 1000 individuals. Six pairs are planted, the other eight
features are free. One layer of self-attention over FEATURES learns to guess a hidden entry from the others of the same individual.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.attention import Attention
from attn_course.reference import softmax

N_FEATURES, N_INDIVIDUALS, N_TEST = 20, 1000, 2000
KINDS = ("alike", "opposite", "hidden")  # b = a; b = 2 - a; b = 1 where a = 1, else 0 or 2 by a coin
PAIRS_OF_A_KIND = 2
NOISE = 0.15  # share of entries of b that ignore a
D_MODEL, D_K = 32, 16
STEPS, BATCH, LEARNING_RATE = 800, 128, 1e-2
HIDDEN = 3  # the number that stands for an entry not shown

Pairs = dict[str, list[list[int]]]


def plant(rng: np.random.Generator) -> Pairs:
    """Return which features are paired, by kind; no feature is in two pairs."""
    chosen = rng.permutation(N_FEATURES)[: 2 * PAIRS_OF_A_KIND * len(KINDS)].reshape(len(KINDS), PAIRS_OF_A_KIND, 2)
    return dict(zip(KINDS, chosen.tolist(), strict=True))


def individuals(rng: np.random.Generator, pairs: Pairs, count: int) -> np.ndarray:
    """Return a table of counts 0, 1, 2, (count, n_features), one row per individual; every feature alone has the same distribution."""
    table = rng.binomial(2, 0.5, size=(count, N_FEATURES))
    for kind, found in pairs.items():
        for a, b in found:
            source = table[:, a]
            coin = 2 * rng.integers(2, size=count)
            copy = {"alike": source, "opposite": 2 - source, "hidden": np.where(source == 1, 1, coin)}[kind]
            table[:, b] = np.where(rng.random(count) < NOISE, table[:, b], copy)
    return table


def correlation(table: np.ndarray) -> np.ndarray:
    """Return |r| for each pair of features."""
    return np.asarray(np.abs(np.corrcoef(table, rowvar=False)))


def mutual_information(table: np.ndarray) -> np.ndarray:
    """Return for each pair of features, in nats, how much one tells about the other: of the counts in the table, no model."""
    one_hot = np.eye(3)[table]
    joint = np.einsum("iax,iby->abxy", one_hot, one_hot) / len(table)
    alone = one_hot.mean(axis=0)
    independent = alone[:, None, :, None] * alone[None, :, None, :]
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
    return np.asarray((joint * np.log(ratio)).sum(axis=(-2, -1)))


def plain_attention(table: np.ndarray) -> np.ndarray:
    """Return the weights of Eq. feature-weights-from-correlations: features as tokens, nothing learned."""
    return softmax(np.sqrt(len(table)) * np.corrcoef(table, rowvar=False))


class Guesser(nn.Module):
    """One layer over the features of an individual; the feature whose entry is not shown asks, and the output names its entry."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(N_FEATURES, HIDDEN + 1, D_MODEL, generator=generator))
        self.attention = Attention(D_MODEL, D_K, D_MODEL, generator=generator)
        self.entries = nn.Parameter(torch.randn(D_MODEL, 3, generator=generator) / D_MODEL**0.5)

    def forward(self, table: Tensor, feature: Tensor) -> tuple[Tensor, Tensor]:
        """Return a logit for each entry, and the weights of the feature that asks.

        `table` (batch, n_features), integers: individuals. `feature` (batch,), integers: which entry of each is hidden. Returns
        `logits` (batch, 3): for the entries 0, 1 and 2; `weights` (batch, n_features): rows sum to 1; the hidden token is one of
        the keys.
        """
        rows = torch.arange(len(table))
        shown = table.clone()
        shown[rows, feature] = HIDDEN
        tokens = self.tokens[torch.arange(N_FEATURES), shown]
        output, weights = self.attention(tokens[rows, feature, None], tokens)
        return output[:, 0] @ self.entries, weights[:, 0]


def train(table: np.ndarray, seed: int, steps: int = STEPS) -> Guesser:
    """Return a model trained to guess random hidden entries; nobody tells it about pairs."""
    rng, model = np.random.default_rng(seed), Guesser(torch.Generator().manual_seed(seed))

    def loss() -> Tensor:
        batch = torch.from_numpy(table[rng.integers(len(table), size=BATCH)])
        feature = torch.from_numpy(rng.integers(N_FEATURES, size=BATCH))
        return nn.functional.cross_entropy(model(batch, feature)[0], batch[torch.arange(BATCH), feature])

    descend(torch.optim.Adam(model.parameters(), lr=LEARNING_RATE), loss, steps)
    return model


def look(model: Guesser, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean weights of each feature over individuals, (n_features, n_features), and the share of its entries guessed right."""
    individuals_ = torch.from_numpy(table)
    maps, right = [], []
    with torch.no_grad():
        for feature in range(N_FEATURES):
            logits, weights = model(individuals_, torch.full((len(table),), feature))
            maps.append(weights.mean(dim=0).double().numpy())
            right.append(float((logits.argmax(dim=-1) == individuals_[:, feature]).double().mean()))
    return np.array(maps), np.array(right)


def partners_found(matrix: np.ndarray, pairs: Pairs) -> dict[str, int]:
    """Return how many of the four features of each kind have their partner as the largest entry of their row, itself left out."""
    others = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix)
    best = others.argmax(axis=1)
    return {kind: sum(int(best[a] == b) + int(best[b] == a) for a, b in found) for kind, found in pairs.items()}


def planted_pairs(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Plant, look by four methods, and test the guesses on individuals never seen."""
    rng = np.random.default_rng(seed)
    pairs = plant(rng)
    table, unseen = individuals(rng, pairs, N_INDIVIDUALS), individuals(rng, pairs, N_TEST)
    weights, right = look(train(table, seed, steps), unseen)
    maps = {
        "correlation": correlation(table),
        "mutual information": mutual_information(table),
        "plain attention": plain_attention(table),
        "trained attention": weights,
    }
    paired = sorted(feature for found in pairs.values() for pair in found for feature in pair)
    free = sorted(set(range(N_FEATURES)) - set(paired))
    most_frequent = np.array([(unseen[:, f] == np.bincount(table[:, f]).argmax()).mean() for f in range(N_FEATURES)])
    return {
        "pairs": pairs,
        "found": {name: partners_found(matrix, pairs) for name, matrix in maps.items()},
        "accuracy": {
            "paired": round(float(right[paired].mean()), 3),
            "free": round(float(right[free].mean()), 3),
            "paired, most frequent entry": round(float(most_frequent[paired].mean()), 3),
        },
        "order": [*(feature for found in pairs.values() for pair in found for feature in pair), *free],
        "maps": {name: maps[name].round(3).tolist() for name in ("correlation", "trained attention")},
    }


def conclude_pairs(found: dict[str, Any]) -> dict[str, bool]:
    """Say in yes and no which method finds which kind: each kind has four features that have a partner."""
    counts, accuracy = found["found"], found["accuracy"]
    return {
        "correlation finds all of alike and opposite": counts["correlation"]["alike"] + counts["correlation"]["opposite"] == 8,
        "correlation finds all of hidden": counts["correlation"]["hidden"] == 4,
        "mutual information finds all": sum(counts["mutual information"].values()) == 12,
        "plain attention finds any of opposite": counts["plain attention"]["opposite"] > 0,
        "trained attention finds at least 10 of 12": sum(counts["trained attention"].values()) >= 10,
        "trained attention finds more of hidden than correlation": counts["trained attention"]["hidden"] > counts["correlation"]["hidden"],
        "trained attention guesses paired entries 0.2 better than the most frequent one": accuracy["paired"]
        > accuracy["paired, most frequent entry"] + 0.2,
    }


def quick_pairs(seed: int) -> dict[str, bool]:
    """Say after a quarter of the steps whether correlation misses what mutual information finds, and training has begun to."""
    found = planted_pairs(seed, STEPS // 4)
    counts, accuracy = found["found"], found["accuracy"]
    return {
        "mutual information finds all": sum(counts["mutual information"].values()) == 12,
        "correlation finds all that are alike or opposite": counts["correlation"]["alike"] + counts["correlation"]["opposite"] == 8,
        "correlation misses some of the hidden ones": counts["correlation"]["hidden"] < 4,
        "paired entries are guessed better than free ones": accuracy["paired"] > accuracy["free"],
    }


PAIRS = Experiment("results/pairs.json", planted_pairs, conclude_pairs, quick_pairs)
EXPERIMENTS = [PAIRS]
