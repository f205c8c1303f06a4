"""A whole Transformer: its sizes, and how many numbers it learns."""

from dataclasses import dataclass, fields
from typing import Any

from attn_course.costs.checks import require_count, require_flag, require_groups


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
        heads, _ = require_groups(self.n_heads, self.n_kv_heads)
        if self.d_model % heads:
            raise ValueError(f"n_heads must divide d_model; got {heads} and {self.d_model}")


def transformer_parameters(sizes: TransformerSizes) -> int:
    r"""Return the number of learned numbers, Eq. transformer-parameters.

    .. math:: n_{\text{tokens}}\, d + T_{\max}\, d + L \bigl( 4 d^2 + 8 d^2 + 13 d \bigr) + 2 d

    That is for the usual sizes, with biases and layer norms. The table of tokens counts once where it is `tied`. Raises TypeError if
    `sizes` is something else.

    Radford et al. (2019), GPT-2: the smallest has 124 million (its Table 2 says 117).

    >>> transformer_parameters(TransformerSizes(50257, 768, 12, 12, n_positions=1024, bias=True))
    124439808
    """
    if not isinstance(sizes, TransformerSizes):
        raise TypeError(f"sizes must be TransformerSizes; got {type(sizes).__name__}")
    s: Any = sizes  # whose numbers are all filled in
    shared, norm = s.d_model // s.n_heads * s.n_kv_heads, s.d_model * (2 if s.norm_bias else 1)  # shared: features of all key heads
    attention = 2 * s.d_model * (s.d_model + shared) + (2 * (s.d_model + shared) if s.bias else 0)
    units = (3 if s.gated else 2) * s.d_model * s.d_hidden + (s.d_hidden + s.d_model if s.bias else 0)
    tables = (s.n_tokens * (1 if s.tied else 2) + s.n_positions) * s.d_model
    return tables + s.n_layers * (attention + units + 2 * norm) + (norm if s.norm_first else 0)
