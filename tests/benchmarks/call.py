"""How much longer a call of attention takes than torch's own function, in turns on one CPU thread.

    python -m tests.benchmarks.call [--rounds 300]

Prints microseconds (medians) and their ratio, which is what counts: the time of both depends on the machine and on its other work.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attn_course.gpu import attention

PAST = 4095  # positions in the cache, before a step of decoding


def cases() -> Iterator[tuple[str, Callable[[], Tensor], Callable[[], Tensor]]]:
    """Name, our call and torch's, which computes the same."""
    for length in (16, 128, 512):
        query, key, value = torch.randn(3, 1, 8, length, 64).unbind()
        ours = partial(attention, query, key, value, is_causal=True)
        yield f"causal, length {length}", ours, partial(scaled_dot_product_attention, query, key, value, is_causal=True)
    query, (key, value) = torch.randn(1, 8, 1, 64), torch.randn(2, 1, 8, PAST + 1, 64).unbind()
    theirs = partial(scaled_dot_product_attention, query, key, value)
    yield "decoding", partial(attention, query, key, value, is_causal=True, q_offset=PAST), theirs
    yield "decoding, no rule", partial(attention, query, key, value), theirs


def microseconds(function: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - start) / 1e3


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> None:
    """Time both in turns, and print a line."""
    pairs = [(ours, theirs), (theirs, ours)] * (rounds // 2)  # either goes first in turn
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for function in (function for pair in pairs for function in pair):
        times[function].append(microseconds(function))
    our, their = (statistics.median(times[function]) for function in (ours, theirs))
    print(f"{name:28}ours {our:10.1f} us   theirs {their:10.1f} us   ratio {our / their:5.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for name, ours, theirs in cases():
        torch.testing.assert_close(ours(), theirs())
        compare(name, ours, theirs, rounds)


if __name__ == "__main__":
    main()
