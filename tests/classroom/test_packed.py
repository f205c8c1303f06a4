"""What untrusted code runs beside knows no answer: nothing that is sent to a worker holds the body of a solution, or why it is right."""

from attn_course.classroom import supervisor
from attn_course.classroom.grader import Grader
from attn_course.tasks import all_tasks
from tests.classroom import notebooks


def test_a_worker_gets_no_body_and_no_reason(root, tmp_path, monkeypatch):
    sent, encode = [], supervisor.encode
    monkeypatch.setattr(supervisor, "encode", lambda message: sent.append(repr(message)) or encode(message))
    exercise = notebooks.load(root, "exercises", "heads")
    with Grader(seed=11, exercises=root / "exercises", fork=False) as grader:
        grader.grade(notebooks.save(exercise, tmp_path / "ex_09_heads.ipynb"), student="ada")
    assert any("'do': 'calls'" in message for message in sent)
    shown = "".join("".join(cell["source"]) for cell in exercise["cells"])
    for task in all_tasks("heads"):
        answer = task.sheet.solution.partition("### BEGIN SOLUTION\n")[2].partition("### END")[0]
        own = [line for line in map(str.strip, answer.splitlines()) if len(line) > 20 and line not in shown]
        assert own
        assert not [line for line in [*own, task.sheet.why.splitlines()[0]] if any(line in message for message in sent)]
