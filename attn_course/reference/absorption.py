"""Products of projections: scores need only W_Q W_K^T, the output only W_V W_O, for each head."""

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_integer
from attn_course.reference.heads import repeat_key_value, split_heads


def absorb_query_key(
    w_query: Float[np.ndarray, "d_query heads_d_k"], w_key: Float[np.ndarray, "d_key kv_heads_d_k"], n_heads: int = 1
) -> Float[np.ndarray, "n_heads d_query d_key"]:
    r"""Return the one matrix through which each head compares two tokens, Eq. absorbed-score.

    .. math:: (x W_Q^{(i)})(y W_K^{(i)})^\top = x\,W_i\,y^\top, \qquad W_i = W_Q^{(i)} {W_K^{(i)}}^\top

    `w_query`: the heads' query projections side by side, as in `multi_head_attention`.
    `w_key`: those of the keys; fewer heads than queries (a divisor) are shared by groups of query heads.
    `n_heads`: number of query heads.

    Returns `w_query_key`: rank at most d_k; without the scale 1 / sqrt(d_k), which the scores still need.

    Raises TypeError if a matrix is not floating, or `n_heads` not an integer; ValueError if shapes and numbers of heads
    do not fit.

    With columns as positions the same matrix stands transposed, W_K^T W_Q, Eq. absorbed-attention-in-columns. Any
    invertible G may be put between, W_Q G and W_K G^{-T}, without a change of W_i (gauge freedom, Eq.
    query-key-gauge-freedom). DeepSeek-V2 absorbs W^UK into W^UQ in this way: appendix C, arXiv:2405.04434. A
    position-dependent rotation between the two, as in RoPE, forbids it, Eq. rope-blocks-absorption: section 2.1.3
    there.

    >>> absorb_query_key(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[[1., 6.],
            [0., 3.]]])
    """
    query, key = _matrices(w_query=w_query, w_key=w_key)
    queries, keys = _per_head("w_query", query, "w_key", key, n_heads)
    return narrowed(queries @ keys.swapaxes(-1, -2), np.result_type(w_query, w_key))


def absorb_value_output(
    w_value: Float[np.ndarray, "d_value kv_heads_d_v"], w_output: Float[np.ndarray, "heads_d_v d_output"], n_heads: int = 1
) -> Float[np.ndarray, "n_heads d_value d_output"]:
    r"""Return the one matrix through which each head passes a token on, Eq. absorbed-value-projection.

    .. math:: \bigl(P_i\,(Y W_V^{(i)})\bigr) W_O^{(i)} = P_i\,Y\,\bigl(W_V^{(i)} W_O^{(i)}\bigr)

    `w_value`: the heads' value projections side by side; fewer heads than queries (a divisor) are shared by groups.
    `w_output`: output projection; head i owns the i-th block of d_v rows.
    `n_heads`: number of query heads.

    Returns `w_value_output`: rank at most d_v. The outputs of the heads are summed.

    Raises TypeError if a matrix is not floating, or `n_heads` not an integer; ValueError if shapes and numbers of heads
    do not fit.

    DeepSeek-V2, appendix C, arXiv:2405.04434: W^UV is absorbed into W^O. A bias b_V passes through as the constant b_V
    W_O because a row of weights sums to 1, Eq. value-bias-becomes-constant; where a row is fully masked it sums to 0,
    and the constant is missing.

    >>> absorb_value_output(np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]))
    array([[[3., 4.],
            [6., 8.]]])
    """
    value, output = _matrices(w_value=w_value, w_output=w_output)
    outputs, values = _per_head("w_output", output.T, "w_value", value, n_heads)
    return narrowed(values @ outputs.swapaxes(-1, -2), np.result_type(w_value, w_output))


def _matrices(**arrays: np.ndarray) -> list[np.ndarray]:
    wide = checked_floats(**arrays)
    for name, matrix in arrays.items():
        if matrix.ndim != 2:
            raise ValueError(f"{name} must have two axes; got shape {matrix.shape}")
    return wide


def _per_head(name: str, matrix: np.ndarray, kv_name: str, kv_matrix: np.ndarray, n_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut both into heads, (n_heads, rows, d_head), and repeat those of the key side for the query heads they serve."""
    n_heads = require_integer("n_heads", n_heads, 1)
    if matrix.shape[1] % n_heads:
        raise ValueError(f"n_heads must divide the heads' total width in {name}; got {n_heads} and {matrix.shape[1]}")
    width = matrix.shape[1] // n_heads
    n_kv_heads = kv_matrix.shape[1] // width if width else n_heads
    if n_kv_heads * width != kv_matrix.shape[1] or n_kv_heads == 0 or n_heads % n_kv_heads:
        raise ValueError(
            f"{kv_name} must hold {n_heads} heads of width {width} as {name} does, or a divisor; got a total width of {kv_matrix.shape[1]}"
        )
    return split_heads(matrix, n_heads), repeat_key_value(split_heads(kv_matrix, n_kv_heads), n_heads // n_kv_heads)
