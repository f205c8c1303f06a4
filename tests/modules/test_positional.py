"""A layer whose positions can be changed, against the plain layer, the reference, and itself with a cache."""

import numpy as np
import pytest
import torch

from attn_course import reference
from attn_course.gpu import attention
from attn_course.modules import MultiHeadAttention, PositionalAttention
from tests.modules.support import assert_close, normal
from tests.reference.support import refusals, unlike

D_MODEL, HEADS, D_K = 12, 3, 6
KINDS = {
    "none": {},
    "rope": {"frequencies": reference.rope_frequencies(D_K, 50.0)},
    "partial": {"frequencies": reference.rope_frequencies(4, 50.0), "rope_layout": "interleaved"},
    "yarn": {"frequencies": reference.yarn_frequencies(D_K, 4.0, 5, 50.0), "temperature": reference.yarn_temperature(4.0)},
    "alibi": {"slopes": reference.alibi_slopes(HEADS)},
    "both": {"frequencies": (1.0,), "slopes": (0.5, 0.25, 0.0), "window": (3, 0)},
}


def layer(kind=PositionalAttention, **options):
    options = {"d_k": D_K, "is_causal": True, "n_kv_heads": 1, "backend": "eager"} | options
    return kind(D_MODEL, HEADS, **options, generator=torch.Generator().manual_seed(3)).double()


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_computes_what_the_reference_computes(kind):
    options = KINDS[kind]
    made, x = layer(**options), normal(2, 7, D_MODEL)
    weights = {name: parameter.detach().numpy() for name, parameter in made.named_parameters()}
    roles = {"query": HEADS, "key": 1, "value": 1}
    query, key, value = (reference.split_heads(x.numpy() @ weights[f"w_{role}"], heads) for role, heads in roles.items())
    frequencies, layout = np.array(options.get("frequencies", ())), options.get("rope_layout", "halves")
    query, key = (reference.rotate_pairs(rows, np.arange(7), frequencies, layout) for rows in (query, key))
    distances = np.abs(np.arange(7)[:, None] - np.arange(7))
    mask = -np.array(options["slopes"])[:, None, None] * distances if "slopes" in options else None
    call = {"mask": mask, "scale": 1 / np.sqrt(D_K) / options.get("temperature", 1.0), "window": options.get("window")}
    output = reference.attention(query, key, value, is_causal=True, enable_gqa=True, **call)
    np.testing.assert_allclose(made(x).detach(), reference.merge_heads(output) @ weights["w_output"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("call", [{}, {"lengths": torch.tensor([5, 7])}, {"is_causal": False}])
def test_without_positions_and_with_the_usual_ones_it_is_the_plain_layer(call):
    x = normal(2, 7, D_MODEL)
    theta = {"rope_theta": 50.0}
    for options, plain in (({}, {}), (KINDS["rope"], theta), (theta, theta)):
        made = layer(**options, bias=True, softcap=2.0, scale=0.3)
        other = layer(MultiHeadAttention, **plain, bias=True, softcap=2.0, scale=0.3)
        for got, wanted in zip(made(x, **call, return_weights=True), other(x, **call, return_weights=True), strict=True):
            assert_close(got, wanted)


def test_penalties_are_a_mask_to_add_and_go_with_any_other():
    x, hide = normal(2, 7, D_MODEL), torch.rand(7, 7, generator=torch.Generator().manual_seed(1)) < 0.7
    made, plain = layer(**KINDS["alibi"]), layer(MultiHeadAttention)
    penalties = torch.from_numpy(reference.alibi_bias(HEADS, 7, 7))
    assert_close(made(x), plain(x, mask=penalties))
    assert_close(layer(slopes=[0.0] * HEADS)(x), plain(x))
    assert_close(made(x, mask=hide), plain(x, mask=penalties.masked_fill(~hide, -torch.inf)))
    assert_close(made(x, mask=0.5 * penalties), plain(x, mask=1.5 * penalties))
    spoilt = x.clone()
    spoilt[0, 5:] = torch.nan
    assert_close(made(spoilt, lengths=torch.tensor([5, 7]))[0, :5], made(x)[0, :5])


def test_positions_may_be_given_and_stretched():
    x, where = normal(2, 7, D_MODEL), torch.arange(7) + 100
    made = layer(**KINDS["rope"])
    assert_close(made(x, positions=where), made(x))
    usual = made(x, positions=where / 4.0)
    made.frequencies = reference.linear_frequencies(D_K, 4.0, 50.0)
    assert_close(made(x), usual)
    assert not torch.allclose(made(x), layer(**KINDS["rope"])(x))


def test_another_function_may_attend_with_the_keywords_of_attention():
    made, x, seen = layer(**KINDS["both"]), normal(2, 7, D_MODEL), {}
    usual = made(x)

    def attend(query, key, value, **options):
        seen.update(options, shapes=(query.shape, key.shape, value.shape))
        return attention(query, key, 2.0 * value, **options)

    made.attend = attend
    assert_close(made(x), 2.0 * usual)
    assert seen["shapes"] == ((2, HEADS, 7, D_K), (2, 1, 7, D_K), (2, 1, 7, D_MODEL // HEADS))
    assert (seen["is_causal"], seen["enable_gqa"], seen["window"], seen["q_offset"]) == (True, True, (3, 0), 0)


def test_a_layer_in_bfloat16_still_turns_by_exact_angles_and_tells_far_distances_apart():
    x = normal(1, 600, D_MODEL)
    for kind in ("yarn", "alibi"):
        made = layer(**KINDS[kind])
        wanted, narrow = made(x), made.bfloat16()(x.bfloat16())
        assert narrow.dtype == torch.bfloat16
        assert_close(narrow.double(), wanted, 0.05)


X = normal(2, 5, D_MODEL)
MALFORMED = """
layer(frequencies=[1.0] * 4)(X) -> ValueError: frequencies must have one axis of at most d_k / 2 = 3 pairs; got shape (4,)
layer(frequencies=[[1.0]])(X) -> ValueError: frequencies must have one axis of at most d_k / 2 = 3 pairs; got shape (1, 1)
layer(slopes=[1.0, 0.5])(X) -> ValueError: slopes must be one for each of 3 heads; got shape (2,)
layer(temperature=0.0)(X) -> ValueError: temperature must be positive; got 0.0
layer(rope_theta=50.0, frequencies=[1.0]) -> ValueError: rope_theta must be left out where frequencies say how pairs turn
layer(frequencies=[1.0], rope_layout="pairs")(X) -> ValueError: layout must be "halves" or "interleaved"; got 'pairs'
layer()(X, X) -> ValueError: x_key_value must be left out: positions are those of x
layer(frequencies=[1.0])(X, positions=torch.arange(4))
    -> ValueError: positions must have the axes (..., len) with len = 5, one for each row of x; got (1, 4)
layer()(X, positions=torch.arange(5)) -> ValueError: positions must be left out: this layer has no frequencies
"""


@pytest.mark.usefixtures("no_shape_check")
def test_what_does_not_fit_is_named():
    assert unlike(refusals(MALFORMED, globals())) == []
