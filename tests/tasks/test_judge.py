"""What passes, how arrays are compared, and what the judge refuses."""

import numpy as np
import pytest
import torch

from attn_course.tasks import Case, Result, judge
from attn_course.tasks.compare import compare
from tests.tasks.runs import verdict_of
from tests.tasks.toys import ALL, FIGURE, PAIR, PREDICT, REPAIR, WRITE, changed


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.kind)
def test_the_right_answer_gets_all_points_and_the_ok_line(task):
    verdict = verdict_of(task, task.handed_in(task.answer))
    assert (verdict.passed, verdict.points, verdict.max_points) == (True, task.points, task.points)
    assert (verdict.message, verdict.mistake, verdict.hint) == (task.ok_line, None, None)


def test_the_tolerance_goes_by_the_dtype_that_came():
    def off(error, dtype):
        return lambda x, scale: (WRITE.answer(x, scale) * (1 + error)).astype(dtype)

    assert verdict_of(WRITE, off(1e-6, np.float32)).passed
    assert not verdict_of(WRITE, off(1e-6, np.float64)).passed
    assert not verdict_of(WRITE, off(1e-4, np.float32)).passed
    assert verdict_of(changed(WRITE, tolerance=1e-3), off(1e-4, np.float64)).passed
    assert verdict_of(WRITE, off(1e-11, np.float64)).passed
    assert not verdict_of(WRITE, off(1e-7, np.float64)).passed


def test_a_list_is_as_good_as_a_tuple_where_several_results_are_wanted():
    assert verdict_of(PAIR, lambda blocks: list(PAIR.answer(blocks))).passed
    message = verdict_of(PAIR, lambda blocks: [*PAIR.answer(blocks), blocks[0]]).message
    assert "it must return a tuple of 2 arrays; got a tuple of 3 arrays" in message


@pytest.mark.parametrize("change", [lambda array: [array], list])
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
    assert not verdict_of(changed(REPAIR, answer=lambda x: x.mean()), lambda x: x.mean(keepdims=True)[0]).passed


@pytest.mark.parametrize("array", [[1.0, -2.0], [np.nan, 1.0], [np.inf, -np.inf, 0.0], [], [[0.0]], [1e300, -1e300], [5e-324]], ids=str)
def test_an_array_agrees_with_itself(array):
    assert compare([np.array(array)], [np.array(array)]) is None


@pytest.mark.parametrize(
    ("got", "wanted", "index"),
    [
        ([1.0, np.nan], [1.0, 2.0], (1,)),
        ([np.inf], [-np.inf], (0,)),
        ([1e300], [np.inf], (0,)),
        ([1.7e308], [-1.7e308], (0,)),
        ([[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.0], [3.0, 4.0]], (1, 1)),
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


def test_several_numbers_may_come_as_one_array():
    wanted = [np.asarray(number) for number in (3.0, 5.0, 7.0)]
    assert compare([np.array([3.0, 5.0, 7.0])], wanted) is None
    assert compare([np.array([3.0, 5.0, 8.0])], wanted).item == 2
    assert compare([np.array([3.0, 5.0])], wanted).reason == "it must return a tuple of 3 arrays; got one array"


def test_what_rounded_inputs_cost_the_right_answer_is_allowed_and_anything_larger_is_not():
    wanted = np.array([1.0, 2.0, 0.0])

    def miss(error, at=1, dtype=np.float32, nearby=lambda: [[np.array([1.0, 2.0001, 0.0])]]):
        got = wanted.copy()
        got[at] += error
        return compare([got.astype(dtype)], [wanted], nearby=nearby)

    assert miss(1e-3) is None
    assert miss(5e-3).index == (1,)
    assert miss(5e-2, nearby=lambda: [[np.array([1.0, 2.015, 0.0])]]).index == (1,), "a hundredth is too much whatever is lost"
    for nothing in (None, lambda: [[wanted]], lambda: [[wanted[:2] + 1e-4], []]):
        assert miss(1e-3, nearby=nothing).index == (1,), "another shape, or a result that never came, allows nothing"
    assert miss(2e-12, 2, np.float64) is None
    assert miss(2e-12, 2, np.float64, lambda: [[wanted]]).index == (2,), "an entry that is 0 has a few roundings only"
    assert miss(2e-12, 2, np.float64, None) is None
    assert compare([np.array([1e-12])], [np.zeros(1)]) is None


def test_nothing_is_allowed_where_the_right_answer_leaps():
    """Ties: a rounding of the inputs gives all weight to another key, and zeros would pass."""
    wanted, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert compare([np.float32([0.995, 0.0])], [wanted], nearby=lambda: [[other]]) is not None
    assert compare([np.float32([0.5, 0.5])], [wanted], nearby=lambda: [[np.full(2, np.nan)]]) is not None


def test_a_zero_may_be_asked_to_the_last_bit():
    wanted = np.array([0.5, 0.0])
    for least in (5e-324, -1e-30):
        assert compare([np.array([0.5, least])], [wanted], nearby=lambda: [[wanted]]) is None
        for near in (wanted, wanted + 1e-6):
            assert compare([np.array([0.5, least])], [wanted], nearby=lambda near=near: [[near]], exact_zeros=True).index == (1,)
    assert compare([np.float32([0.5, -0.0])], [wanted], exact_zeros=True) is None


def test_an_answer_that_remembers_by_shape_fails_though_it_is_right_the_first_time():
    known = {}

    def remembers(x, scale):
        return known.setdefault((x.shape, scale), WRITE.answer(x, scale)).copy()

    verdict = verdict_of(WRITE, remembers)
    assert not verdict.passed
    assert "“a matrix, called again with other numbers”" in verdict.message
    assert "Each first call is right: does it remember something of an earlier one?" in verdict.message
    message = verdict_of(WRITE, lambda x, scale: remembers(x, scale) if x.ndim != 3 else np.exp(x)).message
    assert "in the case “three axes”" in message  # not in one that is called again, though that comes first


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
    only_list = changed(task, cases=lambda rng: [Case("list", x=[1000.1])], answer=lambda x: np.asarray(x[0] - 1000.0 - 0.1))
    assert verdict_of(only_list, lambda x: 0.0).passed


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


def test_results_must_match_the_cases_in_number():
    cases = WRITE.cases(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^results must hold one entry for each of the 4 cases; got 2$"):
        judge(WRITE, cases, [Result()] * 2)


def test_a_right_answer_that_fails_is_the_tasks_mistake_not_the_learners():
    def fails(x):
        raise ValueError("oops")

    with pytest.raises(
        ValueError, match=r"^the right answer of task repair-a-mean must hold in every case; my_mean raised ValueError: oops"
    ):
        verdict_of(changed(REPAIR, answer=fails), lambda x: x)
