"""What lesson attention and its solutions make of a GPT-2 of random weights, beside what the library makes of it.

Run as a program in a process of its own, `python through_gpt2.py LESSON SOLUTION`: its last line holds the tokens that are written through
the reader's call, those that the library writes, and the largest errors of the layer and of its steps.
"""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from models import shaken  # the file beside this one

SMALL = {"vocab_size": 23, "n_positions": 29, "n_embd": 35, "n_layer": 3, "n_head": 5, "bos_token_id": None, "eos_token_id": None}
PROMPT = torch.tensor([[3, 17, 11, 5]])


class Tokenizer:
    """Numbers instead of words."""

    def __call__(self, text: str, return_tensors: str) -> SimpleNamespace:
        """Return the prompt, whatever the text."""
        return SimpleNamespace(input_ids=PROMPT)

    def decode(self, numbers: torch.Tensor) -> list[int]:
        """Return the numbers."""
        return numbers.tolist()


def model(name: str, **options: str) -> torch.nn.Module:
    """Return the same small model for every name."""
    return shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(**SMALL, **options)), 4)


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Do what a reader may have written."""
    terms = np.exp(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]))
    return terms / terms.sum(axis=-1, keepdims=True) @ value


cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]}
own = model("eager", attn_implementation="eager")
theirs = own.generate(PROMPT, attention_mask=torch.ones_like(PROMPT), max_new_tokens=9, do_sample=False, pad_token_id=0)
transformers.GPT2LMHeadModel.from_pretrained = model
transformers.AutoTokenizer.from_pretrained = lambda name: Tokenizer()
names = {"np": np, "torch": torch, "attend": attend}
exec(cells["gpt2-attend"] + "\n" + cells["gpt2-code"], names)
for cell in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["cells"]:
    if cell["id"] in ("layer-around-attention", "step-with-kept-keys"):
        exec("".join(cell["source"]), names)
x = torch.randn(2, 7, SMALL["n_embd"], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
layer = own.transformer.h[1].attn
arrays = [part.detach().numpy() for part in (layer.c_attn.weight, layer.c_attn.bias, layer.c_proj.weight, layer.c_proj.bias)]
mine = names["my_layer"](x.numpy(), *arrays, SMALL["n_head"])
kept = [np.empty((2, SMALL["n_head"], 0, SMALL["n_embd"] // SMALL["n_head"]))] * 2
steps = []
for token in range(7):
    output, *kept = names["my_step"](x.numpy()[:, token : token + 1], *kept, *arrays, SMALL["n_head"])
    steps.append(output)
library = layer(x)[0].detach().numpy()
errors = [float(np.abs(found - library).max()) for found in (mine, np.concatenate(steps, axis=1))]
print(json.dumps([names["gpt2_writes"]("any text", 12), theirs[0].tolist(), errors]))
