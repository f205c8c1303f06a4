"""The words of the course, and what six dialects call the same things."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "points": "m data points of v features; rows are positions",
        "columns": "columns are positions, matrices multiply from the left",
        "features": "X W_Q, from f features to d; rows are positions",
        "transformer": '"Attention Is All You Need", arXiv:1706.03762',
        "sequences": "T_in inputs, T_out outputs, weights P",
        "torch": "PyTorch: nn.MultiheadAttention, scaled_dot_product_attention",
    }
)
"""Name of a dialect -> by what it is recognised."""


class Term(NamedTuple):
    """One line of the glossary.

    Parameters
    ----------
    term : str
        The word of the course.
    meaning : str
        What it is.
    shape : str
        Its axes, in the words of the course; empty for a number.
    names : mapping of str to str
        Dialect -> what stands there; a dialect without a name for it is left out.

    Examples
    --------
    >>> GLOSSARY[0].term, GLOSSARY[0].names["torch"]
    ('q_len', 'L')
    """

    term: str
    meaning: str
    shape: str
    names: Mapping[str, str]


def _term(term: str, meaning: str, shape: str = "", **names: str) -> Term:
    return Term(term, meaning, shape, MappingProxyType(names))


GLOSSARY: tuple[Term, ...] = (
    _term("q_len", "number of queries", points="m", transformer="n", sequences="T_out", torch="L"),
    _term("kv_len", "number of keys and values", points="m", transformer="n", sequences="T_in", torch="S"),
    _term("d_model", "features of a token", points="v", features="f", transformer="d_model", sequences="D", torch="embed_dim"),
    _term("d_k", "features of a query or key", points="q", features="d", transformer="d_k", sequences="D_K", torch="E, head_dim"),
    _term("d_v", "features of a value", points="v'", transformer="d_v", sequences="D_V", torch="Ev"),
    _term("d_output", "features of the output", points="d", transformer="d_model", sequences="D", torch="embed_dim"),
    _term("n_heads", "number of query heads", points="h", transformer="h", sequences="H", torch="num_heads, Hq"),
    _term("n_kv_heads", "number of key and value heads", torch="H (enable_gqa)"),
    _term("x", "tokens", "(len, d_model)", points="X", columns="z, a column", features="X", sequences="X"),
    _term(
        "query",
        "what each position asks",
        "(q_len, d_k)",
        points="Q",
        columns="Q = W_Q z",
        features="X W_Q",
        transformer="Q",
        sequences="Q",
        torch="query",
    ),
    _term(
        "key",
        "what each position contains",
        "(kv_len, d_k)",
        points="K",
        columns="K = W_K z'",
        features="X W_K",
        transformer="K",
        sequences="K",
        torch="key",
    ),
    _term(
        "value",
        "what each position passes on",
        "(kv_len, d_v)",
        points="V",
        columns="V = W_V z'",
        features="X W_V",
        transformer="V",
        sequences="V",
        torch="value",
    ),
    _term(
        "scores",
        "before the softmax",
        "(q_len, kv_len)",
        points="a(q, k)",
        columns="K^T Q",
        features="Q K^T / sqrt(d)",
        transformer="Q K^T / sqrt(d_k)",
        sequences="Q K^T / sqrt(D_K)",
    ),
    _term(
        "softmax",
        "normalises over the keys",
        "",
        points="sigma, last axis",
        columns="over axis 0",
        features="over rows",
        transformer="softmax",
        sequences="over rows",
        torch="softmax(dim=-1)",
    ),
    _term(
        "weights",
        "after the softmax",
        "(q_len, kv_len)",
        points="W(Q, K)",
        columns="softmax(K^T Q)",
        features="softmax(...)",
        transformer="softmax(...)",
        sequences="P",
        torch="attn_output_weights",
    ),
    _term(
        "output",
        "weights @ value",
        "(q_len, d_v)",
        points="Z",
        columns="V softmax(K^T Q)",
        features="softmax(...) X W_V",
        transformer="Attention(Q, K, V)",
        sequences="Z = P V",
        torch="attn_output",
    ),
    _term(
        "mask", "True = may attend", "(q_len, kv_len)", columns="-inf added", transformer="-inf set", torch="attn_mask (in MHA True = hide)"
    ),
    _term(
        "causal mask",
        "hides keys after the query",
        "(q_len, kv_len)",
        columns="-inf strictly LOWER",
        transformer="-inf, upper",
        torch="is_causal",
    ),
    _term("padding mask", "hides keys after the end", "(1, kv_len)", torch="key_padding_mask"),
    _term(
        "w_query",
        "projects tokens to queries",
        "(d_model, n_heads d_k)",
        points="W_Q: v x q",
        columns="W_Q: d_k x d_model",
        features="W_Q: f x d",
        transformer="W_i^Q",
        sequences="W_Q: D x D_K",
        torch="in_proj_weight[:E]",
    ),
    _term(
        "w_key",
        "projects tokens to keys",
        "(d_model, n_kv_heads d_k)",
        points="W_K: v x q",
        columns="W_K: d_k x d_model",
        features="W_K: f x d",
        transformer="W_i^K",
        sequences="W_K: D x D_K",
        torch="in_proj_weight[E:2E]",
    ),
    _term(
        "w_value",
        "projects tokens to values",
        "(d_model, n_kv_heads d_v)",
        points="W_V: v x v'",
        columns="W_V: d_v x d_model",
        features="W_V: f x d",
        transformer="W_i^V",
        sequences="W_V: D x D_V",
        torch="in_proj_weight[2E:]",
    ),
    _term(
        "w_output",
        "projects the merged heads",
        "(n_heads d_v, d_output)",
        points="W_h: h v' x d",
        transformer="W^O",
        sequences="W_O: H D_V x D",
        torch="out_proj.weight",
    ),
    _term("head", "attention of one head", "(q_len, d_v)", points="Z_i", transformer="head_i", sequences="Z_i"),
    _term(
        "merge_heads",
        "heads side by side",
        "(q_len, n_heads d_v)",
        points="[Z_1 ... Z_h]",
        transformer="Concat(head_i)",
        sequences="[Z_1 ... Z_H]",
    ),
    _term(
        "absorbed matrix",
        "compares tokens directly",
        "(d_model, d_model)",
        points="W_Q W_K^T",
        columns="W_K^T W_Q",
        features="W_Q W_K^T",
        sequences="W_Q W_K^T",
    ),
)
"""All terms of the glossary, in the order of the table."""
