"""A class with the real grader, end to end: processes of a pool, sandboxed workers, secret cases."""

import pytest

from attn_course.classroom.engines import Pool
from attn_course.classroom.grader import Grader
from attn_course.classroom.sandbox import probe
from attn_course.tasks import all_tasks
from tests.classroom import notebooks


@pytest.mark.usefixtures("without_pictures")
def test_solutions_get_all_points_exercises_none_and_a_wrong_answer_its_name(root, room):
    solution = notebooks.load(root, "solutions", "softmax")
    notebooks.save(solution, room.hand_in("ann", "my softmax.ipynb"))
    notebooks.save(notebooks.load(root, "exercises", "softmax"), room.hand_in("bob"))
    answer = next(cell for cell in solution["cells"] if cell["id"] == "stable-softmax")
    answer["source"] = "def my_softmax(scores, axis):\n    e = np.exp(scores)\n    return e / e.sum(axis=axis, keepdims=True)"
    notebooks.save(solution, room.hand_in("eve"))
    done = room.grade(engine=Pool(1), grader=Grader)
    most = sum(task.points for task in all_tasks("softmax"))
    assert [(each.student, each.points, each.max_points) for each in done.marked] == [
        ("ann", most, most),
        ("bob", 0, most),
        ("eve", most - all_tasks("softmax")[0].points, most),
    ]
    assert {each.sandbox for each in done.marked} == {probe().level}
    wrong = done.marked[2].verdicts[0]
    assert wrong.mistake is not None
    assert wrong.mistake in (room / "out" / "grades.csv").read_text()
