"""The benchmark of class grading works on one submission with ours; nothing is timed here."""

import json
import subprocess
import sys

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
    paths, others = hand_in(tmp_path / "in", 1), hand_in(tmp_path / "others", 1, graders.OTHERS)
    runs = [*graders.grade_twice(paths, others), graders.warm_class(paths, others, jobs=1), graders.command(paths, tmp_path, jobs=1)]
    assert [run.points for run in runs] == [{"s0000": MOST}] * 4
    assert all(run.seconds > 0 and run.cpu_s > 0 for run in runs)


def test_what_others_write_has_the_same_mistakes_and_formulas_with_other_blanks(tmp_path):
    for number in range(6):
        mine, theirs = ([cell["source"] for cell in graders.submission(n)["cells"]] for n in (number, number + graders.OTHERS))
        differing = [(one, two) for one, two in zip(mine, theirs, strict=True) if one != two and "# student" not in str(one)]
        assert all(one.replace(r"\,", "") == two.replace(r"\,", "") for one, two in differing)
        assert bool(differing) == (number % 3 == 0)


def test_what_otter_runs_says_whether_an_answer_is_right(tmp_path):
    graders.otter_tests(tmp_path / "tests")
    names: dict = {}
    exec((tmp_path / "tests" / "qentropy_by_hand.py").read_text(), names)
    (case,) = names["test"]["suites"][0]["cases"]
    cells = {cell["id"]: "".join(cell["source"]) for cell in graders.built("solutions")["cells"]}
    given = f"{cells['setup']}\n{cells['entropy-by-hand-given']}\n"
    program = """
import doctest, sys
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.display_pub, names = CapturingDisplayPublisher(), shell.user_ns  # as a kernel, which shows a card and prints nothing
exec(sys.argv[1], names)
test = doctest.DocTestParser().get_doctest(sys.argv[2], names, "q", None, 0)
raise SystemExit(doctest.DocTestRunner(verbose=False).run(test).failed)
"""
    for answer, failed in ((cells["entropy-by-hand"], 0), (graders.WRONG["entropy-by-hand"], 1)):
        done = subprocess.run([sys.executable, "-c", program, given + answer, case["code"]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == failed, done.stderr


def test_the_table_and_the_file_hold_every_run(tmp_path, monkeypatch, capsys):
    made = [Run("ours, warm, 2 processes", 0.5, 0.4, {"s0000": 1, "s0001": 2}), Run("slow", 5.0, 4.0, {"s0000": 1})]
    monkeypatch.setattr(graders, "ours", lambda paths, scratch: made)
    main(["--count", "2", "--only", "ours", "--json", str(tmp_path / "runs.json")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["slow", "5.00", "2.500", "4.00", "10.0", "10.0", "1", "of", "2"]
    assert [run["name"] for run in json.loads((tmp_path / "runs.json").read_text())["runs"]] == ["ours, warm, 2 processes", "slow"]
    assert table(made[1:], 2).splitlines()[1].endswith("1 of 2")
