"""Resource limits of one worker: what the kernel counts (rlimits), and what the parent counts."""

import contextlib
import math
import os
import sys
from dataclasses import dataclass

from .layers import SandboxError
from .system_calls import c_library

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # Windows has none

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one worker may use; its kernel holds all of them.

    `address_space_bytes`: memory on top of what the process has when it is confined: a fork of a process that imported torch
    starts with gigabytes.
    `cpu_s`: seconds of processor time, which the kernel rounds up to whole seconds; it adds one before it kills.
    `file_bytes`, `directory_bytes`: the largest file, and all files of the temporary directory together (the latter only with the
    layer namespaces).
    `open_files`: open descriptors, the three standard ones included.
    `processes`: processes and threads of the worker; root's are not counted by Linux, there the address space bounds the threads.
    """

    address_space_bytes: int = 1536 * MIB
    cpu_s: float = 10.0
    file_bytes: int = 16 * MIB
    directory_bytes: int = 64 * MIB
    open_files: int = 64
    processes: int = 32


@dataclass(frozen=True)
class Before:
    """What a process uses before it is limited."""

    mapped_bytes: int
    data_bytes: int
    cpu_s: float


def measure() -> Before:
    """Return what this process uses now; zeros where there is no /proc."""
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
        fields = os.read(handle, 200).split()
        os.close(handle)
    except OSError:
        fields = [b"0"] * 7
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return Before(int(fields[0]) * page, int(fields[5]) * page, sum(os.times()[:2]))


def set_limits(limits: Limits, before: Before, *, own_user_namespace: bool) -> None:
    """Set the rlimits of this process, for good: a process without capabilities cannot raise them.

    Stops memory bombs, endless loops, huge files and hoarded descriptors; where the user is not root, also floods of threads and
    processes. Stops no reading, no writing of small files, no network, no signals.

    `before`: what `measure` said just before. `own_user_namespace`: whether processes are counted in a user namespace of the
    worker's own, or together with all others of the user. Raises SandboxError if the system has no rlimits, or refuses one.
    """
    if resource is None:
        raise SandboxError("this system has no resource limits")
    cpu_s = math.ceil(before.cpu_s + limits.cpu_s)
    wanted: list[tuple[str, int, int]] = [
        ("CORE", 0, 0),
        ("CPU", cpu_s, cpu_s + 1),  # SIGXCPU first, then SIGKILL
        ("FSIZE", limits.file_bytes, limits.file_bytes),
        ("NOFILE", limits.open_files, limits.open_files),
    ]
    if sys.platform == "linux":  # macOS accepts the two of memory and does not hold them
        mapped_bytes, data_bytes = before.mapped_bytes + limits.address_space_bytes, before.data_bytes + limits.address_space_bytes
        _share_one_arena()
        wanted += [("AS", mapped_bytes, mapped_bytes), ("DATA", data_bytes, data_bytes)]
    processes = limits.processes + (0 if own_user_namespace else _tasks_of_user())
    wanted.append(("NPROC", processes, processes))
    for name, soft, hard in wanted:
        which = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(which, (soft, hard))
        except (ValueError, OSError) as error:
            raise SandboxError(f"setrlimit {name}: {error}") from error


def _share_one_arena() -> None:
    """Let all threads allocate from one heap: the C library would reserve 64 MiB of address space for each."""
    with contextlib.suppress(AttributeError, OSError):  # musl has no such switch
        c_library().mallopt(-8, 1)


def _tasks_of_user() -> int:
    """Return how many threads the user of this process runs; where there is no /proc, a number that leaves them room."""
    user, count = os.getuid(), 0
    try:
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    if entry.stat().st_uid == user:
                        count += os.stat(f"{entry.path}/task").st_nlink - 2  # noqa: PTH116  # a Path is five times slower
                except OSError:
                    pass  # ended meanwhile
    except OSError:
        return 1024
    return count
