"""What a learner calls explains itself: numpydoc finds every parameter, result and error described, and every example runs."""

import ast
import doctest
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.project.docstrings import complaints, public_names

PACKAGE = Path(__file__).resolve().parents[2] / "attn_course"
ROOMS = ("attn_course.reference", "attn_course.costs", "attn_course.notation")  # whose functions a learner calls

GOOD = '''
def double(x):
    """Return twice the number.

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    doubled : float
        Two times `x`.

    Examples
    --------
    >>> double(2)
    4
    """
    return 2 * x
'''


def modules_with_examples(package: Path) -> list[str]:
    """Return the modules in which some docstring has an example."""
    found = []
    for path in sorted(package.rglob("*.py")):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, documented)]
        if any(">>> " in (ast.get_docstring(node) or "") for node in nodes):
            found.append(".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
    return found


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Write a module, and import it under its own name."""

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return import_module(name)

    return write


@pytest.mark.parametrize("name", [name for room in ROOMS for name in public_names(room)])
def test_the_docstring_is_complete(name):
    assert complaints(name) == []


def test_a_good_docstring_passes(toy):
    toy("toy_good", GOOD)
    assert complaints("toy_good.double") == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"""Return twice', '"""Returns twice', "SS05"),
        ("the number.", "the number", "SS03"),
        ("def double(x):", "def double(x, y=1):", "PR01"),
        ("    x : float\n        Any number.", "    z : float\n        Any number.", "PR02"),
        ("    x : float", "    x", "PR04"),
        ("        Any number.\n", "", "PR07"),
        ("        Any number.", "        Any number", "PR09"),
        ("    Returns\n    -------\n    doubled : float\n        Two times `x`.\n", "", "RT01"),
        ("    Examples\n    --------\n    >>> double(2)\n    4\n", "", "EX01"),
    ],
)
def test_a_docstring_that_lacks_something_is_named_with_the_code(toy, old, new, code):
    assert old in GOOD
    name = f"toy_{code.lower()}"
    toy(name, GOOD.replace(old, new))
    assert code in [line.split()[1] for line in complaints(f"{name}.double")]


def test_a_missing_docstring_is_named(toy):
    toy("toy_bare", "def double(x):\n    return 2 * x\n")
    assert [line.split()[1] for line in complaints("toy_bare.double")] == ["GL08"]


def test_public_names_are_those_defined_in_the_room(tmp_path, monkeypatch):
    package = tmp_path / "toy_room"
    package.mkdir()
    (package / "__init__.py").write_text("from toy_room.sums import total\n")
    (package / "sums.py").write_text(
        "from math import sqrt\ndef total(x): ...\ndef _hidden(): ...\nclass Sum:\n    def add(self, x): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert public_names("toy_room") == ["toy_room.sums.Sum", "toy_room.sums.Sum.add", "toy_room.sums.total"]


def test_a_room_that_lists_its_public_names_is_asked_for_those_only(tmp_path, monkeypatch):
    package = tmp_path / "toy_listed"
    package.mkdir()
    (package / "__init__.py").write_text("from toy_listed.sums import Sum, total\n__all__ = ['Sum', 'total']\n")
    (package / "sums.py").write_text("def total(x): ...\ndef shared(x): ...\nclass Sum:\n    def add(self, x): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert public_names("toy_listed") == ["toy_listed.sums.Sum", "toy_listed.sums.Sum.add", "toy_listed.sums.total"]


def test_the_reference_lists_every_function_of_the_contract():
    assert {name.rpartition(".")[2] for name in public_names("attn_course.reference")} >= {"attention", "attention_backward", "softmax"}


@pytest.mark.parametrize("name", modules_with_examples(PACKAGE))
def test_the_examples_in_docstrings_run(name):
    results = doctest.testmod(import_module(name), raise_on_error=False)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_modules_with_examples_are_found(tmp_path):
    files = {"a.py": '"""\n>>> 1\n1\n"""\n', "b.py": "x = '>>> 1'\n", "room/__init__.py": 'def f():\n    """\n    >>> 2\n    2\n    """\n'}
    for name, text in files.items():
        path = tmp_path / "toy_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert modules_with_examples(tmp_path / "toy_package") == ["toy_package.a", "toy_package.room"]


def test_a_wrong_example_is_noticed(toy, capsys):
    module = toy("toy_wrong", GOOD.replace("    4\n", "    5\n"))
    assert doctest.testmod(module) == (1, 1)
    assert "Expected:\n    5\nGot:\n    4" in capsys.readouterr().out
