"""One letter, several meanings: what to ask before reading on."""

from itertools import groupby
from typing import NamedTuple


class Letter(NamedTuple):
    """One letter, and its meanings in different texts, each with the word of the course for it.

    >>> LETTERS[1]
    Letter(letter='Z', meanings=(('the output', 'output'), ('the input, one column z a token', 'x')))
    """

    letter: str
    meanings: tuple[tuple[str, str], ...]


_TABLE = """
q | one query, a row in q K^T | query
q | one query, a column in q^T k | query
q | the length of queries and keys | d_k
Z | the output | output
Z | the input, one column z a token | x
m | positions | q_len, kv_len
m | pairs of a key and a value | kv_len
m | heads | n_heads
h | the number of heads | n_heads
h | the index of a head | head
h | the result of the aggregation | output
d | features of the output | d_output
d | features of queries and keys | d_k
K | the keys | key
K | how many there are | kv_len
W | parameters that are learned | w_query, w_key, w_value, w_output
W | attention weights, computed from the input | weights
v | the number of input features | d_model
v | one value | value
D_K | the same as d_k: one dimension, two spellings | d_k
"""

_ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in _TABLE.strip().splitlines()]

LETTERS: tuple[Letter, ...] = tuple(
    Letter(letter, tuple((meaning, word) for _, meaning, word in rows)) for letter, rows in groupby(_ROWS, key=lambda row: row[0])
)
"""All letters, in the order of the table."""
