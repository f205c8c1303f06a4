"""`attn-course notebooks build|check`: a small course is built, edited, compared."""

import sys

import pytest

from tests.cli.conftest import tree

LESSON = """\
# %% [markdown] id="title"
# # A lesson

# %% id="sum"
print(1 + 1 + 0 + 0)

# %% [markdown] id="end"
# ## Formula card
# ## Summary
# ## Sources
"""
NOT_CHECKED = "not checked: right answers written in other ways, for there is no tests/exercises/right_answers/ here"
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
    assert attn_course("notebooks", "check") == (0, f"{NOT_CHECKED}\nnothing is wrong\n", "")
    assert tree(authored) == before
    notebook = authored / "notebooks" / "00_toy.ipynb"
    notebook.write_text(notebook.read_text().replace("1 + 1", "1 + 2"))
    said = attn_course("notebooks", "check", "toy")
    assert said.code == 1
    assert said.out.splitlines()[-1] == "out of date: notebooks/00_toy.ipynb; run attn-course notebooks build"


def test_what_the_gate_finds_stops_a_build_and_every_finding_is_one_line_of_a_check(authored, attn_course):
    text = LESSON.replace("1 + 1 + 0 + 0", "sum(range(3, default_rng()))").replace("## Sources", "Sources")
    (authored / "notebooks" / "src" / "toy.py").write_text(text)
    found = [
        "notebooks/src/toy.py [sum]: wanted a seed in default_rng()",
        "notebooks/src/toy.py: wanted the last sections Formula card, Summary, Sources; got Formula card, Summary",
    ]
    said = attn_course("notebooks", "build")
    assert (said.code, said.out) == (1, "")
    assert said.err == f"attn-course: {found[0]} (and 1 more: attn-course notebooks check toy)\n"
    assert not (authored / "attn_course").exists()
    said = attn_course("notebooks", "check")
    assert said.code == 1
    assert said.out.splitlines()[:2] == found


def test_check_runs_the_notebooks_only_when_asked(authored, attn_course):
    attn_course("notebooks", "build")
    notebook = authored / "notebooks" / "00_toy.ipynb"
    text = notebook.read_text()
    unsealed = text.replace('"2\\n"', '"3\\n"')
    assert unsealed != text
    notebook.write_text(unsealed)
    assert "[sum]" not in attn_course("notebooks", "check").out
    said = attn_course("notebooks", "check", "--run")
    assert "notebooks/00_toy.ipynb [sum]: it fails, or its output is not the stored one" in said.out.splitlines()


def test_a_cell_that_fails_or_an_unknown_chapter_is_one_line(authored, attn_course):
    (authored / "notebooks" / "src" / "toy.py").write_text(LESSON.replace("1 + 1", "1 / 0"))
    said = attn_course("notebooks", "build")
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert "ZeroDivisionError" in said.err
    assert attn_course("notebooks", "build", "98") == (2, "", "attn-course: no lesson '98'; there are toy\n")


def test_what_an_extra_brings_is_asked_for_in_one_line(authored, attn_course, monkeypatch):
    (authored / "notebooks" / "src" / "toy.py").write_text(LESSON.replace("1 + 1", "2 + 0"))  # a text that has not been read before
    monkeypatch.setitem(sys.modules, "jupytext", None)  # as if it were not installed
    for word in ("check", "build"):
        said = attn_course("notebooks", word)
        assert said == (1, "", "attn-course: this needs jupytext: pip install 'attn_course[author]'\n")
