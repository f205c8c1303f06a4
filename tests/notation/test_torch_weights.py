"""torch's nn.MultiheadAttention and the course give the same output after weights and masks are converted."""

import numpy as np
import pytest
import torch

from attn_course import notation, reference
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal, tensor

E, HEADS, BATCH, Q_LEN, KV_LEN = 6, 3, 2, 5, 7


def module(d_key_value=None, bias=True):
    """A module whose biases are not zero, in float64."""
    torch.manual_seed(7)
    made = torch.nn.MultiheadAttention(E, HEADS, bias=bias, kdim=d_key_value, vdim=d_key_value, batch_first=True, dtype=torch.float64)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made.eval()


def arrays(made):
    return {name: part.detach().numpy() for name, part in made.state_dict().items()}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_key_value", [None, 11])
def test_the_course_computes_what_the_module_computes(d_key_value, bias):
    made = module(d_key_value, bias)
    x, y = normal(BATCH, Q_LEN, E), normal(BATCH, KV_LEN, d_key_value or E)
    wanted, weights = made(tensor(x), tensor(y), tensor(y), average_attn_weights=False)
    converted = notation.from_torch_weights(arrays(made))
    got = reference.multi_head_attention(x, y, **converted, n_heads=HEADS, return_weights=True)
    assert_equal_to(got[0], wanted.detach())
    assert_equal_to(got[1], weights.detach())
    assert_own_memory(converted, *arrays(made).values())


@pytest.mark.parametrize("d_key_value", [E, 11])
def test_the_module_computes_what_the_course_computes(d_key_value):
    widths = {"w_query": (E, E), "w_key": (d_key_value, E), "w_value": (d_key_value, E), "w_output": (E, E)}
    weights = {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(widths.items())}
    weights |= {f"b_{role}": normal(E, seed=seed) for seed, role in enumerate(("query", "key", "value", "output"))}
    made = module(d_key_value)
    state = notation.to_torch_weights(weights)
    assert_own_memory(state, *weights.values())
    made.load_state_dict({name: tensor(array) for name, array in state.items()})
    x, y = normal(BATCH, Q_LEN, E), normal(BATCH, KV_LEN, d_key_value)
    got = made(tensor(x), tensor(y), tensor(y), need_weights=False)[0]
    assert_equal_to(got.detach(), reference.multi_head_attention(x, y, **weights, n_heads=HEADS))


@pytest.mark.parametrize(("kdim", "vdim", "bias"), [(None, None, True), (None, None, False), (11, 11, True), (11, 5, False), (E, 5, True)])
def test_there_and_back_is_the_same_state(kdim, vdim, bias):
    state = arrays(torch.nn.MultiheadAttention(E, HEADS, bias=bias, kdim=kdim, vdim=vdim))
    back = notation.to_torch_weights(notation.from_torch_weights(state))
    assert back.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(back[name], array, strict=True)


def test_square_weights_used_without_transposing_would_be_noticed():
    made = module()
    x = normal(BATCH, Q_LEN, E)
    wanted = made(tensor(x), tensor(x), tensor(x), need_weights=False)[0].detach()
    right = notation.from_torch_weights(arrays(made))
    assert_equal_to(reference.multi_head_attention(x, x, **right, n_heads=HEADS), wanted)
    for name in ("w_query", "w_key", "w_value", "w_output"):
        wrong = right | {name: right[name].T}
        assert_differs(reference.multi_head_attention(x, x, **wrong, n_heads=HEADS), wanted)
    swapped = right | {"w_query": right["w_key"], "w_key": right["w_query"]}
    assert_differs(reference.multi_head_attention(x, x, **swapped, n_heads=HEADS), wanted)


MASKS = {
    "none": (None, None),
    "causal": (~np.tri(Q_LEN, KV_LEN, dtype=bool), None),
    "padding": (None, np.arange(KV_LEN) >= np.array([[4], [6]])),
    "causal and padding": (~np.tri(Q_LEN, KV_LEN, dtype=bool), np.arange(KV_LEN) >= np.array([[4], [6]])),
    "one for each head": (normal(BATCH * HEADS, Q_LEN, KV_LEN) > 0.5, None),
    "one for each head and padding": (normal(BATCH * HEADS, Q_LEN, KV_LEN - 1) > 0.5, np.arange(KV_LEN - 1) >= np.array([[4], [6]])),
    "added": (normal(Q_LEN, KV_LEN), None),
    "added for each head": (normal(BATCH * HEADS, Q_LEN, KV_LEN), None),
    "added and padding": (normal(Q_LEN, KV_LEN), np.where(np.arange(KV_LEN) >= np.array([[4], [6]]), -np.inf, 0.0)),
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks_of_the_module_hide_the_same_keys_after_conversion(kind):
    attn_mask, key_padding_mask = MASKS[kind]
    given = [mask for mask in MASKS[kind] if mask is not None]
    made, (x, y) = module(11), (normal(BATCH, Q_LEN, E), normal(BATCH, given[0].shape[-1] if given else KV_LEN, 11))
    options = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
    tensors = {name: None if mask is None else tensor(mask) for name, mask in options.items()}
    wanted = made(tensor(x), tensor(y), tensor(y), need_weights=False, **tensors)[0].detach()
    assert torch.isfinite(wanted).all()  # no query of this test is without keys
    mask = notation.from_torch_masks(**options, n_heads=HEADS)
    got = reference.multi_head_attention(x, y, **notation.from_torch_weights(arrays(made)), n_heads=HEADS, mask=mask)
    assert_equal_to(got, wanted)
    if mask is not None:
        assert_own_memory(mask, *given)
        unmasked = reference.multi_head_attention(x, y, **notation.from_torch_weights(arrays(made)), n_heads=HEADS)
        assert_differs(unmasked, wanted)


def test_a_boolean_and_a_float_mask_become_one_float_mask():
    hidden, added = np.array([[False, True], [False, False]]), np.array([[0.5, -np.inf], [0.0, 1.0]])
    mask = notation.from_torch_masks(hidden, added)
    assert_equal_to(np.exp(mask), np.exp(np.where(hidden, -np.inf, added[:, None, None, :])))


def test_the_two_functions_of_torch_have_opposite_polarity():
    query, key, value = normal(1, 1, Q_LEN, 2), normal(1, 1, KV_LEN, 2), normal(1, 1, KV_LEN, 3)
    hidden = MASKS["causal"][0]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    assert_equal_to(
        sdpa(*map(tensor, (query, key, value)), attn_mask=tensor(notation.invert_mask(hidden))),
        reference.attention(query, key, value, mask=notation.from_torch_masks(hidden)),
    )
    assert_equal_to(
        sdpa(*map(tensor, (query, key, value)), is_causal=True), reference.attention(query, key, value, mask=notation.invert_mask(hidden))
    )


def test_masks_there_and_back():
    mask = normal(3, 5) > 0
    np.testing.assert_array_equal(notation.invert_mask(notation.invert_mask(mask)), mask, strict=True)
    for dtype in (np.float16, np.float32, np.float64):
        added = notation.additive_mask(mask, dtype)
        assert added.dtype == dtype
        np.testing.assert_array_equal(notation.boolean_mask(added), mask, strict=True)


def test_added_and_boolean_masks_give_the_same_attention():
    query, key, value, mask = normal(5, 3), normal(7, 3), normal(7, 2), normal(5, 7) > 0
    mask[2] = False
    wanted = reference.attention(query, key, value, mask=mask)
    assert_equal_to(reference.attention(query, key, value, mask=notation.additive_mask(mask)), wanted)
    assert_differs(reference.attention(query, key, value, mask=notation.invert_mask(mask)), wanted)
