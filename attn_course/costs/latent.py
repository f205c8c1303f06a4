"""Latent attention: FLOPs of rebuilding keys and values, or of attending in the latent space, at prefill and at decoding."""

from dataclasses import dataclass, fields
from typing import Literal

from attn_course.costs.checks import require_choice, require_count, require_counts
from attn_course.costs.layers import projection_flops
from attn_course.costs.scores import attention_flops


@dataclass(frozen=True)
class LatentSizes:
    """The sizes of latent attention; `d_head` and `d_rope` are a head's query or key without and with position.

    In DeepSeek-V2, section 2.1 and appendix C, arXiv:2405.04434: d, n_h, d'_c (queries), d_c (keys and values, which is
    cached), d_h, d_h^R (in each head's query, and in the one key all heads share) and again d_h.

    >>> LatentSizes(d_model=5120, n_heads=128, d_query_latent=1536, d_latent=512, d_head=128, d_rope=64, d_v=128).d_latent
    512
    """

    d_model: int
    n_heads: int
    d_query_latent: int
    d_latent: int
    d_head: int
    d_rope: int
    d_v: int

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, require_count(field.name, getattr(self, field.name), 1 if field.name == "n_heads" else 0))


def latent_attention_flops(
    sizes: LatentSizes,
    q_len: int,
    kv_len: int,
    *,
    form: Literal["naive", "factored", "absorbed"] = "naive",
    pairs: int | None = None,
) -> int:
    r"""Return the FLOPs of latent attention for new tokens, from tokens to tokens, with the latent vectors of the past in a cache.

    .. math::
        \text{all}:\;& 2 T_q d (d'_c + d_c + d_R) + 2 T_q d'_c h d_R \\
        \text{naive}:\;& {} + 2 T_q h (d'_c d_h + d_v d) + 2 T_k d_c h (d_h + d_v) + 2 h P (d_h + d_R + d_v) \\
        \text{factored}:\;& {} + 2 T_q h (d'_c d_h + d_v d) + 2 T_q h (d_h + d_v) d_c + 2 h P (2 d_c + d_R) \\
        \text{absorbed}:\;& {} + 2 T_q h (d'_c + d) d_c + 2 h P (2 d_c + d_R)

    `q_len` are the new tokens, 1 in a step of decoding; `kv_len` all tokens, past and new (below `q_len`: ValueError). Naive
    rebuilds keys and values of all tokens for every head; factored brings each query to the latent space, head by head,
    and the average of latent vectors back; absorbed does so with the matrices multiplied out beforehand. `pairs` count in
    each head, all q_len * kv_len if left out.

    DeepSeek-V2, appendix C, arXiv:2405.04434. One query against a long past: naive rebuilds T_k keys and values in every
    step, the others do not. A prompt: all keys must be made once anyhow, and scores in the latent space are wider. The
    products of the matrices have more entries than their factors, so multiplying them out pays in neither case here.

    >>> v2 = LatentSizes(d_model=5120, n_heads=128, d_query_latent=1536, d_latent=512, d_head=128, d_rope=64, d_v=128)
    >>> [f"{latent_attention_flops(v2, 1, 4096, form=form):.2e}" for form in ("naive", "factored", "absorbed")]
    ['1.38e+11', '1.44e+09', '2.06e+09']
    >>> [f"{latent_attention_flops(v2, 4096, 4096, form=form):.2e}" for form in ("naive", "factored", "absorbed")]
    ['2.60e+12', '5.90e+12', '8.44e+12']
    """
    if not isinstance(sizes, LatentSizes):
        raise TypeError(f"sizes must be LatentSizes; got {type(sizes).__name__}")
    require_choice("form", form, ("naive", "factored", "absorbed"))
    q_len, kv_len = require_counts(q_len=q_len, kv_len=kv_len)
    if kv_len < q_len:
        raise ValueError(f"kv_len must be at least q_len = {q_len}, as it holds the new tokens too; got {kv_len}")
    (count,) = require_counts(pairs=q_len * kv_len if pairs is None else pairs)
    s = sizes
    shared = projection_flops(q_len, s.d_model, s.d_query_latent + s.d_latent + s.d_rope)
    shared += projection_flops(q_len, s.d_query_latent, s.n_heads * s.d_rope)
    ends = projection_flops(q_len, s.d_query_latent, s.n_heads * s.d_head) + projection_flops(q_len, s.n_heads * s.d_v, s.d_model)
    if form == "naive":
        rebuilt = projection_flops(kv_len, s.d_latent, s.n_heads * (s.d_head + s.d_v))
        return shared + ends + rebuilt + s.n_heads * attention_flops(count, s.d_head + s.d_rope, s.d_v)
    inside = s.n_heads * attention_flops(count, s.d_latent + s.d_rope, s.d_latent)
    if form == "factored":
        return shared + ends + s.n_heads * projection_flops(q_len, s.d_head + s.d_v, s.d_latent) + inside
    return shared + s.n_heads * projection_flops(q_len, s.d_query_latent + s.d_model, s.d_latent) + inside
