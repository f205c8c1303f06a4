"""A tiny course in a temporary folder, with toy tasks and a kernel that is not one."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest

from attn_course.authoring import BuildReport, Problem, build, check
from attn_course.authoring.outputs import settle
from attn_course.tasks import Task
from attn_course.tasks.asked import asked

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

TASKS = """\
ORDER = [
    "double-it",
    "slope-of-double",
    "half-it",
]
"""

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
    "lessons/double/tasks.py": TASKS,
    "lessons/triple/tasks.py": "TASKS = []\n",
}  # fmt: skip


FACTS = {"equation": "", "difficulty": 1, "minutes": 5, "trains": "nothing", "hints": "Think.\ntwo\nthree"}
SLIPS = """
    a
        2 -> 3
        one
    b
        2 -> 4
        two
    c
        2 -> 5
        three
"""
BROKEN = """
    whole numbers alone
        x / 2 -> x // 2
        one
    b
        2 -> 4
        two
    c
        2 -> 5
        three
"""


def two():
    return 2


@asked("double-it", "Double it", kind="write", points=2, slips=SLIPS, why="Because $x + x = 2x$.", **FACTS)
def my_double(x):
    """Twice x.

    Write `my_double(x)`.
    """
    return 2 * x


@asked("slope-of-double", "The slope", kind="predict", points=3, slips=SLIPS, given=[two], **FACTS)
def my_slope():
    """Give the derivative of $2x$."""
    return 2


@asked("half-it", "Half it", kind="repair", points=1, slips=BROKEN, broken="whole numbers alone", **FACTS)
def my_half(x):
    """Half of x.

    Mend `my_half`.
    """
    return x / 2


TOYS = {task.id: task for task in (my_double, my_slope, my_half)}


def toy_task(task_id: str) -> Task:
    """Look up one of three toy tasks: write, predict, repair."""
    return TOYS[task_id]


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
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        text = self.read(name)
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def notebook(self, name: str) -> Any:
        return nbformat.reads(self.read(name), as_version=4)

    def cell(self, name: str, cell_id: str) -> Any:
        return next(cell for cell in self.notebook(name).cells if cell.id == cell_id)

    def build(self, **options: Any) -> BuildReport:
        """Build with the toy tasks and the pretended kernel; the gate lets everything pass."""
        return build(self.root, **{"get_task": toy_task, "execute": self.execute, "gate": no_gate, **options})

    def check(self, **options: Any) -> list[Problem]:
        return check(self.root, **{"get_task": toy_task, "gate": no_gate, **options})

    def execute(self, notebook: Any, folder: Path, package_root: Path, name: str, on_cell: Callable[..., None]) -> None:
        """Pretend to run: every cell that prints leaves the same line."""
        self.runs.append(name)
        for cell in notebook.cells:
            if cell.cell_type == "code" and re.search(r"^(print|check)\(", cell.source, flags=re.MULTILINE):
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=self.stdout)]
        settle(notebook, name)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyCourse:
    monkeypatch.setattr("attn_course.tasks.registry.order", lambda slug: [*TOYS])
    toy = ToyCourse(tmp_path)
    toy.write("notebooks/series.toml", SERIES)
    toy.write("notebooks/src/double.py", LESSON)
    for name, text in PACKAGE.items():
        toy.write(f"attn_course/{name}", text)
    return toy


@pytest.fixture
def built(course: ToyCourse) -> ToyCourse:
    course.build()
    course.runs.clear()
    return course
