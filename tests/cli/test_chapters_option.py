"""The option --chapters: numbers, ranges and names, in one reading for every command, and one line for what it cannot read."""

import re

import pytest

from attn_course import numbers
from attn_course.commands.chapters import exercise_lessons, read_chapters
from attn_course.commands.terminal import BadInput

THERE = ["start", "scaling", "self_attention", "linear", "toy"]
COUNTED = {
    "labels": {},
    "tasks": {},
    "slugs": {slug: {"number": number, "title": slug} for slug, number in zip(THERE, (0, 3, 5, 11, 97), strict=True)},
}


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Five lessons with gaps between their numbers."""
    monkeypatch.setattr(numbers, "tables", lambda: COUNTED)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", ("scaling",)),
        ("03,3, scaling, 03_scaling", ("scaling",)),
        ("11,0", ("start", "linear")),
        ("0-5", ("start", "scaling", "self_attention")),
        ("5 - 97,", ("self_attention", "linear", "toy")),
        ("self_attention,0-3", ("start", "scaling", "self_attention")),
        ("97-97", ("toy",)),
    ],
)
def test_numbers_ranges_and_names_are_read(text, wanted):
    assert read_chapters(text, THERE) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "--chapters: names none"),
        ("two", "--chapters: there is no chapter two; there are start, scaling, self_attention"),
        ("3,-5", "there is no chapter -5"),
        ("3-", "there is no chapter 3-"),
        ("\N{SUPERSCRIPT TWO}", "there is no"),
        ("5-3", "'5-3' ends before it begins; wanted 3-5?"),
        ("0,99", "--chapters: there is no chapter 99; there are start, scaling, self_attention"),
        ("0-4", "there is no chapter 4"),
        ("1-3", "there is no chapter 1"),
        ("0-999999999", "there is no chapter 0-999999999"),
    ],
)
def test_what_names_no_chapter_is_told_with_those_there_are(text, wanted):
    with pytest.raises(BadInput, match=r"^[^\n]*$") as caught:
        read_chapters(text, THERE)
    assert wanted in str(caught.value)
    assert not re.search(r"\bonly:", str(caught.value))


def test_the_exercises_in_a_folder_are_its_chapters(tmp_path):
    assert exercise_lessons(tmp_path) == []
    (tmp_path / "exercises").mkdir()
    for name in ("ex_04_linear.ipynb", "ex_03_scaling.ipynb", "notes.ipynb", "ex_02_softmax.py"):
        (tmp_path / "exercises" / name).touch()
    assert exercise_lessons(tmp_path) == ["scaling", "linear"]
