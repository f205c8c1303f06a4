"""Processes that die: of the pool, of a dask cluster, the grader itself. No notebook is lost, and none pays for another."""

import contextlib
import gc
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from attn_course.classroom.engines import Cluster, Pool
from attn_course.classroom.process import ClassError, NoGrader, Setup, course_fingerprint
from attn_course.classroom.run import ClassRun, given_up
from tests.classroom.class_tools import SOFTMAX_POINTS, Threads
from tests.classroom.stand_in import StandIn, Unsafe


class ThreeThreads(Threads):
    width = 3

    @contextlib.contextmanager
    def open(self):
        with ThreadPoolExecutor(3) as executor:
            yield executor


def test_a_notebook_that_ends_its_process_twice_is_given_up_and_no_other_is(room):
    room.with_students(6).hand_in("s00", words="slow 0.5 kill")
    room.hand_in("s01", right="1", words=f"slow 1 kill once {room}/flag ")  # under way when the first dies, it ends its own later
    done = room.grade(engine=Pool(2))
    assert [(each.student, each.status) for each in done.marked if each.status != "graded"] == [("s00", "not judged")]
    killed = done.marked[0]
    assert killed.verdicts[0].message.startswith("not judged: grading it ended the grading process twice")
    assert (killed.points, killed.max_points) == (0, SOFTMAX_POINTS)
    assert (room / "flag").exists()
    calm = {each.student: each.verdicts for each in room.with_students(6, "calm").grade("quiet", submissions="calm").marked}
    assert {each.student: each.verdicts for each in done.marked} == calm | {"s00": killed.verdicts}


def test_a_student_holds_one_process_at_a_time_and_none_for_longer_than_a_students_time(room, monkeypatch):
    room.with_students(2)
    for number in range(1, 6):
        room.hand_in("eve", f"02_softmax ({number}).ipynb")
    under_way, most, left_s = Counter(), Counter(), []

    def ten_seconds(setup, hand_in, within_s):
        under_way[hand_in.student] += 1
        most[hand_in.student] = max(most[hand_in.student], under_way[hand_in.student])
        left_s.extend([within_s] if hand_in.student == "eve" else [])
        time.sleep(0.02)  # for others to begin meanwhile
        under_way[hand_in.student] -= 1
        return replace(given_up(hand_in, ""), seconds=10.0)

    monkeypatch.setattr("attn_course.classroom.run.grade_here", ten_seconds)
    limits = ("copies=9", "student=25", "notebook=25")
    done = room.grade(engine=ThreeThreads(), limits=limits)
    assert most == {"s00": 1, "s01": 1, "eve": 1}
    assert left_s == [25.0, 15.0, 5.0]
    why = "02_softmax ({}).ipynb: the 25 s for all notebooks of a student were used up before it"
    assert [note for each in done.marked for note in each.notes if "used up" in note] == [why.format(4), why.format(5)]
    (room / "in" / "eve" / "02_softmax (1).ipynb").write_text("{}")
    room.grade(engine=ThreeThreads(), limits=limits, resume=True)
    assert left_s[3:] == [5.0], "what an earlier run took counts"


def test_a_fault_of_the_grader_is_said_and_gets_another_chance_from_resume(room):
    path = room.with_students(3).hand_in("s01", words="break")
    done = room.grade()
    assert [each.status for each in done.marked] == ["graded", "not judged", "graded"]
    assert done.marked[1].notes == ("02_softmax.ipynb: the grader itself failed (ZeroDivisionError: the stand-in broke)",)
    assert len(list((room / "out" / "results").iterdir())) == 2
    path.write_text(path.read_text().replace("break", "right stable-softmax "))
    assert [each.points for each in room.grade(resume=True).marked] == [0, 3, 4]


def test_a_grader_that_fails_on_everything_stops_the_run(room):
    with pytest.raises(ClassError, match="the last 10 notebooks have no verdict, so the fault is hardly theirs"):
        room.with_students(12, words="break").grade()


def test_without_a_sandbox_nothing_is_graded_unless_asked_for(small_room):
    with pytest.raises(NoGrader, match="no sandbox here; --allow-unsafe"):
        small_room.grade(grader=Unsafe)
    assert not (small_room / "out" / "run.json").exists()
    assert len(small_room.grade(grader=Unsafe, allow_unsafe=True).marked) == 4


def test_a_worker_with_another_course_does_not_grade():
    setup = Setup(7, False, StandIn, course="0" * 64)
    assert course_fingerprint() != setup.course
    with pytest.raises(NoGrader, match="another version of attn_course"), ClassRun(Threads(), setup) as run:
        run.probe()


def test_an_interrupt_keeps_what_is_graded(small_room):
    seen = []

    def interrupt(result):
        seen.append(result)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_room.grade(on_result=interrupt)
    assert len(list((small_room / "out" / "results").iterdir())) == 2
    small_room.grade(resume=True)
    assert small_room.is_as_if_undisturbed()


def test_a_dask_worker_is_killed_and_the_grades_are_those_of_a_quiet_run(room):
    distributed = pytest.importorskip("distributed")
    room.with_students(8, words="slow 0.1")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        results = []

        def kill_one(result):
            results.append(result)
            if len(results) == 2:
                os.kill(pids[0], signal.SIGKILL)

        room.grade(engine=Cluster(cluster.scheduler_address), on_result=kill_one)
    assert len(results) == len({result.place for result in results}) == 8
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert room.is_as_if_undisturbed()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_scheduler_that_is_not_there_is_one_clear_line(small_room, monkeypatch, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr("attn_course.classroom.engines.CONNECT_S", 0.2)
    with pytest.raises(NoGrader, match=f"no dask scheduler answers at {address}"):
        small_room.grade(engine=Cluster(address))
    gc.collect()  # what was left of a client would complain now
