"""What lesson absorption gives its reader for a latent layer."""

import numpy as np

from attn_course.lessons.absorption.experiments_given import drawn_weights, widened

H, D_C, D_K, D_V, D_R = 3, 5, 2, 7, 4


def test_a_widened_key_is_the_key_made_and_the_rotary_part_as_it_is_and_a_widened_value_drops_it():
    rng = np.random.default_rng(0)
    up_key, up_value = rng.normal(size=(H, D_C, D_K)), rng.normal(size=(H, D_C, D_V))
    latent, rotary = rng.normal(size=D_C), rng.normal(size=D_R)
    wide_key, wide_value = widened(up_key, up_value, D_R)
    kept = np.append(latent, rotary)
    for h in range(H):
        np.testing.assert_allclose(kept @ wide_key[h], [*(latent @ up_key[h]), *rotary])
        np.testing.assert_allclose(kept @ wide_value[h], latent @ up_value[h])


def test_all_heads_share_the_way_down_and_the_rotary_key():
    w = drawn_weights(H, 11, D_C, D_K, D_R)
    assert {name: matrix.shape for name, matrix in w.items()} == {
        "down": (11, D_C),
        "key_rope": (1, 11, D_R),
        "query": (H, 11, D_K),
        "query_rope": (H, 11, D_R),
        "up_key": (H, D_C, D_K),
        "up_value": (H, D_C, D_K),
        "output": (H * D_K, 11),
    }
