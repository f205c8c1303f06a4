"""What can happen to any answer of any task gives its own message: NaN, dtypes, changed inputs, exceptions, endless loops."""

import copy
import time

import numpy as np
import pytest
import sympy
import torch

from attn_course.tasks import assess
from attn_course.tasks.core import CHECK_SEED
from tests.exercises.answers import DERIVE_TASKS, FUNCTION_TASKS, right_answers, run_and_judge


def form(task):
    """What the engine treats apart: a repair, several results, lists among the inputs, inputs that are plain numbers only."""
    (first, *_) = task.cases(np.random.default_rng(CHECK_SEED))
    inputs = [*first.inputs.values()]
    several = isinstance(task.answer(*copy.deepcopy(inputs)), tuple)
    return task.kind, several, *(any(isinstance(value, kind) for value in inputs) for kind in (np.ndarray, list))


each_form_of_task = pytest.mark.parametrize("task", {form(task): task for task in FUNCTION_TASKS}.values(), ids=lambda task: task.id)
each_derive_task = pytest.mark.parametrize("task", DERIVE_TASKS, ids=lambda task: task.id)


def wrapped(task, change):
    """The right answer with `change` applied to each array it returns."""

    def answer(*inputs):
        result = task.answer(*inputs)
        return tuple(change(np.asarray(item)) for item in result) if isinstance(result, tuple) else change(result)

    return answer


def message_of(task, answer, **options):
    verdict = run_and_judge(task, answer, **options)
    assert (verdict.passed, verdict.points, verdict.mistake) == (False, 0, None)
    return verdict.message


@each_form_of_task
@pytest.mark.parametrize("change", [torch.from_numpy, lambda a: torch.from_numpy(a).float(), np.copy])
def test_torch_passes(task, change):
    assert run_and_judge(task, wrapped(task, change)).passed


@each_form_of_task
def test_nan_is_told_and_where_it_comes_from(task):
    message = message_of(task, wrapped(task, lambda a: np.full_like(a, np.nan)))
    assert message.startswith(f"{task.entry} is not right in the case “")
    assert " is nan and should be " in message
    assert "It holds NaN: look for inf - inf, 0 / 0 or 0 * inf." in message


@each_form_of_task
def test_a_single_nan_among_right_numbers_fails(task):
    def one_nan(array):
        array = np.array(array)
        array.flat[array.size - 1] = np.nan
        return array

    assert "It holds NaN" in message_of(task, wrapped(task, one_nan))


@each_form_of_task
@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda a: a.astype(np.float16), "an array of float16"),
        (lambda a: np.round(a).astype(int), "an array of int64"),
        (lambda a: a > 0, "an array of bool"),
        (lambda a: a.astype(object), "an array of object"),
        (lambda a: a + 0j, "an array of complex128"),
        (lambda a: torch.from_numpy(np.asarray(a)).half(), "a torch tensor of float16"),
        (lambda a: torch.from_numpy(np.asarray(a)).bfloat16(), "a torch tensor of bfloat16"),
    ],
)
def test_another_dtype_is_named(task, change, got):
    message = message_of(task, wrapped(task, lambda a: change(np.asarray(a))))
    assert f"float32 or float64 numbers; got {got} in the case “" in message


@each_form_of_task
def test_another_shape_is_named(task):
    message = message_of(task, wrapped(task, lambda a: np.asarray(a)[..., None]))
    assert "Shape or form: " in message
    assert "wanted" not in message


@each_form_of_task
def test_nothing_returned_is_told(task):
    assert "got NoneType (is there a return statement?)" in message_of(task, lambda *inputs: None)


@each_form_of_task
def test_one_array_too_many_is_told(task):
    def answer(*inputs):
        result = task.answer(*inputs)
        return (*(result if isinstance(result, tuple) else (result,)), np.zeros(3))

    assert "it must return " in message_of(task, answer)


@each_form_of_task
def test_an_input_written_to_is_named_though_the_result_is_right(task):
    (first, *_) = task.cases(np.random.default_rng(CHECK_SEED))
    arrays = [(n, name) for n, (name, value) in enumerate(first.inputs.items()) if isinstance(value, (np.ndarray, list))]
    if not arrays:
        pytest.skip("its inputs are plain numbers, to which nobody can write")
    place, name = arrays[0]

    def answer(*inputs):
        result = task.answer(*copy.deepcopy(inputs))
        target = inputs[place][0] if isinstance(inputs[place], list) else inputs[place]
        target += 1.0
        return result

    assert message_of(task, answer) == f"{task.entry} changed its input `{name}` in the case “{first.name}”: work on a copy"


@each_form_of_task
def test_an_exception_is_told_with_its_line(task):
    def answer(*inputs):
        raise IndexError("out of reach")

    message = message_of(task, answer)
    assert message.startswith(f"{task.entry} raised IndexError: out of reach in line ")
    assert '`raise IndexError("out of reach")`' in message


@each_form_of_task
def test_an_endless_loop_is_stopped_after_one_case(task):
    def answer(*inputs):
        while True:
            pass

    start = time.monotonic()
    assert f"{task.entry} did not return within 0.2 s" in message_of(task, answer, time_limit_s=0.2)
    assert time.monotonic() - start < 2.0


@each_derive_task
def test_restating_the_question_is_no_answer(task):
    right = right_answers(task)[0]
    x = sympy.Symbol(task.symbols[0], real=True)
    for restated in (sympy.Derivative(x, x), sympy.Integral(right, (x, 0, x)), right + sympy.Derivative(x**2, x)):
        assert "that restates the question" in message_of(task, restated)


@each_derive_task
@pytest.mark.parametrize("call", ["f.diff(x)", "diff(f, x)", "sympy.diff(f, x)", "Derivative(f, x).doit()", "sp.diff(f, x)"])
def test_letting_sympy_differentiate_is_no_answer_though_the_result_is_right(task, call):
    cell = f"import sympy\nimport sympy as sp\nfrom sympy import Derivative, diff\n{task.entry} = {call}"
    verdict = assess(task, right_answers(task)[0], ["x = 1", cell, f'check("{task.id}", {task.entry})'])
    assert not verdict.passed
    assert verdict.message.startswith(f"{task.entry} uses ")
    assert verdict.message.endswith("which would answer the task for you: write it yourself")


@each_derive_task
def test_symbols_that_were_not_handed_out_are_named(task):
    assert "it holds z_7" in message_of(task, right_answers(task)[0] + sympy.Symbol("z_7"))
