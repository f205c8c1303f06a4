"""Memories with gates: FLOPs of the delta rule whose state decays, and what a stack keeps that mixes them with attention."""

from typing import Literal

from attn_course.costs.cache import cache_bytes_per_token, linear_state_bytes
from attn_course.costs.checks import require_counts, require_flag
from attn_course.costs.linear import delta_rule_flops
from attn_course.costs.pairs import attended_pairs


def gated_delta_rule_flops(
    length: int,
    d_k: int,
    d_v: int,
    *,
    per_channel: bool = False,
    form: Literal["recurrent", "chunked"] = "recurrent",
    chunk: int = 64,
) -> int:
    r"""Return the FLOPs of the delta rule with gates in one head: those of the delta rule, and its decays.

    .. math:: 7\, T d_k d_v, \qquad F_{\text{delta}} + \lceil T / C \rceil\, d_k d_v \;\bigl( + \sum_{\text{chunks}} C (C - 1)\, d_k \bigr)

    A decay is a multiplication without an addition: 1 FLOP for each entry of the state, at every position or once a chunk,
    Eq. gated-delta-multiplications. With a gate for each feature (`per_channel`) the decay between two positions of a chunk
    stands inside their two products, key with key and query with key, instead of behind them (in the modules only within
    blocks of 16, Eq. decay-through-a-midpoint). What is linear in d_k + d_v is left out, and so is one number for each pair.

    Yang et al. (2024), arXiv:2412.06464; per channel: Kimi Team (2025), arXiv:2510.26692.

    >>> gated_delta_rule_flops(1024, 64, 64) / delta_rule_flops(1024, 64, 64)
    1.1666666666666667
    >>> round(gated_delta_rule_flops(1024, 64, 64, form="chunked") / delta_rule_flops(1024, 64, 64, form="chunked"), 4)
    1.0014
    """
    plain = delta_rule_flops(length, d_k, d_v, form=form, chunk=chunk)
    length, d_k, d_v = require_counts(length=length, d_k=d_k, d_v=d_v)
    inside = require_flag("per_channel", per_channel) and form == "chunked"
    size = chunk if form == "chunked" else 1
    whole, rest = divmod(length, size)
    pairs = whole * attended_pairs(size, size, is_causal=True) + attended_pairs(rest, rest, is_causal=True) - length  # j < i
    return plain + (whole + bool(rest)) * d_k * d_v + (2 * pairs * d_k if inside else 0)


def hybrid_cache_bytes(
    length: int,
    n_layers: int,
    *,
    every: int,
    n_heads: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int,
    bytes_per_number: int = 2,
    bytes_per_state_number: int = 4,
) -> int:
    r"""Return the bytes that a stack keeps of a past of that length, where every so many layers one attends to all of it.

    .. math:: \bigl( l - \lfloor l / e \rfloor \bigr)\, b_S\, h\, d_k d_v + \lfloor l / e \rfloor\, T\, b\, h_{kv} (d_k + d_v)

    The other layers keep a state of fixed size, so that the share of a stack of attention alone tends to 1 / `every`,
    Eq. hybrid-cache-share. Three memories to one attention, `every` = 4: Kimi Team (2025), arXiv:2510.26692, whose
    attention keeps latent vectors (`latent_cache_bytes_per_token`).

    >>> sizes = {"n_heads": 32, "n_kv_heads": 8, "d_k": 128, "d_v": 128}
    >>> [round(hybrid_cache_bytes(2**20, 48, every=every, **sizes) / 2**30, 1) for every in (1, 4)]
    [192.0, 48.1]
    """
    length, layers = require_counts(length=length, n_layers=n_layers)
    (every,) = require_counts(1, every=every)
    attending = layers // every
    state = linear_state_bytes(n_heads, d_k, d_v, n_layers=layers - attending, bytes_per_number=bytes_per_state_number)
    return state + length * cache_bytes_per_token(n_kv_heads, d_k, d_v, n_layers=attending, bytes_per_number=bytes_per_number)
