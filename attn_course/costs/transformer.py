"""A whole Transformer: its parameters, the FLOPs of a pass and of writing, and the bytes that each new token has to read."""

from dataclasses import dataclass, fields
from typing import Any

from attn_course.costs.cache import cache_bytes_per_token
from attn_course.costs.checks import require_count, require_counts, require_flag
from attn_course.costs.layers import multi_head_attention_flops, multi_head_parameters, projection_flops


@dataclass(frozen=True)
class TransformerSizes:
    """The sizes of a Transformer, by the keywords of `attn_course.modules.Transformer`; heads have d_model / n_heads features.

    `n_kv_heads` is `n_heads` if left out, `d_hidden` 4 d_model, `n_positions` 0 where no table of positions is learned. `gated`
    hidden units have a third map; `bias` is that of all maps, `norm_bias` that of norms, which RMS norms do not have; with
    `norm_first` one more norm stands at the end; `tied` says that one table of tokens reads and writes. Raises TypeError or
    ValueError for what is no size.

    >>> TransformerSizes(n_tokens=50257, d_model=768, n_heads=12, n_layers=12, n_positions=1024, bias=True).d_hidden
    3072
    """

    n_tokens: int
    d_model: int
    n_heads: int
    n_layers: int
    n_kv_heads: int | None = None
    d_hidden: int | None = None
    n_positions: int = 0
    gated: bool = False
    bias: bool = False
    norm_bias: bool = True
    norm_first: bool = True
    tied: bool = True

    def __post_init__(self) -> None:
        filled: dict[str, Any] = {"n_kv_heads": self.n_heads, "d_hidden": 4 * self.d_model}
        for field in fields(self):
            value = getattr(self, field.name)
            value = filled.get(field.name) if value is None else value
            check = require_flag if isinstance(field.default, bool) else require_count
            object.__setattr__(self, field.name, check(field.name, value))
        multi_head_parameters(self.d_model, n_heads=self.n_heads, n_kv_heads=self.n_kv_heads)  # or heads do not divide


def feed_forward_flops(length: int, d_model: int, d_hidden: int, *, gated: bool = False) -> int:
    r"""Return the FLOPs of the hidden units: two maps at every position, three with a gate, Eq. feed-forward-flops.

    .. math:: 4\, T\, d\, d_h \quad (6\, T\, d\, d_h \text{ if } \texttt{gated})

    Vaswani et al. (2017), section 3.3, arXiv:1706.03762; gates: Shazeer (2020), arXiv:2002.05202.

    >>> feed_forward_flops(5, 6, 24), feed_forward_flops(5, 6, 16, gated=True)
    (2880, 2880)
    """
    maps = 3 if require_flag("gated", gated) else 2
    return maps * projection_flops(length, d_model, d_hidden)


def transformer_parameters(sizes: TransformerSizes) -> int:
    r"""Return the number of learned numbers, Eq. transformer-parameters.

    .. math:: n_{\text{tokens}}\, d + T_{\max}\, d + L \bigl( 4 d^2 + 8 d^2 + 13 d \bigr) + 2 d

    That is for the usual sizes, with biases and layer norms. The table of tokens counts once where it is `tied`.

    Radford et al. (2019), GPT-2: the smallest has 124 million (its Table 2 says 117).

    >>> transformer_parameters(TransformerSizes(50257, 768, 12, 12, n_positions=1024, bias=True))
    124439808
    """
    s = _sizes(sizes)
    norm = s.d_model * (2 if s.norm_bias else 1)
    tables = (s.n_tokens * (1 if s.tied else 2) + s.n_positions) * s.d_model
    return tables + s.n_layers * _block_parameters(s, norm) + (norm if s.norm_first else 0)


def transformer_flops(sizes: TransformerSizes, q_len: int, kv_len: int, *, pairs: int | None = None, logits_len: int | None = None) -> int:
    r"""Return the FLOPs of one pass over new tokens, with the keys and values of the past in a cache, Eq. transformer-flops.

    .. math:: L \bigl( 8\, T_q d^2 + 4\, P d + 4\, T_q d\, d_h \bigr) + 2\, T_{\text{logits}}\, d\, n_{\text{tokens}}

    `q_len` are the new tokens, 1 in a step of decoding; `kv_len` all tokens, past and new. `pairs` count in each head, all
    q_len * kv_len if left out; logits are computed for `logits_len` positions, for all new ones if left out. With shared key
    heads and gates the sum changes as in `multi_head_attention_flops` and `feed_forward_flops`. Raises ValueError if kv_len is
    below q_len.

    Kaplan et al. (2020), Table 1, arXiv:2001.08361: about two FLOPs for each parameter and token while T is below 6 d.

    >>> gpt2 = TransformerSizes(50257, 768, 12, 12, n_positions=1024, bias=True)
    >>> round(transformer_flops(gpt2, 1, 1) / (2 * transformer_parameters(gpt2)), 3)
    0.993
    """
    s = _sizes(sizes)
    q_len, kv_len = require_counts(q_len=q_len, kv_len=kv_len)
    if kv_len < q_len:
        raise ValueError(f"kv_len must be at least q_len = {q_len}, as it holds the new tokens too; got {kv_len}")
    (read_out,) = require_counts(logits_len=q_len if logits_len is None else logits_len)
    heads = {"n_heads": s.n_heads, "n_kv_heads": s.n_kv_heads, "projected_kv_len": q_len, "pairs": pairs}
    block = multi_head_attention_flops(q_len, kv_len, s.d_model, **heads) + feed_forward_flops(q_len, s.d_model, s.d_hidden, gated=s.gated)
    return s.n_layers * block + projection_flops(read_out, s.d_model, s.n_tokens)


def generation_flops(sizes: TransformerSizes, prompt_len: int, n_new: int, *, use_cache: bool = True) -> int:
    r"""Return the FLOPs of writing `n_new` tokens behind a prompt: with a cache, each token is read once, Eq. decoding-flops.

    .. math:: F(T, T) + \sum_{t=1}^{n-1} F(1, T + t) \qquad \text{against} \qquad \sum_{t=0}^{n-1} F(T + t, T + t)

    F is `transformer_flops` with the logits of the last position alone. Without a cache (`use_cache`) everything is read again at each
    step. The last token is written, not read.

    Decoding step by step: Shazeer (2019), arXiv:1911.02150.

    >>> gpt2 = TransformerSizes(50257, 768, 12, 12, n_positions=1024, bias=True)
    >>> round(generation_flops(gpt2, 100, 100, use_cache=False) / generation_flops(gpt2, 100, 100), 1)
    62.0
    """
    prompt_len, n_new = require_counts(prompt_len=prompt_len, n_new=n_new)
    lengths = range(prompt_len, prompt_len + n_new)
    if not require_flag("use_cache", use_cache):
        return sum(transformer_flops(sizes, length, length, logits_len=1) for length in lengths)
    return sum(transformer_flops(sizes, prompt_len if length == prompt_len else 1, length, logits_len=1) for length in lengths)


def decoding_bytes(sizes: TransformerSizes, kv_len: int, *, n_sequences: int = 1, bytes_per_number: int = 2) -> int:
    r"""Return the bytes that one step of decoding has to read: every weight once, and the cache of each sequence.

    .. math:: b \bigl( N + 2\, B\, L\, T\, h_{kv}\, d_k \bigr)

    N are the numbers of all blocks, the last norm and the table that makes logits; of the other tables a step reads single rows,
    which are left out. `kv_len` are the tokens in the cache, the new one included. 2 bytes are a number in float16 or bfloat16.

    What decoding waits for: Shazeer (2019), arXiv:1911.02150. One sequence has about one multiply-add for each number read, far below what
    a machine could do in that time, Eq. roofline; weights are shared by `n_sequences` sequences, their caches are not.

    >>> gpt2 = TransformerSizes(50257, 768, 12, 12, n_positions=1024, bias=True)
    >>> decoding_bytes(gpt2, 1), decoding_bytes(gpt2, 1024)
    (247343616, 285055488)
    """
    s = _sizes(sizes)
    kv_len, sequences = require_counts(kv_len=kv_len, n_sequences=n_sequences)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    weights = transformer_parameters(s) - (s.n_positions + (0 if s.tied else s.n_tokens)) * s.d_model
    width = s.d_model // s.n_heads
    cached = cache_bytes_per_token(s.n_kv_heads or 0, width, width, n_layers=s.n_layers, bytes_per_number=size)
    return size * weights + sequences * kv_len * cached


def _block_parameters(s: TransformerSizes, norm: int) -> int:
    hidden = s.d_hidden or 0
    units = (3 if s.gated else 2) * s.d_model * hidden + (hidden + s.d_model if s.bias else 0)
    return multi_head_parameters(s.d_model, n_heads=s.n_heads, n_kv_heads=s.n_kv_heads, bias=s.bias) + units + 2 * norm


def _sizes(sizes: TransformerSizes) -> Any:
    if not isinstance(sizes, TransformerSizes):
        raise TypeError(f"sizes must be TransformerSizes; got {type(sizes).__name__}")
    return sizes
