"""The roofline: which unit is the narrowest, in numbers worked by hand."""

import numpy as np
import pytest

from attn_course import costs

MACHINE = {"peak_flops_per_s": 800e12, "bandwidth_bytes_per_s": 4e12}


def test_the_ridge_is_where_both_roofs_are_equally_high():
    ridge = costs.ridge_point_flops_per_byte(**MACHINE)
    assert ridge == 200.0
    rates = [intensity / costs.roofline_time_s(intensity, 1.0, **MACHINE) for intensity in (ridge / 2, ridge, ridge * 2)]
    assert rates == [400e12, 800e12, 800e12]


@pytest.mark.parametrize(
    ("n_flops", "n_bytes", "time_s"), [(800e12, 1e12, 1.0), (8e12, 4e12, 1.0), (0, 8e12, 2.0), (1600e12, 0, 2.0), (0, 0, 0.0)]
)
def test_the_time_is_that_of_the_narrowest_unit(n_flops, n_bytes, time_s):
    assert costs.roofline_time_s(n_flops, n_bytes, **MACHINE) == time_s


def test_exponentials_are_a_third_roof():
    assert costs.roofline_time_s(8e12, 4e9, **MACHINE, exps=1e12, peak_exps_per_s=4e12) == 0.25
    assert costs.roofline_time_s(8e12, 4e9, **MACHINE, exps=0) == 0.01


def test_a_step_of_decoding_is_bound_by_memory_and_a_long_prompt_by_arithmetic():
    tiles = {"block_q": 512, "block_kv": 128}
    decode = costs.attention_flops(4096, 64, 64) / costs.tiled_attention_bytes(1, 4096, 64, 64, **tiles)
    prompt = costs.attention_flops(4096**2, 64, 64) / costs.tiled_attention_bytes(4096, 4096, 64, 64, **tiles)
    stored = costs.attention_flops(4096**2, 64, 64) / costs.materialised_attention_bytes(4096, 4096, 64, 64)
    assert decode < 1.0 < stored < costs.ridge_point_flops_per_byte(**MACHINE) < prompt


def test_latent_decoding_does_more_for_each_byte_than_any_shared_head():
    latent = 128 * costs.attention_flops(1, 512 + 64, 512) / costs.latent_cache_bytes_per_token(512, 64)
    assert 128 * costs.attention_flops(1, 128, 128) / costs.cache_bytes_per_token(1, 128, 128) == 128.0
    assert latent == pytest.approx(128 * (576 + 512) / 576)


def test_numpy_numbers_are_numbers():
    assert costs.ridge_point_flops_per_byte(np.int64(6), np.float32(3)) == 2.0
