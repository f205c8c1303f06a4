"""A small course in a folder of its own, and the `lab` command running on it as a learner would run it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
SCRIPT = "<p id='moves'>still</p><script>document.getElementById('moves').textContent = 'moving'</script>"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\?token=\w+")


def write_notebook(path: Path, *sources: str, script: bool = False) -> None:
    """Write a notebook: a source that begins with # and a blank is Markdown; `script` adds an output with a script in it."""
    cells = [new_markdown_cell(text) if text.startswith("# ") else new_code_cell(text) for text in sources]
    if script:
        output = new_output("display_data", data={"text/html": SCRIPT, "text/plain": "still"})
        cells.append(new_code_cell("# draws", outputs=[output], execution_count=1))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), path)


def make_course(root: Path) -> Path:
    """Write a course of two chapters: lessons, exercises, solutions, and a file for each thing that stays out of sight."""
    for name in ("02_softmax.ipynb", "03_scaling.ipynb"):
        write_notebook(root / "notebooks" / name, f"# Lesson {name}", "1 + 1", script=True)
        write_notebook(root / "exercises" / f"ex_{name}", f"# Exercises {name}", "def answer():\n    raise NotImplementedError", "answer()")
        write_notebook(root / "solutions" / name, f"# Solutions {name}", "def answer():\n    return 42", "answer()", script=True)
    for hidden in ("notebooks/src/softmax.py", "attn_course/__init__.py", "tests/test_it.py", "Makefile", "pyproject.toml"):
        (root / hidden).parent.mkdir(parents=True, exist_ok=True)
        (root / hidden).write_text("# machinery\n")
    (root / "README.md").write_text("# Read me\n")
    return root


def quiet_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment without a display, whose home is an empty folder, so that nothing of this computer's user is seen."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "XDG_"))}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        kept.pop(name, None)
    home.mkdir(parents=True, exist_ok=True)
    return kept | {"HOME": str(home)} | more


@dataclass
class Lab:
    process: subprocess.Popen[str]
    lines: list[str]

    @property
    def address(self) -> str:
        """The address it printed, token and all."""
        found = ADDRESS.search("".join(self.lines))
        assert found, f"no address in {self.lines}"
        return found[0]

    def finish(self) -> tuple[int, str]:
        """Wait for its end, at most ten times what it takes on a busy machine; return its exit code and all it said."""
        said, _ = self.process.communicate(timeout=300)
        return self.process.returncode, "".join(self.lines) + said


@contextmanager
def running_lab(root: Path, *arguments: str, environment: Mapping[str, str], python: str | Path = sys.executable) -> Iterator[Lab]:
    """Run `attn-course lab` in `root`, wait until it prints its address (or ends), and stop it afterwards."""
    line = [python, "-P", "-m", "attn_course.cli", "lab", *arguments]  # -P: the course folder holds an attn_course too
    process = subprocess.Popen(line, cwd=root, env=dict(environment), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    lab = Lab(process, [])
    try:
        for said in process.stdout:
            lab.lines.append(said)
            if said.startswith("Stop with Ctrl-C"):
                break
        yield lab
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
