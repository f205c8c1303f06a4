"""Absorbed matrices: the same attention on X alone, gauge freedom, rank, shared heads, and where biases go."""

import numpy as np
import pytest

from attn_course.reference import absorb_query_key, absorb_value_output, attention, multi_head_attention, rope
from tests.reference.support import assert_same, assert_untouched


def projections(seed=7, n_heads=4, n_kv_heads=2, d_model=11, d_k=3, d_v=5, d_output=13):
    rng = np.random.default_rng(seed)
    shapes = ((d_model, n_heads * d_k), (d_model, n_kv_heads * d_k), (d_model, n_kv_heads * d_v), (n_heads * d_v, d_output))
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_each_head_is_the_product_of_its_blocks(n_kv_heads):
    w_query, w_key, w_value, w_output = projections(n_kv_heads=n_kv_heads)
    query_key = assert_untouched(absorb_query_key, w_query, w_key, 4)
    value_output = assert_untouched(absorb_value_output, w_value, w_output, 4)
    assert query_key.shape == (4, 11, 11)
    assert value_output.shape == (4, 11, 13)
    for head in range(4):
        shared = head // (4 // n_kv_heads)  # repeat, not tile
        for a, b in np.ndindex(11, 11):
            wanted = sum(w_query[a, head * 3 + f] * w_key[b, shared * 3 + f] for f in range(3))
            assert query_key[head, a, b] == pytest.approx(wanted, abs=1e-12)
        for a, b in np.ndindex(11, 13):
            wanted = sum(w_value[a, shared * 5 + f] * w_output[head * 5 + f, b] for f in range(5))
            assert value_output[head, a, b] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_attention_on_x_alone_is_multi_head_attention(n_kv_heads):
    weights = projections(n_kv_heads=n_kv_heads)
    x = np.random.default_rng(8).normal(size=(2, 7, 11))
    heads, one = absorb_query_key(*weights[:2], 4), x[:, None]
    outputs = attention(one @ heads, one, one @ absorb_value_output(*weights[2:], 4), is_causal=True, scale=3**-0.5)
    wanted = multi_head_attention(x, x, *weights, n_heads=4, n_kv_heads=n_kv_heads, is_causal=True)
    assert_same(outputs.sum(axis=1), wanted)


def test_in_the_column_form_the_matrix_stands_transposed():
    w_query, w_key, *_ = projections(n_heads=1, n_kv_heads=1)
    z, other = np.random.default_rng(8).normal(size=(2, 11))
    columns_query, columns_key = w_query.T, w_key.T  # q = W_Q z
    score = (columns_query @ z) @ (columns_key @ other)
    assert z @ absorb_query_key(w_query, w_key)[0] @ other == pytest.approx(score, rel=1e-12)
    np.testing.assert_allclose(absorb_query_key(w_query, w_key)[0], (columns_key.T @ columns_query).T, atol=1e-12)


def test_a_gauge_between_query_and_key_or_value_and_output_changes_nothing():
    w_query, w_key, w_value, w_output = projections(n_kv_heads=4)
    rng = np.random.default_rng(9)
    for head in range(4):
        g, h = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=(5, 5)) + 3 * np.eye(5)
        keys, values = slice(head * 3, head * 3 + 3), slice(head * 5, head * 5 + 5)
        changed = [matrix.copy() for matrix in (w_query, w_key, w_value, w_output)]
        changed[0][:, keys] = w_query[:, keys] @ g
        changed[1][:, keys] = w_key[:, keys] @ np.linalg.inv(g).T
        changed[2][:, values] = w_value[:, values] @ h
        changed[3][values] = np.linalg.inv(h) @ w_output[values]
        assert np.abs(changed[0] - w_query).max() > 0.1
        assert_same(absorb_query_key(changed[0], changed[1], 4), absorb_query_key(w_query, w_key, 4))
        assert_same(absorb_value_output(changed[2], changed[3], 4), absorb_value_output(w_value, w_output, 4))


def test_the_absorbed_matrices_have_the_rank_of_a_head():
    w_query, w_key, w_value, w_output = projections(n_kv_heads=4)
    assert (np.linalg.matrix_rank(absorb_query_key(w_query, w_key, 4)) == 3).all()
    assert (np.linalg.matrix_rank(absorb_value_output(w_value, w_output, 4)) == 5).all()


def test_a_value_bias_passes_as_a_constant_except_where_a_row_attends_to_nothing():
    rng = np.random.default_rng(9)
    weights, x, b_value = projections(n_kv_heads=4), rng.normal(size=(7, 11)), rng.normal(size=20)
    mask = np.ones((7, 7), dtype=bool)
    mask[2] = False
    plain = multi_head_attention(x, x, *weights, n_heads=4, mask=mask)
    biased = multi_head_attention(x, x, *weights, n_heads=4, mask=mask, b_value=b_value)
    wanted = np.broadcast_to(b_value @ weights[3], (7, 13)).copy()
    wanted[2] = 0.0
    assert_same(biased - plain, wanted)


def test_a_key_bias_cancels_and_a_query_bias_does_not():
    rng = np.random.default_rng(9)
    weights, x, bias = projections(n_kv_heads=4), rng.normal(size=(7, 11)), rng.normal(size=12)
    plain = multi_head_attention(x, x, *weights, n_heads=4)
    assert_same(multi_head_attention(x, x, *weights, n_heads=4, b_key=bias), plain)
    assert np.abs(multi_head_attention(x, x, *weights, n_heads=4, b_query=bias) - plain).max() > 0.1


def test_with_rope_between_no_one_matrix_serves_all_positions():
    w_query, w_key, *_ = projections(n_heads=1, n_kv_heads=1, d_k=4)
    x = np.random.default_rng(8).normal(size=(5, 11))
    scores = rope(x @ w_query, np.arange(5)) @ rope(x @ w_key, np.arange(5)).T
    assert np.abs(scores - x @ absorb_query_key(w_query, w_key)[0] @ x.T).max() > 0.1
    assert_same(np.diag(scores), np.diag(x @ absorb_query_key(w_query, w_key)[0] @ x.T))  # distance 0
