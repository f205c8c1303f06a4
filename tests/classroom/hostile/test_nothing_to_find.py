"""The right answers are not where the learner's code runs: not importable, not readable, not in memory."""

import contextlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from attn_course.tasks import all_tasks, judge, lessons, registry
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.judge import expected
from attn_course.tasks.run import Result, quiet
from tests.classroom import toy
from tests.classroom.hostile.support import assert_neighbour_unharmed, grade
from tests.classroom.sandbox_child import need_files_and_network_shut

SAME_FOR_ALL_NUMBERS = {"leak-test": "where a layer leaks does not depend on the numbers in the text"}
real_lessons, _tasks = registry.lessons, registry.declared_tasks  # as they are before the toy chapter stands in for them
READS = {
    "the solutions": "open({root!r} + '/solutions/02_softmax.ipynb')",
    "a task": "open({root!r} + '/attn_course/lessons/softmax/tasks.py')",
    "results": "__import__('os').listdir({root!r} + '/attn_course/lessons/flash/results')",
    "the reference": "open({root!r} + '/attn_course/reference/__init__.py')",
    "the exercise it is compared with": "open({root!r} + '/exercises/ex_02_softmax.ipynb')",
    "by a walk": "1 / len([f for d in __import__('os').walk({root!r}) for f in d[2]])",
    "the password file": "open('/etc/passwd')",
    "the home": "__import__('os').listdir('/root')",
    "the grader's environment": "open(f'/proc/{{__import__(\"os\").getppid()}}/environ')",
    "the grader's memory": "open(f'/proc/{{__import__(\"os\").getppid()}}/mem', 'rb')",
    "its own memory": "open('/proc/self/mem', 'rb')",
    "what others left": "1 / len(__import__('os').listdir('/tmp'))",
    "a link": "__import__('os').symlink({root!r}, 'here'); __import__('os').listdir('here/solutions')",
    "a hard link": "__import__('os').link({root!r} + '/README.md', 'there'); open('there')",
    "the memory of the process before": "c = __import__('ctypes').CDLL(None); assert c.ptrace(16, 1, 0, 0) == 0, 'Error'",
}
WRITES = {
    "into the course": "open({root!r} + '/grades.csv', 'w')",
    "into /tmp": "open('/tmp/mine', 'w')",
    "into the libraries": "open(__import__('numpy').__file__, 'a')",
    "a file away": "__import__('os').remove({root!r} + '/README.md')",
    "a new mode": "__import__('os').chmod({root!r} + '/README.md', 0)",
}
REACHES = {
    "a socket": "__import__('socket').create_connection(('127.0.0.1', 22), 1)",
    "a name": "__import__('socket').getaddrinfo('localhost', 80)",
    "a program": "__import__('subprocess').run(['id'])",
    "a pool": "__import__('multiprocessing').Process(target=print).start()",
    "a terminal": "__import__('pty').fork()",
    "the grader": "__import__('os').kill(__import__('os').getppid(), 9)",
    "everybody": "__import__('os').kill(-1, 9)",
    "its group": "__import__('os').killpg(0, 9)",
}
TRIED = {**READS, **WRITES, **REACHES}


def test_what_is_looked_for_is_there_when_nothing_confines(root):
    places = [place for line in READS.values() for place in re.findall(r"{root!r} \+ '([^']+)'", line)]
    assert len(places) == 6
    assert not [place for place in places if not (root / place[1:]).exists()]


def test_a_container_takes_the_namespaces_away(contained):
    need_files_and_network_shut(contained.probe)
    assert contained.probe.level != "full", "or the tests below would show nothing about containers"


@pytest.fixture(scope="module", params=["strict", "contained"])
def said(request, root, tmp_path_factory):
    """What is said of each line, all of them in one notebook, a cell for each; and that notebook and the next get what they deserve."""
    grader = request.getfixturevalue(request.param)
    need_files_and_network_shut(grader.probe)
    own = {what: toy.cell(line.format(root=str(root)), "own") for what, line in TRIED.items()}
    folder = tmp_path_factory.mktemp("tried")
    with pytest.MonkeyPatch.context() as patch:
        toy.install(patch.setattr)
        path = toy.write(folder / "97_hostile.ipynb", [*own.values(), *toy.cells(toy.RIGHT)])
        graded = grader.grade(path, student="mallory")
        assert [verdict.points for verdict in graded.verdicts] == [2, 3, 4], graded
        assert_neighbour_unharmed(grader, folder)
    notes = dict(note.removeprefix("code cell ").split(": ", 1) for note in graded.notes)
    return {what: notes.get(str(number), "") for number, what in enumerate(own, 1)}


@pytest.mark.parametrize("what", TRIED)
def test_a_worker_reaches_nothing_outside(said, what):
    assert "rror" in said[what] or what in ("the grader", "everybody", "its group"), "only a signal may go nowhere without an error"


def test_no_module_of_the_course_is_left_to_a_worker(strict, toy_chapter, tmp_path):
    source = (
        "import sys, pkgutil\nraise RuntimeError([n for n in [*sys.modules, *(m.name for m in pkgutil.iter_modules())] if 'attn' in n])"
    )
    verdict = grade(strict, tmp_path / "97_hostile.ipynb", {"thrice": source}).verdicts[1]
    assert verdict.message == "the answer cell does not run: RuntimeError: []"


def _memory(pid):
    """What a process may change of its memory, piece by piece; its libraries' constants are in files."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in maps:
            span, mode = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if mode.startswith("rw") and end - start < 2**28:
                with contextlib.suppress(OSError):  # not backed by anything
                    memory.seek(start)
                    yield memory.read(end - start)


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is looked at through /proc")
def test_no_text_of_an_answer_is_in_the_memory_that_workers_are_forked_from(strict, toy_chapter, tmp_path):
    strict.grade(toy.write(tmp_path / "97_x.ipynb", toy.cells(toy.RIGHT)), student="ada")
    first = strict._workers._process.pid
    pids = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]  # one waits, the other forks
    hints = [[wrong.hint.encode() for task in _tasks(chapter) for wrong in task.wrong] for chapter in real_lessons()]
    secrets = [max(texts, key=len) for texts in hints]  # of each chapter one, which stands in no other file
    assert all(len(text) > 60 for text in secrets)
    pieces = [piece for pid in pids for piece in _memory(pid)]
    assert any(b"did not finish within" in piece for piece in pieces), "the engine's own words are found, so an answer's would be"
    assert not [text for text in secrets if any(text in piece for piece in pieces)]


def _shapes(case):
    """What the shapes of a case's arrays are, also of those in a list."""
    arrays = [value for value in case.inputs.values() if not isinstance(value, dict)]
    return [[np.shape(part) for part in value] if isinstance(value, (list, tuple)) else np.shape(value) for value in arrays]


def _hard_coded(task, mode):
    """Results for the secret cases, by one who knows those of the notebook's check by heart."""
    public, secret = (task.cases(np.random.default_rng(seed)) for seed in (CHECK_SEED, 1))
    known = [result.arrays for result in expected(task, task.answer, public)]
    if mode == "by position":
        return secret, [Result(known[min(n, len(known) - 1)]) for n in range(len(secret))]
    shapes = [_shapes(case) for case in public]
    return secret, [Result(known[shapes.index(_shapes(case)) if _shapes(case) in shapes else 0]) for case in secret]


@pytest.mark.parametrize("mode", ["by position", "by shape"])
@pytest.mark.parametrize("chapter", lessons())
def test_the_numbers_of_the_notebooks_check_do_not_pass(chapter, mode):
    for task in all_tasks(chapter):
        if task.wants_function and task.id not in SAME_FOR_ALL_NUMBERS:
            with quiet():
                secret, results = _hard_coded(task, mode)
                assert not judge(task, secret, results).passed, task.id
