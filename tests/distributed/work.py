"""What the processes of the tests do, and the cases that they work through in one group."""

import os
import signal
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import torch
from torch import distributed

from attn_course.distributed import NeighbourLost, Wire, device_places, head_parallel_attention, ring_attention
from tests.processes import wait_for

WAYS = {"ring": ring_attention, "heads": head_parallel_attention}
SILENT_S = 1.0  # how long the two of a small group wait for each other


class Case(NamedTuple):
    """One call on some of the processes; every axis is of another length."""

    way: str
    n: int
    order: str
    is_causal: bool = True
    length: int = 29
    heads: int = 3
    kv_heads: int = 3
    dtype: torch.dtype = torch.float64
    spread: float = 1.0
    block_q: int | None = 4
    d_k: int = 5
    d_v: int = 7

    def whole(self):
        generator = torch.Generator().manual_seed(self.length)
        shapes = [(self.heads, self.d_k), (self.kv_heads, self.d_k), (self.kv_heads, self.d_v), (self.heads, self.d_v)]
        drawn = [torch.randn(2, heads, self.length, width, generator=generator, dtype=torch.float64) for heads, width in shapes]
        return [(part * self.spread).to(self.dtype) for part in drawn]

    def places(self):
        return device_places(self.length, self.n, self.order)

    def options(self):
        shared = {"is_causal": self.is_causal, "enable_gqa": self.heads != self.kv_heads}
        return shared | ({"scale": 0.3, "block_q": self.block_q} if self.way == "ring" else {"scale": 0.3})


ORDERS = ("contiguous", "striped", "zigzag")
CASES = [
    *(Case("ring", n, order) for n in (1, 2, 3, 4) for order in ORDERS),
    *(Case("heads", n, order, heads=12, kv_heads=12) for n, order in zip((1, 2, 3, 4), ("zigzag", *ORDERS), strict=True)),
    Case("ring", 3, "zigzag", is_causal=False),
    Case("heads", 3, "striped", is_causal=False),
    Case("ring", 3, "striped", heads=6, kv_heads=2),
    Case("heads", 4, "zigzag", heads=8, kv_heads=4),
    *(Case(way, 4, "contiguous", length=3, heads=4, kv_heads=4) for way in WAYS),  # one process has nothing
    Case("ring", 2, "zigzag", length=1),
    *(Case("ring", 4, order, block_q=1) for order in ORDERS),  # no query computes a score that it does not need
    Case("ring", 4, "zigzag", length=32, block_q=128),
    Case("ring", 3, "zigzag", spread=40.0),  # log-sum-exps in the thousands, whose exponentials are infinite
    Case("ring", 4, "zigzag", dtype=torch.float32),
    Case("ring", 4, "zigzag", dtype=torch.bfloat16),
    Case("heads", 3, "zigzag", dtype=torch.bfloat16),
]


@contextmanager
def counted():
    """Count bytes to others, and FLOPs of matrix products, where torch gets them, whatever the course counts; yield the two."""
    seen, product = {"bytes": 0, "flops": 0}, torch.Tensor.__matmul__
    messages, exchange = distributed.batch_isend_irecv, distributed.all_to_all_single

    def count_messages(ways):
        seen["bytes"] += sum(way.tensor.nbytes for way in ways if way.op is distributed.isend)
        return messages(ways)

    def count_exchange(received, sent, received_counts, sent_counts, group):
        own = distributed.get_rank(group)
        seen["bytes"] += sum(count for rank, count in enumerate(sent_counts) if rank != own) * sent.element_size()
        return exchange(received, sent, received_counts, sent_counts, group=group)

    def count_product(one, two):
        result = product(one, two)
        seen["flops"] += 2 * result.numel() * one.shape[-1]
        return result

    distributed.batch_isend_irecv, distributed.all_to_all_single, torch.Tensor.__matmul__ = count_messages, count_exchange, count_product
    yield seen
    distributed.batch_isend_irecv, distributed.all_to_all_single, torch.Tensor.__matmul__ = messages, exchange, product


def run(case, group):
    """Return what one process gets for its part, forward and backward, and what was counted."""
    wire, places = Wire(group), case.places()
    own = places[wire.rank]
    *parts, d_output = (part[..., own, :] for part in case.whole())
    parts = [part.clone().requires_grad_() for part in parts]
    with counted() as seen:
        output = WAYS[case.way](*parts, places, wire=wire, **case.options())
        forward = {"sent": wire.sent_bytes, **seen}
        output.backward(d_output)
        both = {"sent": wire.sent_bytes, **seen}
    results = [part.detach() for part in (output, *(part.grad for part in parts))]
    return {"results": results, "forward": forward, "both": both, "step_pairs": wire.step_pairs}


def every_check():
    """Work through all cases in groups of the same four processes, then let one wait in vain for another."""
    rank, groups = distributed.get_rank(), {n: distributed.new_group(list(range(n))) for n in (1, 2, 3, 4)}
    told = {"cases": [run(case, groups[case.n]) if rank < case.n else None for case in CASES]}
    pair = distributed.new_group([0, 1], timeout=timedelta(seconds=SILENT_S))
    if rank == 0:
        case, started = Case("ring", 2, "zigzag"), time.monotonic()
        try:
            run(case, pair)
        except NeighbourLost as error:
            told |= {"silence": str(error), "after_s": time.monotonic() - started}
    elif rank == 2:
        try:
            Wire(pair)
        except ValueError as error:
            told["stranger"] = str(error)
    distributed.barrier()
    return told


def come_to_grief(raised):
    """Compute once; then process 2 raises an error, and says so in a file, process 1 is killed, and process 0 goes on."""
    case = Case("ring", 3, "zigzag")
    run(case, None)
    if distributed.get_rank() == 2:
        raised.touch()
        raise ValueError("planted")
    if distributed.get_rank() == 1:
        wait_for(raised.exists)
        os.kill(os.getpid(), signal.SIGKILL)
    run(case, None)
