"""A real language model repeats random tokens: what lessons share of it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attn_course.experiments.smollm2 import Head, logits, silence

WORDS = 50
EIGHT: tuple[Head, ...] = ((17, 3), (17, 4), (17, 5), (18, 6), (18, 7), (20, 6), (23, 2), (23, 7))
BEFORE: tuple[Head, ...] = ((11, 1), (16, 0))  # they look one token back


def repeated(seed: int, words: int = WORDS) -> Tensor:
    """Return random tokens, and the same again."""
    half = torch.randint(1000, 20_000, (words,), generator=torch.Generator().manual_seed(100 + seed))
    return torch.cat([half, half])


def copied(ids: Tensor, heads: Sequence[Head] = ()) -> float:
    """Return in which part of the second half the likeliest next token is the right one, with these heads silenced."""
    words = len(ids) // 2
    guessed = logits(ids, hooks=silence(heads))[words:-1].argmax(-1)
    return round(float((guessed == ids[words + 1 :]).float().mean()), 4)
