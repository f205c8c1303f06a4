"""Namespaces: a worker without a network, without /proc, with read-only disks; and one whose only process is itself."""

import os
import signal
import struct
from pathlib import Path

from . import seccomp
from .layers import SandboxError
from .system_calls import system_call

_NEW_MOUNTS, _NEW_NAMES, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SET_USER_ID, _NO_DEVICES, _PRIVATE, _RECURSIVE = 1, 2, 4, 1 << 18, 1 << 14
_HERE, _AT_RECURSIVE = -100, 0x8000
_EVERY_MOUNT_READ_ONLY = struct.pack("=4Q", _READ_ONLY | _NO_SET_USER_ID, 0, 0, 0)


class _ForkServer:
    """What the fork server did for its workers: its namespace of process numbers, and whether it left the network."""

    pids: int | None = None
    no_network = False


def leave_for_own_namespaces() -> bool:
    """Go on as the only process of fresh user, pid and network namespaces; call it once, first thing in the fork server.

    The caller's process stays behind: it waits, and ends as the new one ends; killed, it takes the new one along (so does Popen.kill).
    The new process is number 1 of its namespace: signals from inside do not end it, from outside only SIGKILL does. Every worker
    inherits the empty network, and `fork_alone` can give each a pid namespace of its own.

    Returns False where the system does not let it: nothing has changed then, and `fork_alone` is a plain fork.
    """
    try:
        _unshare(_NEW_PIDS | _NEW_NETWORK)
    except SandboxError:
        return False
    alive, held = os.pipe()
    child = os.fork()
    if child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.closerange(3, held)
        os.closerange(held + 1, os.sysconf("SC_OPEN_MAX"))  # the fork server's sockets are not this process's to hold open
        status = os.waitpid(child, 0)[1]
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    os.close(held)
    system_call("prctl", 1, int(signal.SIGKILL))  # die with the process that waits
    os.set_blocking(alive, False)
    try:
        if os.read(alive, 1) == b"":
            os._exit(1)  # it died before the line above
    except BlockingIOError:
        pass
    os.close(alive)
    _ForkServer.no_network = True
    pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        system_call("setns", pids, _NEW_PIDS)  # without it there is no way back from the namespace of a worker
        _ForkServer.pids = pids
    except SandboxError:
        os.close(pids)
    return True


def fork_alone() -> int:
    """Fork; the child is alone in a pid namespace of its own where `leave_for_own_namespaces` made that possible.

    A pid namespace takes effect for children only: that is why it is made before the fork, here, and not by `confine`.
    Stops signals to the fork server, the grader and other workers, and any view of them; what the child starts ends with it.

    Returns as os.fork does: 0 in the child, the child's number in the fork server.
    """
    seccomp.prepare()
    if _ForkServer.pids is None:
        return os.fork()
    try:
        system_call("unshare", _NEW_PIDS)
    except SandboxError:
        return os.fork()
    child = -1
    try:
        child = os.fork()
    finally:
        if child:
            system_call("setns", _ForkServer.pids, _NEW_PIDS)
    return child


def isolate(writable: Path, directory_bytes: int) -> None:
    """Move this process, which must have one thread, into fresh user, mount, network, ipc and uts namespaces.

    Stops the network, the view of /proc (covered by nothing), writing to and chmod of every disk (all are made read-only), and a full
    disk: `writable` becomes a memory disk of limited size, empty, seen by this process alone and gone with it. Stops no reading of files
    (Landlock does), nothing on descriptors that are open already, and no signals: for those see `fork_alone`.

    `writable`: an existing folder. `directory_bytes`: how much it may hold. Raises SandboxError if the system forbids it, as
    containers and Ubuntu may.
    """
    _unshare(_NEW_MOUNTS | _NEW_IPC | _NEW_NAMES | (0 if _ForkServer.no_network else _NEW_NETWORK))
    _mount(None, "/", _RECURSIVE | _PRIVATE)
    system_call("mount_setattr", _HERE, b"/", _AT_RECURSIVE, _EVERY_MOUNT_READ_ONLY, len(_EVERY_MOUNT_READ_ONLY))
    _mount("tmpfs", os.fspath(writable), _NO_SET_USER_ID | _NO_DEVICES, f"size={directory_bytes},nr_inodes=4096,mode=700")
    _mount("tmpfs", "/proc", _NO_SET_USER_ID | _NO_DEVICES | _READ_ONLY, "size=4096,nr_inodes=2,mode=555")


def _unshare(flags: int) -> None:
    """Leave the namespaces of the parent; with a user namespace, or as root without one where those are forbidden."""
    user, group = os.geteuid(), os.getegid()
    try:
        system_call("unshare", flags | _NEW_USER)
    except SandboxError:
        if user != 0:
            raise
        system_call("unshare", flags)
        return
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            handle = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
    except OSError as error:
        raise SandboxError(f"user namespace without a map of users: {error.strerror}") from error


def _mount(kind: str | None, target: str, flags: int, options: str = "") -> None:
    kind_bytes = kind.encode() if kind else None
    try:
        system_call("mount", kind_bytes, os.fsencode(target), kind_bytes, flags, options.encode() or None)
    except SandboxError as error:
        raise SandboxError(f"{error} ({kind or 'private'} at {target})") from error.__cause__
