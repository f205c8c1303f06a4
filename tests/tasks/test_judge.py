"""What passes, how arrays are compared, and what the judge refuses."""

import numpy as np
import pytest
import torch

from attn_course.tasks import Case, Result, get_task, judge
from attn_course.tasks.compare import compare
from attn_course.tasks.gates import as_answer
from tests.tasks.runs import verdict_of
from tests.tasks.toys import ALL, FIGURE, PAIR, PREDICT, REPAIR, WRITE, changed

# --- what passes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.kind)
def test_the_right_answer_gets_all_points_and_the_ok_line(task):
    verdict = verdict_of(task, as_answer(task, task.answer))
    assert (verdict.passed, verdict.points, verdict.max_points) == (True, task.points, task.points)
    assert (verdict.message, verdict.mistake, verdict.hint) == (task.ok_line, None, None)


def centre_by_loops(x, scale):
    result = np.zeros_like(x)
    for row in np.ndindex(x.shape[:-1]):
        mean = sum(x[row]) / len(x[row])
        result[row] = [(entry - mean) * scale for entry in x[row]]
    return result


@pytest.mark.parametrize(
    "answer",
    [
        centre_by_loops,
        lambda x, scale: (x * scale) - (x * scale).mean(-1)[..., None],
        lambda x, scale: scale * (torch.tensor(x) - torch.tensor(x).mean(-1, keepdim=True)),
        lambda x, scale: (torch.tensor(x, dtype=torch.float32) - torch.tensor(x, dtype=torch.float32).mean(-1, True)) * scale,
        lambda x, scale: (x.astype(np.float32) - x.astype(np.float32).mean(-1, keepdims=True)) * np.float32(scale),
        lambda x, scale: ((x - x.mean(axis=-1, keepdims=True)) * scale).astype(np.longdouble),
        lambda x, scale: (np.asfortranarray(x) - np.einsum("...i->...", x)[..., None] / x.shape[-1]) * scale,
    ],
)
def test_right_answers_pass_however_they_are_written(answer):
    assert verdict_of(WRITE, answer).passed


def test_the_tolerance_goes_by_the_dtype_that_came():
    def off(error, dtype):
        return lambda x, scale: (WRITE.answer(x, scale) * (1 + error)).astype(dtype)

    assert verdict_of(WRITE, off(1e-4, np.float32)).passed
    assert not verdict_of(WRITE, off(1e-4, np.float64)).passed
    assert not verdict_of(WRITE, off(1e-2, np.float32)).passed
    assert verdict_of(changed(WRITE, tolerance=1e-3), off(1e-4, np.float64)).passed
    assert verdict_of(WRITE, off(1e-11, np.float64)).passed
    assert not verdict_of(WRITE, off(1e-7, np.float64)).passed


def test_a_list_is_as_good_as_a_tuple_where_several_results_are_wanted():
    assert verdict_of(PAIR, lambda blocks: list(PAIR.answer(blocks))).passed
    message = verdict_of(PAIR, lambda blocks: [*PAIR.answer(blocks), blocks[0]]).message
    assert "it must return a tuple of 2 arrays; got a tuple of 3 arrays" in message


@pytest.mark.parametrize("change", [lambda array: [array], list, lambda array: [array, array], lambda array: [1.0, 2.0]])
def test_a_list_is_refused_where_one_array_is_wanted(change):
    message = verdict_of(WRITE, lambda x, scale: change(WRITE.answer(x, scale))).message
    assert message == (
        "my_centre must return a NumPy array or a torch tensor; got list (several results are a tuple) in the case “a matrix”"
    )


def test_a_list_in_a_later_case_is_refused_too():
    message = verdict_of(WRITE, lambda x, scale: [WRITE.answer(x, scale)] if x.ndim == 1 else WRITE.answer(x, scale)).message
    assert message.endswith("got list (several results are a tuple) in the case “a vector”")


@pytest.mark.parametrize("value", [[4.0], (4.0,), np.array([4.0]), [[4]], torch.tensor([4.0]), torch.tensor(4.0, requires_grad=True)])
def test_a_single_number_may_stand_in_a_list_or_an_array(value):
    assert verdict_of(FIGURE, value).passed
    assert not verdict_of(changed(FIGURE, answer=lambda: 7.0), value).passed
    assert verdict_of(changed(FIGURE, answer=lambda: (4.0,)), 4).passed


def test_several_numbers_keep_their_form():
    assert not verdict_of(PREDICT, [PREDICT.answer()]).passed
    assert not verdict_of(FIGURE, [4.0, 4.0]).passed
    assert not verdict_of(WRITE, lambda x, scale: WRITE.answer(x, scale)[None]).passed


# --- compare -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [[1.0, -2.0], [np.nan, 1.0], [np.inf, -np.inf, 0.0], [], [[0.0]], [1e300, -1e300], [5e-324]], ids=str)
def test_an_array_agrees_with_itself(array):
    assert compare([np.array(array)], [np.array(array)]) is None


@pytest.mark.parametrize(
    ("got", "wanted", "index"),
    [
        ([1.0, np.nan], [1.0, 2.0], (1,)),
        ([1.0, 2.0], [1.0, np.nan], (1,)),
        ([np.inf], [-np.inf], (0,)),
        ([1e300], [np.inf], (0,)),
        ([0.0], [-np.inf], (0,)),
        ([1.7e308], [-1.7e308], (0,)),
        ([[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.0], [3.0, 4.0]], (1, 1)),
        ([1.0, 3.0, 3.0], [1.0, 2.0, np.inf], (1,)),
        ([1e-300], [0.1], (0,)),
    ],
)
def test_the_first_wrong_element_is_found_also_among_nan_and_infinity(got, wanted, index):
    miss = compare([np.array(got)], [np.array(wanted)])
    assert miss.index == index
    np.testing.assert_equal((miss.got, miss.wanted), (np.array(got)[index], np.array(wanted)[index]))


def test_the_largest_error_is_that_of_the_wrong_elements():
    assert compare([np.array([1.0, 2.5, np.nan, 3.2])], [np.array([1.0, 2.0, 3.0, 3.0])]).largest_error == 0.5
    assert compare([np.array([1.0 + 1e-12, np.nan])], [np.array([1.0, 2.0])]).largest_error == 0.0


@pytest.mark.parametrize(
    ("got", "wanted", "reason"),
    [
        ([np.zeros(3)], [np.zeros((3, 1))], "the result must have shape (3, 1); got (3,)"),
        ([np.zeros(())], [np.zeros(1)], "the result must have shape (1,); got a single number"),
        ([np.zeros(1)], [np.zeros(())], "the result must be a single number; got (1,)"),
        ([np.zeros(3), np.zeros(5)], [np.zeros(3), np.zeros(7)], "item 1 of the tuple must have shape (7,); got (5,)"),
        ([np.zeros(3)], [np.zeros(3), np.zeros(5)], "it must return a tuple of 2 arrays; got one array"),
        ([np.zeros(3), np.zeros(3)], [np.zeros(3)], "it must return one array; got a tuple of 2 arrays"),
        ([], [np.zeros(3)], "it must return one array; got a tuple of 0 arrays"),
    ],
)
def test_another_form_is_told_with_wanted_and_got(got, wanted, reason):
    assert compare(got, wanted).reason == reason


def test_roundings_of_the_inputs_are_no_mistake_where_they_cancel_and_anything_larger_is():
    zero, rounding = np.zeros(3), np.full(3, 4e-16)
    assert compare([rounding], [zero * 1e-20], largest_input=1.0) is None
    assert compare([rounding], [np.full(3, 1e-16)], largest_input=1.0) is None
    assert compare([rounding], [np.full(3, 1e-16)]) is not None
    assert compare([np.full(3, 1e-13)], [np.full(3, 1e-16)], largest_input=1.0) is not None
    assert compare([np.full(3, 1e-7, np.float32)], [np.full(3, 1e-16)], largest_input=1.0) is None
    assert compare([np.full(3, 1e-4, np.float32)], [np.full(3, 1e-16)], largest_input=1.0) is not None


def test_a_right_answer_whose_terms_cancel_passes_and_a_wrong_one_does_not():
    task = changed(
        WRITE,
        cases=lambda rng: [
            Case("equal entries", x=np.full((2, 5), 1000.1), scale=1.0),
            Case("others", x=rng.normal(size=(2, 5)), scale=1.0),
        ],
    )
    assert verdict_of(task, lambda x, scale: x * scale - sum(x[..., n, None] for n in range(5)) * scale * 0.2).passed
    assert not verdict_of(task, lambda x, scale: x * scale - x.mean(-1, keepdims=True) * scale * (1 - 1e-9)).passed


def test_roundings_are_measured_by_plain_numbers_and_lists_too():
    cases = [Case("plain", x=1000.1, others=[np.array([-1000.0])], axis=0, fill=np.inf)]
    task = changed(WRITE, cases=lambda rng: cases, answer=lambda x, others, axis, fill: np.asarray(x + others[0] - 0.1))
    assert abs(1000.1 - 1000.0 - 0.1) > 1e-14
    assert verdict_of(task, lambda x, others, axis, fill: np.zeros(1)).passed
    assert not verdict_of(task, lambda x, others, axis, fill: np.full(1, 1e-10)).passed
    only_plain = changed(task, cases=lambda rng: [Case("plain", x=1000.1)], answer=lambda x: np.asarray(x - 1000.0 - 0.1))
    assert verdict_of(only_plain, lambda x: 0.0).passed


# --- part of the points ------------------------------------------------------------------------------


SIZES = ((2, 3), (2, 3, 5))
TWO = changed(PAIR, partial=True, points=5, cases=lambda rng: [Case("", blocks=[rng.normal(size=n) for n in sizes]) for sizes in SIZES])


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (lambda blocks: (blocks[0].max() - 9, np.concatenate(blocks)), 2),  # half of 5, rounded down
        (lambda blocks: (np.concatenate(blocks).max(), np.concatenate(blocks)[:1]), 2),  # a wrong shape is wrong for its array alone
        (lambda blocks: (np.concatenate(blocks).min(), np.concatenate(blocks)), 2),  # also of a known mistake
        (lambda blocks: (np.concatenate(blocks).max() + (len(blocks) > 2), np.concatenate(blocks)), 2),  # right in one case alone
        (lambda blocks: (blocks[0].max() - 9, np.concatenate(blocks)[::-1]), 0),
        (lambda blocks: (np.concatenate(blocks).max(),), 0),
        (lambda blocks: 1 / 0, 0),
    ],
)
def test_each_array_that_is_right_in_every_case_counts_where_the_task_says_so(answer, points):
    verdict = verdict_of(TWO, answer)
    assert (verdict.passed, verdict.points, verdict.max_points) == (False, points, 5)
    assert ("1 of 2 arrays are right in every case: 2 of 5 points in class marks" in verdict.message) == bool(points)
    assert verdict_of(changed(TWO, partial=False), answer).points == 0


def test_three_of_four_gradients_count_three_quarters():
    def three(x, w_query, w_key, w_value, d_query, d_key, d_value):
        return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_value @ w_value.T

    task = get_task("projection-gradients")
    verdict = verdict_of(task, three)
    assert (verdict.points / task.points, verdict.passed) == (0.75, False)
    assert verdict.mistake == "only the path through the values"


# --- misuse ------------------------------------------------------------------------------------------


def test_results_must_match_the_cases_in_number():
    cases = WRITE.cases(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^results must hold one entry for each of the 3 cases; got 2$"):
        judge(WRITE, cases, [Result()] * 2)


def test_a_right_answer_that_fails_is_the_tasks_mistake_not_the_learners():
    def fails(x):
        raise ValueError("oops")

    with pytest.raises(
        ValueError, match=r"^the right answer of task repair-a-mean must hold in every case; my_mean raised ValueError: oops"
    ):
        verdict_of(changed(REPAIR, answer=fails), lambda x: x)
