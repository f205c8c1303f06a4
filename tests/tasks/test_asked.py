"""A task that is written around its solution: what is made of it, and where an author is told what is wrong."""

import inspect
import re

import numpy as np
import pytest

from attn_course.tasks import Wrong, assess
from attn_course.tasks.asked import TaskError, asked, tried
from attn_course.tasks.changed import slips
from attn_course.tasks.core import every
from attn_course.tasks.gates import digit_problems, share_problems, wrong_answer_problems

FACTS = {"equation": "softmax", "points": 2, "difficulty": 1, "minutes": 5, "trains": "nothing"}
HINTS = """
    the first, which
        goes on
    the second
    the third
"""
SLIPS = """
    not centred
        ` - x.mean(axis=-1, keepdims=True)` ->
        subtract the mean
    one mean for all
        axis=-1, keepdims=True ->
        each row has its own
    median
        x.mean -> np.median(x) + 0 * x.mean
        the mean is another
"""


def _matrix(normal, rows, columns):
    return {"x": normal(rows, columns)}


MATRICES = """
a matrix: 3 5
one row: 1 7
"""


def three_axes(rng):
    return {"x": rng.uniform(size=(2, 3, 5))}


def centre(x):
    """Rows without their mean.

    Write `centre(x)`, which subtracts from each row its mean.
    """
    return x - x.mean(axis=-1, keepdims=True)


def asking(function=centre, **changes):
    said = {"kind": "write", "slips": SLIPS, "hints": HINTS, "cases": tried(_matrix, MATRICES), **FACTS, **changes}
    return asked("centre-rows", "Centre the rows", **said)(function)


def test_a_function_becomes_a_task_whose_known_mistakes_are_told_by_name():
    task = asking(why="Means broadcast.")
    assert (task.id, task.title, task.entry, task.kind, task.answer) == ("centre-rows", "Centre the rows", "centre", "write", centre)
    assert task.hints == ["the first, which goes on", "the second", "the third"]
    assert [wrong.name for wrong in task.wrong] == ["not centred", "one mean for all", "median"]
    assert wrong_answer_problems(task) == []
    assert assess(task, centre).passed
    assert (task.sheet.question, task.sheet.why) == ("Write `centre(x)`, which subtracts from each row its mean.", "Means broadcast.")
    assert task.sheet.solution == inspect.cleandoc('''
        def centre(x):
            """Rows without their mean."""
            ### BEGIN SOLUTION
            return x - x.mean(axis=-1, keepdims=True)
            ### END SOLUTION
    ''')


def test_another_right_form_and_whole_functions_stand_among_the_slips():
    def with_numpy(x):
        """The same."""
        return x - np.mean(x, axis=-1)[..., None]

    task = asking(slips=[
        slips("the columns\n    axis=-1)[..., None] -> axis=0)\n    rows are the last axis", of=with_numpy),
        SLIPS,
        Wrong("nothing", lambda x: 0 * x, "that is nothing"),
    ])  # fmt: skip
    assert [wrong.name for wrong in task.wrong] == ["the columns", "not centred", "one mean for all", "median", "nothing"]
    assert wrong_answer_problems(task) == []


def test_cases_are_tables_and_functions_that_draw_inputs():
    task = asking(cases=[tried(_matrix, MATRICES), three_axes])
    drawn = task.cases(np.random.default_rng(0))
    assert [(case.name, case.inputs["x"].shape) for case in drawn] == [("a matrix", (3, 5)), ("one row", (1, 7)), ("three axes", (2, 3, 5))]
    assert all(0 <= number <= 1 for number in drawn[-1].inputs["x"].ravel())


def test_a_maker_of_cases_gets_the_generator_or_what_draws_normal_numbers_and_the_sizes():
    def numbers(rng, how_many, largest, word):
        return {"x": rng.uniform(0, largest, size=how_many), "word": word}

    (one,) = tried(numbers, "few, or two: 2 0.5 small")(np.random.default_rng(3))
    assert (one.name, one.inputs["word"], one.inputs["x"].shape) == ("few, or two", "small", (2,))
    np.testing.assert_array_equal(one.inputs["x"], np.random.default_rng(3).uniform(0, 0.5, size=2))
    (other,) = tried(_matrix, "m: 2 3")(np.random.default_rng(3))
    np.testing.assert_array_equal(other.inputs["x"], np.random.default_rng(3).normal(size=(2, 3)))


def test_a_table_whose_sizes_do_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"^the case “one row” does not fit _matrix: missing a required argument: 'columns'$"):
        tried(_matrix, "a matrix: 3 5\none row: 1")


def capacity(layers, width):
    r"""A cell holds $L$ layers. How many bytes are kept? Write `capacity`."""
    bytes_each = 2
    return layers * width * bytes_each / 7


CAPACITY = """
    bits
        bytes_each = 2 -> bytes_each = 16
        bytes are asked
    one layer
        layers * width -> width
        each layer keeps its own
    four bytes
        bytes_each = 2 -> bytes_each = 4
        half as many
"""


def predicting(function=capacity, **changes):
    said = {
        "kind": "predict",
        "variants": every(layers=(3, 5), width=(7, 11)),
        "digits": 3,
        "slips": CAPACITY,
        "hints": HINTS,
        **FACTS,
        **changes,
    }
    return asked("cache-bytes", "Bytes", **said)(function)


def test_what_a_function_returns_is_the_value_that_a_cell_names():
    task = predicting()
    assert task.sheet.question == "A cell holds $L$ layers. How many bytes are kept? Write `capacity`."
    assert task.sheet.solution == "### BEGIN SOLUTION\nbytes_each = 2\ncapacity = layers * width * bytes_each / 7\n### END SOLUTION"
    assert wrong_answer_problems(task) == []
    assert digit_problems(task) == []
    for each in task.each_variant():
        right = each.answer(**each.numbers)
        assert assess(each, float(f"{right:.3g}")).passed
        assert not assess(each, float(f"{right:.2g}") + (f"{right:.2g}" == f"{right:.3g}")).passed


def test_half_a_unit_of_the_last_promised_digit_is_allowed_and_no_more():
    def share():
        """Write `share`."""
        return 0.10374, 1234.5

    task = asked("two-numbers", "Two numbers", kind="predict", digits=3, hints=HINTS, **FACTS, slips="""
        first
            0.10374 -> 0.2
            a
        second
            1234.5 -> 2
            b
        both
            0.10374, 1234.5 -> 0.1, 2
            c
    """)(share)  # fmt: skip
    assert assess(task, (0.104, 1230.0)).passed
    assert assess(task, (0.10324, 1239.0)).passed
    assert not assess(task, (0.1032, 1230.0)).passed
    assert not assess(task, (0.104, 1240.0)).passed
    assert digit_problems(task) == []


def test_too_few_digits_for_a_known_mistake_are_found():
    close = CAPACITY + "    nearly\n        bytes_each = 2 -> bytes_each = 2.001\n        two\n"
    assert wrong_answer_problems(predicting(slips=close)) == [
        "with {'layers': 3, 'width': 7}: the known wrong answer “nearly” passes: it equals the right one in every case"
    ]


@pytest.mark.parametrize("broken", [["not centred"], "x.mean -> x.max", ["median", "axis=-1 -> axis=0"]])
def test_a_function_to_repair_holds_what_is_wrong_with_it(broken):
    task = asking(kind="repair", broken=broken)
    assert not assess(task, task.broken).passed
    assert task.handed_out.startswith('def centre(x):\n    """Rows without their mean."""\n    return ')
    assert "SOLUTION" not in task.handed_out
    assert wrong_answer_problems(task) == []


def test_one_known_mistake_in_ten_may_be_written_out():
    nine = "".join(f"    name {n}\n        x.mean -> {n} * x.mean\n        hint {n}\n" for n in range(2, 11))
    whole = Wrong("nothing", lambda x: 0 * x, "that is nothing")
    assert share_problems([asking(slips=[nine, whole])]) == []
    assert share_problems([asking(slips=[SLIPS, whole])]) == [
        "wanted at most one in ten of 4 known mistakes without a piece of text that it changes, got nothing"
    ]
    assert share_problems([asking(slips=SLIPS.replace("        x.mean ->", "        -> return"))]) != []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"slips": SLIPS.replace("x.mean -> np", "x.sum -> np")}, "the slip “median” wanted `x.sum` once (or all before it)"),
        ({"slips": SLIPS.replace("axis=-1, keepdims=True ->", "x -> y")}, "the slip “one mean for all” wanted `x` once (or all before it)"),
        (
            {"slips": SLIPS.replace("        subtract the mean\n", "")},
            "the slip “not centred”: wanted a line `old -> new` and a hint below it",
        ),
        ({"slips": "    alone\n        x.mean -> x.max\n        a hint\n"}, "task 'centre-rows' needs three or more known wrong answers"),
        ({"hints": "    one\n    two\n"}, "task 'centre-rows' needs three hints"),
        ({"kind": "repair"}, "centre: wanted broken=, the slips that are in it or a change"),
        ({"kind": "repair", "broken": ["no such slip"]}, "centre is broken by “no such slip”, which is no slip of its own"),
        ({"kind": "write", "digits": 3}, "task 'centre-rows' needs digits only if"),
        ({"colour": "red"}, "Task.__init__() got an unexpected keyword argument 'colour'"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_line(changes, why):
    with pytest.raises(TaskError) as caught:
        asking(**changes)
    assert re.match(r"tests/tasks/test_asked\.py: line \d+: ", str(caught.value))
    assert str(caught.value).partition(": line ")[2].partition(": ")[2].startswith(why)


@pytest.mark.parametrize("body", ["if layers: return 1\n    return 2", "total = 1"])
def test_a_value_has_one_return_behind_all_else(body, tmp_path):
    names, file = {"__name__": "made"}, tmp_path / "made.py"
    file.write_text(f'def capacity(layers):\n    """How many?"""\n    {body}\n')
    exec(compile(file.read_text(), str(file), "exec"), names)
    wrongs = [Wrong(name, lambda **numbers: 0, name) for name in "abc"]
    with pytest.raises(TaskError, match=r"^made\.py: line 1: capacity: wanted one return, behind all else$"):
        predicting(names["capacity"], slips=wrongs)
