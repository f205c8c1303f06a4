"""Query, key and value in one matrix: the orders in which libraries put them side by side."""

from typing import Literal, NamedTuple

import numpy as np

from attn_course.notation.checks import require_choice, require_floats, require_integer

Order = Literal["blocks", "groups"]


def unpack_query_key_value(
    packed: np.ndarray, *, n_heads: int, n_kv_heads: int | None = None, d_v: int | None = None, order: Order = "blocks"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Take query, key and value out of one packed array.

    .. math:: [\,q_1 \cdots q_h \mid k_1 \cdots k_r \mid v_1 \cdots v_r\,] \;\text{ blocks}, \qquad
              [\,q_1 \cdots q_g\, k_1\, v_1 \mid q_{g+1} \cdots q_{2g}\, k_2\, v_2 \mid \cdots\,] \;\text{ groups}

    Parameters
    ----------
    packed : (..., n_heads * d_k + n_kv_heads * (d_k + d_v)) ndarray of float
        A weight to be used as x @ w, a bias, or projected tokens. Transpose the weight of a linear layer first, since that computes x W^T.
    n_heads : int
        Query heads.
    n_kv_heads : int, optional
        Key and value heads, a divisor of `n_heads`; as many if left out.
    d_v : int, optional
        Features of a value in one head; as many as of a key if left out.
    order : {"blocks", "groups"}, optional
        All queries, all keys, all values; or, for each key head, the queries it serves, its key and its value.

    Returns
    -------
    query : (..., n_heads * d_k) ndarray
        The heads side by side, as the course has them.
    key : (..., n_kv_heads * d_k) ndarray
        The same for keys.
    value : (..., n_kv_heads * d_v) ndarray
        The same for values.

    Raises
    ------
    TypeError
        If `packed` is not a floating ndarray, or a number not an integer.
    ValueError
        If numbers of heads do not divide, or do not fit the last axis, or the order is unknown.

    Notes
    -----
    "blocks" is c_attn of GPT-2 (a Conv1D, which computes x @ w as the course does). "groups" with one query for each key is
    query_key_value of GPT-NeoX, (heads, 3, d_head); with more it is what models with grouped queries use, as wqkv of InternLM2.

    Examples
    --------
    >>> packed = np.arange(6.0)
    >>> unpack_query_key_value(packed, n_heads=2)
    (array([0., 1.]), array([2., 3.]), array([4., 5.]))
    >>> unpack_query_key_value(packed, n_heads=2, order="groups")
    (array([0., 3.]), array([1., 4.]), array([2., 5.]))
    """
    require_floats("packed", packed, 1, "(..., heads * features)")
    require_choice("order", order, ("blocks", "groups"))
    sizes = _sizes(packed.shape[-1], n_heads, n_kv_heads, d_v)
    lead, parts = packed.shape[:-1], 1 if order == "blocks" else sizes.n_kv_heads
    widths = [sizes.n_heads * sizes.d_k, sizes.n_kv_heads * sizes.d_k, sizes.n_kv_heads * sizes.d_v]
    grouped = packed.reshape(*lead, parts, packed.shape[-1] // parts)  # (..., 1, all) or (..., n_kv_heads, one group)
    ends = [widths[0] // parts, (widths[0] + widths[1]) // parts]
    query, key, value = (part.reshape(*lead, width).copy() for part, width in zip(np.split(grouped, ends, axis=-1), widths, strict=True))
    return query, key, value


def pack_query_key_value(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, *, n_heads: int, n_kv_heads: int | None = None, order: Order = "blocks"
) -> np.ndarray:
    r"""Put query, key and value into one array; undoes `unpack_query_key_value`.

    Parameters
    ----------
    query : (..., n_heads * d_k) ndarray of float
        The heads side by side.
    key : (..., n_kv_heads * d_k) ndarray of float
        The same for keys.
    value : (..., n_kv_heads * d_v) ndarray of float
        The same for values.
    n_heads : int
        Query heads.
    n_kv_heads : int, optional
        Key and value heads, a divisor of `n_heads`; as many if left out.
    order : {"blocks", "groups"}, optional
        As in `unpack_query_key_value`.

    Returns
    -------
    packed : (..., n_heads * d_k + n_kv_heads * (d_k + d_v)) ndarray
        In the common dtype.

    Raises
    ------
    TypeError
        If an array is not floating, or a number not an integer.
    ValueError
        If shapes or numbers of heads do not fit, or the order is unknown.

    Examples
    --------
    >>> pack_query_key_value(np.array([0.0, 3.0]), np.array([1.0, 4.0]), np.array([2.0, 5.0]), n_heads=2, order="groups")
    array([0., 1., 2., 3., 4., 5.])
    """
    parts = {"query": query, "key": key, "value": value}
    for name, part in parts.items():
        require_floats(name, part, 1, "(..., heads * features)")
        if part.shape[:-1] != query.shape[:-1]:
            raise ValueError(f"{name} must have the leading axes of query, {query.shape[:-1]}; got {part.shape[:-1]}")
    require_choice("order", order, ("blocks", "groups"))
    heads, kv_heads = _heads(n_heads, n_kv_heads)
    for name, part in parts.items():
        if part.shape[-1] % (heads if name == "query" else kv_heads):
            raise ValueError(f"{name} must hold {heads if name == 'query' else kv_heads} heads in its last axis; got {part.shape[-1]}")
    if query.shape[-1] * kv_heads != key.shape[-1] * heads:
        raise ValueError(f"query and key must have heads of one size; got {query.shape[-1] // heads} and {key.shape[-1] // kv_heads}")
    lead = query.shape[:-1]
    groups = 1 if order == "blocks" else kv_heads
    grouped = [part.reshape(*lead, groups, part.shape[-1] // groups) for part in parts.values()]
    return np.concatenate(grouped, axis=-1).reshape(*lead, sum(part.shape[-1] for part in parts.values()))


class _Sizes(NamedTuple):
    n_heads: int
    n_kv_heads: int
    d_k: int
    d_v: int


def _sizes(columns: int, n_heads: int, n_kv_heads: int | None, d_v: int | None) -> _Sizes:
    heads, kv_heads = _heads(n_heads, n_kv_heads)
    values = 0 if d_v is None else kv_heads * require_integer("d_v", d_v, 0)
    shares = heads + (2 if d_v is None else 1) * kv_heads  # how many times d_k goes into the rest
    if columns < values or (columns - values) % shares:
        wanted = f"{heads} queries, {kv_heads} keys and {kv_heads} values" + ("" if d_v is None else f" of {d_v} features")
        raise ValueError(f"packed must hold {wanted} in its last axis; got {columns}")
    d_k = (columns - values) // shares
    return _Sizes(heads, kv_heads, d_k, d_k if d_v is None else int(d_v))


def _heads(n_heads: int, n_kv_heads: int | None) -> tuple[int, int]:
    heads = require_integer("n_heads", n_heads, 1)
    kv_heads = heads if n_kv_heads is None else require_integer("n_kv_heads", n_kv_heads, 1)
    if heads % kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads; got {kv_heads} and {heads}")
    return heads, kv_heads
