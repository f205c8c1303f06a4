"""Recognising a known mistake: by what it does in the cases that fail, and in those that pass."""

import numpy as np
import pytest

from attn_course.tasks import Case, Wrong
from tests.tasks.runs import verdict_of
from tests.tasks.toys import FIGURE, PAIR, PREDICT, WRITE, changed


def test_the_mistake_that_explains_most_of_the_missed_cases_is_named_with_a_case_it_explains():
    def answer(x, scale):  # two cases like "not scaled", three like "not centred"
        return x - x.mean(axis=-1, keepdims=True) if x.shape == (3, 5) else x * scale

    verdict = verdict_of(WRITE, answer)
    assert verdict.mistake == "not centred"
    assert verdict.message.startswith(
        "it looks like the mistake “not centred” in the case “three axes”, but not in every case that fails. The first wrong"
    )


def test_a_mistake_that_passes_where_the_answer_passes_is_recognised():
    wrong = [
        Wrong("not centred but for matrices", lambda x, scale: WRITE.answer(x, scale) if x.ndim == 2 else x * scale, "a"),
        *WRITE.wrong,
    ]
    verdict = verdict_of(changed(WRITE, wrong=wrong), wrong[0].function)
    assert verdict.mistake == "not centred but for matrices"
    assert verdict.message.startswith("this is the mistake “not centred but for matrices” in the case “three axes”. ")


def alike(function):
    return changed(WRITE, wrong=[Wrong(name, function, f"hint {name}") for name in "abc"])


def right_in_matrices(x, scale):
    return WRITE.answer(x, scale) if x.ndim == 2 else x * scale


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        pytest.param(WRITE, right_in_matrices, id="explains all that fails, but is wrong where the answer is right"),
        pytest.param(alike(lambda x, scale: x[7, 7] if x.ndim == 2 else x * scale), right_in_matrices, id="raises where the answer passes"),
        pytest.param(WRITE, lambda x, scale: x * scale if x.ndim == 1 else np.full_like(x, 7.0), id="explains fewer than half"),
        pytest.param(WRITE, lambda x, scale: x * np.nan if x.ndim > 1 else np.cos(x), id="a guess that does not explain every case"),
        pytest.param(alike(WRITE.answer), lambda x, scale: WRITE.answer(x, scale) * (1 if x.ndim == 2 else 5), id="explains what is right"),
    ],
)
def test_a_mistake_that_does_not_explain_an_answer_is_not_named(task, answer):
    verdict = verdict_of(task, answer)
    assert (verdict.passed, verdict.mistake, verdict.hint) == (False, None, None)


def test_of_two_mistakes_that_explain_as_much_the_first_listed_is_named():
    assert verdict_of(alike(lambda x, scale: x), lambda x, scale: x).mistake == "a"


def test_a_known_wrong_answer_that_raises_is_passed_over():
    def breaks(x, scale):
        raise ValueError

    wrong = [Wrong("raises", breaks, "a"), *WRITE.wrong]
    assert verdict_of(changed(WRITE, wrong=wrong), lambda x, scale: x * scale).mistake == "not centred"


ONE_NUMBER = changed(PAIR, cases=lambda rng: [Case("always the same", blocks=[np.arange(3.0)])])


@pytest.mark.parametrize(
    ("task", "name", "opening"),
    [
        (FIGURE, "twice", "this may be"),  # one number may agree by chance
        (PREDICT, "all zero", "this may be"),  # so have zeros
        (ONE_NUMBER, "the smallest", "this may be"),
        (PAIR, "the smallest", "this is"),
        (PAIR, "the first block", "this is"),
        (WRITE, "not scaled", "this is"),
        (WRITE, "no number at all", "this may be"),  # NaN has many causes
    ],
)
def test_a_name_that_rests_on_one_number_on_zeros_or_on_nan_is_a_guess(task, name, opening):
    (wrong,) = [wrong for wrong in task.wrong if wrong.name == name]
    verdict = verdict_of(task, task.handed_in(wrong.function))
    assert verdict.message.startswith(f"{opening} the mistake “{name}”")
    assert (verdict.mistake, verdict.hint) == (name, wrong.hint)


def test_every_shape_is_checked_before_any_number():
    def answer(x, scale):  # two cases like "not centred", and a wrong shape in the last
        return x * scale if x.ndim > 1 else x[:, None]

    verdict = verdict_of(WRITE, answer)
    assert verdict.mistake is None
    assert verdict.message.startswith("my_centre is not right in the case “a vector”. Shape or form: the result must have shape (11,)")
