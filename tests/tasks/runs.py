"""Shared by the tests of `run` and `judge`: one case, one result; one answer, one verdict."""

import numpy as np
import sympy

from attn_course.tasks import judge, run
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.run import Call

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
WRITTEN = Call("my_f", "write")
S_I, S_J = sympy.symbols("s_i s_j", real=True)


def run_function(function, time_limit_s=5.0, **inputs):
    (result,) = run(function, [inputs or {"x": X}], WRITTEN, time_limit_s=time_limit_s)
    return result


def run_expression(expression, functions=(), **inputs):
    """What an expression in s_i and s_j gives at three points."""
    inputs = inputs or {"s_i": np.array([0.25, 0.5, 0.75]), "s_j": np.array([0.5, 0.1, 0.2])}
    (result,) = run(expression, [inputs], Call("my_e", "derive", tuple(inputs), functions))
    return result


def run_value(value):
    (result,) = run(value, [{}], Call("my_n", "predict"))
    return result


def verdict_of(task, answer):
    cases = task.draw(np.random.default_rng(CHECK_SEED))
    inputs = [case.inputs for case in cases]
    return judge(task, cases, run(answer, inputs, task.call))
