"""What a formula claims is made in another way than by its own operators: what counts as typed again, and what does not."""

import numpy as np
import pytest

from attn_course.formulas import matrix
from attn_course.formulas.retyped import retyped
from attn_course.reference import softmax


def _product(one, other):
    """Multiply, in another place."""
    return np.matmul(one, other)


def _by_a_loop(one, other):
    total = 0.0
    for n in range(one.shape[1]):
        total = total + np.outer(one[:, n], other[n])
    return total


def behind_a_helper(rng, n):
    A, B = rng.normal(size=(2, n, n))
    return {"A": A, "B": B, "S": _product(A, B)}


def behind_names(rng, n):
    A = rng.normal(size=(n, n))
    B = rng.normal(size=(n, n))
    scores = np.matmul(A, B)
    shown = scores.copy()
    return {"A": A, "B": B} | {"S": matrix(shown)}


def filled(rng, n):
    A, B = rng.normal(size=(2, n, n))
    S = np.zeros((n, n))
    for c in range(n):
        S += np.outer(A[:, c], B[c])
    return {"A": A, "B": B, "S": S}


def with_a_helper_that_loops(rng, n):
    A, B = rng.normal(size=(2, n, n))
    return {"A": A, "B": B, "S": _by_a_loop(A, B)}


def by_the_reference(rng, n):
    z = rng.normal(size=n)
    return {"z": z, "S": softmax(z)}


def step_by_step(rng, n):
    A, states = rng.normal(size=(n, n)), [rng.normal(size=n)]
    for t in range(n):
        states.append(A @ states[t])
    return {"A": A, "S_0": states[0], "S": np.array(states[1:])}


def drawn_in_a_loop(rng, n):
    parts = []
    for _ in range(n):
        part = rng.normal(size=n)
        parts.append(part)
    return {"A": np.array(parts), "S": 2 * np.array(parts)}


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (behind_a_helper, ["S"]),
        (behind_names, ["S"]),
        (filled, []),
        (with_a_helper_that_loops, []),
        (by_the_reference, []),
        (step_by_step, []),
        (drawn_in_a_loop, ["S"]),
        (lambda rng, n: {"A": (A := rng.normal(size=(n, n))), "S": A.T @ A}, ["S"]),
        (lambda rng, n: {"A": (A := rng.normal(size=n)), "S": [sum(A[:t]) for t in range(n)]}, []),
    ],
)
def test_operators_on_other_givens_are_the_formula_typed_again(make, found):
    assert retyped(make, ["S"]) == found


def test_only_what_is_claimed_is_looked_at():
    assert retyped(behind_a_helper, ["A"]) == []


def test_what_has_no_source_is_refused():
    with pytest.raises(ValueError, match="a function whose source can be read"):
        retyped(np.dot, ["S"])
