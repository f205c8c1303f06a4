"""A Transformer that writes text: embed, let each block add what it found to the residual stream, norm, compare with every token."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import embedding

from attn_course.modules.block import NORMS, Block, Norm
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.gguf import Gguf, read_gguf
from attn_course.modules.gpt2 import gpt2_weights
from attn_course.modules.hooks import Place


class Transformer(nn.Module):
    r"""Says for every position which token comes next: logits over all tokens, from this position and those before it.

    .. math:: X_0 = E_{ids} + P, \qquad X_l = \mathrm{block}_l(X_{l-1}), \qquad \text{logits} = N(X_L)\, E^\top

    `n_tokens`: size of the vocabulary.
    `n_positions`: length of a table P of learned positions, which is then the longest text; without it nothing is added, and
    positions come from `rope_theta` in the blocks, or from the causal mask alone.
    `tied`: whether the table of tokens E also reads the answer; else `w_logits` does.
    `norm`, `norm_first`, `norm_eps`: see `Block`. With `norm_first` one more norm stands behind the last block.
    `**block`: more keywords of `Block` and `MultiHeadAttention`, the same for all blocks.
    `w_tokens` (n_tokens, d_model), `w_positions` (n_positions, d_model), `w_logits` (d_model, n_tokens): None where not used.

    Logits start with variance 1, since E starts with 1 / d_model, Eq. variance-after-projection; with a tied table that of the token
    itself is higher. With `norm_first` the 2 n_layers parts bring the stream a variance of 1 in all, Eq.
    stream-variance-by-depth: their last matrices are divided by sqrt(2 n_layers).

    Places for hooks: `embedded` (X_0), `blocks.0.stream`, `blocks.0.attention.weights` and the others of each `Block`.

    Raises ValueError if a size is below 1, or as its parts do.

    Radford et al. (2019), section 2.3 (GPT-2). Tied tables: Press and Wolf (2016), arXiv:1608.05859.

    >>> model = Transformer(n_tokens=11, d_model=12, n_heads=3, n_layers=2, n_positions=8)
    >>> ids = torch.tensor([[3, 1, 4, 1, 5]])
    >>> model(ids).shape, model.generate(ids, 3).shape
    (torch.Size([1, 5, 11]), torch.Size([1, 8]))
    >>> from attn_course.modules import hooked
    >>> streams = []
    >>> with hooked(model, {"blocks.1.stream": streams.append, "blocks.0.attended": torch.zeros_like}):  # look; take a part out
    ...     _ = model(ids)
    >>> streams[0].shape
    torch.Size([1, 5, 12])
    """

    w_positions: nn.Parameter | None
    w_logits: nn.Parameter | None

    def __init__(
        self,
        n_tokens: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        *,
        n_positions: int | None = None,
        tied: bool = True,
        norm: Norm = "layer",
        norm_first: bool = True,
        norm_eps: float = 1e-5,
        generator: torch.Generator | None = None,
        **block: Any,
    ) -> None:
        super().__init__()
        sizes = {"n_tokens": n_tokens, "n_layers": n_layers, "n_positions": 1 if n_positions is None else n_positions}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be 1 or more; got {size}")

        def table(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) / math.sqrt(d_model))

        self.w_tokens = table(n_tokens, d_model)
        self.register_parameter("w_positions", None if n_positions is None else table(n_positions, d_model))
        self.register_parameter("w_logits", None if tied else table(d_model, n_tokens))
        options: dict[str, Any] = {"norm": norm, "norm_first": norm_first, "norm_eps": norm_eps, "generator": generator}
        blocks = [Block(d_model, n_heads, **options, **block) for _ in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = NORMS[norm](d_model, eps=norm_eps) if norm_first else nn.Identity()
        self.embedded = Place()
        with torch.no_grad():
            for part in blocks if norm_first else ():
                for last in (part.attention.w_output, part.feed_forward.w_out):  # not w_in, and not w_gate
                    last.div_(math.sqrt(2 * n_layers))

    def forward(
        self,
        ids: Int[Tensor, "*batch len"],
        *,
        cache: Sequence[KeyValueCache] | None = None,
        positions: Shaped[Tensor, "*#batch len"] | None = None,
        last: bool = False,
    ) -> Float[Tensor, "*batch rows n_tokens"]:
        """Return logits: row i is about the token behind ids[..., i].

        `ids`: tokens, all sequences of one length; what stands behind a sequence does not change its logits.
        `cache`: that of `new_cache`: the past, which `ids` continues.
        `positions`: where the tokens stand, for a rotation in the blocks; behind the past, in order, if left out.
        `last`: the last row alone, since a large vocabulary makes all of them expensive.

        Raises TypeError if `ids` are not whole numbers; ValueError if one is no token, there are more positions than the table
        has, or the cache is not one for each block.
        """
        past = self._past(cache)
        self._check(ids, past)
        x = embedding(ids, self.w_tokens)
        if self.w_positions is not None:
            x = x + self.w_positions[past : past + ids.shape[-1]]
        x = self.embedded(x)
        for number, block in enumerate(self.blocks):
            x = block(x, cache=None if cache is None else cache[number], positions=positions)
        return self.norm(x[..., -1:, :] if last else x) @ (self.w_tokens.T if self.w_logits is None else self.w_logits)

    def new_cache(self) -> list[KeyValueCache]:
        """Return an empty cache for each block."""
        return [KeyValueCache() for _ in self.blocks]

    @torch.no_grad()
    def generate(
        self,
        ids: Int[Tensor, "*batch len"],
        n_new: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
        use_cache: bool = True,
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Int[Tensor, "*batch total"]:
        """Return the tokens and `n_new` more, each chosen after all before it.

        `lengths`: how many tokens of each sequence are real, its last ones; what pads it on the left, whatever it is, stays there and
        changes nothing. Sequences of one length are written together.
        `temperature`: 0 takes the likeliest token; else it is drawn with softmax(logits / temperature).
        `use_cache`: read each token once, Eq. decoding-equals-full-pass, or everything again at each step: the same tokens, unless
        two are as good as equal, since sums are rounded in another order.

        Raises ValueError if there is no token to begin with, `n_new` or `temperature` is not 0 or more, `lengths` are not one for each
        sequence, or as `forward` does.
        """
        if not (n_new >= 0 and temperature >= 0.0 and ids.ndim >= 1 and ids.shape[-1] >= 1):  # NaN is not 0 or more
            wanted = "n_new and temperature must be 0 or more, ids hold a token or more"
            raise ValueError(f"{wanted}; got {n_new}, {temperature} and shape {tuple(ids.shape)}")
        if lengths is not None:
            if lengths.shape != ids.shape[:-1] or not ((lengths >= 1) & (lengths <= ids.shape[-1])).all():
                wanted = f"lengths must be from 1 to {ids.shape[-1]}, one for each sequence, shape {tuple(ids.shape[:-1])}"
                raise ValueError(f"{wanted}; got {lengths.tolist()}")
            written = torch.cat([ids, ids.new_zeros(*ids.shape[:-1], n_new)], dim=-1)
            for length in lengths.unique().tolist():
                real = ids[lengths == length][..., -length:]
                found = self.generate(real, n_new, temperature=temperature, generator=generator, use_cache=use_cache)
                written[lengths == length, -n_new - length :] = found
            return written
        cache, unread = self.new_cache() if use_cache else None, ids
        for _ in range(n_new):
            logits = self(unread, cache=cache, last=True)
            if temperature > 0.0:  # the largest of logits / temperature with noise of Gumbel's is a draw from their softmax
                logits = logits / temperature - torch.empty_like(logits).exponential_(generator=generator).log()
            token = logits.argmax(dim=-1)
            ids = torch.cat([ids, token], dim=-1)
            unread = token if use_cache else ids
        return ids

    @classmethod
    def from_gpt2(cls, state_dict: Mapping[str, Tensor], *, n_heads: int) -> Self:
        """Return GPT-2: pre-norm blocks with layer norms, biases, tanh GELU and learned positions, and a tied table of tokens.

        `state_dict`: see `attn_course.modules.gpt2.gpt2_weights`. It does not tell the number of heads: 12 for the smallest model.

        Returns `model`: on the same device, in the same dtype; a copy.

        Raises ValueError if a weight is missing or unknown, or the heads do not divide d_model.
        """
        state = gpt2_weights(state_dict)
        (n_tokens, d_model), n_positions = state["w_tokens"].shape, len(state["w_positions"])
        n_layers = sum(name.endswith(".w_in") for name in state)
        options: dict[str, Any] = {"bias": True, "activation": "gelu_tanh", "d_hidden": state["blocks.0.feed_forward.w_in"].shape[1]}
        model = cls(n_tokens, d_model, n_heads, n_layers, n_positions=n_positions, tied="w_logits" not in state, **options)
        model.to(state["w_tokens"]).load_state_dict(state)
        return model

    @classmethod
    def from_gguf(cls, source: Path | str | Gguf) -> Self:
        """Return a model of Llama's architecture: RMS norms, grouped key heads, rotated pairs of neighbours, SiLU gates, no biases.

        `source`: a GGUF file, or what `attn_course.modules.gguf.read_gguf` made of it. Numbers of 4 or 8 bits become float32.

        Raises ValueError if the file is no GGUF, of another architecture, or lacks a weight.

        Touvron et al. (2023), section 2.2, arXiv:2302.13971.
        """
        gguf = source if isinstance(source, Gguf) else read_gguf(source)
        state = gguf.weights()
        with torch.device("meta"):  # no numbers are drawn for weights that are about to be replaced
            model = cls(tied="w_logits" not in state, **gguf.options())
        model.load_state_dict(state, assign=True)
        return model

    def _past(self, cache: Sequence[KeyValueCache] | None) -> int:
        if cache is None:
            return 0
        lengths = [len(own) for own in cache]
        if len(lengths) != len(self.blocks) or len({*lengths}) > 1:
            raise ValueError(f"cache must hold {len(self.blocks)} of one length, one for each block; got lengths {lengths}")
        return lengths[0]

    def _check(self, ids: Tensor, past: int) -> None:
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"ids must be whole numbers, int64 or int32; got {ids.dtype}")
        if ids.ndim < 1:
            raise ValueError(f"ids must have the axes (..., len); got shape {tuple(ids.shape)}")
        if self.w_positions is not None and past + ids.shape[-1] > len(self.w_positions):
            raise ValueError(f"ids must end within the {len(self.w_positions)} positions of the table; got {past + ids.shape[-1]}")
        if not torch.compiler.is_compiling() and ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < len(self.w_tokens):
            raise ValueError(f"ids must be from 0 to {len(self.w_tokens) - 1}; got {int(ids.min())} to {int(ids.max())}")
