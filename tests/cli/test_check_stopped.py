"""`attn-course check` that is stopped while cells run, or before: no process and no file is left."""

import os
import signal
import subprocess
import sys

import pytest

from tests.classroom import toy
from tests.processes import is_running, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")

COMMAND = """
import os, sys
os.cpu_count = lambda: 2
from tests.classroom import toy
toy.install()
from attn_course.cli import main
sys.exit(main(["check"]))
"""
BEGUN = """
import os, subprocess, time
from pathlib import Path
child = subprocess.Popen(["sleep", "600"])
Path(f"begun-{os.getpid()}").write_text(f"{child.pid} {os.getpid()} {os.getppid()} .")
while True: time.sleep(0.1)
"""
STARTING = """
import os, time
from pathlib import Path
parent = os.getppid()
Path(f"begun-{os.getpid()}").write_text(f"{os.getpid()} {parent} .")
while os.getppid() == parent: time.sleep(0.05)  # as a kernel does
"""
PATIENCE_S = 120.0  # all of this takes 5 s on an idle machine


@pytest.fixture
def checking(toy_course, root, tmp_path_factory):
    """Starts the command on three notebooks, two at a time; returns it and the folder where its temporary files lie."""
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    started = []

    def start(first_cell):
        for copy in "abc":
            toy.write(toy_course / "work" / f"{copy}.ipynb", [toy.cell(first_cell, "first"), *toy.cells({})])
        words = [sys.executable, "-c", COMMAND]
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        return started[0], temporary

    yield start
    started[0].kill()
    started[0].communicate()


@pytest.mark.parametrize(
    ("number", "is_starting"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGKILL, True)]
)
def test_a_check_that_is_stopped_leaves_nothing_behind_and_begins_no_other_notebook(checking, toy_course, number, is_starting):
    """When two notebooks have begun, or their kernels have begun to start."""
    if is_starting:
        (toy_course / "work" / "ipykernel_launcher.py").write_text(STARTING)
    process, temporary = checking("1 / 0" if is_starting else BEGUN)

    def begun():
        return [path for path in (toy_course / "work").glob("begun-*") if path.read_text().endswith(".")]

    assert wait_for(lambda: len(begun()) == 2, PATIENCE_S)
    assert len(list(temporary.iterdir())) == 2
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    if number != signal.SIGKILL:
        assert (process.returncode, said) == (130, "attn-course: interrupted\n")
        assert not list(temporary.iterdir())
    assert wait_for(lambda: not list(temporary.iterdir()), PATIENCE_S)
    assert wait_for(lambda: not any(is_running(int(pid)) for path in begun() for pid in path.read_text().split()[:-1]), PATIENCE_S)
    assert len(begun()) == 2
