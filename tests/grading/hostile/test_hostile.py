"""Hostile notebooks: nothing on the attacked task, with a named reason; and the notebook graded next is none the worse."""

import json

import pytest

from attn_course.grading.grader import LIMITS, Grader
from attn_course.grading.sandbox import Limits
from tests.grading import notebooks, toy

FORGED = """
import gc, json, os, socket, struct
lines = [o for o in gc.get_objects() if isinstance(o, socket.socket)]
header = json.dumps({"nonce": "0", "problem": None, "passed": True, "points": 1000}).encode()
for line in lines:
    line.sendall(struct.pack(">IQ", len(header), 0) + header)
"""
PATCHED = (  # by way of the frames above it, the answer puts something else in the place of `run`
    "import sys\ndef thrice(x):\n    f = sys._getframe()\n    while 'reply' not in f.f_locals and f.f_back:\n        f = f.f_back\n    f.f_globals['run'] = lambda *a, **k: [type('R', (), dict(arrays=None, problem=None, timed_out=False, advice='', listed='', after=None))]\n    return x"
)
ATTACKS = {
    "ends Python": ("import os\nos._exit(0)", "ended Python (exit status 0: does it call os._exit?)"),
    "leaves Python": ("import sys\nsys.exit(0)", "SystemExit"),
    "kills itself": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        ("ended Python", "does not define"),
    ),  # number 1 of its namespace cannot
    "crashes": ("import ctypes\nctypes.string_at(0)", "(SIGSEGV: a crash)"),
    "loops": ("while True: pass", "did not finish within 2 s: is there a loop that never ends?"),
    "loops and catches everything": ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "did not finish"),
    "sleeps": (
        "import time, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\ntime.sleep(1000)",
        "did not finish in time",
    ),
    "floods": ("import os\nwhile True: os.write(1, b'x' * 65536)", "printed more than 1 MiB"),
    "takes all memory": ("hoard = []\nwhile True: hoard.append(bytearray(2**26))", "MemoryError"),
    "forks": ("import os\nwhile True: os.fork()", "PermissionError"),
    "forges a frame": (FORGED, "sent the grader an answer to what was not asked"),
    "hangs up": ("import gc, socket\nfor o in gc.get_objects():\n    if isinstance(o, socket.socket): o.close()", "ended Python"),
    "shuts every descriptor": ("import os\nos.closerange(0, 100)", "ended Python"),
    "kills its parent": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "Error"),
    "reads a solution": ("open('/proc/self/mem')", "Error"),
}


@pytest.fixture(scope="module")
def strict(exercises):
    with Grader(
        seed=5, exercises=exercises, cell_s=2.0, call_s=2.0, limits=Limits(address_space_bytes=2**28, cpu_s=30.0, wall_s=LIMITS.wall_s)
    ) as grader:
        yield grader


def grade(grader, path, answers, **extra):
    toy.write(path, toy.cells(answers))
    return grader.grade(path, student="mallory", **extra)


def assert_neighbour_unharmed(grader, tmp_path):
    graded = grade(grader, tmp_path / "97_neighbour.ipynb", toy.RIGHT)
    assert [verdict.points for verdict in graded.verdicts] == [2, 3, 4], graded


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_an_answer_cell_gets_nothing_there_and_harms_no_neighbour(strict, toy_chapter, tmp_path, attack):
    source, reason = ATTACKS[attack]
    graded = grade(strict, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "97.2": source})
    first, attacked, _ = graded.verdicts
    assert first.passed, "a task judged before the attack keeps its points"
    assert attacked.points == 0
    assert any(words in attacked.message for words in ([reason] if isinstance(reason, str) else reason)), attacked.message
    assert_neighbour_unharmed(strict, tmp_path)


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name not in ("leaves Python",)])
def test_an_attack_inside_a_called_answer_gets_nothing_either(strict, toy_chapter, tmp_path, attack):
    source, _ = ATTACKS[attack]
    body = "\n".join(f"    {line}" for line in source.splitlines())
    graded = grade(strict, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "97.2": f"def thrice(x):\n{body}"})
    assert graded.verdicts[0].passed
    assert graded.verdicts[1].points == 0
    assert_neighbour_unharmed(strict, tmp_path)


LIES = {
    "patched comparison": "import numpy as np\nnp.allclose = np.isclose = np.array_equal = lambda *a, **k: True\ndef thrice(x): return x",
    "equal to everything": "class Same(type('b', (), {})):\n    def __eq__(self, o): return True\ndef thrice(x): return Same()",
    "an array that says it is equal": (
        "import numpy as np\nclass Same(np.ndarray):\n    def __eq__(self, o): return np.True_\n    def __sub__(self, o): return 0 * np.asarray(self)\n"
        "def thrice(x): return x.view(Same)"
    ),
    "a patched engine": PATCHED,
    "prints the ok line": "def thrice(x):\n    print('ok 97.2 thrice: 1 case, 3 points')\n    return x",
    "NaN": "def thrice(x): return x * float('nan')",
    "imports the answers": "from attn_course.tasks import get_task\nthrice = get_task('97.2').answer",
    "imports the answers behind the parser's back": "import importlib\nthrice = importlib.import_module('attn_course' + '.tasks').get_task('97.2').answer",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_gets_nothing(strict, toy_chapter, tmp_path, lie):
    graded = grade(strict, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "97.2": LIES[lie]})
    assert [verdict.points for verdict in graded.verdicts][:2] == [2, 0], graded
    assert_neighbour_unharmed(strict, tmp_path)


FORBIDDEN = {
    "direct": "import torch\ndef my_softmax(scores, axis): return torch.softmax(torch.as_tensor(scores), axis)",
    "aliased": "import torch.nn.functional as F\nsm = F.softmax\ndef my_softmax(scores, axis): return sm(__import__('torch').as_tensor(scores), axis)",
    "getattr": "import torch\ndef my_softmax(scores, axis): return getattr(torch, 'soft' + 'max')(torch.as_tensor(scores), axis)",
    "importlib": "import importlib\ndef my_softmax(scores, axis):\n    t = importlib.import_module('to' + 'rch')\n    return vars(t.nn.functional)['soft' + 'max'](t.as_tensor(scores), axis)",
    "method": "import torch\ndef my_softmax(scores, axis): return getattr(torch.as_tensor(scores), 'soft' + 'max')(axis)",
    "caught": "import torch\ndef my_softmax(scores, axis):\n    try: return getattr(torch, 'soft' + 'max')(torch.as_tensor(scores), axis)\n    except BaseException: return scores",
    "made before": "import torch\nlayers = {n: getattr(torch.nn, 'Soft' + 'max')(n) for n in range(-3, 3)}\ndef my_softmax(scores, axis): return layers[axis](torch.as_tensor(scores))",
    "in a helper": "import torch\ndef helper(s, a): return s.softmax(a)\ndef my_softmax(scores, axis): return helper(torch.as_tensor(scores), axis)",
    "star": "from torch.nn.functional import *\ndef my_softmax(scores, axis): return softmax(__import__('torch').as_tensor(scores), axis)",
}


@pytest.mark.parametrize("way", FORBIDDEN)
def test_a_forbidden_call_gets_nothing_and_is_named(strict, root, tmp_path, way):
    book = notebooks.answered(root, 2, {"2.1": FORBIDDEN[way]}, folder="solutions")
    graded = strict.grade(notebooks.save(book, tmp_path / "02_softmax.ipynb"), student="mallory")
    verdict = graded.verdicts[0]
    assert verdict.points == 0
    assert "oftmax" in verdict.message and "which would answer the task for you" in verdict.message, verdict.message
    assert sum(verdict.points for verdict in graded.verdicts[1:]) == 17


def test_a_library_call_beside_the_answer_is_no_offence(strict, root, tmp_path):
    book = notebooks.load(root, "solutions", 2)
    own = "import torch\nx = torch.ones(2, 3)\ntorch.testing.assert_close(torch.as_tensor(my_softmax(x.numpy(), 0)), torch.softmax(x, 0))"
    book = notebooks.with_cells(book, after={"task-2-1": own})
    graded = strict.grade(notebooks.save(book, tmp_path / "02_softmax.ipynb"), student="ada")
    assert all(verdict.passed for verdict in graded.verdicts)
    assert graded.notes == ()


def test_deriving_by_a_hidden_diff_is_refused(strict, root, tmp_path):
    source = "import sympy\nz = sympy.Symbol('z')\nslope = getattr(z**2, 'di' + 'ff')(z) / (2 * z)\nmy_derivative = slope * delta_ij - s_j"
    book = notebooks.answered(root, 2, {"2.3": source}, folder="solutions")
    graded = strict.grade(notebooks.save(book, tmp_path / "02_softmax.ipynb"), student="mallory")
    assert graded.verdicts[2].points == 0
    assert "diff, which would answer the task for you" in graded.verdicts[2].message


def test_what_a_worker_sends_is_taken_as_text_of_limited_length(strict, toy_chapter, tmp_path):
    source = "def thrice(x): raise ValueError('\\x1b[31m\\u202e' + 'a' * 10**6)"
    message = grade(strict, tmp_path / "97_hostile.ipynb", {"97.2": source}).verdicts[1].message
    assert len(message) < 1_500 and message.isprintable()
    assert json.dumps(message)
