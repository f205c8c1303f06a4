"""Cache and state sizes against the arrays that the reference keeps."""

import numpy as np
import pytest

from attn_course import costs, reference


@pytest.mark.parametrize(("n_kv_heads", "dtype"), [(6, np.float64), (2, np.float32), (1, np.float16)])
def test_a_cache_grows_by_keys_and_values_of_the_heads_that_have_their_own(n_kv_heads, dtype):
    cache = reference.KeyValueCache()
    sizes = []
    for step in (3, 1, 1):
        kept = cache.append(np.ones((n_kv_heads, step, 5), dtype), np.ones((n_kv_heads, step, 7), dtype))
        sizes.append(sum(array.nbytes for array in kept))
    per_token = costs.cache_bytes_per_token(n_kv_heads, 5, 7, bytes_per_number=np.dtype(dtype).itemsize)
    assert sizes == [3 * per_token, 4 * per_token, 5 * per_token]


@pytest.mark.parametrize("normalize", [False, True])
def test_a_linear_state_has_the_same_size_after_any_length(normalize):
    for length in (1, 13):
        rng = np.random.default_rng(7)
        query, key, value = (rng.normal(size=(2, length, width)) for width in (3, 3, 5))
        options = {"feature_map": reference.elu_features, "normalize": True} if normalize else {}
        _, state = reference.linear_attention(query, key, value, return_state=True, **options)
        parts = state if normalize else (state,)
        assert sum(part.nbytes for part in parts) == costs.linear_state_bytes(2, 3, 5, bytes_per_number=8, normalize=normalize)


@pytest.mark.parametrize("length", [0, 1, 13])
def test_a_mixed_stack_keeps_states_and_the_caches_of_every_so_many_layers(length):
    sizes = {"n_heads": 6, "n_kv_heads": 2, "d_k": 3, "d_v": 5}
    rng = np.random.default_rng(7)
    query, key, value = (rng.normal(size=(6, length, width)) for width in (3, 3, 5))
    _, state = reference.delta_rule_attention(query, key, value, np.ones((length, 1)), return_state=True)
    kept = reference.KeyValueCache().append(key[:2], value[:2])
    for layers, every, attending in ((11, 4, 2), (11, 1, 11), (3, 4, 0), (0, 4, 0)):
        found = costs.hybrid_cache_bytes(length, layers, every=every, **sizes, bytes_per_number=8, bytes_per_state_number=8)
        assert found == (layers - attending) * state.nbytes + attending * sum(part.nbytes for part in kept)
