"""Packed projections: as the libraries use them, and as the course does after unpacking."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attn_course import notation, reference
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal, tensor

sdpa = torch.nn.functional.scaled_dot_product_attention
D_MODEL, HEADS, LENGTH = 6, 3, 5


def attend(x, unpacked, w_output, biases, b_output, **options):
    names = ("query", "key", "value")
    weights = {f"w_{name}": part for name, part in zip(names, unpacked, strict=True)} | {
        f"b_{name}": part for name, part in zip(names, biases, strict=True)
    }
    return reference.multi_head_attention(x, x, **weights, w_output=w_output, b_output=b_output, **options)


def test_gpt_2_packs_blocks_of_columns_and_computes_x_w():
    x, c_attn, b_attn, c_proj, b_proj = (
        normal(*shape) for shape in ((2, LENGTH, D_MODEL), (D_MODEL, 3 * D_MODEL), (3 * D_MODEL,), (D_MODEL, D_MODEL), (D_MODEL,))
    )
    packed = tensor(x) @ tensor(c_attn) + tensor(b_attn)
    query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in packed.split(D_MODEL, dim=-1))
    wanted = sdpa(query, key, value, is_causal=True).transpose(1, 2).flatten(-2) @ tensor(c_proj) + tensor(b_proj)

    unpacked, biases = (notation.unpack_query_key_value(part, n_heads=HEADS) for part in (c_attn, b_attn))
    assert_equal_to(attend(x, unpacked, c_proj, biases, b_proj, n_heads=HEADS, is_causal=True), wanted)
    assert_own_memory(unpacked, c_attn)
    other = notation.unpack_query_key_value(c_attn, n_heads=HEADS, order="groups")
    assert_differs(attend(x, other, c_proj, biases, b_proj, n_heads=HEADS, is_causal=True), wanted)


def test_gpt_neox_packs_head_by_head_and_computes_x_w_transposed():
    x = normal(2, LENGTH, D_MODEL)
    torch.manual_seed(7)
    query_key_value, dense = (torch.nn.Linear(D_MODEL, width, dtype=torch.float64) for width in (3 * D_MODEL, D_MODEL))
    d_head = D_MODEL // HEADS
    packed = query_key_value(tensor(x)).view(2, LENGTH, HEADS, 3 * d_head).transpose(1, 2)
    wanted = dense(sdpa(*packed.chunk(3, dim=-1), is_causal=True).transpose(1, 2).flatten(-2)).detach()

    weight, bias, w_output, b_output = (part.detach().numpy() for layer in (query_key_value, dense) for part in (layer.weight, layer.bias))
    unpacked, biases = (notation.unpack_query_key_value(part, n_heads=HEADS, order="groups") for part in (weight.T, bias))
    assert_equal_to(attend(x, unpacked, w_output.T, biases, b_output, n_heads=HEADS, is_causal=True), wanted)
    other = notation.unpack_query_key_value(weight.T, n_heads=HEADS)
    assert_differs(attend(x, other, w_output.T, biases, b_output, n_heads=HEADS, is_causal=True), wanted)


@pytest.mark.parametrize(("n_heads", "n_kv_heads", "d_k", "d_v"), [(6, 2, 3, 3), (6, 2, 3, 5), (4, 1, 2, 2), (3, 3, 2, 7)])
def test_groups_hold_the_queries_of_a_key_with_it(n_heads, n_kv_heads, d_k, d_v):
    group = n_heads // n_kv_heads
    d_model, width = 7, n_kv_heads * (group * d_k + d_k + d_v)
    x, weight, w_output = normal(2, LENGTH, d_model), normal(width, d_model), normal(n_heads * d_v, d_model)
    packed = (tensor(x) @ tensor(weight).T).unflatten(-1, (n_kv_heads, -1))  # (batch, len, n_kv_heads, features of a group)
    query, key, value = packed.split([group * d_k, d_k, d_v], dim=-1)
    query = query.reshape(2, LENGTH, n_heads, d_k).transpose(1, 2)
    wanted = sdpa(query, key.transpose(1, 2), value.transpose(1, 2), enable_gqa=True).transpose(1, 2).flatten(-2) @ tensor(w_output)

    unpacked = notation.unpack_query_key_value(
        weight.T, n_heads=n_heads, n_kv_heads=n_kv_heads, d_v=None if d_k == d_v else d_v, order="groups"
    )
    got = reference.multi_head_attention(x, x, *unpacked, w_output, n_heads=n_heads, n_kv_heads=n_kv_heads)
    assert_equal_to(got, wanted)


sizes = st.integers(0, 3)


@given(st.integers(1, 3), st.integers(1, 3), sizes, sizes, st.lists(sizes, max_size=2), st.sampled_from(["blocks", "groups"]))
def test_packing_undoes_unpacking_and_unpacking_undoes_packing(n_kv_heads, group, d_k, d_v, lead, order):
    heads = {"n_heads": n_kv_heads * group, "n_kv_heads": n_kv_heads}
    parts = tuple(
        normal(*lead, count * width, seed=at)
        for at, (count, width) in enumerate(((n_kv_heads * group, d_k), (n_kv_heads, d_k), (n_kv_heads, d_v)))
    )
    packed = notation.pack_query_key_value(*parts, **heads, order=order)
    assert_own_memory(packed, *parts)
    for got, wanted in zip(notation.unpack_query_key_value(packed, **heads, d_v=d_v, order=order), parts, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)
    other = normal(*lead, packed.shape[-1])
    back = notation.pack_query_key_value(*notation.unpack_query_key_value(other, **heads, d_v=d_v, order=order), **heads, order=order)
    np.testing.assert_array_equal(back, other, strict=True)


def test_with_one_head_all_orders_agree():
    packed = normal(5, 12)
    blocks, groups = (notation.unpack_query_key_value(packed, n_heads=1, order=order) for order in ("blocks", "groups"))
    for a, b in zip(blocks, groups, strict=True):
        np.testing.assert_array_equal(a, b)
