"""`attn-course progress`: what the record says, chapter by chapter."""

import json

import pytest

from attn_course.tasks import Verdict, progress
from tests.classroom import toy


def record(course, number, *, passed):
    task = toy.TASKS[number - 1]
    progress.record(Verdict(task.id, task.title, passed, task.points if passed else 0, task.points, ""), course)


def test_passed_tasks_are_counted_and_the_next_one_is_named_until_all_are_done(toy_course, attn_course):
    said = attn_course("progress")
    assert said.code == 0
    assert "97 0/3 0/9" in " ".join(said.out.split())
    assert "97.1 Twice" in said.out
    record(toy_course, 1, passed=True)
    record(toy_course, 2, passed=False)
    shown = " ".join(attn_course("progress").out.split())
    assert "97 1/3 2/9" in shown
    assert "###............." in shown  # 2 of 9 points, in 16 signs
    assert "97.2 Thrice" in shown
    for number in (2, 3):
        record(toy_course, number, passed=True)
    assert "all done" in attn_course("progress").out


def test_chapters_are_those_with_an_exercise_here_or_a_task_passed(toy_course, attn_course):
    (toy_course / "exercises" / "ex_97_toy.ipynb").unlink()
    assert json.loads(attn_course("progress", "--json", "-").out)["chapters"] == []
    record(toy_course, 2, passed=False)
    assert json.loads(attn_course("progress", "--json", "-").out)["chapters"] == []
    record(toy_course, 3, passed=True)
    assert [chapter["lesson"] for chapter in json.loads(attn_course("progress", "--json", "-").out)["chapters"]] == ["toy"]


def test_json_holds_every_task(toy_course, attn_course):
    record(toy_course, 2, passed=True)
    said = attn_course("progress", "--json", "-")
    assert said.code == 0
    (chapter,) = json.loads(said.out)["chapters"]
    assert {key: chapter[key] for key in ("lesson", "passed", "points", "max_points")} == {
        "lesson": "toy",
        "passed": 1,
        "points": 3,
        "max_points": 9,
    }
    assert chapter["tasks"][1] == {"id": "thrice", "title": "Thrice", "passed": True, "points": 3, "max_points": 3, "attempts": 1}
    assert attn_course("progress", "--json", "record.json").code == 0
    assert json.loads((toy_course / "record.json").read_text()) == json.loads(said.out)


@pytest.mark.parametrize("width", [80, 40])
def test_the_next_task_is_named_in_full_at_any_width(width, toy_course, attn_course, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    out = attn_course("progress").out
    assert max(map(len, out.splitlines())) <= width
    assert {"97.1", "Twice"} <= set(out.split())
