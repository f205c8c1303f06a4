"""What the words of the tasks promise is drawn: each promise is read in some text, is kept there, and is missed where the cases go."""

import re
from functools import cache

import numpy as np
import pytest

from attn_course.tasks import Case, all_tasks, gates, get_task
from attn_course.tasks.again import first_name
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.promises import PROMISES, Drawn, Promise, lowest_score, told, untold
from tests.exercises import answers
from tests.notebooks.chapters import ROOT
from tests.tasks.toys import REPAIR, changed

TASKS = [task for task in all_tasks() if task.wants_function]
CHANGES = (lambda value: -1e7 * value, lambda value: 0 * value, lambda value: 1 + 0 * value)


@cache
def shown(task_id: str) -> str:
    """The question and the head of the function, as the solution has them."""
    question, code = answers.shown(ROOT, task_id)
    return " ".join(f"{question}\n{code.partition('### BEGIN')[0]}".split())


@cache
def drawn(task_id: str) -> list[Drawn]:
    task, text = get_task(task_id), shown(task_id)
    bench = gates.Bench(task)
    return [
        Drawn(case.inputs, text, result.arrays)
        for case, result in zip(bench.cases, bench.expect(task, task.answer, bench.cases), strict=True)
        if first_name(case.name) == case.name
    ]


def holds(promise: Promise, said: re.Match[str], each: Drawn) -> bool:
    return gates.kept(promise._replace(always=False), said, [each])


def spoilt(each: Drawn) -> list[Drawn]:
    """The case with its arrays changed beyond what any text promises: in numbers, to squares, and all but the first to one row."""
    arrays = {name: value for name, value in each.inputs.items() if isinstance(value, np.ndarray)}
    others = [{name: change(value) for name, value in arrays.items()} for change in CHANGES]
    others.append({name: value[:2, :2] for name, value in arrays.items() if value.ndim == 2})
    others.append({name: value[:1] for name, value in list(arrays.items())[1:]})
    return [Drawn({**each.inputs, **other}, each.text, each.results) for other in others]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.means)
def test_a_promise_is_missed_if_the_cases_that_keep_it_are_taken_away(promise, monkeypatch):
    monkeypatch.setattr(gates, "SEEDS", (CHECK_SEED,))
    read = [(task, match) for task in TASKS for each, match in told(shown(task.id)) if each is promise]
    assert read, "no text says this: take the entry away"
    for task, match in read:
        others = [each for each in drawn(task.id) if not holds(promise, match, each)]
        if not promise.always and others:
            left = changed(task, cases=lambda rng, others=others: [Case(str(n), **each.inputs) for n, each in enumerate(others)])
            assert any(promise.means in said for said in gates.promise_problems(left, shown(task.id)))
            return
    task, match = read[0]
    with np.errstate(all="ignore"):
        assert not all(holds(promise, match, each) for case in drawn(task.id) for each in spoilt(case)), "nothing can break this"


@cache
def solved(task_id: str) -> str:
    """The cell of the solution that answers a task."""
    return answers.shown(ROOT, task_id)[1]


def fills(task) -> list[str]:
    names = {"np": np, **{given.__name__: given for given in task.given}}
    return gates.fill_problems(task, [solved(task.id)], names, shown(task.id))


@pytest.mark.parametrize("task", [task for task in TASKS if "-np.inf" in solved(task.id)], ids=lambda task: task.id)
def test_no_number_answers_a_task_in_the_place_of_minus_infinity(task):
    assert fills(task) == []


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


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_empty_rows_are_told_and_drawn(task):
    assert gates.empty_row_problems(task, shown(task.id)) == []


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_each_task_keeps_its_promises(task):
    assert gates.promise_problems(task, shown(task.id)) == []


def test_a_promise_that_no_entry_reads_is_reported():
    assert gates.promise_problems(REPAIR, "Rows are short. `x` may be as blue as it likes.") == [
        "the text says “`x` may be as blue as it likes”: wanted an entry in tasks.promises that says which cases show it"
    ]
    assert untold("You may use a loop. Scores may be near -900.") == []


def test_what_a_text_says_of_every_case_must_hold_in_every_case():
    low = changed(REPAIR, cases=lambda rng: [Case("one", scores=rng.normal(size=(3, 5))), Case("other", scores=np.full((2, 3), 400.0))])
    assert gates.promise_problems(changed(low, answer=lambda scores: scores.mean(axis=-1)), "Scores are moderate.") == [
        "the text says “Scores are moderate”: wanted in every case moderate scores"
    ]


@pytest.mark.parametrize(
    ("text", "lowest"),
    [
        ("Nothing is said of them.", -np.inf),
        ("Scores are moderate.", -100.0),
        ("Scores may have any size and sign, near 1000 or not.", -np.inf),
        ("Scores may lie anywhere between $-1000$ and 1000.", -1000.0),
        ("Scores of real keys may be near -30 000. The others hold 1 or 7.", -30_000.0),
        ("A row may hold only scores near $-10^{12}$.", -1e12),
    ],
)
def test_how_low_a_score_can_be_is_read_in_the_text(text, lowest):
    assert lowest_score(text) == lowest


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
        REPAIR,
        answer=lambda x, mask: x * mask,
        cases=lambda rng: [Case("one", x=rng.normal(size=(3, 5)), mask=np.ones((3, 5), bool))],
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
