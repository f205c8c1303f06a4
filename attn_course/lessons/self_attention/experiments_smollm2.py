"""Lesson self_attention: layer 13, head 8 of a real language model, which looks from a pronoun at its noun; what it cannot know yet."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.smollm2 import maps, mean, model

LAYER, HEAD = 13, 8
REPLACED = ("yesterday", "the", "blue")  # what stands in the pronoun's place as a control
KINDS: Sequence[dict[str, Any]] = (  # a seed is a kind of sentence; each holds its noun once, and every word is a token
    {
        "sentence": "The {noun} sat because {word} was tired.",
        "nouns": {"it": ("cat", "dog", "bird", "horse", "fox", "cow", "bear", "rabbit")},
        "pair": "The {a} called the {b} because {word} was late.",
        "pairs": (
            ("woman", "boy", "she", "he"),
            ("boy", "woman", "he", "she"),
            ("king", "queen", "he", "she"),
            ("queen", "king", "she", "he"),
            ("father", "mother", "he", "she"),
            ("girl", "man", "she", "he"),
        ),
        "later": ("The trophy did not fit into the suitcase because it was too {}.", "big", "small"),
    },
    {
        "sentence": "The {noun} slept on the sofa because {word} was cold.",
        "nouns": {"it": ("cat", "dog", "bird", "horse", "fox", "cow", "bear", "rabbit")},
        "pair": "The {a} fed the {b} because {word} was there.",
        "pairs": (("boy", "dog", "he", "it"), ("girl", "horse", "she", "it"), ("man", "cat", "he", "it"), ("woman", "bird", "she", "it")),
        "later": ("The man could not lift his son because he was so {}.", "weak", "heavy"),
    },
    {
        "sentence": "The {noun} ran to the door because {word} was happy.",
        "nouns": {"he": ("king", "boy", "man", "father"), "she": ("queen", "girl", "woman", "mother")},
        "pair": "The {a} washed the {b} because {word} was tired.",
        "pairs": (("woman", "car", "she", "it"), ("boy", "dog", "he", "it"), ("farmer", "horse", "he", "it"), ("girl", "cat", "she", "it")),
        "later": ("The ball broke the table because it was made of {}.", "steel", "paper"),
    },
    {
        "sentence": "The {noun} stopped on the road because {word} was old.",
        "nouns": {"it": ("car", "truck", "train", "bus", "boat", "ship", "engine", "horse")},
        "pair": "The {a} saw the {b} when {word} came home.",
        "pairs": (("mother", "boy", "she", "he"), ("man", "girl", "he", "she"), ("queen", "dog", "she", "it"), ("boy", "cat", "he", "it")),
        "later": ("The dog followed the girl because it was {}.", "hungry", "alone"),
    },
)


def _look(text: str) -> tuple[list[str], Tensor]:
    """The tokens without their spaces, and all maps (layers, heads, len, len)."""
    return [piece.strip() for piece in model().tokens(text)], torch.stack(maps(model().ids(text)))


def to_the_noun(kind: dict[str, Any], nouns: int | None = None, replaced: Sequence[str] = REPLACED) -> dict[str, Any]:
    """Return what the pronoun, the words in its place and the other words give to the noun."""
    rows: list[dict[str, Any]] = []
    by_head = []
    for pronoun, names in kind["nouns"].items():
        for noun in names[:nouns]:
            words, weights = _look(kind["sentence"].format(noun=noun, word=pronoun))
            at, place = words.index(pronoun), words.index(noun)
            by_head.append(weights[:, :, at, place])
            others = {}
            for word in replaced:
                _, changed = _look(kind["sentence"].format(noun=noun, word=word))
                others[word] = round(float(changed[LAYER, HEAD, at, place]), 3)
            row = weights[LAYER, HEAD]
            rows.append(
                {
                    "noun": noun,
                    "weight": round(float(row[at, place]), 3),
                    "of other words": {
                        "the verb": round(float(row[place + 1, place]), 3),
                        "because": round(float(row[at - 1, place]), 3),
                        "the adjective": round(float(row[at + 2, place]), 3),
                    },
                    "in the pronoun's place": others,
                    "to the first word": round(float(row[at, 0]), 3),
                }
            )
    mean_by_head = torch.stack(by_head).mean(0)
    better = (mean_by_head > mean_by_head[LAYER, HEAD]).nonzero().tolist()
    return {
        "nouns": rows,
        "mean": mean(row["weight"] for row in rows),
        "least": min(row["weight"] for row in rows),
        "in the pronoun's place": mean(weight for row in rows for weight in row["in the pronoun's place"].values()),
        "of the verb": mean(row["of other words"]["the verb"] for row in rows),
        "mean of other heads of the layer": mean(mean_by_head[LAYER, head] for head in range(9) if head != HEAD),
        "median of all heads": round(float(mean_by_head.median()), 4),
        "heads with more": better,
    }


def only_the_pronoun(kind: dict[str, Any], pairs: int | None = None) -> dict[str, Any]:
    """Return, for sentences of two nouns that differ in the pronoun, what part of the weight on both goes to the first."""
    found = []
    for first, second, of_first, of_second in kind["pairs"][:pairs]:
        shares, heads = [], []
        for pronoun in (of_first, of_second):
            words, weights = _look(kind["pair"].format(a=first, b=second, word=pronoun))
            at = words.index(pronoun)
            both = torch.stack([weights[:, :, at, words.index(noun)] for noun in (first, second)])
            heads.append(both[0] / both.sum(0))
            shares.append(both[:, LAYER, HEAD])
        moved = heads[0] - heads[1]
        found.append(
            {
                "pair": f"{first}, {second}: {of_first} / {of_second}",
                "weights": [[round(float(weight), 3) for weight in pair] for pair in shares],
                "share moved": round(float(moved[LAYER, HEAD]), 3),
                "median move of the layer's other heads": round(float(np.median([moved[LAYER, head] for head in range(8)])), 3),
                "heads that move as far": int((moved >= moved[LAYER, HEAD]).sum()) - 1,
                "right in both": bool(shares[0][0] > shares[0][1] and shares[1][1] > shares[1][0]),
            }
        )
    return {"pairs": found, "right in both": sum(pair["right in both"] for pair in found)}


def the_word_comes_later(kind: dict[str, Any]) -> dict[str, Any]:
    """Return how far all maps above a last word change when it is another one; and, as a control, when an earlier word is."""
    sentence, one, other = kind["later"]
    words, weights = _look(sentence.format(one))
    at = next(place for place, word in enumerate(words) if word in ("it", "he"))
    _, changed = _look(sentence.format(other))
    _, earlier = _look(sentence.format(one).replace(f" {words[1]} ", " cup " if words[1] != "cup" else " pot ", 1))
    rows = [maps[:, :, : at + 1, : at + 1] for maps in (weights, changed, earlier)]
    return {
        "sentence": sentence.format(f"{one} / {other}"),
        "largest change up to the pronoun": float((rows[1] - rows[0]).abs().max()),
        "largest change with another first noun": round(float((rows[2] - rows[0]).abs().max()), 3),
        "weights of the pronoun": {word: round(float(weights[LAYER, HEAD, at, place]), 3) for place, word in enumerate(words[: at + 1])},
    }


def run(seed: int, count: int | None = None) -> dict[str, Any]:
    """Measure one kind of sentence, or the first of its nouns and pairs."""
    kind = KINDS[seed]
    return {
        "noun": to_the_noun(kind, count),
        "only the pronoun": only_the_pronoun(kind, count),
        "the deciding word comes later": the_word_comes_later(kind),
    }


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every kind of sentence."""
    noun, pairs, later = found["noun"], found["only the pronoun"]["pairs"], found["the deciding word comes later"]
    return {
        "the pronoun gives the noun more than half of its weight": noun["mean"] > 0.5,
        "none of the other 269 heads gives it as much": noun["heads with more"] == [],
        "with another word in its place a quarter of that or less": noun["in the pronoun's place"] < 0.25 * noun["mean"],
        "other heads of the layer give a tenth of that or less": noun["mean of other heads of the layer"] < 0.1 * noun["mean"],
        "the verb gives the noun more than half, too": noun["of the verb"] > 0.5,
        "only the pronoun changed, the share moves to the noun that agrees": min(pair["share moved"] for pair in pairs) > 0.0,
        "more than in the middle one of the layer's other heads": mean(pair["share moved"] for pair in pairs)
        > 2 * mean(pair["median move of the layer's other heads"] for pair in pairs),
        "it is not right in both of every pair": found["only the pronoun"]["right in both"] < len(pairs),
        "a word that comes later changes no digit": later["largest change up to the pronoun"] == 0.0,
        "an earlier one does": later["largest change with another first noun"] > 0.01,
    }


def quick(seed: int) -> dict[str, bool]:
    """Say of one noun what holds there."""
    kind = KINDS[seed % len(KINDS)]
    found, later = to_the_noun(kind, 1, REPLACED[:1]), the_word_comes_later(kind)
    return {
        "the pronoun looks at the noun": found["mean"] > 0.4,
        "another word in its place less": found["in the pronoun's place"] < 0.25,
        "a word that comes later changes no digit": later["largest change up to the pronoun"] == 0.0,
    }


SMOLLM2 = Experiment("results/smollm2.json", run, conclude, quick, seeds=range(len(KINDS)), needs_model=True)
EXPERIMENTS = [SMOLLM2]
