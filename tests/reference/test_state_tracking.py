"""Steps of the delta rule up to 2, and several steps a position, against the definition as loops."""

import numpy as np
import pytest

from attn_course.reference import delta_product_attention, delta_rule_attention
from tests.reference.support import assert_same
from tests.reference.test_recurrences import loop_delta, sequences

FORMS = ("recurrent", "chunked")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [0, 1, 3])
@pytest.mark.parametrize("length", [1, 65, 130])
def test_steps_up_to_2_are_the_definition_in_every_form_with_any_gates(form, features, length):
    query, key, value, beta, log_decay, state = sequences(length, features=features)
    beta = 2 * beta
    beta[:: length // 3 + 1] = 2.0
    options = {"log_decay": log_decay, "initial_state": state, "return_state": True}
    output, after = delta_rule_attention(query, key, value, beta, form=form, **options)
    wanted, s = loop_delta(query, key, value, beta, log_decay, state=state)
    assert_same(output, wanted, 1e-11)
    assert_same(after, s, 1e-11)


@pytest.mark.parametrize("ends", [0.0, 1.0])
def test_beta_may_reach_both_ends_and_keys_may_repeat(ends):
    query, key, value, beta, _, state = sequences(130)
    key[:] = key[np.arange(130) % 3]  # the triangular systems are as ill as they get
    beta[:] = ends
    outputs = [delta_rule_attention(query, key, value, beta, form=form, initial_state=state) for form in FORMS]
    assert_same(outputs[0], loop_delta(query, key, value, beta, state=state)[0], 1e-10)
    assert_same(outputs[1], outputs[0], 1e-10)


# --- several steps a position ------------------------------------------------------------------------


def several(length=7, steps=3, d_k=5, d_v=2, batch=()):
    rng = np.random.default_rng(7)
    key = rng.normal(size=(*batch, length, steps, d_k))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    value, beta = rng.normal(size=(*batch, length, steps, d_v)), rng.uniform(0, 2, size=(*batch, length, steps, 1))
    log_decay = -rng.exponential(0.3, size=(*batch, length, d_k))
    return rng.normal(size=(*batch, length, d_k)), key, value, beta, log_decay, rng.normal(size=(*batch, d_k, d_v))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_product_of_steps_is_the_loop_over_them(form, gated, steps):
    query, key, value, beta, log_decay, start = several(steps=steps)
    s, wanted = start.copy(), []
    for t in range(len(key)):
        s = np.diag(np.exp(log_decay[t])) @ s if gated else s
        for k, v, b in zip(key[t], value[t], beta[t, :, 0], strict=True):
            s = s - b * np.outer(k, k @ s) + b * np.outer(k, v)
        wanted.append(0.7 * query[t] @ s)
    options = {"log_decay": log_decay if gated else None, "form": form, "chunk": 4, "initial_state": start, "scale": 0.7}
    output, after = delta_product_attention(query, key, value, beta, return_state=True, **options)
    assert_same(output, wanted, 1e-12)
    assert_same(after, s, 1e-12)
    if steps == 1:
        assert_same(output, delta_rule_attention(query, key[:, 0], value[:, 0], beta[:, 0], **options), 1e-14)


def test_sequences_of_a_batch_are_on_their_own_and_none_is_none():
    arrays = several(batch=(2, 3))
    output = delta_product_attention(*arrays[:4], log_decay=arrays[4])
    for b, h in np.ndindex(2, 3):
        assert_same(output[b, h], delta_product_attention(*(x[b, h] for x in arrays[:4]), log_decay=arrays[4][b, h]), 1e-13)
    assert delta_product_attention(*(x[..., :0, :] if x is arrays[0] else x[:, :, :0] for x in arrays[:4])).shape == (2, 3, 0, 2)
