"""A model of Llama's architecture in a GGUF file: its sizes, its weights under the names of the course, and the words of its tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

MAPS = {
    **{f"attn_{short}": f"attention.w_{role}" for short, role in {"q": "query", "k": "key", "v": "value", "output": "output"}.items()},
    **{f"ffn_{theirs}": f"feed_forward.w_{ours}" for theirs, ours in {"gate": "gate", "up": "in", "down": "out"}.items()},
}
NORMS = {"attn_norm": "norm_attention", "ffn_norm": "norm_feed_forward"}
SIZES = {
    "n_layers": "block_count",
    "d_model": "embedding_length",
    "n_heads": "attention.head_count",
    "n_kv_heads": "attention.head_count_kv",
    "d_hidden": "feed_forward_length",
    "rope_theta": "rope.freq_base",
    "norm_eps": "attention.layer_norm_rms_epsilon",
}


@dataclass(frozen=True)
class Gguf:
    """What a GGUF file holds.

    `settings`: its fields, such as "llama.block_count", but for the vocabulary.
    `tensors`: float32, under the names of the file, (outputs, inputs).
    `tokens`: the vocabulary; `merges`: pairs of pieces that the tokenizer joins, the most frequent first.
    """

    settings: Mapping[str, Any] = field(repr=False)
    tensors: Mapping[str, Tensor] = field(repr=False)
    tokens: list[str] = field(repr=False)
    merges: list[tuple[str, str]] = field(repr=False)

    def options(self) -> dict[str, Any]:
        """Return the keywords of `Transformer`, but `tied`.

        Raises ValueError if the architecture is not Llama's, or a size is missing.
        """
        architecture = self.settings.get("general.architecture")
        if architecture != "llama":
            raise ValueError(f"a GGUF file must hold a model of the architecture llama; got {architecture!r}")
        wanted = {name: f"llama.{theirs}" for name, theirs in SIZES.items()}
        if missing := [theirs for theirs in wanted.values() if theirs not in self.settings]:
            raise ValueError(f"a GGUF file must hold the fields {', '.join(wanted.values())}; missing {', '.join(missing)}")
        sizes = {name: self.settings[theirs] for name, theirs in wanted.items()}
        # The rows of its query and key matrices are sorted so that the features of a pair are neighbours.
        parts = {"norm": "rms", "activation": "silu", "gated": True, "rope_layout": "interleaved"}
        return {"n_tokens": len(self.tokens), **sizes, **parts}

    def weights(self) -> dict[str, Tensor]:
        """Return the state of a `Transformer`: maps to be used as x @ w, so each is transposed; nothing is copied.

        Raises ValueError if a weight is missing or unknown.
        """
        names = {"token_embd.weight": "w_tokens", "output_norm.weight": "norm.weight"}
        if "output.weight" in self.tensors:
            names["output.weight"] = "w_logits"
        for layer in range(self.options()["n_layers"]):
            parts = NORMS | MAPS
            names |= {f"blk.{layer}.{theirs}.weight": f"blocks.{layer}.{ours}" for theirs, ours in parts.items()}
        missing, unknown = sorted({*names} - {*self.tensors}), sorted({*self.tensors} - {*names})
        if missing or unknown:
            raise ValueError(f"a GGUF file of a Llama model must hold its weights; missing {missing[:3]}, unknown {unknown[:3]}")
        state = {}
        for theirs, ours in names.items():
            tensor, last = self.tensors[theirs], ours.rpartition(".")[2]
            if last.startswith("norm_"):
                state[f"{ours}.weight"] = tensor
            else:
                state[ours] = tensor.T if last.startswith("w_") and ours != "w_tokens" else tensor
        return state


def read_gguf(path: Path | str) -> Gguf:
    """Read a GGUF file; numbers of 4 or 8 bits become float32.

    Raises ValueError if the file is no GGUF, or cut short.
    """
    import numpy as np
    from gguf import GGUFReader, dequantize

    try:
        reader = GGUFReader(path)
        settings = {name: one.contents() for name, one in reader.fields.items() if not name.startswith("tokenizer.ggml.")}
        tokens, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
        tensors = {each.name: torch.from_numpy(np.array(dequantize(each.data, each.tensor_type), np.float32)) for each in reader.tensors}
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path} must be a GGUF file with a vocabulary; reading it failed: {error}") from None
    return Gguf(settings, tensors, tokens, [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)])
