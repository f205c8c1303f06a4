"""The layer computes what the reference and torch's own module compute, and decodes as it trains."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attn_course import reference
from attn_course.modules import MultiHeadAttention, rope
from tests.modules.support import normal

BATCH, Q_LEN, KV_LEN, D_MODEL, HEADS = 2, 5, 7, 12, 4


def layer(*arguments, **options):
    torch.manual_seed(3)
    made = MultiHeadAttention(*arguments, **options).double()
    for name, parameter in made.named_parameters():
        if name.startswith("b_"):
            nn.init.normal_(parameter)
    return made


def by_reference(made, x, other, **options):
    weights = {name: part.detach().numpy() for name, part in made.named_parameters()}
    return reference.multi_head_attention(x.numpy(), other.numpy(), **weights, n_heads=made.n_heads, n_kv_heads=made.n_kv_heads, **options)


def torch_module(*, bias=True, kdim=None, **options):
    torch.manual_seed(5)
    made = nn.MultiheadAttention(D_MODEL, HEADS, bias=bias, kdim=kdim, vdim=kdim, batch_first=True, dtype=torch.float64, **options)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.eval()


@settings(max_examples=60)
@given(st.data())
def test_output_and_weights_are_those_of_the_reference(data):
    draw, choose = data.draw, st.sampled_from
    kv_heads, cross, has_bias = draw(choose([1, 2, 3, 6])), draw(st.booleans()), draw(st.booleans())
    sizes = {"d_k": draw(choose([None, 5])), "d_v": draw(choose([None, 3])), "d_key_value": 11 if cross else None}
    options = {"window": draw(choose([None, (2, 1)])), "scale": draw(choose([None, 0.4])), "softcap": draw(choose([None, 2.0]))}
    made = layer(12, 6, n_kv_heads=kv_heads, bias=has_bias, output_bias=draw(st.booleans()), **sizes, **options)
    x, other = normal(BATCH, Q_LEN, 12), normal(BATCH, KV_LEN, 11)
    kv_len = KV_LEN if cross else Q_LEN
    kind, is_causal = draw(choose(["none", "bool", "float"])), draw(st.booleans())
    keep = normal(*draw(choose([(BATCH, 1, Q_LEN, kv_len), (6, 1, kv_len), (Q_LEN, kv_len)])), seed=2) > -0.5
    mask = {"none": None, "bool": keep, "float": torch.where(keep, normal(*keep.shape, seed=4), -math.inf)}[kind]
    call = (x, other) if cross else (x,)

    expected = by_reference(
        made, x, other if cross else x, mask=None if mask is None else mask.numpy(), is_causal=is_causal, return_weights=True, **options
    )
    with torch.no_grad():
        fast = made(*call, mask=mask, is_causal=is_causal)
        output, weights = made(*call, mask=mask, is_causal=is_causal, return_weights=True)
    np.testing.assert_allclose(fast, expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(output, expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(weights, expected[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kdim", [None, 11])
@pytest.mark.parametrize("masked", [True, False])
def test_it_gives_what_the_module_of_torch_gives_with_the_mask_the_other_way_round(bias, kdim, masked):
    theirs = torch_module(bias=bias, kdim=kdim)
    ours = MultiHeadAttention.from_torch(theirs)
    x, other = normal(BATCH, Q_LEN, D_MODEL), normal(BATCH, KV_LEN, kdim or D_MODEL)
    hide = torch.zeros(Q_LEN, KV_LEN, dtype=torch.bool)
    padding = torch.zeros(BATCH, KV_LEN, dtype=torch.bool)
    if masked:
        hide[1, 2:5], hide[3, 0], padding[1, 4:] = True, True, True
    wanted, wanted_weights = theirs(x, other, other, attn_mask=hide, key_padding_mask=padding, average_attn_weights=False)
    got, weights = ours(x, other, mask=~(hide | padding[:, None, None]), return_weights=True)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)
    torch.testing.assert_close(weights, wanted_weights, rtol=0, atol=1e-10)
    torch.testing.assert_close(ours(x, other, mask=~hide, lengths=(~padding).sum(dim=1)), wanted, rtol=0, atol=1e-10)


def test_a_copied_layer_has_memory_of_its_own_and_the_gradients_of_the_module():
    theirs = torch_module()
    ours = MultiHeadAttention.from_torch(theirs, is_causal=True)
    x = normal(BATCH, Q_LEN, D_MODEL)
    ours(x).square().sum().backward()
    hide = torch.ones(Q_LEN, Q_LEN, dtype=torch.bool).triu(1)
    theirs(x, x, x, attn_mask=hide, need_weights=False)[0].square().sum().backward()
    d_query, d_key, d_value = theirs.in_proj_weight.grad.chunk(3)
    for ours_part, theirs_part in (
        (ours.w_query, d_query),
        (ours.w_key, d_key),
        (ours.w_value, d_value),
        (ours.w_output, theirs.out_proj.weight.grad),
    ):
        torch.testing.assert_close(ours_part.grad, theirs_part.T, rtol=0, atol=1e-9)
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
    assert ours.w_query.any()


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_rotations_are_applied_to_queries_and_keys_at_the_positions_given(layout):
    made, x, where = layer(D_MODEL, 3, rope_theta=30.0, rope_layout=layout), normal(1, Q_LEN, D_MODEL), torch.tensor([4, 0, 9, 2, 7])
    query, key, value = (x[0] @ weight for weight in (made.w_query, made.w_key, made.w_value))
    heads = []
    for one in range(3):
        part = slice(4 * one, 4 * one + 4)
        turned = [rope(tensor[:, part], where, 30.0, layout) for tensor in (query, key)]
        heads.append((turned[0] @ turned[1].T / 2.0).softmax(dim=-1) @ value[:, part])
    torch.testing.assert_close(made(x, positions=where)[0], torch.cat(heads, dim=-1) @ made.w_output)
    shifted = made(x, positions=where + 100)  # only differences of positions count
    torch.testing.assert_close(shifted, made(x, positions=where))
    assert not torch.allclose(made(x), made(x, positions=where))


def test_what_padding_holds_changes_nothing_and_a_sequence_without_keys_gives_the_bias():
    made, x, lengths = layer(D_MODEL, HEADS, bias=True), normal(3, Q_LEN, D_MODEL), torch.tensor([5, 2, 0])
    padded = x.clone()
    padded[1, 2:] = math.nan
    got, wanted = made(padded, lengths=lengths), made(x, lengths=lengths)
    torch.testing.assert_close(got[1, :2], wanted[1, :2])
    torch.testing.assert_close(made(x[1:2, :2]), wanted[1:2, :2])
    torch.testing.assert_close(wanted[2], made.b_output.expand(Q_LEN, D_MODEL))


def test_padding_that_neither_asks_nor_answers_keeps_its_nan_to_itself():
    made, x = layer(D_MODEL, HEADS), normal(1, Q_LEN, D_MODEL)
    x[0, 2:] = math.nan
    real = torch.arange(Q_LEN) < 2
    output = made(x.requires_grad_(), mask=real[:, None] & real)
    assert not output[0, 2:].any()
    (d_x,) = torch.autograd.grad(output.sum(), x)
    assert d_x[0, :2].isfinite().all()
    assert d_x[0, :2].any()
    assert not d_x[0, 2:].any()


def test_lengths_join_a_float_mask():
    made, x = layer(D_MODEL, HEADS), normal(BATCH, Q_LEN, D_MODEL)
    bias, lengths = normal(HEADS, Q_LEN, Q_LEN), torch.tensor([3, 5])
    hidden = torch.where(torch.arange(Q_LEN) < lengths[:, None, None, None], bias, -math.inf)
    torch.testing.assert_close(made(x, mask=bias, lengths=lengths), made(x, mask=hidden))


def test_one_matrix_for_all_is_cut_into_queries_keys_and_values():
    made = layer(D_MODEL, HEADS, n_kv_heads=2, d_v=5, bias=True)
    packed, bias = normal(D_MODEL, 12 + 6 + 10), normal(28, seed=9)
    made.load_packed(packed, bias)
    assert torch.equal(torch.cat([made.w_query, made.w_key, made.w_value], dim=1), packed)
    assert torch.equal(torch.cat([made.b_query, made.b_key, made.b_value]), bias)


def test_a_block_of_gpt2_gives_what_its_own_formula_gives():
    w_attn, b_attn, w_proj, b_proj = (normal(*shape, seed=seed) for seed, shape in enumerate(((12, 36), (36,), (12, 12), (12,))))
    made = MultiHeadAttention.from_gpt2(w_attn, b_attn, w_proj, b_proj, n_heads=HEADS)
    x = normal(BATCH, Q_LEN, 12)
    query, key, value = (part.view(BATCH, Q_LEN, HEADS, 3).transpose(1, 2) for part in (x @ w_attn + b_attn).split(12, dim=2))
    scores = (query @ key.transpose(-1, -2) / math.sqrt(3)).masked_fill(torch.ones(Q_LEN, Q_LEN).triu(1).bool(), -math.inf)
    merged = (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(BATCH, Q_LEN, 12)
    torch.testing.assert_close(made(x), merged @ w_proj + b_proj, rtol=0, atol=1e-11)
