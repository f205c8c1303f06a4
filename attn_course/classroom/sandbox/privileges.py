"""No way up: no new privileges, no capabilities, no core dumps, and death with the parent."""

import os
import signal
import struct

from .system_calls import system_call

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _DROP_BOUND, _SET_NO_NEW_PRIVILEGES = 1, 4, 24, 38
_CAPABILITIES_VERSION_3 = 0x20080522


def forbid_new_privileges() -> None:
    """Make set-user-id programs and file capabilities powerless for this process; Landlock and seccomp demand it of ordinary users."""
    system_call("prctl", _SET_NO_NEW_PRIVILEGES, 1)


def drop_capabilities() -> None:
    """Give up every capability, also those a later program could get back.

    Stops a root worker from overriding permissions, mounting, tracing strangers. It stays the same user: files and processes of that
    user are kept from it by Landlock, the namespaces and seccomp only.
    """
    last = 0
    try:
        with open("/proc/sys/kernel/cap_last_cap") as file:  # noqa: PTH123  # in every worker, and a Path is slower
            last = int(file.read())
    except OSError:
        last = 40
    try:
        for capability in range(last + 1):
            system_call("prctl", _DROP_BOUND, capability)
    except RuntimeError:
        pass  # an ordinary user has none to drop
    system_call("capset", struct.pack("=Ii", _CAPABILITIES_VERSION_3, 0), bytes(24))


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends; `parent` is what os.getppid() said before, in case it has ended already."""
    system_call("prctl", _SET_DUMPABLE, 0)  # no other process of the user may trace this one or open its /proc files
    system_call("prctl", _SET_DEATH_SIGNAL, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)
