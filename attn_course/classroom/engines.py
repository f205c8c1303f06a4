"""Where a class is graded: processes of this machine, or a dask cluster. Both are a `concurrent.futures.Executor` to the rest.

A process of the pool imports this file first of all, and so it imports nothing that takes long.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Protocol

CONNECT_S = 10.0


class Engine(Protocol):
    """Where notebooks are graded."""

    @property
    def width(self) -> int:
        """How many notebooks may be under way at a time."""

    def open(self) -> contextlib.AbstractContextManager[Executor]:
        """Return an executor; called again when one has broken."""


@dataclass(frozen=True)
class Pool:
    """Processes on this machine; `first` is what each of them does first."""

    jobs: int
    first: Callable[[], object] | None = None

    @property
    def width(self) -> int:
        """One that waits for each that runs."""
        return 2 * self.jobs

    @contextlib.contextmanager
    def open(self) -> Iterator[Executor]:
        """Start the processes: fresh ones, because a fork would copy whatever threads this process runs."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.jobs, context, start_process, (self.first,)) as executor:
            try:
                yield executor
            except BaseException:
                for process in list((getattr(executor, "_processes", None) or {}).values()):
                    process.terminate()  # do not wait for what an interrupted run no longer wants
                executor.shutdown(wait=False, cancel_futures=True)
                raise


def start_process(first: Callable[[], object] | None) -> None:
    """In a new process of the pool: Ctrl-C is the parent's to handle, and a parent that dies takes this process along."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    if first is not None:
        first()


class Cluster:
    """Workers of a dask cluster, which see the same files.

    `address`: of the scheduler, such as tcp://host:8786.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._cores = 1

    @property
    def width(self) -> int:
        """One that waits for each that runs."""
        return 2 * self._cores

    @contextlib.contextmanager
    def open(self) -> Iterator[Executor]:
        """Connect to the scheduler."""
        from attn_course.classroom.process import NoGrader

        try:
            from distributed import Client
            from distributed.comm import get_address_host_port
        except ImportError:
            raise NoGrader("--scheduler needs dask: pip install 'attn_course[class]'") from None
        try:
            get_address_host_port(self.address)  # a client that stumbles over it would write a traceback later
            client = Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NoGrader(f"--scheduler: no dask scheduler answers at {self.address}: {error}") from None
        with client, client.get_executor() as executor:
            self._cores = sum(client.ncores().values())
            if not self._cores:
                raise NoGrader(f"--scheduler: the scheduler at {self.address} has no workers")
            yield executor
