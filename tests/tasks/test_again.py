"""An answer that remembers an earlier call fails, whatever it remembers; and nothing is asked that a task does not promise."""

import numpy as np
import pytest

from attn_course.tasks import Case, all_tasks, get_task
from attn_course.tasks.again import AGAIN, _relations, first_name
from attn_course.tasks.core import CHECK_SEED
from attn_course.tasks.gates import Bench
from attn_course.tasks.registry import lessons
from tests.tasks.toys import WRITE, changed

LESSONS = lessons()
NOTHING_TO_REMEMBER = {  # arguments of which the result shows nothing, or that the shapes of others tell
    ("chunked-linear-attention", "chunk"): "any chunk gives the same",
    ("repair-tiled-loop", "block"): "any block gives the same",
    ("step-with-kept-keys", "n_heads"): "the keys have an axis of heads",
    ("leak-test", "x"): "what leaks depends on the layer, and on x by its shape alone",
}


def shapes(value):
    if isinstance(value, (list, tuple)):
        return tuple(map(shapes, value))
    return value.shape if isinstance(value, np.ndarray) else type(value)


def frozen(function, place):
    """Takes an argument of the first call that had the same shapes."""
    first = {}
    return lambda *given: function(*(first.setdefault(shapes(given), value) if n == place else value for n, value in enumerate(given)))


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_answer_that_remembers_an_argument_fails_and_one_that_does_not_passes(lesson):
    wrong, forgiven = [], set()
    for task in (task for task in all_tasks(lesson) if task.wants_function):
        bench, whole = Bench(task), {}

        def all_kept(*given, task=task, whole=whole):
            return whole.setdefault(shapes(given), task.answer(*given))

        wrong += [task.id] * (not bench.verdict(task.answer).passed or bench.verdict(all_kept).passed)
        names = [*bench.cases[0].inputs]
        forgiven |= {(task.id, name) for place, name in enumerate(names) if bench.verdict(frozen(task.answer, place)).passed}
    assert wrong == []
    assert forgiven <= {*NOTHING_TO_REMEMBER}


def test_the_calls_follow_at_once_and_say_what_is_other():
    names = [case.name for case in get_task("rotary-positions").draw(np.random.default_rng(CHECK_SEED))]
    assert names[:3] == [names[0], f"{names[0]}, called again with other numbers", f"{names[0]}, called again with another positions"]
    assert [name for name in map(first_name, names) if name == names[0]] == [names[0]] * 3


def drawn(cases, **task):
    made = changed(WRITE, cases=cases, **task)
    return {case.name: case.inputs for case in made.draw(np.random.default_rng(3))}


def test_a_whole_number_that_must_divide_a_size_still_does():
    def cases(rng):
        return [Case(f"{n} of {size}", x=rng.normal(size=(3, size)), n=n) for n, size in ((2, 6), (3, 12), (5, 10), (1, 7))]

    found = drawn(cases, answer=lambda x, n: x.reshape(3, n, -1).sum(axis=1))
    others = [inputs for name, inputs in found.items() if f"{AGAIN}another n" in name]
    assert len(others) == 3  # 7 has no other divisor among those that occur
    assert all(inputs["x"].shape[1] % inputs["n"] == 0 for inputs in others)


def test_whole_numbers_keep_their_sum_and_their_bound():
    def cases(rng):
        return [Case(f"{parts}", x=rng.normal(size=(sum(parts), 2)), parts=np.array(parts)) for parts in ([4, 3], [2, 6, 1], [5])]

    found = drawn(cases, answer=lambda x, parts: np.add.reduceat(x, np.cumsum([0, *parts[:-1]])))
    assert {name for name in found if "another parts" in name} == {f"[4, 3]{AGAIN}another parts", f"[2, 6, 1]{AGAIN}another parts"}
    assert all(inputs["parts"].sum() == len(inputs["x"]) for inputs in found.values())


def test_a_number_that_names_a_kind_and_what_would_spoil_a_result_stay_as_they_are():
    def cases(rng):
        padded = np.append(rng.normal(size=(2, 3)), np.full((2, 2), np.nan), axis=1)
        return [
            Case("padded", x=padded, real=np.array([3, 3]), kind=7),
            Case("whole", x=rng.normal(size=(1, 5)), real=np.array([5]), kind=9),
        ]

    def answer(x, real, kind):
        return np.array([row[:n].sum() for row, n in zip(x, real, strict=True)])

    found = drawn(cases, answer=answer)
    assert all(np.isfinite(answer(**inputs)).all() for inputs in found.values())
    assert {inputs["kind"] for name, inputs in found.items() if name.startswith("padded")} == {7}


def test_a_relation_is_kept_only_if_it_holds_in_every_case():
    inputs = [{"x": np.zeros((2, 6)), "n": 2}, {"x": np.zeros((3, 9)), "n": 3}]
    hows = {(relation.how, relation.names) for relation in _relations(inputs)}
    assert {("divides", ("n", "x[-1]")), ("equal", ("n", "x[-2]"))} <= hows
    hows = {(relation.how, relation.names) for relation in _relations([*inputs, {"x": np.zeros((3, 7)), "n": 2}])}
    assert ("below", ("n", "x[-1]")) in hows
    assert not {("divides", ("n", "x[-1]")), ("equal", ("n", "x[-2]"))} & hows


def test_a_case_of_which_nothing_can_be_other_is_called_once():
    found = drawn(lambda rng: [Case("fixed", x=np.zeros((2, 3)), scale=0.0), Case("free", x=rng.normal(size=(2, 3)), scale=2.0)])
    assert [*found] == ["fixed", "free", f"free{AGAIN}other numbers", f"free{AGAIN}another scale"]
