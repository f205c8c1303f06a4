"""`attn-course release` says what it made."""

from pathlib import Path

from attn_course.tasks import all_tasks


def test_it_lists_the_chapters_and_the_folder(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = attn_course("release", "--out", "handout", "--chapters", "1-2,02_softmax", "--no-lessons")
    assert (said.code, said.err) == (0, "")
    tasks = all_tasks("softmax")
    assert said.out.splitlines()[1:] == [f"02 softmax: {len(tasks)} tasks, {sum(task.points for task in tasks)} points", "made handout"]
    assert {path.name for path in Path("handout/exercises").iterdir()} == {"ex_01_lookup.ipynb", "ex_02_softmax.ipynb"}
    assert Path("handout/attn_course/grading/classroom/templates/page.html").is_file()
