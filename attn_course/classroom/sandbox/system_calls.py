"""System calls by number, through ctypes, on Linux for x86_64 and aarch64; importable everywhere."""

import ctypes
import functools
import os
import re
import sys
from typing import Any

from .layers import SandboxError

_KNOWN = """
accept 43/202  accept4 288/242  acct 163/89  add_key 248/217  adjtimex 159/171  bind 49/200  bpf 321/280  capset 126/91
chmod 90/-  chown 92/-  chroot 161/51  clock_adjtime 305/266  clock_settime 227/112  clone 56/220  clone3 435
connect 42/203  delete_module 176/106  execve 59/221  execveat 322/281  fanotify_init 300/262  fchmod 91/52
fchmodat 268/53  fchmodat2 452  fchown 93/55  fchownat 260/54  fcntl 72/25  finit_module 313/273  fork 57/-
fremovexattr 199/16  fsconfig 431  fsetxattr 190/7  fsmount 432  fsopen 430  fspick 433  futimesat 261/-
inotify_init 253/-  inotify_init1 294/26  init_module 175/105  io_uring_enter 426  io_uring_register 427
io_uring_setup 425  ioctl 16/29  ioperm 173/-  iopl 172/-  ioprio_set 251/30  kcmp 312/272  kexec_file_load 320/294
kexec_load 246/104  keyctl 250/219  kill 62/129  landlock_add_rule 445  landlock_create_ruleset 444
landlock_restrict_self 446  lchown 94/-  listen 50/201  listmount 458  lremovexattr 198/15  lsetxattr 189/6
memfd_create 319/279  memfd_secret 447  migrate_pages 256/238  modify_ldt 154/-  mount 165/40  mount_setattr 442
move_mount 429  move_pages 279/239  mq_open 240/180  mq_unlink 241/181  msgctl 71/187  msgget 68/186  msgrcv 70/188
msgsnd 69/189  name_to_handle_at 303/264  open_by_handle_at 304/265  open_tree 428  perf_event_open 298/241
personality 135/92  pidfd_getfd 438  pidfd_open 434  pidfd_send_signal 424  pivot_root 155/41  prctl 157/167
prlimit64 302/261  process_madvise 440  process_mrelease 448  process_vm_readv 310/270  process_vm_writev 311/271
ptrace 101/117  quotactl 179/60  quotactl_fd 443  reboot 169/142  removexattr 197/14  request_key 249/218
rt_sigqueueinfo 129/138  rt_tgsigqueueinfo 297/240  sched_setaffinity 203/122  sched_setattr 314/274
sched_setparam 142/118  sched_setscheduler 144/119  semctl 66/191  semget 64/190  semop 65/193  semtimedop 220/192
setdomainname 171/162  sethostname 170/161  setns 308/268  setpgid 109/154  setpriority 141/140  setsid 112/157
settimeofday 164/170  setxattr 188/5  shmat 30/196  shmctl 31/195  shmget 29/194  socket 41/198  socketpair 53/199
statmount 457  swapoff 168/225  swapon 167/224  syslog 103/116  tgkill 234/131  tkill 200/130  truncate 76/45
umount2 166/39  unshare 272/97  uselib 134/-  userfaultfd 323/282  utime 132/-  utimensat 280/88  utimes 235/-
vfork 58/-  vhangup 153/58
"""  # on x86_64 and on aarch64, "-" where the machine has no such call; from 424 on all machines share the numbers
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    name: (int(one), None if other == "-" else int(other or one)) for name, one, other in re.findall(r"(\w+) (\d+)(?:/(\d+|-))?", _KNOWN)
}
LAST_KNOWN = 462  # calls numbered higher are newer than this table
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of NUMBERS, and what seccomp calls the machine


def machine() -> tuple[int, int]:
    """Return the column of `NUMBERS` and seccomp's name of this machine.

    Raises SandboxError if this is not Linux on a machine whose numbers are known.
    """
    if sys.platform != "linux":
        raise SandboxError(f"{sys.platform} is not Linux")
    name = os.uname().machine
    if name not in _MACHINES or sys.maxsize < 1 << 32:
        raise SandboxError(f"no system call numbers for {name} with {sys.maxsize.bit_length() + 1} bits")
    return _MACHINES[name]


def number(name: str) -> int | None:
    """Return the number of a system call on this machine; None where it has none."""
    return NUMBERS[name][machine()[0]]


@functools.cache
def c_library() -> Any:
    """Return the C library; found once, because looking for it goes through every library that torch has loaded."""
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _syscall() -> Any:
    function = c_library().syscall
    function.restype = ctypes.c_long
    return function


def system_call(name: str, *arguments: int | bytes | None) -> int:
    """Make one system call.

    `name`: a key of `NUMBERS`. `*arguments`: numbers and flags; bytes and None are passed as pointers. Returns what the kernel
    returned, not negative. Raises SandboxError if the kernel refuses, or this machine has no such call.
    """
    which = number(name)
    if which is None:
        raise SandboxError(f"this machine has no call {name}")
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in arguments]
    words += [ctypes.c_long(0)] * (6 - len(words))  # mount and prctl read words that were not given
    result = int(_syscall()(ctypes.c_long(which), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise SandboxError(f"{name}: {os.strerror(code)}") from OSError(code, os.strerror(code))
    return result
