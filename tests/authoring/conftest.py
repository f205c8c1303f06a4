"""A tiny course in a temporary folder, with toy tasks and a kernel that is not one."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

from attn_course.authoring import BuildReport, Problem, build, check
from attn_course.authoring.outputs import settle

LESSON = """\
# %% [markdown] id="title"
# # Doubling
# Work along in [the exercises](../work/ex_{lesson}`double`_double.ipynb).

# %% id="setup"
from attn_course.reference import double

# %% [markdown] id="formula"
# Twice is a sum: $$2x = x + x \\label{twice-is-a-sum}$$

# %% id="try-it"
print(double(21))

# %% id="clock" tags=["live"]
import time
print(time.perf_counter())
"""

SOLUTION = '''\
# %% [markdown] id="title"
# # Doubling: tasks

# %% id="setup"
from attn_course import check

# %% [markdown] id="double-it-text"
# Write `my_double(x)`.

# %% id="double-it" tags=["task"]
def my_double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return x + x
    ### END SOLUTION

# %% id="double-it-check" tags=["check"]
check("double-it", my_double)

# %% [markdown] id="why" tags=["solution-only"]
# Because $x + x = 2x$.

# %% [markdown] id="slope-of-double-text"
# Give the derivative of $2x$.

# %% id="slope-of-double" tags=["task"]
### BEGIN SOLUTION
my_slope = two
### END SOLUTION

# %% id="slope-of-double-check" tags=["check"]
check("slope-of-double", my_slope)

# %% [markdown] id="half-it-text"
# Mend `my_half`.

# %% id="half-it" tags=["task"]
def my_half(x):
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% id="half-it-check" tags=["check"]
check("half-it", my_half)
'''

SERIES = """\
[[lesson]]
slug = "nought"
title = "Nought"
minutes = 1

[[lesson]]
slug = "one"
title = "One"
minutes = 1

[[lesson]]
slug = "double"
title = "Double"
minutes = 1

[[lesson]]
slug = "triple"
title = "Triple"
minutes = 1
"""

PACKAGE = {
    "__init__.py": 'from attn_course.tasks import check\n',
    "reference/__init__.py": "from attn_course.reference.double import double\nfrom attn_course.reference.triple import triple\n",
    "reference/double.py": "def double(x):\n    return x + x\n",
    "reference/triple.py": "def triple(x):\n    return 3 * x\n",
    "tasks/__init__.py": "from attn_course.tasks.engine import check\n",
    "tasks/engine.py": 'def check(number, answer):\n    print("ok", number)\n',
    "lessons/double/tasks.py": "TASKS = []\n",
    "lessons/triple/tasks.py": "TASKS = []\n",
}  # fmt: skip


def toy_task(number: str) -> Any:
    """Look up one of three toy tasks: write, derive, repair."""
    if number not in ("double-it", "slope-of-double", "half-it"):
        raise KeyError(number)
    entry, points = {"double-it": ("my_double", 2), "slope-of-double": ("my_slope", 3), "half-it": ("my_half", 1)}[number]
    return SimpleNamespace(
        id=number,
        entry=entry,
        points=points,
        card=f"## Task {number}: {entry}\n\n*write, {points} points*",
        hints_markdown="<details><summary>Hint 1</summary>\n\nThink.\n\n</details>",
        given_source="two = 2" if number == "slope-of-double" else "",
        question_source="",
        variants=({},),
        numbers_in=lambda text: [],
        your_turn=False,
        broken_source="def my_half(x):\n    return x // 2" if number == "half-it" else "",
    )


def no_gate(written: Any) -> list[Problem]:
    """Find nothing: the toy's lessons have neither equations nor prose."""
    return []


@dataclass
class ToyCourse:
    """A course of one chapter; `runs` lists what its pretended kernel ran."""

    root: Path
    runs: list[str] = field(default_factory=list)
    stdout: str = "42\n"

    def write(self, name: str, text: str) -> None:
        """Write a file under the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    def read(self, name: str) -> str:
        """Return the text of a file under the root."""
        return (self.root / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        text = self.read(name)
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def notebook(self, name: str) -> Any:
        """Return a built notebook."""
        return nbformat.reads(self.read(name), as_version=4)

    def cell(self, name: str, cell_id: str) -> Any:
        """Return one cell of a built notebook."""
        return next(cell for cell in self.notebook(name).cells if cell.id == cell_id)

    def build(self, **options: Any) -> BuildReport:
        """Build with the toy tasks and the pretended kernel; the gate lets everything pass."""
        return build(self.root, **{"get_task": toy_task, "execute": self.execute, "gate": no_gate, **options})

    def check(self, **options: Any) -> list[Problem]:
        """Check with the toy tasks, and without the gate."""
        return check(self.root, **{"get_task": toy_task, "gate": no_gate, **options})

    def execute(self, notebook: Any, folder: Path, package_root: Path, name: str, on_cell: Callable[..., None]) -> None:
        """Pretend to run: every cell that prints leaves the same line."""
        self.runs.append(name)
        for cell in notebook.cells:
            if cell.cell_type == "code" and re.search(r"^(print|check)\(", cell.source, flags=re.MULTILINE):
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=self.stdout)]
        settle(notebook, name)


@pytest.fixture
def course(tmp_path: Path) -> ToyCourse:
    """A course with sources and a package, nothing built."""
    toy = ToyCourse(tmp_path)
    toy.write("notebooks/series.toml", SERIES)
    toy.write("notebooks/src/double.py", LESSON)
    toy.write("solutions/src/double.py", SOLUTION)
    for name, text in PACKAGE.items():
        toy.write(f"attn_course/{name}", text)
    return toy


@pytest.fixture
def built(course: ToyCourse) -> ToyCourse:
    """The same course, built."""
    course.build()
    course.runs.clear()
    return course
