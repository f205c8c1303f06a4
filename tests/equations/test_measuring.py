"""Derivatives and counts that equations rest on, against values worked out by hand."""

import numpy as np

from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.derivatives import jacobian, plain_softmax


def test_a_complex_step_gives_derivatives_to_the_last_digits():
    at = np.array([[0.3, -1.2], [2.0, 0.1]])
    np.testing.assert_allclose(jacobian(lambda x: np.exp(x).sum(), at), np.exp(at), rtol=1e-15)
    np.testing.assert_allclose(jacobian(lambda x: x @ x[0], at)[1, 0], at[1] + [0.0, 0.0], rtol=1e-15)


def test_the_axes_of_the_output_come_before_those_of_the_point():
    matrix = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jacobian(lambda x: matrix @ x, np.ones(3)), matrix)
    assert jacobian(lambda x: (matrix @ x).sum(axis=0), np.ones((3, 5))).shape == (5, 3, 5)


def test_a_conjugated_or_wrong_derivative_would_be_noticed():
    scores = np.array([0.5, -0.25, 1.0])
    weights = plain_softmax(scores)
    np.testing.assert_allclose(jacobian(plain_softmax, scores), np.diag(weights) - np.outer(weights, weights), rtol=1e-14)
    assert not np.allclose(jacobian(plain_softmax, scores), np.diag(weights))


def test_every_multiplication_is_counted_once():
    assert multiplications(lambda a, b: a @ b, (2, 3), (3, 5)) == 2 * 3 * 5
    assert multiplications(lambda a: (a * a).sum(axis=-1), (4, 7)) == 28
    assert multiplications(lambda a, b: a + b, (4, 7), (4, 7)) == 0


def test_traffic_and_depth_of_matrix_products_are_traced():
    def chain(a: Traced, b: Traced, c: Traced) -> Traced:
        return (a @ b) @ c.T

    assert traced(chain, (2, 3), (3, 5), (7, 5)) == ((6 + 15 + 10) + (10 + 35 + 14), 2)
    assert traced(lambda a, b: (a @ b).elementwise(a @ b), (2, 2), (2, 2)) == (12 + 12 + 12, 1)
    assert traced(lambda a, b, c: ((a @ b) @ c).elementwise(a @ b), (2, 2), (2, 2), (2, 2))[1] == 2
