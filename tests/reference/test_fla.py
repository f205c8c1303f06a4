"""The delta rule with gates against numbers from outside: what the plain functions of flash-linear-attention return.

Those are `naive_recurrent_gated_delta_rule`, `naive_recurrent_kda` and `naive_recurrent_gated_delta_product` of fla-core 0.6.0, called
on `given` below (axes batch, len, heads, features; scale 1 / sqrt(d_k); all in float32).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from attn_course.reference import delta_product_attention, delta_rule_attention

STORED = json.loads((Path(__file__).parent / "fla_naive.json").read_text(encoding="utf-8"))
HEADS, LENGTH, STEPS, D_K, D_V = 2, 7, 3, 3, 5


def given(rule):
    """Query, unit keys, values, steps to 2, decays and a state, heads first; numbers of few digits, so that float32 holds them."""
    rng, length = np.random.default_rng(7), LENGTH * (STEPS if rule == "product" else 1)
    query, value = rng.normal(size=(HEADS, LENGTH, D_K)), rng.normal(size=(HEADS, length, D_V))
    key = rng.normal(size=(HEADS, length, D_K))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    beta, state = rng.uniform(0, 2, size=(HEADS, length, 1)), rng.normal(size=(HEADS, D_K, D_V))
    log_decay = -rng.exponential(0.5, size=(HEADS, LENGTH, D_K if rule == "channel" else 1))
    return [array.round(3) for array in (query, key, value, beta, log_decay, state)]


@pytest.mark.parametrize("form", ["recurrent", "chunked"])
@pytest.mark.parametrize("rule", ["scalar", "channel", "product"])
def test_the_gated_rules_are_those_of_flash_linear_attention(rule, form):
    query, key, value, beta, log_decay, state = given(rule)
    options = {"log_decay": log_decay, "initial_state": state, "return_state": True, "form": form, "chunk": 4, "scale": D_K**-0.5}
    if rule == "product":
        several = (array.reshape(HEADS, LENGTH, STEPS, -1) for array in (key, value, beta))
        output, after = delta_product_attention(query, *several, **options)
    else:
        output, after = delta_rule_attention(query, key, value, beta, **options)
    for got, stored in zip((output, after), STORED[rule], strict=True):
        np.testing.assert_allclose(got, np.array(stored), rtol=0, atol=2e-6)
