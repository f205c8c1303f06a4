"""CPU time of calls; time in which other programs have the processor does not count."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def cpu_seconds(calls: Sequence[Callable[[], Any]], repeats: int, *, runs: int = 1) -> np.ndarray:
    """Return the CPU seconds of calls, (n_calls, repeats), each the mean of some runs, after one that does not count.

    The calls are taken in turn, so that a busy machine disturbs all alike.
    """
    for call in calls:
        call()
    found = np.empty((len(calls), repeats))
    for repeat in range(repeats):
        for number, call in enumerate(calls):
            start = time.process_time()
            for _ in range(runs):
                call()
            found[number, repeat] = (time.process_time() - start) / runs
    return found
