"""The real grader, killed part by part in mid-class: the grades are those of a quiet run, and nothing is left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.grading import grader as grader_module
from attn_course.grading.class_grade import grade_class
from tests.grading import notebooks, sandbox_child, toy
from tests.grading.class_tools import order, without_times
from tests.processes import is_running

pytestmark = pytest.mark.usefixtures("without_pictures")
SEED = 11  # of the grader that all tests share


class Lent:
    """The grader that all tests share, as a class run makes its own: it is not closed at the end."""

    def __init__(self, grader):
        self.grade, self.probe = grader.grade, grader.probe

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def graded(grader):
    """Grades a class with the shared grader."""

    def run(submissions, out, *, on_result=lambda result: None, **changes):
        lent = Lent(grader)
        common = {"grader": lambda seed, allow_unsafe: lent, "seed": SEED}
        return grade_class(order(submissions, out, **common | changes), on_result=on_result)

    return run


def hand_in(folder: Path, students: int) -> Path:
    wrong = {"twice": "twice = lambda x: -2 * x", "thrice": "1 / 0"}
    for number in range(students):
        (folder / f"s{number}").mkdir(parents=True)
        toy.write(folder / f"s{number}" / "ex_97_toy.ipynb", toy.cells(toy.RIGHT | dict(list(wrong.items())[: number % 3])))
    return folder


def descendants(pid: int) -> list[int]:
    """Processes below one, the last forked last."""
    with contextlib.suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [each for child in children for each in (child, *descendants(child))]
    return []


@pytest.mark.usefixtures("toy_chapter")
def test_zygote_and_worker_are_killed_in_mid_class_and_the_grades_are_the_same(grader, graded, tmp_path, monkeypatch):
    hand_in(tmp_path / "in", 6)
    graded(tmp_path / "in", tmp_path / "quiet")

    original, begun, killed = grader_module._Sitting._run, [], []

    def kill_some(sitting, positions):
        if 2 in positions:
            begun.append(sitting)
            process = grader._workers._process.pid
            if len(begun) in (2, 5):  # the second notebook's zygote; the fourth notebook's worker, for the second is sat twice
                killed.append(process if len(begun) == 2 else descendants(process)[-1])
                os.kill(killed[-1], signal.SIGKILL)
        original(sitting, positions)

    seen = []

    def interrupt(result):
        seen.append(result)
        if len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(grader_module._Sitting, "_run", kill_some)
    with pytest.raises(KeyboardInterrupt):
        graded(tmp_path / "in", tmp_path / "out", on_result=interrupt)
    assert len(killed) == 2
    assert len(begun) >= 7, "two notebooks were sat twice"
    graded(tmp_path / "in", tmp_path / "out", resume=True)
    files = without_times(tmp_path / "out")
    assert files == without_times(tmp_path / "quiet")
    assert [len(json.loads(files["report.json"])["students"]), files["grades.csv"].count(b"passed")] == [6, 12]


def test_the_grader_is_killed_in_mid_class_and_leaves_no_process_or_folder(graded, root, tmp_path):
    solved = notebooks.load(root, "solutions", "softmax")
    for number in range(3):
        (tmp_path / "in" / f"s{number}").mkdir(parents=True)
        slow = notebooks.with_cells(solved, after={"setup": "import time\ntime.sleep(3)"} if number == 1 else None)
        notebooks.save(slow, tmp_path / "in" / f"s{number}" / "02_softmax.ipynb")
    (tmp_path / "temporary").mkdir()
    script = (
        "import sys; from pathlib import Path\n"
        "from attn_course.grading.grader import Grader; from tests.grading.class_tools import Pool, grade\n"
        f"if __name__ == '__main__': grade(Path(sys.argv[1]), Path(sys.argv[2]), engine=Pool(1), grader=Grader, seed={SEED})\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(tmp_path / "temporary")}
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "in"), str(tmp_path / "out")]
    process = subprocess.Popen(words, cwd=root, env=environment, start_new_session=True)
    results = tmp_path / "out" / "results"
    deadline = time.monotonic() + 120
    while not (results.is_dir() and list(results.glob("*.json"))):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    left = descendants(process.pid)
    process.kill()
    process.wait()
    assert len(left) >= 3, "a process of the pool, a zygote, a worker"
    while list((tmp_path / "temporary").glob("attn-*")) or any(is_running(pid) for pid in left):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not (tmp_path / "out" / "grades.csv").exists()
    for out, resume in (("out", True), ("quiet", False)):
        graded(tmp_path / "in", tmp_path / out, resume=resume)
    assert without_times(tmp_path / "out") == without_times(tmp_path / "quiet")


@pytest.mark.parametrize("user", sandbox_child.USERS)
def test_the_command_grades_as_any_user_and_says_what_confines(root, user):
    with sandbox_child.a_stage() as stage:
        (stage.own / "in" / "ann").mkdir(parents=True)
        notebooks.save(notebooks.load(root, "solutions", "softmax"), stage.own / "in" / "ann" / "02_softmax.ipynb")
        words = ["attn-course", "grade", str(stage.own / "in"), "--out", str(stage.own / "out"), "--jobs", "1", "--seed", "7"]
        code = (
            f"import os, sys, tempfile\nsys.path.insert(0, {str(root)!r})\nos.environ['HOME'] = tempfile.gettempdir()\n"
            "from attn_course.grading import class_report\nclass_report._figures = lambda *_: []\n"
            f"if __name__ == '__main__':\n sys.argv = {words!r}\n from attn_course.cli import main\n main()"
        )
        done = sandbox_child.python(code, user=user, packages=True)
        assert done.returncode == 0, done.stderr
        report = json.loads((stage.own / "out" / "report.json").read_text())
        assert report["sandbox"].startswith("sandbox: ")
        assert report["sandbox"] in " ".join(done.stderr.split())
        assert report["sandbox_levels"] == {report["sandbox"].removeprefix("sandbox: ").partition(" (")[0]: 1}
        assert report["students"][0]["points"] == report["students"][0]["max_points"] == 20
