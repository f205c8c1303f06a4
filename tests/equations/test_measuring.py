"""Counts that equations rest on, against values worked out by hand."""

from attn_course.equations.counting import Traced, multiplications, traced


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
