"""Rows or columns as positions, and states written as d_k x d_v or d_v x d_k: everything turns about its diagonal."""

import numpy as np

from attn_course.notation.checks import require_array


def columns_from_rows(array: np.ndarray) -> np.ndarray:
    r"""Return an array of the rows-are-positions form as the columns-are-positions form has it, Eq. attention-in-columns.

    .. math:: \mathrm{softmax}_{row}\!\left(\tfrac{Q K^\top}{\sqrt{d_k}}\right) V = \Bigl(V^\top
              \mathrm{softmax}_{col}\!\left(\tfrac{(K^\top)^\top Q^\top}{\sqrt{d_k}}\right)\Bigr)^{\!\top}

    Parameters
    ----------
    array : (..., rows, columns) ndarray
        Tokens, queries, keys or values (len, features); a projection (d_in, d_out), used as x @ w; scores, weights or a
        mask (q_len, kv_len); an absorbed matrix W_Q W_K^T (d_model, d_model), one for each head if there are leading axes.

    Returns
    -------
    turned : (..., columns, rows) ndarray
        Tokens (features, len); a projection (d_out, d_in), used as W z; scores K^T Q (kv_len, q_len), with the softmax over
        axis -2 and the causal -inf strictly below the diagonal; the absorbed matrix W_K^T W_Q. A copy.

    Raises
    ------
    TypeError
        If `array` is not an ndarray.
    ValueError
        If it has fewer than two axes; a bias (d,) is added to every column as b[:, None].

    Notes
    -----
    In products the order of the factors turns too: (x @ w).T = w.T @ x.T.

    Examples
    --------
    >>> causal = np.array([[0.0, -np.inf], [0.0, 0.0]])
    >>> columns_from_rows(causal)
    array([[  0.,   0.],
           [-inf,   0.]])
    """
    return require_array("array", array, 2, "(..., rows, columns)").swapaxes(-1, -2).copy()


def rows_from_columns(array: np.ndarray) -> np.ndarray:
    r"""Return an array of the columns-are-positions form as the rows-are-positions form has it; undoes `columns_from_rows`.

    Parameters
    ----------
    array : (..., rows, columns) ndarray
        Tokens (features, len); a projection (d_out, d_in), used as W z; scores, weights or a mask (kv_len, q_len); an
        absorbed matrix W_K^T W_Q.

    Returns
    -------
    turned : (..., columns, rows) ndarray
        Tokens (len, features); a projection (d_in, d_out), used as x @ w; scores, weights or a mask (q_len, kv_len); the
        absorbed matrix W_Q W_K^T. A copy.

    Raises
    ------
    TypeError
        If `array` is not an ndarray.
    ValueError
        If it has fewer than two axes.

    Notes
    -----
    The matrix W = W_Q^T W_K of the scalar product <z, W z'> belongs to the column form as well, but with the query first: it
    is W_K^T W_Q turned once more, and has the entries of the row form's W_Q W_K^T.

    Examples
    --------
    >>> w_query, w_key = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])  # columns: d_k = 1, d_model = 2
    >>> rows_from_columns(w_key.T @ w_query)  # rows: W_Q W_K^T
    array([[3., 4.],
           [6., 8.]])
    """
    return require_array("array", array, 2, "(..., rows, columns)").swapaxes(-1, -2).copy()


def swap_state_layout(state: np.ndarray) -> np.ndarray:
    r"""Return a state of linear attention or of the delta rule in the other of its two layouts.

    .. math:: S_t = S_{t-1} + \phi(k_t)\,v_t^\top,\; o_t = S_t^\top \phi(q_t) \qquad\text{or}\qquad
              S_t = S_{t-1} + v_t\,\phi(k_t)^\top,\; o_t = S_t\,\phi(q_t)

    Parameters
    ----------
    state : (..., d_k, d_v) or (..., d_v, d_k) ndarray
        The course keeps (d_k, d_v).

    Returns
    -------
    swapped : (..., d_v, d_k) or (..., d_k, d_v) ndarray
        A copy. The normaliser z, a vector, is the same in both.

    Raises
    ------
    TypeError
        If `state` is not an ndarray.
    ValueError
        If it has fewer than two axes.

    Notes
    -----
    (d_v, d_k) is the layout of Schlag et al. (2021), arXiv:2102.11174, and Yang et al. (2024), arXiv:2406.06484.

    Examples
    --------
    >>> swap_state_layout(np.array([[1.0, 2.0, 3.0]])).shape
    (3, 1)
    """
    return require_array("state", state, 2, "(..., d_k, d_v)").swapaxes(-1, -2).copy()
