"""Every tracked file is small, has LF line ends, and names no machine and no registry."""

import pytest

from tests.project.hygiene import LARGEST_BYTES, complaints, main, tracked_files


def test_every_tracked_file_is_clean(root):
    if not (root / ".git").exists():
        pytest.skip("not a git checkout: there is no list of tracked files")
    files = tracked_files(root)
    assert root / "pyproject.toml" in files
    assert [line for path in files for line in complaints(path, root)] == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"x" * LARGEST_BYTES + b"\n", ": 400001 bytes; the limit is 400000"),
        (b"one\r\ntwo\n", ": has carriage returns; lines end with LF"),
        (b"one", ": does not end with a line feed"),
        (b"ok\nsee /" + b"home/ada/attn\n", ":2: holds a path of one machine"),
        (b"C:" + b"\\Users\\ada\n", ":1: holds a path of one machine"),
        (b"https://files.python" + b"hosted.org/x.whl\n", ":1: names a package registry"),
    ],
)
def test_what_does_not_belong_is_named(tmp_path, content, complaint):
    (tmp_path / "planted.md").write_bytes(content)
    (found,) = complaints(tmp_path / "planted.md", tmp_path)
    assert found.startswith(f"planted.md{complaint}")


def test_the_folder_of_this_checkout_is_a_path_of_one_machine(tmp_path):
    (tmp_path / "planted.md").write_text(f"{tmp_path}/x\n")
    assert complaints(tmp_path / "planted.md", tmp_path) == ["planted.md:1: holds a path of one machine"]


def test_a_learners_work_is_not_tracked(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "02_softmax.ipynb").write_text("{}\n")
    assert complaints(tmp_path / "work" / "02_softmax.ipynb", tmp_path) == [
        "work/02_softmax.ipynb: belongs to one machine or one learner; keep it out of git"
    ]


@pytest.mark.parametrize(
    "content", [b"", b"/homework/ada/x\n", b"/home/someone/x.py\n", b"see https://example.org/home/ada/\n", b"\x89PNG\0\r\n"]
)
def test_what_belongs_passes(tmp_path, content):
    (tmp_path / "planted.md").write_bytes(content)
    assert complaints(tmp_path / "planted.md", tmp_path) == []


def test_the_hook_names_the_file_and_exits_with_1(root, capsys, monkeypatch):
    monkeypatch.chdir(root)
    assert main(["pyproject.toml"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("tests.project.hygiene.LARGEST_BYTES", 10)
    assert main(["pyproject.toml"]) == 1
    assert capsys.readouterr().out.startswith("pyproject.toml: ")
