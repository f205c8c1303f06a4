"""Cache and state sizes against the arrays that the reference keeps."""

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.test_flops import LATENT
from tests.reference.support import latent_weights


@pytest.mark.parametrize(("n_kv_heads", "dtype"), [(6, np.float64), (2, np.float32), (1, np.float16)])
def test_a_cache_grows_by_keys_and_values_of_the_heads_that_have_their_own(n_kv_heads, dtype):
    cache = reference.KeyValueCache()
    sizes = []
    for step in (3, 1, 1):
        kept = cache.append(np.ones((n_kv_heads, step, 5), dtype), np.ones((n_kv_heads, step, 7), dtype))
        sizes.append(sum(array.nbytes for array in kept))
    per_token = costs.cache_bytes_per_token(n_kv_heads, 5, 7, bytes_per_number=np.dtype(dtype).itemsize)
    assert sizes == [3 * per_token, 4 * per_token, 5 * per_token]


def test_a_latent_cache_grows_by_one_latent_vector_and_one_rotary_key():
    cache = reference.KeyValueCache()
    x = np.ones((5, LATENT.d_model))
    reference.latent_attention(x, latent_weights(**vars(LATENT)), n_heads=LATENT.n_heads, positions=np.arange(5), cache=cache)
    kept = cache.append(np.ones((0, LATENT.d_latent)), np.ones((0, LATENT.d_rope)))
    assert sum(array.nbytes for array in kept) == 5 * costs.latent_cache_bytes_per_token(LATENT.d_latent, LATENT.d_rope, bytes_per_number=8)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_linear_state_has_the_same_size_after_any_length(normalize):
    for length in (1, 13):
        rng = np.random.default_rng(7)
        query, key, value = (rng.normal(size=(2, length, width)) for width in (3, 3, 5))
        options = {"feature_map": reference.elu_features, "normalize": True} if normalize else {}
        _, state = reference.linear_attention(query, key, value, return_state=True, **options)
        parts = state if normalize else (state,)
        assert sum(part.nbytes for part in parts) == costs.linear_state_bytes(2, 3, 5, bytes_per_number=8, normalize=normalize)


def test_layers_multiply_everything():
    assert costs.cache_bytes_per_token(2, 5, 7, n_layers=11) == 11 * costs.cache_bytes_per_token(2, 5, 7)
    assert costs.latent_cache_bytes_per_token(5, 7, n_layers=11) == 11 * costs.latent_cache_bytes_per_token(5, 7)
    assert costs.linear_state_bytes(2, 5, 7, n_layers=11) == 11 * costs.linear_state_bytes(2, 5, 7)


def test_the_latent_cache_of_deepseek_v2_is_that_of_two_and_a_quarter_groups():
    latent = costs.latent_cache_bytes_per_token(4 * 128, 128 // 2)
    assert latent / costs.cache_bytes_per_token(1, 128, 128) == 2.25
    assert round(costs.cache_bytes_per_token(128, 128, 128) / latent, 1) == 56.9
