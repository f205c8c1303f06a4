"""Attention step by step, as the formula has it: supports every option, on any device, to any order of derivative."""

import math

import torch
from torch import Tensor

from attn_course.gpu.call import Call, autocasts


def why_not(call: Call) -> str | None:
    """Return None: this backend supports every call."""
    del call
    return None


def run(call: Call) -> tuple[Tensor, ...]:
    """Compute Eq. masked-attention in at least float32, with all scores in memory at once.

    Returns the output; then the weights and the log-sum-exp, if the call asks for them.
    """
    if not autocasts(call.query):
        return _attend(call)
    with torch.autocast(call.query.device.type, enabled=False):  # which would take the sums in its narrow dtype
        return _attend(call)


def _attend(call: Call) -> tuple[Tensor, ...]:
    wide = torch.promote_types(call.dtype, torch.float32)
    query, key, value = call.query.to(wide), call.key.to(wide), call.value.to(wide)
    if call.enable_gqa:
        key, value = key.repeat_interleave(call.n_repeats, dim=-3), value.repeat_interleave(call.n_repeats, dim=-3)
    allowed = call.allowed_pairs()

    scores = _products(query, key, call.scale, careful=allowed is not None)
    if call.softcap is not None:
        cap = min(max(call.softcap, torch.finfo(wide).tiny), torch.finfo(wide).max)  # neither 0 nor infinite in this dtype
        scores = cap * torch.tanh(scores / cap)
    if call.mask is not None and call.mask.dtype != torch.bool:
        scores = scores + call.mask
    if allowed is not None:
        scores = torch.where(allowed, scores, -math.inf)
    scores = scores.to(wide).expand(*call.batch, call.q_len, call.kv_len)

    row_max = scores.detach().amax(dim=-1, keepdim=True) if call.kv_len else scores.new_full((*scores.shape[:-1], 1), -math.inf)
    sees = row_max != -math.inf  # a row without any key would be 0 / 0: it gets equal scores, and no weight afterwards
    scores = torch.where(sees, scores, 0.0)
    weights = torch.where(sees, scores.softmax(dim=-1), 0.0)
    results = [_weighted_sum(weights, value)]
    if call.return_weights:
        results.append(weights)
    if call.return_lse:
        largest = torch.where(sees, row_max, 0.0)  # logsumexp would make its gradient of exp(scores - lse), where lse may be rounded
        lse = torch.where(sees, largest + (scores - largest).exp().sum(dim=-1, keepdim=True).log(), -math.inf)
        results.append(torch.where(row_max == math.inf, math.nan, lse).squeeze(-1))
    return tuple(result.to(call.dtype) for result in results)


def _products(query: Tensor, key: Tensor, scale: float, *, careful: bool) -> Tensor:
    """scale * q . k for all pairs; `careful` if some of them are masked.

    A masked score that is NaN or infinite is replaced later, but the gradient of a product multiplies 0 with the NaN of a key.
    So gradients flow through finite numbers only, and what is not finite joins as a constant.
    """
    scores = query @ key.mT * scale
    if not careful or _surely_finite(scores):
        return scores
    finite = _finite_part(query) @ _finite_part(key).mT * scale
    return torch.where(scores.isfinite(), finite, scores.detach())


def _weighted_sum(weights: Tensor, value: Tensor) -> Tensor:
    """weights @ value, where a weight of exactly 0 removes its value even if that holds NaN or infinity."""
    if _surely_finite(value):
        return weights @ value
    total = weights @ _finite_part(value)
    with torch.no_grad():
        has_weight = (weights != 0.0).to(weights.dtype)
        nan, plus, minus = (has_weight @ kind.to(weights.dtype) > 0.0 for kind in (value.isnan(), value.isposinf(), value.isneginf()))
    total = total + torch.where(plus, math.inf, 0.0) + torch.where(minus, -math.inf, 0.0)  # both give NaN
    return total + torch.where(nan, math.nan, 0.0)


def _finite_part(tensor: Tensor) -> Tensor:
    return torch.where(tensor.isfinite(), tensor, 0.0)


def _surely_finite(tensor: Tensor) -> bool:
    """Whether all entries are finite; False where that cannot be asked, because the call is compiled or mapped."""
    if torch.compiler.is_compiling():
        return False
    try:
        return bool(tensor.isfinite().all())
    except RuntimeError:  # vmap and meta tensors have no truth value
        return False
