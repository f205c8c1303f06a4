"""What confine leaves a worker: its imports, its folder, no secrets, no way to outlive the fork server; and what it costs."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.classroom.sandbox import confine, landlock
from tests.classroom.sandbox_child import HERE, USERS, Stage, confined, need_all_layers, need_landlock, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
START = f"""
import json, os, sys, tempfile, threading, time
from pathlib import Path
sys.path.append({str(HERE.parent)!r})
import sandbox
from sandbox import landlock, namespaces
def attempt(act):
    try:
        return act()
    except (OSError, sandbox.SandboxError) as error:
        return error
"""
PATIENCE_S = 300.0  # half of what the processes would sleep; they end at once


def test_nothing_inherited_is_left_but_what_is_kept(stage: Stage):
    before = "secret = os.open(outside, 0)"
    acts = [
        "os.read(secret, 5)",
        "os.environ.get('SECRET_TOKEN')",
        "sys.stdin.read()",
        "os.getcwd() == os.environ['HOME'] == __import__('tempfile').gettempdir() == str(own)",
        "open('/proc/self/status').read()",
    ]
    assert [said for _, said in confined(acts, (), stage, before=before)[:4]] == [
        "OSError: [Errno 9] Bad file descriptor",
        "None",
        "''",
        "True",
    ]


SAYS = {  # by name: what a process does in its folder `own`, what it prints then, and whether the machine must have all layers for it
    "descriptors to keep stay open": (
        """
ear, mouth = os.pipe()
low, high = os.pipe()
sandbox.confine(writable=own, keep=[high, mouth])
print(attempt(lambda: os.fstat(ear)), attempt(lambda: os.fstat(low)), os.fstat(high).st_mode == os.fstat(mouth).st_mode)""",
        "[Errno 9] Bad file descriptor [Errno 9] Bad file descriptor True",
        False,
    ),
    "a layer that was asked for is never left out silently": (
        """
def refuse(*_): raise sandbox.SandboxError("unshare: Operation not permitted")
namespaces.isolate = refuse
print(attempt(lambda: sandbox.confine(writable=own, layers=["limits", "namespaces"])), end=", ")
print(sandbox.confine(writable=own))""",
        "unshare: Operation not permitted, ('limits', 'landlock', 'seccomp')",
        False,
    ),
    "a process with threads is not confined by halves": (
        """
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(attempt(lambda: sandbox.confine(writable=own)))""",
        "only a process with one thread can be confined; this one has 2",
        False,
    ),
    "a folder that does not exist is named": (
        """
own.rmdir()
print(attempt(lambda: landlock.allow_only([], own)))""",
        "a rule for {own}: No such file or directory",
        False,
    ),
    "without a way back to the fork server's namespace a fork is a plain one": (
        """
real = namespaces.system_call
def refusing(name, *arguments):
    if name == "setns":
        raise sandbox.SandboxError("setns: Operation not permitted")
    return real(name, *arguments)
namespaces.system_call = refusing
print(sandbox.leave_for_own_namespaces(), end=" ", flush=True)
worker = sandbox.fork_alone()
if worker == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))""",
        "True 3",
        True,
    ),
}


@pytest.mark.parametrize("what", SAYS)
def test_what_a_process_says_that_confines_itself(stage: Stage, what: str):
    code, said, needs_all = SAYS[what]
    (need_all_layers if needs_all else need_landlock)()
    assert python(f"{START}own = Path({str(stage.own)!r})\n{code}").stdout == f"{said.format(own=stage.own)}\n"


def test_no_capability_is_left_even_for_root(stage: Stage):
    acts = ["os.chroot('/')", "os.setuid(12345)", "os.nice(-5)", "open('/proc/self/status').read().split('CapEff:')[1].split()[0]"]
    said = confined(acts, (), stage)
    assert [verdict for verdict, _ in said] == ["refused"] * 3 + ["done"], said
    assert set(said[3][1].strip("'")) == {"0"}


def test_limits_are_on_top_of_what_the_process_has(stage: Stage):
    """A fork of a process with torch has mapped more than the limit already."""
    before = "import mmap; held = mmap.mmap(-1, 700 << 20)"
    said = confined(
        ["len(mmap.mmap(-1, 300 << 20))", "mmap.mmap(-1, 300 << 20)"],
        ("limits",),
        stage,
        before=before,
        limits="address_space_bytes=500 << 20",
    )
    assert [verdict for verdict, _ in said] == ["done", "done"]
    said = confined(["mmap.mmap(-1, 600 << 20)"], ("limits",), stage, before=before, limits="address_space_bytes=500 << 20")
    assert said[0][0] == "refused"


def test_an_unknown_layer_is_an_error(tmp_path: Path):
    with pytest.raises(ValueError, match=r"layers must be among limits, namespaces, landlock, seccomp; got firewall"):
        confine(writable=tmp_path, layers=["firewall"])


WAITS = {  # by name: what starts processes that wait, once one of them has said so
    "a worker and the process that forked it": "sandbox.confine(writable=own, keep=[1])",
    "fork server, workers and the process that waits": "",
}


@pytest.mark.parametrize("what", WAITS)
def test_processes_end_with_the_one_that_is_killed(stage: Stage, what: str):
    if not WAITS[what]:
        need_all_layers()
    before = f"own = Path({str(stage.own)!r})\n" + ("" if WAITS[what] else "sandbox.leave_for_own_namespaces()\n")
    code = f"{START}{before}if os.fork() == 0:\n    {WAITS[what]}\n    print('forked', flush=True)\n    time.sleep(600)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-S", "-I", "-c", code], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"forked\n"
        first.kill()
        start = time.monotonic()
        assert first.stdout.read() == b""  # ends when the last process that could write is gone
        assert time.monotonic() - start < PATIENCE_S


@pytest.mark.parametrize("user", USERS)
def test_workers_of_a_fork_server_in_its_own_namespaces_are_alone(stage: Stage, user: str):
    need_all_layers()
    code = f"""{START}
done = sandbox.leave_for_own_namespaces()
print(json.dumps([done, os.getpid(), os.getppid()]), flush=True)
first = sandbox.fork_alone()
if first == 0:
    time.sleep(600)
for _ in range(3):
    worker = sandbox.fork_alone()
    if worker == 0:
        sandbox.confine(writable=Path({str(stage.own)!r}), layers=["limits", "namespaces"])
        found = []
        for pid in range(2, 60):
            try:
                os.kill(pid, 0)
                found.append(pid)
            except OSError:
                pass
        print(json.dumps([os.getpid(), os.getppid(), found]), flush=True)
        os._exit(0)
    os.waitpid(worker, 0)
os.kill(first, 9)
os._exit(7)
"""
    done = python(code, user=user)
    assert done.returncode == 7, done.stderr  # handed on by the process that waits
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[True, 1, 0], *[[1, 0, []]] * 3]


def test_the_course_is_never_readable_where_it_is_installed_among_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packages = tmp_path / "lib" / "site-packages"
    for name in ("attn_course", "numpy", "torch"):
        (packages / name).mkdir(parents=True)
    (tmp_path / "lib" / "os.py").touch()
    monkeypatch.setattr(landlock, "_package_folders", lambda: [packages])
    names = {str(path.relative_to(tmp_path)) for path in landlock._without_course(tmp_path / "lib")}
    assert names == {"lib/os.py", "lib/site-packages/numpy", "lib/site-packages/torch"}
    (packages / "attn_course").rmdir()
    assert landlock._without_course(tmp_path / "lib") == [tmp_path / "lib"]


def test_this_checkout_is_not_readable():
    course = HERE.parent.parent
    assert not [path for path in landlock.interpreter_paths() if path == course or path in course.parents]


def test_confining_costs_a_few_milliseconds(stage: Stage):
    code = f"""{START}
paths = sandbox.interpreter_paths()
sandbox.leave_for_own_namespaces()
for _ in range(20):
    worker = sandbox.fork_alone()
    if worker == 0:
        start = time.process_time()
        sandbox.confine(readable=paths, writable=Path({str(stage.own)!r}))
        print((time.process_time() - start) * 1e3, flush=True)
        os._exit(0)
    os.waitpid(worker, 0)
"""
    assert min(map(float, python(code).stdout.split())) < 10  # about 3 ms


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6])
def test_every_abi_of_landlock_confines_files(stage: Stage, abi: int):
    need_landlock()
    if landlock.abi() < abi:
        pytest.skip(f"the kernel has ABI {landlock.abi()}")
    before = f"from sandbox import landlock; landlock.abi = lambda: {abi}"
    acts = ["outside.read_text()", "outside.open('w')", "os.rename(outside, own / 'taken')", "(own / 'mine').write_text('x')"]
    assert [verdict for verdict, _ in confined(acts, ("landlock",), stage, before=before)] == ["refused"] * 3 + ["done"]
    acts = ["__import__('socket').create_connection(('127.0.0.1', port), 2)", "os.kill(parent, 0)"]
    verdicts = [verdict for verdict, _ in confined(acts, ("landlock",), stage, before=before)]
    assert verdicts == ["refused" if abi >= 4 else "done", "refused" if abi >= 6 else "done"]
