"""The course's own answers are no answer, in any task and however a learner comes by them."""

import functools

import numpy as np
import pytest

import attn_course
from attn_course import check, figures, verify
from attn_course.lessons.flash import experiments
from attn_course.reference import softmax
from attn_course.tasks import CheckFailed, assess, get_task
from attn_course.tasks.source import course_uses
from tests.tasks.toys import ALL, WRITE, changed

NAMES = {
    "np": np,
    "softmax": softmax,
    "attn_course": attn_course,
    "reference": attn_course.reference,
    "check": check,
    "verify": verify,
    "figures": figures,
    "experiments": experiments,
    "CheckFailed": CheckFailed,
    "get_task": get_task,
    "task": get_task("stable-softmax"),
    "right": get_task("repair-softmax-temperature").answer,
    "wrong": get_task("stable-softmax").wrong[0],
    "part": functools.partial(softmax, axis=0),
    "method": get_task("stable-softmax").cases,
    "bound": get_task("stable-softmax").__post_init__,
}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def my_f(x): return softmax(x)", ["softmax"]),
        ("def my_f(x): return reference.softmax(x)", ["reference.softmax"]),
        ("def my_f(x):\n  from attn_course.reference import softmax as s\n  return s(x)", ["s"]),
        ("def my_f(x):\n  import attn_course.reference as r\n  return r.softmax(x)", ["r.softmax"]),
        ("def my_f(x):\n  from attn_course import reference\n  return reference.softmax(x)", ["reference.softmax"]),
        ("def my_f(x): return get_task('stable-softmax').answer(x)", ["get_task"]),
        (
            "def my_f(x):\n  from attn_course.lessons import softmax as s\n  return s.tasks_derivatives.TASKS[0]",
            ["s.tasks_derivatives.TASKS"],
        ),
        ("def my_f(x):\n  from attn_course.lessons.softmax import equations\n  return equations.f(x)", ["equations.f"]),
        ("def my_f(x): return experiments.attention(x)", ["experiments.attention"]),  # which it imports itself
        ("def my_f(x):\n  from attn_course.tasks import ch99\n  return ch99.A.answer(x)", ["ch99.A.answer"]),  # not there
        ("def my_f(x): return task.answer(x)", ["task.answer"]),
        ("def my_f(x): return wrong.function(x)", ["wrong.function"]),
        ("my_f = right", ["right"]),
        ("def my_f(x): return part(x) + method(x) + bound(x)", ["bound", "method", "part"]),
        (
            "my_f = __import__('importlib').import_module('attn_course.lessons.softmax.tasks').TASKS",
            ["'attn_course.lessons.softmax.tasks'"],
        ),
        ("from attn_course.reference import *\nmy_f = 1", ["from attn_course.reference import *"]),
        ("from attn_course.tasks import figure_data\nmy_n = figure_data('read-temperatures')['temperatures']", ["figure_data"]),
    ],
)
def test_the_courses_own_things_are_found(source, found):
    assert course_uses(source, NAMES) == found


@pytest.mark.parametrize(
    "source",
    [
        "",
        "my_f = np.exp\ncheck('stable-softmax', my_f)\nverify('stable-softmax')\nfigures.heatmap(1)",
        "from attn_course import check\nmy_n = 1.0\ncheck('entropy-by-hand', my_n)",
        "from attn_course.tasks import check, CheckFailed\nmy_n = 1.0\ntry:\n    check('entropy-by-hand', my_n)\nexcept CheckFailed: pass",
        "import attn_course\nmy_n = 1.0\nattn_course.check('entropy-by-hand', my_n)\nattn_course.tasks.check('entropy-by-hand', my_n)",
        "def my_f(x):\n  'As attn_course.reference.softmax does it.'\n  return x  # attn_course.tasks",
        "from attn_course.lessons.softmax import figures as drawn\nmy_n = drawn.heatmap(1)\nexperiments.NAME",
        "def my_f(task): return task.answer + 1",
        "def my_f(x):\n  right = x\n  return right",
        "def softmax(x): return np.exp(x)\ndef my_f(x): return own.softmax(x)",
    ],
)
def test_check_verify_figures_and_names_of_ones_own_may_stand_in_an_answer(source):
    assert course_uses(source, NAMES) == []


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.kind)
def test_every_kind_of_task_refuses_the_courses_answer(define, task):
    text = "from attn_course.tasks import get_task\n"
    if task.wants_function:
        answer = define(f"{text}def my_f(*inputs):\n    return get_task('stable-softmax').answer(*inputs)\n")
        verdict = assess(task, answer)
    else:
        cells = [text, f"{task.entry} = get_task('{task.id}').answer()"]
        verdict = assess(task, task.handed_in(task.answer), cells, {"get_task": get_task})
    assert (verdict.passed, verdict.points) == (False, 0)
    assert verdict.message == f"{task.entry} uses get_task, the course's own answer: write it yourself"


@pytest.mark.parametrize("answer", [softmax, get_task("repair-softmax-temperature").answer, functools.partial(softmax, axis=-1)])
def test_handing_in_the_courses_function_itself_is_refused(answer):
    assert assess(get_task("stable-softmax"), answer).message == "my_softmax uses my_softmax, the course's own answer: write it yourself"


def test_what_the_exercise_gives_may_come_from_the_course(define):
    function = define("from attn_course.reference import softmax as helper\ndef my_f(x, scale):\n    return helper(x)\n")

    def helper(x):
        return x

    assert "own answer" in assess(WRITE, function).message
    assert "own answer" not in assess(changed(WRITE, given=[helper]), function).message
