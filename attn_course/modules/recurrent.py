"""A recurrent network that reads a sequence and answers at its end: the reader that attention is compared with."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

KINDS = {"rnn": nn.RNN, "lstm": nn.LSTM}
FORGET_GATE = 1  # torch orders the gates of an LSTM: input, forget, cell, output


class RecurrentReader(nn.Module):
    """Read the positions one after the other into a state of fixed size, and answer from the last state.

    The first weights favour a long memory: state-to-state matrices are orthogonal, which changes no length, and the forget
    gates of the LSTM start open.

    `kind`: plain tanh units, or units with gates and a cell.
    `forget_bias`: bias of the LSTM's forget gates at the start. With nothing else at the gate, the cell keeps the share
    1 / (1 + e^-forget_bias) in each step.

    Raises ValueError if `kind` is another one.

    torch.nn.RNN computes h_t = tanh(W x_t + U h_{t-1} + b); with one unit, that is the network of Eq.
    recurrent-gradient-product. A bias of 1 for the forget gates: Jozefowicz et al. (2015), "An Empirical Exploration of
    Recurrent Network Architectures".

    >>> reader = RecurrentReader(3, 8, 2, "lstm")
    >>> reader(torch.zeros(5, 11, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        d_out: int,
        kind: Literal["rnn", "lstm"] = "rnn",
        *,
        forget_bias: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {tuple(KINDS)}; got {kind!r}")
        self.kind = kind
        self.recurrence = KINDS[kind](d_in, d_hidden, batch_first=True)
        self.answer = nn.Linear(d_hidden, d_out)
        self._draw(forget_bias, generator)

    @torch.no_grad()
    def _draw(self, forget_bias: float, generator: torch.Generator | None) -> None:
        """Fill all parameters: inputs keep their variance, states their length, biases are 0."""
        d_hidden, d_in = self.recurrence.hidden_size, self.recurrence.input_size
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.zero_()
            elif name == "recurrence.weight_hh_l0":
                squares = torch.randn(len(parameter) // d_hidden, d_hidden, d_hidden, generator=generator)
                parameter.copy_(torch.linalg.qr(squares).Q.reshape(-1, d_hidden))  # (gates * d_hidden, d_hidden)
            else:
                fan_in = d_hidden if name.startswith("answer") else d_in
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(fan_in))
        if self.kind == "lstm":
            self.recurrence.bias_ih_l0.view(4, d_hidden)[FORGET_GATE] = forget_bias

    def forward(self, x: Float[Tensor, "batch len d_in"]) -> Float[Tensor, "batch d_out"]:
        """Return the answers after the last position.

        `x`: sequences, read from position 0 on; `len` is at least 1.

        Returns `answer`: a linear map of the last state.
        """
        with torch.autocast(x.device.type, enabled=False):  # not every processor has an LSTM in float16
            states, _ = self.recurrence(x.to(self.answer.weight.dtype))
        return self.answer(states[:, -1])
