"""What a long context costs: layers that forget beside layers that do not, pages, few bits, a few keys chosen, two maps."""

from collections.abc import Sequence

from attn_course.costs.cache import cache_bytes_per_token
from attn_course.costs.checks import require_count, require_counts, require_flag
from attn_course.costs.pairs import attended_pairs
from attn_course.costs.scores import attention_flops

WINDOW_PATTERNS: dict[str, tuple[int | None, int, str]] = {
    "Mistral 7B": (None, 4096, "Jiang et al. (2023), section 2, arXiv:2310.06825"),
    "Gemma 2": (1, 4096, "Gemma Team (2024), arXiv:2408.00118"),
    "Gemma 3": (5, 1024, "Gemma Team (2025), arXiv:2503.19786"),
    "gpt-oss": (1, 128, "OpenAI (2025), arXiv:2508.10925"),
}
"""Published model -> layers with windows for each global layer (None: there is none), tokens of a window, source.

Whether a window of w tokens holds the query's own differs between implementations.
"""


def mixed_cache_bytes(
    length: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int,
    *,
    n_global: int,
    n_window: int,
    left: int,
    n_sinks: int = 0,
    bytes_per_number: int = 2,
) -> int:
    r"""Return the bytes of a cache in which layers with windows forget, Eq. mixed-cache-bytes.

    .. math:: b\, h_{kv} (d_k + d_v)\, \bigl( G\, T + N \min(T,\, w + 1) \bigr)

    `left`, w, is the number of keys before its own that a query sees in the `n_window` layers; `n_sinks` first keys stay beside them.

    Xiao et al. (2024), StreamingLLM, arXiv:2309.17453, for first keys; ratios of published models: `WINDOW_PATTERNS`.

    >>> window, globally = (dict(n_global=n, n_window=62 - n, left=1023) for n in (10, 62))
    >>> round(mixed_cache_bytes(131072, 16, 128, 128, **window) / mixed_cache_bytes(131072, 16, 128, 128, **globally), 3)
    0.168
    """
    length, n_global, n_window = require_counts(length=length, n_global=n_global, n_window=n_window)
    left, n_sinks = require_counts(left=left, n_sinks=n_sinks)
    token = cache_bytes_per_token(n_kv_heads, d_k, d_v, bytes_per_number=bytes_per_number)
    return token * (n_global * length + n_window * min(length, left + 1 + n_sinks))


def reach_length(lefts: Sequence[int | None]) -> int | None:
    r"""Return how far back a position depends on others behind some layers: the sum of their windows, Eq. layers-to-reach-back.

    `lefts`: for each layer the number of keys before its own that a query sees; None is a global layer. Returns None if one layer
    sees everything, wherever it stands.

    Mistral 7B, section 2: 32 layers of 4,096 are "approximately 131K tokens", arXiv:2310.06825. That something can depend does
    not mean that it does.

    >>> reach_length([4096] * 32), reach_length([1023] * 5 + [None])
    (131072, None)
    """
    for place, left in enumerate(lefts):
        if left is not None:
            require_count(f"lefts[{place}]", left)
    windows = [left for left in lefts if left is not None]
    return sum(windows) if len(windows) == len(lefts) else None


def paged_cache_bytes(
    lengths: Sequence[int], n_kv_heads: int, d_k: int, d_v: int, *, block_size: int, shared: int = 0, bytes_per_number: int = 2
) -> int:
    r"""Return the bytes of the blocks that some sequences take in one layer, Eqs. paged-waste and blocks-of-a-fork.

    .. math:: b\, h_{kv} (d_k + d_v)\, B\, \Bigl( \sum_s \lceil T_s / B \rceil - (S - 1) \lfloor T_0 / B \rfloor \Bigr)

    B is the number of tokens in a block, `lengths` those of the S sequences, of which the first `shared`, T_0, are common to all;
    each has then written at least one token of its own. Of the block that is begun at T_0 each has a copy.

    Raises ValueError if `shared` is more than one of the lengths.

    Kwon et al. (2023), sections 4.3 and 4.4, arXiv:2309.06180.

    >>> block = 16 * cache_bytes_per_token(8, 128, 128)
    >>> [paged_cache_bytes([100, 100, 100], 8, 128, 128, block_size=16, shared=shared) // block for shared in (0, 90)]
    [21, 11]
    """
    sizes = [require_count(f"lengths[{place}]", length) for place, length in enumerate(lengths)]
    (block,), (common,) = require_counts(1, block_size=block_size), require_counts(shared=shared)
    if sizes and common > min(sizes):
        raise ValueError(f"shared must be no larger than each of the lengths; got {common} and {min(sizes)}")
    blocks = sum(-(-size // block) for size in sizes) - max(len(sizes) - 1, 0) * (common // block)
    return blocks * block * cache_bytes_per_token(n_kv_heads, d_k, d_v, bytes_per_number=bytes_per_number)


def quantised_cache_bytes(length: int, n_kv_heads: int, d_k: int, d_v: int, *, bits: int, group: int, bytes_per_number: int = 2) -> float:
    r"""Return the bytes of a cache of few bits in one layer, keys by channel and values by token, Eq. quantised-cache-bytes.

    .. math:: h_{kv} \Bigl[ G\, d_k \bigl(\tfrac{g B}{8} + 2 b\bigr) + (T - G g)\, d_k b + T \bigl(\tfrac{d_v B}{8} + 2 b\bigr) \Bigr],
        \qquad G = \lfloor T / g \rfloor

    Keys that wait for their `group` of tokens are kept in full; each group, and each value, has a step and a least number of
    `bytes_per_number`.

    Liu et al. (2024), KIVI, arXiv:2402.02750.

    >>> quantised_cache_bytes(4096, 8, 128, 128, bits=2, group=32) / (4096 * cache_bytes_per_token(8, 128, 128))
    0.1640625
    """
    length, heads, d_k, d_v = require_counts(length=length, n_kv_heads=n_kv_heads, d_k=d_k, d_v=d_v)
    bits, group, size = require_counts(1, bits=bits, group=group, bytes_per_number=bytes_per_number)
    groups = length // group
    keys = groups * d_k * (group * bits / 8 + 2 * size) + (length - groups * group) * d_k * size
    return heads * (keys + length * (d_v * bits / 8 + 2 * size))


def selected_attention_flops(length: int, d_k: int, d_v: int, *, k: int, n_index_heads: int = 0, d_index: int = 0) -> int:
    r"""Return the FLOPs of one causal head in which each query reads k keys, and of the index that chooses them, Eq. index-score.

    .. math:: 2\, (d_k + d_v) \sum_t \min(t, k) + 2\, H_I\, (d_I + 1) \sum_t t

    The index scores all pairs, for all heads of attention once: a sum over h heads has it once, not h times. It is still
    quadratic, with a smaller factor.

    DeepSeek-V3.2 (2025), arXiv:2512.02556: attention grows like the length times k, the index still like its square.

    >>> round(selected_attention_flops(4096, 128, 128, k=256) / selected_attention_flops(4096, 128, 128, k=4096), 3)
    0.121
    """
    length, d_k, d_v = require_counts(length=length, d_k=d_k, d_v=d_v)
    k, heads, width = require_counts(k=k, n_index_heads=n_index_heads, d_index=d_index)
    read = attended_pairs(length, length, is_causal=True, window=(k - 1, 0)) if k else 0
    return 2 * (d_k + d_v) * read + 2 * heads * (width + 1) * attended_pairs(length, length, is_causal=True)


def differential_attention_flops(pairs: int, d_k: int, d_v: int, *, one_product: bool = False) -> int:
    r"""Return the FLOPs of one head that subtracts two maps, Eq. differential-attention.

    .. math:: 2 P\, (2\, d_k + 2\, d_v), \qquad 2 P\, (2\, d_k + d_v) \;\text{ with one product}

    P are the pairs of `attended_pairs`. Two calls of a fused kernel multiply each map with the values; with `one_product` the maps are
    subtracted first, which takes a kernel of its own.

    Ye et al. (2025), arXiv:2410.05258, halve the number of heads and double d_v, so that two calls cost half as much again as plain
    heads do.

    >>> differential_attention_flops(16, 8, 16) / (2 * attention_flops(16, 8, 8))
    1.5
    """
    (pairs, d_k, d_v), once = require_counts(pairs=pairs, d_k=d_k, d_v=d_v), require_flag("one_product", one_product)
    return 2 * attention_flops(pairs, d_k, d_v) - (2 * pairs * d_v if once else 0)
