"""Attention once more, as slowly and plainly as possible: Python loops and the math module, nothing of the package.

A pair that may not attend is never looked at, so what a mask hides cannot matter here. `torch_attention` is a
third form, on whole tensors, for autograd.
"""

import math

import numpy as np
import torch


def element(array, index, own_axes):
    """Return the block of the last `own_axes` axes at a position of the broadcast leading axes."""
    leading = array.shape[: array.ndim - own_axes]
    aligned = index[len(index) - len(leading) :]
    return array[tuple(0 if length == 1 else at for length, at in zip(leading, aligned, strict=True))]


def leading_shape(query, key, value, mask=None, is_causal=False, q_offset=0, window=None, enable_gqa=False, **_):
    """Return the batch axes of the result (with the query's heads, if these are grouped)."""
    shapes = [query.shape[:-2]]
    for array in (key, value):
        shape = array.shape[:-2]
        shapes.append((*shape[:-1], query.shape[-3]) if enable_gqa else shape)
    if mask is not None:
        shapes.append(mask.shape[:-2])
    if is_causal or window is not None:
        shapes.append(np.shape(q_offset))
    return np.broadcast_shapes(*shapes)


def may_attend(index, i, j, *, mask=None, is_causal=False, q_offset=0, window=None, **_):
    position = i + int(element(np.asarray(q_offset), index, 0)) if is_causal or window is not None else i
    if is_causal and j > position:
        return False
    if window is not None:
        left, right = window
        if (left is not None and j < position - left) or (right is not None and j > position + right):
            return False
    if mask is None:
        return True
    entry = mask_entry(mask, index, i, j)
    return bool(entry) if mask.dtype == bool else not (math.isinf(entry) and entry < 0)


def mask_entry(mask, index, i, j):
    block = element(np.atleast_2d(mask), index, 2)
    return block[0 if block.shape[0] == 1 else i, 0 if block.shape[1] == 1 else j].item()


def row_scores(index, i, query_row, keys, *, scale=None, softcap=None, **options):
    scores = {}
    for j in range(len(keys)):
        if may_attend(index, i, j, **options):
            factor = 1 / math.sqrt(len(query_row)) if scale is None else scale
            score = factor * math.fsum(float(a) * float(b) for a, b in zip(query_row, keys[j], strict=True))
            if softcap is not None:
                score = softcap * math.tanh(score / softcap)
            mask = options.get("mask")
            scores[j] = score if mask is None or mask.dtype == bool else score + mask_entry(mask, index, i, j)
    return scores


def loop_attention(query, key, value, **options):
    """Return output, weights and lse in float64, one query at a time."""
    gqa = options.get("enable_gqa", False)
    batch = leading_shape(query, key, value, **options)
    q_len, kv_len, d_v = query.shape[-2], key.shape[-2], value.shape[-1]
    output, weights, lse = np.zeros((*batch, q_len, d_v)), np.zeros((*batch, q_len, kv_len)), np.full((*batch, q_len), -np.inf)
    for index in np.ndindex(*batch):
        served_by = (*index[:-1], index[-1] // (query.shape[-3] // key.shape[-3])) if gqa else index
        queries, keys, values = element(query, index, 2), element(key, served_by, 2), element(value, served_by, 2)
        for i in range(q_len):
            scores = row_scores(index, i, queries[i], keys, **options)
            if not scores:
                continue
            largest = max(scores.values())
            terms = {j: math.exp(score - largest) for j, score in scores.items()}
            total = math.fsum(terms.values())
            lse[(*index, i)] = largest + math.log(total)
            for j, term in terms.items():
                weights[(*index, i, j)] = term / total
            for f in range(d_v):
                output[(*index, i, f)] = math.fsum(term / total * float(values[j, f]) for j, term in terms.items() if term > 0)
    return output, weights, lse


def allowed_pairs(query, key, value, **options):
    """Return the boolean mask of all rules together, written entry by entry."""
    batch = leading_shape(query, key, value, **options)
    shape = (*batch, query.shape[-2], key.shape[-2])
    allowed = np.zeros(shape, dtype=bool)
    for at in np.ndindex(*shape):
        allowed[at] = may_attend(at[:-2], at[-2], at[-1], **options)
    return allowed


def torch_attention(query, key, value, allowed, *, bias=None, scale=None, softcap=None, enable_gqa=False):
    """Return output and lse of torch tensors, differentiable also in rows that may attend to nothing."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (torch.repeat_interleave(x, groups, dim=-3) for x in (key, value))
    scores = torch.einsum("...id,...jd->...ij", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + torch.where(torch.isneginf(bias), torch.zeros_like(bias), bias)
    scores, allowed = torch.broadcast_tensors(scores, allowed)
    some = allowed.any(-1, keepdim=True)
    safe = torch.where(some, torch.where(allowed, scores, -math.inf), 0.0)  # an all -inf row has no derivative
    weights = torch.where(allowed, torch.softmax(safe, -1), 0.0)
    lse = torch.where(some[..., 0], torch.logsumexp(safe, -1), -math.inf)
    return torch.einsum("...ij,...jf->...if", weights, value), lse


def by_autograd(arrays, options, d_output, d_lse):
    """Return the gradients with respect to query, key, value and, if it is a float mask, the mask."""
    mask = options.get("mask")
    biased = mask is not None and mask.dtype != bool
    leaves = [torch.from_numpy(array.astype(np.float64)).requires_grad_() for array in (*arrays, *([mask] if biased else []))]
    plain = {name: option for name, option in options.items() if name in ("scale", "softcap", "enable_gqa")}
    allowed = torch.from_numpy(allowed_pairs(*arrays, **options))
    output, lse = torch_attention(*leaves[:3], allowed, bias=leaves[3] if biased else None, **plain)
    total = (output * torch.from_numpy(d_output)).sum()
    if d_lse is not None:
        total = total + (torch.where(torch.isfinite(lse), lse, 0.0) * torch.from_numpy(d_lse)).sum()
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [torch.zeros_like(leaf).numpy() if g is None else g.numpy() for g, leaf in zip(gradients, leaves, strict=True)]
