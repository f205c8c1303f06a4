"""A Python that has imported the heavy libraries already: a server that forks, and a command that looks like python and asks it.

Tests that start Python many times, and do not ask how it starts, take this one: importing torch, Matplotlib and SymPy again would be most
of their CPU time. The course itself is not imported beforehand, and names, files and modules of one process never reach another.
What the command does not understand (other options than -m and -c) it leaves to the real Python.
"""

import array
import contextlib
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = [
    "torch", "sympy", "numpy", "matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib_inline.backend_inline", "IPython",
    "ipykernel.kernelapp", "jupyter_client.manager", "nbclient", "nbval.plugin", "pytest", "jupytext", "jaxtyping", "typer", "rich.console",
]  # fmt: skip
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOLD = b"null"  # a test process that wants the server to go on


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The path of a command that looks like python; all who name the same folder share a server, which ends with the last of them."""
    if not sys.platform.startswith("linux"):  # elsewhere libraries may not like to be forked
        yield sys.executable
        return
    import subprocess

    from filelock import FileLock

    line, server = socket.socket(socket.AF_UNIX), None
    with FileLock(folder / "warm.lock"), contextlib.chdir(folder):  # the name of a socket may not be long
        try:
            line.connect("warm.socket")
        except OSError:
            command = folder / "warm-python"
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "{__file__}" "{sys.executable}" "{folder}" "$@"\n')
            command.chmod(0o755)
            ready, theirs = os.pipe()
            environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MPLBACKEND")}
            environment |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
            with Path("warm.log").open("ab") as log:
                server = subprocess.Popen(
                    [sys.executable, __file__, str(theirs)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs],
                    env=environment, start_new_session=True,
                )  # fmt: skip
            os.close(theirs)
            os.read(ready, 1)
            os.close(ready)
            line.connect("warm.socket")
    _send(line, HOLD)
    yield str(folder / "warm-python")
    line.close()
    if server:
        try:
            server.wait(2)
        except subprocess.TimeoutExpired:  # it serves others, and ends with the last of them
            server.returncode = 0  # or Popen complains that it still runs


def _send(line: socket.socket, message: bytes, descriptors: tuple[int, ...] = ()) -> None:
    sent = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    line.sendmsg([struct.pack("I", len(message))], sent)
    line.sendall(message)


def ask(python: str, folder: str, words: list[str]) -> None:
    """Let the server run what python would, and end as it ends."""
    line, here = socket.socket(socket.AF_UNIX), str(Path.cwd())
    for number in SIGNALS:
        signal.signal(number, lambda number, _: line.sendall(bytes([number])))
    options = list(words)
    while options and options[0].startswith("-X"):
        del options[0]
    try:
        if not options or (options[0].startswith("-") and options[0] not in ("-m", "-c")) or os.environ.get("PYTHONHASHSEED", "0") != "0":
            raise OSError("an option that is not known")
        os.chdir(folder)
        line.connect("warm.socket")
    except OSError:
        os.chdir(here)
        os.execv(python, [python, *words])
    message = {"words": options, "folder": here, "environment": dict(os.environ), "executable": f"{folder}/warm-python", "python": python}
    _send(line, json.dumps(message).encode(), (0, 1, 2))
    status = line.recv(4)
    code = os.waitstatus_to_exitcode(struct.unpack("i", status)[0]) if status else 1
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(ready: int) -> None:
    """Fork a process for each who asks, until nobody holds the server; a fork returns from here, with what it is to run."""
    import gc
    import selectors

    gc.freeze()
    door = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        Path("warm.socket").unlink()
    door.bind("warm.socket")
    door.listen(64)
    ended, ends = socket.socketpair()
    ended.setblocking(False)
    ends.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends.fileno())
    selector = selectors.DefaultSelector()
    selector.register(door, selectors.EVENT_READ)
    selector.register(ended, selectors.EVENT_READ)
    lines: dict[socket.socket, int] = {}  # to whom -> the process that runs for them; 0 for those who hold
    os.close(ready)
    holders = 1  # whoever started it, until it says so
    while holders or any(lines.values()):
        for key, _ in selector.select():
            line = key.fileobj
            if line is door:
                line = door.accept()[0]
                length, sent, *_ = line.recvmsg(4, socket.CMSG_SPACE(3 * 4))
                message = b""
                while len(message) < struct.unpack("I", length)[0]:
                    message += line.recv(2**20)
                asked, pid = json.loads(message), 0
                if asked:
                    descriptors = array.array("i", sent[0][2])
                    if not (pid := os.fork()):
                        signal.set_wakeup_fd(-1)
                        for each in (door, ended, ends, line, selector, *lines):
                            each.close()
                        become(asked, descriptors)
                        return
                    for each in descriptors:
                        os.close(each)
                else:
                    holders = sum(not other for other in lines.values()) + 1
                lines[line] = pid
                selector.register(line, selectors.EVENT_READ)
            elif line is ended:
                ended.recv(4096)
                while any(lines.values()):
                    pid, status = os.waitpid(-1, os.WNOHANG)
                    if not pid:
                        break
                    for other in [other for other, own in lines.items() if own == pid]:
                        with contextlib.suppress(OSError):
                            other.sendall(struct.pack("i", status))
                        selector.unregister(other)
                        other.close()
                        del lines[other]
            elif line in lines:
                try:
                    numbers = line.recv(64)
                except OSError:
                    numbers = b""
                pid = lines[line]
                for number in numbers:
                    os.kill(pid, number)
                if not numbers:  # whoever asked is gone
                    selector.unregister(line)
                    line.close()
                    if pid:
                        os.killpg(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
                    else:
                        holders -= 1
                    del lines[line]
    os._exit(0)


def become(asked: dict, descriptors: array.array) -> None:
    """Turn this fork into what was asked for: its streams, folder, environment and arguments."""
    os.setsid()
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
        os.close(each)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    for number in (*SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.executable = asked["executable"]
    option, *words = asked["words"]
    first = str(Path(option).resolve().parent) if option not in ("-m", "-c") else str(Path.cwd()) if option == "-m" else ""
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *sys.path[1:]]
    sys.argv = [option, *words]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))

    import multiprocessing.spawn

    import matplotlib

    multiprocessing.spawn.set_executable(asked["python"])  # hands descriptors down
    inline = ""
    if words[:1] == ["ipykernel_launcher"]:
        sys.argv.append(f"--IPKernelApp.parent_handle={os.getppid()}")  # the server ends a kernel with the command that stands for it
        inline = "module://matplotlib_inline.backend_inline"
    if backend := os.environ.get("MPLBACKEND", inline):
        matplotlib.rcParams["backend"] = backend


def run() -> int:
    """Run what this process was asked for, as python does; return the exit code."""
    import runpy
    import traceback
    import types

    option, *words = sys.argv
    try:
        if option == "-c":
            code, *sys.argv[1:] = words
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), vars(main))
        elif option == "-m":
            sys.argv = words
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(option, run_name="__main__")
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    except BaseException as error:
        traceback.print_exc()
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def main() -> None:
    """Be the command, or the server."""
    if len(sys.argv) > 2:
        ask(sys.argv[1], sys.argv[2], sys.argv[3:])
    import atexit
    import importlib
    import threading

    for name in LIBRARIES:
        importlib.import_module(name)
    if len(sys.argv) == 1:  # to have it compiled
        return
    serve(int(sys.argv[1]))
    code = run()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
