"""Count the Triton kernels that an answer launches. Like `run`, this file imports nothing of the course."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

KINDS = (
    ("triton.runtime.jit", "JITFunction"),
    ("triton.runtime.interpreter", "InterpretedFunction"),
    ("attn_course.experiments.standin", "Kernel"),
)


@contextlib.contextmanager
def counted_launches() -> Iterator[Counter[str]]:
    """Count, under "launched", the launches of kernels of each of the KINDS; nothing is counted while it is not imported."""
    count: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        for module, name in KINDS:
            if module in sys.modules:
                stack.enter_context(_counting(getattr(sys.modules[module], name), count))
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
