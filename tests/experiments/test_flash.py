"""The ways to compute attention that lesson flash compares, and what its conclusions say."""

import numpy as np
import torch

from attn_course.lessons.flash.experiments import (
    LENGTHS,
    WAYS,
    WIDTHS,
    conclude_errors,
    conclude_roofline,
    eager,
    in_tiles,
    stored_whole,
    without_maximum,
)
from attn_course.reference import attention


def inputs(dtype=np.float32):
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape).astype(dtype) for shape in ((7, 3), (130, 3), (130, 5))]


def test_all_ways_compute_attention_in_float32():
    query, key, value = inputs()
    exact = attention(*(array.astype(np.float64) for array in (query, key, value)))
    for way in (stored_whole, without_maximum, in_tiles):
        np.testing.assert_allclose(way(query, key, value, np.float32), exact, rtol=1e-4, atol=1e-5)


def test_every_way_returns_its_own_dtype():
    for name, way in WAYS.items():
        assert way(*inputs(np.float16)).dtype == np.dtype(name.partition(",")[0])


def test_a_state_in_float16_rounds_more_than_one_in_float32():
    query, key, value = inputs(np.float16)
    exact = attention(*(array.astype(np.float64) for array in (query, key, value)))
    wide, narrow = (np.abs(in_tiles(query, key, value, np.float16, state) - exact).sum() for state in (np.float32, np.float16))
    assert wide < narrow


def test_the_eager_way_is_attention_and_writes_over_its_tables():
    query, key, value = (torch.from_numpy(array) for array in inputs())
    np.testing.assert_allclose(eager(query, key, value), attention(*inputs()), rtol=1e-4, atol=1e-5)
    tables = torch.full((3, 7, 130), torch.nan)
    np.testing.assert_array_equal(eager(query, key, value, tables), eager(query, key, value))
    np.testing.assert_allclose(tables[2] @ value, eager(query, key, value))


def result(eager_s, in_use_s, sdpa_s, softmax_s=0.1, new_softmax_s=0.2):
    times = {name: {str(w): [t] * len(LENGTHS) for w, t in zip(WIDTHS, by_width, strict=True)} for name, by_width in
             (("eager_s", eager_s), ("eager_in_use_s", in_use_s), ("sdpa_s", sdpa_s))}  # fmt: skip
    return {"copy_bytes_per_s": 1e10, "softmax_s": softmax_s, "new_softmax_s": new_softmax_s, **times}


def test_the_conclusions_on_time_compare_the_longest_sequence():
    assert set(conclude_roofline(result([6.0, 4.0, 2.0], [2.0, 2.0, 1.4], [1.0, 1.0, 1.0])).values()) == {True}
    found = conclude_roofline(result([0.5, 4.0, 2.0], [0.5, 3.0, 1.8], [1.0, 1.0, 1.0], softmax_s=0.001, new_softmax_s=0.0005))
    assert set(found.values()) == {False}


def test_the_conclusions_on_rounding_name_what_fails_and_rank_the_rest():
    errors = dict.fromkeys(WAYS, 1e-7) | {
        "float16, stored whole": 3e-4,
        "float16, in tiles": 1e-4,
        "float16, in tiles, state in float16": 2e-4,
    }
    found = conclude_errors({"plain scores": errors, "wide scores": errors | {"float16, no maximum": None, "float32, in tiles": 1e-4}})
    assert found["not finite"] == ["float16, no maximum, wide scores"]
    assert found["float16, best first"]["plain scores"][0] == "float16, in tiles"
    assert found["float32 below"] is False
