"""What confine leaves a worker: its imports, its folder, no secrets, no way to outlive the fork server; and what it costs."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.classroom.sandbox import confine, landlock
from tests.classroom.sandbox_child import HERE, USERS, Stage, confined, need_all_layers, need_landlock, probe, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
START = f"import os, sys, time, tempfile; sys.path.append({str(HERE.parent)!r}); import sandbox; from pathlib import Path\n"
PATIENCE_S = 300.0  # half of what the processes would sleep; they end at once


@pytest.mark.parametrize("user", USERS)
def test_lazy_imports_of_confined_torch_and_sympy_work(stage: Stage, user: str):
    acts = [
        "'sympy.stats' in sys.modules",
        "sympy.integrate(sympy.Symbol('x'), (sympy.Symbol('x'), 0, 2))",
        "__import__('sympy.stats').stats.E(sympy.stats.Normal('x', 3, 1))",
        "__import__('xml.dom.minidom').__name__",
        "(torch.ones(3, 5) @ torch.ones(5, 2)).sum().item()",
        "torch.nn.Linear(3, 2)(torch.ones(3)).sum().backward()",
        "torch.save(torch.ones(3), 'saved.pt')",
        "torch.load('saved.pt').tolist()",
        "np.save('saved.npy', np.ones(3)) or np.load('saved.npy').tolist()",
        "np.linalg.inv(np.eye(3) * 2).tolist()[0]",
        "__import__('attn_course')",
        "outside.read_text()",
    ]
    ready = "import numpy as np, torch, sympy; torch.set_num_threads(1)"
    need_landlock()
    said = confined(acts, probe().holding, stage, before=ready, user=user, packages=True)
    assert [verdict for verdict, _ in said] == ["done"] * 10 + ["refused"] * 2, said
    assert [text for _, text in said[:5]] == ["False", "2", "3", "'xml'", "30.0"]
    assert [said[7][1], said[8][1]] == ["[1.0, 1.0, 1.0]"] * 2
    assert "attn_course" in said[10][1]  # no such module; or, where a path entry names the checkout, permission denied


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


def test_descriptors_to_keep_stay_open(stage: Stage):
    code = f"""{START}
ear, mouth = os.pipe()
low, high = os.pipe()
sandbox.confine(writable=Path({str(stage.own)!r}), keep=[high, mouth])
closed = 0
for handle in (ear, low):
    try:
        os.fstat(handle)
    except OSError:
        closed += 1
print(closed, os.fstat(high).st_mode == os.fstat(mouth).st_mode)
"""
    assert python(code).stdout == "2 True\n"


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


def test_a_layer_that_was_asked_for_is_never_left_out_silently(stage: Stage):
    need_landlock()
    code = f"""{START}
from sandbox import namespaces
def refuse(*_): raise sandbox.SandboxError("unshare: Operation not permitted")
namespaces.isolate = refuse
try:
    sandbox.confine(writable=Path({str(stage.own)!r}), layers=["limits", "namespaces"])
except sandbox.SandboxError as error:
    print(error)
print(sandbox.confine(writable=Path({str(stage.own)!r})))
"""
    assert python(code).stdout.splitlines() == ["unshare: Operation not permitted", "('limits', 'landlock', 'seccomp')"]


def test_an_unknown_layer_is_an_error(tmp_path: Path):
    with pytest.raises(ValueError, match=r"layers must be among limits, namespaces, landlock, seccomp; got firewall"):
        confine(writable=tmp_path, layers=["firewall"])


def test_a_worker_dies_with_the_process_that_forked_it(stage: Stage):
    code = f"""{START}
if os.fork() == 0:
    sandbox.confine(writable=Path({str(stage.own)!r}), keep=[1])
    print("confined", flush=True)
    time.sleep(600)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-S", "-I", "-c", code], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"confined\n"
        server.kill()
        start = time.monotonic()
        assert server.stdout.read() == b""  # ends when the last process that could write is gone
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
""".replace("import os,", "import json, os,")
    done = python(code, user=user)
    assert done.returncode == 7, done.stderr  # handed on by the process that waits
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[True, 1, 0], *[[1, 0, []]] * 3]


def test_without_a_way_back_to_the_fork_servers_namespace_a_fork_is_a_plain_one():
    need_all_layers()
    code = f"""{START}
from sandbox import namespaces
real = namespaces.system_call
def refusing(name, *arguments):
    if name == "setns":
        raise sandbox.SandboxError("setns: Operation not permitted")
    return real(name, *arguments)
namespaces.system_call = refusing
print(sandbox.leave_for_own_namespaces(), flush=True)
worker = sandbox.fork_alone()
if worker == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
"""
    assert python(code).stdout.split() == ["True", "3"]


def test_killing_the_process_that_waits_kills_fork_server_and_workers():
    need_all_layers()
    code = f"{START}\nsandbox.leave_for_own_namespaces()\nif os.fork():\n    print('forked', flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-S", "-I", "-c", code], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"forked\n"
        waiting.kill()
        start = time.monotonic()
        assert waiting.stdout.read() == b""
        assert time.monotonic() - start < PATIENCE_S


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


def test_confining_costs_a_few_milliseconds(stage: Stage, capsys: pytest.CaptureFixture[str]):
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
    took_ms = sorted(float(line) for line in python(code).stdout.split())
    with capsys.disabled():
        print(f"\nconfine: fastest {took_ms[0]:.1f} ms, median {took_ms[10]:.1f} ms of processor time, 20 times")
    assert took_ms[0] < 10  # about 3 ms


@pytest.mark.parametrize(
    ("before", "act", "complaint"),
    [
        (
            "import threading; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
            "confine(writable=own)",
            "only a process with one thread can be confined; this one has 2",
        ),
        ("own.rmdir(); from sandbox import landlock", "landlock.allow_only([], own)", "a rule for {own}: No such file or directory"),
    ],
    ids=["threads", "no folder"],
)
def test_what_keeps_a_process_from_being_confined_is_said(stage: Stage, before: str, act: str, complaint: str):
    need_landlock()
    code = f"""{START}
own = Path({str(stage.own)!r})
{before}
try:
    sandbox.{act}
except sandbox.SandboxError as error:
    print(error)
"""
    assert python(code).stdout == f"{complaint.format(own=stage.own)}\n"


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
