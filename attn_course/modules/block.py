"""One block of a Transformer: attention and hidden units, each of which adds what it found to the residual stream."""

from typing import Any, Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attn_course.modules.cache import KeyValueCache
from attn_course.modules.feed_forward import Activation, FeedForward
from attn_course.modules.hooks import Place
from attn_course.modules.positional import PositionalAttention

NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
Norm = Literal["layer", "rms"]


class WatchedAttention(PositionalAttention):
    """`PositionalAttention` with places for hooks.

    `*args`, `**kwargs`: those of `PositionalAttention`.
    `query`, `key`, `value` (*batch, heads, len, d_k or d_v): those of the new positions, before a rotation; key heads as few as they are.
    `weights` (*batch, n_heads, q_len, kv_len): the maps, to be looked at only; computed while somebody looks.
    `heads` (*batch, q_len, n_heads, d_v): what each head found, before w_output adds them up, Eq. output-projection-sums-heads.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.query, self.key, self.value = Place(), Place(), Place()
        self.weights, self.heads = Place(read_only=True), Place()

    def forward(
        self, x: Float[Tensor, "*batch q_len d_model"], x_key_value: Float[Tensor, "*batch kv_len d_key_value"] | None = None, **call: Any
    ) -> Any:
        """Return what `PositionalAttention` returns.

        `x_key_value`, `**call`: those of `PositionalAttention.forward`.
        """
        if not self.weights.hooks:
            return super().forward(x, x_key_value, **call)
        output, weights = super().forward(x, x_key_value, **call | {"return_weights": True})
        self.weights(weights)
        return (output, weights) if call.get("return_weights") else output

    def _heads(self, role: str, name: str, x: Tensor, n_heads: int) -> Tensor:
        found: Tensor = getattr(self, role)(super()._heads(role, name, x, n_heads))
        return found

    def _project(self, role: str, x: Tensor) -> Tensor:
        if role == "output":
            x = self.heads(x.unflatten(-1, (self.n_heads, self.d_v))).flatten(-2)
        return super()._project(role, x)


class Block(nn.Module):
    r"""Attention, then hidden units, each of which adds to the residual stream.

    .. math:: y = x + A(N_1(x)), \quad z = y + F(N_2(y)) \qquad \text{or} \qquad y = N_1(x + A(x)), \quad z = N_2(y + F(y))

    `norm`: "layer" or "rms", with learned gains (and biases of a layer norm).
    `norm_first`: norm what a part reads, and leave the stream alone, Eq. stream-is-a-sum; or norm the stream itself, as in 2017,
    Eq. post-norm-jacobian.
    `norm_eps`: added to the variance, or to the mean square.
    `d_hidden`, `activation`, `gated`: those of `FeedForward`. `bias`: whether both parts add biases.
    `**attention`: keywords of `PositionalAttention`, such as `n_kv_heads`, `rope_theta` or `window`; the mask is causal.

    Places for hooks: `attention.weights`, `attention.heads` and the others of `WatchedAttention`; `attended` and `fed` (what the two
    parts add), `stream` (z).

    Raises ValueError if the norm is unknown, or as its parts do.

    Vaswani et al. (2017), section 3.1, arXiv:1706.03762; the norm first: Xiong et al. (2020), arXiv:2002.04745.

    >>> Block(12, 3, norm="rms", gated=True)(torch.ones(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        norm: Norm = "layer",
        norm_first: bool = True,
        norm_eps: float = 1e-5,
        d_hidden: int | None = None,
        activation: Activation = "gelu",
        gated: bool = False,
        bias: bool = False,
        generator: torch.Generator | None = None,
        **attention: Any,
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}; got {norm!r}")
        self.norm_first = norm_first
        self.attention = WatchedAttention(d_model, n_heads, bias=bias, generator=generator, **{"is_causal": True} | attention)
        self.feed_forward = FeedForward(d_model, d_hidden, activation=activation, gated=gated, bias=bias, generator=generator)
        self.norm_attention, self.norm_feed_forward = (NORMS[norm](d_model, eps=norm_eps) for _ in range(2))
        self.attended, self.fed, self.stream = Place(), Place(), Place()

    def forward(
        self,
        x: Float[Tensor, "*batch len d_model"],
        *,
        cache: KeyValueCache | None = None,
        positions: Shaped[Tensor, "*#batch len"] | None = None,
    ) -> Float[Tensor, "*batch len d_model"]:
        """Return the stream behind the block.

        `cache`: keys and values of the past, which `x` continues; the new ones are appended.
        `positions`: where the rows of `x` stand, for the rotation; behind the past, in order, if left out.
        """
        if self.norm_first:
            x = x + self.attended(self.attention(self.norm_attention(x), cache=cache, positions=positions))
            x = x + self.fed(self.feed_forward(self.norm_feed_forward(x)))
        else:
            x = self.norm_attention(x + self.attended(self.attention(x, cache=cache, positions=positions)))
            x = self.norm_feed_forward(x + self.fed(self.feed_forward(x)))
        return self.stream(x)
