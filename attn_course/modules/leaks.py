"""The leak test for torch: which outputs of a layer depend on which inputs, and which of these should not."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

By = Literal["gradient", "perturbation"]


class Leak(NamedTuple):
    """An output that depends on an input that it should not depend on."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    influence: float


def influence(
    module: Callable[[Tensor], Any], x: Float[Tensor, "*batch len d_model"], *, by: By = "gradient", size: float = 1.0, seed: int = 0
) -> Float[Tensor, "*rows len"]:
    """Return how strongly each output row depends on each input row, the influence that Eq. causal-mask-hides-future wants to be 0.

    `module`: a layer, or a function that calls one: takes a tensor like `x`, and returns (*batch, q_len, d_output), or
    a tuple that begins with it.
    `x`: the input at which it is tried; best in float64.
    `by`: the gradient of a random mix of an output row's features; or how far they move when an input row makes a
    random step.
    `seed`: of the mixes and steps. Both differ from feature to feature: a layer norm ignores a shift of all features
    alike.

    Returns `influence`: largest absolute value over the features of the input (gradient) or the output (perturbation);
    infinite where that is not a number. For a batch: of every input row of every example, since examples may leak too.

    Raises ValueError if `x` has other axes, `by` is unknown, or the module does not return rows, answers the same
    question in two ways, or returns nothing but NaN: then a perturbation would move nothing.

    A gradient finds a dependence through one head as well as through all; a perturbation finds what is flat almost
    everywhere, such as a comparison. Both can miss a leak that only opens at other inputs: a large finite number in the
    place of -inf needs a `size` of its order, Eq. finite-fill-leaks.

    >>> x = torch.arange(6.0).reshape(3, 2)
    >>> (influence(lambda x: x.cumsum(dim=0), x) > 0).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if x.ndim not in (2, 3) or not x.is_floating_point():
        raise ValueError(f"x must be floating, with the axes (len, d_model) or (batch, len, d_model); got {x.dtype} {tuple(x.shape)}")
    if by not in ("gradient", "perturbation"):
        raise ValueError(f'by must be "gradient" or "perturbation"; got {by!r}')
    with torch.no_grad():
        before, again = _rows(module(x.clone()), x), _rows(module(x.clone()), x)
    if not torch.equal(before.nan_to_num(), again.nan_to_num()):
        raise ValueError("module must give the same output twice; got two: is dropout at work? Call module.eval()")
    if before.isnan().all() and before.numel():
        raise ValueError("module must return numbers at x; got NaN in every place")
    generator = torch.Generator().manual_seed(seed)
    strength = _by_gradient(module, x, before, generator) if by == "gradient" else _by_steps(module, x, before, size, generator)
    return torch.where(strength.isnan(), torch.inf, strength)


def leaks(
    module: Callable[[Tensor], Any],
    x: Float[Tensor, "*batch len d_model"],
    allowed: Bool[Tensor, "*#batch q_len len"],
    *,
    by: By = "gradient",
    size: float = 1.0,
    at_least: float = 0.0,
    seed: int = 0,
) -> list[Leak]:
    """Return the outputs that depend on inputs they should not depend on; an empty list if the layer keeps its mask.

    `module`: as in `influence`.
    `allowed`: True where the output may depend on the input of the same example. Inputs of other examples are never
    allowed.
    `by`, `size`, `seed`: how it is looked for, as in `influence`.
    `at_least`: only a stronger influence counts. Masking with -inf gives exactly 0, so that nothing need be forgiven.

    Returns `leaks`: the strongest first.

    Raises ValueError as in `influence`; also if `allowed` does not broadcast to what it should.

    >>> x, causal = torch.arange(6.0).reshape(3, 2), torch.ones(3, 3, dtype=torch.bool).tril()
    >>> leaks(lambda x: x.cumsum(dim=0), x, causal)
    []
    >>> sorted(leak.key for leak in leaks(lambda x: x.roll(-1, dims=0), x, causal))
    [(1,), (2,)]
    """
    found = influence(module, x, by=by, size=size, seed=seed)
    wanted = (*x.shape[:-2], found.shape[x.ndim - 2], x.shape[-2])
    try:
        may = allowed.expand(wanted)
    except RuntimeError:
        raise ValueError(f"allowed must broadcast to (..., q_len, len) = {wanted}; got {tuple(allowed.shape)}") from None
    if x.ndim == 3:  # (batch, q_len, len) -> (batch, q_len, batch, len), False across examples
        may = may[:, :, None, :] & torch.eye(len(x), dtype=torch.bool, device=x.device)[:, None, :, None]
    axes = found.ndim // 2
    places = ((found > at_least) & ~may).nonzero().tolist()
    listed = [Leak(tuple(place[:axes]), tuple(place[axes:]), found[tuple(place)].item()) for place in places]
    return sorted(listed, key=lambda leak: -leak.influence)


def _by_gradient(module: Callable[[Tensor], Any], x: Tensor, before: Tensor, generator: torch.Generator) -> Tensor:
    moving = x.detach().clone().requires_grad_()
    output = _rows(module(moving), x)
    mix = torch.randn(before.shape, generator=generator, dtype=torch.float64).to(output)
    found = x.new_zeros(*before.shape[:-1], *x.shape[:-1])
    if output.requires_grad:  # else it depends on nothing, as far as gradients tell
        for place in torch.ones(before.shape[:-1]).nonzero().tolist():
            row = tuple(place)
            (gradient,) = torch.autograd.grad((output[row] * mix[row]).sum(), moving, retain_graph=True, materialize_grads=True)
            found[row] = gradient.abs().amax(dim=-1)
    return found


@torch.no_grad()
def _by_steps(module: Callable[[Tensor], Any], x: Tensor, before: Tensor, size: float, generator: torch.Generator) -> Tensor:
    steps = size * torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    found = x.new_zeros(*before.shape[:-1], *x.shape[:-1])
    for place in torch.ones(x.shape[:-1]).nonzero().tolist():
        row = tuple(place)
        moved = x.clone()
        moved[row] += steps[row]
        after = _rows(module(moved), x)
        same = (after == before) | (after.isnan() & before.isnan())
        found[(..., *row)] = torch.where(same, 0.0, (after - before).abs()).amax(dim=-1)
    return found


def _rows(result: Any, x: Tensor) -> Tensor:
    output = result[0] if isinstance(result, tuple) else result
    if not isinstance(output, Tensor) or output.ndim != x.ndim or output.shape[:-2] != x.shape[:-2]:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"module must return rows, (..., q_len, d_output) with the leading axes of x; got {got}")
    return output
