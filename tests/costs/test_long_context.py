"""What a long context costs, against the caches of the reference, and loops that multiply."""

import numpy as np
import pytest

from attn_course import costs, reference
from attn_course.costs.long_context import WINDOW_PATTERNS
from tests.costs.counting import Tally, attend, values


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("length", [0, 3, 7, 8, 29])
@pytest.mark.parametrize("n_sinks", [0, 2])
def test_caches_of_global_layers_and_windows_have_the_bytes_predicted(length, n_sinks):
    new, kept = (np.ones((2, length, 3), np.float32), np.ones((2, length, 5), np.float32)), 0
    for cache in (reference.KeyValueCache(), *(reference.RollingCache(left=4, n_sinks=n_sinks) for _ in range(3))):
        keys, values, *_ = cache.append(*new)
        kept += sum(part.nbytes for part in getattr(cache, "slots", (keys, values)))
    sizes = {"n_global": 1, "n_window": 3, "left": 4, "n_sinks": n_sinks, "bytes_per_number": 4}
    assert costs.mixed_cache_bytes(length, 2, 3, 5, **sizes) == kept


def test_published_patterns_save_what_their_ratio_says():
    for windows_per_global, window, source in WINDOW_PATTERNS.values():
        assert "arXiv:" in source
        if windows_per_global is not None:
            mixed = costs.mixed_cache_bytes(10**9, 1, 1, 1, n_global=1, n_window=windows_per_global, left=window - 1)
            whole = costs.mixed_cache_bytes(10**9, 1, 1, 1, n_global=1 + windows_per_global, n_window=0, left=0)
            assert mixed / whole == pytest.approx(1 / (1 + windows_per_global), rel=1e-4)


@pytest.mark.parametrize("lefts", [[2, 3, 1], [4], [0, 5], []])
def test_a_stack_reaches_as_far_as_its_windows_add_up(lefts):
    seen = np.eye(23)
    for left in lefts:
        seen = seen @ reference.window_mask(23, 23, left, 0)
    assert costs.reach_length(lefts) == np.flatnonzero(seen[:, 0]).max()
    assert costs.reach_length([*lefts, None]) is None


@pytest.mark.parametrize(("lengths", "shared"), [([5], 0), ([1, 4, 5], 0), ([9, 11, 8], 7), ([9, 9], 8), ([13, 5, 7], 4), ([], 0)])
def test_pages_are_counted_as_the_pool_hands_them_out(lengths, shared):
    cache = reference.PagedCache(40, 4)
    for name, length in enumerate(lengths):
        if shared and name:
            cache.fork(0, name)
        else:
            cache.append(name, *(np.ones((2, shared or length, width), np.float32) for width in (3, 5)))
    for name, length in enumerate(lengths):
        cache.append(name, *(np.ones((2, length - cache.lengths[name], width), np.float32) for width in (3, 5)))
    used = [block for block, holders in enumerate(cache.holders) if holders]
    kept = sum(part[used].nbytes for part in cache.pool or ())
    assert costs.paged_cache_bytes(lengths, 2, 3, 5, block_size=4, shared=shared, bytes_per_number=4) == kept


@pytest.mark.parametrize(("length", "bits", "group"), [(13, 8, 4), (13, 16, 5), (3, 8, 4), (0, 8, 4)])
def test_a_cache_of_whole_bytes_has_the_bytes_predicted(length, bits, group):
    cache = reference.QuantisedCache(bits, group)
    cache.append(normal(2, length, 3).astype(np.float32), normal(2, length, 5).astype(np.float32))
    parts = [array for part in (*cache.keys, *cache.values) for array in (part.codes, part.step, part.least)]
    kept = sum(array.nbytes for array in (*parts, cache.waiting))
    assert costs.quantised_cache_bytes(length, 2, 3, 5, bits=bits, group=group, bytes_per_number=4) == kept


@pytest.mark.parametrize("k", [0, 1, 3, 11, 20])
def test_selected_attention_takes_the_flops_that_loops_take(k):
    tally, (query, key, value) = Tally(), (normal(11, 3), normal(11, 3) + 1, normal(11, 5))
    index_query, index_key, weights = normal(2, 11, 4), normal(11, 4), normal(11, 2)
    scores = np.full((11, 11), -np.inf)
    q, x, w = (tally.numbers(array) for array in (index_query, index_key, weights))
    for t in range(11):
        for s in range(t + 1):
            heads = [(q[h, t] * x[s]).sum() for h in range(2)]
            scores[t, s] = sum(float(w[t, h] * tally.numbers(max(0.0, float(heads[h]))).item()) for h in range(2))
    np.testing.assert_allclose(scores[10], reference.index_scores(index_query, index_key, weights)[10], atol=1e-12)
    mask = reference.top_k_mask(scores, k)
    output = attend(*map(tally.numbers, (query, key, value)), mask, tally)
    np.testing.assert_allclose(values(output), reference.attention(query, key, value, mask=mask), atol=1e-12)
    assert tally.flops == costs.selected_attention_flops(11, 3, 5, k=k, n_index_heads=2, d_index=4)


def test_two_maps_take_two_attentions_or_one_product_less():
    tally, (one, other, value) = Tally(), (normal(5, 3), normal(7, 3), normal(7, 11))
    for sign in (1, -1):
        attend(*map(tally.numbers, (sign * one, other, value)), np.ones((5, 7), dtype=bool), tally)
    assert tally.flops == costs.differential_attention_flops(35, 3, 11)
    assert tally.flops - costs.differential_attention_flops(35, 3, 11, one_product=True) == costs.projection_flops(5, 7, 11)
