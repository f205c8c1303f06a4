"""What passes between processes: each byte is counted, and a neighbour that says nothing is an error."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed


class NeighbourLost(RuntimeError):
    """A process of the group died, left, or said nothing for as long as the group waits."""


class Wire:
    """The way to the other processes of a group; without torch.distributed, one process alone.

    `group`: of torch.distributed; the default group if left out. No wait is longer than the time limit that the group was made with
    (`timeout` of init_process_group and new_group); then, or as soon as a connection closes, NeighbourLost is raised.

    `sent_bytes` counts what this process has sent to others. `step_pairs` lists, for each step of a ring that went forward, the pairs
    of a query and a key whose score was computed.

    Raises ValueError if this process is not in the group.

    >>> wire = Wire()
    >>> wire.rank, wire.size, wire.sent_bytes
    (0, 1, 0)
    """

    def __init__(self, group: distributed.ProcessGroup | None = None) -> None:
        alone = not (distributed.is_available() and distributed.is_initialized())
        self.group = group
        self.rank, self.size = (0, 1) if alone else (distributed.get_rank(group), distributed.get_world_size(group))
        if self.rank < 0:
            raise ValueError(f"group must hold this process; got one without process {distributed.get_rank()}")
        self.sent_bytes = 0
        self.step_pairs: list[int] = []

    def pass_on(self, tensor: Tensor, shape: Sequence[int]) -> Callable[[], Tensor]:
        """Start to send a tensor to the next process and to receive one of `shape` from the one before; return what waits for it.

        `tensor` (any shape): must not be written to before the wait is over.
        Both messages are on their way at once: two processes that first send and then receive may wait for each other for ever.
        """
        sent, received = tensor.contiguous(), tensor.new_empty(tuple(shape))
        before, after = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        messages = [(distributed.isend, sent, after), (distributed.irecv, received, before)]
        with self._heard(before, after):
            ways = [distributed.P2POp(way, some, group=self.group, group_peer=peer) for way, some, peer in messages if some.numel()]
            works = distributed.batch_isend_irecv(ways) if ways else []
        self.sent_bytes += sent.nbytes

        def wait() -> Tensor:
            with self._heard(before, after):
                for work in works:
                    work.wait()
            return received

        return wait

    def exchange(self, parts: Sequence[Tensor], shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Send part i to process i, and return what each process sent here, of the given shapes; `parts` (any shapes), one dtype."""
        if self.size == 1:
            return list(parts)
        sent = torch.cat([part.reshape(-1) for part in parts])
        counts = [torch.Size(shape).numel() for shape in shapes]
        received = sent.new_empty(sum(counts))
        with self._heard(*(rank for rank in range(self.size) if rank != self.rank)):
            distributed.all_to_all_single(received, sent, counts, [part.numel() for part in parts], group=self.group)
        self.sent_bytes += sent.nbytes - parts[self.rank].nbytes
        return [some.view(tuple(shape)) for some, shape in zip(received.split(counts), shapes, strict=True)]

    @contextmanager
    def _heard(self, *others: int) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            whom, said = " or ".join(f"process {rank}" for rank in dict.fromkeys(others)), str(error).splitlines()[0]
            raise NeighbourLost(
                f"process {self.rank} of {self.size} lost {whom}: it died, left, or does not take part in this exchange ({said})"
            ) from error
