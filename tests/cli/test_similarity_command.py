"""`attn-course similarity` names the pair that copied, shows what it shares, and runs nothing."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from attn_course.numbers import lesson_number
from attn_course.tasks import all_tasks
from tests.classroom.test_similarity import DISGUISED, HONEST, ORIGINAL

NAME = "04_attention.ipynb"


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class of three; one notebook would write a file if it ran, and one is broken."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted"
    for student, sources in {"al": [ORIGINAL], "bo <b>": ["open('ran', 'w')", DISGUISED], "cy": [HONEST]}.items():
        hand_in(folder, student, *sources)
    hand_in(folder, "di").write_text("{", encoding="utf-8")
    return folder


def hand_in(folder: Path, student: str, *sources: str) -> Path:
    (folder / student).mkdir(parents=True)
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), folder / student / NAME)
    return folder / student / NAME


def test_the_pair_is_named_and_shown_with_both_sides_escaped_and_nothing_is_run(attn_course, submitted):
    said = attn_course("similarity", "submitted", "--json", "pairs.json", "--out", "page.html")
    assert said.code == 0
    assert "100%  al and bo <b> (8 lines)" in said.out
    assert "of the shorter notebook's own code" in said.out
    assert "cy" not in said.out
    assert "3 notebooks compared; shared parts in page.html" in said.out
    assert "di/04_attention.ipynb: " in said.out.replace("\n", "")
    assert json.loads(Path("pairs.json").read_text(encoding="utf-8"))["pairs"][0]["students"] == ["al", "bo <b>"]
    assert not Path("ran").exists()
    text = Path("page.html").read_text(encoding="utf-8")
    for part in ("total = terms.sum(axis=-1, keepdims=True)", "t = e.sum(axis=-1, keepdims=True)", "bo &lt;b&gt;"):
        assert part in text
    assert "<b>:" not in text
    for number in range(8):
        hand_in(submitted, f"s{number}", ORIGINAL)
    said = attn_course("similarity", "submitted", "--out", "page.html")
    assert "100%  al, bo <b>, s0, s1, s2, s3, s4, s5, s6 and s7 (8 lines)" in said.out.replace("\n", "")
    text = Path("page.html").read_text(encoding="utf-8")
    assert text.count("<section") == 1
    assert "10 students are alike: al, bo &lt;b&gt;, s0" in text
    assert "Of 45 pairs among them" in text


def test_a_zip_archive_is_compared_too(attn_course, submitted):
    shutil.make_archive("class", "zip", submitted)
    assert attn_course("similarity", "class.zip").out == attn_course("similarity", "submitted").out
    Path("class.zip").write_bytes(b"no archive")
    said = attn_course("similarity", "class.zip")
    assert (said.code, said.err) == (2, "attn-course: class.zip: is neither a folder nor a zip archive that can be read\n")


def test_a_roster_says_what_students_are_called(attn_course, submitted):
    for student, name in (("al", "alba_LATE_5001_66001_04_attention.ipynb"), ("bo <b>", "ekbo_5002_66002_04_attention.ipynb")):
        (submitted / student / NAME).rename(submitted / name)
    Path("roster.csv").write_text("id,name\nu1,Al Ba\nu2,Bo Ek\n", encoding="utf-8")
    said = attn_course("similarity", "submitted", "--roster", "roster.csv")
    assert (said.code, "100%  u1 and u2 (8 lines)" in said.out) == (0, True)
    said = attn_course("similarity", "submitted", "--roster", "gone.csv")
    assert (said.code, said.err) == (2, "attn-course: gone.csv: cannot be read: No such file or directory\n")


def test_what_many_share_is_told_on_the_terminal_on_the_page_and_in_the_file(attn_course, submitted):
    task = all_tasks("attention")[0]
    short = f"def {task.entry}(query, key):\n    return query @ key.T / np.sqrt(query.shape[-1]) + query.sum() * 7"
    for number in range(5):
        hand_in(submitted, f"s{number}", short)
    said = attn_course("similarity", "submitted", "--json", "pairs.json", "--out", "page.html")
    assert "not counted because many share it: 1 piece of code, the most common by 5 students" in said.out
    text = Path("page.html").read_text(encoding="utf-8")
    assert "<details><summary>Not counted because many share it: 1 piece of code" in text
    assert f"{task.entry} (task {lesson_number('attention')}.1): 2 lines, shared by 5: s0, s1, s2, s3, s4" in text
    (left_out,) = json.loads(Path("pairs.json").read_text(encoding="utf-8"))["left_out"]
    assert left_out.pop("students") == ["s0", "s1", "s2", "s3", "s4"]
    assert left_out == {"assignment": "attention", "defines": task.entry, "lines": 2}


def test_notebooks_that_cannot_be_compared_are_notes_and_all_others_are_compared(attn_course, submitted):
    hand_in(submitted, "ed", "x = " + " + ".join(["1"] * 1_000), ORIGINAL)
    hand_in(submitted, "fy", "x = '\x00'", "def broken(:", HONEST)
    hand_in(submitted, "gus", "x = 1  #" + "x" * 2**20)
    said = attn_course("similarity", "submitted", "--out", "page.html")
    lines = " ".join(said.out.split())
    assert said.code == 0
    assert "100% al, bo <b> and ed (8 lines)" in lines
    assert "Note: fy: 2 code cells not compared, being no Python" in lines
    assert "Note: gus/04_attention.ipynb: holds more than 1048576 characters of code: not compared" in lines
    assert "5 notebooks compared; shared parts in page.html" in lines
