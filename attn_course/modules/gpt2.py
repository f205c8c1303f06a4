"""The weights of GPT-2, as its published checkpoints name them, turned into the state of a `Transformer`."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from attn_course.modules.loading import packed_weights

NORMS = {"ln_1": "norm_attention", "ln_2": "norm_feed_forward"}
MAPS = {"attn.c_proj": ("attention", "output"), "mlp.c_fc": ("feed_forward", "in"), "mlp.c_proj": ("feed_forward", "out")}


def gpt2_weights(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights under the names of the course; w_logits only if the last map is not the table of tokens.

    `state_dict`: that of GPT2LMHeadModel, or of GPT2Model ("transformer." before each name may be missing), or of the published
    files, which hold causal masks too ("attn.bias", "attn.masked_bias"): these are left out.

    Raises ValueError if a weight is missing or unknown, or a map is transposed, that of an nn.Linear.

    Its maps are Conv1D layers: x @ weight, not x @ weight.T as in an nn.Linear. Only lm_head is an nn.Linear.
    """
    given = {name.removeprefix("transformer."): tensor.detach() for name, tensor in state_dict.items()}
    given = {name: tensor for name, tensor in given.items() if not re.search(r"\.attn\.(masked_)?bias$", name)}
    n_layers = len({name.split(".")[1] for name in given if re.match(r"h\.\d+\.", name)})
    head = given.pop("lm_head.weight", None)
    missing = sorted({*_wanted(n_layers)} - {*given})
    if missing or len(given) > len(_wanted(n_layers)):
        unknown = sorted({*given} - {*_wanted(n_layers)})
        raise ValueError(f"state_dict must hold the weights of a GPT-2; missing {missing[:3]}, unknown {unknown[:3]}")
    for layer in range(n_layers):
        _check_maps(given, f"h.{layer}.")
    state = {"w_tokens": given["wte.weight"], "w_positions": given["wpe.weight"]}
    state |= {f"norm.{part}": given[f"ln_f.{part}"] for part in ("weight", "bias")}
    for layer in range(n_layers):
        state |= {f"blocks.{layer}.{name}": tensor for name, tensor in _block(given, f"h.{layer}.").items()}
    if head is not None and not torch.equal(head, state["w_tokens"]):
        state["w_logits"] = head.T
    return {name: tensor.clone() for name, tensor in state.items()}


def _check_maps(given: Mapping[str, Tensor], prefix: str) -> None:
    """Each map must be as wide as the table of tokens on the side of the stream. Of the square one only its neighbours tell."""
    d_model = given["wte.weight"].shape[1]
    hidden = given[f"{prefix}mlp.c_fc.bias"].shape[0]
    for name, shape in {"attn.c_attn": (d_model, 3 * d_model), "mlp.c_fc": (d_model, hidden), "mlp.c_proj": (hidden, d_model)}.items():
        got = tuple(given[f"{prefix}{name}.weight"].shape)
        if got != shape:
            advice = ": it is transposed, that of an nn.Linear; give all four maps of a block as weight.T" if got == shape[::-1] else ""
            raise ValueError(f"{prefix}{name}.weight must have shape {shape}, to be used as x @ weight; got {got}{advice}")


def _block(given: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    state = {f"{ours}.{part}": given[f"{prefix}{theirs}.{part}"] for theirs, ours in NORMS.items() for part in ("weight", "bias")}
    packed, bias = given[f"{prefix}attn.c_attn.weight"], given[f"{prefix}attn.c_attn.bias"]
    d_model = packed.shape[0]
    state |= {f"attention.{name}": part for name, part in packed_weights(packed, bias, (d_model, d_model, d_model)).items()}
    for theirs, (room, role) in MAPS.items():
        state |= {f"{room}.w_{role}": given[f"{prefix}{theirs}.weight"], f"{room}.b_{role}": given[f"{prefix}{theirs}.bias"]}
    return state


def _wanted(n_layers: int) -> list[str]:
    layers = [f"{name}.{part}" for name in ("attn.c_attn", *NORMS, *MAPS) for part in ("weight", "bias")]
    ends = ["wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"]
    return ends + [f"h.{layer}.{name}" for layer in range(n_layers) for name in layers]
