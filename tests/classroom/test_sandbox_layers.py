"""Each layer refuses what it is for, and (so that these tests can fail) without it the same act succeeds."""

import signal
import sys

import pytest

from attn_course.classroom.sandbox import LAYERS
from tests.classroom.sandbox_child import HERE, USERS, Stage, confined, need_all_layers, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
SYSCALL = "sandbox.system_calls.system_call"
HONEST = [
    "print('hello')",
    "(own / 'notes.txt').write_text('mine')",
    "open('notes.txt').read()",
    "__import__('tempfile').NamedTemporaryFile().write(b'x')",
    "__import__('tempfile').TemporaryDirectory().cleanup()",
    "__import__('time').sleep(0.001)",
    "__import__('linecache').getline(os.__file__, 1)",
    "__import__('warnings').warn('careful')",
    "__import__('xml.dom.minidom').dom.minidom.parseString('<a/>')",
    "__import__('sqlite3').connect(':memory:')",
    "__import__('concurrent.futures').futures.ThreadPoolExecutor(4).submit(int).result()",
    "__import__('asyncio').run(__import__('asyncio').sleep(0))",
    "__import__('traceback').format_stack()",
    "os.kill(os.getpid(), 0)",
    "os.cpu_count()",
    "os.urandom(8)",
    "__import__('socket').socketpair()",
    "__import__('signal').setitimer(0, 0)",
]
CONNECT = "__import__('socket').create_connection(('127.0.0.1', port), 2)"
ACTS = {  # layer: what it refuses, and part of the refusal
    "limits": {
        "__import__('mmap').mmap(-1, 600 << 20)": "Cannot allocate memory",
        "(own / 'huge').write_bytes(bytes(20 << 20))": "File too large",
        "[os.open('/dev/null', 0) for _ in range(100)]": "Too many open files",
    },
    "namespaces": {
        "outside.write_text('changed')": "Read-only file system",
        "outside.chmod(0o777)": "Read-only file system",
        CONNECT: "unreachable",
        "open(f'/proc/{parent}/status').read()": "No such file",
        "[(own / str(n)).write_bytes(bytes(10 << 20)) for n in range(10)]": "No space left",
    },
    "landlock": {
        "outside.read_text()": "Permission denied",
        "outside.write_text('changed')": "Permission denied",
        "outside.with_name('new').touch()": "Permission denied",
        "outside.rename(outside.with_name('other')).rename(outside)": "Permission denied",
        "os.link(outside, own / 'link')": "OSError",
        "os.listdir('/')": "Permission denied",
        "len(open('/proc/self/maps').read())": "Permission denied",
    },
    "seccomp": {
        CONNECT: "Operation not permitted",
        "os.fork() or os._exit(0)": "Operation not permitted",
        "__import__('subprocess').run(['/bin/true'])": "Operation not permitted",
        "os.kill(parent, 0)": "Operation not permitted",
        "__import__('resource').prlimit(parent, 0)": "PermissionError",
        "outside.chmod(0o777)": "Operation not permitted",
        "os.utime(outside)": "Operation not permitted",
        "os.memfd_create('x')": "Operation not permitted",
        "__import__('socket').socketpair(1, 2)": "Operation not permitted",
        "__import__('fcntl').fcntl(1, 8, parent)": "Operation not permitted",
        f"{SYSCALL}('process_vm_readv', parent, None, 0, None, 0, 0)": "Operation not permitted",
        f"{SYSCALL}('unshare', 0)": "Operation not permitted",
        f"{SYSCALL}('shmget', 0, 4096, 0o1600)": "Operation not permitted",
        "os.truncate(outside, 0)": "Operation not permitted",
    },
}
SMALL = "address_space_bytes=500 << 20"


@pytest.fixture(scope="module", autouse=True)
def _layers_of_this_machine() -> None:
    need_all_layers()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_alone_refuses_what_it_is_for(stage: Stage, layer: str, user: str):
    answers = confined(list(ACTS[layer]), (layer,), stage, limits=SMALL, user=user)
    for (act, refusal), (verdict, said) in zip(ACTS[layer].items(), answers, strict=True):
        assert (verdict, refusal in said) == ("refused", True), f"{act}: {said}"


@pytest.mark.parametrize("layer", LAYERS)
def test_without_layers_every_one_of_these_acts_goes_through(stage: Stage, layer: str):
    """So the refusals above are the layer's, not this machine's."""
    for act, (verdict, said) in zip(ACTS[layer], confined(list(ACTS[layer]), (), stage), strict=True):
        assert verdict == "done", f"{act}: {said}"


@pytest.mark.parametrize("user", USERS)
def test_all_layers_together_refuse_them_too(stage: Stage, user: str):
    acts = [act for layer in LAYERS for act in ACTS[layer]]
    for act, (verdict, said) in zip(acts, confined(acts, LAYERS, stage, limits=SMALL, user=user), strict=True):
        assert verdict == "refused", f"{act}: {said}"
    assert stage.outside.read_text() == "the right answers"


def test_an_endless_loop_is_killed_by_the_processor_time_it_uses(stage: Stage):
    code = f"""import sys; sys.path.append({str(HERE.parent)!r}); import sandbox; from pathlib import Path
sandbox.confine(writable=Path({str(stage.own)!r}), layers=["limits"], limits=sandbox.Limits(cpu_s=0.1))
while True:
    pass
"""
    assert -python(code).returncode in (signal.SIGXCPU, signal.SIGKILL)


@pytest.mark.parametrize(
    ("layers", "user"),
    [*((LAYERS, user) for user in USERS), *((layers, USERS[0]) for layers in (None, LAYERS[:1], (*LAYERS[:1], *LAYERS[2:])))],
)
def test_honest_acts_work_at_every_level(stage: Stage, layers: tuple[str, ...] | None, user: str):
    for act, (verdict, said) in zip(HONEST, confined(HONEST, layers, stage, user=user), strict=True):
        assert verdict == "done", f"{act}: {said}"


def test_a_bomb_of_threads_runs_into_the_limits_and_the_rest_goes_on(stage: Stage):
    """The address space bounds threads, where the kernel does not count those of root."""
    bomb = "[__import__('threading').Thread(target=__import__('time').sleep, args=(600,), daemon=True).start() for _ in range(5000)]"
    answers = confined([bomb, "sum(range(10))"], LAYERS, stage)
    assert answers == [("refused", "RuntimeError: can't start new thread"), ("done", "45")]
