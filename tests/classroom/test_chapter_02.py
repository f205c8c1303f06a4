"""`attn-course check` on a real chapter: its solution, what is not answered, and the mistakes its tasks know."""

import json

import pytest

from attn_course.cli import main
from attn_course.numbers import cite
from attn_course.tasks import all_tasks, get_task
from tests.classroom import notebooks


@pytest.fixture
def check(root, tmp_path, monkeypatch, capsys):
    """Run `attn-course check` in the course's folder; return the exit code and the report on each task."""
    monkeypatch.chdir(root)

    def run(book, name="my softmax.ipynb"):
        code = main(["check", str(notebooks.save(book, tmp_path / name)), "--json", "-"])
        (report,) = json.loads(capsys.readouterr().out)["notebooks"]
        assert report["problems"] == []
        return code, {task["id"]: task for task in report["tasks"]}, report["points"]

    return run


def test_the_solution_earns_all_points_even_without_ids_and_under_another_name(check, root):
    code, tasks, points = check(notebooks.unmarked(notebooks.load(root, "solutions", "softmax")))
    assert code == 0
    assert list(tasks) == [task.id for task in all_tasks("softmax")]
    assert points == sum(task.points for task in all_tasks("softmax"))


def test_mistakes_are_named_a_restated_question_is_refused_and_what_is_untouched_is_unanswered(check, root):
    wrong_axis = (
        "def my_softmax(scores, axis):\n    e = np.exp(scores - scores.max(0, keepdims=True))\n    return e / e.sum(0, keepdims=True)"
    )
    restated = "import sympy\nz = sympy.symbols('z')\nmy_derivative = sympy.diff((delta_ij - s_j) * z, z)"
    answers = {"stable-softmax": wrong_axis, "log-softmax-derivative": restated}
    code, tasks, points = check(notebooks.answered(root, "softmax", answers))
    assert (code, points) == (1, 0)
    assert list(tasks) == [task.id for task in all_tasks("softmax")]
    known = next(wrong for wrong in get_task("stable-softmax").wrong if "axis" in wrong.name and "first" in wrong.name)
    named, refused = (tasks.pop(task) for task in answers)
    assert (named["mistake"], named["hint"]) == (known.name, known.hint)
    assert known.name in named["message"]
    assert "diff" in refused["message"]
    for name, task in tasks.items():
        assert (task["status"], task["mistake"], task["hint"]) == ("unanswered", None, cite(get_task(name).hints[0]))
