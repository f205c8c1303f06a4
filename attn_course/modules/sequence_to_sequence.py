"""A small encoder-decoder without recurrence: self-attention reads the source, cross-attention asks it, a cache keeps its answers."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attn_course.gpu.ops import attention
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.multi_head import MultiHeadAttention
from attn_course.modules.positions import sinusoidal_positions
from attn_course.modules.translator import Translator


class CrossAttention(MultiHeadAttention):
    """`MultiHeadAttention` from one sequence to another, in two halves: what the source prepares once, and what each target position pays.

    `*args`, `**kwargs`: those of `MultiHeadAttention`; `d_key_value` is the width of the source.

    >>> layer = CrossAttention(d_model=6, n_heads=2, d_key_value=5)
    >>> key, value = layer.answers(torch.zeros(3, 7, 5))
    >>> output, weights = layer.ask(torch.zeros(3, 1, 6), key, value)
    >>> output.shape, weights.shape
    (torch.Size([3, 1, 6]), torch.Size([3, 2, 1, 7]))
    """

    def answers(
        self, y: Float[Tensor, "*batch kv_len d_key_value"]
    ) -> tuple[Float[Tensor, "*batch n_kv_heads kv_len d_k"], Float[Tensor, "*batch n_kv_heads kv_len d_v"]]:
        """Return keys and values of the source, Y W_K and Y W_V of Eq. cross-attention, needed once however many positions ask."""
        return self._heads("key", "y", y, self.n_kv_heads), self._heads("value", "y", y, self.n_kv_heads)

    def ask(
        self,
        x: Float[Tensor, "*batch q_len d_model"],
        key: Float[Tensor, "*batch n_kv_heads kv_len d_k"],
        value: Float[Tensor, "*batch n_kv_heads kv_len d_v"],
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> tuple[Float[Tensor, "*batch q_len d_model"], Float[Tensor, "*batch n_heads q_len kv_len"]]:
        """Return output and weights for target positions that ask what `answers` prepared.

        `lengths`: number of real source positions; the padding behind them gets no weight.

        Returns `weights`: the alignment of each head.
        """
        kv_len = key.shape[-2]
        mask = None if lengths is None else torch.arange(kv_len, device=key.device) < lengths[..., None, None, None]
        query = self._heads("query", "x", x, self.n_heads)
        output, weights = attention(query, key, value, mask=mask, enable_gqa=True, return_weights=True, **self.options)
        return self._project("output", output.transpose(-2, -3).flatten(-2)), weights  # (*batch, q_len, n_heads, d_v), side by side


@dataclass(frozen=True)
class Prepared:
    """The source as the decoder sees it: keys and values, computed once, how many are real, and the decoder's own past."""

    key: Float[Tensor, "batch n_heads source_len d_k"]
    value: Float[Tensor, "batch n_heads source_len d_v"]
    lengths: Int[Tensor, "batch"]
    past: KeyValueCache = field(default_factory=KeyValueCache)


class SequenceToSequence(Translator):
    """Translates a source into a target: one block reads the source, one block writes the target and asks the source.

    Each block adds what its parts find to what it has: x + attention(norm(x)), then x + network(norm(x)).

    `padding`, `start`, `end`: special tokens: what fills up a batch on the right, what the decoder reads first, and
    what closes a target.

    Vaswani et al. (2017), section 3, arXiv:1706.03762, with one block a side, sinusoidal positions, and the norm before
    each part instead of after it. Methods are those of `EncoderDecoder`, but alignments have an axis of heads.
    """

    def __init__(
        self, n_source: int, n_target: int, *, d_model: int = 64, n_heads: int = 2, padding: int = 0, start: int = 1, end: int = 2
    ) -> None:
        super().__init__()
        self.padding, self.start, self.end = padding, start, end
        self.source_embedding, self.target_embedding = nn.Embedding(n_source, d_model), nn.Embedding(n_target, d_model)
        self.read = MultiHeadAttention(d_model, n_heads)
        self.recall = MultiHeadAttention(d_model, n_heads, is_causal=True)
        self.cross = CrossAttention(d_model, n_heads)
        self.source_network, self.target_network = (
            nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model)) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(7))
        self.output = nn.Linear(d_model, n_target)

    def forward(
        self, source: Int[Tensor, "batch source_len"], target: Int[Tensor, "batch target_len"]
    ) -> tuple[Float[Tensor, "batch target_len n_target"], Float[Tensor, "batch n_heads target_len source_len"]]:
        """Return logits and alignments under teacher forcing, all positions at once: position i reads the right tokens before i.

        `source`: real tokens first, at least one, then padding.
        `target`: what to write, the end token included, then padding.

        Returns `logits`: for the token at each position; `alignments`: weights over the source, 0 on padding.
        """
        first = target.new_full((len(target), 1), self.start)
        return self.write(torch.cat([first, target[:, :-1]], dim=1), self.encode(source))  # shifted right, Eq. shifted-input-hides-target

    def encode(self, source: Int[Tensor, "batch source_len"]) -> Prepared:
        """Read the source, and prepare its keys and values for all steps of the decoder.

        `source`: real tokens first, at least one, then padding.

        Returns `prepared`: all that the decoder will look at, with an empty past.
        """
        lengths = (source != self.padding).sum(dim=1)
        y = _with_positions(self.source_embedding(source), 0)
        y = y + self.read(self.norms[0](y), lengths=lengths)
        y = y + self.source_network(self.norms[1](y))
        return Prepared(*self.cross.answers(self.norms[2](y)), lengths)

    def write(
        self, tokens: Int[Tensor, "batch len"], prepared: Prepared
    ) -> tuple[Float[Tensor, "batch len n_target"], Float[Tensor, "batch n_heads len source_len"]]:
        """Read the tokens that follow the decoder's past, and return logits for the token after each.

        `tokens`: all tokens of the target, or the next one only; `prepared.past` remembers them.

        Returns `logits`: row i is about the token after tokens[:, i]; `alignments`: weights over the source, 0 on
        padding.
        """
        x = _with_positions(self.target_embedding(tokens), len(prepared.past))
        x = x + self.recall(self.norms[3](x), cache=prepared.past)
        found, alignments = self.cross.ask(self.norms[4](x), prepared.key, prepared.value, prepared.lengths)
        x = x + found
        x = x + self.target_network(self.norms[5](x))
        return self.output(self.norms[6](x)), alignments

    def next_logits(self, token: Tensor, encoded: Prepared, state: None) -> tuple[Tensor, Tensor, None]:
        """Return logits of what follows `token` (batch,), and the alignments; `encoded` remembers the past.

        Shapes: logits (batch, n_target), alignments (batch, n_heads, source_len).
        """
        logits, weights = self.write(token[:, None], encoded)
        return logits[:, 0], weights[:, :, 0], state


def _with_positions(x: Tensor, first: int) -> Tensor:
    """Add the sinusoids of positions first, first + 1, ... to (batch, len, d_model)."""
    return x + sinusoidal_positions(first + x.shape[1], x.shape[2], device=x.device)[first:].to(x.dtype)
