"""Bad input to every command: one clear line, exit code 2, nothing written."""

import pytest

from attn_course.commands.terminal import BadInput
from tests.cli.conftest import Said, refused, tree
from tests.grading import toy
from tests.grading.bad_files import BAD_FILES


@pytest.mark.parametrize("name", BAD_FILES)
def test_check_refuses_a_file_it_cannot_judge(name, toy_course, attn_course):
    file_name, make, words = BAD_FILES[name]
    make(toy_course / "work" / file_name)
    before = tree(toy_course)
    (line,) = refused(attn_course("check", f"work/{file_name}"), toy_course, before)
    assert words in line


def test_check_names_every_bad_file_before_it_runs_any(toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    before = tree(toy_course)
    first, second = refused(attn_course("check", "work/ex_97_toy.ipynb", "a.ipynb", "b.ipynb"), toy_course, before, lines=2)
    assert "a.ipynb: no such file" in first
    assert "b.ipynb: no such file" in second


def test_check_says_how_to_fill_an_empty_work_folder(toy_course, attn_course):
    (line,) = refused(attn_course("check"), toy_course, tree(toy_course))
    assert line == "attn-course: work holds no notebooks yet: attn-course lab copies the exercises there"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tasks": {"twice": {"passed": "yes"}}}', '{"tasks": 7}'])
def test_a_damaged_record_is_refused_not_overwritten(content, toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    (toy_course / "work" / ".progress.json").write_text(content)
    before = tree(toy_course)
    for words in (["check"], ["progress"]):
        (line,) = refused(attn_course(*words), toy_course, before)
        assert "work/.progress.json must be the JSON that attn-course wrote" in line


@pytest.mark.parametrize("target", ["no/such/folder/a.json", "work", "work/ex_97_toy.ipynb", ""])
@pytest.mark.parametrize("command", ["check", "progress", "doctor"])
def test_a_json_file_that_cannot_be_written_is_refused_before_any_work(command, target, toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    (line,) = refused(attn_course(command, "--json", target), toy_course, tree(toy_course))
    assert "--json" in line


@pytest.mark.parametrize(
    "words",
    [
        ["chek"],
        ["check", "--tiemout", "3"],
        ["check", "--timeout"],
        ["check", "--timeout", "soon"],
        ["check", "--timeout", "0"],
        ["check", "--timeout", "-1"],
        ["check", "--timeout", "nan"],
        ["check", "--timeout", "inf"],
        ["progress", "surplus"],
        ["progress", "--json"],
        ["formulas", "--chapter", "two"],
        ["formulas", "--chapter", "99"],
        ["formulas", "--chapter", "-1"],
        ["formulas", "--row", "Q7"],
        ["formulas", "--row", ""],
        ["formulas", "surplus"],
        ["notebooks", "biuld"],
        ["notebooks", "build"],  # the toy course has no sources
        ["notebooks", "build", "--forced"],
        ["notebooks", "check"],
        ["notebooks", "check", "97"],
        ["doctor", "surplus"],
        ["lab", "--port", "http"],
        ["lab", "--prot", "8888"],
        ["--verison"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_makes_no_sense_gets_one_line(words, toy_course, attn_course):
    refused(attn_course(*words), toy_course, tree(toy_course))


def test_a_misspelt_command_is_told_the_right_one(attn_course):
    assert "Did you mean 'check'?" in attn_course("chek").err


@pytest.mark.parametrize(
    "words", [["check"], ["progress"], ["notebooks", "build"], ["notebooks", "check"], ["doctor"], ["lab"]], ids=" ".join
)
def test_a_folder_outside_of_any_course_is_refused(words, tmp_path, monkeypatch, attn_course):
    monkeypatch.setattr("attn_course.commands.course.is_course", lambda folder: False)
    monkeypatch.chdir(tmp_path)
    (line,) = refused(attn_course(*words), tmp_path, {})
    assert "no course here" in line


def test_debug_shows_where_the_error_is_from(toy_course, attn_course):
    with pytest.raises(BadInput, match="no such file"):
        attn_course("check", "a.ipynb", "--debug")


@pytest.mark.parametrize(
    ("said", "writes"),
    [
        (Said(1, "", "attn-course: no\n"), False),
        (Said(2, "table", "attn-course: no\n"), False),
        (Said(2, "", ""), False),
        (Said(2, "", "attn-course: no\nattn-course: nor this\n"), False),
        (Said(2, "", "Traceback\n"), False),
        (Said(2, "", "attn-course: no\n"), True),
    ],
)
def test_the_helper_of_these_tests_can_fail(said, writes, tmp_path):
    before = tree(tmp_path)
    if writes:
        (tmp_path / "left-over").touch()
    with pytest.raises(AssertionError):
        refused(said, tmp_path, before)
