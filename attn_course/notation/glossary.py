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
    """One line of the glossary: a word of the course, its axes (none for a number), and dialect -> what stands there, if it has a name.

    >>> GLOSSARY[0].term, GLOSSARY[0].names["torch"]
    ('q_len', 'L')
    """

    term: str
    meaning: str
    shape: str
    names: Mapping[str, str]


_TABLE = """
q_len | number of queries |
    m                |                     |                    | n                  | T_out             | L
kv_len | number of keys and values |
    m                |                     |                    | n                  | T_in              | S
d_model | features of a token |
    v                |                     | f                  | d_model            | D                 | embed_dim
d_k | features of a query or key |
    q                |                     | d                  | d_k                | D_K               | E, head_dim
d_v | features of a value |
    v'               |                     |                    | d_v                | D_V               | Ev
d_output | features of the output |
    d                |                     |                    | d_model            | D                 | embed_dim
n_heads | number of query heads |
    h                |                     |                    | h                  | H                 | num_heads, Hq
n_kv_heads | number of key and value heads |
                     |                     |                    |                    |                   | H (enable_gqa)
x | tokens | (len, d_model)
    X                | z, a column         | X                  |                    | X                 |
query | what each position asks | (q_len, d_k)
    Q                | Q = W_Q z           | X W_Q              | Q                  | Q                 | query
key | what each position contains | (kv_len, d_k)
    K                | K = W_K z'          | X W_K              | K                  | K                 | key
value | what each position passes on | (kv_len, d_v)
    V                | V = W_V z'          | X W_V              | V                  | V                 | value
scores | before the softmax | (q_len, kv_len)
    a(q, k)          | K^T Q               | Q K^T / sqrt(d)    | Q K^T / sqrt(d_k)  | Q K^T / sqrt(D_K) |
softmax | normalises over the keys |
    sigma, last axis | over axis 0         | over rows          | softmax            | over rows         | softmax(dim=-1)
weights | after the softmax | (q_len, kv_len)
    W(Q, K)          | softmax(K^T Q)      | softmax(...)       | softmax(...)       | P                 | attn_output_weights
output | weights @ value | (q_len, d_v)
    Z                | V softmax(K^T Q)    | softmax(...) X W_V | Attention(Q, K, V) | Z = P V           | attn_output
mask | True = may attend | (q_len, kv_len)
                     | -inf added          |                    | -inf set           |                   | attn_mask (in MHA True = hide)
causal mask | hides keys after the query | (q_len, kv_len)
                     | -inf strictly LOWER |                    | -inf, upper        |                   | is_causal
padding mask | hides keys after the end | (1, kv_len)
                     |                     |                    |                    |                   | key_padding_mask
w_query | projects tokens to queries | (d_model, n_heads d_k)
    W_Q: v x q       | W_Q: d_k x d_model  | W_Q: f x d         | W_i^Q              | W_Q: D x D_K      | in_proj_weight[:E]
w_key | projects tokens to keys | (d_model, n_kv_heads d_k)
    W_K: v x q       | W_K: d_k x d_model  | W_K: f x d         | W_i^K              | W_K: D x D_K      | in_proj_weight[E:2E]
w_value | projects tokens to values | (d_model, n_kv_heads d_v)
    W_V: v x v'      | W_V: d_v x d_model  | W_V: f x d         | W_i^V              | W_V: D x D_V      | in_proj_weight[2E:]
w_output | projects the merged heads | (n_heads d_v, d_output)
    W_h: h v' x d    |                     |                    | W^O                | W_O: H D_V x D    | out_proj.weight
head | attention of one head | (q_len, d_v)
    Z_i              |                     |                    | head_i             | Z_i               |
merge_heads | heads side by side | (q_len, n_heads d_v)
    [Z_1 ... Z_h]    |                     |                    | Concat(head_i)     | [Z_1 ... Z_H]     |
absorbed matrix | compares tokens directly | (d_model, d_model)
    W_Q W_K^T        | W_K^T W_Q           | W_Q W_K^T          |                    | W_Q W_K^T         |
"""
"""A term takes two lines: word, meaning and shape; and its names in the order of `DIALECTS`."""

_LINES = [[cell.strip() for cell in line.split("|")] for line in _TABLE.strip("\n").splitlines()]

GLOSSARY: tuple[Term, ...] = tuple(
    Term(term, meaning, shape, MappingProxyType({dialect: name for dialect, name in zip(DIALECTS, names, strict=True) if name}))
    for (term, meaning, shape), names in zip(_LINES[::2], _LINES[1::2], strict=True)
)
"""All terms of the glossary, in the order of the table."""
