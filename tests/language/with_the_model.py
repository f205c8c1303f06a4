"""What only the real model can show, in a process of its own which loads it once; each line of the output is one finding that is wrong.

Other people's reading of the file and other people's Llama are what its logits are compared with.
"""

import dataclasses
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import numpy as np
import torch

from attn_course.experiments import all_experiments
from attn_course.language import stored
from attn_course.language.getting import model_path
from attn_course.language.model import LanguageModel, language_model
from attn_course.reference import attention
from tests.benchmarks.language import measure

TEXTS = (
    "The capital of France is",
    "The cat sat because it was tired.",
    "<|im_start|>user\nWhy do cats sleep so much?<|im_end|>\n<|im_start|>assistant\n",
    "In 1998, 37 owls & 4 élans: 3.14!\n\tdef f(x):\n",
    "日本語 🙂 naïve",
)
FRESH_SEED = 2


def parity(model: LanguageModel) -> Iterator[str]:
    """Yield where logits, tokens or what is written differ from the library's, or with a cache from without."""
    from transformers import AutoTokenizer, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    path = model_path()
    theirs = LlamaForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    network = model.network
    for text in TEXTS:
        ids = model.ids(text)
        if tokenizer(text, add_special_tokens=False).input_ids != ids.tolist():
            yield f"tokens of {text!r}: {ids.tolist()} against {tokenizer(text, add_special_tokens=False).input_ids}"
        error = float((theirs(ids[None]).logits[0] - network(ids)).abs().max())
        if not error < 1e-4:
            yield f"logits of {text!r} differ by {error}"
    ids = model.ids(TEXTS[2])
    written = network.generate(ids, 64)
    guessed = theirs(written[None]).logits[0].argmax(-1)  # greedy: each token is the likeliest behind those before it
    if not torch.equal(guessed[len(ids) - 1 : -1], written[len(ids) :]):
        yield "64 tokens written are not those that the library would write"
    if not torch.equal(network.generate(ids, 9, use_cache=False), written[: len(ids) + 9]):
        yield "without a cache other tokens are written"


def own_function(model: LanguageModel) -> Iterator[str]:
    """Yield where a reader's function in all layers, alone or beside other changes, gives other words or probabilities."""
    start = "The cat sat because it"
    for changed in (model, model.silenced((13, 8)).exchange_values("cat", "dog", (22, 23, 24))):
        plain, plain_tokens = changed.write(start, tokens=4), changed.next_tokens(start)
        changed.attend = attention
        tokens = changed.next_tokens(start)
        if changed.write(start, tokens=4) != plain or not np.allclose([*tokens.values()], [*plain_tokens.values()], atol=1e-5):
            yield f"through the reference, {changed} writes something else than {plain!r}, {plain_tokens}"
        changed.attend = None
    start = "A long time ago, in a small village, there lived"
    if model.write(start, tokens=5) != f"{start} a wise old man named":
        yield f"wrote {model.write(start, tokens=5)!r}"


def answers(model: LanguageModel) -> Iterator[str]:
    """Yield each stored answer that is not what the model says."""

    def ask(method: str, silent: Any = (), exchanged: Any = (), **arguments: Any) -> Any:
        return getattr(dataclasses.replace(model, silent=silent, exchanged=exchanged), method)(**arguments)

    for question in stored.questions():
        method = question.partition("(")[0]
        said, kept = eval(question, {method: partial(ask, method)}), stored.stored(question)
        if not alike(said, kept):
            yield f"{question}: stored {kept!r}, the model says {said!r}"


def alike(one: Any, other: Any) -> bool:
    """Whether two answers agree, numbers to 1e-4."""
    if isinstance(one, dict):
        return [*one] == [*other] and alike([*one.values()], [*other.values()])
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other if isinstance(one, str) else bool(np.allclose(one, other, rtol=0, atol=1e-4))


def quick_forms(model: LanguageModel) -> Iterator[str]:
    """Yield each claim of a measurement that its quick form does not find."""
    for experiment in all_experiments():
        if experiment.needs_model:
            yield from (f"{experiment.name}: {claim}" for claim, holds in experiment.quick(FRESH_SEED).items() if not holds)


def benchmark(model: LanguageModel) -> Iterator[str]:
    """Yield whether the benchmark measures something else than it says, in its smallest form."""
    found = measure(1, 1, library=False)
    if [*found] != ["course", "NumPy"] or [len(times) for times in found.values()] != [1, 1]:
        yield f"measured {found}"


def main() -> None:
    """Print what is wrong, and at the end that all was looked at."""
    torch.set_num_threads(1)
    model = language_model()
    print("memory", Path("/proc/self/status").read_text().split("VmHWM:")[1].split("kB")[0].strip() if Path("/proc/self").exists() else 0)
    with torch.inference_mode():
        for examine in (own_function, answers, quick_forms, benchmark, parity):
            for finding in examine(model):
                print(f"wrong: {examine.__name__}: {finding}")
    print("all was looked at")


if __name__ == "__main__":
    main()
