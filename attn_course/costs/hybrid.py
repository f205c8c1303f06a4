"""What a stack keeps that mixes memories of a fixed size with attention."""

from attn_course.costs.cache import cache_bytes_per_token, linear_state_bytes
from attn_course.costs.checks import require_counts


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
    Eq. hybrid-cache-share. Three memories to one attention, `every` = 4: Kimi Team (2025), arXiv:2510.26692.

    >>> sizes = {"n_heads": 32, "n_kv_heads": 8, "d_k": 128, "d_v": 128}
    >>> [round(hybrid_cache_bytes(2**20, 48, every=every, **sizes) / 2**30, 1) for every in (1, 4)]
    [192.0, 48.1]
    """
    length, layers = require_counts(length=length, n_layers=n_layers)
    (every,) = require_counts(1, every=every)
    attending = layers // every
    state = linear_state_bytes(n_heads, d_k, d_v, n_layers=layers - attending, bytes_per_number=bytes_per_state_number)
    return state + length * cache_bytes_per_token(n_kv_heads, d_k, d_v, n_layers=attending, bytes_per_number=bytes_per_number)
