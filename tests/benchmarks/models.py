"""How much longer our models and layers take than those of the transformers package, in turns on one CPU thread.

    python -m tests.benchmarks.models [--rounds 20] [NAME ...]

Each pair has the same sizes; that they compute the same is tested in tests/oracles and tests/modules. Prints microseconds (medians) and
their ratio, which is what counts.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch import Tensor, nn
from transformers import BloomConfig, DeepseekV2Config, GPT2Config, GPT2LMHeadModel, GptOssConfig, LlamaConfig, MistralConfig
from transformers.models.bloom.modeling_bloom import BloomAttention, build_alibi_tensor
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention, DeepseekV2RotaryEmbedding
from transformers.models.diffllama.configuration_diffllama import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaSdpaAttention
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP, LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralAttention
from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

from attn_course.modules import (
    DifferentialAttention,
    FeedForward,
    LatentAttention,
    MultiHeadAttention,
    PositionalAttention,
    SinkAttention,
    Transformer,
)
from attn_course.modules.gated import gated_delta_rule
from attn_course.reference import alibi_slopes, rope_frequencies
from tests.benchmarks.call import compare

D_MODEL, HEADS, LENGTH, WINDOW = 512, 8, 512, 128
D_K = D_MODEL // HEADS
SIZES = {"hidden_size": D_MODEL, "num_attention_heads": HEADS, "attn_implementation": "sdpa"}
Pair = tuple[Callable[[], object], Callable[[], object]]


def x() -> Tensor:
    return torch.randn(1, LENGTH, D_MODEL)


def hidden(left: int = LENGTH) -> Tensor:
    """The float mask that their layers take: causal, `left` positions back."""
    seen = torch.ones(LENGTH, LENGTH).tril().triu(-left)
    return torch.zeros(1, 1, LENGTH, LENGTH).masked_fill(seen == 0, -torch.inf)


def turned(layer: nn.Module, config: LlamaConfig, mask: Tensor | None = None) -> Callable[[], object]:
    """Call one of their rotary layers; without a mask it is causal."""
    rows = x()
    angles = LlamaRotaryEmbedding(config)(rows, torch.arange(LENGTH)[None])
    return partial(layer.eval(), rows, position_embeddings=angles, attention_mask=mask)


def gpt2() -> GPT2LMHeadModel:
    sizes = {"vocab_size": 512, "n_positions": LENGTH, "n_embd": D_MODEL, "n_layer": 4, "n_head": HEADS, "attn_implementation": "sdpa"}
    config = GPT2Config(**sizes)
    config.update({"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0})
    return GPT2LMHeadModel(config).eval()


def model() -> Pair:
    """GPT-2, a pass over 512 tokens."""
    theirs, ids = gpt2(), torch.randint(512, (1, LENGTH))
    return partial(Transformer.from_gpt2(theirs.state_dict(), n_heads=HEADS), ids), partial(theirs, ids, use_cache=False)


def generation() -> Pair:
    """GPT-2, 32 tokens written after 64, with a cache."""
    theirs, ids = gpt2(), torch.randint(512, (1, 64))
    write = partial(theirs.generate, ids, attention_mask=torch.ones_like(ids), max_new_tokens=32, do_sample=False)
    return partial(Transformer.from_gpt2(theirs.state_dict(), n_heads=HEADS).generate, ids, 32), write


def rotary() -> Pair:
    config = LlamaConfig(**SIZES)
    ours = PositionalAttention(D_MODEL, HEADS, frequencies=rope_frequencies(D_K), is_causal=True)
    return partial(ours, x()), turned(LlamaAttention(config, 0), config)


def alibi() -> Pair:
    layer, rows = BloomAttention(BloomConfig(hidden_size=D_MODEL, n_head=HEADS), 0).eval(), x()
    penalties = build_alibi_tensor(torch.ones(1, LENGTH, dtype=torch.long), HEADS, torch.float32)
    ours = PositionalAttention(D_MODEL, HEADS, slopes=alibi_slopes(HEADS), bias=True, is_causal=True)
    return partial(ours, x()), partial(layer, rows, torch.zeros_like(rows), alibi=penalties, attention_mask=hidden())


def window() -> Pair:
    config = MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=WINDOW)
    options = {"n_kv_heads": 2, "rope_theta": 10_000.0, "window": (WINDOW - 1, 0), "is_causal": True}
    return partial(MultiHeadAttention(D_MODEL, HEADS, **options), x()), turned(MistralAttention(config, 0), config, hidden(WINDOW - 1))


def sinks() -> Pair:
    """Theirs turns queries and keys, ours does not; only "eager" has sinks on a CPU there."""
    sizes = SIZES | {"num_key_value_heads": 2, "head_dim": D_K, "attn_implementation": "eager", "attention_bias": False}
    config = GptOssConfig(**sizes, layer_types=["full_attention"], num_hidden_layers=1, rope_scaling=None)
    layer, llama = GptOssAttention(config, 0), LlamaConfig(**SIZES)
    rows = x()
    cos, sin = (part[..., : D_K // 2] for part in LlamaRotaryEmbedding(llama)(rows, torch.arange(LENGTH)[None]))
    nn.init.zeros_(layer.sinks)
    theirs = partial(layer.eval(), rows, position_embeddings=(cos, sin), attention_mask=hidden())
    return partial(SinkAttention(D_MODEL, HEADS, n_kv_heads=2), x()), theirs


def latent() -> Pair:
    heads = {"q_lora_rank": 192, "kv_lora_rank": 128, "qk_nope_head_dim": D_K, "qk_rope_head_dim": 32, "head_dim": 32, "v_head_dim": D_K}
    config = DeepseekV2Config(**SIZES, **heads, num_key_value_heads=HEADS)
    layer, rows = DeepseekV2Attention(config, 0).eval(), x()
    angles = DeepseekV2RotaryEmbedding(config)(rows, torch.arange(LENGTH)[None])
    sizes = {"d_latent": 128, "d_query_latent": 192, "d_head": D_K, "d_rope": 32}
    ours = LatentAttention(D_MODEL, n_heads=HEADS, **sizes)
    return partial(ours, x()), partial(layer, rows, position_embeddings=angles, attention_mask=hidden())


def differential() -> Pair:
    """Theirs rotates queries and keys, ours does not; both have 4 heads of two maps, values of 128."""
    config = DiffLlamaConfig(**SIZES, num_key_value_heads=HEADS)
    ours = DifferentialAttention(D_MODEL, HEADS // 2, layer=1)
    return partial(ours, x()), turned(DiffLlamaSdpaAttention(config, 0), LlamaConfig(**SIZES), hidden())


def gated_delta() -> Pair:
    """Only the rule: float32, chunks of 64."""
    query, key, value = torch.randn(3, 1, HEADS, LENGTH, D_K).unbind()
    key = nn.functional.normalize(key, dim=-1)
    beta, log_decay = torch.rand(1, HEADS, LENGTH, 1), -torch.rand(1, HEADS, LENGTH, 1)
    rows = [part.transpose(1, 2) for part in (query, key, value, log_decay[..., 0], beta[..., 0])]
    ours, theirs = partial(gated_delta_rule, query * D_K**-0.5, key, value, beta, log_decay), partial(torch_chunk_gated_delta_rule, *rows)
    torch.testing.assert_close(ours()[0].transpose(1, 2), theirs()[0], rtol=1e-4, atol=1e-4)
    return ours, theirs


def feed_forward() -> Pair:
    config = LlamaConfig(**SIZES, intermediate_size=1376, hidden_act="silu")
    return partial(FeedForward(D_MODEL, 1376, activation="silu", gated=True), x()), partial(LlamaMLP(config).eval(), x())


PAIRS = {pair.__name__: pair for pair in (
    model, generation, rotary, alibi, window, sinks, latent, differential, gated_delta, feed_forward
)}  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PAIRS, []], metavar="NAME", help=f"one of: {', '.join(PAIRS)}; all if left out")
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        for name in chosen.names or PAIRS:
            ours, theirs = PAIRS[name]()
            ours(), theirs()
            compare(name, ours, theirs, chosen.rounds)


if __name__ == "__main__":
    main()
