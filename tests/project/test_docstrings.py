"""What a learner calls explains itself: `help` says shapes, options, units, errors and the source, and every example runs."""

import ast
import doctest
import inspect
import re
import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

import attn_course.reference
from attn_course.authoring.formulas import labels_named
from attn_course.equations import all_equations
from tests.project.docstrings import ERROR, SOURCE, complaints, in_blocks, public_names, thing_named

PACKAGE = Path(__file__).resolve().parents[2] / "attn_course"
ROOMS = tuple(f"attn_course.{room}" for room in ("reference", "costs", "notation", "modules", "distributed"))  # what a learner imports
REFERENCE = public_names("attn_course.reference")

GOOD = '''
import numpy as np

def double(x: np.ndarray, *, softly=False):
    """Return twice the numbers.

    `x` (len,): any numbers. `softly`: in two steps. Raises ValueError if there is none.

    >>> double(np.array([2]))
    array([4])
    """
    if not len(x):
        raise ValueError("x must hold numbers; got none")
    return 2 * x
'''


def modules_with_examples(package: Path) -> list[str]:
    """Return the modules in which some docstring has an example."""
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ">>> " not in text:
            continue
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
        if any(">>> " in (ast.get_docstring(node) or "") for node in nodes):
            found.append(".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
    return found


@pytest.fixture
def toy(tmp_path, monkeypatch):
    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return import_module(name)

    return write


ATTENTION = "attn_course.gpu.ops.attention"


@pytest.mark.parametrize("room", ROOMS)
def test_signature_and_docstring_say_shapes_options_and_errors(room):
    names = [*public_names(room), ATTENTION]
    assert {name: said for name in names if (said := complaints(name))} == {}


def test_docstrings_name_the_errors_that_helpers_raise_and_the_source():
    things = {name: thing_named(name) for name in (*REFERENCE, ATTENTION)}
    without_init = [name for name, thing in things.items() if inspect.isclass(thing) and "__post_init__" not in vars(thing)]
    assert [name for name, thing in things.items() if not ERROR.search(inspect.getdoc(thing)) and name not in without_init] == []
    named = [name for name, thing in things.items() if "." not in thing.__qualname__]  # a method's source is its class's
    assert [name for name in named if not SOURCE.search(inspect.getdoc(things[name]))] == []


def named_equations(thing):
    """The labels in the summary of a docstring and in what follows it up to the arguments."""
    paragraphs = inspect.getdoc(thing).split("\n\n")
    return labels_named("\n\n".join(takewhile(lambda paragraph: not paragraph.startswith(("`", "Returns ", "Raises ")), paragraphs)))


def test_every_function_of_the_reference_names_equations_that_are_registered():
    known = {equation.label for equation in all_equations()}
    said = {name: named_equations(getattr(attn_course.reference, name)) for name in attn_course.reference.__all__}
    assert [name for name, labels in said.items() if not labels or not known.issuperset(labels)] == []


def test_equations_count_where_a_docstring_says_what_is_computed(toy):
    module = toy("toy_sum", '"""Add, Eqs. first-sum and\nlast.\n\nWithout decay Eq. b-c.\n\n`x`: Eq. a.\n\nAs in Eq. b."""')
    assert named_equations(module) == ["b-c", "first-sum", "last"]


def test_a_logarithm_has_its_base():
    with_lse = [name for name in REFERENCE if "lse" in name or "return_lse" in str(inspect.signature(thing_named(name)))]
    assert with_lse
    assert [name for name in with_lse if "natural logarithm" not in inspect.getdoc(thing_named(name))] == []


def test_a_cost_has_its_unit_in_its_name():
    unit = re.compile(r"_(flops|bytes|flops_per_byte|bytes_per_token|time_s|parameters|length|pairs)$|\.\w+Sizes$")
    assert [name for name in public_names("attn_course.costs") if not unit.search(name)] == []


def test_docstrings_have_an_example():
    names = [name for room in ROOMS[:3] for name in public_names(room)]
    assert [name for name in names if ">>> " not in inspect.getdoc(thing_named(name))] == []


def test_a_good_docstring_passes(toy):
    toy("toy_good", GOOD)
    assert complaints("toy_good.double") == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("the numbers.", "the numbers", "does not begin with one sentence on one line"),
        ("Return twice the", "Return twice\n    the", "does not begin with one sentence on one line"),
        ("`x` (len,): any", "`x`: any", "does not say the shape of x"),
        ("`softly`: in two steps.", "", "does not say what softly means"),
        ("Raises ValueError if", "Nothing if", "does not say what it raises"),
    ],
)
def test_what_a_docstring_lacks_is_named(toy, old, new, complaint):
    assert old in GOOD
    toy("toy_bad", GOOD.replace(old, new))
    assert complaints("toy_bad.double") == [complaint]


def test_no_docstring_has_a_block_of_parameters():
    paths = [path for folder in (PACKAGE, PACKAGE.parent / "tests") for path in sorted(folder.rglob("*.py"))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    assert [f"{path}:{line}" for path, text in texts.items() if " ---" in text for line in in_blocks(text)] == []


@pytest.mark.parametrize("heading", ["Parameters", "See Also"])
def test_a_block_under_a_heading_is_found(heading):
    assert in_blocks(GOOD) == []
    assert in_blocks(GOOD.replace("    >>> ", f"    {heading}\n    {'-' * len(heading)}\n    x : ndarray\n\n    >>> ")) == [5]


def test_a_missing_docstring_is_named(toy):
    toy("toy_bare", "def double(x):\n    return 2 * x\n\nclass Twice(dict):\n    pass\n")
    assert [complaints(f"toy_bare.{name}") for name in ("double", "Twice")] == [["has no docstring"]] * 2


@pytest.mark.parametrize("room", sorted({name.split(".")[1] for name in modules_with_examples(PACKAGE)}))
def test_the_examples_in_docstrings_run(room):
    names = [name for name in modules_with_examples(PACKAGE) if name.split(".")[1] == room]
    ran = {name: doctest.testmod(import_module(name), raise_on_error=False) for name in names}
    assert {name: results for name, results in ran.items() if results.failed or not results.attempted} == {}
