"""Exercises and solutions of a lesson whose tasks are written around their solutions: which cells there are, and what they say."""

import pytest

from attn_course.authoring import AuthoringError
from attn_course.authoring.course import Unit
from attn_course.authoring.series import Lesson
from attn_course.authoring.sheets import order_of, sheet
from attn_course.authoring.task_cells import to_exercise
from attn_course.tasks import Task
from attn_course.tasks.asked import asked, note
from attn_course.tasks.core import every
from tests.authoring.conftest import FACTS as TOY_FACTS
from tests.authoring.conftest import SLIPS

FACTS = {**TOY_FACTS, "equation": "softmax"}


@asked("double-it", "Double it", kind="write", points=2, slips=SLIPS, why="It is a sum.", **FACTS)
def my_double(x):
    """Twice x.

    Write `my_double(x)`, as in {eq}`softmax`.
    """
    return 2 * x


@asked("count-them", "Count them", kind="predict", points=1, slips=SLIPS, digits=3, variants=every(width=(3, 5)), **FACTS)
def my_count(width):
    """How many are $w$ pairs?"""
    return 2 * width


@asked("read-it", "Read it", kind="figure", points=3, slips=SLIPS, figure="charts.heatmap", figure_data=dict, tolerance=1e-3, **FACTS)
def my_reading():
    """What does the figure show?"""
    return 2.0


@asked("turn-it", "Turn it", kind="predict", points=1, slips=SLIPS, your_turn=True, then=note("turn-it-example", "As here."), **FACTS)
def my_turn():
    """What comes next?"""
    return 2.0


@asked("old-it", "Old it", kind="predict", points=1, slips=SLIPS, retired=True, digits=3, variants=every(width=(3, 5)), **FACTS)
def my_old(width):
    """What was $w$?"""
    return 2 * width


TASKS: dict[str, Task] = {task.id: task for task in (my_double, my_count, my_reading, my_turn, my_old)}
ORDER = [
    note("conventions", "Rows are positions."),
    "double-it",
    note("figures", "Now look."),
    "count-them",
    "read-it",
    "turn-it",
    "old-it",
]


def cells(order=ORDER, title="Doubling: more than a half"):
    return sheet("double", title, order, TASKS)


def text(cell_id, **options):
    return next(each.text for each in cells(**options) if each.id == cell_id)


def test_cells_stand_in_their_order_with_those_that_belong_to_no_task():
    assert [(each.id, each.kind, *each.tags) for each in cells()] == [
        ("title", "markdown"),
        ("conventions", "markdown"),
        ("setup", "code", "setup"),
        ("setup-check", "code"),
        *[("double-it-text", "markdown"), ("double-it", "code", "task"), ("double-it-check", "code", "check")],
        ("double-it-why", "markdown", "solution-only"),
        ("figures", "markdown"),
        *[("count-them-text", "markdown"), ("count-them-given", "code", "question")],
        *[("count-them", "code", "task"), ("count-them-check", "code", "check")],
        *[("read-it-text", "markdown"), ("read-it-figure", "code"), ("read-it", "code", "task"), ("read-it-check", "code", "check")],
        ("turns", "markdown", "solution-only"),
        *[("turn-it-text", "markdown"), ("turn-it-example", "markdown"), ("turn-it", "code", "task"), ("turn-it-check", "code", "check")],
        *[("retired", "markdown", "solution-only"), ("old-it-text", "markdown"), ("old-it-given", "code", "question")],
        *[("old-it", "code", "task"), ("old-it-check", "code", "check")],
    ]


def test_cells_with_one_id_are_refused():
    with pytest.raises(ValueError, match=r"^wanted cells with ids of their own, got conventions, turn-it-example a second time$"):
        cells([*ORDER, note("turn-it-example", "Once more."), note("conventions", "Again.")])


def test_the_title_counts_what_is_marked():
    assert text("title").startswith(
        "# Exercises {lesson}`double`: doubling\n\n"
        "Three tasks to the lesson [{lesson}`double` Doubling](../notebooks/{lesson}`double`_double.ipynb): "
        "6 points, about 15 minutes. Each stands for itself, so take them in any order.\n\n**How it works.** "
    )
    assert text("title", title="FlashAttention").startswith("# Exercises {lesson}`double`: FlashAttention\n\nThree tasks ")


def test_a_student_is_named_where_numbers_differ():
    assert text("setup-check").splitlines()[-1].startswith('STUDENT = ""')
    assert text("setup-check", order=["double-it"]) == "from attn_course import check"


def test_questions_say_how_exact_an_answer_must_be_and_figures_are_drawn():
    assert "\n\nHow many are $w$ pairs?\n\nThree correct digits, or an expression, are enough.\n\n<details>" in text("count-them-text")
    assert text("read-it-figure").splitlines() == [
        "from attn_course.figures import charts",
        "from attn_course.tasks import figure_data",
        "",
        'charts.heatmap(**figure_data("read-it"))',
    ]


def test_the_exercise_holds_no_answer_and_no_reason():
    exercise = {each.id: each.text for each in to_exercise(cells(), TASKS.__getitem__, "tasks.py")}
    assert not {"double-it-why", "turns", "turn-it", "turn-it-text", "retired", "old-it", "old-it-text", "old-it-given"} & {*exercise}


@pytest.fixture
def lesson(tmp_path):
    folder = tmp_path / "attn_course" / "lessons" / "double"
    folder.mkdir(parents=True)
    return lambda source: (folder / "tasks.py").write_text(source) and tmp_path


def test_the_order_of_tasks_is_read_and_not_run(lesson):
    root = lesson('import nowhere\nORDER = [note("title", "ORDER = "), "double-it", cell("x", "y"), "count-them"]\n')
    assert order_of(root, "double") == ["double-it", "count-them"]
    assert order_of(root, "triple") is None
    assert order_of(lesson("TASKS = []  # no ORDER = here\n"), "double") is None


def test_exercises_and_solutions_are_made_of_the_tasks_that_have_an_order(lesson):
    root = lesson('ORDER = ["double-it"]\n')
    solution, exercise, other = (Unit(root, folder, Lesson("double", "Double", 1)) for folder in ("solutions", "exercises", "notebooks"))
    assert [each.source_name for each in (solution, exercise)] == ["attn_course/lessons/double/tasks.py"] * 2
    assert (exercise.source_link, other.source_name) == ("../attn_course/lessons/double/tasks.py", "notebooks/src/double.py")


def test_a_file_that_is_no_python_is_told_with_its_line(lesson):
    with pytest.raises(AuthoringError, match=r"^attn_course/lessons/double/tasks\.py: line 2: wanted Python, got 'x = = 1'$"):
        order_of(lesson("ORDER = []\nx = = 1\n"), "double")
