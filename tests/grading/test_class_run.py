"""Processes that die: of the pool, of a dask cluster, the grader itself. No notebook is lost, and none pays for another."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.grading.class_engines import Cluster, Pool
from attn_course.grading.class_run import ClassRun
from attn_course.grading.class_worker import ClassError, NoGrader, Setup, course_fingerprint
from tests.grading.class_tools import StandIn, Threads, grade, notebook, order, small_class, without_times
from tests.grading.stand_in import Unsafe

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_a_notebook_that_ends_its_process_twice_is_given_up_and_no_other_is(tmp_path):
    small_class(tmp_path / "in", 6)
    notebook(tmp_path / "in" / "s02" / "02_softmax.ipynb", words="kill")
    notebook(tmp_path / "in" / "s04" / "02_softmax.ipynb", right="1 2 3 4", words=f"kill once {tmp_path}/flag ")
    done = grade(tmp_path / "in", tmp_path / "out", engine=Pool(2))
    assert [(each.student, each.status) for each in done.marked if each.status != "graded"] == [("s02", "not judged")]
    killed = next(each for each in done.marked if each.student == "s02")
    assert killed.verdicts[0].message.startswith("not judged: grading it ended the grading process twice")
    assert killed.points == 0
    assert killed.max_points == 20
    assert (tmp_path / "flag").exists()

    small_class(tmp_path / "calm", 6)
    calm = {each.student: each.verdicts for each in grade(tmp_path / "calm", tmp_path / "quiet").marked}
    assert {each.student: each.verdicts for each in done.marked if each.student != "s02"} == {s: v for s, v in calm.items() if s != "s02"}


def test_a_fault_of_the_grader_is_said_and_gets_another_chance_from_resume(tmp_path):
    small_class(tmp_path / "in", 3)
    path = notebook(tmp_path / "in" / "s01" / "02_softmax.ipynb", words="break")
    done = grade(tmp_path / "in", tmp_path / "out")
    assert [each.status for each in done.marked] == ["graded", "not judged", "graded"]
    assert done.marked[1].notes == ("02_softmax.ipynb: the grader itself failed (ZeroDivisionError: the stand-in broke)",)
    assert len(list((tmp_path / "out" / "results").iterdir())) == 2
    path.write_text(path.read_text().replace("break", "right stable-softmax "))
    assert [each.points for each in grade(tmp_path / "in", tmp_path / "out", resume=True).marked] == [0, 3, 4]


def test_a_grader_that_fails_on_everything_stops_the_run(tmp_path):
    for number in range(12):
        notebook(tmp_path / "in" / f"s{number:02d}" / "02_softmax.ipynb", words="break")
    with pytest.raises(ClassError, match="the last 10 notebooks have no verdict, so the fault is hardly theirs"):
        grade(tmp_path / "in", tmp_path / "out")


def test_without_a_sandbox_nothing_is_graded_unless_asked_for(tmp_path):
    small_class(tmp_path / "in")
    with pytest.raises(NoGrader, match="no sandbox here; --allow-unsafe"):
        grade(tmp_path / "in", tmp_path / "out", grader=Unsafe)
    assert not (tmp_path / "out" / "run.json").exists()
    assert len(grade(tmp_path / "in", tmp_path / "out", grader=Unsafe, allow_unsafe=True).marked) == 4


def test_a_worker_with_another_course_does_not_grade():
    setup = Setup(7, False, StandIn, course="0" * 64)
    assert course_fingerprint() != setup.course
    with pytest.raises(NoGrader, match="another version of attn_course"), ClassRun(Threads(), setup) as run:
        run.probe()


def test_the_grader_is_killed_and_resume_gives_the_same_files(tmp_path):
    small_class(tmp_path / "in", 8)
    for number in range(8):
        path = tmp_path / "in" / f"s{number:02d}" / "02_softmax.ipynb"
        path.write_text(path.read_text().replace('\\n"', ' slow 0.1\\n"'))
    script = (
        "import sys; from pathlib import Path; from tests.grading.class_tools import Pool, grade\n"
        "if __name__ == '__main__': grade(Path(sys.argv[1]), Path(sys.argv[2]), engine=Pool(2))\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "in"), str(tmp_path / "out")]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, start_new_session=True)
    results = tmp_path / "out" / "results"
    deadline = time.monotonic() + 60
    while not (results.is_dir() and len(list(results.glob("*.json"))) >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(list(results.glob("*.json")))
    assert 2 <= kept < 8
    assert not (tmp_path / "out" / "grades.csv").exists()
    grade(tmp_path / "in", tmp_path / "out", resume=True)
    grade(tmp_path / "in", tmp_path / "undisturbed")
    assert without_times(tmp_path / "out") == without_times(tmp_path / "undisturbed")
    while _members(process.pid):  # the pool's processes end with the grader
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _members(session):
    """Processes of a session that are still there."""
    listed = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True).stdout.splitlines()
    return [line for line in listed if "Z" not in line.split()[1]]


def test_an_interrupt_keeps_what_is_graded(tmp_path):
    small_class(tmp_path / "in", 4)
    seen = []

    def interrupt(result):
        seen.append(result)
        if len(seen) == 2:
            raise KeyboardInterrupt

    from attn_course.grading.class_grade import grade_class

    with pytest.raises(KeyboardInterrupt):
        grade_class(order(tmp_path / "in", tmp_path / "out"), on_result=interrupt)
    assert len(list((tmp_path / "out" / "results").iterdir())) == 2
    grade(tmp_path / "in", tmp_path / "out", resume=True)
    grade(tmp_path / "in", tmp_path / "undisturbed")
    assert without_times(tmp_path / "out") == without_times(tmp_path / "undisturbed")


def test_a_dask_worker_is_killed_and_the_grades_are_those_of_a_quiet_run(tmp_path):
    distributed = pytest.importorskip("distributed")
    small_class(tmp_path / "in", 8)
    for number in range(8):
        path = tmp_path / "in" / f"s{number:02d}" / "02_softmax.ipynb"
        path.write_text(path.read_text().replace('\\n"', ' slow 0.1\\n"'))
    from attn_course.grading.class_grade import grade_class

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        results = []

        def kill_one(result):
            results.append(result)
            if len(results) == 2:
                os.kill(pids[0], signal.SIGKILL)

        engine = Cluster(cluster.scheduler_address)
        grade_class(order(tmp_path / "in", tmp_path / "out", engine=engine), on_result=kill_one)
    assert len(results) == 8
    assert len({result.place for result in results}) == 8
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    grade(tmp_path / "in", tmp_path / "undisturbed")
    assert without_times(tmp_path / "out") == without_times(tmp_path / "undisturbed")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_scheduler_that_is_not_there_is_one_clear_line(tmp_path, monkeypatch, address):
    pytest.importorskip("distributed")
    small_class(tmp_path / "in", 1)
    monkeypatch.setattr("attn_course.grading.class_engines.CONNECT_S", 0.2)
    with pytest.raises(NoGrader, match=f"no dask scheduler answers at {address}"):
        grade(tmp_path / "in", tmp_path / "out", engine=Cluster(address))
    gc.collect()  # what was left of a client would complain now
