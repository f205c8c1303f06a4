"""Layers of attention one upon the other, each added to what it read."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attn_course.modules.attention import Attention


class ResidualStack(nn.Module):
    """Layers of one-head self-attention with a residual, X_l = X_{l-1} + Z_l(X_{l-1}), Eq. (5.22), and nothing else.

    Parameters
    ----------
    d_model : int
        Features of a token, also of the values.
    d_k : int
        Features of queries and keys.
    n_layers : int
        Layers, each with projections of its own.
    residual : bool
        False replaces tokens by the output, X_l = Z_l(X_{l-1}).
    generator : torch.Generator, optional
        Source of the first weights.
    """

    def __init__(self, d_model: int, d_k: int, n_layers: int, *, residual: bool = True, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.residual = residual
        self.layers = nn.ModuleList(Attention(d_model, d_k, d_model, generator=generator) for _ in range(n_layers))

    def forward(
        self, x: Float[Tensor, "*batch length d_model"]
    ) -> tuple[Float[Tensor, "*batch length d_model"], list[Float[Tensor, "*batch length length"]]]:
        """Return the last state of the tokens, and the weights of each layer.

        Parameters
        ----------
        x : (*batch, length, d_model) Tensor
            Tokens, one per row.

        Returns
        -------
        x : (*batch, length, d_model) Tensor
            X_L of Eq. (5.22).
        weights : list of (*batch, length, length) Tensor
            One for each layer; rows are queries.
        """
        maps = []
        for layer in self.layers:
            output, weights = layer(x)
            x = x + output if self.residual else output
            maps.append(weights)
        return x, maps
