"""Short stories of 28 words and stops, of which all are known, so that nobody's loss can be below what chance leaves open."""

import itertools
import math

import torch
from torch import Tensor

SHE, HE = ("Ann", "Eva", "Kim", "Mia"), ("Ben", "Ian", "Max", "Tom")
COLOURS = ("red", "blue", "green", "white", "black", "grey")
THINGS = ("ball", "kite", "boat", "drum", "book", "cup", "hat", "key")
DEEDS = {"loses": "finds", "breaks": "mends", "hides": "seeks", "drops": "lifts"}


def story(owner: str, helper: str, colour: str, thing: str, deed: str) -> str:
    """Return the story of five choices; every other word follows from them."""
    one, other = ("she" if name in SHE else "he" for name in (owner, helper))
    return (
        f"{owner} has a {colour} {thing} . {one} {deed} the {thing} . {helper} {DEEDS[deed]} the {colour} {thing} . "
        f"{other} gives it to {owner} . now {one} is glad ."
    )


STORIES = [
    story(*names, colour, thing, deed)
    for names in itertools.permutations(SHE + HE, 2)
    for colour, thing, deed in itertools.product(COLOURS, THINGS, DEEDS)
]
WORDS = sorted({word for told in STORIES for word in told.split()})
LENGTH = len(STORIES[0].split())
FLOOR = math.log(len(STORIES)) / LENGTH  # nats a word
N_TEST = 1000


def numbers(told: str) -> list[int]:
    """Return the words of a text as their places in WORDS."""
    return [WORDS.index(word) for word in told.split()]


def text(words: Tensor) -> str:
    """Return the words of these numbers."""
    return " ".join(WORDS[number] for number in words.tolist())


def tables() -> tuple[Tensor, Tensor]:
    """Return all stories as rows of numbers behind a full stop: those to learn from, and 1000 that are kept back."""
    number = {word: place for place, word in enumerate(WORDS)}
    rows = torch.tensor([[number["."], *(number[word] for word in told.split())] for told in STORIES])
    mixed = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(19))]
    return mixed[N_TEST:], mixed[:N_TEST]
