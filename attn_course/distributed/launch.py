"""Start processes on this machine that form one group, and see to it that all of them end."""

import multiprocessing
import os
import pickle
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing import connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import distributed

from attn_course.distributed.wire import NeighbourLost

GRACE_S = 10.0  # after a failure, for the others to say what they saw


class DeviceFailed(RuntimeError):
    """A process died, raised an error or did not end in time; the message says of each one what became of it, the cause first."""


class _Member(NamedTuple):
    process: Any
    pipe: connection.Connection


def on_devices(n_devices: int, work: Callable[..., Any], *arguments: Any, timeout_s: float = 120.0) -> list[Any]:
    """Call `work(*arguments)` in each of so many new processes, which form the default group, and return what each returned.

    They compute on the CPU, on one thread each, and talk through gloo on this machine; a file that is gone afterwards brings them
    together, so no port has to be free.

    `work`: a function of an importable module, so that the processes find it; in a script, call this behind `if __name__ ==
    "__main__":`. What it takes and returns is pickled.
    `timeout_s`: limit for everything; a wait in the group may take half of it. Afterwards no process is left, whatever happened.

    Raises ValueError if the arguments cannot be used. Raises DeviceFailed if a process dies, raises or is not ready in time: at most 10
    seconds after the first failure, in which the others tell what they saw, and never later than `timeout_s`, or the start of the
    processes if that alone takes longer.
    """
    if isinstance(n_devices, bool) or not isinstance(n_devices, int) or n_devices < 1:
        raise ValueError(f"n_devices must be an integer of 1 or more; got {n_devices!r}")
    if not timeout_s > 0:
        raise ValueError(f"timeout_s must be positive; got {timeout_s!r}")
    started = time.monotonic()
    job = _packed(work, arguments)
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["torch"])  # imported once, not by each process
    members: list[_Member] = []
    with TemporaryDirectory() as folder:
        try:
            for rank in range(n_devices):
                pipe, theirs = context.Pipe()
                given = (rank, n_devices, str(Path(folder, "store")), timeout_s / 2, job, theirs)
                process = context.Process(target=_serve, args=given, daemon=True)
                members.append(_Member(process, pipe))
                process.start()
                theirs.close()
            return _collect(members, started, timeout_s)
        finally:
            for member in members:
                if member.process.pid is not None:
                    member.process.kill()
                    member.process.join()
                member.pipe.close()


def _packed(work: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Plainly: multiprocessing would send tensors as memory that ends with its process."""
    try:
        if getattr(work, "__module__", "__main__") == "__main__":
            raise AttributeError
        return pickle.dumps((work, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"work must be a function that another process can import, with arguments to pickle; got {work!r}") from error


def _serve(rank: int, size: int, store: str, wait_s: float, job: bytes, pipe: connection.Connection) -> None:
    """Take part in the group, and send home what came of it: a word, and the result or the story."""
    torch.set_num_threads(1)
    ready = False
    try:
        work, arguments = pickle.loads(job)
        _join(rank, size, store, wait_s)
        outcome = pickle.dumps(("done", work(*arguments)))
        ready = True
    except NeighbourLost as error:
        outcome = pickle.dumps(("lost", f"{type(error).__name__}: {error}"))
    except Exception as error:
        outcome = pickle.dumps(("failed", "".join(traceback.format_exception(error)).rstrip()))
    with suppress(EOFError, OSError):
        pipe.send_bytes(outcome)
        if ready:
            pipe.recv_bytes()  # it stays until all are ready, for others may still be on their way to it


def _join(rank: int, size: int, store: str, wait_s: float) -> None:
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):  # a host's own name may lead nowhere
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    try:
        limit = timedelta(seconds=wait_s)
        distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=limit)
    except RuntimeError as error:
        raise NeighbourLost(f"process {rank} of {size} did not find the others ({str(error).splitlines()[0]})") from error


def _collect(members: list[_Member], started: float, timeout_s: float) -> list[Any]:
    """Return all results, or raise DeviceFailed with everything that is known."""
    outcomes: dict[int, tuple[str, Any]] = {}
    end = started + timeout_s
    while len(outcomes) < len(members):
        waiting = {member.pipe: rank for rank, member in enumerate(members) if rank not in outcomes}
        ready = connection.wait(list(waiting), max(0.0, end - time.monotonic()))
        if not ready:
            break
        for pipe in ready:
            rank = waiting[pipe]  # type: ignore[index]
            outcomes[rank] = _outcome(members[rank])
            if outcomes[rank][0] != "done":
                end = min(end, time.monotonic() + GRACE_S)
    if [word for word, _ in outcomes.values()] == ["done"] * len(members):
        return [outcomes[rank][1] for rank in range(len(members))]
    stopped = ("unfinished", f"stopped, not ready after {time.monotonic() - started:.0f} s")
    told = {rank: outcomes.get(rank, stopped) for rank in range(len(members))}
    first = ("died", "failed", "unfinished", "lost", "done")
    lines = sorted(
        (first.index(word), f"process {rank} of {len(members)}: {'done' if word == 'done' else story}")
        for rank, (word, story) in told.items()
    )
    raise DeviceFailed("\n".join(line for _, line in lines))


def _outcome(member: _Member) -> tuple[str, Any]:
    try:
        return pickle.loads(member.pipe.recv_bytes())
    except (EOFError, OSError):
        member.process.join()
        code = member.process.exitcode
        return "died", f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code} and no result"
