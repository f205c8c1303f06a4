"""`attn-course similarity` names the pair that copied, shows what it shares, and runs nothing."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.grading.test_similarity import DISGUISED, HONEST, ORIGINAL

NAME = "04_scaled_dot_product.ipynb"


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class of three; one notebook would write a file if it ran, and one is broken."""
    monkeypatch.chdir(tmp_path)
    cells = {"al": [ORIGINAL], "bo <b>": ["open('ran', 'w')", DISGUISED], "cy": [HONEST]}
    for student, sources in cells.items():
        folder = tmp_path / "submitted" / student
        folder.mkdir(parents=True)
        nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), folder / NAME)
    (tmp_path / "submitted" / "di").mkdir()
    (tmp_path / "submitted" / "di" / NAME).write_text("{", encoding="utf-8")
    return tmp_path / "submitted"


def test_the_pair_is_named_and_nothing_is_run(attn_course, submitted):
    said = attn_course("similarity", "submitted", "--json", "pairs.json", "--out", "page.html")
    assert said.code == 0
    assert "100%  al and bo <b>" in said.out
    assert "cy" not in said.out
    assert "3 notebooks compared; shared parts in page.html" in said.out
    assert "di/04_scaled_dot_product.ipynb: " in said.out.replace("\n", "")
    assert json.loads(Path("pairs.json").read_text(encoding="utf-8"))["pairs"][0]["students"] == ["al", "bo <b>"]
    assert not Path("ran").exists()


def test_the_page_shows_both_sides_and_escapes_them(attn_course, submitted):
    attn_course("similarity", "submitted", "--out", "page.html")
    text = Path("page.html").read_text(encoding="utf-8")
    assert "total = terms.sum(axis=-1, keepdims=True)" in text
    assert "t = e.sum(axis=-1, keepdims=True)" in text
    assert "bo &lt;b&gt;" in text
    assert "<b>:" not in text


def test_bad_input_is_one_line_and_writes_nothing(attn_course, submitted):
    for words, wanted in (
        (("nowhere",), "nowhere: is no folder"),
        (("submitted", "--threshold", "0"), "threshold must lie in (0, 1]"),
        (("submitted", "--out", "page.txt"), "--out: wanted a .html file"),
        (("submitted", "--out", "no/page.html"), "--out: wanted a .html file"),
    ):
        said = attn_course("similarity", *words)
        assert said.code == 2
        assert wanted in said.err
        assert len(said.err.splitlines()) == 1
    assert [path.name for path in Path.cwd().iterdir()] == ["submitted"]
