"""Start confined workers, talk to them within time limits, and end them: forked from a server, or a plain process for each."""

import contextlib
import gc
import json
import math
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attn_course.classroom import fork_server
from attn_course.classroom.protocol import MAX_REPLY_HEADER_BYTES, ProtocolError, encode, receive
from attn_course.classroom.sandbox import Limits

START_S, END_S = 60.0, 1.0
PAUSE_S = 0.001  # between two looks at a worker's threads
KILLED = -9  # exit status of a process that SIGKILL ended
UNCONFINED = fork_server.UNCONFINED
ENDED = "ended Python"  # what a worker did that is gone by itself


class WorkerGone(Exception):
    """The worker gives no more answers; the text says why, as the end of "code cell 7 ..."."""


class OutOfTime(WorkerGone):
    """It did not answer in time."""


class Printed:
    """What a worker prints: counted, its first words kept, the rest thrown away, so that it neither waits nor fails for having printed.

    `descriptor`: of the pipe that it prints to, which is closed here at its end.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int | None = descriptor
        self.count, self.first_words = 0, b""

    def take(self) -> None:
        """Wait for some of it, and take it in."""
        if self.descriptor is not None:
            part = os.read(self.descriptor, 2**16)
            self.count += len(part)
            self.first_words = (self.first_words + part)[:1_000]
            if not part:
                self.close()

    def take_all(self) -> None:
        """Take in whatever comes, until nobody can print any more."""
        while self.descriptor is not None:
            self.take()

    def close(self) -> None:
        """Let go of the pipe."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class Worker:
    """One confined process that runs one submission.

    `line`: to the process. `home`: its own temporary folder. `printed`: what it prints. `pid`: its number, as this process sees it.
    `watched`: whether what it prints is taken in here, while the worker is waited for, and not in a thread. `until`: when its time is
    over in any case, by the monotonic clock; never, unless set. `has_answered`: whether any answer has come. `gone`, `ended`: why it
    went early, and its exit status once it is ended, as who ends it has them; None where it had to be killed.
    """

    def __init__(self, line: socket.socket, home: Path, printed: Printed, pid: int, *, watched: bool) -> None:
        self._line, self.home, self._printed, self._pid, self._watched = line, home, printed, pid, watched
        self.until = math.inf
        self.has_answered, self.gone = False, ""
        self.ended: int | None = None
        self._nonce = ""
        self._came = bytearray()  # and is not taken yet
        line.setblocking(False)

    @property
    def first_words(self) -> bytes:
        """The beginning of what it printed."""
        return self._printed.first_words

    @property
    def fate(self) -> str:
        """Why it went early, and how it ended, if by itself."""
        return self.gone + (how_it_ended(self.ended) if self.gone == ENDED else "")

    def printed_bytes(self) -> int:
        """Return how much it has printed until now."""
        if self._output is not None and select.select([self._output], [], [], 0)[0]:
            self._printed.take()  # a pipe holds no more than is taken at a time
        return self._printed.count

    @property
    def _output(self) -> int | None:
        return self._printed.descriptor if self._watched else None

    def settle(self, within_s: float) -> None:
        """Wait until all its threads sleep, so that nothing of what ran before runs into what is measured next.

        A thread that has just begun to wait for something needs the processor once more until it does, and gets it late on a machine
        with other work. The worker itself sees no states of threads. `within_s`: longest time; a thread may go on working.
        """
        deadline, before = min(time.monotonic() + within_s, self.until), None
        while (looks := _threads(self._pid)) and (looks != before or not all(asleep for asleep, _ in looks.values())):
            if time.monotonic() >= deadline:
                break
            before = looks
            time.sleep(PAUSE_S)

    def tell(self, do: str, within_s: float, **message: Any) -> None:
        """Send a request; `hear` returns what comes back, of which there may be several pieces.

        `do`: what to do: "begin", "cells", "calls" or "latex"; of one for formulas "formula". `within_s`: longest time to send it
        in. `**message`: arguments. Raises WorkerGone if the worker does not take it.
        """
        self._nonce = secrets.token_hex(8)
        self._send(encode({"nonce": self._nonce, "do": do, **message}), min(time.monotonic() + within_s, self.until))

    def hear(self, within_s: float) -> dict[str, Any]:
        """Return the next piece of the reply to the last request.

        `within_s`: longest time until it is here. The reply is well-formed, and otherwise not to be trusted. Raises WorkerGone if
        there is no such reply in time.
        """
        deadline = min(time.monotonic() + within_s, self.until)
        try:
            reply = receive(lambda count: self._receive(count, deadline), max_header=MAX_REPLY_HEADER_BYTES)
        except ProtocolError as error:
            raise WorkerGone(f"sent the grader what is no answer: {error}") from None
        answered = reply.pop("nonce", None)
        if not isinstance(answered, str) or answered != self._nonce:
            raise WorkerGone("sent the grader an answer to what was not asked")
        self.has_answered = True
        return reply

    def _send(self, frame: bytes, deadline: float) -> None:
        rest = memoryview(frame)
        while rest:
            self._wait(deadline, writing=True)
            try:
                rest = rest[self._line.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise WorkerGone(ENDED) from None

    def _receive(self, count: int, deadline: float) -> bytes:
        while len(self._came) < count:
            try:
                part = self._line.recv(2**20)
            except BlockingIOError:
                self._wait(deadline)
                continue
            except OSError:
                part = b""
            if not part:
                raise WorkerGone(ENDED)
            self._came += part
        taken = bytes(self._came[:count])
        del self._came[:count]
        return taken

    def _wait(self, deadline: float, *, writing: bool = False) -> None:
        """Until the line is ready; meanwhile take in what is printed."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise OutOfTime("did not finish in time: is there a loop that never ends?")
            outputs = [] if self._output is None else [self._output]
            watched: list[Any] = [] if writing else [self._line]
            ready, able, _ = select.select([*watched, *outputs], [self._line] if writing else [], [], left)
            if self._output in ready:
                self._printed.take()
            if self._line in ready or self._line in able:
                return

    def close(self) -> None:
        """Let go of the lines to the worker; the process and its folder are dealt with by who started it."""
        self._line.close()
        if self._watched:
            self._printed.close()


def how_it_ended(code: int | None) -> str:
    """Return what an exit status means, as a remark in brackets, or ""."""
    if code is None:
        return ""
    if code >= 0:
        return f" (exit status {code}: does it call os._exit?)"
    meanings = {
        "SIGKILL": "killed, as for too much memory",
        "SIGSEGV": "a crash",
        "SIGXCPU": "too much computing time",
        "SIGABRT": "a crash",
    }
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        return f" ({name}: {meanings[name]})" if name in meanings else f" ({name})"
    return ""


class ForkServer:
    """The process that workers are forked from, which is started when first needed and again when it has died.

    `layers`: what each worker is confined by, as for `sandbox.confine`.
    """

    def __init__(self) -> None:
        self.layers: Collection[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False
        self._exercise: Mapping[str, Any] | None = None  # what the fork server's session was made from
        self._home = Path(tempfile.gettempdir()) / f"attn-{secrets.token_hex(8)}"  # its name; the fork server makes it

    def prepare(self) -> None:
        """Start the fork server, without waiting for it."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process, self._control = fork_server.start()
        self._control.settimeout(START_S)
        self._ready, self._exercise = False, None

    def start(self, limits: Limits, exercise: Mapping[str, Any], *, formulas: bool = False) -> Worker:
        """Return a fresh worker.

        `limits`: of this worker. `exercise`: arguments of the worker's `Session`. `formulas`: whether it only evaluates LaTeX,
        and has no session. Nothing has begun in it yet. Raises RuntimeError if the exercise's own cells do not run; OSError if no
        process starts.
        """
        for _attempt in range(3):
            self.prepare()
            with contextlib.suppress(OSError, ValueError):
                return self._start(limits, exercise, formulas)
            self.close()
        raise OSError("the process that workers are forked from does not start")

    def _start(self, limits: Limits, exercise: Mapping[str, Any], formulas: bool) -> Worker:
        assert self._control is not None
        if not self._ready:
            gc.freeze()  # what was imported stays: no search for garbage need go through it, nor the one at the end
            self._reply()
            self._ready = True
        if exercise != self._exercise:
            self._exercise = None  # until the new one has run
            self._tell({"do": "exercise", "exercise": exercise})
            if problem := self._reply()["problem"]:
                raise RuntimeError(problem)
            self._exercise = exercise
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        order = {"do": "start", "writable": str(self._home), "limits": asdict(limits), "layers": self.layers, "formulas": formulas}
        try:
            socket.send_fds(self._control, [json.dumps(order).encode() + b"\n"], [theirs.fileno(), writing])
            pid = self._reply()["pid"]
        except (OSError, ValueError):
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        return Worker(ours, self._home, Printed(reading), pid, watched=True)

    def end(self, worker: Worker, *, wait_s: float = 0.0) -> int | None:
        """End a worker; return its exit status, or None if it had to be killed, which is done after `wait_s`.

        A fork server that is gone has taken its worker along.
        """
        worker.close()
        try:
            self._tell({"do": "end", "wait_s": wait_s})
            found = self._reply()
        except (OSError, ValueError):
            self.close()
            return KILLED
        return None if found.get("killed") else found.get("exit")

    def _tell(self, order: Mapping[str, Any]) -> None:
        assert self._control is not None
        self._control.sendall(json.dumps(order).encode() + b"\n")

    def _reply(self) -> dict[str, Any]:
        assert self._control is not None
        data = b""
        while not data.endswith(b"\n"):
            part = self._control.recv(65536)
            if not part:
                raise OSError("the fork server has ended")
            data += part
        return dict(json.loads(data))

    def close(self) -> None:
        """End the fork server, and with it its worker."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        for home in self._home.parent.glob(f"{self._home.name}*"):  # a fork server that was killed leaves them
            shutil.rmtree(home, ignore_errors=True)


class PlainProcesses:
    """A plain process for each worker, for systems without fork; slower, and confined by less."""

    def __init__(self) -> None:
        self.layers: Collection[str] | None = None
        self._processes: dict[int, tuple[subprocess.Popen[bytes], threading.Thread]] = {}

    def prepare(self) -> None:
        """Nothing is kept ready."""

    def start(self, limits: Limits, exercise: Mapping[str, Any], *, formulas: bool = False) -> Worker:
        """Return a fresh worker; see `ForkServer.start`."""
        home = Path(tempfile.mkdtemp(prefix="attn-"))
        reading, writing = os.pipe()
        printed = Printed(reading)
        reader = threading.Thread(target=printed.take_all, daemon=True)  # not every system can wait for a pipe and a line at a time
        reader.start()
        try:
            line, process = self._start(limits, exercise, home, writing, formulas)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        finally:
            os.close(writing)
        worker = Worker(line, home, printed, process.pid, watched=False)
        self._processes[id(worker)] = process, reader
        return worker

    def _start(
        self, limits: Limits, exercise: Mapping[str, Any], home: Path, output: int, formulas: bool
    ) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
        token = secrets.token_bytes(32)
        with socket.create_server(("127.0.0.1", 0)) as server:
            command = [sys.executable, "-I", str(fork_server.SCRIPT), "--once", str(server.getsockname()[1])]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=fork_server.environment(), start_new_session=True
            )
            assert process.stdin is not None
            order = {"writable": str(home), "limits": asdict(limits), "layers": self.layers, "formulas": formulas}
            order |= {"exercise": exercise, "token": token.hex()}
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.close()
            return _accept(server, token, process), process

    def end(self, worker: Worker, *, wait_s: float = 0.0) -> int | None:
        """End a worker; return its exit status, or None if it had to be killed, which is done after `wait_s`."""
        process, reader = self._processes.pop(id(worker))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
        code = process.poll()
        if code is None:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
        reader.join(END_S)  # what it left behind might hold the pipe open
        worker.close()
        shutil.rmtree(worker.home, ignore_errors=True)
        return code

    def close(self) -> None:
        """Nothing is kept."""


def _accept(server: socket.socket, token: bytes, process: subprocess.Popen[bytes]) -> socket.socket:
    """The connection of who knows the token."""
    deadline = time.monotonic() + START_S
    server.settimeout(0.2)
    while time.monotonic() < deadline and process.poll() is None:
        try:
            line, _ = server.accept()
        except TimeoutError:
            continue
        line.settimeout(5.0)
        with contextlib.suppress(OSError):
            if secrets.compare_digest(line.recv(len(token), socket.MSG_WAITALL), token):
                return line
        line.close()
    process.kill()
    raise OSError("a worker does not start")


def _threads(pid: int) -> dict[str, tuple[bool, list[str]]]:
    """By number of a process's threads, if there are several: whether it sleeps, and how often it was taken off the processor.

    Two looks alike, in which all sleep, say that all slept in between.
    """
    found = {}
    with contextlib.suppress(OSError):  # it has ended, or the system does not tell
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # it is asked for each task, and a Path is slower
        for thread in threads if len(threads) > 1 else []:
            lines = Path(f"/proc/{pid}/task/{thread}/status").read_text(errors="replace").splitlines()
            found[thread] = "State:\tS (sleeping)" in lines, [line for line in lines if "ctxt_switches:" in line]
    return found
