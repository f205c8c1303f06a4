"""What decoding keeps of the past: bytes for each token, or a state of fixed size."""

from attn_course.costs.checks import require_counts, require_flag


def cache_bytes_per_token(n_kv_heads: int, d_k: int, d_v: int, *, n_layers: int = 1, bytes_per_number: int = 2) -> int:
    r"""Return the bytes a KV cache grows by with each token, Eq. kv-cache-bytes.

    .. math:: b\, l\, h_{kv} (d_k + d_v)

    Only heads that keep keys and values of their own count: all of them (multi-head), one for each group (grouped-query),
    or 1 (multi-query). 2 bytes are a number in float16 or bfloat16.

    DeepSeek-V2, Table 1, arXiv:2405.04434. Multi-query attention: Shazeer (2019), arXiv:1911.02150; groups: Ainslie et
    al. (2023), arXiv:2305.13245.

    >>> [cache_bytes_per_token(heads, 128, 128, n_layers=60) for heads in (128, 8, 1)]
    [3932160, 245760, 30720]
    """
    heads, d_k, d_v, layers = require_counts(n_kv_heads=n_kv_heads, d_k=d_k, d_v=d_v, n_layers=n_layers)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    return size * layers * heads * (d_k + d_v)


def linear_state_bytes(n_heads: int, d_phi: int, d_v: int, *, n_layers: int = 1, bytes_per_number: int = 4, normalize: bool = False) -> int:
    r"""Return the bytes of the state of linear attention or of the delta rule, which replaces the whole cache.

    .. math:: b\, l\, h\, d_\phi d_v

    For a past of any length. `d_phi` are the features of mapped keys; with `normalize` their sum is kept too. 4 bytes are
    a number in float32, in which a sum over a long past is usually kept.

    "Transformers are RNNs": Katharopoulos et al. (2020), arXiv:2006.16236.

    >>> linear_state_bytes(8, 128, 128) // cache_bytes_per_token(8, 128, 128)
    128
    """
    heads, d_phi, d_v, layers = require_counts(n_heads=n_heads, d_phi=d_phi, d_v=d_v, n_layers=n_layers)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    return size * layers * heads * d_phi * (d_v + int(require_flag("normalize", normalize)))
