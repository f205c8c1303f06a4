"""Shared by the tests of `run`: one case, one result."""

import numpy as np
import sympy

from attn_course.tasks import run

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
S_I, S_J = sympy.symbols("s_i s_j", real=True)


def run_function(function, time_limit_s=5.0, **inputs):
    """What one case gives."""
    (result,) = run(function, [inputs or {"x": X}], kind="write", entry="my_f", time_limit_s=time_limit_s)
    return result


def run_expression(expression, functions=(), **inputs):
    """What an expression in s_i and s_j gives at three points."""
    inputs = inputs or {"s_i": np.array([0.25, 0.5, 0.75]), "s_j": np.array([0.5, 0.1, 0.2])}
    (result,) = run(expression, [inputs], kind="derive", entry="my_e", symbols=tuple(inputs), functions=functions)
    return result


def run_value(value):
    """What a predicted value gives."""
    (result,) = run(value, [{}], kind="predict", entry="my_n")
    return result
