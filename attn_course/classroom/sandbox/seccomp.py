"""A seccomp filter: which system calls a worker may make, and with which arguments."""

import contextlib
import ctypes
import errno
import functools
import os
import struct
from collections.abc import Iterable

from .layers import SandboxError
from .system_calls import LAST_KNOWN, c_library, machine, number, system_call

_REFUSED_WITH_REASON = """
others' memory: ptrace process_vm_readv process_vm_writev kcmp process_madvise process_mrelease perf_event_open
others' lives: tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd pidfd_send_signal
others' turns: setpgid setsid setpriority ioprio_set sched_setattr sched_setparam sched_setscheduler migrate_pages move_pages
connections: socket connect bind listen accept accept4
processes: fork vfork execve execveat
views of the system: unshare setns chroot pivot_root mount umount2 mount_setattr move_mount open_tree
more of these: fsopen fsconfig fsmount fspick open_by_handle_at name_to_handle_at fanotify_init inotify_init inotify_init1
what Landlock lets pass: chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate
times and attributes: utime utimes utimensat futimesat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
memory that no rlimit counts: memfd_create memfd_secret shmget msgget semget mq_open
what others left there: shmat shmctl msgsnd msgrcv msgctl semop semtimedop semctl mq_unlink
the kernel's own programs: bpf keyctl add_key request_key userfaultfd io_uring_setup io_uring_enter io_uring_register
the machine: kexec_load kexec_file_load reboot init_module finit_module delete_module swapon swapoff acct quotactl quotactl_fd
its clocks and names: settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup
its hardware: ioperm iopl modify_ldt personality uselib statmount listmount
"""
REFUSED = tuple(name for line in _REFUSED_WITH_REASON.splitlines() for name in line.partition(":")[2].split())
_THREAD, _NAMESPACES = 0x10000, 0x7E020080  # flags of clone
_UNIX, _STREAM, _SOCKET_KIND = 1, 1, 0xF
_SET_OWNER, _SET_SIGNAL, _SET_OWNER_EX = 8, 10, 15  # fcntl: a signal to anybody when a file is ready
_TTY_INPUT, _TTY_LINUX, _FILE_OWNER, _SOCKET_OWNER = 0x5412, 0x541C, 0x8901, 0x8902  # ioctl
_DEATH_SIGNAL, _DUMPABLE = 1, 4  # prctl

_LOAD, _IF_EQUAL, _IF_GREATER, _IF_ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_PASS, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_REFUSE = _ERRNO | errno.EPERM
_UNKNOWN = _ERRNO | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _X32 = 0, 4, 0x40000000
_SET_SECCOMP, _FILTER = 22, 2


def _argument(index: int) -> int:
    return 16 + 8 * index  # the low half; all arguments looked at are of 32 bits


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when_called(name: str, *steps: bytes) -> bytes:
    """Do these steps, of which the last returns, if this is the call; else go on after them, with the number loaded."""
    which = number(name)
    if which is None:
        return b""
    return _step(_IF_EQUAL, which, 0, len(steps)) + b"".join(steps)


def _unless_first_is(values: Iterable[int]) -> list[bytes]:
    """Refuse unless argument 0 is one of these."""
    return [*_one_of(0, values, _PASS), _step(_RETURN, _REFUSE)]


def _one_of(index: int, values: Iterable[int], answer: int) -> list[bytes]:
    steps = [_step(_LOAD, _argument(index))]
    for value in values:
        steps += [_step(_IF_EQUAL, value, 0, 1), _step(_RETURN, answer)]
    return steps


def program(pid: int) -> bytes:
    """Return the filter for the process with this number, as machine words of classic BPF.

    Refused calls return EPERM, so that Python raises PermissionError and names it; calls of another architecture kill.
    """
    start = (
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, machine()[1], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_IF_GREATER, _X32 - 1, 0, 1),
        _step(_RETURN, _KILL),
        *(_when_called(name, *_unless_first_is((pid,))) for name in ("kill", "tgkill")),
        *(_when_called(name, *_unless_first_is((0, pid))) for name in ("prlimit64", "sched_setaffinity")),
    )
    return b"".join(start) + _rest()


@functools.cache
def _rest() -> bytes:
    """Return the part of the filter that is the same for every process."""
    passed, refused = _step(_RETURN, _PASS), _step(_RETURN, _REFUSE)
    parts = [
        _step(_IF_GREATER, LAST_KNOWN, 0, 1),
        _step(_RETURN, _UNKNOWN),  # C libraries fall back to the older call
        _when_called("clone3", _step(_RETURN, _UNKNOWN)),  # its flags lie in memory, where no filter looks
        *(_when_called(name, refused) for name in REFUSED),
        _when_called(
            "clone",
            _step(_LOAD, _argument(0)),
            _step(_IF_ANY_BIT, _NAMESPACES, 1, 0),
            _step(_IF_ANY_BIT, _THREAD, 1, 0),
            refused,
            passed,
        ),
        _when_called(
            "socketpair",
            _step(_LOAD, _argument(0)),
            _step(_IF_EQUAL, _UNIX, 0, 3),
            _step(_LOAD, _argument(1)),
            _step(_AND, _SOCKET_KIND),
            _step(_IF_EQUAL, _STREAM, 1, 0),  # one of datagrams could write to any address
            refused,
            passed,
        ),
        _when_called("fcntl", *_one_of(1, (_SET_OWNER, _SET_SIGNAL, _SET_OWNER_EX), _REFUSE), passed),
        _when_called("ioctl", *_one_of(1, (_TTY_INPUT, _TTY_LINUX, _FILE_OWNER, _SOCKET_OWNER), _REFUSE), passed),
        _when_called("prctl", *_one_of(0, (_DEATH_SIGNAL, _DUMPABLE), _REFUSE), passed),
        passed,
    ]
    return b"".join(parts)


def prepare() -> None:
    """Build the filter before a fork, once for all workers; without an error where there can be none."""
    with contextlib.suppress(SandboxError, AttributeError, OSError, TypeError):  # TypeError: Windows wants a name
        _rest()
        c_library()


def refuse_calls() -> None:
    """Put the filter on this process, for good; call it last, after `forbid_new_privileges`.

    Stops new processes and programs, every socket but connected pairs, signals and limits for other processes, a look into their memory,
    mounts, new namespaces, changes of mode, owner and time of files, and the parts of the kernel that a lesson has no use for.
    Stops no threads (the address space bounds them), no reading and writing of files (Landlock does), and nothing on descriptors that
    are open already.

    Raises SandboxError if the kernel has no seccomp filters, or refuses this one.
    """
    put_on(program(os.getpid()))


def put_on(words: bytes) -> None:
    """Put a filter on this process, for good.

    `words`: machine words of classic BPF. Raises SandboxError if the kernel has no seccomp filters, or refuses this one.
    """
    memory = ctypes.create_string_buffer(words, len(words))
    header = struct.pack("@HP", len(words) // 8, ctypes.addressof(memory))
    system_call("prctl", _SET_SECCOMP, _FILTER, header)
