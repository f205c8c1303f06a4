"""Attention without softmax: FLOPs of its three forms, and of the delta rule."""

from typing import Literal

from attn_course.costs.checks import require_choice, require_counts, require_flag
from attn_course.costs.pairs import attended_pairs
from attn_course.costs.scores import attention_flops


def linear_attention_flops(
    length: int,
    d_phi: int,
    d_v: int,
    *,
    form: Literal["parallel", "recurrent", "chunked"] = "recurrent",
    chunk: int = 64,
    normalize: bool = False,
) -> int:
    r"""Return the FLOPs of causal linear attention in one head, without its feature map.

    .. math:: 2 \tfrac{T (T + 1)}{2} (d_\phi + d_v), \qquad 4\, T d_\phi d_v, \qquad
              4\, T d_\phi d_v + \sum_{\text{chunks}} C (C + 1)\,(d_\phi + d_v)

    Parallel: all pairs j <= i at once. Recurrent: write and read a state at every position, the state first of Eq.
    linear-attention-flops: the fewest FLOPs and the least parallel work. Chunked: read and write it once a chunk of `chunk`
    positions, C, with all pairs inside the chunk; the last one may be shorter. With `normalize` the sum of key features is
    kept too, as a value with one more feature.

    Katharopoulos et al. (2020), arXiv:2006.16236; chunks: Yang et al. (2023), arXiv:2312.06635.

    >>> [linear_attention_flops(1024, 64, 64, form=form) for form in ("parallel", "chunked", "recurrent")]
    [134348800, 25296896, 16777216]
    """
    require_choice("form", form, ("parallel", "recurrent", "chunked"))
    length, d_phi, d_v = require_counts(length=length, d_phi=d_phi, d_v=d_v)
    (chunk,) = require_counts(1, chunk=chunk)
    d_v += int(require_flag("normalize", normalize))
    state = 0 if form == "parallel" else 4 * length * d_phi * d_v
    if form == "recurrent":
        return state
    return state + attention_flops(_pairs_in_chunks(length, length if form == "parallel" else chunk), d_phi, d_v)


def delta_rule_flops(length: int, d_k: int, d_v: int, *, form: Literal["recurrent", "chunked"] = "recurrent", chunk: int = 64) -> int:
    r"""Return the FLOPs of the delta rule in one head.

    .. math:: 6\, T d_k d_v, \qquad
              6\, T d_k d_v + \sum_{\text{chunks}} \bigl[C (C - 1) (2 d_k + d_v) + C (C + 1) (d_k + d_v)\bigr]

    Recurrent: position by position, ask the state, correct it, read it; one product more than linear attention. Chunked:
    products of keys, a triangular system for values and keys, then linear attention, in chunks of `chunk` positions, C.
    Factors beta and decays come on top, and are linear in d_k + d_v.

    Schlag et al. (2021), arXiv:2102.11174; the chunked (WY) form: Yang et al. (2024), arXiv:2406.06484.

    >>> delta_rule_flops(1024, 64, 64) / linear_attention_flops(1024, 64, 64)
    1.5
    """
    require_choice("form", form, ("recurrent", "chunked"))
    length, d_k, d_v = require_counts(length=length, d_k=d_k, d_v=d_v)
    (chunk,) = require_counts(1, chunk=chunk)
    state = 6 * length * d_k * d_v
    if form == "recurrent":
        return state
    pairs = _pairs_in_chunks(length, chunk)
    return state + attention_flops(pairs, d_k, d_v) + 2 * (pairs - length) * (2 * d_k + d_v)  # j < i only: key . key, solve for u and w


def _pairs_in_chunks(length: int, chunk: int) -> int:
    """Pairs j <= i within chunks of that many positions, the last one shorter."""
    whole, rest = divmod(length, chunk) if chunk else (0, 0)
    return whole * attended_pairs(chunk, chunk, is_causal=True) + attended_pairs(rest, rest, is_causal=True)
