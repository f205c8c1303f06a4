"""What the transformers package does with positions, for models.py: frequencies, slopes, and layers with random weights."""

import torch
from torch import Tensor, nn
from transformers import BloomConfig, GPTNeoXConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import BloomAttention, build_alibi_tensor
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXAttention, GPTNeoXRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

D_MODEL, HEADS, LENGTH = 24, 3, 37
Arrays = dict[str, Tensor]
STRETCHED = {  # name: kind, d_k, theta, trained length, length at test, options
    "default": ("default", 26, 100.0, 64, 64, {}),
    "partial": ("default", 52, 100.0, 64, 64, {}),
    "linear": ("linear", 26, 100.0, 64, 160, {"factor": 3.0}),
    "dynamic": ("dynamic", 26, 100.0, 64, 160, {"factor": 3.0}),
    "yarn": ("yarn", 26, 100.0, 64, 160, {"factor": 5.0}),
    "yarn-long": ("yarn", 128, 10_000.0, 4096, 16_384, {"factor": 4.0}),
    "yarn-turns": ("yarn", 34, 500.0, 300, 900, {"factor": 3.0, "beta_fast": 17.0, "beta_slow": 2.0}),
    "yarn-gpt-oss": ("yarn", 64, 150_000.0, 4096, 131_072, {"factor": 32.0, "truncate": False}),
    "yarn-all-fast": ("yarn", 10, 3.0, 4096, 9000, {"factor": 3.0}),  # the slowest pair comes round more than 32 times
}


def frequencies() -> Arrays:
    """For each way of stretching the frequencies, and the factor of cosines and sines."""
    found: Arrays = {}
    for name, (kind, d_k, theta, trained, length, options) in STRETCHED.items():
        config = LlamaConfig(hidden_size=d_k, num_attention_heads=1, max_position_embeddings=trained, rope_theta=theta)
        config.rope_scaling = {"rope_type": kind, **options}
        config.partial_rotary_factor = 0.5 if name == "partial" else 1.0
        turns, factor = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
        found |= {f"{name}.frequencies": turns, f"{name}.factor": torch.tensor(factor)}
    return found


def drawn(layer: nn.Module, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    for parameter in layer.double().eval().parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def given() -> tuple[Tensor, Tensor, Tensor]:
    """Positions, a causal mask to add, and the rows of two sequences."""
    hidden = torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    x = torch.randn(2, LENGTH, D_MODEL, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.arange(LENGTH)[None], hidden, x


def fused(layer: nn.Module) -> Arrays:
    """The projections of a layer that keeps query, key and value of each head side by side."""
    weight = layer.query_key_value.weight.T.unflatten(1, (HEADS, 3, -1))  # (d_model, heads, role, d_k)
    bias = layer.query_key_value.bias.unflatten(0, (HEADS, 3, -1))
    roles = {role: number for number, role in enumerate(("query", "key", "value"))}
    found = {f"w_{role}": weight[:, :, number].flatten(1) for role, number in roles.items()}
    found |= {f"b_{role}": bias[:, number].flatten() for role, number in roles.items()}
    return found | {"w_output": layer.dense.weight.T, "b_output": layer.dense.bias}


def llama_yarn() -> Arrays:
    """A layer whose frequencies are stretched, all features rotated."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24}
    sizes = {"hidden_size": D_MODEL, "num_attention_heads": HEADS, "max_position_embeddings": 96, "attn_implementation": "eager"}
    config = LlamaConfig(**sizes, rope_theta=50.0, rope_scaling=scaling)
    where, hidden, x = given()
    layer = drawn(LlamaAttention(config, 0), 2)
    output, weights = layer(x, position_embeddings=LlamaRotaryEmbedding(config)(x, where), attention_mask=hidden)
    roles = {"query": layer.q_proj, "key": layer.k_proj, "value": layer.v_proj, "output": layer.o_proj}
    return {"x": x, "output": output, "weights": weights} | {f"w_{role}": linear.weight.T for role, linear in roles.items()}


def neox_partial() -> Arrays:
    """A layer that rotates half of the features."""
    sizes = {"hidden_size": D_MODEL, "num_attention_heads": HEADS, "attn_implementation": "eager"}
    config = GPTNeoXConfig(**sizes, rotary_pct=0.5, rotary_emb_base=50.0)
    where, hidden, x = given()
    layer = drawn(GPTNeoXAttention(config, 0), 3)
    output, weights = layer(x, attention_mask=hidden, position_embeddings=GPTNeoXRotaryEmbedding(config)(x, where))
    return {"x": x, "output": output, "weights": weights} | fused(layer)


def bloom() -> Arrays:
    """A layer with penalties on distance, and the slopes of other numbers of heads, read off its table."""
    _, hidden, x = given()
    layer = drawn(BloomAttention(BloomConfig(hidden_size=D_MODEL, n_head=HEADS), 0), 4)
    penalties = build_alibi_tensor(torch.ones(2, LENGTH, dtype=torch.long), HEADS, torch.float64)
    output = layer(x, torch.zeros_like(x), alibi=penalties, attention_mask=hidden)[0]
    slopes = {
        f"slopes.{n}": build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), n, torch.float64)[:, 0, 1] for n in (1, 2, 5, 8, 12, 40)
    }
    return {"x": x, "output": output} | fused(layer) | slopes
