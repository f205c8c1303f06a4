"""What questions promise is drawn: marks name the cases that show it, hidden rows are drawn, and no number stands in for minus infinity."""

import re
from functools import cache

import numpy as np
import pytest

from attn_course.tasks import Case, all_tasks, gates, get_task
from attn_course.tasks.promises import MARK
from tests.exercises import answers
from tests.notebooks.chapters import ROOT
from tests.tasks.toys import REPAIR, changed

TASKS = [task for task in all_tasks() if task.wants_function]


def shown(task_id: str) -> str:
    """The question and the head of the function, as the solution has them."""
    question, code = answers.shown(ROOT, task_id)
    return " ".join(f"{question}\n{code.partition('### BEGIN')[0]}".split())


def test_each_question_says_which_cases_keep_its_promises_and_what_becomes_of_empty_rows():
    assert sum(len(MARK.findall(task.sheet.asks)) for task in TASKS) > 70
    assert not any(MARK.search(task.sheet.question) for task in TASKS)
    found = {task.id: gates.promise_problems(task, shown(task.id)) + gates.empty_row_problems(task, shown(task.id)) for task in TASKS}
    assert {task_id: problems for task_id, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Rows are short. `x` may be as blue as it likes.", "the text says “`x` may be as blue as it likes.”: wanted a mark behind it"),
        ("`x` may be low {case}`a row`, and may be blue; all is real.", "“, and may be blue;”: wanted a mark"),
        ("`x` may be low. It is blue {case}`a row`.", "“`x` may be low.”: wanted a mark"),
        ("Rows may be blue {case}`a blue row`.", "the text says that “a blue row” shows it: wanted the name of a case"),
        ("`x` is low {every}`x.max() < 1e-9`.", "the text says that in every case x.max() < 1e-9: it is not so in “a matrix"),
        ("`x` has one row {every}`len(x) == 1`.", "it is not so in “a matrix”"),
        ("`x` is `(..., T)`.", "the text shows leading axes: wanted cases with none, one and two of them"),
        ("`x` is `(..., T)` with none or one leading axis.", "the text shows leading axes: wanted cases with none and one of them"),
        (r"`x` is $(\ldots, T)$.", "wanted cases with none, one and two"),
    ],
)
def test_a_promise_that_no_case_keeps_is_reported(text, problem):
    assert problem in " ".join(gates.promise_problems(REPAIR, text))


@pytest.mark.parametrize(
    "text",
    [
        "`x` may be low {case}`a matrix`, long\n    {case}`a row`; it may be of any width {case}`any`.",
        "`x` holds at least two numbers {every}`x.size > 1` {case}`a row`. A row may consist of zeros only.",
    ],
)
def test_a_mark_behind_the_words_of_a_promise_keeps_it(text):
    assert gates.promise_problems(REPAIR, text) == []


@cache
def solved(task_id: str) -> str:
    return answers.shown(ROOT, task_id)[1]


def fills(task) -> list[str]:
    names = {"np": np, **{given.__name__: given for given in task.given}}
    return gates.fill_problems(task, [solved(task.id)], names, shown(task.id))


def test_no_number_answers_a_task_in_the_place_of_minus_infinity():
    hiding = [task for task in TASKS if "-np.inf" in solved(task.id)]
    assert len(hiding) > 10
    assert {task.id: found for task in hiding if (found := fills(task))} == {}


@pytest.mark.parametrize(
    ("task_id", "low", "passes"),
    [
        ("repair-column-mask", "2^40", {"-10000", "-1e+09"}),
        ("streamed-attention", "20 000", {"-10000"}),
        ("repair-tiled-loop", "20 000", {"-10000"}),
        ("repair-padded-batch", "2^15", {"-10000"}),
    ],
)
def test_a_number_would_do_but_for_one_case_of_low_scores(task_id, low, passes):
    task = get_task(task_id)
    left = changed(task, cases=lambda rng: [case for case in task.cases(rng) if low not in case.name])
    assert {re.search("passes with (.+?) in", said)[1] for said in fills(left)} == passes


def _share(x: np.ndarray) -> np.ndarray:
    total = x.sum(axis=-1, keepdims=True)
    return x / np.where(total == 0, 1, total)


FULL, EMPTY = np.arange(1.0, 16.0).reshape(3, 5), np.zeros((2, 7))
ONE_EMPTY = FULL * np.array([[1.0], [0.0], [1.0]])
SAID = "A row may consist of zeros only: its shares are 0."


@pytest.mark.parametrize(
    ("arrays", "problems"),
    [
        ((FULL, ONE_EMPTY, EMPTY), []),
        ((FULL, EMPTY), ["the text says “zeros only”: wanted rows of which all is hidden among others, got none"]),
        ((FULL, ONE_EMPTY), ["the text says “zeros only”: wanted rows of which all is hidden in a case of nothing else, got none"]),
    ],
)
def test_rows_of_which_all_is_hidden_are_drawn_alone_and_among_others(arrays, problems):
    task = changed(REPAIR, answer=_share, cases=lambda rng: [Case(str(n), x=x) for n, x in enumerate(arrays)])
    assert gates.empty_row_problems(task, SAID) == problems


def test_what_a_judge_overlooks_in_empty_rows_is_reported(monkeypatch):
    task = changed(REPAIR, answer=_share, cases=lambda rng: [Case(str(n), x=x) for n, x in enumerate((FULL, ONE_EMPTY, EMPTY))])
    kind = gates.judge(task, gates.Bench(task).cases, gates.Bench(task).expect(task, _share, gates.Bench(task).cases))
    monkeypatch.setattr(gates, "judge", lambda *arguments, **options: kind)
    wheres = ("among others", "in a case of nothing else")
    assert gates.empty_row_problems(task, SAID) == [
        f"{other} in rows of which all is hidden {where} passes" for where in wheres for other in ("nan", "1")
    ]


def test_a_text_that_is_silent_where_a_mask_can_hide_a_row_is_reported():
    task = changed(
        REPAIR, answer=lambda x, mask: x * mask, cases=lambda rng: [Case("one", x=rng.normal(size=(3, 5)), mask=np.ones((3, 5), bool))]
    )
    (said,) = gates.empty_row_problems(task, "Hidden entries are 0.")
    assert said == "wanted the text to say what becomes of a row of which mask may hide all, or that there is none"


def _turned(x, positions, wide, dtype):
    angles = positions[:, None].astype(wide) * (10_000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])).astype(wide)
    cos, sin = (f(angles).astype(dtype) for f in (np.cos, np.sin))
    x = x.astype(dtype)
    return np.stack([x[:, ::2] * cos - x[:, 1::2] * sin, x[:, ::2] * sin + x[:, 1::2] * cos], axis=-1).reshape(x.shape)


@pytest.mark.parametrize("seed", gates.SEEDS)
def test_a_rotation_may_be_narrow_but_its_angles_may_not(seed):
    """As the text says: the result in float32, the angles in float64."""
    bench = gates.Bench(get_task("rotary-positions"), seed)
    for dtype in (np.float32, np.float64):
        assert bench.verdict(lambda x, positions, dtype=dtype: _turned(x, positions, np.float64, dtype)).passed
        assert not bench.verdict(lambda x, positions, dtype=dtype: _turned(x, positions, np.float32, dtype)).passed
