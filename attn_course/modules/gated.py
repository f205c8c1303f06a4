"""Memories with gates in torch: a state that forgets before it is written, by sums or by the delta rule, chunk by chunk."""

import torch
from jaxtyping import Float
from torch import Tensor

from attn_course.modules.linear import widened

LEAF = 16  # positions whose pairs are scored feature by feature


def gated_linear_attention(
    query: Float[Tensor, "*batch len d_k"],
    key: Float[Tensor, "*batch len d_k"],
    value: Float[Tensor, "*batch len d_v"],
    log_decay: Float[Tensor, "*batch len d_decay"],
    *,
    chunk: int = 64,
    state: Float[Tensor, "*batch d_k d_v"] | None = None,
) -> tuple[Float[Tensor, "*batch len d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """Let a state decay, add each value under its key, and read it with each query: Eq. linear-attention-with-decay, in chunks.

    `log_decay`: at most 0, one for each position (a state-space model, Eq. state-space-duality) or also for each of the
    d_k features; -inf forgets.
    `chunk`: positions in a chunk.
    `state`: what was written before; zero if left out.

    Returns the output, in the dtype of `value`, and the state after the last position, in at least float32, in which all is
    computed, decays first of all, under `torch.autocast` too.

    Raises ValueError if `chunk` is below 1, or `log_decay` has neither 1 nor d_k features.

    A gate for each feature: Yang et al. (2023), arXiv:2312.06635; one for all: Dao and Gu (2024), arXiv:2405.21060.

    >>> one, value = torch.ones(3, 1), torch.tensor([[1.0], [10.0], [100.0]])
    >>> gated_linear_attention(one, one, value, torch.log(one / 2))[0].flatten()
    tensor([  1.0000,  10.5000, 105.2500])
    """
    dtype = value.dtype
    query, key, value, log_decay = widened(query, key, value, log_decay)
    state = _start(state, key, value, log_decay, chunk)
    outputs = []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v, g in zip(*(array.split(chunk, -2) for array in (query, key, value, log_decay)), strict=True):
            output, state = _read_write(state, q, k, v, g, decayed_scores(q, k, g))
            outputs.append(output)
    return torch.cat(outputs, dim=-2).to(dtype), state


def gated_delta_rule(
    query: Float[Tensor, "*batch len d_k"],
    key: Float[Tensor, "*batch len d_k"],
    value: Float[Tensor, "*batch len d_v"],
    beta: Float[Tensor, "*batch len 1"],
    log_decay: Float[Tensor, "*batch len d_decay"],
    *,
    chunk: int = 64,
    state: Float[Tensor, "*batch d_k d_v"] | None = None,
) -> tuple[Float[Tensor, "*batch len d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """Let a state decay, correct what is left of it under each key, and read it with each query.

    Eqs. gated-chunk-system and gated-chunk-outputs, chunk by chunk; one position is Eq. gated-delta-step.

    `beta`: how far the state is corrected: from 0 to 1, or to 2, where a unit key is turned round.
    `log_decay`: as in `gated_linear_attention`; the error is that of the state after it has decayed.

    Raises ValueError as `gated_linear_attention` does.

    One gate for all features: Yang et al. (2024), arXiv:2412.06464; one for each: Kimi Team (2025), arXiv:2510.26692;
    steps up to 2: Grazzi et al. (2024), arXiv:2411.12537.

    >>> one, value, beta = torch.ones(2, 1), torch.tensor([[5.0], [7.0]]), torch.tensor([[1.0], [0.5]])
    >>> gated_delta_rule(one, one, value, beta, torch.log(one * 0.2))[0].flatten()  # the second: 1 is left of 5, half way to 7
    tensor([5., 4.])
    """
    dtype = value.dtype
    query, key, value, beta, log_decay = widened(query, key, value, beta, log_decay)
    state = _start(state, key, value, log_decay, chunk)
    outputs = []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v, b, g in zip(*(array.split(chunk, -2) for array in (query, key, value, beta, log_decay)), strict=True):
            scores, overlaps = decayed_scores(torch.stack((q, k)), k, g)
            error = b * (v - (k * _since_start(g)) @ state)
            system = (b * overlaps).tril(-1)  # the ones on its diagonal are implied
            written = torch.linalg.solve_triangular(system, error, upper=False, unitriangular=True)
            output, state = _read_write(state, q, k, written, g, scores)
            outputs.append(output)
    return torch.cat(outputs, dim=-2).to(dtype), state


def decayed_scores(
    query: Float[Tensor, "*several len d_k"], key: Float[Tensor, "*batch len d_k"], log_decay: Float[Tensor, "*batch len d_decay"]
) -> Float[Tensor, "*several len len"]:
    """Return the product of query i with what is left of key j at i; 0 where j > i. Several queries may share the keys.

    One gate for all features scales finished products. With a gate for each, the pairs of a later with an earlier half
    meet at the boundary between the halves, Eq. decay-through-a-midpoint: no factor is above 1, where a product of
    q e^G and k e^-G overflows.

    >>> decayed_scores(torch.tensor([[2.0], [3.0]]), torch.tensor([[5.0], [7.0]]), torch.log(torch.tensor([[0.1], [0.5]])))
    tensor([[10.0000,  0.0000],
            [ 7.5000, 21.0000]])
    """
    length = key.shape[-2]
    if log_decay.shape[-1] == 1:
        return (query @ key.mT) * _decay_between(log_decay)[..., 0, :, :]
    if length <= LEAF:
        return (query.mT[..., :, None] * (_decay_between(log_decay) * key.mT[..., None, :])).sum(-3)
    (q1, q2), (k1, k2), (g1, g2) = (array.tensor_split(2, -2) for array in (query, key, log_decay))
    across = (q2 * _since_start(g2)) @ (k1 * _until_end(g1)).mT
    above = torch.nn.functional.pad(decayed_scores(q1, k1, g1), (0, k2.shape[-2]))
    return torch.cat([above, torch.cat([across, decayed_scores(q2, k2, g2)], dim=-1)], dim=-2)


def _read_write(state: Tensor, query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    output = (query * _since_start(log_decay)) @ state + scores @ value
    kept = log_decay.sum(-2).exp()[..., None]
    return output, kept * state + (key * _until_end(log_decay)).mT @ value


def _decay_between(log_decay: Tensor) -> Tensor:
    """What is left at i of what j wrote, (*batch, d, len, len); masked before exp, so that no gradient is 0 times infinity."""
    by_writer = log_decay.mT[..., :, None].expand(*log_decay.mT.shape, log_decay.shape[-2])
    return by_writer.tril(-1).cumsum(-2).exp().tril()  # sums, not differences: -inf forgets


def _since_start(log_decay: Tensor) -> Tensor:
    return log_decay.cumsum(-2).exp()


def _until_end(log_decay: Tensor) -> Tensor:
    """The decay after each position, its own not counted."""
    after = torch.cat([log_decay[..., 1:, :], torch.zeros_like(log_decay[..., :1, :])], dim=-2)
    return after.flip(-2).cumsum(-2).flip(-2).exp()


def _start(state: Tensor | None, key: Tensor, value: Tensor, log_decay: Tensor, chunk: int) -> Tensor:
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1; got {chunk}")
    if log_decay.shape[-1] not in (1, key.shape[-1]):
        raise ValueError(f"log_decay must have 1 or d_k = {key.shape[-1]} features, the last axis; got {log_decay.shape[-1]}")
    return value.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1]) if state is None else state.to(value.dtype)
