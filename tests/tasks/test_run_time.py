"""An answer that never ends is stopped, and the clock leaves nothing behind."""

import contextlib
import gc
import signal
import sys
import threading
import time

import numpy as np
import pytest
import sympy

from attn_course.tasks import assess, run
from attn_course.tasks.run import Call
from attn_course.tasks.time_limit import TimeIsUp, time_limit
from tests.tasks.runs import S_I, S_J, WRITTEN, X, run_function
from tests.tasks.toys import WRITE


def endless(x):
    while True:
        pass


def endless_on_two(x, axis):
    while True:
        pass


def endless_with_except(x):
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def endless_sleep(x):
    time.sleep(3600)


def swallows_once(x):
    try:
        while True:
            pass
    except:  # noqa: E722
        pass
    while True:
        pass


ENDLESS_ANYWHERE = [endless, endless_with_except, swallows_once]
TOLD = "my_f did not return within 0.2 s"


@pytest.mark.parametrize("function", [*ENDLESS_ANYWHERE, endless_sleep])
def test_an_endless_answer_is_stopped(function):
    start = time.monotonic()
    assert run_function(function, time_limit_s=0.2).problem == TOLD
    assert time.monotonic() - start < 3.0


def test_the_question_about_an_endless_answer_ends_the_sentence():
    message = assess(WRITE, endless_on_two, time_limit_s=0.2).message
    case = WRITE.cases(np.random.default_rng(0))[0].name
    assert message == f"{WRITE.entry} did not return within 0.2 s in the case “{case}”: is there a loop that never ends?"


@pytest.mark.parametrize("function", ENDLESS_ANYWHERE)
def test_an_endless_answer_is_stopped_in_a_thread_that_is_not_the_main_one(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(run_function(function, time_limit_s=0.2)), daemon=True)
    thread.start()
    thread.join(timeout=10.0)
    assert not thread.is_alive()
    assert results[0].problem == TOLD


def test_after_a_time_out_the_other_cases_are_not_waited_for():
    calls = []

    def function(x):
        calls.append(len(calls))
        return endless(x)

    results = run(function, [{"x": X}] * 50, WRITTEN, time_limit_s=0.2)
    assert [result.problem for result in results] == [TOLD] * 50
    assert calls == [0]


def test_the_limit_is_for_one_case_not_for_all():
    def function(x):
        time.sleep(0.1)
        return x

    assert all(result.arrays for result in run(function, [{"x": X}] * 4, WRITTEN, time_limit_s=0.3))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no SIGALRM")
def test_the_alarm_of_others_is_given_back():
    def others(*_):
        raise AssertionError("no alarm was set")

    before = signal.signal(signal.SIGALRM, others)
    try:
        for function in (lambda x: x, endless, lambda x: x.fill(0.0)):
            run_function(function, time_limit_s=0.05, x=X.copy())
            assert signal.getsignal(signal.SIGALRM) is others
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        time.sleep(0.6)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_no_late_alarm_strikes_a_thread_whose_answer_has_returned():
    outcome = []

    def work():
        with contextlib.suppress(Exception):
            for _ in range(40):  # answers that end just when the alarm is due
                run_function(lambda x: time.sleep(0.01) or x, time_limit_s=0.01)
            for _ in range(20):
                time.sleep(0.002)
            outcome.append("unharmed")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=30.0)
    assert outcome == ["unharmed"]


def test_no_late_alarm_strikes_the_main_thread():
    for _ in range(100):
        result = run_function(lambda x: time.sleep(0.002) or x, time_limit_s=0.002)
        assert (result.arrays is None) == result.timed_out
    time.sleep(0.02)


def test_an_expression_that_takes_too_long_is_stopped():
    huge = sympy.Pow(S_I, sympy.Pow(10, 9, evaluate=False), evaluate=False)
    for _ in range(3):
        huge = sympy.Add(*[sympy.Mul(huge + n, S_J, evaluate=False) for n in range(25)], evaluate=False)
    inputs = [{"s_i": np.array([0.5]), "s_j": np.array([0.5])}]
    (result,) = run(huge, inputs, Call("my_e", "derive", ("s_i", "s_j")), time_limit_s=0.05)
    assert result.problem == "my_e could not be evaluated within 0.05 s"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="only signals can count work")
def test_a_limit_of_work_does_not_count_waiting():
    with time_limit(0.05, of_work=True):
        time.sleep(0.2)
    with pytest.raises(TimeIsUp), time_limit(0.05, of_work=True):
        endless(0)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_the_heap_is_not_searched_for_garbage_within_a_limit_of_work():
    was = gc.get_threshold()
    searches = []
    gc.callbacks.append(lambda phase, _: searches.append(phase))
    try:
        gc.set_threshold(1, 1, 1)
        with time_limit(5.0, of_work=True):
            searches.clear()
            kept = [[] for _ in range(100)]
            assert not searches
        kept += [[] for _ in range(100)]
    finally:
        gc.set_threshold(*was)
        del gc.callbacks[-1]
    assert searches


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="the clock is a thread there")
def test_the_clock_of_a_case_does_not_run_while_a_library_is_imported(tmp_path, monkeypatch):
    source = "import signal\n\nclock = signal.getitimer(signal.ITIMER_REAL)\n"
    (tmp_path / "slow_to_import.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    clocks = []

    def answer(x, scale):
        import slow_to_import

        clocks.append(slow_to_import.clock)
        return x

    assess(WRITE, answer)
    assert clocks[0] == (0.0, 0.0)
    monkeypatch.delitem(sys.modules, "slow_to_import")
