"""Finding forbidden calls in an answer, through aliases, imports and helpers, without false alarms."""

import math

import numpy as np
import pytest
import sympy
import torch
import torch.nn.functional as torch_functional

from attn_course.tasks import all_tasks, assess, get_task
from attn_course.tasks.forbidden import AUTOGRAD, CALCULUS, SOFTMAX
from attn_course.tasks.source import answer_source, binds, forbidden_calls
from tests.tasks.toys import DERIVE, WRITE, changed

FORBID = (".softmax", "torch.softmax", "torch.nn.functional.softmax", "scipy.special.logsumexp")
NAMES = {"np": np, "torch": torch, "F": torch_functional, "sympy": sympy, "math": math}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def my_f(x): return torch.softmax(x, -1)", ["torch.softmax"]),
        ("def my_f(x): return torch.nn.functional.softmax(x, -1)", ["torch.nn.functional.softmax"]),
        ("def my_f(x): return torch.tensor(x).softmax(-1)", ["torch.tensor(x).softmax"]),
        ("def my_f(x):\n  import torch as t\n  return t.softmax(x, -1)", ["t.softmax"]),
        ("def my_f(x):\n  from torch.nn import functional\n  return functional.softmax(x, -1)", ["functional.softmax"]),
        ("def my_f(x):\n  from torch import softmax as sm\n  return sm(x, -1)", ["sm (torch.softmax)"]),
        ("def my_f(x):\n  from torch import softmax\n  return softmax(x, -1)", ["softmax"]),
        ("sm = torch.softmax\nmy_f = lambda x: sm(x, -1)", ["torch.softmax"]),
        ("def my_f(x): return torch.softmax(x, 0) + torch.softmax(x, 1) + F.softmax(x, 2)", ["F.softmax", "torch.softmax"]),
        ("def my_f(x):\n  from scipy.special import logsumexp\n  return logsumexp(x)", ["logsumexp"]),  # SciPy is not loaded
    ],
)
def test_forbidden_calls_are_found_however_they_are_imported(source, found):
    forbid = [name for name in FORBID if name != ".softmax"] if "tensor(x)" not in source else FORBID
    assert forbidden_calls(source, forbid, NAMES) == found


def test_names_imported_in_an_earlier_cell_are_seen_through():
    assert forbidden_calls("def my_f(x): return sm(x, -1)", FORBID, {"sm": torch.softmax}) == ["sm (torch.softmax)"]
    assert forbidden_calls("def my_f(x): return softmax(x, -1)", FORBID, {"softmax": torch.softmax}) == ["softmax"]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def softmax(x): return np.exp(x)\ndef my_f(x): return softmax(x)",
        "def my_f(x):\n  softmax = np.exp(x)\n  return softmax / softmax.sum()",
        "def my_f(x):\n  'Do not use torch.softmax or .softmax'\n  return x  # torch.softmax",
        "def my_f(torch): return torch",
        "def my_f(F):\n  return F + F.sum()",
    ],
)
def test_own_functions_names_comments_and_texts_are_no_forbidden_calls(source):
    assert forbidden_calls(source, FORBID, NAMES) == []


def test_a_learners_own_softmax_is_not_the_librarys():
    def softmax(x):
        return np.exp(x)

    assert forbidden_calls("def my_f(x): return softmax(x)", FORBID, {"softmax": softmax}) == []


OWN = """
class Rows:
    def __init__(self, x): self.x = x
    @property
    def logsumexp(self): return np.log(np.exp(self.x).sum())
    def softmax(self): return np.exp(self.x - self.logsumexp)
    def backward(self, d): return self.softmax() * d
"""


@pytest.mark.parametrize(
    "text",
    [
        "def my_f(x): return Rows(x).softmax()",
        "def my_f(x):\n  rows = Rows(x)\n  rows.backward(x)\n  return rows.softmax() + rows.logsumexp",
        "def my_f(x): return [Rows.softmax(row) for row in map(Rows, x)]",
    ],
)
def test_methods_and_properties_of_a_learners_own_class_are_no_offence(define, text):
    rules = [*SOFTMAX.rules, *AUTOGRAD.rules]
    assert forbidden_calls(OWN + text, rules, NAMES) == []
    function = define(f"import numpy as np\n{OWN}{text}")  # in another cell, as the notebook sees it
    assert "def backward" in answer_source(function, "my_f", [])
    assert forbidden_calls(answer_source(function, "my_f", []), rules, function.__globals__) == []


@pytest.mark.parametrize("call", ["torch.tensor(x).softmax(-1)", "F.softmax(x, -1)", "torch.ones(3)[:2].softmax(0)"])
def test_beside_a_class_of_ones_own_the_librarys_method_is_still_found(call):
    assert forbidden_calls(f"{OWN}def my_f(x): return {call}", SOFTMAX.rules, NAMES) == [
        call.partition("(x, ")[0].partition("(-")[0].partition("(0")[0]
    ]


def test_an_attribute_that_is_set_is_ones_own():
    source = "def my_f(x):\n  s = types.SimpleNamespace()\n  s.softmax = np.exp(x)\n  return s.softmax"
    assert forbidden_calls(source, SOFTMAX.rules, NAMES) == []
    assert forbidden_calls(source.replace("s.softmax =", "s.weights ="), SOFTMAX.rules, NAMES) == ["s.softmax"]


@pytest.mark.parametrize("call", ["np.diff(x)", "numpy.diff(x)", "tl.exp(x)"])
def test_functions_of_other_libraries_that_have_such_a_name_are_no_offence(call):
    source = f"import numpy\nimport triton.language as tl\ndef my_f(x): return {call}"
    assert forbidden_calls(source, [".diff", ".exp"], {"np": np}) == []


def test_threads_are_found_where_they_are_forbidden():
    source = "from concurrent.futures import ThreadPoolExecutor\ndef my_f(x): return ThreadPoolExecutor(1).submit(abs, x).result()"
    assert forbidden_calls(source, SOFTMAX.rules, NAMES) == []
    assert forbidden_calls(source, get_task("stable-softmax").rules, NAMES)[0].startswith("ThreadPoolExecutor")


DIFFERENTIATED = """
    f.diff(x) | sympy.diff(f, x) | d(f, x) | sympy.Derivative(f, x).doit() | sympy.Expr.diff(f, x) | sympy.derive_by_array(f, x)
    v.jacobian(w) | sympy.hessian(f, [x]) | sympy.wronskian([f], x) | sympy.idiff(f, y, x) | sympy.vector.gradient(f)
    f.fdiff(1) | f._eval_derivative(x) | f.limit(x, 0) | sympy.limit(f, x, 0) | sympy.residue(f / (x - a) ** 2, x, a) | f.leadterm(x)
    f.series(x, a, 2).removeO().coeff(x, 1) | sympy.series(f, x, a, 2) | next(f.lseries(x)) | f.nseries(x, n=2) | sympy.fps(f, x)
    sympy.apply_finite_diff(1, [a, b], [f, g], x) | sympy.differentiate_finite(f, x)
"""


def test_differentiation_by_sympy_is_found():
    calls = [call.strip() for line in DIFFERENTIATED.strip().splitlines() for call in line.split(" | ")]
    names = {"sympy": sympy, "d": sympy.diff}
    assert [call for call in calls if not forbidden_calls(f"my_e = 2 * {call}", CALCULUS.rules, names)] == []


def test_the_text_of_a_function_comes_with_the_learners_functions_that_it_calls(define):
    text = "import math\ndef inner(x):\n    return math.exp(x)\ndef outer(x):\n    return inner(x)\ndef other(x):\n    return x\n"
    function = define(f"{text}def my_f(x):\n    return outer(x)\n")
    source = answer_source(function, "my_f", [])
    assert [name for name in ("my_f", "outer", "inner", "other") if f"def {name}(" in source] == ["my_f", "outer", "inner"]


def test_functions_that_call_each_other_are_taken_once(define):
    function = define("def my_f(x):\n    return g(x)\ndef g(x):\n    return my_f(x)\n")
    source = answer_source(function, "my_f", [])
    assert (source.count("def my_f"), source.count("def g")) == (1, 1)


def test_functions_of_libraries_are_not_read(define):
    function = define("from textwrap import dedent\nfrom numpy import linspace\ndef my_f(x):\n    return dedent(linspace(x))\n")
    assert answer_source(function, "my_f", []) == "def my_f(x):\n    return dedent(linspace(x))\n"


def test_given_functions_are_not_part_of_the_answer(define):
    function = define("def helper(x):\n    return x.softmax()\ndef my_f(x):\n    return helper(x)\n")
    assert "def helper" in answer_source(function, "my_f", [])
    assert "def helper" not in answer_source(function, "my_f", [], given=["helper"])


def test_a_value_is_found_in_the_newest_cell_that_binds_it():
    cells = ["my_e = 1", "my_e = x.diff(y)", "print(my_e)", "other = my_e", "%matplotlib inline\nmy_e"]
    assert answer_source(sympy.Symbol("x"), "my_e", cells).splitlines()[0] == "my_e = x.diff(y)"


@pytest.mark.parametrize(
    "cell",
    [
        "(a, my_e) = 1, 2",
        "if True:\n    my_e = 1",
        "for my_e in [1]: pass",
        "with f() as my_e: pass",
        "my_e: float = 1.0",
        "print(my_e := 1)",
    ],
)
def test_every_way_to_bind_a_name_counts(cell):
    assert answer_source(1.0, "my_e", [cell]).startswith(cell)


@pytest.mark.parametrize("cell", ["print(my_e)", "def f():\n    my_e = 1", "class A:\n    my_e = 1", "f(my_e=1)", "a.my_e = 1", "my_e ="])
def test_a_use_or_a_local_variable_of_the_same_name_does_not_bind_it(cell):
    assert answer_source(1.0, "my_e", [cell]) == ""


def test_an_imported_answer_is_found_out():
    cell = "from torch import softmax as my_f"
    source = answer_source(torch.softmax, "my_f", [cell])
    assert forbidden_calls(source, FORBID, {"my_f": torch.softmax}) == ["my_f (torch.softmax)"]


@pytest.mark.parametrize(
    "text",
    [
        "def my_f(x, scale):\n    from torch.nn.functional import layer_norm as ln\n    return ln(x, x.shape)\n",
        "import torch\ndef helper(x):\n    return torch.nn.functional.layer_norm(x, x.shape)\ndef my_f(x, scale):\n    return helper(x)\n",
    ],
)
def test_an_answer_with_a_forbidden_call_is_not_run_and_the_call_is_named(define, text):
    verdict = assess(WRITE, define(text))
    assert (verdict.passed, verdict.points) == (False, 0)
    assert verdict.message.startswith("my_centre uses ")
    assert verdict.message.endswith(", which would answer the task for you: write it yourself")


def test_a_given_function_may_do_what_the_answer_may_not(define):
    def helper(x):
        return x

    function = define("def helper(x):\n    return x.softmax\ndef my_f(x, scale):\n    return helper(x)\n")
    assert assess(WRITE, function).message.startswith("my_centre uses x.softmax,")
    assert assess(changed(WRITE, given=[helper]), function).message.startswith("my_centre raised AttributeError")


def test_testing_the_answer_against_the_library_in_its_cell_is_allowed(define):
    text = "import torch\ndef my_f(x, scale):\n    return (x - x.mean(-1, keepdims=True)) * scale\n"
    function = define(f"{text}torch.softmax(torch.zeros(3), -1)\n")
    assert assess(WRITE, function, [text]).passed


def test_a_derivative_by_sympy_is_refused_though_it_is_right():
    s_i, s_j = sympy.symbols("s_i s_j", real=True)
    cells = ["from sympy import diff", "my_slope = s_i * diff(s_j - s_j**2 / 2, s_j)"]
    verdict = assess(DERIVE, s_i * (1 - s_j), cells, {"diff": sympy.diff})
    assert verdict.message == "my_slope uses diff, which would answer the task for you: write it yourself"
    assert assess(DERIVE, s_i * (1 - s_j), ["my_slope = s_i * (1 - s_j)"], {}).passed


@pytest.mark.parametrize("call", ["torch.func.jvp(f, (x,), (x,))", "torch.autograd.functional.hessian(f, x)", "y.backward()"])
def test_a_task_that_forbids_one_way_to_differentiate_in_torch_forbids_all(call):
    tasks = [task for task in all_tasks() if AUTOGRAD in task.forbid]
    assert len(tasks) > 5
    assert [task.id for task in tasks if not forbidden_calls(f"import torch\n{call}", task.rules, {})] == []


@pytest.mark.parametrize("cell", ["def f(:", "\0", "-" * 100_000 + "1"])
def test_a_cell_that_cannot_be_read_binds_nothing(cell):
    assert not binds(cell, "f")
