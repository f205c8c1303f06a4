"""Turn a fork of the warm process into an IPython kernel that cannot be told from a plain one."""

import contextlib
import ctypes
import importlib
import importlib.machinery
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ipykernel.kernelapp import IPKernelApp

INLINE = "module://matplotlib_inline.backend_inline"
_PR_SET_PDEATHSIG = 1
_OPENBLAS_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


@dataclass(frozen=True)
class Job:
    """What a fork is to become.

    Attributes
    ----------
    arguments : tuple of str
        Of the kernel, as after `python -m ipykernel_launcher`.
    folder : str
        Its working directory.
    environment : dict of str to str
        All of its environment variables.
    files : tuple of int
        Its stdout and stderr.
    client : socket.socket
        Where to say that it listens.
    course : dict of str to (int, int)
        Files of the course that are imported, with their stamps.
    warm_pid : int
        The process it was forked from.
    warm_environment : dict of str to str
        What that process was started with.
    """

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    files: tuple[int, ...]
    client: socket.socket
    course: Mapping[str, tuple[int, int]]
    warm_pid: int
    warm_environment: Mapping[str, str]


def become(job: Job) -> None:
    """Run the kernel to its end; the interpreter then ends as it always does."""
    os.setsid()
    _die_with(job.warm_pid)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _take_files(job.files)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment, JPY_PARENT_PID=str(job.warm_pid))
    time.tzset()
    _take_path(job)
    if not _is_current(job.course):
        forget_course()
    _reseed()
    _let_openblas_have_its_threads()
    _choose_backend()
    sys.argv = ["ipykernel_launcher", *job.arguments]
    application = IPKernelApp.instance(parent_handle=job.warm_pid)  # the class read JPY_PARENT_PID when it was imported
    application.initialize()
    with job.client:
        job.client.sendall(b"{}\n")  # it listens now; a client that connects earlier waits 0.1 s before it tries again
    application.start()


def _die_with(parent: int) -> None:
    """End when the warm process does, whatever ends it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _take_files(files: tuple[int, ...]) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in zip((null, *files), (0, 1, 2), strict=True):
        os.dup2(source, target)
        os.close(source)


def _take_path(job: Job) -> None:
    """Put the kernel's PYTHONPATH where the warm process had its own."""

    def folders(environment: Mapping[str, str]) -> list[str]:
        text = environment.get("PYTHONPATH", "")
        return [str(Path(folder).absolute()) for folder in text.split(os.pathsep)] if text else []

    ours = set(folders(job.warm_environment))
    sys.path[:] = list(dict.fromkeys([*folders(job.environment), *(folder for folder in sys.path if folder not in ours)]))
    sys.dont_write_bytecode = bool(job.environment.get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()


def stamp(file: str) -> tuple[int, int]:
    """Return when a file was changed and how long it is; zeros if it is gone."""
    try:
        found = os.stat(file)  # noqa: PTH116  # a hundred of them
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def forget_course() -> None:
    """Let the course be imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "attn_course"]:
        del sys.modules[name]


def _is_current(course: Mapping[str, tuple[int, int]]) -> bool:
    """Whether this kernel would import the same files, and nobody has changed one."""
    if "attn_course" not in sys.modules:
        return True
    home = sys.modules["attn_course"].__file__
    found = importlib.machinery.PathFinder.find_spec("attn_course", sys.path)
    here = Path("attn_course").absolute()  # IPython adds the working directory
    elsewhere = here.exists() and str(here / "__init__.py") != home
    return found is not None and found.origin == home and not elsewhere and all(stamp(file) == seen for file, seen in course.items())


def _reseed() -> None:
    """Give each generator that a library made at import a seed of its own."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.default_generator.seed()
    if sympy_random := sys.modules.get("sympy.core.random"):
        sympy_random.rng.seed()


def _let_openblas_have_its_threads() -> None:
    """Undo the one thread of the imports; OpenBLAS starts the others now, in the kernel."""
    wanted = next(
        (os.environ[name] for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS") if os.environ.get(name)), ""
    )
    threads = int(wanted) if wanted.isdigit() and int(wanted) else len(os.sched_getaffinity(0))
    if threads == 1:
        return
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    for library in {line.split(maxsplit=5)[5] for line in mapped if "openblas" in line}:
        loaded = ctypes.CDLL(library)
        setter = next((name for name in _OPENBLAS_SETTERS if hasattr(loaded, name)), None)
        if setter:
            getattr(loaded, setter)(threads)


def _choose_backend() -> None:
    """Matplotlib read MPLBACKEND when it was imported; a kernel names the inline backend before."""
    os.environ["MPLBACKEND"] = os.environ.get("MPLBACKEND") or INLINE
    if matplotlib := sys.modules.get("matplotlib"):
        matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
