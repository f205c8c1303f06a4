"""The Makefile: targets, the choice of a Python, and what is installed when."""

import os
import re
import shutil
import subprocess

import pytest

OUTER = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHON", "TORCH_INDEX", "UV", "PYTEST_ARGS", "MODEL")  # of a `make test`

TOY_TOOL = '#!/bin/sh\necho "$(basename "$0") $*" >> calls.txt\n'
TOY_PYTHON = """#!/bin/sh
[ "$*" = "-m venv .venv" ] || exit 0
mkdir -p .venv/bin
touch .venv/pyvenv.cfg
cp tool .venv/bin/python
cp tool .venv/bin/attn-course
"""


def make(folder, *arguments) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in (*OUTER, "ATTN_COURSE_MODEL")}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def course(root, tmp_path):
    """A folder with the Makefile, and programs that stand in for Python: what they install only notes how it was called."""
    shutil.copy(root / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    (tmp_path / "tests" / "nbgrader").mkdir(parents=True)
    (tmp_path / "tests" / "nbgrader" / "requirements.txt").touch()
    without_venv = '#!/bin/sh\ncase "$2" in *version_info*) exit 0;; *) exit 1;; esac\n'
    for name, text in {"tool": TOY_TOOL, "new": TOY_PYTHON, "old": "#!/bin/sh\nexit 1\n", "bare": without_venv}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def calls(course, *arguments, uv="") -> list[str]:
    """Run make and return what it called in .venv; `uv`: the uv on PATH."""
    (course / "calls.txt").unlink(missing_ok=True)
    made = make(course, *arguments, "PYTHON=./old ./bare ./new", "PYTEST_ARGS=-n 2", f"UV={uv}")
    assert made.returncode == 0, made.stderr
    return (course / "calls.txt").read_text().splitlines()


def test_every_target_is_phony_and_listed_by_help(root):
    text = (root / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z]+):", text, flags=re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split()
    assert sorted(targets) == sorted(phony)
    assert re.findall(r"^  make (\w+) ", make(root, "help").stdout, flags=re.MULTILINE) == targets


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("no-such-python", "Python 3.11 or newer is needed; none of these is: no-such-python. Name one: make lab PYTHON=python3.12"),
        ("./old", "Python 3.11 or newer is needed; none of these is: ./old. Name one: make lab PYTHON=python3.12"),
        ("./old ./bare", "./bare lacks the modules venv or ensurepip; on Debian or Ubuntu: sudo apt install python3-venv"),
    ],
)
def test_a_python_that_will_not_do_gets_one_clear_line(course, python, message):
    made = make(course, "lab", f"PYTHON={python}")
    assert made.returncode == 2
    assert made.stderr.splitlines()[0] == f"error: {message}"
    assert not (course / ".venv").exists()


RUNTIME = "python -m pip install -c constraints.txt -e ."
AUTHOR = "python -m pip install -c constraints.txt -e .[author]"
TEST = "python -m pip install -c constraints.txt -e .[author,cards,class,site,test]"
OWN_UV = "python -m pip install --quiet uv"
MODEL = "attn-course model"
COMPILED = "python tests/warm.py"
NBGRADER = "python tests/layered_environment.py .venv/nbgrader -r tests/nbgrader/requirements.txt"


def test_each_command_installs_what_it_needs_once(course):
    assert calls(course, "lab") == [RUNTIME, MODEL, "attn-course lab"]
    assert calls(course, "lab") == [MODEL, "attn-course lab"]
    assert calls(course, "notebooks") == [AUTHOR, "attn-course notebooks build"]
    assert calls(course, "notebooks") == ["attn-course notebooks build"]
    assert calls(course, "test") == [OWN_UV, TEST, COMPILED, NBGRADER, MODEL, "python -m pytest -n 2"]
    assert calls(course, "lab") == [MODEL, "attn-course lab"]
    assert calls(course, "test") == [MODEL, "python -m pytest -n 2"]


def test_what_installs_more_is_not_followed_by_what_installs_less(course):
    assert calls(course, "test") == [OWN_UV, TEST, COMPILED, NBGRADER, MODEL, "python -m pytest -n 2"]
    assert calls(course, "notebooks") == ["attn-course notebooks build"]
    assert calls(course, "lab") == [MODEL, "attn-course lab"]


def test_modules_are_compiled_as_they_are_imported_whatever_the_container_says(course, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (course / "tool").write_text(f"{TOY_TOOL}echo ${{PIP_NO_COMPILE-}} ${{PYTHONDONTWRITEBYTECODE-written}} >> calls.txt\n")
    assert calls(course, "lab")[1::2] == ["1 written"] * 3


def test_the_language_model_may_be_left_out_or_out_of_reach(course):
    assert calls(course, "lab", "MODEL=no") == [RUNTIME, "attn-course lab"]
    program = '#!/bin/sh\necho "attn-course $* ${ATTN_COURSE_MODEL-}" >> calls.txt\n[ "$1" != model ]\n'
    (course / ".venv" / "bin" / "attn-course").write_text(program)
    assert calls(course, "lab") == [f"{MODEL} ", "attn-course lab "]
    assert calls(course, "lab", "MODEL=no") == ["attn-course lab no"]


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed(course, changed):
    calls(course, "lab")
    later = (course / ".venv/.runtime").stat().st_mtime + 10
    os.utime(course / changed, (later, later))
    assert calls(course, "lab") == [RUNTIME, MODEL, "attn-course lab"]


def test_only_torch_comes_from_the_chosen_index(course):
    index = "TORCH_INDEX=https://example.org/cpu"
    torch = "python -m pip install --no-deps --index-url https://example.org/cpu -c constraints.txt torch"
    assert calls(course, "lab", index) == [torch, RUNTIME, MODEL, "attn-course lab"]
    assert calls(course, "lab", index) == [MODEL, "attn-course lab"]


@pytest.mark.parametrize(("uv", "then"), [("./tool", []), ("./lost", [RUNTIME])], ids=["it answers", "it reaches no index"])
def test_uv_installs_where_it_is_and_pip_what_it_cannot(course, monkeypatch, uv, then):
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    (course / "lost").write_text('#!/bin/sh\necho "tool $*" >> calls.txt\nexit 2\n')
    (course / "lost").chmod(0o755)
    by_uv = "tool pip install --quiet --python .venv/bin/python -c constraints.txt -e ."
    assert calls(course, "lab", uv=uv) == [by_uv, *then, MODEL, "attn-course lab"]
    assert OWN_UV not in calls(course, "test", uv=uv)


@pytest.mark.parametrize(("told", "asked"), [({}, ["python -m pip config get global.find-links"]), ({"PIP_FIND_LINKS": "/wheels"}, [])])
def test_the_tests_bring_a_uv_of_their_own_which_looks_for_wheels_where_pip_does(course, monkeypatch, told, asked):
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    own = '#!/bin/sh\necho "own uv $* from $UV_FIND_LINKS" >> calls.txt\n'
    bring = """[ "$*" != "-m pip install --quiet uv" ] || cp own .venv/bin/uv\n"""
    (course / "own").write_text(own)
    (course / "own").chmod(0o755)
    (course / "tool").write_text(f"""{TOY_TOOL}[ "$3" != config ] || echo /wheels\n{bring}""")
    installed = "own uv pip install --quiet --python .venv/bin/python -c constraints.txt -e .[author,cards,class,site,test] from /wheels"
    said = [line for line in calls(course, "test") if line not in asked]
    assert said == [OWN_UV, installed, COMPILED, NBGRADER, MODEL, "python -m pytest -n 2"]


def test_a_failed_installation_is_tried_again(course):
    calls(course, "lab")
    (course / ".venv/.runtime").unlink()
    (course / ".venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
    assert make(course, "lab").returncode == 2
    (course / ".venv/bin/python").write_text(TOY_TOOL)
    assert calls(course, "lab") == [RUNTIME, MODEL, "attn-course lab"]


def test_a_venv_that_broke_off_is_made_again(course):
    (course / "new").write_text('#!/bin/sh\n[ "$*" = "-m venv .venv" ] || exit 0\nmkdir .venv && touch .venv/pyvenv.cfg\nexit 1\n')
    assert make(course, "lab", "PYTHON=./new").returncode == 2
    (course / "new").write_text(TOY_PYTHON)
    assert calls(course, "lab") == [RUNTIME, MODEL, "attn-course lab"]


def test_clean_leaves_the_learners_notebooks(course):
    calls(course, "lab")
    (course / "work").mkdir()
    (course / "work" / "02_softmax.ipynb").touch()
    assert make(course, "clean").returncode == 0
    assert not (course / ".venv").exists()
    assert (course / "work" / "02_softmax.ipynb").exists()
