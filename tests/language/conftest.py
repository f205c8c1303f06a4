"""A toy file in the form of the real model's, with random numbers, and where the real one lies."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import MODEL

LETTERS = [*"abcdefghijklmnopqrstuvwxyz.,", "Ġ"]
MERGES = [("c", "a"), ("ca", "t"), ("d", "o"), ("do", "g"), ("Ġ", "cat"), ("Ġ", "dog"), ("Ġ", "t")]
SIZES = {"layers": 3, "d_model": 12, "heads": 6, "kv_heads": 2, "hidden": 11}  # d_k = 2


def write_gguf(path: Path, *, architecture: str = "llama", leave_out: str = "", **sizes: int) -> Path:
    """Write a model of random numbers as a GGUF file, in float32."""
    from gguf import GGUFWriter

    size, random = SIZES | sizes, np.random.default_rng(3)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *LETTERS, *("".join(pair) for pair in MERGES)]
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(size["layers"])
    writer.add_context_length(64)
    writer.add_embedding_length(size["d_model"])
    writer.add_feed_forward_length(size["hidden"])
    writer.add_head_count(size["heads"])
    writer.add_head_count_kv(size["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    narrow = size["d_model"] // size["heads"] * size["kv_heads"]
    shapes = {"attn_q": (size["d_model"],) * 2, "attn_k": (narrow, size["d_model"]), "attn_v": (narrow, size["d_model"])}
    shapes |= {
        "attn_output": (size["d_model"],) * 2,
        "ffn_gate": (size["hidden"], size["d_model"]),
        "ffn_up": (size["hidden"], size["d_model"]),
    }
    shapes |= {"ffn_down": (size["d_model"], size["hidden"]), "attn_norm": (size["d_model"],), "ffn_norm": (size["d_model"],)}
    named = {f"blk.{layer}.{name}.weight": shape for layer in range(size["layers"]) for name, shape in shapes.items()}
    named |= {"token_embd.weight": (len(tokens), size["d_model"]), "output_norm.weight": (size["d_model"],)}
    for name, shape in named.items():
        if name != leave_out:
            spread = random.normal(size=shape) * 0.6
            writer.add_tensor(name, (spread + (len(shape) == 1)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="session")
def toy_file(tmp_path_factory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "toy.gguf")


@pytest.fixture
def toy(toy_file):
    from attn_course.language.model import LanguageModel
    from attn_course.language.tokenizer import tokenizer_of
    from attn_course.modules import Transformer
    from attn_course.modules.gguf import read_gguf

    gguf = read_gguf(toy_file)
    return LanguageModel(Transformer.from_gguf(gguf), tokenizer_of(gguf))


@pytest.fixture
def with_model(monkeypatch) -> None:
    """Give the real model back, which tests do without elsewhere."""
    if MODEL.lower() == "no":
        pytest.skip("left out by ATTN_COURSE_MODEL=no, as `make test MODEL=no` asks")
    if MODEL:
        monkeypatch.setenv("ATTN_COURSE_MODEL", MODEL)
    else:
        monkeypatch.delenv("ATTN_COURSE_MODEL")
