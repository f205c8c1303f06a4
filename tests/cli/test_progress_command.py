"""`attn-course progress`: what the record says, chapter by chapter."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from attn_course.commands.progress import PAGE, what_comes_next, write_page
from attn_course.files import PROGRESS
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
    found = json.loads(said.out)
    (chapter,) = found["chapters"]
    assert (found["next"], found["review"]) == ("twice", [])
    assert [chapter[key] for key in ("lesson", "passed", "points", "max_points")] == ["toy", 1, 3, 9]
    last = chapter["tasks"][1].pop("last")
    assert datetime.now(UTC) - datetime.fromisoformat(last) < timedelta(minutes=5)
    assert chapter["tasks"][1] == {"id": "thrice", "title": "Thrice", "passed": True, "points": 3, "max_points": 3, "attempts": 1}
    assert attn_course("progress", "--json", "record.json").code == 0
    assert json.loads((toy_course / "record.json").read_text()) == json.loads(said.out)


@pytest.mark.parametrize("width", [80, 40])
def test_the_next_task_is_named_in_full_at_any_width(width, toy_course, attn_course, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    out = attn_course("progress").out
    assert max(map(len, out.splitlines())) <= width
    assert {"97.1", "Twice"} <= set(out.split())


def test_what_was_passed_a_week_ago_is_to_be_done_again_until_it_is_tried(toy_course, attn_course):
    assert write_page(toy_course) == []
    assert "Begin [here](ex_97_toy.ipynb)" in (toy_course / PAGE).read_text(encoding="utf-8")
    for number in (1, 2):
        record(toy_course, number, passed=True)
    file = toy_course / "work" / PROGRESS
    for days, asked in ((6, []), (8, ["twice"])):
        held = json.loads(file.read_text())
        held["tasks"]["twice"]["last"] = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
        file.write_text(json.dumps(held))
        assert json.loads(attn_course("progress", "--json", "-").out)["review"] == asked
    said = " ".join(attn_course("progress").out.split())
    assert "Next: 97.3 Four times, in work/ex_97_toy.ipynb" in said
    assert "to be done again: 97.1 Twice" in said
    assert write_page(toy_course)[1].endswith("97.1 Twice")
    page = (toy_course / PAGE).read_text(encoding="utf-8")
    assert "Next: [97.3 Four times](ex_97_toy.ipynb)" in page
    assert "- [97.1 Twice](ex_97_toy.ipynb)" in page
    assert "| 2 of 3 | 5 of 9 |" in page
    record(toy_course, 1, passed=False)
    assert "done again: 97.1" not in attn_course("progress").out
    for number in (1, 3):
        record(toy_course, number, passed=True)
    write_page(toy_course)
    assert "You have passed every task." in (toy_course / PAGE).read_text(encoding="utf-8")


def test_what_comes_next_is_where_i_worked_last():
    tasks = [{"id": f"{lesson}-{number}", "passed": False, "last": ""} for lesson in "abc" for number in "12"]
    chapters = [{"passed": 0, "tasks": tasks[at : at + 2]} for at in (0, 2, 4)]
    assert what_comes_next(chapters) is tasks[0]
    tasks[2] |= {"passed": True, "last": "2026-11-02T10:00:00+00:00"}
    assert what_comes_next(chapters) is tasks[3]
