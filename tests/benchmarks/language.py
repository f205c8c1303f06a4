"""How quickly the real model is ready and writes, beside the library's: `python -m tests.benchmarks.language`, some minutes of one core.

Printed: seconds until it is ready and its memory; tokens a second with the course's attention, with the reference in NumPy in place of it,
and with transformers' Llama on the same file, turn by turn in one process.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import torch

from attn_course.language.getting import model_path
from attn_course.language.model import language_model
from attn_course.reference import attention

SENTENCE = "The sun rises in the east and"


def seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measure(tokens: int, rounds: int, *, library: bool = True) -> dict[str, list[float]]:
    """Return seconds for writing so many tokens behind SENTENCE, for each way and round."""
    model = language_model()
    ids = model.ids(SENTENCE)

    def ours(function: Callable[..., object] | None) -> None:
        model.attend = function
        model.write(SENTENCE, tokens=tokens)

    ways: dict[str, Callable[[], object]] = {"course": lambda: ours(None), "NumPy": lambda: ours(attention)}
    if library:
        from transformers import LlamaForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()
        path = model_path()
        theirs = LlamaForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
        options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
        ways["transformers"] = lambda: theirs.generate(ids[None], attention_mask=torch.ones_like(ids)[None], **options)
    for call in ways.values():
        call()  # warm
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            found[name].append(seconds(call))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ready = seconds(language_model)
    print(f"ready in {ready:.1f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB, {torch.get_num_threads()} threads")
    found = measure(options.tokens, options.rounds)
    for name, times in found.items():
        rates = sorted(options.tokens / each for each in times)
        ratio = sorted(mine / base for mine, base in zip(times, found["course"], strict=True))
        middle = len(rates) // 2
        print(
            f"{name:13} {rates[0]:5.1f} {rates[middle]:5.1f} {rates[-1]:5.1f} tokens a second   {ratio[middle]:.2f} times the course's time"
        )


if __name__ == "__main__":
    main()
