"""The parameters of a Transformer against the model itself."""

import pytest

from attn_course.costs import TransformerSizes, transformer_parameters
from attn_course.modules import Transformer

MODELS = {
    "gpt2": ({"n_positions": 31, "bias": True}, {}),
    "llama": ({"n_kv_heads": 2, "d_hidden": 7, "gated": True, "tied": False}, {"norm": "rms", "rope_theta": 100.0}),
    "grouped, with biases": ({"n_kv_heads": 3, "bias": True}, {}),
    "2017": ({"norm_first": False, "n_positions": 17, "d_hidden": 5}, {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_are_those_of_the_model(name):
    options, more = MODELS[name]
    model = Transformer(23, 24, 6, 3, **options, **more)
    sizes = TransformerSizes(23, 24, 6, 3, **options, norm_bias=more.get("norm") != "rms")
    assert transformer_parameters(sizes) == sum(parameter.numel() for parameter in model.parameters())
