"""What the solutions of lesson attention make of a layer of a GPT-2 with random weights, beside what the library makes of it.

Run as a program in a process of its own, `python through_gpt2.py SOLUTION`: its last line holds the largest errors of the layer and of its
steps with kept keys.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from models import shaken  # the file beside this one

SMALL = {"vocab_size": 23, "n_positions": 29, "n_embd": 35, "n_layer": 3, "n_head": 5, "bos_token_id": None, "eos_token_id": None}


own = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(**SMALL, attn_implementation="eager")), 4)
names = {"np": np, "torch": torch}
for cell in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]:
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
print(json.dumps(errors))
