"""The benchmark of class grading works on one submission with ours; nothing is timed here."""

import json

import pytest

from attn_course.tasks import all_tasks
from tests.benchmarks import graders
from tests.benchmarks.graders import Run, hand_in, main, table

MOST = sum(task.points for task in all_tasks(graders.LESSON))


def test_submissions_import_torch_and_some_are_wrong(tmp_path):
    paths = hand_in(tmp_path, 6)
    books = [json.loads(path.read_text("utf-8")) for path in paths.values()]
    assert all(sum(cell["source"] == "import torch" for cell in book["cells"]) == 1 for book in books)
    assert len({json.dumps(book) for book in books}) == 6
    answers = [{cell["id"]: cell["source"] for cell in book["cells"]} for book in books]
    assert [book["entropy-by-hand"] == "my_entropy = 1.5" for book in answers] == [False, False, True, True, True, False]


def test_one_submission_is_graded_twice_and_once_by_the_command(tmp_path):
    paths = hand_in(tmp_path / "in", 1)
    runs = [*graders.grade_twice(paths), graders.warm_class(paths, jobs=1), graders.command(paths, tmp_path, jobs=1)]
    assert [run.points for run in runs] == [{"s0000": MOST}] * 4
    assert all(run.seconds > 0 and run.cpu_s > 0 for run in runs)


def test_the_table_and_the_file_hold_every_run(tmp_path, monkeypatch, capsys):
    made = [Run("ours, warm, 2 processes", 0.5, 0.4, {"s0000": 1, "s0001": 2}), Run("slow", 5.0, 4.0, {"s0000": 1})]
    monkeypatch.setattr(graders, "ours", lambda paths, scratch: made)
    main(["--count", "2", "--only", "ours", "--json", str(tmp_path / "runs.json")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["slow", "5.00", "2.500", "4.00", "10.0", "10.0", "1", "of", "2"]
    assert [run["name"] for run in json.loads((tmp_path / "runs.json").read_text())["runs"]] == ["ours, warm, 2 processes", "slow"]
    assert table(made[1:], 2).splitlines()[1].endswith("1 of 2")


def test_an_unknown_tool_is_refused():
    with pytest.raises(SystemExit):
        main(["--only", "mine"])
