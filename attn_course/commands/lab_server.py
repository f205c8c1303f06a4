"""Start, watch and stop the server behind `attn-course lab`: ports, signals, its last words."""

import http
import http.client
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from attn_course.commands.terminal import BadInput, Failure

FIRST_PORT, PORTS_TRIED = 8888, 50
ANY_ADDRESS = ("", "*", "0.0.0.0", "::")


def usable_port(port: int, ip: str) -> int:
    """Return `port` if a server can listen on it.

    Raises BadInput if it is no port, is in use, or is not ours to take.
    """
    if not 1 <= port <= 65535:
        raise BadInput(f"port must be from 1 to 65535; got {port}")
    try:
        _bind(port, ip)
    except PermissionError as error:
        raise BadInput(f"port {port} needs administrator rights: choose one from 1024 to 65535") from error
    except OSError as error:
        _require_ours(ip)
        raise BadInput(f"port {port} is in use: choose another with --port, or leave --port out to get a free one") from error
    return port


def free_port(ip: str) -> int:
    """Return the first free port from 8888 on, any free port if many are taken; BadInput as in `usable_port`."""
    _require_ours(ip)
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        try:
            return _bind(port, ip)
        except OSError:
            continue
    return _bind(0, ip)


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


def _require_ours(ip: str) -> None:
    """Raise BadInput unless this computer can listen on `ip` at some port."""
    try:
        _bind(0, ip)
    except (OSError, UnicodeError) as error:
        raise BadInput(f"ip must be an address of this computer, such as 127.0.0.1 or 0.0.0.0; got {ip!r}") from error


def url_host(ip: str) -> str:
    """Return the host of an address that reaches a server listening on `ip` from this computer."""
    if ip in ANY_ADDRESS:
        return "127.0.0.1"
    return f"[{ip}]" if ":" in ip else ip


class PortLost(Failure):
    """Another program took the port between our look and the server's start."""


def wait_until_it_answers(server: subprocess.Popen[Any], ip: str, port: int, token: str, timeout_s: float, log: Path) -> None:
    """Return when this very server answers, which knows our token; Failure with its last words if it ends or stays silent."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if server.poll() is not None:
            said = last_words(log)
            is_lost = f"port {port} is not available" in said or not _is_free(port, ip)  # who took it may be gone again
            raise (PortLost if is_lost else Failure)(f"JupyterLab did not start: {said}")
        connection = http.client.HTTPConnection(url_host(ip).strip("[]"), port, timeout=5)  # no proxy in between
        try:
            connection.request("GET", "/api/status", headers={"Authorization": f"token {token}"})
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except (OSError, http.client.HTTPException):
            pass  # not there yet
        finally:
            connection.close()
        time.sleep(0.05)
    raise Failure(f"JupyterLab did not answer within {timeout_s:g} s: {last_words(log)}")


def _is_free(port: int, ip: str) -> bool:
    try:
        _bind(port, ip)
    except OSError:
        return False
    return True


def last_words(log: Path) -> str:
    """Return the last line of the server's log that says something, and where the whole is."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = [line for line in lines if line]
    return f"{said[-1] if said else 'it said nothing'} (all messages: {log})"


def stop(server: subprocess.Popen[Any], patience_s: float = 10.0) -> None:
    """End the server and its kernels: kindly, and by force if that takes longer than `patience_s` or Ctrl-C comes again."""
    try:
        if os.name == "posix" and server.poll() is None:
            server.terminate()  # elsewhere the console has passed Ctrl-C on, and terminate() would leave no time to save
        server.wait(patience_s)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()
