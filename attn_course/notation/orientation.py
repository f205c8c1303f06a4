"""Rows or columns as positions: everything turns about its diagonal."""

import numpy as np

from attn_course.notation.checks import require_array


def columns_from_rows(array: np.ndarray) -> np.ndarray:
    r"""Return a copy of an array (..., rows, columns) as the columns-are-positions form has it, Eq. attention-in-columns.

    .. math:: \mathrm{softmax}_{row}\!\left(\tfrac{Q K^\top}{\sqrt{d_k}}\right) V = \Bigl(V^\top
              \mathrm{softmax}_{col}\!\left(\tfrac{(K^\top)^\top Q^\top}{\sqrt{d_k}}\right)\Bigr)^{\!\top}

    Tokens (len, features) become (features, len); a projection (d_in, d_out), used as x @ w, one used as W z; scores, weights
    or a mask (q_len, kv_len) become K^T Q (kv_len, q_len), with the softmax over axis -2 and the causal -inf strictly below
    the diagonal; an absorbed matrix W_Q W_K^T becomes W_K^T W_Q, one for each head if there are leading axes. In products
    the order of the factors turns too: (x @ w).T = w.T @ x.T. Raises ValueError for fewer than two axes (a bias is added to
    every column as b[:, None]), TypeError for what is no ndarray.

    >>> causal = np.array([[0.0, -np.inf], [0.0, 0.0]])
    >>> columns_from_rows(causal)
    array([[  0.,   0.],
           [-inf,   0.]])
    """
    return require_array("array", array, 2, "(..., rows, columns)").swapaxes(-1, -2).copy()


def rows_from_columns(array: np.ndarray) -> np.ndarray:
    r"""Return a copy of an array (..., rows, columns) of the columns-are-positions form as the course has it; undoes `columns_from_rows`.

    The matrix W = W_Q^T W_K of the scalar product <z, W z'> belongs to the column form as well, but with the query first: it
    is W_K^T W_Q turned once more, and has the entries of the row form's W_Q W_K^T. Raises as `columns_from_rows` does: a
    ValueError for fewer than two axes, a TypeError for what is no ndarray.

    >>> w_query, w_key = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])  # columns: d_k = 1, d_model = 2
    >>> rows_from_columns(w_key.T @ w_query)  # rows: W_Q W_K^T
    array([[3., 4.],
           [6., 8.]])
    """
    return columns_from_rows(array)
