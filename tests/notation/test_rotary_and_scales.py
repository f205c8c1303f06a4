"""RoPE layouts and scales: another order or another factor in the weights, the same attention."""

import math

import numpy as np
import pytest
import torch

from attn_course import notation, reference
from attn_course.notation import halves_from_interleaved, interleaved_from_halves
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal, tensor

D_MODEL, HEADS, D_HEAD, LENGTH = 7, 3, 10, 6
POSITIONS = np.array([4, 0, 9, 1, 3, 100])


def rotated_attention(x, w_query, w_key, b_query, layout):
    heads = [reference.split_heads(x @ w_query + b_query, HEADS), reference.split_heads(x @ w_key, HEADS)]
    query, key = (reference.rope(head, POSITIONS, layout=layout) for head in heads)
    return reference.attention(query, key, reference.split_heads(x @ normal(D_MODEL, HEADS * 2), HEADS))


def inputs():
    return normal(LENGTH, D_MODEL), normal(D_MODEL, HEADS * D_HEAD), normal(D_MODEL, HEADS * D_HEAD, seed=8), normal(HEADS * D_HEAD)


@pytest.mark.parametrize(
    ("convert", "before", "after"), [(interleaved_from_halves, "halves", "interleaved"), (halves_from_interleaved, "interleaved", "halves")]
)
def test_reordered_weights_in_the_other_layout_give_the_same_attention(convert, before, after):
    x, *weights = inputs()
    wanted = rotated_attention(x, *weights, layout=before)
    converted = [convert(weight, n_heads=HEADS) for weight in weights]
    assert_equal_to(rotated_attention(x, *converted, layout=after), wanted)
    assert_differs(rotated_attention(x, *weights, layout=after), wanted)
    wrong = [convert(weight) for weight in weights]  # across the heads
    assert_differs(rotated_attention(x, *wrong, layout=after), wanted)
    inverse = {interleaved_from_halves: halves_from_interleaved, halves_from_interleaved: interleaved_from_halves}[convert]
    assert_differs(rotated_attention(x, *(inverse(weight, n_heads=HEADS) for weight in weights), layout=after), wanted)


def test_rotation_and_reordering_commute():
    x = normal(2, LENGTH, D_HEAD)
    rotated = reference.rope(x, POSITIONS, layout="halves")
    assert_equal_to(interleaved_from_halves(rotated), reference.rope(interleaved_from_halves(x), POSITIONS, layout="interleaved"))


def test_the_halves_of_neox_rotated_by_its_own_rule():
    """q cos + rotate_half(q) sin with cos and sin repeated, as GPT-NeoX writes it."""
    x = normal(LENGTH, D_HEAD)
    angles = torch.outer(tensor(POSITIONS.astype(float)), 10_000.0 ** (-torch.arange(0, D_HEAD, 2, dtype=torch.float64) / D_HEAD)).repeat(
        1, 2
    )
    first, second = tensor(x).chunk(2, dim=-1)
    wanted = tensor(x) * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()
    here = reference.rope(interleaved_from_halves(x), POSITIONS, layout="interleaved")
    assert_equal_to(halves_from_interleaved(here), wanted)


@pytest.mark.parametrize(("shape", "n_heads"), [((12,), 3), ((5, 12), 1), ((2, 3, 4), 2), ((3, 0), 1)])
def test_layouts_there_and_back(shape, n_heads):
    x = normal(*shape)
    for there, back in ((interleaved_from_halves, halves_from_interleaved), (halves_from_interleaved, interleaved_from_halves)):
        np.testing.assert_array_equal(back(there(x, n_heads=n_heads), n_heads=n_heads), x, strict=True)
        np.testing.assert_array_equal(np.sort(there(x, n_heads=n_heads)), np.sort(x))
        assert_own_memory(there(x, n_heads=n_heads), x)


@pytest.mark.parametrize("new_scale", [1.0, 1.0 / 3, -2.0, 1.0 / math.sqrt(D_MODEL)])
def test_a_scale_moves_into_the_query_weights(new_scale):
    x, w_query, w_key, b_query = inputs()
    w_value, w_output = normal(D_MODEL, HEADS * 2), normal(HEADS * 2, D_MODEL)
    wanted = reference.multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=HEADS, b_query=b_query)
    scales = {"scale": 1.0 / math.sqrt(D_HEAD), "new_scale": new_scale}
    weight, bias = (notation.rescale_query(part, **scales) for part in (w_query, b_query))
    got = reference.multi_head_attention(x, x, weight, w_key, w_value, w_output, n_heads=HEADS, b_query=bias, scale=new_scale)
    assert_equal_to(got, wanted)
    unscaled = reference.multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=HEADS, b_query=b_query, scale=new_scale)
    assert_differs(unscaled, wanted)
    assert_own_memory(weight, w_query)


def test_a_temperature_is_a_scale():
    query, key, value = normal(5, 3), normal(7, 3), normal(7, 2)
    temperature = 2.5
    weights = reference.softmax(reference.dot_scores(query, key), temperature=temperature)
    rescaled = notation.rescale_query(query, scale=1.0 / temperature, new_scale=1.0 / math.sqrt(3))
    assert_equal_to(reference.attention(rescaled, key, value), weights @ value)


def test_torch_with_a_scale_of_its_own_gives_what_the_default_gives_after_rescaling():
    query, key, value = normal(1, 5, 3), normal(1, 7, 3), normal(1, 7, 2)
    wanted = torch.nn.functional.scaled_dot_product_attention(*map(tensor, (query, key, value)), scale=0.7)
    assert_equal_to(reference.attention(notation.rescale_query(query, scale=0.7, new_scale=1 / math.sqrt(3)), key, value), wanted)


def test_scales_there_and_back():
    weight = normal(3, 5).astype(np.float32)
    there = notation.rescale_query(weight, scale=0.25, new_scale=2.0)
    np.testing.assert_array_equal(notation.rescale_query(there, scale=2.0, new_scale=0.25), weight, strict=True)


def test_powers_of_two_with_a_converted_scale_are_the_same_softmax():
    query, key, value = normal(5, 3), normal(7, 3), normal(7, 2)
    output, lse = reference.attention(query, key, value, return_lse=True)
    powers = np.exp2(query @ key.T * notation.base2_from_natural(1.0 / math.sqrt(3)))
    assert_equal_to(powers @ value / powers.sum(axis=-1, keepdims=True), output)
    lse_base2 = np.log2(powers.sum(axis=-1))
    assert_equal_to(notation.natural_from_base2(lse_base2), lse)
    assert_equal_to(notation.base2_from_natural(lse), lse_base2)
    assert_differs(lse_base2, lse)


def test_bases_there_and_back_keep_dtype_and_infinities():
    lse = np.array([-np.inf, 0.0, 3.0], dtype=np.float32)
    back = notation.natural_from_base2(notation.base2_from_natural(lse))
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, lse, rtol=1e-6)
    assert notation.natural_from_base2(notation.base2_from_natural(7)) == pytest.approx(7.0, rel=1e-15)
