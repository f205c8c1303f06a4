"""The filter, run step by step by a small machine of our own, for both kinds of processor."""

import errno
import os
import struct
import sys
from collections.abc import Iterator

import pytest

from attn_course.classroom.sandbox import SandboxError, seccomp, system_calls

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PASS, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
ME, OTHER = 4711, 4712
THREAD, FORK = 0x3D0F00, 0x1200011  # flags of pthread_create and of fork


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    which = list(MACHINES).index(request.param), MACHINES[request.param]
    for module in (system_calls, seccomp):
        monkeypatch.setattr(module, "machine", lambda: which)
    seccomp._rest.cache_clear()
    yield request.param
    seccomp._rest.cache_clear()


def outcome(machine: str, call: str | int, *arguments: int, architecture: int | None = None) -> int:
    number = call if isinstance(call, int) else system_calls.number(call)
    assert number is not None
    data = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine], 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(ME)))
    at, word = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            word = int.from_bytes(data[value : value + 4], sys.byteorder)
        elif code == 0x54:
            word &= value
        elif code == 0x06:
            return value
        else:
            holds = {0x15: word == value, 0x25: word > value, 0x45: bool(word & value)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("kill", (ME, 9), PASS),
        ("kill", (OTHER, 9), EPERM),
        ("kill", (0, 9), EPERM),
        ("kill", ((1 << 32) - 1, 9), EPERM),  # everybody
        ("tgkill", (ME, ME, 6), PASS),  # abort() and raise()
        ("tgkill", (OTHER, OTHER, 9), EPERM),
        ("tkill", (ME, 9), EPERM),
        ("prlimit64", (0, 7), PASS),
        ("prlimit64", (OTHER, 7), EPERM),
        ("sched_setaffinity", (OTHER,), EPERM),
        ("clone", (THREAD,), PASS),
        ("clone", (FORK,), EPERM),
        ("clone", (THREAD | 0x10000000,), EPERM),  # a thread in a new user namespace
        ("clone3", (), ENOSYS),
        ("socketpair", (1, 1 | 0x80000), PASS),
        ("socketpair", (1, 2), EPERM),
        ("socketpair", (2, 1), EPERM),
        ("socket", (2, 1), EPERM),
        ("socket", (16, 3), EPERM),
        ("fcntl", (1, 3), PASS),
        ("fcntl", (1, 8), EPERM),
        ("ioctl", (1, 0x5401), PASS),
        ("ioctl", (0, 0x5412), EPERM),
        ("ioctl", ((1 << 63) | 1, (1 << 32) | 0x5412), EPERM),  # the kernel looks at the low half only
        ("prctl", (15,), PASS),
        ("prctl", (1, 0), EPERM),
        ("execve", (), EPERM),
        ("landlock_restrict_self", (), PASS),
    ],
)
def test_calls_are_judged_by_their_arguments(machine: str, call: str, arguments: tuple[int, ...], answer: int):
    assert outcome(machine, call, *arguments) == answer


def test_every_refused_call_is_refused_and_everyday_calls_pass(machine: str):
    for call in seccomp.REFUSED:
        if system_calls.number(call) is not None:
            assert outcome(machine, call) == EPERM, call
    everyday = {"x86_64": (0, 1, 3, 9, 11, 12, 35, 202, 257, 318), "aarch64": (63, 64, 57, 222, 215, 214, 101, 98, 56, 278)}
    assert {outcome(machine, number) for number in everyday[machine]} == {PASS}  # read write close mmap munmap brk sleep futex open random


def test_calls_of_another_architecture_kill_and_unknown_ones_do_not_exist(machine: str):
    assert outcome(machine, "kill", ME, architecture=0x40000003) == KILL  # 32-bit calls have other numbers
    assert {outcome(machine, 0x40000000 | number, ME) for number in (0, 62)} == {KILL}  # x32
    assert outcome(machine, system_calls.LAST_KNOWN + 1) == ENOSYS
    assert outcome(machine, system_calls.LAST_KNOWN) == PASS


def test_numbers_are_not_given_twice():
    for column in (0, 1):
        numbers = [numbers[column] for numbers in system_calls.NUMBERS.values() if numbers[column] is not None]
        assert len(numbers) == len(set(numbers))
    assert all(one == other for one, other in system_calls.NUMBERS.values() if one is not None and one >= 424)


@pytest.mark.parametrize(("platform", "name"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_elsewhere_a_system_call_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, platform: str, name: str):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("", "", "", "", name)))
    with pytest.raises(SandboxError, match=r"is not Linux|no system call numbers for riscv64"):
        system_calls.machine()
