"""A few keys chosen: against sorting, loops and plain attention, with an error that the weight left out bounds."""

import numpy as np
import pytest

from attn_course.reference import attention, index_scores, native_sparse_attention, pool_blocks, selection_error_bound, top_k_mask
from tests.reference.support import assert_same, attention_arrays, drawn


@pytest.mark.parametrize("k", [0, 1, 3, 7, 9])
def test_the_largest_scores_are_chosen_of_equal_ones_the_first_and_hidden_ones_never(k):
    scores = np.random.default_rng(7).integers(0, 4, size=(2, 5, 7)).astype(float)
    scores[0, 0], scores[1, 1, 2:] = -np.inf, -np.inf
    mask = top_k_mask(scores, k)
    for row, chosen in zip(scores.reshape(-1, 7), mask.reshape(-1, 7), strict=True):
        order = sorted((j for j in range(7) if row[j] > -np.inf), key=lambda j: (-row[j], j))
        assert np.flatnonzero(chosen).tolist() == sorted(order[:k])


@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_the_error_is_within_the_weight_left_out_and_no_other_k_keys_leave_out_less(k):
    for seed in range(20):
        query, key, value = attention_arrays(seed, spread=1.5)
        whole, weights = attention(query, key, value, return_weights=True)
        mask = top_k_mask(weights, k)
        off = np.abs(attention(query, key, value, mask=mask) - whole).max(axis=-1)
        bound = selection_error_bound(weights, mask, value)
        assert (off <= bound + 1e-12).all()
        left_out = np.where(mask, 0, weights).sum(axis=-1)
        others = np.random.default_rng(seed).permuted(mask, axis=-1)
        worse = np.abs(attention(query, key, value, mask=others) - whole).max(axis=-1)
        assert (worse <= selection_error_bound(weights, others, value) + 1e-12).all()
        assert (left_out <= np.where(others, 0, weights).sum(axis=-1) + 1e-15).all()
    assert (bound == 0).all() == (k == 11)


def test_the_bound_is_attained_by_two_values():
    weights, value = np.array([[0.5, 0.3, 0.2]]), np.array([[4.0], [4.0], [-1.0]])
    mask = np.array([True, True, False])
    assert_same(selection_error_bound(weights, mask, value), [1.0])
    kept = (0.5 * 4 + 0.3 * 4) / 0.8
    assert abs(kept - (0.5 * 4 + 0.3 * 4 - 0.2)) == pytest.approx(1.0)


def test_index_scores_are_the_loop_over_heads():
    query, key, weights = drawn(2, 3, 5, 7), drawn(2, 11, 7), drawn(2, 5, 3)
    got = index_scores(query, key, weights)
    for b in range(2):
        for t in range(5):
            for s in range(11):
                wanted = sum(weights[b, t, h] * max(0.0, float(query[b, h, t] @ key[b, s])) for h in range(3))
                assert got[b, t, s] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("block", [1, 3, 4, 64])
def test_blocks_are_averaged_the_last_as_long_as_it_is(block):
    x = drawn(2, 11, 5)
    wanted = [[np.mean(part[start : start + block], axis=0) for start in range(0, 11, block)] for part in x]
    assert_same(pool_blocks(x, block), wanted)
    assert pool_blocks(x[:, :0], block).shape == (2, 0, 5)


GATES = {"means": [1.0, 0, 0], "blocks": [0, 1.0, 0], "window": [0, 0, 1.0]}


@pytest.mark.parametrize(("block", "n_selected", "left"), [(3, 4, 0), (1, 11, 0), (64, 1, 0), (3, 9, 4)])
def test_all_blocks_selected_or_the_whole_window_is_causal_attention(block, n_selected, left):
    query, key, value = attention_arrays(q_len=11)
    plain = attention(query, key, value, is_causal=True)
    sizes = {"block": block, "n_selected": n_selected}
    assert_same(native_sparse_attention(query, key, value, np.array([GATES["blocks"]] * 11), **sizes, left=left), plain)
    assert_same(native_sparse_attention(query, key, value, np.array([GATES["window"]] * 11), **sizes, left=10), plain)


def test_blocks_of_one_key_that_ended_are_all_keys_so_far():
    query, key, value = attention_arrays(q_len=11)
    means = native_sparse_attention(query, key, value, np.array([GATES["means"]] * 11), block=1, n_selected=1, left=0)
    assert_same(means, attention(query, key, value, is_causal=True))


@pytest.mark.parametrize("branch", GATES)
def test_no_branch_sees_the_future(branch):
    query, key, value = attention_arrays(batch=(), q_len=11)
    gates, sizes = np.array([GATES[branch]] * 11), {"block": 3, "n_selected": 2, "left": 2}
    before = native_sparse_attention(query, key, value, gates, **sizes)
    key[7:], value[7:] = 1e6, -1e6
    after = native_sparse_attention(query, key, value, gates, **sizes)
    assert_same(after[:7], before[:7])
    assert not np.allclose(after[8:], before[8:])


def test_a_first_block_that_is_not_over_gives_no_mean_and_selection_reads_the_own_block():
    query, key, value = attention_arrays(batch=(), q_len=11)
    sizes = {"block": 4, "n_selected": 1, "left": 0}
    assert (native_sparse_attention(query, key, value, np.array([GATES["means"]] * 11), **sizes)[:3] == 0).all()
    own = native_sparse_attention(query, key, value, np.array([GATES["blocks"]] * 11), **sizes)
    for t in range(11):
        part = slice(t // 4 * 4, t + 1)
        assert_same(own[t], attention(query[t : t + 1], key[part], value[part])[0])
