"""attn-course site: what it refuses, in one line, and that it takes nothing away. The site itself: tests/browser/test_every_page.py."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_repository_is_an_owner_and_a_name(attn_course):
    code, out, err = attn_course("site", "--repository", "https://github.com/owner/course")
    assert (code, out) == (2, "")
    assert "wanted OWNER/NAME" in err


def test_an_unknown_lesson_is_named(attn_course):
    code, _, err = attn_course("site", "softmux")
    assert code == 2
    assert "'softmux'" in err


def test_slides_are_made_of_lessons_that_are_there(attn_course, tmp_path):
    code, _, err = attn_course("slides", "softmux")
    assert code == 2
    assert "there is no chapter softmux" in err
    code, out, _ = attn_course("slides", "0", "--out", str(tmp_path))
    assert code == 0
    assert "minutes" in out
    assert (tmp_path / "start.html").is_file()


def test_a_folder_with_other_files_stays_as_it_is(attn_course, tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    code, _, err = attn_course("site", "start", "--out", str(tmp_path))
    assert code == 1
    assert "wanted an empty folder or an earlier site" in err
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


def test_a_part_of_the_course_is_a_site_without_dead_links(attn_course, tmp_path):
    code, out, err = attn_course("site", "start", "--out", str(tmp_path / "part"))
    assert (code, err) == (0, "")
    page = (tmp_path / "part" / "start.html").read_text(encoding="utf-8")
    assert "lookup.html" not in page
    assert 'data-explorable="' in page
    assert "DecompressionStream" not in page  # a card is there as soon as the page is, also when it is printed
    assert f"pages in {tmp_path / 'part'}" in out.replace("\n", "")
