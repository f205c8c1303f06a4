"""From outcomes of cells to verdicts, without running anything."""

import pytest

from attn_course.checking.cells import Cell
from attn_course.checking.nbval_run import Outcome
from attn_course.checking.verdicts import make_report

SETUP, ANSWER, CHECK = 0, 1, 2
CELLS = (Cell("import numpy as np"), Cell("def twice", "answer", "twice"), Cell('check("twice", twice)', "check", "twice"))
FINE = Outcome(None, True, 0.25)


def judge(*outcomes, cells=CELLS, untouched=()):
    found = {position: outcome for position, outcome in enumerate(outcomes) if outcome is not None}
    report = make_report(cells, ["twice"], found, notebook="a.ipynb", timeout_s=60, seconds=1.0, untouched=untouched)
    return report.tasks[0], report.problems


def raised(name, text, **more):
    return Outcome("exception", True, 0.25, error_name=name, error_text=text, **more)


UNDEFINED = raised("NameError", "name 'twice' is not defined in line 1 of the cell")
KNOWN = {"task": "twice", "message": "this is “lost the sign”", "mistake": "lost the sign", "hint": "mind the sign"}


@pytest.fixture(autouse=True)
def _toy(toy_chapter):
    """All tests here know the toy tasks."""


def test_a_passed_check_earns_all_points():
    task, problems = judge(FINE, FINE, FINE)
    assert (task.status, task.points, task.max_points, task.hint, task.seconds) == ("passed", 2, 2, None, 0.5)
    assert problems == ()


def test_output_of_the_answer_beside_the_line_of_check_is_no_mistake_but_another_line_is_not_believed():
    task, _ = judge(FINE, FINE, Outcome("differs", True, 0.1, stdout="shape (5,)\nok: task 97.1, twice: 1 case, 2 points\n"))
    assert task.status == "passed"
    task, _ = judge(FINE, FINE, Outcome("differs", True, 0.1, stdout="ok\n"))
    assert (task.status, task.points) == ("not judged", 0)
    assert "redirect what is displayed" in task.message


def test_a_known_mistake_brings_its_name_and_hint_an_unknown_one_the_first_nudge_an_error_of_form_none():
    task, _ = judge(FINE, FINE, raised("CheckFailed", "...", verdict=KNOWN))
    assert (task.status, task.mistake, task.hint, task.message) == ("failed", "lost the sign", "mind the sign", "this is “lost the sign”")
    for told, hint in ((None, "first nudge for twice"), ("", None)):
        verdict = {"task": "twice", "message": "not right", "mistake": None, "hint": told}
        assert judge(FINE, FINE, raised("CheckFailed", "...", verdict=verdict))[0].hint == hint


def test_a_function_to_repair_that_nobody_touched_is_unanswered_and_no_mistake():
    task, _ = judge(FINE, FINE, raised("CheckFailed", "...", verdict=KNOWN), untouched={"twice"})
    assert (task.status, task.points, task.mistake, task.hint) == ("unanswered", 0, None, "first nudge for twice")
    assert task.message == "twice has no answer yet: its cell is as the exercise hands it out"
    assert judge(FINE, FINE, FINE, untouched={"twice"})[0].status == "passed"  # another cell may have mended it


@pytest.mark.parametrize("verdict", ["passed", {"task": "thrice", "message": "of another task"}, {"task": "twice", "message": 7}, [1]])
def test_a_verdict_of_another_form_or_task_is_not_used(verdict):
    task, _ = judge(FINE, FINE, raised("CheckFailed", "not right", verdict=verdict))
    assert (task.status, task.message) == ("failed", "CheckFailed: not right")


def test_an_answer_cell_that_fails_is_named_not_the_missing_name():
    task, problems = judge(FINE, raised("SyntaxError", "invalid syntax in line 3 of the cell"), UNDEFINED)
    assert task.status == "failed"
    assert task.message == "the answer cell does not run: SyntaxError: invalid syntax in line 3 of the cell"
    assert problems == ()


def test_an_answer_under_another_name_is_told_the_right_one():
    task, _ = judge(FINE, FINE, UNDEFINED)
    assert (task.status, task.message) == ("failed", "the answer cell does not define twice")


def test_a_deleted_answer_is_missing():
    task, _ = judge(FINE, UNDEFINED, cells=(CELLS[SETUP], CELLS[CHECK]))
    assert task.status == "missing"
    assert "a cell must define twice" in task.message


def lacks(name):
    message = f"twice raised NameError: name '{name}' is not defined in line 2 of twice: `return {name}.add(x, x)` in the case “c”"
    return raised("CheckFailed", "...", verdict={"task": "twice", "message": message, "mistake": None, "hint": None})


def test_a_failing_setup_cell_is_blamed_for_the_names_it_would_define():
    task, problems = judge(raised("ModuleNotFoundError", "No module named 'x'"), FINE, lacks("np"))
    assert (task.status, task.message, task.hint) == ("not judged", "code cell 1 fails, which would define np", None)
    assert [(p.cell, p.first_line, p.message) for p in problems] == [(1, "import numpy as np", "ModuleNotFoundError: No module named 'x'")]


def test_a_failing_cell_is_not_blamed_for_other_names_nor_one_that_stands_below():
    failing = raised("ModuleNotFoundError", "No module named 'x'")
    task, _ = judge(failing, FINE, lacks("nump"))
    assert (task.status, task.hint) == ("failed", "first nudge for twice")
    below = (*CELLS[ANSWER:], CELLS[SETUP])
    task, _ = judge(FINE, lacks("np"), failing, cells=below)
    assert task.status == "failed"


@pytest.mark.parametrize(
    "cell", [Cell("def twice(x): return 2 * x", "answer", "twice"), Cell("twice = abs"), Cell("from a import b as twice")]
)
def test_an_answer_that_is_defined_only_below_its_check_is_told_so(cell):
    task, _ = judge(FINE, UNDEFINED, FINE, cells=(CELLS[SETUP], CELLS[CHECK], cell))
    assert (task.status, task.points) == ("failed", 0)
    assert task.message == "twice is defined only below its check: a notebook is checked from top to bottom"
    task, _ = judge(FINE, FINE, UNDEFINED, FINE, cells=(CELLS[SETUP], Cell("a = 1", "answer", "twice"), CELLS[CHECK], cell))
    assert "only below its check" in task.message


def test_a_cell_below_that_fails_and_one_above_that_is_taken_back_define_nothing():
    task, _ = judge(FINE, UNDEFINED, raised("SyntaxError", "no"), cells=(CELLS[SETUP], CELLS[CHECK], Cell("twice = abs")))
    assert task.status == "missing"
    task, _ = judge(FINE, FINE, UNDEFINED, cells=(Cell("twice = abs"), Cell("del twice"), CELLS[CHECK]))
    assert task.status == "missing"


def test_a_cell_keeps_the_number_it_has_in_the_notebook_and_a_call_of_check_in_it_is_no_problem():
    cells = (Cell("1 / 0", number=4), *CELLS)
    _, problems = judge(raised("ZeroDivisionError", "division by zero"), FINE, FINE, FINE, cells=cells)
    assert problems[0].cell == 4
    assert judge(raised("CheckFailed", "not right"), FINE, FINE, FINE, cells=cells)[1] == ()


@pytest.mark.parametrize(("problem", "words"), [("timeout", "did not finish within 60 s"), ("died", "ended Python")])
def test_a_check_that_never_ends_or_ends_python_fails(problem, words):
    task, _ = judge(FINE, FINE, Outcome(problem, False, 60.0))
    assert task.status == "failed"
    assert words in task.message


def test_a_task_that_was_never_reached_is_not_judged():
    task, _ = judge(FINE, Outcome("died", False, 0.1), None)
    assert (task.status, task.message) == ("not judged", "Python had ended before this task")
