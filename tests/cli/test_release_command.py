"""`attn-course release` says what it made, and refuses in one line."""

from pathlib import Path


def test_it_lists_the_chapters_and_the_folder(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = attn_course("release", "--out", "handout", "--chapters", "2", "--no-lessons")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == ["02 softmax: 9 tasks, 20 points", "made handout"]
    assert Path("handout/exercises/02_softmax.ipynb").is_file()


def test_bad_input_is_one_line(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/x").touch()
    for words, wanted in (
        (("--out", "full"), "full is there already"),
        (("--out", "new", "--chapters", "77"), "no chapter '77'"),
        (("--out", "new", "--chapters", ","), "--chapters is empty"),
    ):
        said = attn_course("release", *words)
        assert said.code == 2
        assert wanted in said.err
        assert len(said.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
