"""Count the Triton kernels that an answer launches, and spoil what they may not lean on.

Like `run`, this file imports nothing of the course.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

INTERPRETER = "triton.runtime.interpreter"
KINDS = (
    ("triton.runtime.jit", "JITFunction"),
    (INTERPRETER, "InterpretedFunction"),
    ("attn_course.experiments.standin", "Kernel"),
)


@contextlib.contextmanager
def counted_launches() -> Iterator[Counter[str]]:
    """Count, under "launched", the launches of kernels of each of the KINDS; nothing is counted while it is not imported.

    Meanwhile, in Triton's interpreter too, a load without `other` brings infinity where its mask leaves a number out.
    """
    count: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        for module, name in KINDS:
            if module in sys.modules:
                stack.enter_context(_counting(getattr(sys.modules[module], name), count))
        if INTERPRETER in sys.modules:
            stack.enter_context(_spoiling(sys.modules[INTERPRETER]))
        yield count


@contextlib.contextmanager
def _counting(kind: Any, count: Counter[str]) -> Iterator[None]:
    run = kind.run

    def counting(self: Any, *args: Any, **keywords: Any) -> Any:
        count["launched"] += not keywords.get("warmup")
        return run(self, *args, **keywords)

    kind.run = counting
    try:
        yield
    finally:
        kind.run = run


@contextlib.contextmanager
def _spoiling(interpreter: Any) -> Iterator[None]:
    """Put infinity where the interpreter puts 0: a GPU may have anything there. Not NaN, which a maximum in Triton passes over."""
    builder = interpreter.InterpreterBuilder
    load = builder.create_masked_load

    def spoilt(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        found = load(self, ptrs, mask, other, *rest, **named)
        if other is None and np.issubdtype(found.data.dtype, np.floating):
            found.data[~np.broadcast_to(mask.data, found.data.shape)] = np.inf
        return found

    builder.create_masked_load = spoilt
    try:
        yield
    finally:
        builder.create_masked_load = load
