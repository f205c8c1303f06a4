"""The roofline: which unit is the narrowest, in numbers worked by hand."""

import numpy as np
import pytest

from attn_course import costs

MACHINE = {"peak_flops_per_s": 800e12, "bandwidth_bytes_per_s": 4e12}


def test_the_ridge_is_where_both_roofs_are_equally_high():
    ridge = costs.ridge_point_flops_per_byte(**MACHINE)
    assert ridge == 200.0
    assert costs.attainable_flops_per_s(ridge, **MACHINE) == 800e12
    assert costs.attainable_flops_per_s(ridge / 2, **MACHINE) == 400e12
    assert costs.attainable_flops_per_s(ridge * 2, **MACHINE) == 800e12
    assert costs.attainable_flops_per_s(0.0, **MACHINE) == 0.0


@pytest.mark.parametrize(
    ("n_flops", "n_bytes", "time_s"), [(800e12, 1e12, 1.0), (8e12, 4e12, 1.0), (0, 8e12, 2.0), (1600e12, 0, 2.0), (0, 0, 0.0)]
)
def test_the_time_is_that_of_the_narrowest_unit(n_flops, n_bytes, time_s):
    assert costs.roofline_time_s(n_flops, n_bytes, **MACHINE) == time_s


def test_time_and_height_of_the_roof_agree():
    for n_bytes in (1e9, 1e11, 1e13):
        rate = costs.attainable_flops_per_s(costs.arithmetic_intensity_flops_per_byte(3e13, n_bytes), **MACHINE)
        assert costs.roofline_time_s(3e13, n_bytes, **MACHINE) == pytest.approx(3e13 / rate, rel=1e-14)


def test_exponentials_are_a_third_roof():
    assert costs.roofline_time_s(8e12, 4e9, **MACHINE, exps=1e12, peak_exps_per_s=4e12) == 0.25
    assert costs.roofline_time_s(8e12, 4e9, **MACHINE, exps=0) == 0.01


def test_a_step_of_decoding_is_bound_by_memory_and_a_long_prompt_by_arithmetic():
    ridge = costs.ridge_point_flops_per_byte(**MACHINE)
    decode = costs.arithmetic_intensity_flops_per_byte(
        costs.attention_flops(4096, 64, 64), costs.tiled_attention_bytes(1, 4096, 64, 64, block_q=128, block_kv=128)
    )
    prompt = costs.arithmetic_intensity_flops_per_byte(
        costs.attention_flops(4096**2, 64, 64), costs.tiled_attention_bytes(4096, 4096, 64, 64, block_q=512, block_kv=128)
    )
    stored = costs.arithmetic_intensity_flops_per_byte(
        costs.attention_flops(4096**2, 64, 64), costs.materialised_attention_bytes(4096, 4096, 64, 64)
    )
    assert decode < 1.0 < stored < ridge < prompt


def test_latent_decoding_does_more_for_each_byte_than_any_shared_head():
    flops = costs.attention_flops(1, 512 + 64, 512) * 128
    latent = costs.arithmetic_intensity_flops_per_byte(flops, costs.latent_cache_bytes_per_token(512, 64))
    multi_query = costs.arithmetic_intensity_flops_per_byte(
        128 * costs.attention_flops(1, 128, 128), costs.cache_bytes_per_token(1, 128, 128)
    )
    assert multi_query == 128.0
    assert latent == pytest.approx(128 * (576 + 512) / 576)


def test_numpy_numbers_are_numbers():
    assert costs.arithmetic_intensity_flops_per_byte(np.int64(6), np.float32(3)) == 2.0
