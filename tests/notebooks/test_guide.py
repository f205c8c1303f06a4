"""The authors' guide tells the truth: its miniature chapter builds, its equation holds, its task judges."""

import json
import re
import tomllib

import numpy as np
import pytest

from attn_course import authoring, numbers
from attn_course.authoring.outputs import settle
from attn_course.equations import core
from attn_course.tasks.core import Task

from . import formulas
from .chapters import ROOT

GUIDE = (ROOT / "docs/authors-guide.md").read_text(encoding="utf-8")
LESSON, EQUATION, TASK, SOLUTION = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
(ENTRY,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
SLUG = tomllib.loads(ENTRY)["lesson"][0]["slug"]
FILES = {path.format(SLUG): text for path, text in {
    "notebooks/series.toml": ENTRY,
    "notebooks/src/{}.py": LESSON,
    "solutions/src/{}.py": SOLUTION,
    "attn_course/lessons/{}/equations.py": EQUATION,
    "attn_course/lessons/{}/tasks.py": TASK,
}.items()}  # fmt: skip


@pytest.fixture(scope="module")
def task() -> Task:
    names: dict = {}
    exec(compile(TASK, "guide, task", "exec"), names)
    (only,) = names["TASKS"]
    return only


@pytest.fixture
def registry(monkeypatch):
    """A registry of its own, filled by the guide's code."""
    registry = core.Registry()
    monkeypatch.setattr(core, "equation", registry.equation)
    exec(compile(EQUATION, "guide, equation", "exec"), {"__name__": "guide"})
    return registry


@pytest.fixture(scope="module")
def built(tmp_path_factory, task):
    """The folder of the miniature, built without a kernel."""
    root = tmp_path_factory.mktemp("guide")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    authoring.build(
        root, get_task={task.id: task}.__getitem__, execute=lambda notebook, folder, package, name, on_cell: settle(notebook, name)
    )
    return root


def read(path):
    import nbformat

    return nbformat.read(path, as_version=4)


def test_the_miniature_builds_and_passes_the_check(built, task):
    assert authoring.check(built, get_task={task.id: task}.__getitem__) == []


def test_the_guide_names_every_file_that_it_shows():
    assert [name for name in FILES if f"`{name}`" not in GUIDE] == []


def test_the_numbers_are_those_of_its_place_in_the_list(built):
    tables = json.loads((built / "attn_course" / "numbers.json").read_text(encoding="utf-8"))
    assert tables == {
        "labels": {"centring": {"centred-sum": "0.1"}},
        "tasks": {"centring": {"centre-rows": "0.1"}},
        "slugs": {"centring": {"number": 0, "title": "Centring"}},
    }
    headings = [cell.source.splitlines()[0] for cell in read(built / "notebooks/00_centring.ipynb").cells if cell.source.startswith("#")]
    assert headings == ["# 00 Centring", "## 0.1 Nothing on balance"]


@pytest.mark.parametrize("role", re.findall(r"^\| `` (\{.*?`.*?`) ``.*\| (.*?) \|$", GUIDE, re.MULTILINE))
def test_the_roles_of_the_guide_become_what_it_says(built, role):
    written, shown = role
    tables = json.loads((built / "attn_course" / "numbers.json").read_text(encoding="utf-8"))
    thirteenth = json.loads(json.dumps(tables).replace('"0.1"', '"13.1"').replace('"number": 0', '"number": 13'))
    assert numbers.cite(written, thirteenth, {"sum": "13.1"}) == shown


def test_its_formula_is_the_registered_one_and_is_verified(built, registry, monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: json.loads((built / "attn_course" / "numbers.json").read_text(encoding="utf-8")))
    lesson = read(built / "notebooks" / "00_centring.ipynb")
    assert formulas.tag_findings(lesson) == []
    assert [label for _, label, _ in formulas.tagged(lesson)] == ["centred-sum"]
    assert formulas.registry_findings(lesson, {"centred-sum": registry.get_equation("centred-sum").latex}) == []
    assert formulas.verify_findings(lesson) == []


def test_its_equation_holds_and_its_wrong_form_does_not(registry):
    equation = registry.get_equation("centred-sum")
    equation.check()
    (wrong,) = equation.wrongs
    with pytest.raises(core.Refuted):
        equation.check(wrong.statement)


def test_its_solution_is_right_and_each_wrong_answer_is_not(task):
    names: dict = {"np": np}
    answer = SOLUTION.split("# %% ")[4].split("\n", 1)[1]
    exec(compile(answer, "guide, solution", "exec"), names)
    for case in task.cases(np.random.default_rng(3)):
        right = task.answer(**case.inputs)
        np.testing.assert_allclose(names["my_centre"](**case.inputs), right)
    case = task.cases(np.random.default_rng(3))[0]
    for wrong in task.wrong:
        assert not np.allclose(wrong.function(**case.inputs), task.answer(**case.inputs)), wrong.name


def test_the_exercise_is_a_stub(built):
    cells = {cell.id: cell for cell in read(built / "exercises" / "ex_00_centring.ipynb").cells}
    assert cells["centre-rows"].source.endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    assert "centre-rows-why" not in cells
