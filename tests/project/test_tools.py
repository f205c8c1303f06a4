"""ruff, mypy and codespell find nothing, and each of them would find a planted mistake."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FORMAT = ("ruff", "format", "--check")
LINT = ("ruff", "check", "--no-cache", "--output-format=concise")
SPELLING = ("codespell_lib",)


def run_tool(root, tool, *arguments) -> tuple[int, str]:
    """Run a tool from the top folder, so that it reads pyproject.toml, and return its exit code and what it printed."""
    done = subprocess.run([sys.executable, "-m", *tool, *arguments], cwd=root, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_code_is_formatted(root):
    code, output = run_tool(root, FORMAT, ".")
    assert code == 0, f"{output}\nmend it: make format"


def test_the_code_is_lint_free(root):
    code, output = run_tool(root, LINT, ".")
    assert code == 0, f"{output}\nmend what can be mended: make format"


def test_the_types_agree_and_planted_mistakes_are_all_that_is_found(root, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("def f(x: int) -> str:\n    return x\n\n\ndef g(x):\n    return x\n")
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    _, output = run_tool(root, ("mypy", "--no-error-summary"), "-p", "attn_course", "-m", "planted")
    found = re.findall(r"(\S+):\d+: error: .*\[(.+)\]$", output, re.MULTILINE)
    planted = [(Path(place).name, code) for place, code in found]  # a cache tells the folder of an earlier run
    assert planted == [("planted.py", "return-value"), ("planted.py", "no-untyped-def")], output


def test_the_words_are_spelled_right(root):
    code, output = run_tool(root, SPELLING)
    assert code == 0, output


@pytest.mark.parametrize(
    ("tool", "text", "complaint"),
    [
        (FORMAT, "x  =  1\n", "reformatted"),
        (LINT, "import os\n", "F401"),
        (LINT, f"x = {'1 + ' * 50}1\n", "E501"),
        (LINT, "def f(x=[]):\n    return x\n", "B006"),
        (SPELLING, "# the wieghts of each row\n", "wieghts ==> weights"),  # codespell:ignore wieghts
    ],
)
def test_a_planted_mistake_is_found(root, tmp_path, tool, text, complaint):
    planted = tmp_path / "planted.py"
    planted.write_text(text)
    config = {"ruff": "--config", "codespell_lib": "--toml"}[tool[0]]
    code, output = run_tool(root, tool, config, root / "pyproject.toml", planted)
    assert code != 0
    assert complaint in output


@pytest.mark.parametrize("folder", ["notebooks", "solutions"])
def test_the_sources_of_notebooks_are_linted_with_the_habits_of_cells(root, folder):
    place = root / folder / "src" / "planted.py"
    text = "# %%\nimport numpy as np\n\nx = np.ones(3)\n\n# %%\nimport math\n\nmath.pi\nx\n\n# %%\nimport os\n"
    command = [sys.executable, "-m", *LINT, "--stdin-filename", place, "-"]
    output = subprocess.run(command, cwd=root, input=text, capture_output=True, text=True).stdout
    assert "F401" in output
    assert "E402" not in output
    assert "B018" not in output
