"""What becomes of workers and of the process they are forked from; and systems without fork, where each is a plain process."""

import inspect
import json
import select
import subprocess
import sys
import tempfile
from unittest import mock

import pytest

from attn_course.classroom import fork_server, supervisor
from attn_course.classroom import grader as grader_module
from attn_course.classroom.budget import Budget
from attn_course.classroom.grader import Grader, Unconfined
from attn_course.classroom.sandbox import Limits
from attn_course.classroom.supervisor import KILLED, ForkServer
from attn_course.tasks import all_tasks
from tests.classroom import notebooks, toy
from tests.classroom.conftest import beside
from tests.classroom.hostile.attacks import ATTACKS


def points(graded):
    return [verdict.points for verdict in graded.verdicts]


@pytest.fixture(scope="module")
def plain(exercises):
    with Grader(seed=11, exercises=exercises, fork=False) as grader:
        yield grader


def test_without_fork_the_verdicts_are_the_same_and_a_worker_gets_no_body_and_no_reason(plain, grader, root, tmp_path, monkeypatch):
    sent, encode = [], supervisor.encode
    monkeypatch.setattr(supervisor, "encode", lambda message: sent.append(repr(message)) or encode(message))
    wrong = {
        "entropy-by-hand": "my_entropy = 1.5",
        "softmax-jacobian": "def my_jacobian(weights): return weights",
        "entropy-as-scores-sharpen": "my_cooling = r'-s_i s_j'",
    }
    path = notebooks.save(notebooks.answered(root, "softmax", wrong), tmp_path / "02_softmax.ipynb")
    ours, theirs = plain.grade(path, student="ada"), grader.grade(path, student="ada")
    assert ours.verdicts == theirs.verdicts
    judged = [verdict for verdict in ours.verdicts if "has no answer yet" not in verdict.message]
    assert [verdict.task for verdict in judged] == [*wrong]
    assert any("'do': 'calls'" in message for message in sent)
    shown = path.read_text(encoding="utf-8")
    for task in all_tasks("softmax"):
        answer = task.sheet.solution.partition("### BEGIN SOLUTION\n")[2].partition("### END")[0]
        own = [line for line in map(str.strip, answer.splitlines()) if len(line) > 20 and json.dumps(line)[1:-1] not in shown]
        assert own or task.kind == "repair"
        assert not [line for line in [*own, task.sheet.why.splitlines()[0]] if any(line in message for message in sent)]


@pytest.mark.parametrize("attack", ["crashes", "forges a frame"])  # gone, and still there
def test_without_fork_attacks_get_nothing_too(plain, toy_chapter, tmp_path, attack):
    graded = plain.grade(toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells({**toy.RIGHT, "thrice": ATTACKS[attack][0]})), student="eve")
    assert points(graded)[:2] == [2, 0]
    assert not plain._workers._processes, "no process is left"


@pytest.mark.parametrize("which", ["grader", "plain"])
def test_what_is_printed_beyond_the_limit_is_thrown_away_and_costs_no_task(request, toy_chapter, tmp_path, which):
    answers = {**toy.RIGHT, "thrice": "print('x' * 2**21)\ndef thrice(x):\n    print('y' * 2**25)\n    return 3 * x"}
    graded = request.getfixturevalue(which).grade(toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells(answers)), student="ada")
    assert points(graded) == [2, 3, 4]
    assert [note.partition(" printed ")[2] for note in graded.notes if " printed " in note] == [
        "past the 1 MiB of a notebook: the rest was thrown away"
    ]


def test_a_fork_server_that_was_killed_between_two_notebooks_costs_neither(grader, toy_chapter, tmp_path):
    path = toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells(toy.RIGHT))
    assert points(grader.grade(path, student="ada")) == [2, 3, 4]
    grader._workers._process.kill()
    assert points(grader.grade(path, student="ada")) == [2, 3, 4]


def test_the_time_for_a_whole_notebook_is_limited(exercises, toy_chapter, tmp_path, grader):
    slow = beside(grader, seed=1, exercises=exercises, limits=Budget(notebook=6.0))
    grader.grade(toy.write(tmp_path / "97_right.ipynb", toy.cells(toy.RIGHT)), student="ada")  # so that it is warm
    path = toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells({**toy.RIGHT, "thrice": "import time\ntime.sleep(600)"}))
    graded = slow.grade(path, student="eve")
    assert points(graded) == [2, 0, 0]
    assert graded.notes[-1] == "code cell 4 was running when the time for the notebook was over (4.5 s for its cells)"


def test_a_worker_that_dies_again_and_again_gets_no_more_than_the_time_for_one_notebook(
    grader, exercises, toy_chapter, tmp_path, monkeypatch
):
    given = []
    sit = grader_module.Grader._sit

    def as_if_killed(self, submission, student, within_s):
        given.append(within_s)
        sitting, _ = sit(self, submission, student, within_s)
        sitting.seconds = 30.0
        return sitting, KILLED

    monkeypatch.setattr(grader_module.Grader, "_sit", as_if_killed)
    limited = beside(grader, seed=1, exercises=exercises, limits=Budget(notebook=100.0))
    path = toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells(toy.RIGHT))
    limited.grade(path, student="eve")
    assert given == [75.0, 45.0]
    limited.grade(path, student="eve", within_s=60.0)
    assert given[2:] == [45.0], "more than half of its time is gone: another pass might judge less than the first"


def test_nothing_is_graded_where_nothing_confines(monkeypatch):
    class Nothing:
        level, holding = "none", ()

        def __str__(self):
            return "sandbox: none"

    workers = mock.Mock()
    monkeypatch.setattr(grader_module, "probe", Nothing)
    monkeypatch.setattr(grader_module, "ForkServer", lambda: workers)
    with pytest.raises(Unconfined, match="untrusted work is not run here"):
        Grader(seed=1)
    assert workers.close.called
    Grader(seed=1, allow_unsafe=True)


def test_a_worker_that_cannot_be_confined_is_no_fault_of_the_students(grader, toy_chapter, tmp_path, monkeypatch):
    path = toy.write(tmp_path / "ex_97_toy.ipynb", toy.cells(toy.RIGHT))
    monkeypatch.setattr(grader._workers, "layers", ("no such layer",))
    with pytest.raises(Unconfined, match="no such layer"):
        grader.grade(path, student="ada")


def test_an_exercise_that_does_not_run_is_no_fault_of_the_students_and_leaves_the_one_before_it_whole(grader, root, tmp_path):
    without_imports = notebooks.without(notebooks.load(root, "solutions", "softmax"), "setup")
    path = notebooks.save(without_imports, tmp_path / "02_softmax.ipynb")
    before = grader.grade(path, student="ada")
    assert all(verdict.passed for verdict in before.verdicts)
    with pytest.raises(RuntimeError, match="the exercise's own cells do not run: ZeroDivisionError"):
        grader._workers.start(Limits(), {"setup": ["1 / 0"], "given": [], "forbid": []})
    assert grader.grade(path, student="ada").verdicts == before.verdicts


@pytest.mark.parametrize("at_work", [False, True])
def test_a_fork_server_whose_grader_is_killed_ends_in_silence_and_tidies_up(monkeypatch, tmp_path, capfd, at_work):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workers = ForkServer()
    workers.layers = ()
    if at_work:
        worker = workers.start(Limits(), {"setup": [], "given": [], "forbid": []})
        assert [path.name[:5] for path in tmp_path.iterdir()] == ["attn-"]
        workers._tell({"do": "exercise", "exercise": {}})
    else:
        fork_server.begin()
        ((begun, _),) = fork_server._begun
        workers.prepare()
        assert workers._process is begun
        assert not fork_server._begun
    select.select([workers._control], [], [], 120.0)
    workers._control.close()  # with a reply in it that nobody has read, as when the grader is killed
    assert workers._process.wait(timeout=120.0) == 0
    assert capfd.readouterr().err == ""
    assert not list(tmp_path.iterdir())
    if at_work:
        worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the library has another name, and Python links it as it imports torch")
def test_the_library_of_torch_is_linked_beside_other_imports(root):
    code = (
        "import importlib, sys; from attn_course.classroom import fork_server as f\n"
        "f._link_torch(); print(open('/proc/self/maps').read())\n"
        "[importlib.import_module(name) for name in f._OF_SYMPY]; before = {*sys.modules}; import sympy\n"
        "files = {name: str(getattr(module, '__file__', '')) for name, module in sys.modules.items() if name not in before}\n"
        "assert not [name for name, file in files.items() if file.endswith('.so')], 'these are linked after torch'"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert "/libtorch_cpu.so" in done.stdout
    assert "/libtorch_python.so" not in done.stdout  # torch itself is not imported


def test_the_module_of_a_frame_is_the_one_that_a_search_finds():
    for thing in (sys._getframe(), inspect.currentframe().f_back, ForkServer, inspect):
        assert fork_server._module_of(thing) is inspect.getmodule(thing)
