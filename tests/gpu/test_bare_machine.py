"""The tests that need a GPU can be collected where there is nothing but torch, Triton, NumPy and pytest."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT = """
import importlib.util, sys

ABSENT = {"IPython", "beartype", "hypothesis", "jaxtyping", "jupyter_client", "matplotlib", "nbformat", "nbval", "rich", "typer"}
find = importlib.util.find_spec


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
importlib.util.find_spec = lambda name, package=None: None if name.partition(".")[0] in ABSENT else find(name, package)
"""


def test_they_import_nothing_else(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    files = sorted(str(path) for path in (ROOT / "tests" / "gpu").glob("test_*on_a_gpu.py"))
    assert len(files) == 2
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = ["-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *files]
    ran = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert "test_flash_on_a_gpu.py::test_odd_lengths" in ran.stdout
