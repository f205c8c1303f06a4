"""Absorbed matrices against sums over the features of each head, shared heads too."""

import numpy as np
import pytest

from attn_course.reference import absorb_query_key, absorb_value_output
from tests.reference.support import assert_untouched


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
