"""What only the real model can show, in a process of its own which loads it once; each line of the output is one finding that is wrong.

Other people's reading of the file and other people's Llama are what its logits are compared with.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import gguf
import numpy as np
import torch

from attn_course.experiments import all_experiments, smollm2
from attn_course.language import maps, stored
from attn_course.language.getting import model_path
from attn_course.language.model import LanguageModel, language_model
from attn_course.language.tokenizer import pieces
from attn_course.lessons.heads import tasks_real
from attn_course.modules import hooked
from attn_course.reference import attention, rope

MEMMAP, READER = np.memmap, gguf.GGUFReader


@functools.cache
def read(path: str) -> Any:
    """Return a file's reader, whose hundreds of thousands of short slices are plain arrays: half of the time of maps."""
    with mock.patch("numpy.memmap", lambda *where, **how: MEMMAP(*where, **how).view(np.ndarray)):
        return READER(path)


gguf.GGUFReader = lambda path: read(str(path))  # ours, theirs, and their tokenizer's read the same file, by a Path or a name
gguf.get_tensor_name_map = functools.cache(gguf.get_tensor_name_map)  # theirs asks for each of their modules
smollm2.language_model = functools.cache(language_model)  # each measurement asks, and what is asked checks the file

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
        said, kept = eval(question, {method: functools.partial(ask, method)}), stored.stored(question)
        if not alike(said, kept):
            yield f"{question}: stored {kept!r}, the model says {said!r}"


def alike(one: Any, other: Any) -> bool:
    """Whether two answers agree, numbers to 1e-4."""
    if isinstance(one, dict):
        return [*one] == [*other] and alike([*one.values()], [*other.values()])
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other if isinstance(one, str) else bool(np.allclose(one, other, rtol=0, atol=1e-4))


def slices(model: LanguageModel) -> Iterator[str]:
    """Yield what the stored slices of the lesson heads have otherwise; `np.savez_compressed(path, **smollm2_slices(model))` makes them."""
    with np.load(Path(tasks_real.__file__).with_name("smollm2_slices.npz")) as kept:
        for name, array in smollm2_slices(model).items():
            same = array.tolist() == kept[name].tolist() if array.dtype.kind in "uU" else np.allclose(array, kept[name], rtol=0, atol=0.02)
            if not same:
                yield f"{name} is stored otherwise"


def maps_of_the_viewer(model: LanguageModel) -> Iterator[str]:
    """Yield which of the stored maps are other than the model's; `python -m attn_course.language.maps` writes them."""
    with np.load(maps.PATH) as kept:
        for name, array in maps.kept_of(model).items():
            close = name.startswith(("weights", "values")) and np.allclose(array, kept[name], rtol=1e-3, atol=1e-4)
            if not (close or np.array_equal(array, kept[name])):
                yield f"{name} is stored otherwise"


def smollm2_slices(model: LanguageModel) -> dict[str, Any]:
    """Layer 13, head 8: what goes in, W_Q and W_K as the file has them. Layer 29 at the end of a text: queries, keys, values, words."""
    found: dict[str, np.ndarray] = {}
    network, layer = model._network, model.layer(13)

    def keep(name: str) -> Any:
        return lambda array: found.__setitem__(name, array.double().numpy())

    with hooked(network, {"blocks.12.stream": keep("x")}):
        network(model.ids("The cat sat because it was tired."))
    x = found["x"] / np.sqrt((found["x"] ** 2).mean(axis=-1, keepdims=True) + 1e-5) * layer.gain
    sides = {f"blocks.29.attention.{side}": keep(side) for side in ("query", "key", "value")}
    ids = model.ids("The sun rises in the east and")
    with hooked(network, sides | {"blocks.29.attended": keep("attended"), "blocks.29.stream": keep("stream")}):
        best = network(ids)[-1].topk(12).indices.numpy()
    last = found["stream"][-1]
    to_words = (network.w_tokens.numpy()[best] * network.norm.weight.numpy() / np.sqrt((last**2).mean() + 1e-5)).astype(float)
    query, keys = (rope(found[side], np.arange(len(ids)), 100_000.0, "interleaved") for side in ("query", "key"))
    blocks = {tensor.name: tensor.data for tensor in gguf.GGUFReader(str(model_path())).tensors if tensor.name.startswith("blk.13.attn_")}
    half = {"x": x, "query": query[:, -1], "keys": keys, "values": found["value"], "w_words": model.layer(29).w_output @ to_words.T}
    return {
        "w_query": np.asarray(blocks["blk.13.attn_q.weight"])[512:576].reshape(64, 18, 20),
        "w_key": np.asarray(blocks["blk.13.attn_k.weight"])[128:192].reshape(64, 18, 20),
        **{name: array.astype(np.float16) for name, array in half.items()},
        "rest": to_words @ (last - found["attended"][-1]),
        "words": np.array(pieces(model.tokenizer, best.tolist())),
    }


def quick_forms(model: LanguageModel) -> Iterator[str]:
    """Yield each claim of a measurement that its quick form does not find."""
    for experiment in all_experiments():
        if experiment.needs_model:
            yield from (f"{experiment.name}: {claim}" for claim, holds in experiment.quick(FRESH_SEED).items() if not holds)


def main() -> None:
    """Print what is wrong, and at the end that all was looked at."""
    torch.set_num_threads(1)
    model = smollm2.language_model()
    print("memory", Path("/proc/self/status").read_text().split("VmHWM:")[1].split("kB")[0].strip() if Path("/proc/self").exists() else 0)
    with torch.inference_mode():
        for examine in (own_function, answers, slices, maps_of_the_viewer, quick_forms, parity):
            for finding in examine(model):
                print(f"wrong: {examine.__name__}: {finding}")
    print("all was looked at")


if __name__ == "__main__":
    main()
