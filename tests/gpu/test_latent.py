"""Decoding with absorbed latent attention in Triton's interpreter: one tile of the cache is key and value."""

import pytest
import torch

from attn_course.gpu import attention, decoding, latent_decode
from attn_course.gpu.latent import tile_for
from tests.gpu.support import interpreted, normal

pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")


def query_and_latents(heads=5, q_len=2, kv_len=149, d=27):
    return normal(2, heads, q_len, d), normal(2, kv_len, d, seed=1)


def eager(query, latents, d_latent, *, kv_lengths=None, **options):
    mask = None if kv_lengths is None else torch.arange(latents.shape[1]) < kv_lengths[..., None, None]
    shared = latents[:, None]
    options = {**options, "enable_gqa": True, "return_lse": True, "backend": "eager"}
    return attention(query, shared, shared[..., :d_latent], mask=mask, **options)


@interpreted
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True, "q_offset": 147},
        {"is_causal": True, "q_offset": torch.tensor([[99], [-1]]), "kv_lengths": torch.tensor([[101], [1]])},
    ],
)
def test_it_is_attention_whose_values_are_a_part_of_the_keys(options, number, monkeypatch):
    monkeypatch.setattr(decoding, "number_of_parts", lambda *_: number)
    query, latents = query_and_latents()
    found = latent_decode(query, latents, 19, scale=0.3, **options)
    torch.testing.assert_close(found, eager(query, latents, 19, scale=0.3, **options), rtol=1e-12, atol=1e-13)


@interpreted
def test_more_heads_than_a_tile_has_rows_take_several():
    query, latents = query_and_latents(heads=70, q_len=1, kv_len=40, d=9)
    torch.testing.assert_close(latent_decode(query, latents, 8, scale=0.5), eager(query, latents, 8, scale=0.5), rtol=1e-12, atol=1e-13)
    narrow = [part.bfloat16() for part in (query, latents)]
    output, _ = latent_decode(*narrow, 8, scale=0.5)
    wanted, _ = eager(*(part.double() for part in narrow), 8, scale=0.5)
    assert (output - wanted).norm() / wanted.norm() < 4e-3


@interpreted
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_padding_may_hold_nan_and_nothing_to_see_gives_zero():
    query, latents = query_and_latents()
    lengths = torch.tensor([[100], [0]])
    clean = latent_decode(query, latents, 19, scale=0.3, kv_lengths=lengths)
    latents[:, 100:] = torch.nan
    spoilt = latent_decode(query, latents, 19, scale=0.3, kv_lengths=lengths)
    assert all(torch.equal(*pair) for pair in zip(clean, spoilt, strict=True))
    assert not spoilt[0][1].any()
    assert spoilt[1][1].isneginf().all()
    assert latent_decode(query, latents[:, :0], 19, scale=0.3)[1].isneginf().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((normal(2, 5, 1, 27), normal(3, 9, 27), 19), r"got \(2, 5, 1, 27\) and \(3, 9, 27\)"),
        ((normal(2, 5, 1, 27), normal(2, 9, 27), 27), "1 to 64 features follow; got 27 and 0"),
        ((normal(2, 5, 1, 27), normal(2, 9, 26), 19), "query and key must share d_k, the last axis; got 27 and 26"),
        ((normal(2, 5, 1, 27).requires_grad_(), normal(2, 9, 27), 19), "latent_decode has no backward pass"),
    ],
)
def test_errors_say_what_is_wanted(arguments, message):
    with pytest.raises(ValueError, match=message):
        latent_decode(*arguments, scale=1.0)


def test_the_tile_has_the_rows_of_all_heads_as_far_as_they_fit():
    assert [tile_for(rows, 227 * 1024).block_q for rows in (1, 17, 64, 128)] == [16, 32, 64, 64]
    assert tile_for(128, 99 * 1024).block_q == 32
