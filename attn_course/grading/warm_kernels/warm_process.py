"""The warm process: import what notebooks import, listen on a Unix socket, fork a kernel for each connection.

It has one thread and no zmq context; both are asserted before each fork. A connection lives as long as its kernel:
the client sends one request and then signals, the warm process answers with the pid and then the exit code.
A client that goes away takes its kernel along; an owner that goes away takes everything along, also by kill -9.
A kernel that ends, however it ends, takes the processes of its group along. Those that have left the group are adopted
by the warm process, and end when no kernel is left that may be theirs.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attn_course.grading.warm_kernels.forked import INLINE, Job, forget_course, stamp
from attn_course.grading.warm_kernels.settings import COURSE_IMPORTS, IMPORTS, KERNEL_IMPORTS, differing, shadows

_OWNER_LOOK_S = 1.0
_REQUEST_S = 10.0
_MOST_BYTES = 16 * 2**20
_WAIT_S = 0.005
_END_S = 1.0  # for the children to be gone at the end
_PR_SET_CHILD_SUBREAPER = 36
LENGTH = struct.Struct("!I")


@dataclass
class _Kernel:
    """A fork, and what its client has said so far."""

    pid: int
    heard: bytearray = field(default_factory=bytearray)


class Refusal(Exception):
    """Why this kernel cannot be forked; the client starts a plain one."""


class WarmProcess:
    """The loop that forks.

    Parameters
    ----------
    listener : socket.socket
        Already listening; its file lies in a private directory that is removed at the end.
    idle_s : float
        Without a kernel for so long, the process ends.
    imports : sequence of str
        Modules to import beforehand.
    """

    def __init__(self, listener: socket.socket, *, idle_s: float, imports: tuple[str, ...] = IMPORTS) -> None:
        self.listener = listener
        self.idle_s = idle_s
        self.owner = os.getppid()
        self.environment = dict(os.environ)
        self.kernels: dict[socket.socket, _Kernel] = {}
        self.preloaded = _import(imports)
        self.set_by_imports = {name: value for name, value in os.environ.items() if self.environment.get(name) != value}
        self.course = _import_course() if imports == IMPORTS else {}
        gc.collect()

    def serve(self) -> Job | None:
        """Fork kernels until the owner is gone; in a fork return what the kernel is to be, in the warm process None."""
        hear, ring = os.pipe()
        for end in (hear, ring):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the wake-up above needs a handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        _adopt_orphans()
        self.events = selectors.DefaultSelector()
        self.events.register(self.listener, selectors.EVENT_READ)
        self.events.register(0, selectors.EVENT_READ)  # the owner holds the other end and never writes
        self.events.register(hear, selectors.EVENT_READ)
        self.own_files = (hear, ring, self.listener.fileno(), self.events.fileno())
        me, busy = os.getpid(), time.monotonic()
        try:
            while os.getppid() == self.owner:
                ready = [key.fileobj for key, _ in self.events.select(_OWNER_LOOK_S)]
                if 0 in ready:
                    break
                with contextlib.suppress(BlockingIOError):
                    os.read(hear, 4096)
                self._reap()
                if self.listener in ready and (job := self._accept()):
                    return job
                for client in [client for client in ready if client in self.kernels]:
                    self._listen(client)
                busy = time.monotonic() if self.kernels else busy
                if time.monotonic() - busy > self.idle_s:
                    break
            return None
        finally:
            if os.getpid() == me:
                self._end()

    def _accept(self) -> Job | None:
        """Take one request and fork; return its job in the fork."""
        client, _ = self.listener.accept()
        files: list[int] = []
        try:
            client.settimeout(_REQUEST_S)
            request, files = _receive(client)
            self._check(request)
            gc.freeze()
            pid = os.fork()
        except (Refusal, OSError, ValueError, KeyError) as error:
            _send(client, {"refused": str(error)})
            client.close()
            for file in files:
                os.close(file)
            return None
        if pid == 0:
            return self._forked(client, request, files)
        for file in files:
            os.close(file)
        client.setblocking(False)
        self.kernels[client] = _Kernel(pid)
        self.events.register(client, selectors.EVENT_READ)
        _send(client, {"pid": pid})
        return None

    def _check(self, request: dict[str, Any]) -> None:
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads != 1:
            raise Refusal(f"the warm process has {threads} threads")
        if names := differing(self.environment, request["environment"]):
            raise Refusal(f"the kernel's environment differs in {', '.join(names)}")
        if request["executable"] != sys.executable:
            raise Refusal("the kernel's Python is another")
        folders = [request["folder"], *filter(None, request["environment"].get("PYTHONPATH", "").split(os.pathsep))]
        files = [name for folder in folders if Path(folder).is_dir() for name in os.listdir(folder)]  # noqa: PTH208  # names
        if names := shadows(self.preloaded, files):
            raise Refusal(f"the kernel's folders hold files named like libraries: {', '.join(names)}")

    def _forked(self, client: socket.socket, request: dict[str, Any], files: list[int]) -> Job:
        """Let go of what belongs to the warm process."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for kept in self.kernels:
            kept.close()
        for file in self.own_files:
            os.close(file)
        self.listener.detach()
        return Job(
            arguments=tuple(request["arguments"]), folder=request["folder"],
            environment=request["environment"] | self.set_by_imports, files=tuple(files), client=client, course=self.course,
            warm_pid=os.getppid(), warm_environment=self.environment,
        )  # fmt: skip

    def _listen(self, client: socket.socket) -> None:
        kernel = self.kernels[client]
        try:
            data = client.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            _signal(kernel.pid, signal.SIGKILL)  # reaped, and forgotten, in the next turn
            self.events.unregister(client)
            return
        kernel.heard += data
        *lines, rest = kernel.heard.split(b"\n")
        kernel.heard = rest
        for line in lines:
            _signal(kernel.pid, int(line))

    def _reap(self) -> None:
        """Tell clients whose kernels have ended, and forget both; end what those have left behind."""
        clients = {kernel.pid: client for client, kernel in self.kernels.items()}
        for pid in _ended():
            if pid in clients:
                _signal(pid, signal.SIGKILL)  # the group; nobody else can have its number before the next line
            _, status = os.waitpid(pid, 0)
            if pid in clients:
                self._forget(clients[pid], os.waitstatus_to_exitcode(status))
        if not self.kernels:  # whose an adopted process is cannot be told
            _kill_children()

    def _forget(self, client: socket.socket, code: int) -> None:
        _send(client, {"exit": code})
        with contextlib.suppress(KeyError):
            self.events.unregister(client)
        client.close()
        del self.kernels[client]

    def _end(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for kernel in self.kernels.values():
            _signal(kernel.pid, signal.SIGKILL)
        end = time.monotonic() + _END_S
        with contextlib.suppress(ChildProcessError):  # none is left
            while time.monotonic() < end:
                _kill_children()  # each may leave us others
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    time.sleep(_WAIT_S)
        shutil.rmtree(Path(self.listener.getsockname()).parent, ignore_errors=True)


def _adopt_orphans() -> None:
    """Become the parent of what a kernel leaves behind when it ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _ended() -> Iterator[int]:
    """The children that have ended; whoever takes one reaps it before the next."""
    with contextlib.suppress(ChildProcessError):
        while child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            yield child.si_pid


def _kill_children() -> None:
    with contextlib.suppress(OSError):  # a Linux that keeps no such list
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGKILL)


def _import(names: tuple[str, ...]) -> frozenset[str]:
    """Import the modules, and return the top names that a plain kernel would not yet have imported itself."""
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it starts its threads when it is loaded; a fork gets them back
    try:
        _import_each(KERNEL_IMPORTS)
        plain = {name.partition(".")[0] for name in sys.modules}
        _import_each(names)
        if matplotlib := sys.modules.get("matplotlib"):
            matplotlib.rcsetup.validate_backend(INLINE)  # looks through all installed packages, the first time
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        if threads is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = threads
    return frozenset({name.partition(".")[0] for name in sys.modules} - plain)


def _import_course() -> dict[str, tuple[int, int]]:
    """Import the course from the folder that is first on our path; return its files, each with its date and size."""
    forget_course()  # this file, too, is a part of it, and no notebook's
    _import_each(COURSE_IMPORTS)
    if numbers := sys.modules.get("attn_course.numbers"):
        _import_each(module for lesson in numbers.lessons_with("tasks") for module in numbers.lesson_modules("tasks", lesson))
    files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "attn_course"]
    return {file: stamp(file) for file in files if file}


def _import_each(names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):  # not installed, or not in this version
            importlib.import_module(name)


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Read one request: its length, its JSON, and the files that become the kernel's stdout and stderr."""
    numbers = array.array("i")
    data, ancillary, *_ = client.recvmsg(LENGTH.size, socket.CMSG_SPACE(2 * numbers.itemsize))
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    if len(data) < LENGTH.size:
        raise Refusal("the request is cut off")
    (left,) = LENGTH.unpack(data)
    if left > _MOST_BYTES:
        raise Refusal("the request is too long")
    text = bytearray()
    while len(text) < left:
        part = client.recv(left - len(text))
        if not part:
            raise Refusal("the request is cut off")
        text += part
    return json.loads(text), list(numbers)


def _send(client: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a client that is gone
        client.sendall(json.dumps(message).encode() + b"\n")


def _signal(pid: int, number: int) -> None:
    """Signal a kernel and what it started; the pid is ours until we have reaped it."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # before setsid()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def main() -> Job | None:
    """Serve; arguments are the number of the listening socket's file, the idle time, and the modules to import."""
    file, idle_s, *imports = sys.argv[1:]
    listener = socket.socket(fileno=int(file))
    warm = WarmProcess(listener, idle_s=float(idle_s), imports=tuple(imports))
    del sys.path[0]
    if not warm.course:
        forget_course()
    return warm.serve()
