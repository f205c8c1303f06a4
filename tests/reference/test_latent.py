"""Latent attention against the paper's equations as loops; rebuilt = absorbed; decoding from the cache; RoPE decoupled."""

from dataclasses import fields
from functools import partial

import numpy as np
import pytest

from attn_course.reference import KeyValueCache, latent_attention, latent_attention_absorbed, rope
from tests.reference.support import assert_same, assert_untouched, latent_weights

FORMS = {"rebuilt": latent_attention, "absorbed": latent_attention_absorbed}
N_HEADS, D_HEAD, D_ROPE, D_V, D_MODEL, D_QUERY, D_LATENT = 3, 5, 4, 7, 11, 13, 6
some_weights = partial(latent_weights, D_MODEL, N_HEADS, D_QUERY, D_LATENT, D_HEAD, D_ROPE, D_V, spread=0.4)


def rms_norm(gain):
    return lambda latent: latent / np.sqrt((latent**2).mean(axis=-1, keepdims=True) + 1e-6) * gain


def rotated(vector, position):
    """RoPE of one vector: each pair is a complex number."""
    half = len(vector) // 2
    turned = (vector[:half] + 1j * vector[half:]) * np.exp(1j * position * 10_000.0 ** (-np.arange(half) / half))
    return np.concatenate([turned.real, turned.imag])


def by_the_paper(h, weights, positions, norm_q=lambda c: c, norm_kv=lambda c: c):
    """Eqs. 37 to 47 of the DeepSeek-V2 paper for one sequence: columns, one token, head and key at a time."""
    w = {field.name: getattr(weights, field.name).T for field in fields(weights)}  # W x with columns x
    u = np.zeros((len(h), D_MODEL))
    for t in range(len(h)):
        c_q = norm_q(w["w_query_down"] @ h[t])
        heads = []
        for i in range(N_HEADS):
            content = slice(i * D_HEAD, (i + 1) * D_HEAD)
            q_c = (w["w_query_up"] @ c_q)[content]
            q_r = rotated((w["w_query_rope"] @ c_q)[i * D_ROPE : (i + 1) * D_ROPE], positions[t])
            scores, values = [], []
            for j in range(t + 1):
                c_kv = norm_kv(w["w_latent_down"] @ h[j])
                k_r = rotated(w["w_key_rope"] @ h[j], positions[j])
                q, k = np.concatenate([q_c, q_r]), np.concatenate([(w["w_key_up"] @ c_kv)[content], k_r])
                scores.append(q @ k / np.sqrt(D_HEAD + D_ROPE))
                values.append((w["w_value_up"] @ c_kv)[i * D_V : (i + 1) * D_V])
            terms = np.exp(np.array(scores) - max(scores))
            heads.append(terms / terms.sum() @ np.array(values))
        u[t] = w["w_output"] @ np.concatenate(heads)
    return u


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_both_forms_are_the_equations_of_the_paper(form):
    rng, weights = np.random.default_rng(8), some_weights()
    x, positions = rng.normal(size=(2, 7, D_MODEL)) * 2, np.array([[3, 9, 2, 40, 41, 0, 5], [0, 1, 2, 3, 4, 5, 6]])
    norms = {"norm_q": rms_norm(rng.normal(size=D_QUERY)), "norm_kv": rms_norm(rng.normal(size=D_LATENT))}
    got = assert_untouched(form, x, weights, n_heads=N_HEADS, positions=positions)
    assert_same(got, np.array([by_the_paper(x[b], weights, positions[b]) for b in range(2)]))
    normed = form(x, weights, n_heads=N_HEADS, positions=positions, **norms)
    assert_same(normed, np.array([by_the_paper(x[b], weights, positions[b], **norms) for b in range(2)]))
    assert np.abs(normed - got).max() > 0.1


@pytest.mark.parametrize("first", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("second", FORMS.values(), ids=FORMS)
def test_decoding_from_the_cache_is_the_full_pass_and_the_forms_share_caches(first, second):
    x, weights = np.random.default_rng(8).normal(size=(2, 9, D_MODEL)), some_weights()
    positions = np.array([0, 1, 2, 5, 6, 7, 30, 31, 32])
    full = latent_attention(x, weights, n_heads=N_HEADS, positions=positions, norm_kv=rms_norm(1.5))
    cache, parts = KeyValueCache(), []
    for form, new in ((first, slice(0, 4)), (second, slice(4, 4)), (second, slice(4, 5)), (first, slice(5, 7)), (second, slice(7, 9))):
        at = {"positions": positions[new], "cache": cache, "norm_kv": rms_norm(1.5)}
        parts.append(form(x[:, new], weights, n_heads=N_HEADS, **at))
        assert len(cache) == new.stop
    assert_same(np.concatenate(parts, axis=1), full)


def test_the_cache_holds_one_latent_vector_and_one_rotary_key_a_token():
    x, weights, positions = np.random.default_rng(8).normal(size=(2, 5, D_MODEL)), some_weights(), np.arange(5) * 3
    cache = KeyValueCache()
    latent_attention(x, weights, n_heads=N_HEADS, positions=positions, cache=cache, norm_kv=rms_norm(2.0))
    latents, rotary_keys = cache.append(np.zeros((2, 0, D_LATENT)), np.zeros((2, 0, D_ROPE)))
    assert_same(latents, rms_norm(2.0)(x @ weights.w_latent_down))
    assert_same(rotary_keys, rope(x @ weights.w_key_rope, positions))
    assert latents[0, 0].size + rotary_keys[0, 0].size == D_LATENT + D_ROPE  # against 2 n_heads d_head for plain heads
