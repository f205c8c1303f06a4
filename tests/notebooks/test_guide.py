"""The authors' guide tells the truth: its miniature chapter builds, its equation holds, its task judges."""

import re

import numpy as np
import pytest

from attn_course import authoring
from attn_course.authoring.outputs import settle
from attn_course.equations import core
from attn_course.tasks.core import Task

from . import formulas
from .chapters import ROOT

LESSON, EQUATION, TASK, SOLUTION = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/authors-guide.md").read_text(encoding="utf-8"), re.DOTALL
)


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
    for folder, text in (("notebooks", LESSON), ("solutions", SOLUTION)):
        (root / folder / "src").mkdir(parents=True)
        (root / folder / "src" / "99_centring.py").write_text(text, encoding="utf-8")
    authoring.build(
        root, get_task={"99.1": task}.__getitem__, execute=lambda notebook, folder, package, name, on_cell: settle(notebook, name)
    )
    return root


def read(path):
    import nbformat

    return nbformat.read(path, as_version=4)


def test_the_miniature_builds_and_passes_the_check(built, task):
    assert authoring.check(built, get_task={"99.1": task}.__getitem__) == []


def test_its_formula_is_the_registered_one_and_is_verified(built, registry):
    lesson = read(built / "notebooks" / "99_centring.ipynb")
    assert formulas.tag_findings(lesson, 99) == []
    assert formulas.registry_findings(lesson, {"99.1": registry.get_equation("99.1").latex}) == []
    assert formulas.verify_findings(lesson) == []


def test_its_equation_holds_and_its_wrong_form_does_not(registry):
    equation = registry.get_equation("99.1")
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
    cells = {cell.id: cell for cell in read(built / "exercises" / "99_centring.ipynb").cells}
    assert cells["task-99-1"].source.endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    assert "task-99-1-why" not in cells
