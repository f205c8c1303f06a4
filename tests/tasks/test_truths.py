"""What is said of a wrong result that is no known mistake, and that it is true."""

import numpy as np
import pytest

from attn_course.reference import softmax
from attn_course.tasks import Case, Wrong
from tests.tasks.runs import S_I, S_J, verdict_of
from tests.tasks.toys import DERIVE, FIGURE, PAIR, PREDICT, WRITE, changed


def _of(right, *inputs):
    """A task whose answer is `right`, on these arrays, and whose known mistakes are far away."""
    cases = [Case(f"case {n}", x=np.array(x)) for n, x in enumerate(inputs)]
    wrong = [Wrong(name, lambda x, n=n: np.full((n, 97), 1e9), f"hint {n}") for n, name in enumerate("abc", 2)]
    return changed(WRITE, cases=lambda rng: cases, answer=right, wrong=wrong)


DRAW = np.random.default_rng(7)
TABLE, OTHER, WIDE = DRAW.normal(size=(3, 5)), DRAW.normal(size=(7, 2)), DRAW.normal(size=(2, 3, 5))
TURN = _of(lambda x: 2.0 * x**3 - 1.0, TABLE, OTHER)
LONG = _of(lambda x: 2.0 * x**3 - 1.0, TABLE, DRAW.normal(size=(7, 4)))
LATER = _of(lambda x: 2.0 * x**3 - 1.0, TABLE, OTHER, DRAW.normal(size=(2, 3)))
ZEROS = _of(lambda x: np.where(np.arange(len(x))[:, None] == 1, 0.0, x * x), TABLE, OTHER)
WEIGHTS = _of(softmax, TABLE, OTHER)
DEEP = _of(np.sin, WIDE)
CENTRED = _of(lambda x: x - x.mean(axis=-1, keepdims=True), TABLE, DRAW.normal(size=(7, 4)))
SQUARE = _of(np.cos, DRAW.normal(size=(5, 5)))


def told(task, answer):
    verdict = verdict_of(task, answer)
    assert not verdict.passed
    assert verdict.mistake is None
    return verdict.message


def right(x):
    return 2.0 * x**3 - 1.0


def _mirrored(rows):
    """Rows of the same lengths, reflected at the diagonal of the space."""
    return rows - 2.0 * rows.mean(axis=-1, keepdims=True)


def with_rows(rows, change):
    return lambda x: np.where(np.isin(np.arange(len(x)), rows)[:, None], change(right(x)), right(x))


@pytest.mark.parametrize(
    ("task", "answer", "words"),
    [
        (TURN, np.zeros_like, "It is all zeros."),
        (TURN, np.copy, "It holds the numbers of the input `x`, unchanged."),
        (TURN, lambda x: np.full_like(x, 3.0), "It holds one and the same number everywhere."),
        (TURN, lambda x: 3.0 * right(x), "Everywhere it is 3 times the right result."),
        (TURN, lambda x: right(x) / 3.0**0.5, "Everywhere it is 0.57735 (1 over the root of 3) times the right result."),
        (TURN, lambda x: right(x) / np.log(2.0), "Everywhere it is 1.4427 (1 over the natural logarithm of 2) times the right result."),
        (TURN, lambda x: right(x) * x.shape[1] ** 0.5, "is the right result times the root of the length of the last axis of `x`."),
        (TURN, lambda x: right(x) / len(x), "is the right result divided by the length of the last but one axis of `x`."),
        (TURN, lambda x: right(x) * np.pi ** x.shape[1], "times one number, but that number differs from case to case: 9.87 to 306."),
        (TURN, lambda x: right(x) + 0.5, "Everywhere it is the right result plus 0.5."),
        (TURN, lambda x: np.abs(right(x)), "It is right but for the signs of some entries."),
        (TURN, lambda x: right(x)[::-1], "It has its rows in reverse order."),
        (TURN, lambda x: right(x).T.reshape(x.shape), "It is the right result transposed, reshaped to the shape that is wanted."),
        (TURN, lambda x: np.roll(right(x), 1, axis=0), "in another order: each of its columns holds the right numbers."),
        (TURN, lambda x: right(x).T, "It is the right result transposed."),
        (TURN, lambda x: right(x)[None], "Its numbers are right; it has an axis of length 1 too many."),
        (TURN, lambda x: right(x).ravel(), "Its numbers are right; what is missing is a reshape to (3, 5)."),
        (DEEP, lambda x: np.sin(x).swapaxes(0, 1), "Its numbers are right; its axes 0 and 1 have changed places."),
        (LONG, lambda x: right(x) * (2.0 + np.arange(len(x)))[:, None], "has in each row the right numbers times a factor of that row."),
        (LONG, lambda x: right(x) + np.arange(1, x.shape[1] + 1), "has in each column the right numbers plus a number of that column."),
        (TURN, with_rows([0], lambda y: y + 1.0), "Only row 0 is wrong there."),
        (TURN, with_rows([0, 1], np.exp), "Only row 2 is right there."),
        (TURN, with_rows([1, 2], lambda y: 0.0 * y), "Only rows that came out as zero are wrong there."),
        (TURN, lambda x: right(x) if len(x) == 3 else np.exp(x), "in the case “case 1”. The first wrong number, element [0, 0], is"),
        (TURN, lambda x: right(x) if len(x) == 3 else np.exp(x), "It is right in the other case."),
        (LATER, lambda x: right(x) if len(x) < 5 else np.exp(x), "It is right in every other case."),
        (LATER, lambda x: right(x) if len(x) > 5 else np.exp(x), "It is right in the case “case 1” only."),
        (ZEROS, lambda x: x * x, "Only rows that must be zero are wrong there."),
        (ZEROS, lambda x: ZEROS.answer(x) * np.exp(x), "Only entries that must not be zero are wrong there."),
        (DEEP, lambda x: np.where(np.arange(2)[:, None, None] == 1, np.cos(x), np.sin(x)), "Only index 1 of axis 0 is wrong there."),
        (SQUARE, lambda x: np.where(np.eye(5) == 1, 7.0, np.cos(x)), "Only the entries on the diagonal are wrong there."),
        (SQUARE, lambda x: np.where(np.triu(x, 1) != 0, 7.0, np.cos(x)), "Only entries above the diagonal are wrong there."),
        (WEIGHTS, lambda x: softmax(x, 0), "Its columns sum to 1 there, where its rows must."),
        (WEIGHTS, lambda x: softmax(np.sin(x)), "Its rows sum to 1 there, as they must."),
        (WEIGHTS, lambda x: softmax(x) ** 1.5, "there, where it must sum to 1."),
        (CENTRED, np.sin, "there, where it must sum to 0."),
        (CENTRED, lambda x: np.sin(x) - np.sin(x).mean(axis=-1, keepdims=True), "Its rows sum to 0 there, as they must."),
        (TURN, lambda x: _mirrored(right(x)), "Each of its rows has the right length, the root of its sum of squares, there."),
        (TURN, lambda x: right(x) * (1.0 + 1e-4 * np.sin(9.0 * x)), "It is right to a few digits only"),
        (TURN, lambda x: right(x) * (1.0 + 1e-2 * np.sin(9.0 * x)), "It is nearly right: nowhere is it off by more than 0.6 % of the"),
    ],
)  # fmt: skip
def test_what_is_true_is_said(task, answer, words):
    assert words in told(task, answer)


def test_weights_of_scores_that_are_too_large_are_told():
    task = _of(softmax, TABLE, DRAW.normal(size=(2, 7)))
    assert "holds the weights of scores that are 3 times the right ones." in told(task, lambda x: softmax(3.0 * x))
    words = "holds the weights of scores that are the right ones times the root of the length of the last axis of `x`."
    assert words in told(task, lambda x: softmax(x * x.shape[1] ** 0.5))


def test_items_of_a_tuple_that_are_right_are_told():
    message = told(PAIR, lambda blocks: (np.concatenate(blocks).max(), np.concatenate(blocks)[::-1]))
    assert "item 1 of the tuple is the right result in reverse order. Item 0 is right in every case. It is right in the other" in message


def test_items_that_are_all_wrong_or_in_another_order_are_told():
    assert "Neither of its 2 results is right in every case." in told(PAIR, lambda blocks: (7.0, np.concatenate(blocks)[::-1]))
    two = _of(lambda x: (x, x + 1.0), WIDE)
    said = told(two, lambda x: (x - np.abs(x) - 1.0, x + 1.5 + np.sin(x)))  # only of the item that is shown: the other is too large
    assert "Every wrong entry of item 0 is too small." in said
    four = _of(lambda x: (x, x + 1.0, x + 2.0, x.T), TABLE)
    for order in ([1, 0, 2, 3], [3, 0, 1, 2]):
        words = told(four, lambda x, order=order: tuple(four.answer(x)[n] for n in order))
        assert "The tuple holds the right arrays, but in another order." in words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((2.0, 1.0, 577.215), "Entry 2 is right."),
        ((2.0, 1.0, 3.0), "No entry is right yet."),
        ((31.4159, 577.215, 2.71828), "The numbers are right, but in another order."),
    ],
)
def test_which_predicted_numbers_are_right_is_told(value, words):
    assert words in told(PREDICT, value)


@pytest.mark.parametrize(
    ("value", "words"),
    [(-4.0, "Its sign is not right."), (50.0, "more than ten times too large."), (3.0, "but it is too small."), (4.05, "It is close, but")],
)
def test_how_far_a_single_predicted_number_is_off_is_told_roughly(value, words):
    assert words in told(changed(FIGURE, tolerance=0.001), value)


def test_digits_that_are_missing_are_told():
    task = changed(FIGURE, answer=lambda: 2.71828, tolerance=1e-6)
    assert "It is right to its last digit, but more digits are asked for." in told(task, 2.72)
    assert "It is close, but not equal to what is asked for." in told(task, 2.73)


def test_a_factor_made_of_symbols_is_told():
    assert "At every point it is the right result times `s_j`." in told(DERIVE, S_I * (1 - S_J) * S_J)
    assert "At every point it is the right result divided by `s_i`, with the other sign." in told(DERIVE, S_J - 1)


def test_values_of_a_symbol_at_which_an_expression_is_right_are_told():
    case = Case("points", s_i=np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), s_j=np.array([0.1, 0.3, 0.5, 0.7, 0.2, 0.4]))
    task = changed(DERIVE, cases=lambda rng: [case])
    assert "It is right wherever s_i is 1." in told(task, (1 - S_J) * (2 - S_I))


def test_where_infinities_stand_is_told_and_nan_is_none():
    task = _of(lambda x: np.where(x > 0.0, x, -np.inf), TABLE, OTHER)
    words = "The finite numbers are right there; what differs is which entries are infinite."
    assert words in told(task, lambda x: np.where(x > 0.5, x, -np.inf))
    assert words not in told(task, lambda x: np.full_like(x, np.nan))


SHAPES = [(), (0,), (1,), (3,), (1, 1), (3, 5), (5, 5), (2, 3, 5), (2, 1, 3, 5), (3, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_result_is_too_strange_to_be_told_about(shape):
    strange = [np.nan, np.inf, -np.inf, 0.0, 1.0, 1e308, -1e-308]
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64, np.longdouble):
        for _ in range(10):
            wanted, got = (rng.choice([*strange, *rng.normal(size=5)], size=shape) for _ in range(2))
            other = shape[::-1] if rng.uniform() < 0.3 else shape
            task = _of(lambda x: x, wanted, rng.normal(size=shape))
            message = verdict_of(task, lambda x, got=got, other=other, dtype=dtype: got.reshape(other).astype(dtype)).message
            assert "  " not in message


def test_an_error_of_form_brings_no_hint_at_all_and_one_of_numbers_leaves_it_open():
    assert verdict_of(WRITE, lambda x, scale: WRITE.answer(x, scale)[..., None]).hint == ""
    assert verdict_of(WRITE, lambda x, scale: "text").hint == ""
    assert verdict_of(WRITE, lambda x, scale: x.nonsense).hint == ""
    assert verdict_of(WRITE, lambda x, scale: np.exp(x)).hint is None
    assert verdict_of(WRITE, ...).hint is None
