"""A class with the real grader, end to end: processes of a pool, sandboxed workers, secret cases."""

import json

import pytest

from attn_course.grading.class_engines import Pool
from attn_course.grading.grader import Grader
from attn_course.grading.sandbox import probe
from attn_course.tasks import all_tasks
from tests.grading.class_tools import grade


@pytest.mark.usefixtures("without_pictures")
def test_solutions_get_all_points_exercises_none_and_a_wrong_answer_its_name(root, tmp_path):
    solution = json.loads((root / "solutions" / "02_softmax.ipynb").read_text())
    for student in ("ann", "bob", "eve"):
        (tmp_path / "in" / student).mkdir(parents=True)
    (tmp_path / "in" / "ann" / "my softmax.ipynb").write_text(json.dumps(solution))
    (tmp_path / "in" / "bob" / "02_softmax.ipynb").write_bytes((root / "exercises" / "ex_02_softmax.ipynb").read_bytes())
    answer = next(cell for cell in solution["cells"] if cell["id"] == "stable-softmax")
    answer["source"] = "def my_softmax(scores, axis):\n    e = np.exp(scores)\n    return e / e.sum(axis=axis, keepdims=True)"
    (tmp_path / "in" / "eve" / "02_softmax.ipynb").write_text(json.dumps(solution))
    done = grade(tmp_path / "in", tmp_path / "out", engine=Pool(1), grader=Grader)
    most = sum(task.points for task in all_tasks("softmax"))
    assert [(each.student, each.points, each.max_points) for each in done.marked] == [
        ("ann", most, most),
        ("bob", 0, most),
        ("eve", most - all_tasks("softmax")[0].points, most),
    ]
    assert {each.sandbox for each in done.marked} == {probe().level}
    wrong = done.marked[2].verdicts[0]
    assert wrong.mistake is not None
    assert wrong.mistake in (tmp_path / "out" / "grades.csv").read_text()
