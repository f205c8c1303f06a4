"""torch's nn.MultiheadAttention and the course give the same output after weights and masks are converted."""

import numpy as np
import pytest
import torch

from attn_course import notation, reference
from tests.notation.support import assert_differs, assert_equal_to, assert_own_memory, normal, tensor

E, HEADS, BATCH, Q_LEN, KV_LEN = 6, 3, 2, 5, 7


def drawn(d_key=E, d_value=E, bias=True):
    widths = {"w_query": (E, E), "w_key": (d_key, E), "w_value": (d_value, E), "w_output": (E, E)}
    weights = {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(widths.items())}
    biases = {f"b_{role}": normal(E, seed=seed) for seed, role in enumerate(("query", "key", "value", "output"))}
    return weights | (biases if bias else {})


def module(weights):
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


HIDDEN = ~np.tri(Q_LEN, KV_LEN, dtype=bool)


def test_the_module_hides_where_a_mask_is_true():
    weights, x, y = drawn(11, 11), normal(BATCH, Q_LEN, E), normal(BATCH, KV_LEN, 11)
    wanted = module(weights)(tensor(x), tensor(y), tensor(y), attn_mask=tensor(HIDDEN), need_weights=False)[0].detach()
    assert_equal_to(reference.multi_head_attention(x, y, **weights, n_heads=HEADS, mask=notation.invert_mask(HIDDEN)), wanted)
    assert_differs(reference.multi_head_attention(x, y, **weights, n_heads=HEADS), wanted)


def test_the_other_function_of_torch_has_the_opposite_polarity():
    query, key, value = normal(1, 1, Q_LEN, 2), normal(1, 1, KV_LEN, 2), normal(1, 1, KV_LEN, 3)
    wanted = reference.attention(query, key, value, mask=notation.invert_mask(HIDDEN))
    for options in ({"attn_mask": tensor(notation.invert_mask(HIDDEN))}, {"is_causal": True}):
        assert_equal_to(torch.nn.functional.scaled_dot_product_attention(*map(tensor, (query, key, value)), **options), wanted)


def test_a_mask_inverted_twice_is_the_same_mask():
    mask = normal(3, 5) > 0
    np.testing.assert_array_equal(notation.invert_mask(notation.invert_mask(mask)), mask, strict=True)
    assert_own_memory(notation.invert_mask(mask), mask)
