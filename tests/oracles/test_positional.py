"""Stretched, partial and penalised positions against those of the transformers package."""

import numpy as np
import pytest
import torch

from attn_course import reference as ref
from attn_course.modules import PositionalAttention

FLOAT32 = 3e-7  # theirs, of numbers up to 1


OURS = {
    "default": lambda: ref.rope_frequencies(26, 100.0),
    "partial": lambda: ref.rope_frequencies(26, 100.0),
    "linear": lambda: ref.linear_frequencies(26, 3.0, 100.0),
    "dynamic": lambda: ref.ntk_frequencies(26, 3.0 * 160 / 64 - (3.0 - 1.0), 100.0),
    "yarn": lambda: ref.yarn_frequencies(26, 5.0, 64, 100.0, ramp="pairs"),
    "yarn-long": lambda: ref.yarn_frequencies(128, 4.0, 4096, ramp="pairs"),
    "yarn-gpt-oss": lambda: ref.yarn_frequencies(64, 32.0, 4096, 150_000.0, ramp="pairs", truncate=False),
    "yarn-turns": lambda: ref.yarn_frequencies(34, 3.0, 300, 500.0, slow=2.0, fast=17.0, ramp="pairs"),
}
FACTORS = {"yarn": 5.0, "yarn-long": 4.0, "yarn-gpt-oss": 32.0, "yarn-turns": 3.0}


@pytest.mark.parametrize("name", OURS)
def test_frequencies_are_theirs(outside, name):
    found = outside("frequencies")
    np.testing.assert_allclose(OURS[name](), found[f"{name}.frequencies"], rtol=0, atol=FLOAT32)
    assert ref.yarn_temperature(FACTORS.get(name, 1.0)) == pytest.approx(float(found[f"{name}.factor"]) ** -2, abs=1e-6)


def test_where_all_pairs_are_fast_theirs_are_all_stretched(outside):
    """Their first place is cut off at no number, their last at d_k - 1, and between them the ramp runs backwards."""
    found, usual = outside("frequencies")["yarn-all-fast.frequencies"], ref.rope_frequencies(10, 3.0)
    np.testing.assert_allclose(found, usual / 3.0, rtol=0, atol=FLOAT32)
    for ramp in ("turns", "pairs"):
        np.testing.assert_array_equal(ref.yarn_frequencies(10, 3.0, 4096, 3.0, ramp=ramp), usual)


@pytest.mark.parametrize("n_heads", [1, 2, 5, 8, 12, 40])
def test_slopes_are_theirs(outside, n_heads):
    np.testing.assert_allclose(ref.alibi_slopes(n_heads), outside("bloom")[f"slopes.{n_heads}"], rtol=1e-6)


def layer(arrays, **options):
    made = PositionalAttention(24, 3, bias="b_query" in arrays, is_causal=True, **options).double()
    made.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items() if name[:2] in ("w_", "b_")})
    return made


CASES = {
    "llama_yarn": {"frequencies": ref.yarn_frequencies(8, 4.0, 24, 50.0, ramp="pairs"), "temperature": ref.yarn_temperature(4.0)},
    "neox_partial": {"frequencies": ref.rope_frequencies(4, 50.0)},
    "bloom": {"slopes": ref.alibi_slopes(3)},
}
MISTAKES = {
    "llama_yarn": {"temperature": 1.0},
    "neox_partial": {"frequencies": ref.rope_frequencies(8, 50.0)[:2]},
    "bloom": {"slopes": 2.0 ** (-8 * np.arange(1, 4) / 3)},
}


@torch.no_grad()
@pytest.mark.parametrize("name", CASES)
def test_a_layer_gives_what_theirs_gives(outside, name):
    arrays = outside(name)
    x, wanted = torch.from_numpy(arrays["x"]), arrays["output"]
    np.testing.assert_allclose(layer(arrays, **CASES[name])(x), wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    wrong = layer(arrays, **CASES[name] | MISTAKES[name])(x).numpy()
    assert np.abs(wrong - wanted).max() > 1e-2 * np.abs(wanted).max()
