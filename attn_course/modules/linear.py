"""Attention without softmax in torch: a state that every position writes and reads, by sums or by the delta rule."""

import functools
import math
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

Rule = Literal["linear", "delta"]
Features = Literal["elu", "unit"]


def elu_features(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return elu(x) + 1, a positive feature for each one of `x`, for Eq. normalised-linear-attention.

    >>> elu_features(torch.tensor([2.0, 0.0]))
    tensor([3., 1.])
    """
    return x.clamp(max=0).exp() + x.relu()  # elu(x) + 1 as it is written rounds to 0 where x is far below 0


def unit_features(x: Float[Tensor, "*batch d_k"]) -> Float[Tensor, "*batch d_k"]:
    """Return each vector divided by its length; a zero vector stays zero.

    >>> unit_features(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return torch.nn.functional.normalize(widened(x)[0], dim=-1).to(x.dtype)  # in float16 the guard against 0 / 0 is 0 itself


FEATURES = {"elu": elu_features, "unit": unit_features}


def widened(*parts: Tensor) -> list[Tensor]:
    """Return the tensors in their common dtype, at least float32: the sums of a long text are more than float16 can hold.

    >>> [part.dtype for part in widened(torch.zeros(1).half(), torch.zeros(1).bfloat16())]
    [torch.float32, torch.float32]
    """
    wide = functools.reduce(torch.promote_types, (part.dtype for part in parts), torch.float32)
    return [part.to(wide) for part in parts]


def linear_attention(
    query: Float[Tensor, "*batch len d_k"],
    key: Float[Tensor, "*batch len d_k"],
    value: Float[Tensor, "*batch len d_v"],
    *,
    chunk: int = 64,
    state: Float[Tensor, "*batch d_k d_v"] | None = None,
) -> tuple[Float[Tensor, "*batch len d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """Add each value to a state under its key, and read the state with each query: Eq. chunked-linear-attention, chunk by chunk.

    `chunk`: positions in a chunk; 1 is the recurrent form, `len` the parallel one.
    `state`: what was written before; zero if left out.

    Returns `output`: position t reads what positions up to t have written; in the dtype of `value`; the state after the
    last position: in at least float32, in which all is computed, under `torch.autocast` too.

    Raises ValueError if `chunk` is below 1.

    Katharopoulos et al. (2020), arXiv:2006.16236; chunks: Yang et al. (2023), arXiv:2312.06635.

    >>> key, value = torch.ones(3, 1), torch.tensor([[1.0], [10.0], [100.0]])
    >>> linear_attention(key, key, value)[0].flatten()
    tensor([  1.,  11., 111.])
    """
    dtype = value.dtype
    query, key, value = widened(query, key, value)
    state = _start(state, key, value, chunk)
    outputs = []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v in zip(query.split(chunk, -2), key.split(chunk, -2), value.split(chunk, -2), strict=True):
            outputs.append(q @ state + (q @ k.mT).tril() @ v)
            state = state + k.mT @ v
    return torch.cat(outputs, dim=-2).to(dtype), state


def delta_rule_attention(
    query: Float[Tensor, "*batch len d_k"],
    key: Float[Tensor, "*batch len d_k"],
    value: Float[Tensor, "*batch len d_v"],
    beta: Float[Tensor, "*batch len 1"],
    *,
    chunk: int = 64,
    state: Float[Tensor, "*batch d_k d_v"] | None = None,
) -> tuple[Float[Tensor, "*batch len d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """Correct what the state returns for each key, and read it with each query.

    Eqs. chunked-delta-rule and chunked-delta-outputs, chunk by chunk.

    `query`, `key`: keys of length 1, as a rule; see Eq. delta-transition-norm.
    `value`: what the state shall return for the key.
    `beta`: how far it is corrected: one number for each position.
    `state`: what was written before; zero if left out.

    Returns `output`: position t reads after it has written; dtypes are those of `linear_attention`.

    Raises ValueError if `chunk` is below 1.

    Schlag et al. (2021), arXiv:2102.11174; in chunks: Yang et al. (2024), arXiv:2406.06484.

    >>> key, value, beta = torch.ones(2, 1), torch.tensor([[5.0], [7.0]]), torch.tensor([[1.0], [0.5]])
    >>> delta_rule_attention(key, key, value, beta)[0].flatten()
    tensor([5., 6.])
    """
    dtype = value.dtype
    query, key, value, beta = widened(query, key, value, beta)
    state = _start(state, key, value, chunk)
    outputs = []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v, b in zip(*(array.split(chunk, -2) for array in (query, key, value, beta)), strict=True):
            system = (b * (k @ k.mT)).tril(-1)  # the ones on its diagonal are implied below
            written = torch.linalg.solve_triangular(system, b * (v - k @ state), upper=False, unitriangular=True)
            outputs.append(q @ state + (q @ k.mT).tril() @ written)
            state = state + k.mT @ written
    return torch.cat(outputs, dim=-2).to(dtype), state


def _start(state: Tensor | None, key: Tensor, value: Tensor, chunk: int) -> Tensor:
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1; got {chunk}")
    return value.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1]) if state is None else state.to(value.dtype)


class LinearAttention(nn.Module):
    """Causal attention without softmax in several heads, with learned projections; x (*batch, len, d_model) as `MultiHeadAttention`.

    Features, states and their sums are in at least float32, whatever the dtype of the layer.

    `n_heads`: number of heads; each has a state of its own.
    `rule`: add values to the state, or correct it. The delta rule learns its step beta, a number between 0 and 1 for
    each position and head.
    `features`: map of queries and keys: positive, or of length 1. "elu" for the linear rule, "unit" for the delta rule,
    if left out.
    `normalize`: divide by the sum of the weights, Eq. normalised-linear-attention; follows from positive features and
    the linear rule if left out.
    `d_k`, `d_v`: features of queries and keys, and of values, in one head; d_model / n_heads if left out.
    `chunk`: positions in a chunk.

    Raises ValueError if a word is unknown, widths do not fit, or the delta rule or features of any sign are to be
    normalised.

    Katharopoulos et al. (2020), arXiv:2006.16236, for "linear" with "elu"; Yang et al. (2024), arXiv:2406.06484, for
    "delta" with "unit" (they add short convolutions and a norm, which are left out here).

    >>> layer = LinearAttention(12, 3, rule="delta")
    >>> output, state = layer(torch.zeros(2, 5, 12), return_state=True)
    >>> output.shape, state.shape
    (torch.Size([2, 5, 12]), torch.Size([2, 3, 4, 4]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        rule: Rule = "linear",
        features: Features | None = None,
        normalize: bool | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        chunk: int = 64,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if rule not in ("linear", "delta"):
            raise ValueError(f'rule must be "linear" or "delta"; got {rule!r}')
        self.rule, self.features = rule, features or ("elu" if rule == "linear" else "unit")
        if self.features not in FEATURES:
            raise ValueError(f"features must be one of {tuple(FEATURES)}; got {features!r}")
        positive_sums = rule == "linear" and self.features == "elu"
        self.normalize = positive_sums if normalize is None else normalize
        if self.normalize and not positive_sums:
            raise ValueError('normalize needs the linear rule and features="elu", whose sums are positive')
        if (d_k is None or d_v is None) and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, or d_k and d_v be given; got {n_heads} and {d_model}")
        self.n_heads, self.chunk = n_heads, chunk
        self.d_k, self.d_v = d_k or d_model // n_heads, d_v or d_model // n_heads

        def weight(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))

        self.w_query, self.w_key = weight(d_model, n_heads * self.d_k), weight(d_model, n_heads * self.d_k)
        self.w_value, self.w_output = weight(d_model, n_heads * self.d_v), weight(n_heads * self.d_v, d_model)
        self.w_beta = weight(d_model, n_heads) if rule == "delta" else None
        self.b_beta = nn.Parameter(torch.zeros(n_heads)) if rule == "delta" else None

    def forward(self, x: Float[Tensor, "*batch len d_model"], *, state: Tensor | None = None, return_state: bool = False) -> Any:
        """Return the output of every position, which reads what was written up to its own.

        `state` (*batch, n_heads, d_k, d_v): what earlier positions left; with `normalize` the state has one more
        column, the sum of keys.
        `return_state`: also return the state after the last position: decoding needs nothing else of the past.

        Returns `state`: only with `return_state`.
        """
        query, key, value = (self._heads(x @ w) for w in (self.w_query, self.w_key, self.w_value))
        query, key, value = widened(query, key, value)
        query, key = (FEATURES[self.features](each) for each in (query, key))
        if self.normalize:  # the sum of keys is the state of a value that is always 1
            value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
        if self.w_beta is None or self.b_beta is None:
            read, state = linear_attention(query, key, value, chunk=self.chunk, state=state)
        else:
            beta = torch.sigmoid(x @ self.w_beta + self.b_beta).mT.unsqueeze(-1)  # (*batch, n_heads, len, 1)
            read, state = delta_rule_attention(query, key, value, beta, chunk=self.chunk, state=state)
        output = self._merged(read, x)
        return (output, state) if return_state else output

    def read(
        self, x: Float[Tensor, "*batch len d_model"], state: Float[Tensor, "*batch n_heads d_k columns"]
    ) -> Float[Tensor, "*batch len d_model"]:
        """Return what a state answers to some positions, which write nothing and do not see each other."""
        (query,) = widened(self._heads(x @ self.w_query))
        with torch.autocast(x.device.type, enabled=False):
            read = FEATURES[self.features](query) @ state.to(query.dtype)
        return self._merged(read, x)

    def _merged(self, read: Tensor, x: Tensor) -> Tensor:
        if self.normalize:
            sums = read[..., -1:]
            read = read[..., :-1] / sums.masked_fill(sums == 0, 1)  # features that all round to 0 read 0
        return read.transpose(-2, -3).flatten(-2).to(x.dtype) @ self.w_output

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)
