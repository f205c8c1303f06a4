"""Ports and displays are looked at before anything starts, and each refusal is one line that says what to do."""

import http.server
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attn_course.commands import lab_open, lab_server
from attn_course.commands.lab_open import can_show_a_browser, open_course
from attn_course.commands.lab_server import free_port, usable_port, wait_until_it_answers
from attn_course.commands.terminal import BadInput, Failure, signals_interrupt
from tests.browser.toy_course import make_course


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def refuse_to_start(*arguments: object, **keywords: object) -> None:
    raise AssertionError("nothing may start")


@pytest.mark.parametrize("port", [0, -1, 65536, 10**9])
def test_a_number_that_is_no_port_is_named(port: int):
    with pytest.raises(BadInput, match=f"port must be from 1 to 65535; got {port}$"):
        usable_port(port, "127.0.0.1")


def test_what_cannot_be_stops_the_command_before_anything_is_written(taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    course = make_course(tmp_path / "course")
    monkeypatch.setattr(subprocess, "Popen", refuse_to_start)
    with pytest.raises(BadInput, match=f"^port {taken} is in use: choose another with --port"):
        open_course(course, port=taken)
    with pytest.raises(BadInput, match=r"^unexpected 'stray'; options for JupyterLab come after --"):
        open_course(course, options=["--LabApp.collaborative=False", "stray"])
    monkeypatch.setattr(lab_open.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"^JupyterLab is not installed .*-m pip install jupyterlab`"):
        open_course(course)
    assert not (course / "work").exists()


@pytest.mark.parametrize("ip", ["192.0.2.1", "no such host", "256.1.1.1"])
def test_an_address_of_another_computer_is_named(ip: str):
    for look in (free_port, lambda ip: usable_port(50_000, ip)):
        with pytest.raises(BadInput, match="ip must be an address of this computer") as caught:
            look(ip)
        assert repr(ip) in str(caught.value)


@pytest.mark.parametrize("tried", [lab_server.PORTS_TRIED, 1])
def test_a_free_port_can_be_used_and_taken_ones_are_passed_over(taken: int, tried: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lab_server, "FIRST_PORT", taken)
    monkeypatch.setattr(lab_server, "PORTS_TRIED", tried)
    port = free_port("127.0.0.1")
    assert port > taken if tried > 1 else port != taken
    assert usable_port(port, "127.0.0.1") == port


@pytest.mark.parametrize("ip", ["0.0.0.0", "*", ""])
def test_a_server_for_all_interfaces_is_reached_from_here_by_the_loopback_address(ip: str):
    assert lab_server.url_host(ip) == "127.0.0.1"
    assert free_port(ip) > 0


@pytest.mark.parametrize(
    ("platform", "variables", "seen"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"BROWSER": "wslview"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_a_browser_is_opened_only_where_it_can_be_seen(
    platform: str, variables: dict[str, str], seen: bool, monkeypatch: pytest.MonkeyPatch
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert can_show_a_browser() is seen


@pytest.mark.parametrize("made", [False, True], ids=["no such folder", "an empty folder"])
def test_a_folder_without_the_course_is_named(tmp_path: Path, made: bool):
    folder = tmp_path / "elsewhere"
    if made:
        folder.mkdir()
    with pytest.raises(BadInput, match="elsewhere"):
        open_course(folder)
    assert not (folder / "work").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_interrupts_unless_it_is_ignored_and_the_handlers_from_before_come_back(name: str):
    number = signal.Signals[name]
    at_first = signal.getsignal(number)
    try:
        signal.signal(number, signal.SIG_DFL)
        with pytest.raises(KeyboardInterrupt), signals_interrupt():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as under nohup
        with signals_interrupt():
            signal.raise_signal(number)
    finally:
        signal.signal(number, at_first)


def child(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.fixture
def silent() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a server which does not answer."""
    sleeping = child("import time; time.sleep(600)")
    yield sleeping
    lab_server.stop(sleeping)
    assert sleeping.returncode is not None


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "lab.log").touch()
    return tmp_path / "lab.log"


def test_a_server_that_ends_at_once_or_stays_silent_is_a_failure_with_its_last_words(silent: subprocess.Popen[bytes], log: Path):
    with pytest.raises(Failure, match=r"did not answer within 0\.3 s: it said nothing"):
        wait_until_it_answers(silent, "127.0.0.1", free_port("127.0.0.1"), "token", 0.3, log)
    log.write_text("first\nOSError: no space left\n\n")
    with pytest.raises(Failure, match="did not start: OSError: no space left"):
        wait_until_it_answers(child("raise SystemExit(3)"), "127.0.0.1", free_port("127.0.0.1"), "token", 120.0, log)


class AnotherServer(http.server.BaseHTTPRequestHandler):
    """Answers everybody, but knows only its own token, as a second JupyterLab does."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers["Authorization"] == "token its-own" else 403)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@pytest.fixture
def neighbour() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), AnotherServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_another_server_at_the_port_is_not_taken_for_ours(neighbour: int, silent: subprocess.Popen[bytes], log: Path):
    wait_until_it_answers(silent, "127.0.0.1", neighbour, "its-own", 120.0, log)
    with pytest.raises(Failure, match="did not answer"):
        wait_until_it_answers(silent, "127.0.0.1", neighbour, "ours", 0.5, log)


def test_a_port_lost_to_another_program_is_told_apart_and_left_for_a_free_one(neighbour: int, log: Path):
    log.write_text("port is in use\n")
    ended = child("raise SystemExit(1)")
    ended.wait()
    where = (ended, "127.0.0.1", neighbour, "ours", 120.0, log)
    assert lab_open._answers(*where, may_move=True) is False
    gone = free_port("127.0.0.1")  # who took it has left it again
    log.write_text(f"[C ServerApp] ERROR: the Jupyter server could not be started because port {gone} is not available.\n")
    assert lab_open._answers(ended, "127.0.0.1", gone, "ours", 120.0, log, may_move=True) is False
    log.write_text("port is in use\n")
    with pytest.raises(lab_server.PortLost, match="did not start: port is in use"):
        lab_open._answers(*where, may_move=False)


def test_a_course_moves_on_when_its_port_is_lost(neighbour: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ports = iter([neighbour, free_port("127.0.0.1")])
    waited = lab_open.wait_until_it_answers

    def start(root: Path, ip: str, port: int, token: str, options: object, log: Path) -> subprocess.Popen[bytes]:
        log.write_text("port is in use\n")
        return child("raise SystemExit(1)" if port == neighbour else "pass")

    def wait(server: subprocess.Popen[bytes], ip: str, port: int, *rest: Any) -> None:
        if port == neighbour:  # the other child stands for a server that answers
            waited(server, ip, port, *rest)

    monkeypatch.setattr(lab_open, "free_port", lambda ip: next(ports))
    monkeypatch.setattr(lab_open, "_start", start)
    monkeypatch.setattr(lab_open, "wait_until_it_answers", wait)
    said: list[str] = []
    assert open_course(make_course(tmp_path / "course"), browser=False, say=said.append) == 0
    assert f":{neighbour}/" not in "\n".join(said)
    assert any("The course is open at" in line for line in said)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that a program may ignore")
def test_a_server_that_will_not_stop_is_ended_by_force():
    stubborn = subprocess.Popen(
        [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE,
    )
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    lab_server.stop(stubborn, patience_s=0.3)
    stubborn.stdout.close()
    assert stubborn.returncode == -9
