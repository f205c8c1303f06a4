"""`attn-course notebooks build|check`: a small course is built, edited, compared."""

import pytest

from tests.cli.conftest import tree

LESSON = '# %% [markdown] id="title"\n# # A lesson\n\n# %% id="sum"\nprint(1 + 1)\n'
SERIES = '[[lesson]]\nslug = "toy"\ntitle = "Toy"\nminutes = 1\n'


@pytest.fixture
def authored(tmp_path, monkeypatch):
    """Root of a course with one lesson source; it is also the working directory."""
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    (tmp_path / "notebooks" / "series.toml").write_text(SERIES)
    (tmp_path / "notebooks" / "src" / "toy.py").write_text(LESSON)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_build_writes_once_and_check_names_what_was_edited(authored, attn_course):
    said = attn_course("notebooks", "build")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == ["wrote notebooks/00_toy.ipynb", "1 written, 1 run, 0 left as they were"]
    before = tree(authored)
    assert attn_course("notebooks", "build", "0").out == "0 written, 0 run, 1 left as they were\n"
    assert attn_course("notebooks", "check") == (0, "every notebook is in step with its source\n", "")
    assert tree(authored) == before
    notebook = authored / "notebooks" / "00_toy.ipynb"
    notebook.write_text(notebook.read_text().replace("1 + 1", "1 + 2"))
    said = attn_course("notebooks", "check", "toy")
    assert said.code == 1
    assert "notebooks/00_toy.ipynb [sum]" in said.out


def test_a_cell_that_fails_is_one_line_and_exit_code_1(authored, attn_course):
    (authored / "notebooks" / "src" / "toy.py").write_text(LESSON.replace("1 + 1", "1 / 0"))
    said = attn_course("notebooks", "build")
    assert said.code == 1
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "ZeroDivisionError" in said.err


def test_an_unknown_chapter_lists_those_there_are(authored, attn_course):
    said = attn_course("notebooks", "build", "98")
    assert (said.code, said.err) == (2, "attn-course: no lesson '98'; there are toy\n")
