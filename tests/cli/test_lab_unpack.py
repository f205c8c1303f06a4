"""What a wheel brings is unpacked in an empty folder, and an upgrade leaves alone what a learner wrote, wherever it was written."""

from pathlib import Path

import pytest

from attn_course.commands.lab_files import copy_exercises
from attn_course.commands.lab_lessons import copy_lessons
from attn_course.commands.lab_unpack import course_to_open, unpack
from attn_course.commands.terminal import BadInput
from tests.browser.toy_course import make_course, write_notebook
from tests.cli.conftest import tree


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """The course as the package brings it."""
    return make_course(tmp_path / "brought")


def started(root: Path, brought: Path) -> list[str]:
    """Do what every start of the lab does before the server; return what it says of the course's notebooks."""
    said = unpack(root, brought)
    copy_exercises(root)
    copy_lessons(root)
    return said


def test_an_empty_folder_gets_the_notebooks_once(brought: Path, tmp_path: Path):
    root = tmp_path / "mine"
    root.mkdir()
    assert started(root, brought) == ["unpacked 6 notebooks of the course"]
    for name in ("notebooks/02_softmax.ipynb", "exercises/ex_03_scaling.ipynb", "solutions/03_scaling.ipynb"):
        assert (root / name).read_bytes() == (brought / name).read_bytes()
    assert not list(root.rglob("*.py"))
    before = tree(root)
    assert started(root, brought) == []
    assert tree(root) == before


def test_an_upgrade_takes_new_numbers_and_leaves_what_was_written(brought: Path, tmp_path: Path):
    root = tmp_path / "mine"
    root.mkdir()
    started(root, brought)
    mine = {name: root / name for name in ("work/ex_03_scaling.ipynb", "work/lessons/03_scaling.ipynb", "notebooks/03_scaling.ipynb")}
    for path in (*mine.values(), root / "work" / "notes.txt"):
        write_notebook(path, "# mine", "42")
    written = {path.name: path.read_bytes() for path in mine.values()}
    assert started(root, brought) == []  # nothing newer: what was changed in place stays there
    for name in ("notebooks/{}", "exercises/ex_{}", "solutions/{}"):  # an earlier lesson has come
        (brought / name.format("03_scaling.ipynb")).rename(brought / name.format("04_scaling.ipynb"))
        write_notebook(brought / name.format("03_lookup.ipynb"), "# new", "1")
    write_notebook(brought / "notebooks" / "02_softmax.ipynb", "# second edition", "2")
    assert started(root, brought) == [
        "the course has a newer notebooks/03_scaling.ipynb; yours lies in work/kept/notebooks/03_scaling.ipynb now",
        "unpacked 7 notebooks of the course",
    ]
    assert sorted(path.name for path in (root / "notebooks").iterdir()) == ["02_softmax.ipynb", "03_lookup.ipynb", "04_scaling.ipynb"]
    assert (root / "work" / "kept" / "notebooks" / "03_scaling.ipynb").read_bytes() == written["03_scaling.ipynb"]
    assert mine["work/ex_03_scaling.ipynb"].read_bytes() == written["ex_03_scaling.ipynb"]
    assert mine["work/lessons/03_scaling.ipynb"].read_bytes() == written["03_scaling.ipynb"]
    assert (root / "work" / "notes.txt").exists()
    assert (root / "work" / "lessons" / "02_softmax.ipynb").read_text() == (brought / "notebooks" / "02_softmax.ipynb").read_text()
    assert (root / "work" / "ex_03_lookup.ipynb").exists()


def test_what_was_put_aside_before_stays_too(brought: Path, tmp_path: Path):
    root = tmp_path / "mine"
    root.mkdir()
    for edition in "12":
        unpack(root, brought)
        write_notebook(root / "notebooks" / "02_softmax.ipynb", f"# mine {edition}", "42")
        write_notebook(brought / "notebooks" / "02_softmax.ipynb", f"# edition {edition}", "42")
    unpack(root, brought)
    kept = {path.name: path.read_text() for path in (root / "work" / "kept" / "notebooks").iterdir()}
    assert "mine 1" in kept["02_softmax.ipynb"]
    assert "mine 2" in kept["02_softmax-2.ipynb"]


def test_a_checkout_a_handout_and_folders_of_ones_own_stay_as_they_are(brought: Path, tmp_path: Path):
    checkout = make_course(tmp_path / "checkout")
    write_notebook(checkout / "notebooks" / "02_softmax.ipynb", "# of this checkout", "42")
    (tmp_path / "mine" / "work").mkdir(parents=True)
    before = tree(tmp_path)
    assert unpack(checkout, brought) == []
    with pytest.raises(BadInput, match=r"mine has a folder work of its own: make an empty folder for the course"):
        unpack(tmp_path / "mine", brought)
    assert tree(tmp_path) == before


def test_a_course_that_lies_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    course, empty = make_course(tmp_path / "course"), tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr("attn_course.commands.lab_unpack.find_course", lambda: course)
    monkeypatch.setattr("attn_course.commands.lab_unpack.BROUGHT", tmp_path / "none")
    monkeypatch.chdir(empty)
    assert course_to_open() == (course, [f"there is no course in this folder; the one in {course} is opened"])
    monkeypatch.chdir(course)
    assert course_to_open() == (course, [])
