"""CI, the hooks and the README's commands run the same checks: all go through make and the tools of .venv."""

import os
import subprocess
import tomllib

import pytest
import yaml

from tests.project.requirements import supported_pythons


def commands(script: str) -> list[str]:
    """Return the lines of a shell script that do something at its top level."""
    return [line for line in script.splitlines() if line and not line.startswith((" ", "#"))]


@pytest.fixture
def workflow(root):
    return yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


def test_the_ci_script_ends_with_make_test_and_stops_at_the_first_error(root):
    lines = commands((root / ".ci/run").read_text(encoding="utf-8"))
    assert lines[0] == "set -euo pipefail"
    assert lines[-1] == "make test"
    assert os.access(root / ".ci/run", os.X_OK)


def test_the_ci_script_is_valid_bash(root):
    subprocess.run(["bash", "-n", root / ".ci/run"], check=True)


def test_the_workflow_runs_the_ci_script_on_every_supported_python(root, workflow):
    job = workflow["jobs"]["test"]
    assert job["strategy"]["matrix"]["python-version"] == supported_pythons(root)
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]


def test_the_oldest_supported_python_is_the_one_pip_ruff_and_mypy_assume(root):
    pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = supported_pythons(root)[0]
    assert pyproject["project"]["requires-python"] == f">={oldest}"
    assert pyproject["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert pyproject["tool"]["mypy"]["python_version"] == oldest


def test_the_hooks_are_valid_and_need_no_network(root):
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = config["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in repository["hooks"])
