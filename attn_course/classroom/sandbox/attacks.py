"""Forbidden acts, tried for real by a probe in a throw-away process; and honest ones that must go on working."""

import importlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .layers import LANDLOCK, LIMITS, NAMESPACES, SECCOMP, SandboxError
from .limits import Limits
from .system_calls import system_call

REFUSALS = (OSError, MemoryError, SandboxError)


@dataclass(frozen=True)
class Scene:
    """What there is to attack: a file outside, a listening port, the process that forked this one; and the confined one's own folder."""

    secret: Path
    port: int
    parent: int
    own: Path
    limits: Limits


Act = Callable[[Scene], object]


def reads_a_file_outside(scene: Scene) -> object:
    """Read a file that this user may read."""
    return scene.secret.read_bytes()


def writes_a_file_outside(scene: Scene) -> object:
    """Make a file next to that one."""
    return scene.secret.with_name("written").write_bytes(b"x")


def connects(scene: Scene) -> object:
    """Connect to a server of this machine."""
    with socket.socket() as link:
        link.settimeout(2)
        link.connect(("127.0.0.1", scene.port))
        return link


def forks(scene: Scene) -> object:
    """Start one process; a bomb starts with one."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)


def signals_the_parent(scene: Scene) -> object:
    """Ask whether the parent could be killed (signal 0 asks for the permission only)."""
    os.kill(scene.parent, 0)
    return scene.parent


def limits_the_parent(scene: Scene) -> object:
    """Ask for the limits of the parent; who may ask may change them, down to no processor time at all."""
    return system_call("prlimit64", scene.parent, 0, None, None)


def opens_the_parents_memory(scene: Scene) -> object:
    """Open the memory of the parent as a file."""
    with Path(f"/proc/{scene.parent}/mem").open("rb") as memory:
        return memory


def reads_the_parents_memory(scene: Scene) -> object:
    """Ask the kernel to copy (no bytes) from the parent's memory."""
    return system_call("process_vm_readv", scene.parent, None, 0, None, 0, 0)


def takes_much_memory(scene: Scene) -> object:
    """Ask for more memory than there may be."""
    return bytearray(scene.limits.address_space_bytes + 1)


def writes_a_huge_file(scene: Scene) -> object:
    """Write more into one file than it may hold."""
    with (scene.own / "huge").open("wb") as file:
        file.truncate(scene.limits.file_bytes + 1)
    return file


def opens_many_files(scene: Scene) -> object:
    """Open more files than there may be."""
    return [os.open(os.devnull, os.O_RDONLY) for _ in range(scene.limits.open_files + 1)]


def writes_a_file_of_its_own(scene: Scene) -> object:
    """Use the temporary directory."""
    return (scene.own / "mine").write_bytes(b"x")


def imports_more(scene: Scene) -> object:
    """Import what Python has not imported yet."""
    return importlib.import_module("xml.dom.minidom")


def starts_a_thread(scene: Scene) -> object:
    """Start a thread and wait for it."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return thread


HONEST: tuple[Act, ...] = (writes_a_file_of_its_own, imports_more, starts_a_thread)
REFUSED_BY: dict[str, tuple[Act, ...]] = {
    LIMITS: (
        writes_a_huge_file,
        opens_many_files,
        *([takes_much_memory] if sys.platform == "linux" else []),
    ),  # macOS does not limit memory
    NAMESPACES: (writes_a_file_outside, connects, opens_the_parents_memory),
    LANDLOCK: (reads_a_file_outside, writes_a_file_outside, opens_the_parents_memory),
    SECCOMP: (connects, forks, signals_the_parent, limits_the_parent, reads_the_parents_memory),
}


def verdict(scene: Scene, forbidden: tuple[Act, ...]) -> str:
    """Try the honest acts and the forbidden ones; return what went wrong, or nothing.

    `forbidden`: the acts that must be refused.
    """
    for act in HONEST:
        try:
            act(scene)
        except (*REFUSALS, ImportError, RuntimeError) as error:
            return f"an honest worker no longer {words(act)}: {error}"
    for act in forbidden:
        try:
            act(scene)
        except REFUSALS:
            continue
        return f"a worker still {words(act)}"
    return ""


def words(act: Act) -> str:
    """Return the name of an act as words."""
    return act.__name__.replace("_", " ")
