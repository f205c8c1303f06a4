"""Rules about who sees whom, joined into one mask of the scores."""

import math

import torch
from torch import Tensor


def checked_mask(mask: Tensor | None, lengths: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """Check the mask against the shape of the scores, and hide the padding behind the end of each sequence too."""
    if mask is not None and (mask.ndim < 2 or not _broadcasts(tuple(mask.shape), shape)):
        raise ValueError(f"mask must broadcast to (..., n_heads, len, kv_len) = {shape}; got shape {tuple(mask.shape)}")
    if lengths is None:
        return mask
    if tuple(lengths.shape) != shape[:-3]:
        raise ValueError(f"lengths must have one number for each sequence, shape {shape[:-3]}; got {tuple(lengths.shape)}")
    real = torch.arange(shape[-1], device=lengths.device) < lengths[..., None, None, None]  # (*batch, 1, 1, kv_len)
    return real if mask is None else _also(mask, real)


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) <= len(wanted) and all(one in (1, other) for one, other in zip(shape[::-1], wanted[::-1], strict=False))


def _also(mask: Tensor, allowed: Tensor) -> Tensor:
    """Hide what is not allowed from a boolean mask, or from one that is added."""
    return mask & allowed if mask.dtype == torch.bool else torch.where(allowed, mask, -math.inf)


def and_causal(mask: Tensor | None, n_new: int, n_seen: int, past: int, device: torch.device) -> Tensor | None:
    """Hide what comes after each new token; one alone sees all."""
    if n_new == 1:
        return mask
    allowed = torch.arange(n_seen, device=device) <= torch.arange(past, past + n_new, device=device)[:, None]
    return allowed if mask is None else _also(mask, allowed)


def one_row_for_each_query(mask: Tensor | None, n_heads: int, n_new: int) -> Tensor | None:
    """(*#batch, #n_heads, #len, #kv_len) -> (*#batch, n_heads * len, #kv_len), heads one after the other."""
    if mask is None:
        return None
    four = mask if mask.ndim > 2 else mask[None]
    return four.expand(*four.shape[:-3], n_heads, n_new, four.shape[-1]).flatten(-3, -2)
