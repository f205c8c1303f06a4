"""The room table of the architecture: every import in attn_course is read and held to it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.project.rooms import ROOMS, imports, violations

WORKER = "the worker half of tasks and classroom may not import"


def planted(tmp_path: Path, files: dict[str, str]) -> list[str]:
    package = tmp_path / "attn_course"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return violations(package)


def test_every_import_keeps_to_the_room_table(root):
    assert violations(root / "attn_course") == []


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("reference/softmax.py", "import torch", "1: reference may not import torch"),
        ("reference/softmax.py", "from ..costs import x", "1: reference may not import attn_course.costs.x"),
        ("reference/softmax.py", "from .. import tasks", "1: reference may not import attn_course.tasks"),
        ("reference/softmax.py", "def f():\n    import sympy", "2: reference may not import sympy"),
        ("reference/softmax.py", "import importlib\nimportlib.import_module('torch')", "2: reference may not import torch"),
        ("reference/softmax.py", "import attn_course", "1: reference may not import attn_course"),
        (
            "figures/base.py",
            "from attn_course.lessons.softmax import figures",
            "1: figures may not import attn_course.lessons.softmax.figures",
        ),
        (
            "lessons/attention/figures_plane.py",
            "from attn_course.lessons.softmax.figures_more import points",
            "1: figures may not import attn_course.lessons.softmax.figures_more.points",
        ),
        ("lessons/softmax/tasks_slopes.py", "import torch", "1: tasks may import torch only inside a function"),
        ("gpu/ops.py", "import triton", "1: gpu may import triton only in a file that defines a kernel (@triton.jit)"),
        ("commands/lab.py", "import torch", "1: cli may import torch only inside a function"),
        ("__init__.py", "from attn_course.tasks import check", "1: __init__ may import attn_course.tasks.check only inside a function"),
        ("tasks/run.py", "from attn_course.tasks.core import Task", f"1: {WORKER} attn_course.tasks.core.Task"),
        ("classroom/worker.py", "def f():\n    import attn_course.tasks.registry", f"2: {WORKER} attn_course.tasks.registry"),
    ],
)
def test_a_forbidden_import_is_named_with_its_line(tmp_path, place, text, complaint):
    assert planted(tmp_path, {place: text}) == [f"{place}:{complaint}"]


def test_a_folder_that_is_no_room_is_named(tmp_path):
    assert planted(tmp_path, {"utils.py": "import math"}) == [
        "utils.py: utils is no room of the table; add it to tests/project/rooms.py and to the architecture"
    ]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (
            "reference/linear.py",
            "import math\nimport numpy as np\nfrom jaxtyping import Float\nfrom attn_course.reference.softmax import softmax",
        ),
        ("lessons/masking/tasks.py", "def answer():\n    import torch\n    return torch.ones(2)"),
        ("lessons/softmax/figures.py", "from attn_course.lessons.softmax.figures_more import points"),
        ("gpu/flash_forward.py", "import torch, triton\n@triton.jit\ndef kernel(): ..."),
        ("cli.py", "import typer\nfrom attn_course.commands import lab\ndef check():\n    from attn_course.checking import notebook_check"),
        ("commands/lab.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from attn_course.tasks import Verdict"),
    ],
)
def test_an_allowed_import_passes(tmp_path, place, text):
    assert planted(tmp_path, {place: text}) == []


def lessons_named(text: str) -> bool:
    """Whether a string of a file, docstrings aside, names the package of the lessons."""
    tree = ast.parse(text)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in alone]
    return any("attn_course.lessons" in str(node.value) for node in strings)


def test_engines_load_lessons_in_one_place(root):
    package = root / "attn_course"
    files = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert [name for name, text in files.items() if not name.startswith("lessons/") and lessons_named(text)] == ["numbers.py"]


def test_no_room_is_allowed_the_whole_course_at_the_top_of_a_file():
    assert [name for name, room in ROOMS.items() if "attn_course" in room.anywhere] == []


@pytest.mark.parametrize("room", ["formulas", "commands", "checking"])
def test_no_file_of_a_room_imports_one_that_imports_it(root, room):
    graph = {}
    for path in (root / "attn_course" / room).glob("[a-z]*.py"):
        found = imports(path.read_text(encoding="utf-8"), module=("attn_course", room, path.stem))
        graph[path.stem] = {parts[2] for one in found if len(parts := one.name.split(".")) > 2 and parts[:2] == ["attn_course", room]}
    assert sum(map(bool, graph.values())) >= 3
    assert [*TopologicalSorter(graph).static_order()]
