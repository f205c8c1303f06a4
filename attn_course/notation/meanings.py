"""One letter, several meanings: what to ask before reading on."""

from typing import NamedTuple


class Letter(NamedTuple):
    """One letter and what it stands for in different texts.

    Parameters
    ----------
    letter : str
        As it is written.
    meanings : tuple of (str, str)
        What it may be, and the word of the course for that.

    Examples
    --------
    >>> LETTERS[1]
    Letter(letter='Z', meanings=(('the output', 'output'), ('the input, one column z a token', 'x')))
    """

    letter: str
    meanings: tuple[tuple[str, str], ...]


LETTERS: tuple[Letter, ...] = (
    Letter(
        "q",
        (
            ("one query, a row in q K^T", "query"),
            ("one query, a column in q^T k", "query"),
            ("the length of queries and keys", "d_k"),
        ),
    ),
    Letter("Z", (("the output", "output"), ("the input, one column z a token", "x"))),
    Letter("m", (("positions", "q_len, kv_len"), ("pairs of a key and a value", "kv_len"), ("heads", "n_heads"))),
    Letter("h", (("the number of heads", "n_heads"), ("the index of a head", "head"), ("the result of the aggregation", "output"))),
    Letter("d", (("features of the output", "d_output"), ("features of queries and keys", "d_k"))),
    Letter("K", (("the keys", "key"), ("how many there are", "kv_len"))),
    Letter(
        "W",
        (("parameters that are learned", "w_query, w_key, w_value, w_output"), ("attention weights, computed from the input", "weights")),
    ),
    Letter("v", (("the number of input features", "d_model"), ("one value", "value"))),
    Letter("D_K", (("the same as d_k: one dimension, two spellings", "d_k"),)),
)
"""All letters, in the order of the table."""
