"""Interrupts, deaths and orphans: a forked kernel ends when a plain one would, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from jupyter_client.provisioning import KernelProvisionerFactory

from attn_course.grading.nbval_run import CopiedCell, run_nbval
from attn_course.grading.warm_kernels import client, owner, provisioner, settings
from attn_course.grading.warm_kernels.client import NotToBeHad
from attn_course.grading.warm_kernels.owner import WarmKernels, warm_kernels_or_none
from tests.grading.warm_kernels.conftest import started
from tests.processes import is_running, wait_for

pytestmark = pytest.mark.skipif(not client.can_fork(), reason="kernels cannot be forked on this system")

LIGHT = ("json",)  # a warm process that is ready at once


@pytest.fixture
def told(monkeypatch):
    """Reasons are told anew."""
    monkeypatch.setattr(settings, "_told", set())


@pytest.fixture
def light():
    with WarmKernels(imports=LIGHT) as process:
        yield process


def test_an_interrupt_stops_a_cell_and_the_kernel_goes_on(kernel):
    asked = kernel()
    asked.run("kept = 5")
    timer = threading.Timer(1.0, asked.manager.provisioner.process.send_signal, [signal.SIGINT])  # the manager needs this thread's loop
    timer.start()
    assert asked.run("import time\nwhile True: time.sleep(0.01)").startswith("KeyboardInterrupt")
    timer.join()
    assert asked.run("print(kept)") == "5"


@pytest.mark.parametrize(
    ("code", "returned"), [("import os; os._exit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9)]
)
def test_a_kernel_that_ends_is_noticed_with_its_exit_code(kernel, code, returned):
    asked = kernel()
    asked.client.execute(code)
    assert wait_for(lambda: not asked.manager.is_alive())
    assert asked.manager.provisioner.process.poll() == returned


def test_exit_ends_the_kernel_as_usual_and_runs_exit_handlers(kernel, tmp_path):
    asked = kernel()
    asked.run("import atexit, pathlib; atexit.register(lambda: pathlib.Path('ended').write_text('yes'))")
    asked.client.execute("exit()")
    assert wait_for(lambda: not asked.manager.is_alive())
    assert asked.manager.provisioner.process.poll() == 0
    assert (tmp_path / "ended").read_text() == "yes"


def test_shutdown_and_restart(kernel):
    asked = kernel()
    asked.run("kept = 5")
    before = asked.pid
    asked.manager.restart_kernel(now=True)
    assert asked.is_forked
    assert asked.pid != before
    assert not is_running(before)
    asked.client.wait_for_ready(timeout=60)
    assert asked.run("print('kept' in globals())") == "False"
    asked.manager.shutdown_kernel()  # asks the kernel, and waits
    assert not is_running(asked.pid)


def test_a_kernel_takes_what_it_started_along(kernel):
    asked = kernel()
    child = int(asked.run("import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid)"))
    assert is_running(child)
    asked.manager.shutdown_kernel(now=True)
    assert wait_for(lambda: not is_running(child))


ENDS = {"crash": "os._exit(0)", "kill": "os.kill(os.getpid(), 9)", "exit": "exit()"}


@pytest.mark.parametrize("end", ENDS)
def test_a_kernel_that_ends_by_itself_takes_what_it_started_along(light, tmp_path, end):
    with started(light, tmp_path) as other, started(light, tmp_path) as asked:
        sleep = "subprocess.Popen(['sleep', '600'], start_new_session={})"
        kept = [int(other.run(f"import subprocess; print({sleep.format(alone)}.pid)")) for alone in (False, True)]
        orphan = int(
            other.run("print(subprocess.run('sleep 600 >/dev/null 2>&1 & echo $!', shell=True, capture_output=True, text=True).stdout)")
        )
        child, alone = (int(asked.run(f"import os, subprocess; print({sleep.format(alone)}.pid)")) for alone in (False, True))
        asked.client.execute(ENDS[end])
        assert wait_for(lambda: not is_running(child))
        assert wait_for(lambda: not is_running(asked.pid))
        assert all(map(is_running, (*kept, orphan, other.pid))), "what belongs to another kernel"
        assert other.run("print(6 * 7)") == "42"
    assert wait_for(lambda: not any(map(is_running, (*kept, orphan, alone)))), "no kernel is left that may own them"
    assert light.process.poll() is None


def test_a_warm_process_that_ends_leaves_nothing_behind(tmp_path):
    with WarmKernels(imports=LIGHT) as light, started(light, tmp_path) as asked:
        far = "import subprocess; print(subprocess.Popen(['sh', '-c', 'setsid sleep 600 & wait'], start_new_session=True).pid)"
        parent = int(asked.run(far))
        assert wait_for(lambda: Path(f"/proc/{parent}/task/{parent}/children").read_text())
        pids = [parent, *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]
        light.process.terminate()
        assert light.process.wait(20) == 0
        assert not any(map(is_running, pids))


def test_an_owner_does_not_wait_for_imports_that_nobody_needs_any_more():
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), WarmKernels() as process:
        raise KeyboardInterrupt
    assert time.monotonic() - start < 1.0, "importing takes longer"
    assert not Path(process.folder).exists()


def test_cell_timeouts_deaths_and_history_are_as_with_plain_kernels(warm, tmp_path):
    cells = [CopiedCell(text) for text in ("a = 1", "while True: pass", "assert In[1] == 'a = 1' and a == 1", "exit()", "b = 2")]
    for process in (warm, None):
        outcomes = run_nbval(cells, folder=tmp_path, cell_timeout_s=3, warm=process)
        assert [outcome.problem for outcome in outcomes.values()] == [None, "timeout", None, "died"]


def test_a_client_that_is_killed_takes_its_kernel_along(light, tmp_path):
    text = f"""
import os, sys, time
from pathlib import Path
from tests.grading.warm_kernels.conftest import started
from attn_course.grading.warm_kernels.owner import WarmKernels
warm = WarmKernels(); warm.folder = {light.folder!r}
with started(warm, Path({str(tmp_path)!r})) as asked:
    print(asked.is_forked, asked.pid, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        forked, pid = process.stdout.readline().split()
        assert forked == "True"
        assert is_running(int(pid))
        process.kill()
    assert wait_for(lambda: not is_running(int(pid)))
    with started(light, tmp_path) as asked:  # and the warm process lives on
        assert asked.is_forked


def test_an_owner_that_is_killed_leaves_no_process_and_no_file(tmp_path):
    text = f"""
import sys, time
from pathlib import Path
from tests.grading.warm_kernels.conftest import started
from attn_course.grading.warm_kernels.owner import WarmKernels
with WarmKernels(imports=("json",)) as warm, started(warm, Path({str(tmp_path)!r})) as asked:
    print(warm.process.pid, asked.pid, warm.folder, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        warm_pid, kernel_pid, folder = process.stdout.readline().split()
        assert is_running(int(warm_pid))
        assert is_running(int(kernel_pid))
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        process.kill()
    assert wait_for(lambda: not is_running(int(warm_pid)) and not is_running(int(kernel_pid)))
    assert wait_for(lambda: not Path(folder).exists())


def test_a_warm_process_that_is_killed_takes_its_kernels_along_and_the_next_kernel_is_plain(light, tmp_path, capfd, told):
    with started(light, tmp_path) as asked:
        assert asked.is_forked
        light.process.kill()
        assert wait_for(lambda: not asked.manager.is_alive(), 5)
        assert wait_for(lambda: not is_running(asked.pid), 5)
    light.process.wait()
    with started(light, tmp_path) as asked:
        assert not asked.is_forked
        assert asked.run("print(6 * 7)") == "42"
    with started(light, tmp_path):
        pass
    assert capfd.readouterr().err.splitlines() == [
        "attn-course: starting plain kernels, which is slower: the warm process does not answer (Connection refused)"
    ]


def test_a_warm_process_ends_when_it_is_idle_and_removes_its_folder():
    with WarmKernels(imports=LIGHT, idle_s=0.2) as process:
        assert process.process.wait(30) == 0
        assert not Path(process.folder).exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"OMP_NUM_THREADS": "7"}, "the kernel's environment differs in OMP_NUM_THREADS"),
        ({"PYTHONHASHSEED": "5"}, "the kernel's environment differs in PYTHONHASHSEED"),
    ],
)
def test_a_kernel_that_a_fork_could_not_be_is_plain_and_says_why(light, tmp_path, capfd, told, change, reason):
    with started(light, tmp_path, **change) as asked:
        assert not asked.is_forked
        name, value = next(iter(change.items()))
        assert asked.run(f"import os; print(os.environ[{name!r}])") == value
    assert capfd.readouterr().err.splitlines() == [settings.PLAIN + reason]


def test_a_file_named_like_a_library_is_what_a_notebook_imports(warm, tmp_path, capfd, told):
    (tmp_path / "sympy.py").write_text("mine = True\n")
    with started(warm, tmp_path) as asked:
        assert not asked.is_forked
        assert asked.run("import sympy; print(sympy.mine)") == "True"
    assert capfd.readouterr().err.splitlines() == [settings.PLAIN + "the kernel's folders hold files named like libraries: sympy"]


def test_where_nothing_can_be_forked_there_is_one_word_and_no_warm_process(monkeypatch, tmp_path, capfd, told):
    for module in (owner, provisioner, client):
        monkeypatch.setattr(module, "can_fork", lambda: False)
    with warm_kernels_or_none() as process:
        assert process is None
    with pytest.raises(NotToBeHad), WarmKernels():
        pass
    assert capfd.readouterr().err.splitlines() == [settings.PLAIN + f"kernels cannot be forked on {sys.platform}"]


def test_plain_kernels_can_be_asked_for_without_a_word(monkeypatch, capfd, told):
    monkeypatch.setenv(settings.SOCKET_VARIABLE, settings.OFF)
    with warm_kernels_or_none() as process:
        assert process is None
    assert capfd.readouterr().err == ""


def test_check_says_why_its_kernel_was_plain(light, tmp_path, capfd, told):
    light.process.kill()
    light.process.wait()
    assert run_nbval([CopiedCell("print(1)", expected="1")], folder=tmp_path, cell_timeout_s=60, warm=light)[0].problem is None
    assert "starting plain kernels, which is slower: the warm process does not answer" in capfd.readouterr().err


def test_libraries_say_nothing_when_they_are_imported_and_start_no_thread():
    text = """
import importlib, os
from attn_course.grading.warm_kernels.settings import IMPORTS, KERNEL_IMPORTS
os.environ["OPENBLAS_NUM_THREADS"] = "1"
before = dict(os.environ)
for name in (*KERNEL_IMPORTS, *IMPORTS): importlib.import_module(name)
import sys, zmq
assert {name for name in os.environ if os.environ[name] != before.get(name)} <= {"PYDEVD_USE_FRAME_EVAL"}
assert len(os.listdir("/proc/self/task")) == 1
assert not {"triton", "matplotlib.pyplot", "matplotlib_inline.backend_inline"} & set(sys.modules)
assert zmq.Context._instance is None
"""
    environment = {**os.environ, "PYTHONWARNINGS": "default", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stop_signal_ends_the_warm_process_and_its_kernels(light, tmp_path):
    with started(light, tmp_path) as asked:
        os.kill(light.process.pid, signal.SIGTERM)
        assert light.process.wait(20) == 0
        assert wait_for(lambda: not is_running(asked.pid), 5)


# --- the kernel of the next notebook ------------------------------------------------------------------


@pytest.fixture
def spare(light, monkeypatch):
    """Kernels for three notebooks to come, the last of them in another folder; nbval's plugin is loaded with it."""
    pytest.importorskip("nbval")
    from attn_course.grading.warm_kernels import quick_nbval

    for name, value in light.variables.items():
        monkeypatch.setenv(name, value)
    use = quick_nbval.Spare()
    monkeypatch.setattr(quick_nbval, "_start", _counted(quick_nbval._start))
    monkeypatch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "local-provisioner")  # put back afterwards
    provisioner.use_warm_kernels()
    yield use
    use.end()


def _counted(start):
    def counted(name, folder, **options):
        counted.started.append((folder, options))
        return start(name, folder, **options)

    counted.started = []
    return counted


def test_the_next_kernel_is_started_ahead_in_its_folder_and_none_is_left(spare, tmp_path):
    from attn_course.grading.warm_kernels import quick_nbval

    folders = [str(tmp_path), str(tmp_path), str(tmp_path.parent)]
    spare.folders = list(folders)
    taken = [spare.take("python3", folder) for folder in folders]
    assert [folder for folder, _ in quick_nbval._start.started] == folders, "one for each, none twice"
    assert [bool(options) for _, options in quick_nbval._start.started] == [False, True, True]
    pids = [manager.provisioner.pid for manager in taken]
    assert len(set(pids)) == 3
    assert [Path(f"/proc/{pid}/cwd").resolve() for pid in pids] == [Path(folder).resolve() for folder in folders]
    assert spare._manager is None
    for manager in taken:
        manager.shutdown_kernel(now=True)
    assert not any(map(is_running, pids))


@pytest.mark.parametrize("change", ["folder", "environment", "death"])
def test_a_spare_kernel_that_is_not_what_is_wanted_is_ended(spare, tmp_path, monkeypatch, change):
    spare.folders = [str(tmp_path)] * 2
    first = spare.take("python3", str(tmp_path))
    kept = spare._manager
    pid = kept.provisioner.pid
    if change == "environment":
        monkeypatch.setenv("WANTED", "yes")
    if change == "death":
        wait_for(kept.provisioner.process.is_ready)
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: kept.provisioner.process.poll() is not None)
    second = spare.take("python3", str(tmp_path.parent if change == "folder" else tmp_path))
    assert second.provisioner.pid != pid
    assert second.is_alive()
    assert wait_for(lambda: not is_running(pid))
    for manager in (first, second):
        manager.shutdown_kernel(now=True)
