"""The weights of a GPT-2 in another library's orientation are refused by name: they would load where a matrix is square."""

import re

import pytest
import torch

from attn_course.modules import Transformer

D_MODEL, HIDDEN = 48, 192
MAPS = {
    "attn.c_attn": (D_MODEL, 3 * D_MODEL),
    "attn.c_proj": (D_MODEL, D_MODEL),
    "mlp.c_fc": (D_MODEL, HIDDEN),
    "mlp.c_proj": (HIDDEN, D_MODEL),
}


def state(*, as_linear=()):
    """A model of one block, the maps named in `as_linear` as the weight of an nn.Linear."""
    found = {"wte.weight": torch.ones(11, D_MODEL), "wpe.weight": torch.ones(8, D_MODEL)}
    for name in ("ln_f", "h.0.ln_1", "h.0.ln_2"):
        found |= {f"{name}.weight": torch.ones(D_MODEL), f"{name}.bias": torch.zeros(D_MODEL)}
    for name, shape in MAPS.items():
        weight = torch.ones(shape)
        found |= {f"h.0.{name}.weight": weight.T if name in as_linear else weight, f"h.0.{name}.bias": torch.zeros(shape[1])}
    return found


@pytest.mark.parametrize("as_linear", [tuple(MAPS), ("mlp.c_fc",), ("mlp.c_proj",)])
def test_maps_of_the_other_orientation_are_said_to_be_transposed(as_linear):
    assert Transformer.from_gpt2(state(), n_heads=4)(torch.tensor([[1]])).shape == (1, 1, 11)
    name = as_linear[0]
    wanted = f"h.0.{name}.weight must have shape {MAPS[name]}, to be used as x @ weight; got {MAPS[name][::-1]}: it is transposed"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        Transformer.from_gpt2(state(as_linear=as_linear), n_heads=4)


def test_a_map_of_another_shape_is_not_said_to_be_transposed():
    wrong = state() | {"h.0.attn.c_attn.weight": torch.ones(D_MODEL, 7)}
    with pytest.raises(
        ValueError, match=re.escape("h.0.attn.c_attn.weight must have shape (48, 144), to be used as x @ weight; got (48, 7)")
    ) as raised:
        Transformer.from_gpt2(wrong, n_heads=4)
    assert "transposed" not in str(raised.value)
