"""Several heads: split, attend, merge, project."""

from typing import Any

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import broadcast_batch, checked_floats, narrowed, require_axes, require_integer, require_shape
from attn_course.reference.attention import attention


def split_heads(x: Float[np.ndarray, "*batch len d_model"], n_heads: int) -> Float[np.ndarray, "*batch n_heads len d_head"]:
    """Cut the features into heads, and move the heads before the positions, Eq. heads-are-column-blocks.

    Returns `heads`: head h holds the h-th block of features. A view where NumPy can make one.

    Raises TypeError if `x` is not a floating ndarray, or `n_heads` not an integer; ValueError if `x` has fewer than two
    axes, or `n_heads` is below 1 or does not divide d_model.

    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762. Reshaping to (*batch, n_heads, len, d_head) at once would
    mix positions.

    >>> split_heads(np.arange(8.0).reshape(2, 4), 2)[0]
    array([[0., 1.],
           [4., 5.]])
    """
    checked_floats(x=x)
    require_axes(2, "(..., len, d_model)", x=x)
    n_heads = require_integer("n_heads", n_heads, 1)
    if x.shape[-1] % n_heads:
        raise ValueError(f"n_heads must divide d_model, the last axis of x; got {n_heads} and {x.shape[-1]}")
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-2, -3)  # (..., len, n_heads, d_head), then swap


def merge_heads(x: Float[np.ndarray, "*batch n_heads len d_head"]) -> Float[np.ndarray, "*batch len d_model"]:
    """Put the heads' features side by side again, the brackets of Eq. multi-head-attention; undoes `split_heads`.

    Raises TypeError if `x` is not a floating ndarray; ValueError if `x` has fewer than three axes.

    "Concat" of Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762.

    >>> merge_heads(np.array([[[0.0, 1.0]], [[2.0, 3.0]]]))
    array([[0., 1., 2., 3.]])
    """
    checked_floats(x=x)
    require_axes(3, "(..., n_heads, len, d_head)", x=x)
    return x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])  # (..., len, n_heads, d_head), then flatten


def repeat_key_value(
    x: Float[np.ndarray, "*batch n_kv_heads len d_head"], n_repeats: int
) -> Float[np.ndarray, "*batch n_heads len d_head"]:
    """Repeat each shared head for the query heads it serves, Eq. grouped-query-attention.

    `n_repeats`: query heads for each key head, g.

    Returns `repeated`: head r stands at r g .. r g + g - 1 (repeat, not tile).

    Raises TypeError if `x` is not a floating ndarray, or `n_repeats` not an integer; ValueError if `x` has fewer than
    three axes, or `n_repeats` is below 1.

    Grouped-query attention: Ainslie et al. (2023), arXiv:2305.13245. One shared head is multi-query attention: Shazeer
    (2019), arXiv:1911.02150.

    >>> repeat_key_value(np.array([[[1.0]], [[2.0]]]), 2).ravel()
    array([1., 1., 2., 2.])
    """
    checked_floats(x=x)
    require_axes(3, "(..., n_kv_heads, len, d_head)", x=x)
    return x.repeat(require_integer("n_repeats", n_repeats, 1), axis=-3)


def multi_head_attention(
    x_query: Float[np.ndarray, "*#batch q_len d_query"],
    x_key_value: Float[np.ndarray, "*#batch kv_len d_key_value"],
    w_query: Float[np.ndarray, "d_query heads_d_k"],
    w_key: Float[np.ndarray, "d_key_value kv_heads_d_k"],
    w_value: Float[np.ndarray, "d_key_value kv_heads_d_v"],
    w_output: Float[np.ndarray, "heads_d_v d_output"],
    *,
    n_heads: int,
    n_kv_heads: int | None = None,
    b_query: Float[np.ndarray, "heads_d_k"] | None = None,
    b_key: Float[np.ndarray, "kv_heads_d_k"] | None = None,
    b_value: Float[np.ndarray, "kv_heads_d_v"] | None = None,
    b_output: Float[np.ndarray, "d_output"] | None = None,
    **options: Any,
) -> Any:
    r"""Project, attend in several heads at once, concatenate, project, Eq. multi-head-attention.

    .. math:: [Z_1 \cdots Z_h]\,W_O, \qquad Z_i = \mathrm{Attention}(X W_Q^{(i)}, Y W_K^{(i)}, Y W_V^{(i)})

    Each head is Eq. attention-of-one-head, or Eq. cross-attention where queries and keys come from two sequences.

    `x_key_value`: positions that answer, Y; the same array as `x_query` for self-attention.
    `w_query`: the heads' projections side by side; rows are input features.
    `n_kv_heads`: number of key and value heads, a divisor of `n_heads`; `n_heads` if left out.
    `b_query`, `b_key`, `b_value`, `b_output`: biases, added to each projection.
    `**options`: keywords of `attention`; a mask broadcasts to (*batch, n_heads, q_len, kv_len).

    Raises TypeError if an array is not floating, or an option is of the wrong type; ValueError if shapes or numbers of
    heads do not fit.

    Vaswani et al. (2017), section 3.2.2, arXiv:1706.03762, with the weight matrices of all heads side by side.

    >>> x, identity = np.array([[1.0, 0.0], [1.0, 2.0]]), np.eye(2)
    >>> multi_head_attention(x, x, identity, identity, identity, identity, n_heads=2).round(2)
    array([[1.  , 1.  ],
           [1.  , 1.96]])
    """
    n_heads = require_integer("n_heads", n_heads, 1)
    n_kv_heads = n_heads if n_kv_heads is None else require_integer("n_kv_heads", n_kv_heads, 1)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads; got {n_kv_heads} and {n_heads}")
    if "enable_gqa" in options:
        raise TypeError(f"enable_gqa must be left out: n_heads and n_kv_heads say it; got {options['enable_gqa']!r}")
    inputs = {"x_query": x_query, "x_key_value": x_key_value, "w_query": w_query, "w_key": w_key, "w_value": w_value, "w_output": w_output}
    biases = {"b_query": b_query, "b_key": b_key, "b_value": b_value, "b_output": b_output}
    arrays = inputs | {name: bias for name, bias in biases.items() if bias is not None}
    wide = dict(zip(arrays, checked_floats(**arrays), strict=True))  # projections of float16 stay wide until the end
    require_axes(2, "(..., len, features)", x_query=x_query, x_key_value=x_key_value)
    broadcast_batch(x_query=x_query.shape[:-2], x_key_value=x_key_value.shape[:-2])

    query = _project_heads(wide, wide["x_query"], "query", n_heads=n_heads)
    key = _project_heads(wide, wide["x_key_value"], "key", n_kv_heads=n_kv_heads)
    value = _project_heads(wide, wide["x_key_value"], "value", n_kv_heads=n_kv_heads)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"w_query and w_key must give heads of one size d_k; got {query.shape[-1]} and {key.shape[-1]}")
    result = attention(query, key, value, enable_gqa=True, **options)
    output, *rest = result if isinstance(result, tuple) else (result,)
    merged = _project(wide, merge_heads(output), "output")
    narrow = tuple(narrowed(array, np.result_type(*arrays.values())) for array in (merged, *rest))
    return narrow if rest else narrow[0]


def _project_heads(wide: dict[str, np.ndarray], x: np.ndarray, role: str, **heads: int) -> np.ndarray:
    """Project and split; `heads` holds one number under its argument's name."""
    ((name, n_heads),) = heads.items()
    projected = _project(wide, x, role)
    if projected.shape[-1] % n_heads:
        raise ValueError(f"{name} must divide the columns of w_{role}; got {n_heads} and {projected.shape[-1]}")
    return split_heads(projected, n_heads)


@np.errstate(over="ignore", invalid="ignore")  # padding may hold anything
def _project(wide: dict[str, np.ndarray], x: np.ndarray, role: str) -> np.ndarray:
    """x @ w_role + b_role, with errors that name the role."""
    weight, bias = wide[f"w_{role}"], wide.get(f"b_{role}")
    if weight.ndim != 2 or weight.shape[0] != x.shape[-1]:
        raise ValueError(f"w_{role} must have shape (features of its input, ...) = ({x.shape[-1]}, ...); got {weight.shape}")
    if bias is None:
        return x @ weight
    require_shape(f"b_{role}", bias, weight.shape[1:], f"one entry for each column of w_{role}")
    return x @ weight + bias
