"""The process that workers are forked from: it has imported what they need, and knows no task, answer or case.

Run as a script: `python -I fork_server.py --control FD` serves one grader; `--once PORT` is a worker by itself, for systems without
fork. The grader imports no more of it than how it is started and its exit status.
"""

import contextlib
import ctypes
import gc
import importlib.abc
import importlib.util
import inspect
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_COURSE = _HERE.parent
SCRIPT = Path(__file__)
CAN_FORK = hasattr(os, "fork") and hasattr(os, "waitstatus_to_exitcode") and Path("/proc/self/task").exists()
_ENVIRONMENT = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")}
_KEPT = ("LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP")
_begun: "list[tuple[subprocess.Popen[bytes], socket.socket]]" = []


def environment() -> Mapping[str, str]:
    """Return the few variables that a worker begins with."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **_ENVIRONMENT, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def begin() -> None:
    """Start the process for a grader that is still to come: it gets ready while the grader's own modules are imported."""
    if CAN_FORK:
        _begun.append(start())


def start() -> "tuple[subprocess.Popen[bytes], socket.socket]":
    """Return the process that was begun, or a new one, and the line to it; it need not be ready yet."""
    if _begun:
        return _begun.pop()
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), "--control", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
    return process, ours


class _NoCourse(importlib.abc.MetaPathFinder):
    """Says of attn_course that there is no such module."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "attn_course":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _load(*, alone: bool) -> tuple[Any, Any, Any]:
    """Import everything a worker needs, the course's packages without what their __init__ imports; then hide the course.

    `alone`: in namespaces of our own, which are to be had before there is a second thread.
    """
    folders = {"attn_course": _COURSE, **{f"attn_course.{room}": _COURSE / room for room in ("tasks", "formulas", "checking", "classroom")}}
    for name, folder in folders.items():
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    from attn_course.classroom import sandbox

    if alone:
        sandbox.leave_for_own_namespaces()
    for extension in _OF_SYMPY:  # the system links one library at a time, and these would wait for torch's
        importlib.import_module(extension)
    linking = threading.Thread(target=_link_torch)
    linking.start()
    import sympy

    from attn_course.classroom import formula_worker, worker

    linking.join()
    torch = _import_torch()
    torch.set_num_threads(1)
    _warm(sympy, torch, worker)
    rooms = (f"{sandbox.__name__}.", "attn_course.formulas.")
    loaded = {name for name in sys.modules if name.startswith("attn_course.") and not name.startswith(rooms)}
    assert loaded <= _KNOWN, f"the fork server must not know {sorted(loaded - _KNOWN)}"
    _READABLE[:] = sandbox.interpreter_paths()
    _hide_course()
    return worker, sandbox, formula_worker.Formulas()


_OF_SYMPY = ("cmath", "decimal", "unicodedata")


def _link_torch() -> None:
    """Let the system link torch's library, a quarter of its import, while Python imports something else; the import then finds it there."""
    torch = importlib.util.find_spec("torch")
    for library in Path(torch.origin).parent.glob("lib/libtorch_cpu.so") if torch and torch.origin else []:
        ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_LAZY)


def _import_torch() -> Any:
    """Import torch without its rules for tensors that have no data, a third of what is left; they follow with the first such tensor."""
    sys.modules[_RULES] = types.ModuleType(_RULES)
    search, inspect.getmodule = inspect.getmodule, _module_of  # type: ignore[assignment]  # its argument has another name
    import torch

    inspect.getmodule = search
    del sys.modules[_RULES]
    vars(torch).pop(_RULES.rpartition(".")[2])
    library = torch.library.Library("aten", "IMPL")

    def loading(operator: Any) -> Any:
        def run(*args: Any, **keywords: Any) -> Any:
            library._destroy()
            importlib.import_module(_RULES)
            return operator(*args, **keywords)

        return run

    aten = torch.ops.aten  # all others that make one go by the first two
    for operator in (aten.empty.memory_format, aten.empty_strided.default, aten.tril_indices.default, aten.triu_indices.default):
        library.impl(operator, loading(operator), "Meta", allow_override=True)
    return torch


_RULES = "torch._meta_registrations"


def _module_of(thing: object, _filename: str | None = None, search: Any = inspect.getmodule) -> types.ModuleType | None:
    """What `inspect.getmodule` returns: torch asks it for its own frames, and it would look at the file of every module that is loaded."""
    return sys.modules[thing.f_globals["__name__"]] if inspect.isframe(thing) else search(thing, _filename)


_KNOWN = {
    *("attn_course.formulas", "attn_course.tasks", "attn_course.checking", "attn_course.checking.magics", "attn_course.classroom"),
    *(f"attn_course.tasks.{name}" for name in ("compare", "forbidden", "forms", "latex", "launches", "run", "shapes")),
    *(f"attn_course.tasks.{name}" for name in ("simplified", "slices", "slips", "source", "time_limit")),
    *(f"attn_course.classroom.{name}" for name in ("formula_worker", "protocol", "sandbox", "stubs", "worker")),
}


def _warm(sympy: Any, torch: Any, worker: Any) -> None:
    """Do once what is slow the first time."""
    x, y = sympy.symbols("x y", real=True)
    expression = sympy.exp(x - y) * sympy.log(x**2 / y + 1) - sympy.sqrt(x * y) + 2 * (1 - x) / (x + y) - sympy.tanh(y)
    worker.run(expression, [{"x": [1.0, 2.0], "y": [1.0, 3.0]}], worker.Call("x", "derive", ("x", "y"), ("exp", "log", "tanh")))
    session = worker.Session(forbid=[".softmax"])
    task = asdict(worker.Call("f", "write", forbid=[".softmax"]))
    main = sys.modules["__main__"]
    session.begin(["import numpy as np\ndef f(x):\n    return np.exp(x).softmax()"], [1], {"f": task}, {}, {"f": [0]}, 0)
    session.call("f", {"x": worker.np.ones(2)}, 1.0)
    session.discard()
    sys.modules["__main__"] = main
    tensor = torch.ones(2, 2, requires_grad=True)
    torch.softmax(tensor @ tensor, -1).sum().backward()
    worker.to_python("%time 1\n")


def _hide_course() -> None:
    """From here on attn_course cannot be imported, by whatever way it came onto the path."""
    sys.path[:] = [entry for entry in sys.path if not (Path(entry or ".") / "attn_course").exists()]
    sys.meta_path[:] = [_NoCourse(), *(f for f in sys.meta_path if not getattr(f, "__module__", "").startswith("__editable__"))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "attn_course" or name.startswith("__editable__")]:
        del sys.modules[name]
    sys.path_importer_cache.clear()
    sys.argv[:] = [""]


def _become_worker(worker: Any, sandbox: Any, session: Any, line: socket.socket, order: dict[str, Any]) -> None:
    """Confine this process and serve the grader, to the end of the process."""
    try:
        sandbox.confine(
            readable=_READABLE,
            writable=Path(order["writable"]),
            limits=sandbox.Limits(**order["limits"]),
            layers=order["layers"],
            keep=[line.fileno()],
        )
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
        os._exit(UNCONFINED)
    os.environ.update({"MPLCONFIGDIR": order["writable"], "MPLBACKEND": "Agg"})
    worker.serve(session, line)
    os._exit(0)


UNCONFINED = 71  # exit status of a worker that could not be confined
_READABLE: list[Path] = []


def _streams(output: int) -> None:
    """Nothing to read; what is printed goes to the grader, which counts it."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for number in {nothing, output} - {0, 1, 2}:
        os.close(number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8", errors="backslashreplace", closefd=False) for n in (1, 2))


def _usual_signals() -> None:
    """As in a fresh Python, whoever started the grader: nothing blocked, and nothing ignored but what Python ignores."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _threads() -> int:
    """Return how many threads this process has; 1 where that cannot be seen."""
    try:
        return len([*Path("/proc/self/task").iterdir()])
    except OSError:
        return 1


def _adopt_orphans() -> None:
    """What a worker leaves behind comes to us, where it has no namespace of its own to end with."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _end(pid: int, wait_s: float) -> dict[str, Any]:
    """Kill a worker that does not end in this time by itself; say how it ended. One that has hung up may need a moment to be gone."""
    deadline = time.monotonic() + wait_s
    while not (found := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.002)
    if found[0]:
        return {"killed": False, "exit": os.waitstatus_to_exitcode(found[1])}
    os.kill(pid, signal.SIGKILL)
    return {"killed": True}


def _clear(pid: int, others: Collection[int]) -> None:
    """Wait until a killed worker is gone, and what it left behind, which comes to us where it had no namespace to end with."""
    with contextlib.suppress(ChildProcessError):  # it had ended by itself
        os.waitpid(pid, 0)
    for _ in range(10_000):
        if not (left := {*_children(f"/proc/self/task/{os.getpid()}")} - {*others}):
            break
        for child in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _children(of: str) -> list[int]:
    """Processes forked from one, the youngest last, by the numbers that the system shows; none where it shows none."""
    try:
        return [int(pid) for pid in Path(of, "children").read_text().split()]
    except OSError:
        return []


def _share_large_pages() -> None:
    """Put our memory into large pages where the system has them: a fork copies an entry for each page, and its end takes it away."""
    with contextlib.suppress(OSError, AttributeError, ValueError, IndexError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, _, _, _, *name = line.split()
            if rights == "rw-p" and name in ([], ["[heap]"]):
                first, last = (int(address, 16) for address in span.split("-"))
                for start in range(-(-first // _LARGE_PAGE) * _LARGE_PAGE, last - _LARGE_PAGE + 1, _LARGE_PAGE):
                    advise(start, _LARGE_PAGE, _COLLAPSE)  # may fail: nothing has changed then


_LARGE_PAGE, _COLLAPSE = 2 << 20, 25  # MADV_COLLAPSE
_MANY = 24  # workers; large pages take as long to make as the forks of so many take longer without


class _Server:
    """Makes one worker at a time for a grader, until it hangs up."""

    def __init__(self, control: socket.socket) -> None:
        gc.disable()  # imports leave hardly anything behind, and make it look again and again
        self._worker, self._sandbox, self._formulas = _load(alone=True)
        gc.freeze()
        gc.enable()
        _adopt_orphans()
        self._control, self._session = control, self._worker.Session()
        self._pid: int | None = None  # of the worker, if there is one
        self._ended: int | None = None  # of one before it, which need not be gone yet
        self._apart = False  # whether a worker sees no folder of another
        self._spare: _Spare | None = None
        self._forked = 0
        self._homes: list[Path] = []  # the last one is in use

    def serve(self) -> None:
        with contextlib.suppress(ConnectionError):  # the grader has changed its mind, or was killed
            self._answer({"ready": True})
            while self._obey():
                pass
        self._clear()
        if self._pid:
            _end(self._pid, 0.0)
            _clear(self._pid, ())
        for home in self._homes:  # a grader that was killed leaves them
            shutil.rmtree(home, ignore_errors=True)
        os._exit(0)  # to take all that was imported apart would take its time

    def _answer(self, reply: dict[str, Any]) -> None:
        self._control.sendall(json.dumps(reply).encode() + b"\n")

    def _obey(self) -> bool:
        """Do what the grader orders next; False if it has hung up."""
        data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 2)
        while data and not data.endswith(b"\n"):
            part = self._control.recv(65536)
            data = data + part if part else b""
        if not data:
            return False
        order = json.loads(data)
        if order["do"] == "exercise":
            self._discard_spare()
            self._session.discard()
            self._session, reply = _session(self._worker, order["exercise"])
            gc.collect()
            gc.freeze()
            self._answer(reply)
        elif order["do"] == "start":
            self._start(order, descriptors)
            self._clear()
            self._spare = self._fork()  # while the other is at work
        elif self._pid:
            self._answer(_end(self._pid, order["wait_s"]))
            self._pid, self._ended = None, self._pid
            if not self._apart:  # it might still write where the next one works
                self._clear()
        else:
            self._answer({})
        return True

    def _clear(self) -> None:
        """Wait until the worker that was killed last is gone."""
        if self._ended:
            _clear(self._ended, {each for each in (self._pid, self._spare and self._spare.pid) if each})
            self._ended = None

    def _start(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Give the next worker what it is to work with."""
        self._apart = "namespaces" in (order["layers"] or ())
        order["writable"] = str(self._empty_folder(Path(order["writable"])))
        spare, self._spare = self._spare or self._fork(), None
        socket.send_fds(spare.line, [json.dumps(order).encode()], descriptors)
        spare.line.close()
        for descriptor in descriptors:
            os.close(descriptor)
        self._pid = spare.pid
        self._answer({"pid": spare.shown})

    def _empty_folder(self, wanted: Path) -> Path:
        """One that no worker has left anything in; a memory disk over it leaves nothing, and removing it then takes its time.

        It is made here, for we are still there when the grader is killed.
        """
        if self._homes and any(self._homes[-1].iterdir()):
            shutil.rmtree(self._homes[-1], ignore_errors=True)
            wanted = wanted.with_name(f"{wanted.name}-{len(self._homes)}")
        elif self._homes:
            return self._homes[-1]
        wanted.mkdir(0o700)
        self._homes.append(wanted)
        return wanted

    def _discard_spare(self) -> None:
        if self._spare:
            self._spare.line.close()  # it ends then
            os.waitpid(self._spare.pid, 0)
            self._spare = None

    def _fork(self) -> "_Spare":
        """The next worker, which waits for its order: a fork takes as long as several answers."""
        self._forked += 1
        if self._forked == _MANY:
            importlib.import_module(_RULES)
            gc.freeze()
            _share_large_pages()
        assert _threads() == 1, "a fork server forks while it has one thread"
        ours, theirs = socket.socketpair()
        pid = int(self._sandbox.fork_alone())
        if pid:
            theirs.close()
            return _Spare(pid, ours, [0, *_children("/proc/thread-self")][-1])
        try:
            ours.close()  # else it would not see that we have gone
            self._control.close()
            os.setsid()
            _usual_signals()
            with theirs:
                data, descriptors, _, _ = socket.recv_fds(theirs, 65536, 2)
            del ours, theirs  # what lies about is found
            if not data:
                os._exit(0)  # it is not wanted
            line, output = descriptors
            _streams(output)
            order = json.loads(data)
            session = self._formulas if order["formulas"] else self._session
            _become_worker(self._worker, self._sandbox, session, socket.socket(fileno=line), order)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(70)


@dataclass
class _Spare:
    """A worker without an order: its number here, the line on which the order comes, its number as the system shows it."""

    pid: int
    line: socket.socket
    shown: int


def _session(worker: Any, exercise: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A session that workers go on from, and what to tell the grader: an exercise that does not run itself is no learner's fault."""
    try:
        return worker.Session(**exercise), {"problem": ""}
    except Exception as error:
        return worker.Session(), {"problem": f"the exercise's own cells do not run: {type(error).__name__}: {error}"}


def _once(port: int) -> None:
    """One worker without fork: the grader waits on a port of this machine, and has written its order to our stdin."""
    order = json.loads(sys.stdin.readline())
    worker, sandbox, formulas = _load(alone=False)
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(bytes.fromhex(order["token"]))
    session, told = (formulas, {"problem": ""}) if order["formulas"] else _session(worker, order["exercise"])
    if told["problem"]:
        os.write(2, told["problem"].encode())
        os._exit(UNCONFINED)
    _become_worker(worker, sandbox, session, line, order)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--control":
        _Server(socket.socket(fileno=int(sys.argv[2]))).serve()
    else:
        _once(int(sys.argv[2]))
