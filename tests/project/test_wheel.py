"""The sdist makes a wheel, and the wheel, installed in an environment of its own, is the course: in an empty folder, without a checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from attn_course.authoring.course import shown_units
from attn_course.classroom.pages import TEMPLATES
from tests.browser.toy_course import quiet_environment, running_lab

FOLDERS = ("notebooks", "exercises", "solutions")
TOO_LARGE = 6e6  # bytes of the wheel


def run(*words: object, cwd: Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as from the registry."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=root)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=folder / sdist.name.removesuffix(".tar.gz"))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, behind which the packages of this one lie."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel, cwd=folder)
    behind = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip(), "behind.pth")
    behind.write_text("\n".join(path for path in sys.path if path.endswith("site-packages")), encoding="utf-8")
    return python


def test_the_wheel_brings_the_built_notebooks_and_is_small(root: Path, wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert {path.relative_to(root).as_posix() for path in TEMPLATES.iterdir()} <= {*names}
    brought = {name.removeprefix("attn_course/course/") for name in names if "/course/" in name}
    brought.remove("notebooks/series.toml")
    assert brought == {path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).glob("*.ipynb")}
    assert len(brought) >= 45
    assert wheel.stat().st_size < TOO_LARGE


def test_the_site_is_made_of_the_same_pages_without_sources(root: Path, tmp_path: Path):
    names = [unit.name for unit in shown_units(root)]
    for name in (*names, "solutions/02_softmax.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(root / "notebooks" / "series.toml", tmp_path / "notebooks")
    assert [unit.name for unit in shown_units(tmp_path)] == names
    assert [unit.name for unit in shown_units(tmp_path, ["2"])] == ["notebooks/02_softmax.ipynb", "exercises/ex_02_softmax.ipynb"]


def test_an_empty_folder_becomes_the_course_and_a_task_is_judged_there(root: Path, installed: Path, tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    environment = quiet_environment(tmp_path / "home", ATTN_COURSE_MODEL="no")
    environment.pop("PYTHONPATH", None)
    command = installed.with_name("attn-course")
    refused = subprocess.run([command, "progress"], cwd=folder, env=environment, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "make an empty one and run attn-course lab in it" in refused.stderr
    with running_lab(folder, "--no-browser", environment=environment, python=installed) as lab:
        assert f"unpacked {len(list(root.glob('[ens]*s/*.ipynb')))} notebooks of the course" in "".join(lab.lines)
        assert lab.address
    (exercise,) = folder.glob("work/ex_*_notation.ipynb")
    book = json.loads(exercise.read_text(encoding="utf-8"))
    solved = json.loads(next(folder.glob("solutions/*_notation.ipynb")).read_text(encoding="utf-8"))
    answers = {cell["id"]: cell["source"] for cell in solved["cells"] if cell["cell_type"] == "code"}
    for cell in book["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    exercise.write_text(json.dumps(book), encoding="utf-8")
    assert "7 of 7 points" in run(command, "check", exercise, cwd=folder, **environment)
    assert "7/7" in run(command, "progress", cwd=folder, **environment)
    assert str(root) not in run(installed, "-c", "import attn_course; print(attn_course.__file__)", cwd=folder)
