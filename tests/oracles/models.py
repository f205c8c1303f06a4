"""Other people's models with random weights: what goes in, the weights, and what comes out, as arrays in a folder.

Run as a program in a process of its own, `python models.py FOLDER`: transformers takes seconds to import, and changes what torch warns of.
Weights are renamed and turned to be used as x @ w, heads side by side, as everywhere in the course; nothing else of the course is here.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from positional import bloom, frequencies, llama_yarn, neox_partial  # the file beside this one
from torch import Tensor, nn
from transformers import DeepseekV2Config, GPT2Config, GPT2LMHeadModel, GptOssConfig, LlamaConfig, LlamaForCausalLM, MistralConfig
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Model
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssModel
from transformers.models.mistral.modeling_mistral import MistralModel

BATCH, LENGTH, TOKENS = 2, 13, 23
SMALL = {"vocab_size": TOKENS, "intermediate_size": 11, "max_position_embeddings": 64, "attn_implementation": "eager"}
Arrays = dict[str, Tensor | float | int]


def shaken(model: nn.Module, seed: int) -> nn.Module:
    """Draw all weights anew, in float64: sharp attention, gains that are not 1, biases that are not 0."""
    torch.manual_seed(seed)
    for name, parameter in model.double().eval().named_parameters():
        is_gain = parameter.ndim == 1 and name.endswith("weight")
        nn.init.normal_(parameter, mean=1.0 if is_gain else 0.0, std=0.3)
    return model


def ids() -> Tensor:
    return torch.randint(TOKENS, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1))


def layers(model: nn.Module) -> list[tuple[nn.Module, Tensor, Tensor]]:
    """Run a model, and return each of its attention layers with what it read, behind the norm, and what it gave."""
    found: list[tuple[nn.Module, Tensor, Tensor]] = []
    for layer in model.layers:
        layer.self_attn.register_forward_hook(
            lambda module, _, given, result: found.append((module, given["hidden_states"], result[0])), with_kwargs=True
        )
    model(ids())
    return found


def projections(layer: nn.Module) -> Arrays:
    """The weights of a layer, and its biases, by the names of the course."""
    roles = {"query": layer.q_proj, "key": layer.k_proj, "value": layer.v_proj, "output": layer.o_proj}
    found = {f"w_{role}": linear.weight.T for role, linear in roles.items()}
    return found | {f"b_{role}": linear.bias for role, linear in roles.items() if linear.bias is not None}


def gpt2() -> Arrays:
    """State dict ("weights." before each name), ids, n_heads, logits, streams, maps; a greedy continuation."""
    config = GPT2Config(vocab_size=TOKENS, n_positions=29, n_embd=35, n_layer=3, n_head=5, attn_implementation="eager")
    config.update({"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0})
    model = shaken(GPT2LMHeadModel(config), 2)
    weights = {f"weights.{name}": tensor.clone() for name, tensor in model.state_dict().items()}
    seen = model(ids(), output_hidden_states=True, output_attentions=True)
    written = model.generate(ids(), attention_mask=torch.ones_like(ids()), max_new_tokens=7, do_sample=False)
    streams, maps = torch.stack(seen.hidden_states[:-1]), torch.stack(seen.attentions)
    known = {"ids": ids(), "n_heads": 5, "streams": streams, "maps": maps, "written": written}
    return weights | known | {"logits": seen.logits}


def llama() -> Arrays:
    """A Transformer with RMS norms, rotary positions, 2 key heads for 6, a SiLU gate and a table of its own for the logits."""
    sizes = {"hidden_size": 14, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}
    model = shaken(LlamaForCausalLM(LlamaConfig(**SMALL, **sizes, rope_theta=100.0, rms_norm_eps=1e-4, tie_word_embeddings=False)), 6)
    found: Arrays = {"ids": ids(), "logits": model(ids()).logits, "theta": 100.0, "eps": 1e-4}
    found |= {"w_tokens": model.model.embed_tokens.weight, "w_logits": model.lm_head.weight.T, "norm.weight": model.model.norm.weight}
    for number, layer in enumerate(model.model.layers):
        linears = {"gate": layer.mlp.gate_proj, "in": layer.mlp.up_proj, "out": layer.mlp.down_proj}
        parts = {f"attention.{name}": tensor for name, tensor in projections(layer.self_attn).items()}
        parts |= {f"feed_forward.w_{role}": linear.weight.T for role, linear in linears.items()}
        parts |= {"norm_attention.weight": layer.input_layernorm.weight, "norm_feed_forward.weight": layer.post_attention_layernorm.weight}
        found |= {f"blocks.{number}.{name}": tensor for name, tensor in parts.items()}
    return found


def deepseek_v2() -> Arrays:
    """Attention of layer 0, whose queries are not compressed ("plain."), and of another model's, whose are; n_heads, eps, theta."""
    found: Arrays = {"n_heads": 3, "eps": 1e-6, "theta": 100.0}
    for prefix, d_query_latent in (("plain.", None), ("", 17)):
        sizes = {"hidden_size": 14, "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 3, "kv_lora_rank": 10}
        heads = {"q_lora_rank": d_query_latent, "qk_nope_head_dim": 5, "qk_rope_head_dim": 4, "head_dim": 4, "v_head_dim": 7}
        config = DeepseekV2Config(**SMALL, **sizes, **heads, rope_theta=100.0, first_k_dense_replace=1)
        ((layer, x, output),) = layers(shaken(DeepseekV2Model(config), 3))
        found |= {prefix + name: tensor for name, tensor in (latent_weights(layer) | {"x": x, "output": output}).items()}
    return found


def latent_weights(layer: nn.Module) -> dict[str, Tensor]:
    """The matrices of latent attention; theirs hold for each head its two parts side by side, and latent vector and rotary key together."""
    matrices = {}
    queries = layer.q_proj if layer.q_lora_rank is None else layer.q_b_proj
    if layer.q_lora_rank is not None:
        matrices = {"w_query_down": layer.q_a_proj.weight.T, "norm_q.weight": layer.q_a_layernorm.weight}
    for names, linear, width in (
        (("w_query_up", "w_query_rope"), queries, layer.qk_nope_head_dim),
        (("w_key_up", "w_value_up"), layer.kv_b_proj, layer.qk_nope_head_dim),
    ):
        columns = linear.weight.T.unflatten(1, (layer.num_heads, -1))  # (d_in, n_heads, first part and second part)
        matrices |= dict(zip(names, (columns[..., :width].flatten(1), columns[..., width:].flatten(1)), strict=True))
    latent, rotary = layer.kv_a_proj_with_mqa.weight.T.split([layer.kv_lora_rank, layer.qk_rope_head_dim], dim=1)
    matrices |= {"w_latent_down": latent, "w_key_rope": rotary, "norm_kv.weight": layer.kv_a_layernorm.weight}
    return matrices | {"w_output": layer.o_proj.weight.T}


def sliding_window() -> Arrays:
    """Attention of Mistral: a token sees `sliding_window` tokens, itself among them; halves are rotated; 6 heads, 2 of keys and values."""
    sizes = {"hidden_size": 14, "num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}
    model = shaken(MistralModel(MistralConfig(**SMALL, **sizes, sliding_window=5, rope_theta=100.0)), 4)
    ((layer, x, output),) = layers(model)
    known = {"x": x, "output": output, "n_heads": 6, "n_kv_heads": 2, "sliding_window": 5, "theta": 100.0}
    return projections(layer) | known


def sinks() -> Arrays:
    """Attention of gpt-oss: a learned logit `sinks` for each head takes weight and gives nothing; only layer 0 ("0.") has a window."""
    sizes = {"hidden_size": 14, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 5, "rope_scaling": None, "rope_theta": 100.0}
    model = shaken(GptOssModel(GptOssConfig(**SMALL, **sizes, **kinds, num_local_experts=2, num_experts_per_tok=1)), 5)
    found: Arrays = {"n_heads": 6, "n_kv_heads": 2, "sliding_window": 5, "theta": 100.0}
    for number, (layer, x, output) in enumerate(layers(model)):
        parts = projections(layer) | {"x": x, "output": output, "sinks": layer.sinks}
        found |= {f"{number}.{name}": part for name, part in parts.items()}
    return found


MODELS = {
    model.__name__: model for model in (gpt2, llama, deepseek_v2, sliding_window, sinks, frequencies, llama_yarn, neox_partial, bloom)
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        for name, model in MODELS.items():
            np.savez(Path(sys.argv[1]) / f"{name}.npz", **{key: np.asarray(array) for key, array in model().items()})
