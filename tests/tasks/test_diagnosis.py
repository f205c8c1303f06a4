"""What is said of a wrong answer: place, digits, pattern; and what stays secret."""

import math

import numpy as np
import pytest

from attn_course.tasks import Case
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.wording import told_apart
from tests.tasks.runs import S_I, verdict_of
from tests.tasks.toys import DERIVE, FIGURE, PAIR, PREDICT, WRITE, changed


def test_the_first_wrong_element_the_largest_error_and_the_case_are_named():
    def answer(x, scale):
        result = WRITE.answer(x, scale)
        if x.ndim == 3:
            result[1, 2, 3] += 0.25
            result[1, 2, 5] -= 0.75
        return result

    verdict = verdict_of(WRITE, answer)
    case = WRITE.cases(np.random.default_rng(CHECK_SEED))[1]
    wanted = WRITE.answer(**case.inputs)[1, 2, 3]
    numbers = f"The first wrong number, element [1, 2, 3], is {wanted + 0.25:.6g} and should be {wanted:.6g}; the largest error is 0.75."
    places = "Only columns 3 and 5 are wrong there. It is right in every other case."
    sums = "One of its rows sums to -0.5 there, where it must sum to 0."
    assert verdict.message == f"my_centre is not right in the case “three axes”. {numbers} {places} {sums}"


def test_an_item_of_a_tuple_is_named():
    message = verdict_of(
        PAIR, lambda blocks: (np.concatenate(blocks).max(), np.concatenate(blocks) + 0.125 * np.arange(sum(map(len, blocks))))
    ).message
    assert "The first wrong number, element [1] of item 1 of the tuple, is " in message
    message = verdict_of(PAIR, lambda blocks: (np.concatenate(blocks).max() + 1.0, np.concatenate(blocks))).message
    assert "The first wrong number, item 0 of the tuple, is " in message


def test_a_wrong_shape_is_told_and_no_number():
    message = verdict_of(WRITE, lambda x, scale: WRITE.answer(x, scale)[..., None]).message
    assert "“a matrix”. Shape or form: the result must have shape (3, 5); got (3, 5, 1). " in message
    assert "first wrong" not in message


def test_a_number_too_many_is_told_what_a_comma_does():
    assert " A comma begins another number: 7,5 are two, 7.5 is one." in verdict_of(FIGURE, (4, 1)).message
    assert "comma" not in verdict_of(PREDICT, (2.7, 31.4)).message + verdict_of(FIGURE, 8.0).message


def test_a_problem_comes_before_a_wrong_number_and_names_its_case():
    def answer(x, scale):
        if x.ndim == 1:
            raise ValueError("flat")
        return x

    message = verdict_of(WRITE, answer).message
    assert message.startswith("my_centre raised ValueError: flat in line ")
    assert message.endswith("` in the case “a vector”")


def test_the_question_after_a_lost_axis_stands_at_the_end():
    message = verdict_of(WRITE, lambda x, scale: x - x.mean(axis=-1)).message
    assert message.startswith("arrays of the shapes (3, 5) and (3,) cannot be combined entry by entry in")
    assert message.endswith(" in the case “a matrix”: did a reduction lose its axis? See keepdims.")


def test_a_changed_input_is_told_though_the_numbers_are_right():
    def answer(x, scale):
        result = WRITE.answer(x, scale)
        x *= 2.0
        return result

    assert verdict_of(WRITE, answer).message == "my_centre changed its input `x` in the case “a matrix”: work on a copy"


def test_derive_messages_name_the_point_not_an_index():
    verdict = verdict_of(DERIVE, S_I + 7)
    inputs = DERIVE.cases(np.random.default_rng(CHECK_SEED))[0].inputs
    s_i, s_j = inputs["s_i"][0], inputs["s_j"][0]
    point = f"At s_i = {s_i:.4g}, s_j = {s_j:.4g} it is {s_i + 7:.6g} and should be {s_i * (1 - s_j):.6g}; the largest error is "
    assert verdict.message.startswith(f"my_slope is not right. {point}")


@pytest.mark.parametrize(
    ("got", "wanted", "words"),
    [
        (1.0 + 1e-8, 1.0, "is 1.00000001 and should be 1; "),
        (123456.7, 123456.8, "is 123456.7 and should be 123456.8; "),
        (-0.0, 2.0, "is 0 and should be 2; "),
        (2.0, -0.0, "is 2 and should be 0; "),
    ],
)
def test_two_numbers_are_told_in_as_many_digits_as_it_takes_and_zero_has_no_sign(got, wanted, words):
    task = changed(WRITE, answer=lambda x, scale: np.full(1, wanted), tolerance=1e-300)
    cases = [Case("plain", x=1e-300, scale=1.0)]
    message = verdict_of(changed(task, cases=lambda rng: cases), lambda x, scale: np.full(1, got)).message
    assert f"element [0], {words}" in message


def test_the_two_nearest_numbers_can_be_told_apart():
    assert told_apart(0.1, np.nextafter(0.1, 1.0)) == ("0.10000000000000001", "0.10000000000000002")


def factor_told(verdict):
    return float(verdict.message.partition("Everywhere it is ")[2].partition(" times the right result.")[0])


def test_a_constant_factor_is_remarked_in_spite_of_the_roundings_of_float32():
    def answer(x, scale):
        noise = 1.0 + 1e-5 * np.cos(np.arange(x.shape[-1]))
        return (3.0 * noise * WRITE.answer(x, scale)).astype(np.float32)

    assert factor_told(verdict_of(WRITE, answer)) == pytest.approx(3.0, rel=1e-4)


def test_nan_is_remarked_unless_it_is_wanted():
    def one_nan(x, scale):
        return np.where(np.arange(x.shape[-1]) == 2, np.nan, WRITE.answer(x, scale))

    assert "It holds NaN: look for inf - inf, inf / inf, 0 / 0 or 0 * inf." in verdict_of(WRITE, one_nan).message
    wants_nan = changed(WRITE, answer=one_nan)
    assert "It holds NaN" not in verdict_of(wants_nan, lambda x, scale: one_nan(x, scale) + 1.0).message


def times(factor):
    return lambda x, scale: factor * WRITE.answer(x, scale)


@pytest.mark.parametrize(
    "answer",
    [
        *map(times, (1.0 - 1e-8, 1.0 + 1e-8, 1.0 + 2e-6, 1.0 + 5e-4)),
        lambda x, scale: np.abs(WRITE.answer(x, scale)),
        lambda x, scale: np.zeros_like(x),
        lambda x, scale: np.full_like(x, np.inf),
        lambda x, scale: WRITE.answer(x, scale) * (2.0 if x.ndim == 2 else 3.0),
        lambda x, scale: np.full_like(x, 1.7e308),
        lambda x, scale: np.full_like(x, np.nan) if x.ndim == 3 else np.cos(x),  # NaN in another case than the one shown
    ],
)
def test_nothing_is_remarked_where_no_pattern_holds(answer):
    verdict = verdict_of(WRITE, answer)
    assert not verdict.passed
    assert "Everywhere" not in verdict.message
    assert "NaN" not in verdict.message


def test_where_all_right_numbers_are_equal_factor_and_offset_cannot_be_told_apart():
    equal = changed(WRITE, answer=lambda x, scale: np.full_like(x, 4.0))
    assert "Everywhere" not in verdict_of(equal, lambda x, scale: np.full_like(x, 8.0)).message


@pytest.mark.parametrize(("error", "is_guessed"), [(0.0, True), (1e-2, False), (np.nan, False), (np.inf, False)])
def test_a_hidden_step_in_float32_is_guessed_at_and_a_larger_error_is_none(error, is_guessed):
    def by_a_narrow_step(x, scale):
        return WRITE.answer(x, scale).astype(np.float32).astype(np.float64) + (error * (np.arange(x.shape[-1]) == 1) if error else 0.0)

    verdict = verdict_of(WRITE, by_a_narrow_step)
    assert not verdict.passed
    assert ("does a step run in float32" in verdict.message) == is_guessed


@pytest.mark.parametrize(
    "value",
    [
        (3.0, 31.4159, 577.215),
        (0.0, 0.0, 0.0),
        (577.215, 31.4159, 2.71828),
        (5.43656, 62.8318, 1154.43),
        (-2.71828, -31.4159, -577.215),
        (math.nan, math.inf, 1.0),
        (1.0, 2.0),
        9.0,
        ((1.0, 2.0, 3.0),),
    ],
    ids=str,
)
def test_a_wrong_prediction_never_shows_the_right_numbers(value):
    verdict = verdict_of(PREDICT, value)
    assert not verdict.passed
    given = {f"{abs(number):.6g}" for number in np.ravel(value)}
    for number in ("2.71828", "31.4159", "577.215"):
        assert number in given or number not in verdict.message
    assert "times the right result" not in verdict.message
    assert "plus" not in verdict.message
    assert "wanted" not in verdict.message
    assert "error" not in verdict.message


def test_a_wrong_prediction_is_told_which_entry_is_off():
    message = verdict_of(PREDICT, (2.71828, 31.0, 577.215)).message
    assert message == "my_numbers is not right. Entry 1 is the first that is off. You gave 31. The other entries are right."
    assert verdict_of(FIGURE, 5).message.startswith("my_height is not right. You gave 5. ")
