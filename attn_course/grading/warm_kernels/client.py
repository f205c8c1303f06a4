"""Ask a warm process for a kernel, and handle it like a `subprocess.Popen`."""

import array
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FORK_S = 60.0  # the warm process may still be importing
_WAIT_S = 0.005


class NotToBeHad(Exception):
    """No kernel can be forked here; the text says why."""


class ForkedKernel:
    """A kernel forked from the warm process, with the part of `Popen` that jupyter_client uses.

    Parameters
    ----------
    path : str
        The warm process's socket.
    arguments : sequence of str
        Of the kernel, as after `python -m ipykernel_launcher`.
    folder : str
        Working directory.
    environment : mapping of str to str
        All of its environment variables.
    files : tuple of int
        Numbers of the files that become its stdout and stderr.

    Raises
    ------
    NotToBeHad
        If the warm process is gone or refuses.
    """

    stdin = stdout = stderr = None

    def __init__(self, path: str, *, arguments: Sequence[str], folder: str, environment: Mapping[str, str], files: tuple[int, int]) -> None:
        self.returncode: int | None = None
        self._heard = bytearray()
        self._listens = False
        request = {"arguments": list(arguments), "folder": folder, "environment": dict(environment), "executable": sys.executable}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_FORK_S)
        try:
            self._socket.connect(path)
            _send_request(self._socket, json.dumps(request).encode(), files)
            answer = self._next_message()
        except OSError as error:
            self._socket.close()
            raise NotToBeHad(f"the warm process does not answer ({error.strerror or error})") from None
        if answer is None or "pid" not in answer:
            self._socket.close()
            raise NotToBeHad(answer["refused"] if answer else "the warm process has ended")
        self.pid = int(answer["pid"])
        self._socket.setblocking(False)

    def is_ready(self) -> bool:
        """Whether the kernel listens on its ports, or has ended."""
        with contextlib.suppress(BlockingIOError):
            while self.returncode is None and not self._listens:
                self._take(self._next_message())
        return self._listens or self.returncode is not None

    def poll(self) -> int | None:
        """Return the exit code, or None while the kernel runs."""
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):
                while self.returncode is None:
                    self._take(self._next_message())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the kernel; TimeoutError if it takes too long."""
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"the kernel still runs after {timeout:g} s")
            time.sleep(_WAIT_S)
        return code

    def send_signal(self, number: int) -> None:
        """Signal the kernel and the processes it started."""
        if self.poll() is None:
            with contextlib.suppress(OSError):  # it has just ended
                self._socket.sendall(b"%d\n" % number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _take(self, message: dict[str, Any] | None) -> None:
        if message == {}:
            self._listens = True
        else:
            self.returncode = message["exit"] if message else -signal.SIGKILL  # the warm process takes its kernels along
            self._socket.close()

    def _next_message(self) -> dict[str, Any] | None:
        while b"\n" not in self._heard:
            try:
                data = self._socket.recv(4096)
            except ConnectionError:
                return None
            if not data:
                return None
            self._heard += data
        line, _, rest = self._heard.partition(b"\n")
        self._heard = bytearray(rest)
        return json.loads(line)


def _send_request(connection: socket.socket, text: bytes, files: tuple[int, int]) -> None:
    numbers = array.array("i", files)
    connection.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers.tobytes())])
    connection.sendall(text)


def can_fork() -> bool:
    """Whether kernels can be forked on this system at all: Linux can; macOS's own libraries do not survive a fork."""
    return sys.platform == "linux" and hasattr(os, "fork") and Path("/proc/self/task").is_dir()
