"""A small recurrent encoder-decoder that translates sequences of tokens, with an aligner inside, or with a fixed vector instead."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attn_course.modules.additive import AdditiveAttention, masked_softmax
from attn_course.modules.translator import Translator, stacked

Aligner: TypeAlias = Literal["additive", "dot"]


class DotAttention(nn.Module):
    """The rival of `AdditiveAttention`, with the same methods: softmax(q W_Q (k W_K)^T / sqrt(d_hidden)) over the keys.

    `scaled`: divide the scores by sqrt(d_hidden), or not.
    `generator`: source of the first weights; entries of the projections start with variance 1 / d_q and 1 / d_k.
    """

    def __init__(self, d_q: int, d_k: int, d_hidden: int, *, scaled: bool = True, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(d_hidden) if scaled else 1.0
        self.w_query = nn.Parameter(torch.randn(d_q, d_hidden, generator=generator) / math.sqrt(d_q))
        self.w_key = nn.Parameter(torch.randn(d_k, d_hidden, generator=generator) / math.sqrt(d_k))

    def project_keys(self, key: Float[Tensor, "*batch kv_len d_k"]) -> Float[Tensor, "*batch kv_len d_hidden"]:
        """Return key @ w_key, needed once for all queries."""
        return key @ self.w_key

    def attend(
        self,
        query: Float[Tensor, "*#batch q_len d_q"],
        projected: Float[Tensor, "*#batch kv_len d_hidden"],
        value: Float[Tensor, "*#batch kv_len d_v"],
        mask: Bool[Tensor, "*#batch #q_len #kv_len"] | None = None,
    ) -> tuple[Float[Tensor, "*batch q_len d_v"], Float[Tensor, "*batch q_len kv_len"]]:
        """Return output and weights for keys that `project_keys` has already projected."""
        weights = masked_softmax(query @ self.w_query @ projected.transpose(-1, -2) * self.scale, mask)
        return weights @ value, weights


@dataclass(frozen=True)
class Encoded:
    """What the encoder leaves behind: one annotation per source token, which are real, a summary, and the decoder's first state."""

    annotations: Float[Tensor, "batch source_len d_state"]
    mask: Bool[Tensor, "batch 1 source_len"]
    summary: Float[Tensor, "batch d_state"]
    projected: Float[Tensor, "batch source_len d_hidden"] | None  # keys of the aligner; None without one
    state: Float[Tensor, "batch d_state"]


class EncoderDecoder(Translator):
    r"""Reads a source in both directions and writes a target token by token.

    With attention, step i of the decoder asks with its last state: c_i = sum_j alpha_ij h_j, where keys and values both are
    the annotations h_j. Without, c_i is the same for all i: the encoder's last states, a vector of d_state numbers however
    long the source is. All else is equal.

    `attention`: score of the aligner; None for the fixed vector.
    `d_state`: features of the decoder's state and of an annotation, half of these from each direction; even.
    `d_hidden`: hidden units of the aligner; d_state if left out.
    `padding`, `start`, `end`: special tokens: what fills up a batch on the right, what the decoder reads first, and
    what closes a target.

    Raises ValueError if `attention` is another word, or `d_state` is odd.

    Bahdanau et al. (2014), arXiv:1409.0473: Eqs. 4 to 6, RNNsearch; the fixed vector is that of Cho et al. (2014),
    arXiv:1406.1078. GRU cells; one linear layer instead of their maxout reads the output from state, context and last
    token. The aligner must come before the state it helps to make, so the decoder is a loop over target positions, also
    in training.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        *,
        attention: Aligner | None = "additive",
        d_embed: int = 32,
        d_state: int = 64,
        d_hidden: int | None = None,
        padding: int = 0,
        start: int = 1,
        end: int = 2,
    ) -> None:
        super().__init__()
        kinds = {"additive": AdditiveAttention, "dot": DotAttention, None: None}
        if attention not in kinds:
            raise ValueError(f"attention must be 'additive', 'dot' or None; got {attention!r}")
        if d_state % 2:
            raise ValueError(f"d_state must be even, half for each direction; got {d_state}")
        self.padding, self.start, self.end = padding, start, end
        self.source_embedding = nn.Embedding(n_source, d_embed)
        self.target_embedding = nn.Embedding(n_target, d_embed)
        self.encoder = nn.GRU(d_embed, d_state // 2, batch_first=True, bidirectional=True)
        self.first_state = nn.Linear(d_state, d_state)
        kind = kinds[attention]
        self.aligner = None if kind is None else kind(d_state, d_state, d_hidden or d_state)
        self.cell = nn.GRUCell(d_embed + d_state, d_state)
        self.output = nn.Linear(d_state + d_state + d_embed, n_target)

    def forward(
        self, source: Int[Tensor, "batch source_len"], target: Int[Tensor, "batch target_len"]
    ) -> tuple[Float[Tensor, "batch target_len n_target"], Float[Tensor, "batch target_len source_len"] | None]:
        """Return logits and alignments under teacher forcing: position i reads the right tokens before i.

        `source`: real tokens first, at least one, then padding.
        `target`: what to write, the end token included, then padding.

        Returns `logits`: for the token at each position; `alignments`: weights over the source, 0 on padding; None
        without attention.

        Raises ValueError if a source is empty or has padding before a token, or the batches differ in size.
        """
        if len(source) != len(target):
            raise ValueError(f"source and target must hold as many examples; got {len(source)} and {len(target)}")
        encoded = self.encode(source)
        state, steps, alignments = encoded.state, [], []
        first = target.new_full((len(target), 1), self.start)
        for embedded in self.target_embedding(torch.cat([first, target[:, :-1]], dim=1)).unbind(dim=1):
            state, features, weights = self.step(embedded, state, encoded)
            steps.append(features)
            alignments.append(weights)
        return self.output(torch.stack(steps, dim=1)), stacked(alignments)

    def encode(self, source: Int[Tensor, "batch source_len"]) -> Encoded:
        """Read the source in both directions; padding takes no part.

        `source`: real tokens first, at least one, then padding.

        Returns `encoded`: all that the decoder will look at.

        Raises ValueError if a source is empty or has padding before a token.
        """
        real = source != self.padding
        lengths = real.sum(dim=1)
        if not (lengths > 0).all() or not torch.equal(real, torch.arange(source.shape[1], device=source.device) < lengths[:, None]):
            raise ValueError(f"source must hold real tokens first, at least one, then padding ({self.padding}); got {source.tolist()}")
        packed = pack_padded_sequence(self.source_embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        annotations, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        summary = torch.cat([last[0], last[1]], dim=-1)  # forward: after the last real token; backward: after the first
        projected = None if self.aligner is None else self.aligner.project_keys(annotations)
        return Encoded(annotations, real[:, None], summary, projected, torch.tanh(self.first_state(summary)))

    def step(
        self, embedded: Float[Tensor, "batch d_embed"], state: Float[Tensor, "batch d_state"], encoded: Encoded
    ) -> tuple[Float[Tensor, "batch d_state"], Float[Tensor, "batch features"], Float[Tensor, "batch source_len"] | None]:
        """Make one step of the decoder: ask with the old state, then update it.

        `embedded`: the token written last.
        `state`: s_{i-1}.
        `encoded`: the source.

        Returns `features`: what the output layer reads.
        """
        context, weights = encoded.summary, None
        if self.aligner is not None:
            assert encoded.projected is not None
            found, row = self.aligner.attend(state[:, None], encoded.projected, encoded.annotations, encoded.mask)
            context, weights = found[:, 0], row[:, 0]
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        return state, torch.cat([state, context, embedded], dim=-1), weights

    def next_logits(self, token: Tensor, encoded: Encoded, state: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return logits of what follows `token` (batch,), the alignment, and the decoder's new state.

        Shapes: logits (batch, n_target), alignment (batch, source_len), `state` (batch, d_state), None before the first token.
        """
        state, features, weights = self.step(self.target_embedding(token), encoded.state if state is None else state, encoded)
        return self.output(features), weights, state
