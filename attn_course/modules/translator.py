"""What all encoder-decoders over tokens share: the loss of a translation, and how one is written."""

from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class Translator(nn.Module):
    """Reads a source and writes a target token by token; a kind of it says how it encodes, and what it writes next.

    `padding`, `start` and `end` are the special tokens: what fills up a batch on the right, what the decoder reads first, and
    what closes a target.
    """

    padding: int
    start: int
    end: int

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch source_len"]) -> Any:
        """Return all that the decoder will look at."""

    @abstractmethod
    def next_logits(self, token: Tensor, encoded: Any, state: Any) -> tuple[Tensor, Tensor | None, Any]:
        """Return logits of the token after the one written last, the alignment, and the decoder's new state; it begins as None."""

    def loss(self, source: Int[Tensor, "batch source_len"], target: Int[Tensor, "batch target_len"]) -> Float[Tensor, ""]:
        """Return the mean cross-entropy of a target token in nats; padding does not count, Eq. loss-over-real-tokens."""
        logits, _ = self(source, target)
        return cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=self.padding)

    @torch.no_grad()
    def greedy(
        self, source: Int[Tensor, "batch source_len"], max_len: int, *, encoded: Any = None
    ) -> tuple[Int[Tensor, "batch max_len"], Float[Tensor, "batch *n_heads max_len source_len"] | None]:
        """Write the likeliest token at each step, and read it at the next; padding follows the first end token.

        Returns the tokens and the weights of each step, None without attention. The source is encoded once, or stands in `encoded`.
        """
        encoded, state = self.encode(source) if encoded is None else encoded, None
        tokens, alignments = [source.new_full((len(source),), self.start)], []
        ended = torch.zeros_like(tokens[0], dtype=torch.bool)
        for _ in range(max_len):
            logits, weights, state = self.next_logits(tokens[-1], encoded, state)
            token = logits.argmax(dim=-1).masked_fill(ended, self.padding)
            ended = ended | (token == self.end)
            tokens.append(token)
            alignments.append(weights)
        return torch.stack(tokens[1:], dim=1), stacked(alignments)


def stacked(alignments: list[Tensor | None]) -> Tensor | None:
    """Return the alignments of all steps, on the axis before the last; None without attention."""
    rows = [row for row in alignments if row is not None]
    return torch.stack(rows, dim=-2) if rows else None
