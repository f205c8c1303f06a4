"""Columns as positions: computed there, and here after conversion."""

import numpy as np
import pytest

from attn_course import reference
from attn_course.notation import columns_from_rows, rows_from_columns
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal

D_MODEL, D_K, D_V, HEADS, Q_LEN, KV_LEN = 7, 3, 2, 4, 5, 11


def softmax_over_rows_of_a_column(scores):
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=0)


def column_attention(z, z_source, w_query, w_key, w_value, w_output, added=0.0):
    """One head as the column dialect writes it: q = W_Q z, scores K^T Q, V softmax(K^T Q)."""
    query, key, value = w_query @ z, w_key @ z_source, w_value @ z_source
    scores = key.T @ query / np.sqrt(len(query)) + added
    return w_output @ (value @ softmax_over_rows_of_a_column(scores))


def row_weights():
    return normal(D_MODEL, D_K), normal(D_MODEL, D_K, seed=8), normal(D_MODEL, D_V), normal(D_V, D_MODEL)


def test_attention_in_columns_is_attention_in_rows():
    x, y, weights = normal(Q_LEN, D_MODEL), normal(KV_LEN, D_MODEL), row_weights()
    there = column_attention(*map(columns_from_rows, (x, y, *weights)))
    assert_equal_to(rows_from_columns(there), reference.multi_head_attention(x, y, *weights, n_heads=1))


def test_a_causal_mask_is_strictly_lower_there_and_strictly_upper_here():
    x, weights = normal(Q_LEN, D_MODEL), row_weights()
    lower = np.where(np.tri(Q_LEN, k=-1, dtype=bool), -np.inf, 0.0)
    there = column_attention(*map(columns_from_rows, (x, x, *weights)), added=lower)
    wanted = reference.multi_head_attention(x, x, *weights, n_heads=1, is_causal=True)
    assert_equal_to(rows_from_columns(there), wanted)
    assert_equal_to(reference.multi_head_attention(x, x, *weights, n_heads=1, mask=rows_from_columns(lower)), wanted)
    np.testing.assert_array_equal(rows_from_columns(lower) == 0.0, reference.causal_mask(Q_LEN, Q_LEN))
    with np.errstate(invalid="ignore"):
        upper = column_attention(*map(columns_from_rows, (x, x, *weights)), added=lower.T)
    assert_differs(rows_from_columns(upper), wanted)


def test_heads_are_blocks_of_rows_there_and_of_columns_here():
    x, y = normal(Q_LEN, D_MODEL), normal(KV_LEN, D_MODEL)
    weights = normal(D_MODEL, HEADS * D_K), normal(D_MODEL, HEADS * D_K, seed=8), normal(D_MODEL, HEADS * D_V), normal(HEADS * D_V, D_MODEL)
    z, z_source, w_query, w_key, w_value, w_output = map(columns_from_rows, (x, y, *weights))
    heads = []
    for head in range(HEADS):
        rows, rows_v = slice(head * D_K, (head + 1) * D_K), slice(head * D_V, (head + 1) * D_V)
        heads.append(column_attention(z, z_source, w_query[rows], w_key[rows], w_value[rows_v], w_output[:, rows_v]))
    assert_equal_to(rows_from_columns(sum(heads)), reference.multi_head_attention(x, y, *weights, n_heads=HEADS))


def test_the_absorbed_matrix_is_w_k_transposed_w_q_there_and_w_q_w_k_transposed_here():
    x, y, (w_query, w_key, *_) = normal(Q_LEN, D_MODEL), normal(KV_LEN, D_MODEL), row_weights()
    z, z_source, there_query, there_key = map(columns_from_rows, (x, y, w_query, w_key))
    there = there_key.T @ there_query
    here = reference.absorb_query_key(w_query, w_key)[0]
    assert_equal_to(rows_from_columns(there), here)
    assert_equal_to(columns_from_rows(here), there)
    assert_equal_to(z_source.T @ there @ z, columns_from_rows(x @ here @ y.T))
    assert_differs(z_source.T @ there.T @ z, columns_from_rows(x @ here @ y.T))  # the transpose, W_Q^T W_K, where W_K^T W_Q belongs
    assert_equal_to(there_query.T @ there_key, here)  # as in <z, W_Q^T W_K z'>, with the query first


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (0, 5), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, bool, np.int64])
def test_there_and_back_is_the_same_array(shape, dtype):
    array = (normal(*shape) > 0).astype(dtype)
    for there, back in ((columns_from_rows, rows_from_columns), (rows_from_columns, columns_from_rows)):
        assert there(array).shape == (*shape[:-2], shape[-1], shape[-2])
        np.testing.assert_array_equal(back(there(array)), array, strict=True)
        assert_own_memory(there(array), array)
