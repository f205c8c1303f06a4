"""Open the course in JupyterLab and stay with it: what `attn-course lab` does."""

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

from attn_course.commands.lab_files import PROFILE, copy_exercises, exercises, require_course
from attn_course.commands.lab_lessons import FOLDER, copy_lessons, lesson_copies
from attn_course.commands.lab_profile import environment, server_options, write_profile
from attn_course.commands.lab_server import (
    ANY_ADDRESS,
    PortLost,
    free_port,
    last_words,
    stop,
    url_host,
    usable_port,
    wait_until_it_answers,
)
from attn_course.commands.lab_trust import trust_built
from attn_course.commands.progress import write_page
from attn_course.commands.terminal import BadInput, signals_interrupt

LOG = PROFILE / "lab.log"
PORT_ATTEMPTS = 5  # another program may take the port we found free


def open_course(
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

    Missing exercises are copied to work/ (a file that is there is never written over), and lessons to work/lessons/
    (again when they are newer, unless the reader has written into the copy). The notebooks the course built are marked as
    trusted, and the address is printed once the server answers.

    `port`: port to listen on, 1 to 65535. None takes the first free one from 8888. `ip`: address to listen on; "0.0.0.0" for every
    network interface (a container, a machine reached by ssh). `browser`: whether to open a browser. None opens one if there is a
    display to show it. `options`: more options for JupyterLab, such as "--LabApp.expose_app_in_browser=True". `start_timeout_s`:
    how long the server may take to answer, in seconds. `say`: takes each line meant for the learner. Returns 0 when it was stopped,
    by Ctrl-C, a signal or the menu; 1 when JupyterLab broke down. Raises BadInput if `root` is no course, JupyterLab is missing, or
    an option, the port or the address cannot be used; Failure if JupyterLab does not start.
    """
    root = root.resolve()
    require_course(root)
    if stray := [option for option in options if not option.startswith("-")]:
        raise BadInput(f"unexpected {stray[0]!r}; options for JupyterLab come after -- and are written --Name.option=value")
    if importlib.util.find_spec("jupyterlab") is None:
        raise BadInput(f"JupyterLab is not installed for {sys.executable}: run `{sys.executable} -m pip install jupyterlab`")
    first_port = free_port(ip) if port is None else usable_port(port, ip)
    for line in [*copy_exercises(root), *copy_lessons(root)]:
        say(line)
    if line := _model_to_get():
        say(line)
    write_profile(root)
    say("starting JupyterLab")
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(24)
    log = root / LOG
    servers: list[subprocess.Popen[bytes]] = []  # more than one only if a port was lost
    with signals_interrupt():
        try:
            servers.append(_start(root, ip, first_port, token, options, log))
            for line in [*trust_built(root), *_progress(root)]:  # the server starts meanwhile
                say(line)
            at = first_port
            while not _answers(servers[-1], ip, at, token, start_timeout_s, log, may_move=port is None and len(servers) < PORT_ATTEMPTS):
                at = free_port(ip)
                servers.append(_start(root, ip, at, token, options, log))
            address = f"http://{url_host(ip)}:{at}/lab?token={token}"
            say(_welcome(root, address, ip))
            if browser or (browser is None and can_show_a_browser()):
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # a text browser would keep us waiting
            status = servers[-1].wait()
        except KeyboardInterrupt:
            say("stopping JupyterLab")
            return 0
        finally:
            for server in servers:
                stop(server)
    if status != 0:
        say(f"JupyterLab ended by itself with status {status}: {last_words(log)}")
    return 1 if status else 0


def _answers(server: subprocess.Popen[bytes], ip: str, port: int, token: str, timeout_s: float, log: Path, *, may_move: bool) -> bool:
    """Wait until the server answers; False if it lost its port to another program and may move to a new one."""
    try:
        wait_until_it_answers(server, ip, port, token, timeout_s, log)
    except PortLost:
        if not may_move:
            raise
        return False
    return True


def _model_to_get() -> str:
    """What to say where the language model is not here; nothing where it is, or is not wanted."""
    from attn_course.language.getting import HOW, ModelMissing, model_path

    try:
        return "" if model_path().is_file() else f"the language model is not here, and lessons show stored answers of it: {HOW}"
    except ModelMissing:
        return ""


def _progress(root: Path) -> list[str]:
    """Write the page that says what is done and what comes next; what that is, or why it cannot be told."""
    try:
        return write_page(root)
    except (BadInput, OSError) as error:
        return [str(error)]


def _start(root: Path, ip: str, port: int, token: str, options: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start the server; what it says goes to the log."""
    with log.open("w", encoding="utf-8") as log_file:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "jupyterlab", *server_options(root, ip, port), *options],
            cwd=root,
            env=environment(root, token),
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is ours: we stop the server, once
        )


def can_show_a_browser() -> bool:
    """Tell whether a browser opened here would be seen: on Linux and the BSDs that takes a display (or $BROWSER)."""
    if sys.platform in ("win32", "darwin", "cygwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _welcome(root: Path, address: str, ip: str) -> str:
    """Return the lines that say where the course is, what to open in it, and how to leave it."""
    lines = ["", "The course is open at", "", f"    {address}", ""]
    if ip in ANY_ADDRESS:
        lines += [f"From another computer: the same with {socket.gethostname()} in place of 127.0.0.1.", ""]
    first = [(FOLDER / copy.name).as_posix() for copy in lesson_copies(root).values()][:1]
    lines += [f"The first page is {name}, your own copy of the lesson." for name in first]
    lines += [f"Your exercises are in work/, from work/{path.name} on." for path in exercises(root)[:1]]
    lines += [f"Stop with Ctrl-C. JupyterLab's own messages go to {LOG.as_posix()}.", ""]
    return "\n".join(lines)
