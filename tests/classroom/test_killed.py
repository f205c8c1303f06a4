"""The real grader, killed part by part in mid-class: the grades are those of a quiet run, and nothing is left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from attn_course.classroom import grader as grader_module
from tests.classroom import notebooks, toy
from tests.classroom.class_tools import wait_until, without_times
from tests.processes import is_running

SEED = 11  # of the grader that all tests share


@pytest.fixture
def lent(grader):
    """How a class run makes the grader that all tests share, which it does not close."""
    found = SimpleNamespace(grade=grader.grade, probe=grader.probe, __enter__=lambda: None, __exit__=lambda *_: None)
    return {"grader": lambda **options: found, "seed": SEED}


def descendants(pid: int) -> list[int]:
    """Processes below one, the last forked last."""
    with contextlib.suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [each for child in children for each in (child, *descendants(child))]
    return []


@pytest.mark.usefixtures("toy_chapter")
def test_fork_server_and_worker_are_killed_in_mid_class_and_the_grades_are_the_same(grader, lent, room, monkeypatch):
    wrong = [("twice", "twice = lambda x: -2 * x"), ("thrice", "1 / 0")]
    for number in range(6):
        (room / "in" / f"s{number}").mkdir(parents=True)
        toy.write(room / "in" / f"s{number}" / "ex_97_toy.ipynb", toy.cells(toy.RIGHT | dict(wrong[: number % 3])))
    room.grade("quiet", **lent)

    original, begun, killed = grader_module._Sitting._run, [], []

    def kill_some(sitting, positions):
        if 2 in positions:
            begun.append(sitting)
            process = grader._workers._process.pid
            if len(begun) in (2, 5):  # the second notebook's fork server; the fourth notebook's worker, for the second is sat twice
                killed.append(process if len(begun) == 2 else sitting.worker._pid)
                os.kill(killed[-1], signal.SIGKILL)
        original(sitting, positions)

    seen = []

    def interrupt(result):
        seen.append(result)
        if len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(grader_module._Sitting, "_run", kill_some)
    with pytest.raises(KeyboardInterrupt):
        room.grade(on_result=interrupt, **lent)
    assert len(killed) == 2
    assert len(begun) >= 7, "two notebooks were sat twice"
    room.grade(resume=True, **lent)
    files = without_times(room / "out")
    assert files == without_times(room / "quiet")
    assert [len(json.loads(files["report.json"])["students"]), files["grades.csv"].count(b"passed")] == [6, 12]


def test_the_grader_is_killed_in_mid_class_and_leaves_no_process_or_folder(lent, root, room):
    solved = notebooks.load(root, "solutions", "softmax")
    for number in range(3):
        slow = notebooks.with_cells(solved, after={"setup": "import time\ntime.sleep(3)"} if number == 1 else None)
        notebooks.save(slow, room.hand_in(f"s{number}"))
    (room / "temporary").mkdir()
    script = (
        "import sys; from pathlib import Path; from attn_course.classroom.engines import Pool\n"
        "from attn_course.classroom.fork_server import begin; from attn_course.classroom.grader import Grader\n"
        "from tests.classroom.class_tools import Room\n"
        f"if __name__ == '__main__': Room(Path(sys.argv[1])).grade(engine=Pool(1, begin), grader=Grader, seed={SEED})\n"
    )
    (room / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(room / "temporary")}
    process = subprocess.Popen([sys.executable, str(room / "script.py"), str(room)], cwd=root, env=environment, start_new_session=True)
    wait_until(lambda: process.poll() is not None or list((room / "out" / "results").glob("*.json")))
    left = descendants(process.pid)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert len(left) >= 3, "a process of the pool, a fork server, a worker"
    wait_until(lambda: not list((room / "temporary").glob("attn-*")) and not any(is_running(pid) for pid in left))
    assert not (room / "out" / "grades.csv").exists()
    room.grade(resume=True, **lent)
    room.grade("quiet", **lent)
    assert without_times(room / "out") == without_times(room / "quiet")
