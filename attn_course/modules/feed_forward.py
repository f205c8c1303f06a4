"""What a position does by itself, in torch: two linear maps with an activation between them, which may be a gate."""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
}


class FeedForward(nn.Module):
    r"""Hidden units at every position, Eq. feed-forward-as-lookup; with a gate Eq. gated-feed-forward.

    .. math:: a(x W_{in} + b_{in})\,W_{out} + b_{out}, \qquad \bigl( a(x W_{gate}) \odot (x W_{in} + b_{in}) \bigr) W_{out} + b_{out}

    `d_hidden`: number of hidden units; 4 d_model if left out. With a gate two thirds of it make as many parameters, Eq.
    feed-forward-flops.
    `activation`: a. GPT-2 has "gelu_tanh", which differs from "gelu" by up to 0.0005.
    `gated`: whether a gate multiplies the hidden units: "silu" then makes SwiGLU, "gelu" GEGLU.
    `bias`: whether b_in and b_out are added.
    `generator`: source of the first weights, with which an input of mean square 1 gives outputs of variance 1.

    Raises ValueError if the activation is unknown, or a size is below 1.

    Vaswani et al. (2017), Eq. 2, arXiv:1706.03762. Gates: Shazeer (2020), Eq. 6, arXiv:2002.05202.

    >>> FeedForward(6, 11, activation="silu", gated=True)(torch.zeros(2, 5, 6)).shape
    torch.Size([2, 5, 6])
    """

    w_gate: nn.Parameter | None
    b_in: nn.Parameter | None
    b_out: nn.Parameter | None

    def __init__(
        self,
        d_model: int,
        d_hidden: int | None = None,
        *,
        activation: Activation = "gelu",
        gated: bool = False,
        bias: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}")
        hidden = 4 * d_model if d_hidden is None else d_hidden
        if d_model < 1 or hidden < 1:
            raise ValueError(f"d_model and d_hidden must be 1 or more; got {d_model} and {hidden}")
        self.activation = activation

        def weight(rows: int, columns: int, variance: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) * math.sqrt(variance))

        self.w_in = weight(d_model, hidden, 1.0 / d_model)
        self.w_out = weight(hidden, d_model, 1.0 / (hidden * mean_square(activation)))
        self.register_parameter("w_gate", weight(d_model, hidden, 1.0 / d_model) if gated else None)
        self.register_parameter("b_in", nn.Parameter(torch.zeros(hidden)) if bias else None)
        self.register_parameter("b_out", nn.Parameter(torch.zeros(d_model)) if bias else None)

    def forward(self, x: Float[Tensor, "*batch len d_model"]) -> Float[Tensor, "*batch len d_model"]:
        """Return the output; no position sees another.

        Raises ValueError if `x` has another number of features.
        """
        if x.ndim < 1 or x.shape[-1] != len(self.w_in):
            raise ValueError(f"x must have {len(self.w_in)} features, its last axis; got shape {tuple(x.shape)}")
        act = ACTIVATIONS[self.activation]
        hidden = _affine(x, self.w_in, self.b_in)
        hidden = act(hidden) if self.w_gate is None else act(x @ self.w_gate) * hidden
        return _affine(hidden, self.w_out, self.b_out)


def mean_square(activation: Activation) -> float:
    """Return the mean of the square of an activation of a standard normal variable: 1/2 for "relu", 1/3 + 1/(2 pi sqrt(3)) for "gelu".

    `activation`: its name.

    >>> round(mean_square("relu"), 5), round(mean_square("gelu"), 5)
    (0.5, 0.42522)
    """
    z = torch.linspace(-12.0, 12.0, 4801, dtype=torch.float64, device="cpu")  # also while a model is built on the meta device
    return float((ACTIVATIONS[activation](z).square() * torch.exp(-z.square() / 2.0)).sum() * (z[1] - z[0]) / math.sqrt(2.0 * math.pi))


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x @ weight if bias is None else x @ weight + bias
