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


def test_numpy_numbers_are_numbers():
    assert costs.ridge_point_flops_per_byte(np.int64(6), np.float32(3)) == 2.0
