"""Functions that go wrong, and answers that are none yet: one sentence each."""

import linecache
import statistics
import textwrap
import warnings

import numpy as np
import pytest
import torch

from attn_course.tasks import run
from attn_course.tasks.run import Call
from tests.tasks.runs import X, run_function


def function_from_a_cell(text, name="my_f"):
    """Define a function as a notebook does: its text known to linecache under a made-up file name."""
    filename = f"<cell {len(linecache.cache)}>"
    text = textwrap.dedent(text).lstrip()
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {"np": np, "torch": torch, "statistics": statistics}
    exec(compile(text, filename, "exec"), names)
    return names[name]


def test_an_exception_inside_a_helper_shows_the_line_of_the_helper():
    function = function_from_a_cell("def helper(x):\n    return x.nonsense\n\ndef my_f(x):\n    return helper(x)")
    assert run_function(function).problem.endswith("in line 2 of helper: `return x.nonsense`")


@pytest.mark.parametrize("call", ["statistics.mean([])", "np.concatenate([])", "torch.nn.functional.softmax(x, dim=-1)"])
def test_an_exception_inside_a_library_shows_the_learners_line(call):
    problem = run_function(function_from_a_cell(f"def my_f(x):\n    return {call}")).problem
    assert problem.endswith(f"in line 2 of my_f: `return {call}`")


LOST = "did a reduction lose its axis? See keepdims."
PAIRS = "if each row of one is to meet each row of the other, both need an axis more: (2, 1, 3) and (1, 5, 3) give (2, 5, 3)"
COLUMN = "with an axis of length 1 more, (2,) would be (2, 1), and fit"
DIAGONAL = "np.diag makes a matrix of a vector; of a matrix it takes the diagonal"


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("return x / x.sum(axis=1)", LOST),
        ("return x - np.ones((5, 3))", PAIRS),
        ("return np.diag(x) - x", DIAGONAL),
        ("mask = np.array([True, False])\n    return mask * x", COLUMN),
        ("total = x.sum(axis=1, keepdims=True)\n    return np.arange(2.0) * x / total", COLUMN),
        ("return x @ x", ""),
        ("return x.sum(axis=2)", "this array has axes 0 to 1, or from the end -1 to -2"),
        ("return np.swapaxes(x[0], 0, -2)", "this array has axis 0 and no other"),
        ("return np.swapaxes(np.array(1.0), 0, 1)", "this array has no axis"),
        ("return x[np.ones((1, 3), dtype=bool)]", "a boolean index must have the shape of what it picks from; np.where broadcasts"),
        ("return x.sum(axis=1) + np.ones((2, 5, 3))", ""),
        ("return x - np.ones((2, 4))", ""),
        ("return x[None] - np.ones((2, 3, 1))[:, :, :0] - x.sum(axis=0)[:2]", ""),
        ("y = np.zeros(2)\n    y[:] = x\n    return y", ""),
        ("return x.nonsense", ""),
    ],
)
def test_the_advice_on_arrays_that_do_not_fit_goes_by_their_shapes(body, advice):
    result = run_function(function_from_a_cell(f"def my_f(x):\n    {body}"))
    assert " in line " in result.problem
    assert result.advice == advice


PRODUCT = "the left factor has {} and the right one {}, so they cannot be multiplied"
ENTRIES = "arrays of the shapes {} cannot be combined entry by entry"
BATCHES = "the shapes (2, 3, 4) and (5, 4, 3) differ in front of their last two axes, so they cannot be multiplied"
INTO = "an array of the shape {} does not fit into one of the shape {}"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x @ x", PRODUCT.format("3 columns", "2 rows")),
        ("np.matmul(x[:, :1], x)", PRODUCT.format("1 column", "2 rows")),
        ("x @ np.ones(4)", PRODUCT.format("3 columns", "4 rows")),
        ("np.ones((5, 2, 3)) @ np.ones((5, 1, 2))", PRODUCT.format("3 columns", "1 row")),
        ("np.dot(x, x)", PRODUCT.format("3 columns", "2 rows")),
        ("torch.ones(2, 3) @ torch.ones(4, 2)", PRODUCT.format("3 columns", "4 rows")),
        ("np.ones((2, 3, 4)) @ np.ones((5, 4, 3))", BATCHES),
        ("x @ 2.0", "the right factor of a matrix product is a single number"),
        ("np.float64(2) @ x", "the left factor of a matrix product is a single number"),
        ('np.einsum("ij,jk->ik", x, x)', "arrays of the shapes (2, 3) and (2, 3) do not fit the letters of einsum"),
        ('np.einsum("ij,j,kl->il", x, x[0], x)[:, x @ x.T]', "my_f raised IndexError: "),
        ('np.einsum("ij,jk,kl->il", x, x.T, x.T)', "arrays of the shapes (2, 3), (3, 2) and (3, 2) do not fit the letters of einsum"),
        ("x + np.ones(2)", ENTRIES.format("(2, 3) and (2,)")),
        ("x + np.ones((4, 3, 1))[..., 0]", ENTRIES.format("(2, 3) and (4, 3)")),
        ("x[:0] * np.ones((1, 7, 2))", ENTRIES.format("(0, 3) and (1, 7, 2)")),
        ("np.where(x > 0, x, np.ones(2))", ENTRIES.format("(2, 3), (2, 3) and (2,)")),
        ("np.copyto(np.zeros(2), x)", INTO.format("(2, 3)", "(2,)")),
        ("np.add(x, 1, out=np.zeros(3))", INTO.format("(2, 3)", "(3,)")),
        ("x.reshape(4, 2)", "my_f raised ValueError: cannot reshape array of size 6 into shape (4,2)"),
        ("np.concatenate([x, x[:, :2]])", "my_f raised ValueError: all the input array dimensions except for the concatenation axis must"),
        ('np.einsum("ijk->i", x)', "my_f raised ValueError: einstein sum subscripts string contains too many subscripts for operand 0"),
        ("torch.ones(2, 3) + torch.ones(2)", "my_f raised RuntimeError: The size of tensor a (3) must match the size of tensor b (2)"),
    ],
)
def test_what_does_not_fit_is_said_in_plain_words_with_the_line_and_other_errors_in_their_own(code, told):
    problem = run_function(function_from_a_cell(f"def my_f(x):\n    return {code}")).problem
    said = problem.removesuffix(f" in line 2 of my_f: `return {code}`")
    assert said.startswith(told) if told.startswith("my_f raised") else said == told


def test_a_call_that_does_not_fit_the_signature_says_so():
    assert "my_f raised TypeError: " in run_function(lambda: X).problem
    assert run_function(lambda: X).problem.endswith("takes 0 positional arguments but 1 was given")


LIKE_NUMPY = (
    "operands could not be broadcast together with shapes of mine",
    "could not broadcast input array from shape (a) into shape (b)",
    "matmul: Input operand 7 does not have enough dimensions (has 0,",
)


class Rude(Exception):
    """An exception that cannot be shown."""

    def __str__(self):
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit, "SystemExit: (no message)"),
        (AssertionError("first\nsecond"), "AssertionError: first"),
        (GeneratorExit(), "GeneratorExit: (no message)"),
        (Rude(), "Rude: (no message)"),
        (ValueError("x" * 999), "ValueError: " + "x" * 200 + " "),
        *((error, f"ValueError: {error}") for error in map(ValueError, LIKE_NUMPY)),
        (NotImplementedError("not implemented for 'Half'"), "NotImplementedError: not implemented for 'Half'"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_every_kind_of_exception_becomes_one_sentence(error, told):
    def function(x):
        raise error

    problem = run_function(function).problem
    assert problem.startswith(f"my_f raised {told}")
    assert "\n" not in problem


def test_endless_recursion_is_told_as_such():
    def function(x):
        return function(x)

    assert run_function(function).problem.startswith("my_f raised RecursionError: maximum recursion depth exceeded")


def test_an_interrupt_from_the_keyboard_goes_through():
    def function(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_function(function)


def test_warnings_and_floating_point_flags_of_an_answer_are_no_mistake():
    def function(x):
        warnings.warn("careful", stacklevel=1)
        return x / 0.0 + np.exp(x * 1e6)

    with np.errstate(all="raise"):
        before = np.geterr()
        result = run_function(function)
        assert np.geterr() == before
    np.testing.assert_array_equal(result.arrays[0], np.full((2, 3), np.inf))


def test_an_untouched_stub_has_no_answer_yet():
    def stub(x):
        raise NotImplementedError()

    def stub_of_the_class(x):
        raise NotImplementedError

    for function in (stub, stub_of_the_class):
        assert run_function(function).problem == "my_f has no answer yet: replace `raise NotImplementedError()`"


@pytest.mark.parametrize("kind", ["write", "repair", "derive", "predict", "figure"])
@pytest.mark.parametrize("answer", [..., None])
def test_an_ellipsis_or_none_has_no_answer_yet(answer, kind):
    results = run(answer, [{}, {}], Call("my_f", kind, ("s_i",)))
    assert [result.problem for result in results] == ["my_f has no answer yet"] * 2


@pytest.mark.parametrize(("answer", "got"), [(X, "numpy.ndarray"), (3.0, "float 3.0"), ("def my_f", "str 'def my_f'"), ([], "list")])
def test_a_value_where_a_function_is_wanted_is_named(answer, got):
    assert run_function(answer).problem == f"my_f must be a function; got {got}"


def test_callable_objects_are_functions_too():
    class Doubled:
        def __call__(self, x):
            return 2 * x

    for answer in (Doubled(), np.abs, torch.nn.Identity()):
        assert run_function(answer).problem is None
