"""Confine a forked worker: put on the layers in the order that works, and tidy what it inherited."""

import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from . import landlock, namespaces, privileges, seccomp
from . import limits as rlimits
from .layers import LANDLOCK, LAYERS, LIMITS, NAMESPACES, SECCOMP, SandboxError
from .limits import Limits

_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "TZ")


def confine(
    *,
    readable: Sequence[Path] | None = None,
    writable: Path,
    limits: Limits | None = None,
    layers: Collection[str] | None = None,
    keep: Sequence[int] = (),
) -> tuple[str, ...]:
    """Confine this process, for good. Call it in a freshly forked worker with one thread, before any code of a learner.

    Besides the layers: standard input is /dev/null, descriptors but 0, 1, 2 and `keep` are closed, a handful of harmless
    environment variables stay, the working directory, HOME and tempfile are `writable`, no capabilities are left, and the process dies with
    its parent.

    It does not hide the course from `import`: the fork server takes it off sys.path and sys.meta_path, or an attempt is a PermissionError
    where it should be a ModuleNotFoundError.

    `readable`: files and folders to read. None: `landlock.interpreter_paths()`, best computed once in the fork server.
    `writable`: the worker's own temporary directory, which exists. With the layer namespaces it is covered by an empty memory
    disk. `limits`: resource limits. None: `Limits()`. `layers`: names of layers, each of which must work (those that hold of
    `probe()`). None: all, and a missing one is left out. `keep`: descriptors to leave open.

    Returns the layers that were put on. Raises SandboxError if the process has more than one thread, or a layer of `layers`
    cannot be put on: the process must end then. A layer asked for is never left out silently; ValueError if a name in `layers` is
    unknown.
    """
    unknown = sorted(set(layers or ()) - set(LAYERS))
    if unknown:
        raise ValueError(f"layers must be among {', '.join(LAYERS)}; got {', '.join(unknown)}")
    _refuse_threads()
    parent, limits = os.getppid(), limits or Limits()
    readable = landlock.interpreter_paths() if readable is None else readable
    writable = Path(os.path.realpath(writable))
    _tidy(writable, keep)
    done: list[str] = []

    def put_on(layer: str) -> bool:
        if layers is not None and layer not in layers:
            return False
        try:
            if layer == NAMESPACES:
                namespaces.isolate(writable, limits.directory_bytes)
            elif layer == LIMITS:
                rlimits.set_limits(limits, before, own_user_namespace=NAMESPACES in done)
            elif layer == LANDLOCK:
                landlock.allow_only(readable, writable)
            else:
                seccomp.refuse_calls()
        except SandboxError:
            if layers is not None:
                raise
            return False
        done.append(layer)
        return True

    before = rlimits.measure()  # /proc is out of sight after the first layer
    put_on(NAMESPACES)
    os.chdir(writable)
    put_on(LIMITS)
    if sys.platform == "linux":
        privileges.forbid_new_privileges()
    put_on(LANDLOCK)
    if sys.platform == "linux":
        privileges.drop_capabilities()
        privileges.die_with_parent(parent)
    put_on(SECCOMP)
    return tuple(layer for layer in LAYERS if layer in done)


def _refuse_threads() -> None:
    """Landlock, seccomp and namespaces confine the thread that asks for them, and those it starts later."""
    try:
        count = os.stat("/proc/self/task").st_nlink - 2  # noqa: PTH116  # a folder for each thread, and two links of its own
    except OSError:
        return
    if count > 1:
        raise SandboxError(f"only a process with one thread can be confined; this one has {count}")


def _tidy(writable: Path, keep: Sequence[int]) -> None:
    """Drop what a worker has no use for: standard input, descriptors, variables; and send temporary files to its own folder."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    low = 3
    for kept in sorted(set(keep)):
        os.closerange(low, max(low, kept))
        low = max(low, kept + 1)
    os.closerange(low, _most_open_files())
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    os.environ.clear()
    os.environ.update(variables, PATH=os.defpath, HOME=str(writable), TMPDIR=str(writable))
    tempfile.tempdir = str(writable)


def _most_open_files() -> int:
    try:
        return int(os.sysconf("SC_OPEN_MAX"))
    except (AttributeError, ValueError, OSError):
        return 4096
