"""Attention with every option of the contract, and the choice of the backend that computes it."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from torch import Tensor

from attn_course.gpu import eager, sdpa
from attn_course.gpu.call import Call, validate


class Backend(Protocol):
    """What a module must hold to be a backend."""

    def why_not(self, call: Call) -> str | None:
        """Return why it cannot compute a call without changing its meaning, or None if it can."""

    def run(self, call: Call) -> tuple[Tensor, ...]:
        """Return the output; then the weights and the log-sum-exp, if the call asks for them."""


BACKENDS: dict[str, Backend] = {"sdpa": sdpa, "eager": eager}  # "auto" takes the first that supports the call
# Our kernels are taken by name only, until their speed has been measured. They are imported by name, so that stored results which do
# not use them stay current when they change.
KERNELS = {"triton": cast(Backend, import_module("attn_course.gpu.flash"))}


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    q_offset: int | Tensor = 0,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    enable_gqa: bool = False,
    return_weights: bool = False,
    return_lse: bool = False,
    guard_non_finite: bool = False,
    backend: str = "auto",
) -> Any:
    r"""Average the values with weights from a softmax over the keys, Eq. attention; differentiable.

    .. math:: \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V

    With a mask it is Eq. masked-attention, with groups of heads Eq. grouped-query-attention.

    `query` (*#batch, q_len, d_k): one row per position that asks; float16, bfloat16, float32 or float64.
    `key` (*#batch, kv_len, d_k): one row per position that may answer.
    `value` (*#batch, kv_len, d_v): what each of these positions passes on.
    `mask` (*#batch, #q_len, #kv_len) or (#kv_len,): boolean, True where the query may attend to the key, or floats, which are
    added to the scores; -inf removes the key.
    `is_causal`: let query i see the keys j <= i + q_offset only.
    `q_offset` (*#batch) or an int: position of the first query among the keys; used by `is_causal` and `window`.
    `window`: let query i see i + q_offset - left <= j <= i + q_offset + right; None leaves a side open.
    `scale`: factor on q . k; 1 / sqrt(d_k) if left out.
    `softcap`: scores become softcap * tanh(scores / softcap), before the mask.
    `enable_gqa`: the query has a multiple of the key's heads on axis -3; key head r serves the query heads r g .. r g + g - 1.
    `return_weights`, `return_lse`: also return the weights, and the log-sum-exp of each row of masked scores.
    `guard_non_finite`: let hidden keys and values hold NaN or infinity with "sdpa" too, which has to read them once more for
    that. If False, they must be finite there, also where "auto" takes it; with the other backends they may always hold anything.
    `backend`: "auto", or the name of one backend: "sdpa" is torch's own function, "eager" the formula step by step, "triton" our
    kernels, which need a CUDA device. "auto" is "sdpa" where that means the same, else "eager".

    Returns `output` (*batch, q_len, d_v): in the common dtype of query, key and value; sums are taken in at least float32;
    `weights` (*batch, q_len, kv_len): only with `return_weights`; `lse` (*batch, q_len): natural logarithm; only with
    `return_lse`.

    Raises TypeError if a tensor has a wrong dtype, or an option is of the wrong type; ValueError if shapes do not fit, an option
    is out of range, or the backend named is unknown or cannot compute the call.

    It means what `attn_course.reference.attention` means: a query that may attend to nothing gets output 0, weights 0 and lse
    -inf, and passes no gradient on; hidden keys and values have no influence, but see `guard_non_finite`. What a query gets that
    sees NaN or infinity depends on the backend: "eager" computes what the reference does. Under `torch.autocast` the tensors are
    cast as for torch's own function. Second derivatives need "eager".

    >>> import torch
    >>> query, key, value = torch.tensor([[0.0]]), torch.tensor([[1.0], [2.0]]), torch.tensor([[10.0], [20.0]])
    >>> attention(query, key, value)
    tensor([[15.]])
    >>> attention(query, key, value, is_causal=True)
    tensor([[10.]])
    """
    call = validate(
        query,
        key,
        value,
        mask=mask,
        is_causal=is_causal,
        q_offset=q_offset,
        window=window,
        scale=scale,
        softcap=softcap,
        enable_gqa=enable_gqa,
        return_weights=return_weights,
        return_lse=return_lse,
        guard_non_finite=guard_non_finite,
    )
    results = _choose(call, backend)[1].run(call)
    return results if len(results) > 1 else results[0]


@dataclass(frozen=True)
class Choice:
    """Which backend computes a call, and why no other one that would have come first.

    `refused`: for each backend that "auto" may choose and that cannot compute the call: why not.
    """

    backend: str
    refused: dict[str, str]

    def __str__(self) -> str:
        """Return it as one line."""
        return self.backend + "".join(f"; not {name}: {reason}" for name, reason in self.refused.items())


def explain(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Choice:
    """Return which backend "auto" picks for a call, and why the others cannot compute it.

    `query`, `key`, `value`: as given to `attention`. `**options`: keywords of `attention`, but for `backend`. Printed, the choice
    is one line. Raises TypeError or ValueError as in `attention`.

    >>> import torch
    >>> x = torch.ones(3, 2)
    >>> print(explain(x, x, x, softcap=30.0))
    eager; not sdpa: it has no softcap
    """
    call = validate(query, key, value, **options)
    reasons = {name: one.why_not(call) for name, one in BACKENDS.items()}
    return Choice(_choose(call, "auto")[0], {name: reason for name, reason in reasons.items() if reason is not None})


def _choose(call: Call, backend: str) -> tuple[str, Backend]:
    if backend == "auto":
        for name, one in BACKENDS.items():
            if one.why_not(call) is None:
                return name, one
    if backend not in (*BACKENDS, *KERNELS):
        raise ValueError(f"backend must be one of {', '.join(['auto', *BACKENDS, *KERNELS])}; got {backend!r}")
    chosen = BACKENDS[backend] if backend in BACKENDS else KERNELS[backend]
    reason = chosen.why_not(call)
    if reason is not None:
        raise ValueError(f"backend {backend!r} cannot compute this call: {reason}")
    return backend, chosen
