"""torch's nn.MultiheadAttention and the course give the same output after weights and masks are converted."""

import numpy as np
import pytest
import torch

from attn_course import notation, reference
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal, tensor

E, HEADS, BATCH, Q_LEN, KV_LEN = 6, 3, 2, 5, 7


def drawn(d_key=E, d_value=E, bias=True):
    """Weights of the course whose biases are not zero."""
    widths = {"w_query": (E, E), "w_key": (d_key, E), "w_value": (d_value, E), "w_output": (E, E)}
    weights = {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(widths.items())}
    biases = {f"b_{role}": normal(E, seed=seed) for seed, role in enumerate(("query", "key", "value", "output"))}
    return weights | (biases if bias else {})


def module(weights):
    """torch's module with these weights, in float64."""
    kdim, vdim = (len(weights[name]) for name in ("w_key", "w_value"))
    made = torch.nn.MultiheadAttention(E, HEADS, bias="b_query" in weights, kdim=kdim, vdim=vdim, batch_first=True, dtype=torch.float64)
    state = notation.to_torch_weights(weights)
    assert_own_memory(state, *weights.values())
    made.load_state_dict({name: tensor(array) for name, array in state.items()})
    return made.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("d_key", "d_value"), [(E, E), (11, 11), (11, 5), (E, 5)])
def test_the_module_computes_what_the_course_computes(d_key, d_value, bias):
    weights = drawn(d_key, d_value, bias)
    x, key, value = normal(BATCH, Q_LEN, E), normal(BATCH, KV_LEN, d_key), normal(BATCH, KV_LEN, d_value)
    output, maps = module(weights)(tensor(x), tensor(key), tensor(value), average_attn_weights=False)
    # the course takes keys and values from one input, so both are put side by side and rows of zeros ignore the other's features
    both = np.concatenate([key, value], axis=-1)
    wide = weights | {
        "w_key": np.pad(weights["w_key"], ((0, d_value), (0, 0))),
        "w_value": np.pad(weights["w_value"], ((d_key, 0), (0, 0))),
    }
    wanted = reference.multi_head_attention(x, both, **wide, n_heads=HEADS, return_weights=True)
    assert_equal_to(output.detach(), wanted[0])
    assert_equal_to(maps.detach(), wanted[1])


def test_square_weights_used_without_transposing_would_be_noticed():
    right, x = drawn(), normal(BATCH, Q_LEN, E)
    wanted = module(right)(tensor(x), tensor(x), tensor(x), need_weights=False)[0].detach()
    wrong = [{name: right[name].T} for name in ("w_query", "w_key", "w_value", "w_output")]
    for change in (*wrong, {"w_query": right["w_key"], "w_key": right["w_query"]}):
        assert_differs(reference.multi_head_attention(x, x, **(right | change), n_heads=HEADS), wanted)


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
    weights = drawn(11, 11)
    x, y = normal(BATCH, Q_LEN, E), normal(BATCH, given[0].shape[-1] if given else KV_LEN, 11)
    options = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
    tensors = {name: None if mask is None else tensor(mask) for name, mask in options.items()}
    wanted, maps = module(weights)(tensor(x), tensor(y), tensor(y), average_attn_weights=False, **tensors)
    wanted = wanted.detach()
    assert torch.isfinite(wanted).all()  # no query of this test is without keys
    mask = notation.from_torch_masks(**options, n_heads=HEADS)
    got = reference.multi_head_attention(x, y, **weights, n_heads=HEADS, mask=mask, return_weights=True)
    assert_equal_to(got[0], wanted)
    assert_equal_to(got[1], maps.detach())
    if mask is not None:
        assert_own_memory(mask, *given)
        assert_differs(reference.multi_head_attention(x, y, **weights, n_heads=HEADS), wanted)


def test_a_boolean_and_a_float_mask_become_one_float_mask():
    hidden, added = np.array([[False, True], [False, False]]), np.array([[0.5, -np.inf], [0.0, 1.0]])
    mask = notation.from_torch_masks(hidden, added)
    np.testing.assert_array_equal(mask, np.broadcast_to(np.where(hidden, -np.inf, added[:, None, None, :]), mask.shape))


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


def test_a_mask_inverted_twice_is_the_same_mask():
    mask = normal(3, 5) > 0
    np.testing.assert_array_equal(notation.invert_mask(notation.invert_mask(mask)), mask, strict=True)
    assert_own_memory(notation.invert_mask(mask), mask)
