"""Numbers of a student's own: which they are, what the notebook prints, and by which an answer is judged."""

import types

import pytest

from attn_course import question
from attn_course.tasks import CheckFailed, Wrong, all_tasks, check, figure_data, gates, get_task, variants
from attn_course.tasks.core import every
from attn_course.tasks.judge import expected
from tests.tasks.toys import DERIVE, FIGURE, PREDICT, WRITE, changed

WINDOW = "window-counts"
VARIED = changed(
    PREDICT,
    variants=every(n=(100, 200), w=(7, 9)),
    answer=lambda n, w: n * w,
    wrong=[
        Wrong("the sum", lambda n, w: n + w, "multiply"),
        Wrong("the difference", lambda n, w: n - w, "multiply them"),
        Wrong("the ratio", lambda n, w: n / w, "multiply both"),
    ],
)
WITH_VARIANTS = [task for task in all_tasks() if len(task.variants) > 1]


@pytest.fixture
def student(monkeypatch):
    def is_now(value):
        monkeypatch.setattr(variants, "shell", lambda: types.SimpleNamespace(user_ns={"STUDENT": value}))

    return is_now


def test_each_combination_is_a_variant_and_the_first_of_all_is_the_solutions():
    assert every(n=(100, 200), w=(7, 9)) == [{"n": n, "w": w} for n in (100, 200) for w in (7, 9)]
    assert VARIED.numbers == {"n": 100, "w": 7}
    assert VARIED.variant("") is VARIED
    assert WRITE.variant("ada") is WRITE


def test_a_student_always_gets_the_same_numbers_and_never_those_of_the_solution():
    drawn = [VARIED.variant(f"student {n}").numbers for n in range(60)]
    assert drawn == [VARIED.variant(f"student {n}").numbers for n in range(60)]
    assert sorted(map(str, VARIED.variants[1:])) == sorted({str(numbers) for numbers in drawn})
    assert get_task(WINDOW).variant("ada").numbers == {"T": 80, "w": 6}  # in every process and on every machine: no hash of Python's


def test_two_tasks_do_not_go_together():
    other = changed(VARIED, id="another-task")
    pairs = {(str(VARIED.variant(f"{n}").numbers), str(other.variant(f"{n}").numbers)) for n in range(60)}
    assert len(pairs) == (len(VARIED.variants) - 1) ** 2


def test_the_notebook_prints_the_numbers_of_its_student_and_names_them(student, capsys):
    assert get_task(WINDOW).question_source == 'from attn_course import question\n\nT, w = question("window-counts")'
    assert question(WINDOW) == (100, 7)  # outside a notebook, as in the solution
    student("ada")
    assert question(WINDOW) == (80, 6)
    assert capsys.readouterr().out == "T = 100, w = 7\nada: T = 80, w = 6\n"
    student(" ada ")
    assert question(WINDOW) == (80, 6)


def test_a_task_without_such_numbers_and_a_student_without_quotes_are_told_apart(student):
    for task in ("stable-softmax", "read-mask"):
        with pytest.raises(
            ValueError, match=rf"^task_id must name a task whose numbers differ; those of {task} are in its text or figure$"
        ):
            question(task)
    student(17)
    with pytest.raises(TypeError, match=r"^STUDENT must be your id in quotation marks, such as 'ann'; got 17$"):
        question(WINDOW)


def test_a_check_goes_by_the_students_numbers(student, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(WINDOW, (772, 15))
    student("ada")
    own = get_task(WINDOW).variant("ada")
    (right,) = expected(own, own.answer, own.cases(None))
    check(WINDOW, right.arrays[0])
    assert capsys.readouterr().out == f"{own.ok_line}\n" * 2
    with pytest.raises(CheckFailed, match="my_count is not right"):
        check(WINDOW, (772, 15))
    with pytest.raises(CheckFailed, match="this may be the mistake “the first rows counted as full”"):
        check(WINDOW, (80 * 7, right.arrays[0][1]))


def test_a_figure_is_the_students_own(student, monkeypatch):
    task = changed(FIGURE, variants=[{"height": height} for height in (4.0, 5.0)], figure_data=lambda height: {"heights": [height]})
    monkeypatch.setattr(variants, "get_task", lambda task_id: task)
    assert figure_data(task.id) == {"heights": [4.0]}
    student("ada")
    assert figure_data(task.id) == {"heights": [5.0]}
    assert task.question_source == ""


def test_a_hint_that_says_a_number_of_one_student_is_reported():
    (problem,) = gates.text_problems(changed(VARIED, hints=("a", "100 times 7", "c")), ["softmax"])
    assert problem == "wanted no number of one student in what all read, got 100 in '100 times 7'"
    assert gates.text_problems(changed(VARIED, hints=("a", "1000 times 7, or 100.5", "n_100")), ["softmax"]) == []


def test_a_solution_that_is_right_for_its_own_numbers_only_is_reported():
    assert gates.variant_problems(VARIED, "my_numbers = n * w", {}) == []
    (problem,) = gates.variant_problems(VARIED, "my_numbers = 700", {})
    assert problem.startswith("the solution is refused with {'n': 100, 'w': 9}: ")


def test_every_predict_task_has_variants_and_no_two_of_them_the_same_answer():
    assert [task.id for task in all_tasks() if task.kind == "predict" and len(task.variants) < 6] == []
    for task in WITH_VARIANTS:
        answers = [expected(each, each.answer, each.cases(None))[0].arrays[0].tolist() for each in task.each_variant()]
        assert sum(answer == answers[0] for answer in answers) <= len(answers) / 3, task.id


def test_numbers_have_names_that_no_other_task_of_the_lesson_gives():
    symbolic = changed(DERIVE, symbols=("n", "x"))
    assert gates.name_problems([VARIED, DERIVE]) == []
    assert gates.name_problems([VARIED, symbolic]) == [
        (VARIED.id, f"wanted a name of its own for each of its numbers, got n, which {symbolic.id} gives too")
    ]
