"""Where a class is graded: processes of this machine, or a dask cluster. Both are a `concurrent.futures.Executor` to the rest."""

import contextlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from attn_course.classroom.process import NoGrader, start_process

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
    """Processes on this machine."""

    jobs: int

    @property
    def width(self) -> int:
        """One that waits for each that runs."""
        return 2 * self.jobs

    @contextlib.contextmanager
    def open(self) -> Iterator[Executor]:
        """Start the processes: fresh ones, because a fork would copy whatever threads this process runs."""
        with ProcessPoolExecutor(self.jobs, mp_context=multiprocessing.get_context("spawn"), initializer=start_process) as executor:
            try:
                yield executor
            except BaseException:
                for process in list((getattr(executor, "_processes", None) or {}).values()):
                    process.terminate()  # do not wait for what an interrupted run no longer wants
                executor.shutdown(wait=False, cancel_futures=True)
                raise


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
