"""The command `attn-course lab`: JupyterLab on the course, with the first page open."""

import http.client
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from attn_course.commands.errors import CommandError
from attn_course.commands.lab_files import PROFILE, built_notebooks, copy_exercises, require_course, trust
from attn_course.commands.lab_profile import environment, server_options, write_profile

FIRST_PORT, PORTS_TRIED = 8888, 50
ANY_ADDRESS = ("", "*", "0.0.0.0", "::")


def lab(
    root: Path,
    *,
    port: int | None = None,
    ip: str = "127.0.0.1",
    browser: bool | None = None,
    options: Sequence[str] = (),
    start_timeout_s: float = 60.0,
    say: Callable[[str], object] = lambda line: print(line, flush=True),
) -> int:
    """Open the course in JupyterLab and stay until it is stopped.

    Missing exercises are copied to work/ (a file that is there is never written over), the notebooks the course built
    are marked as trusted, and the address is printed once the server answers.

    Parameters
    ----------
    root : Path
        The folder of the course.
    port : int, optional
        Port to listen on, 1 to 65535. None takes the first free one from 8888.
    ip : str
        Address to listen on; "0.0.0.0" for every network interface (a container, a machine reached by ssh).
    browser : bool, optional
        Whether to open a browser. None opens one if there is a display to show it.
    options : sequence of str
        More options for JupyterLab, such as "--LabApp.expose_app_in_browser=True".
    start_timeout_s : float
        How long the server may take to answer, in seconds.
    say : callable
        Takes each line meant for the learner.

    Returns
    -------
    status : int
        0 when it was stopped, by Ctrl-C, a signal or the menu; 1 when JupyterLab broke down.

    Raises
    ------
    CommandError
        If `root` is no course, JupyterLab is missing, or the port or the address cannot be used.
    """
    root = root.resolve()
    require_course(root)
    if importlib.util.find_spec("jupyterlab") is None:
        raise CommandError(f"JupyterLab is not installed for {sys.executable}: run `{sys.executable} -m pip install -e .` in {root}")
    port = free_port(ip) if port is None else usable_port(port, ip)
    for line in copy_exercises(root).messages():
        say(line)
    write_profile(root)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(24)
    log = root / PROFILE / "lab.log"
    with log.open("w", encoding="utf-8") as log_file, _stopped_by_signals():
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *server_options(root, ip, port), *options],
            cwd=root,
            env=environment(root, token),
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is ours: we stop the server, once
        )
        try:
            for line in trust(built_notebooks(root)):  # the server starts meanwhile
                say(line)
            _wait_until_it_answers(server, ip, port, start_timeout_s, log)
            address = f"http://{_url_host(ip)}:{port}/lab?token={token}"
            say(_welcome(address, ip, log.relative_to(root)))
            if browser or (browser is None and can_show_a_browser()):
                webbrowser.open(address)
            status = server.wait()
        except KeyboardInterrupt:
            say("stopping JupyterLab")
            return 0
        finally:
            _stop(server)
    if status != 0:
        say(f"JupyterLab ended by itself with status {status}: {_last_words(log)}")
    return 1 if status else 0


def usable_port(port: int, ip: str) -> int:
    """Return `port` if a server can listen on it.

    Parameters
    ----------
    port : int
        The port the caller asked for.
    ip : str
        The address to listen on.

    Returns
    -------
    port : int
        The same port.

    Raises
    ------
    CommandError
        If it is no port, is in use, or is not ours to take.
    """
    if not 1 <= port <= 65535:
        raise CommandError(f"port must be from 1 to 65535; got {port}")
    try:
        _bind(port, ip)
    except PermissionError as error:
        raise CommandError(f"port {port} needs administrator rights: choose one from 1024 to 65535") from error
    except socket.gaierror as error:
        raise CommandError(f"ip must be an address of this computer, such as 127.0.0.1 or 0.0.0.0; got {ip}") from error
    except OSError as error:
        if not _is_ours(ip):
            raise CommandError(f"ip must be an address of this computer, such as 127.0.0.1 or 0.0.0.0; got {ip}") from error
        raise CommandError(f"port {port} is in use: choose another with --port, or leave --port out to get a free one") from error
    return port


def free_port(ip: str) -> int:
    """Return the first free port from 8888 on, any free port if many are taken; CommandError as in `usable_port`."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        try:
            return _bind(port, ip)
        except OSError:
            if not _is_ours(ip):
                break
    if not _is_ours(ip):
        raise CommandError(f"ip must be an address of this computer, such as 127.0.0.1 or 0.0.0.0; got {ip}")
    return _bind(0, ip)


def can_show_a_browser() -> bool:
    """Tell whether a browser opened here would be seen: on Linux and the BSDs that takes a display (or $BROWSER)."""
    if sys.platform in ("win32", "darwin", "cygwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _bind(port: int, ip: str) -> int:
    """Bind to the port for a moment, as the server will; return it (the one chosen, for 0) or raise OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        None if ip in ANY_ADDRESS else ip, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        if os.name == "posix":  # a port that a server left a moment ago is free; elsewhere the option means something else
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        return int(probe.getsockname()[1])


def _is_ours(ip: str) -> bool:
    """Tell whether this computer can listen on `ip` at all."""
    try:
        _bind(0, ip)
    except OSError:
        return False
    return True


def _url_host(ip: str) -> str:
    """Return the host of an address that reaches a server listening on `ip` from this computer."""
    if ip in ANY_ADDRESS:
        return "127.0.0.1"
    return f"[{ip}]" if ":" in ip else ip


def _welcome(address: str, ip: str, log: Path) -> str:
    """Return the lines that say where the course is and how to leave it."""
    elsewhere = f"\nFrom another computer: the same with {socket.gethostname()} in place of 127.0.0.1.\n" if ip in ANY_ADDRESS else ""
    return f"\nThe course is open at\n\n    {address}\n{elsewhere}\nStop it with Ctrl-C. JupyterLab's messages: {log.as_posix()}\n"


def _wait_until_it_answers(server: subprocess.Popen[Any], ip: str, port: int, timeout_s: float, log: Path) -> None:
    """Return when the server answers; CommandError with its last words if it ends or stays silent."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise CommandError(f"JupyterLab did not start: {_last_words(log)}")
        connection = http.client.HTTPConnection(_url_host(ip).strip("[]"), port, timeout=5)  # no proxy in between
        try:
            connection.request("GET", "/api")
            connection.getresponse()
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        finally:
            connection.close()
    raise CommandError(f"JupyterLab did not answer within {timeout_s:g} s: {_last_words(log)}")


def _last_words(log: Path) -> str:
    """Return the last line of the server's log that says something, and where the whole is."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = [line for line in lines if line]
    return f"{said[-1] if said else 'it said nothing'} (all messages: {log})"


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let a request to end (kill, a closed terminal) act like Ctrl-C, so that the server is stopped too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    before = {number: signal.getsignal(number) for name in names if (number := getattr(signal, name, None)) is not None}

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(server: subprocess.Popen[Any], patience_s: float = 10.0) -> None:
    """End the server and its kernels: kindly, and by force if that takes longer than `patience_s` or Ctrl-C comes again."""
    try:
        if os.name == "posix" and server.poll() is None:
            server.terminate()  # elsewhere the console has passed Ctrl-C on, and terminate() would leave no time to save
        server.wait(patience_s)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()
