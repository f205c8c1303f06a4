"""The option --chapters: numbers, ranges and names, in one reading for every command, and one line for what it cannot read."""

import re

import pytest

from attn_course.commands.chapters import exercise_names, read_chapters
from attn_course.commands.terminal import BadInput
from tests.cli.conftest import refused, tree

THERE = {0: "00_start_here", 3: "03_similarity_and_scale", 5: "05_self_attention", 11: "11_without_softmax", 97: "97_toy"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", (3,)),
        ("03,3, 3", (3,)),
        ("11,0", (0, 11)),
        ("0-5", (0, 3, 5)),
        ("5 - 97,", (5, 11, 97)),
        ("05_self_attention,0-3", (0, 3, 5)),
        ("97-97", (97,)),
    ],
)
def test_numbers_ranges_and_names_are_read(text, wanted):
    assert read_chapters(text, THERE) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "--chapters: names none"),
        (" ,,", "--chapters: names none"),
        ("two", "--chapters: there is no 'two'; wanted numbers, ranges and names"),
        ("5_self_attention", "there is no '5_self_attention'"),
        ("3,-5", "there is no '-5'"),
        ("3-", "there is no '3-'"),
        ("3--5", "there is no '3--5'"),
        ("\N{SUPERSCRIPT TWO}", "there is no"),
        ("5-3", "'5-3' ends before it begins; wanted 3-5?"),
        ("0,99", "--chapters: there is no chapter 99; there are 00_start_here, 03_similarity_and_scale, 05_self_attention"),
        ("0-4", "there is no chapter 4"),
        ("1-3", "there is no chapter 1"),
        ("0-999999999", "there is no '0-999999999'"),
    ],
)
def test_what_names_no_chapter_is_told_with_those_there_are(text, wanted):
    with pytest.raises(BadInput, match=r"^[^\n]*$") as caught:
        read_chapters(text, THERE)
    assert wanted in str(caught.value)
    assert not re.search(r"\bonly:", str(caught.value))


def test_chapters_without_a_name_are_listed_by_their_number():
    with pytest.raises(BadInput, match=r"there are 2, 13$"):
        read_chapters("7", {13: "", 2: ""})


def test_the_exercises_in_a_folder_are_its_chapters(tmp_path):
    assert exercise_names(tmp_path) == {}
    (tmp_path / "exercises").mkdir()
    for name in ("11_without_softmax.ipynb", "03_x.ipynb", "notes.ipynb", "03_x.py"):
        (tmp_path / "exercises" / name).touch()
    assert exercise_names(tmp_path) == {3: "03_x", 11: "11_without_softmax"}


@pytest.mark.parametrize("words", [("release", "--out", "new"), ("nbgrader", "prepare", "new")])
@pytest.mark.parametrize(
    ("text", "wanted"), [("99", "there is no chapter 99; there are 00_"), (",", "names none"), ("softmax", "there is no 'softmax'")]
)
def test_commands_refuse_in_one_line_and_write_nothing(attn_course, tmp_path, monkeypatch, words, text, wanted):
    monkeypatch.chdir(tmp_path)
    (line,) = refused(attn_course(*words, "--chapters", text), tmp_path, tree(tmp_path))
    assert line.startswith("attn-course: --chapters: ")
    assert wanted in line


def test_nbgrader_prepare_takes_a_range_and_a_name(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert attn_course("nbgrader", "prepare", ".", "--chapters", "2-3,07_masking").code == 0
    assert {path.name for path in (tmp_path / "source").iterdir()} == {"02_softmax", "03_similarity_and_scale", "07_masking"}
