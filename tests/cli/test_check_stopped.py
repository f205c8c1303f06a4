"""`attn-course check` that is stopped while a cell runs, or before: no process and no file is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading import toy
from tests.processes import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")

COMMAND = (
    "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # nohup may stand before the tests
    "from tests.grading import toy; toy.install(); from attn_course.cli import main; sys.exit(main(['check']))"
)
BEGUN = "import os\nfrom pathlib import Path\nPath('begun').write_text(f'{os.getpid()} {os.getppid()} .')\nwhile True: pass"


@pytest.fixture
def checking(toy_course, root, request, tmp_path_factory):
    """The command on a notebook whose first cell never ends, and the folder where its temporary files lie."""
    temporary = tmp_path_factory.mktemp("temporary")
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", [toy.cell(BEGUN, "begun"), *toy.cells({})])
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(root), "ATTN_COURSE_WARM_KERNELS": request.param}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    yield process, temporary
    process.kill()
    process.communicate()


@pytest.mark.parametrize("checking", ["off"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_check_that_is_stopped_leaves_nothing_behind(checking, toy_course, number):
    process, temporary = checking
    begun = toy_course / "work" / "begun"
    assert wait_for(lambda: begun.exists() and begun.read_text().endswith("."))
    assert list(temporary.iterdir())
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    if number != signal.SIGKILL:
        assert (process.returncode, said) == (130, "attn-course: interrupted\n")
        assert not list(temporary.iterdir())
    kernel, nbval, _ = begun.read_text().split()
    assert wait_for(lambda: not any(Path("/proc", pid).exists() for pid in (kernel, nbval)), 10)
    assert wait_for(lambda: not list(temporary.iterdir()), 10)


@pytest.mark.parametrize("checking", [""], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_check_that_is_stopped_while_libraries_are_imported_runs_no_cell(checking, toy_course, number):
    process, temporary = checking
    assert wait_for(lambda: list(temporary.glob("attn-course-check-*/cells.jsonl")))
    process.send_signal(number)
    process.communicate(timeout=4)
    if number == signal.SIGINT:
        assert not list(temporary.iterdir())
    assert wait_for(lambda: not list(temporary.iterdir()))
    assert not (toy_course / "work" / "begun").exists()
