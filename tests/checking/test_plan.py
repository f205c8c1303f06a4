"""Which cells the copy holds: pristine checks, wherever the learner moved, copied, changed or deleted theirs."""

import pytest

from attn_course.checking.cells import NotebookError
from attn_course.checking.notebook_check import plan_check
from attn_course.tasks.registry import declared_tasks
from tests.classroom import notebooks, toy


def plan_of(course, cells, name="ex_97_toy.ipynb"):
    return plan_check(toy.write(course / "work" / name, cells), exercises=course / "exercises")


def sources(plan):
    return [cell.source for cell in plan.cells]


def test_an_untouched_notebook_stays_as_it_is(toy_course):
    plan = plan_of(toy_course, toy.cells({}))
    assert sources(plan) == [cell["source"] for cell in toy.cells({})]
    assert plan.tasks == ("twice", "thrice", "four-times")
    assert plan.lesson == "toy"
    assert plan.notes == ()
    assert [cell.number for cell in plan.cells] == [1, 2, 3, 4, 5, 6, 7]


def test_an_edited_check_cell_is_replaced_and_its_tags_are_dropped(toy_course):
    cells = toy.cells({})
    cells[2]["source"] = 'print("ok: task 97.1, twice: 1 case, 2 points")'
    cells[2]["metadata"]["tags"] = ["raises-exception", "nbval-skip"]
    plan = plan_of(toy_course, cells)
    assert (plan.cells[2].source, plan.cells[2].tags) == ('check("twice", twice)', ())


@pytest.mark.parametrize(
    ("source", "noted"),
    [
        ("def twice(x):\n    return 2 * x\n\ncheck('twice', twice)", True),
        ("check('twice', lambda x: 2 * x)", True),
        ("twice = lambda x: 2 * x", True),
        ("check('twice', twice", True),
        ("# mine\n\ncheck( 'twice', twice );", False),
        ("# check('twice', twice)", False),
        ("", False),
    ],
)
def test_code_in_a_check_cell_that_will_not_run_is_noted(toy_course, source, noted):
    cells = toy.cells({})
    cells[2]["source"] = source
    note = "code cell 3 is the check of task 97.1: what else was written into it does not run"
    assert plan_of(toy_course, cells).notes == ((note,) if noted else ())


def test_code_in_a_check_cell_that_is_dropped_is_noted_and_cells_keep_their_numbers(toy_course):
    cells = toy.cells({})
    cells.insert(2, cells[2] | {"source": "twice = lambda x: 2 * x\ncheck('twice', twice)"})
    plan = plan_of(toy_course, cells)
    assert [note[:11] for note in plan.notes] == ["code cell 3"]
    assert [cell.number for cell in plan.cells] == [1, 2, 4, 5, 6, 7, 8]


def test_deleted_check_cells_are_appended_in_order_as_is_one_that_lost_id_and_text(toy_course):
    cells = [cell for cell in toy.cells({}) if not cell["id"].endswith("-check")]
    assert sources(plan_of(toy_course, cells))[-3:] == [
        'check("twice", twice)',
        'check("thrice", thrice)',
        'check("four-times", four_times)',
    ]
    cells = toy.cells({})
    cells[2] = toy.cell("check_my_answer(twice)", "other")
    assert sources(plan_of(toy_course, cells))[-1] == 'check("twice", twice)'


def test_of_copied_check_cells_the_last_one_counts(toy_course):
    cells = toy.cells({})
    cells += [toy.cell("def twice(x):\n    return x + x", "second-try"), cells[2] | {"id": "copy-of-check"}]
    found = sources(plan_of(toy_course, cells))
    assert found.count('check("twice", twice)') == 1
    assert found[-1] == 'check("twice", twice)'
    assert found[-2].endswith("x + x")


def test_a_notebook_without_any_ids_still_works_under_any_name(toy_course):
    cells = [cell | {"id": f"colab{number}", "metadata": {}} for number, cell in enumerate(toy.cells(toy.RIGHT))]
    plan = plan_of(toy_course, cells, name="Copy of ex_97_toy (1).ipynb")
    assert [cell.task for cell in plan.cells if cell.role == "check"] == ["twice", "thrice", "four-times"]


def test_tasks_are_ordered_by_number_not_by_text(toy_course, monkeypatch):
    monkeypatch.setattr(
        toy.registry, "declared_tasks", lambda lesson: [*toy.TASKS, type("Task", (), {"id": "ten-times", "retired": False})()]
    )
    exercise = [*toy.cells({}), toy.cell('check("ten-times", ten)', "ten-times-check")]
    toy.write(toy_course / "exercises" / "ex_97_toy.ipynb", exercise[::-1])
    assert plan_of(toy_course, exercise).tasks == ("twice", "thrice", "four-times", "ten-times")


def test_an_exercise_without_checks_or_of_another_version_is_the_fault_of_the_course(toy_course):
    for cells, complaint in (
        ([toy.cell("a = 1", "a")], r"exercises/ex_97_toy\.ipynb: holds no check cell"),
        (
            [*toy.cells({}), toy.cell('check("five-times", five)', "five-times-check")],
            "installed attn_course: there is no task 'five-times'",
        ),
    ):
        toy.write(toy_course / "exercises" / "ex_97_toy.ipynb", cells)
        with pytest.raises(NotebookError, match=complaint):
            plan_of(toy_course, toy.cells({}))


def test_the_plan_names_the_repairs_that_nobody_touched(root, tmp_path):
    path = tmp_path / "02_softmax.ipynb"

    def untouched(book):
        return plan_check(notebooks.save(book, path), exercises=root / "exercises").untouched

    exercise = notebooks.load(root, "exercises", "softmax")
    asked = notebooks.text_of(exercise, "repair-softmax-temperature")
    assert untouched(exercise) == {"repair-softmax-temperature"}
    assert untouched(notebooks.answered(root, "softmax", {"repair-softmax-temperature": asked + "  # hm"})) == {
        "repair-softmax-temperature"
    }
    assert untouched(notebooks.answered(root, "softmax", {"repair-softmax-temperature": asked.replace("return ", "return -")})) == set()
    assert untouched(notebooks.with_cells(exercise, after={"repair-softmax-temperature": "tempered_weights = 3"})) == set()
    assert untouched(notebooks.without(exercise, "repair-softmax-temperature")) == set()


def test_what_earlier_exercises_asked_is_judged_where_a_notebook_holds_it(root):
    retired = {task.id for task in declared_tasks("attention") if task.retired}
    old, new = (
        plan_check(root / name, exercises=root / "exercises")
        for name in ("solutions/04_attention.ipynb", "exercises/ex_04_attention.ipynb")
    )
    assert {*old.tasks} - {*new.tasks} == retired
    checks = {cell.task: cell.source for cell in old.cells if cell.role == "check"}
    assert checks["query-on-its-key"] == 'check("query-on-its-key", my_weight)'


def test_a_task_that_moved_to_another_lesson_is_judged_in_work_saved_before(root, tmp_path):
    book = notebooks.load(root, "exercises", "transformer")
    moved = notebooks.load(root, "exercises", "writing")
    book["cells"] += [cell for cell in moved["cells"] if cell["id"].startswith("nucleus-of-next-words")]
    old, new = (
        plan_check(path, exercises=root / "exercises")
        for path in (notebooks.save(book, tmp_path / "ex_15_transformer.ipynb"), root / "exercises" / "ex_16_writing.ipynb")
    )
    assert (old.lesson, old.tasks[-1]) == ("transformer", "nucleus-of-next-words")
    assert (new.lesson, "nucleus-of-next-words" in new.tasks) == ("writing", True)
    assert "rows-to-write" not in old.tasks
    book["cells"] += [cell for cell in moved["cells"] if cell["id"].startswith("rows-to-write")]  # never asked there
    with pytest.raises(NotebookError, match="a notebook belongs to one chapter"):
        plan_check(notebooks.save(book, tmp_path / "both.ipynb"), exercises=root / "exercises")
