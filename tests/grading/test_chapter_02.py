"""`attn-course check` on a real chapter: its solution, its untouched exercise, and the mistakes its tasks know."""

import json

import pytest

from attn_course.cli import main
from attn_course.numbers import cite
from attn_course.tasks import all_tasks, get_task


@pytest.fixture
def check(root, tmp_path, monkeypatch, capsys):
    """Run `attn-course check` in the course's folder; return the exit code and the report on each task."""
    monkeypatch.chdir(root)

    def run(notebook):
        code = main(["check", str(notebook), "--json", "-"])
        (report,) = json.loads(capsys.readouterr().out)["notebooks"]
        assert report["problems"] == []
        return code, {task["id"]: task for task in report["tasks"]}, report["points"]

    return run


@pytest.fixture
def edited_solution(root, tmp_path):
    """Write a copy of the solution in which some answer cells hold other text, without ids if that is wanted."""

    def edit(answers, *, with_ids=True):
        notebook = json.loads((root / "solutions" / "02_softmax.ipynb").read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = answers.get(cell["id"], cell["source"])
        if not with_ids:
            notebook["nbformat_minor"] = 4
            notebook["cells"] = [cell | {"id": None, "metadata": {}} for cell in notebook["cells"]]
        path = tmp_path / "my softmax.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path

    return edit


def test_the_solution_earns_all_points_even_without_ids_and_under_another_name(check, edited_solution):
    code, tasks, points = check(edited_solution({}, with_ids=False))
    assert code == 0
    assert list(tasks) == [task.id for task in all_tasks("softmax")]
    assert points == sum(task.points for task in all_tasks("softmax"))


def test_the_untouched_exercise_earns_nothing_and_every_task_is_named(check, root):
    code, tasks, points = check(root / "exercises" / "ex_02_softmax.ipynb")
    assert (code, points) == (1, 0)
    assert list(tasks) == [task.id for task in all_tasks("softmax")]
    for task_id, task in tasks.items():
        assert (task["status"], task["mistake"]) == ("unanswered", None)
        assert task["hint"] == cite(get_task(task_id).hints[0])


def test_mistakes_are_named_and_a_restated_question_is_refused(check, edited_solution):
    wrong_axis = (
        "def my_softmax(scores, axis):\n    e = np.exp(scores - scores.max(0, keepdims=True))\n    return e / e.sum(0, keepdims=True)"
    )
    restated = "import sympy\nz = sympy.symbols('z')\nmy_derivative = sympy.diff((delta_ij - s_j) * z, z)"
    code, tasks, _ = check(edited_solution({"stable-softmax": wrong_axis, "log-softmax-derivative": restated}))
    assert code == 1
    assert [task_id for task_id, task in tasks.items() if not task["passed"]] == ["stable-softmax", "log-softmax-derivative"]
    known = next(wrong for wrong in get_task("stable-softmax").wrong if "axis" in wrong.name and "first" in wrong.name)
    assert (tasks["stable-softmax"]["mistake"], tasks["stable-softmax"]["hint"]) == (known.name, known.hint)
    assert known.name in tasks["stable-softmax"]["message"]
    assert "diff" in tasks["log-softmax-derivative"]["message"]
