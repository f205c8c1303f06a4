"""`attn-course release` says what it made, and refuses in one line."""

from pathlib import Path


def test_it_lists_the_chapters_and_the_folder(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = attn_course("release", "--out", "handout", "--chapters", "1-2,02_softmax", "--no-lessons")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[1:] == ["02 softmax: 9 tasks, 20 points", "made handout"]
    assert {path.name for path in Path("handout/exercises").iterdir()} == {"ex_01_lookup.ipynb", "ex_02_softmax.ipynb"}


def test_bad_input_is_one_line(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/x").touch()
    for words, wanted in (
        (("--out", "full"), "full is there already"),
        (("--out", "new", "--chapters", "77"), "--chapters: there is no chapter 77"),
        (("--out", "new", "--chapters", ","), "--chapters: names none"),
    ):
        said = attn_course("release", *words)
        assert said.code == 2
        assert wanted in said.err
        assert len(said.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
