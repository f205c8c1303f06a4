"""Running an untrusted answer: plain arrays come out, or one sentence about what went wrong."""

import contextlib
import linecache
import signal
import statistics
import textwrap
import threading
import time
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from attn_course.tasks import run

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
S_I, S_J = sympy.symbols("s_i s_j", real=True)


def run_function(function, time_limit_s=5.0, **inputs):
    """What one case gives."""
    (result,) = run(function, [inputs or {"x": X}], kind="write", entry="my_f", time_limit_s=time_limit_s)
    return result


def run_expression(expression, functions=(), **inputs):
    inputs = inputs or {"s_i": np.array([0.25, 0.5, 0.75]), "s_j": np.array([0.5, 0.1, 0.2])}
    (result,) = run(expression, [inputs], kind="derive", entry="my_e", symbols=tuple(inputs), functions=functions)
    return result


def run_value(value):
    (result,) = run(value, [{}], kind="predict", entry="my_n")
    return result


# --- what a function may return ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "returned",
    [
        X,
        X.astype(np.float32),
        X.astype(np.longdouble),
        X[:, ::2],
        X.astype(">f8"),
        np.float64(1.5),
        np.float32(1.5),
        1.5,
        np.array(1.5),
        np.empty((0, 3)),
        torch.tensor(X),
        torch.tensor(X, dtype=torch.float32, requires_grad=True),
        torch.nn.Parameter(torch.tensor(X)),
        torch.tensor(1.5),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}-{getattr(value, 'shape', '')}",
)
def test_floats_of_numpy_torch_and_python_are_taken_as_they_are(returned):
    result = run_function(lambda x: returned)
    assert result.problem is None
    (array,) = result.arrays
    assert type(array) is np.ndarray
    wanted = returned.detach().numpy() if isinstance(returned, torch.Tensor) else np.asarray(returned)
    np.testing.assert_array_equal(array, wanted, strict=True)


def test_a_tuple_may_mix_libraries_and_widths():
    result = run_function(lambda x: (x, torch.tensor(2.0), 3.0, np.float32(4.0)))
    assert [array.dtype.name for array in result.arrays] == ["float64", "float32", "float64", "float32"]
    assert [array.shape for array in result.arrays] == [(2, 3), (), (), ()]


def test_arrays_are_copies_that_later_changes_do_not_reach():
    kept = np.zeros(3)
    (array,) = run_function(lambda x: kept).arrays
    kept[:] = 7.0
    np.testing.assert_array_equal(array, 0.0)


WRONG_DTYPES = [
    (np.array([1, 2]), "an array of int64"),
    (np.array([True]), "an array of bool"),
    (np.array([1.0], dtype=object), "an array of object"),
    (np.array([1j]), "an array of complex128"),
    (np.array([1.0], dtype=np.float16), "an array of float16"),
    (np.array(["1.0"]), "an array of str96"),
    (np.float16(1.0), "an array of float16"),
    (np.int64(1), "an array of int64"),
    (torch.tensor([1, 2]), "a torch tensor of int64"),
    (torch.tensor([True]), "a torch tensor of bool"),
    (torch.tensor([1j]), "a torch tensor of complex64"),
    (torch.tensor([1.0], dtype=torch.float16), "a torch tensor of float16"),
    (torch.tensor([1.0], dtype=torch.bfloat16), "a torch tensor of bfloat16"),
]
WRONG_TYPES = [
    (None, "NoneType (is there a return statement?)"),
    ([1.0, 2.0], "list"),
    ({"a": 1.0}, "dict"),
    ("0.5", "str '0.5'"),
    (3, "int 3"),
    (True, "bool True"),
    (1j, "complex"),
    (Fraction(1, 2), "fractions.Fraction"),
    (sympy.Rational(1, 2), "Half"),
    (np.sin, "numpy.ufunc"),
]


@pytest.mark.parametrize(("returned", "got"), WRONG_DTYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_other_dtypes_are_named(returned, got):
    assert run_function(lambda x: returned).problem == f"my_f must return float32 or float64 numbers; got {got}"


@pytest.mark.parametrize(("returned", "got"), WRONG_TYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_other_types_are_named(returned, got):
    assert run_function(lambda x: returned).problem == f"my_f must return a NumPy array or a torch tensor; got {got}"


def test_a_wrong_item_of_a_tuple_is_named_by_its_place():
    wanted = "item 1 of the tuple from my_f must be"
    assert run_function(lambda x: (x, None)).problem.startswith(f"{wanted} a NumPy array or a torch tensor; got NoneType")
    assert run_function(lambda x: (x, x.astype(int))).problem == f"{wanted} float32 or float64 numbers; got an array of int64"


def test_a_generator_or_an_empty_tuple_is_no_array():
    def generator(x):
        yield x

    assert run_function(generator).problem.endswith("got generator")
    assert run_function(lambda x: ()).arrays == ()


# --- inputs stay as they were ------------------------------------------------------------------------


def write_to(x):
    x[0] = 0.0
    return x


def sort_in_place(x):
    x.sort()
    return x


def reshape_in_place(x):
    x.shape = (3, 2)
    return x


def retype_in_place(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.dtype = np.int64
    return X


def write_through_torch(x):
    return torch.from_numpy(x).mul_(2.0)


@pytest.mark.parametrize("function", [write_to, reshape_in_place, retype_in_place, write_through_torch])
def test_an_input_written_to_is_named(function):
    before = X.copy()
    assert run_function(function, x=X).changed == "x"
    np.testing.assert_array_equal(X, before, strict=True)  # the case itself is safe


def test_an_input_is_named_also_if_only_one_of_several_changed():
    def function(query, key):
        key += 1.0
        return query

    assert run_function(function, query=X, key=X.copy()).changed == "key"


@pytest.mark.parametrize(
    "function",
    [
        lambda blocks: blocks[1].fill(0.0) or blocks[0],
        lambda blocks: blocks.append(X) or blocks[0],
        lambda blocks: blocks.pop(),
        lambda blocks: blocks.reverse() or blocks[0],
        lambda blocks: blocks.__setitem__(0, blocks[0] + 1.0) or blocks[0],
        lambda blocks: blocks.__setitem__(0, None) or X,
    ],
)
def test_a_list_of_arrays_must_stay_the_same_inside_and_out(function):
    blocks = [np.arange(3.0), np.arange(5.0) + 1.0]
    assert run_function(function, blocks=blocks).changed == "blocks"
    assert [block.tolist() for block in blocks] == [[0, 1, 2], [1, 2, 3, 4, 5]]


def test_reading_is_no_change_even_where_nan_and_infinity_stand():
    inputs = {"x": np.array([np.nan, np.inf, -0.0]), "fill": float("nan"), "axis": -1, "blocks": [np.array([np.nan])]}
    result = run_function(lambda x, fill, axis, blocks: x + fill, **inputs)
    assert (result.problem, result.changed) == (None, None)


def test_every_case_gets_fresh_inputs():
    results = run(sort_in_place, [{"x": np.array([3.0, 1.0])}] * 2, kind="write", entry="my_f")
    assert [result.changed for result in results] == ["x", "x"]


# --- functions that go wrong -------------------------------------------------------------------------


def function_from_a_cell(text, name="my_f"):
    """Define a function as a notebook does: its text known to linecache under a made-up file name."""
    filename = f"<cell {len(linecache.cache)}>"
    text = textwrap.dedent(text).lstrip()
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {"np": np, "torch": torch, "statistics": statistics}
    exec(compile(text, filename, "exec"), names)
    return names[name]


def test_an_exception_is_told_with_the_line_that_raised_it():
    function = function_from_a_cell(
        """
        def my_f(x):
            y = x * 2
            return y @ x
        """
    )
    problem = run_function(function).problem
    assert problem.startswith("my_f raised ValueError: matmul: ")
    assert problem.endswith(" in line 3 of my_f: `return y @ x`")
    assert "\n" not in problem


def test_an_exception_inside_a_helper_shows_the_line_of_the_helper():
    function = function_from_a_cell("def helper(x):\n    return x.nonsense\n\ndef my_f(x):\n    return helper(x)")
    assert run_function(function).problem.endswith("in line 2 of helper: `return x.nonsense`")


@pytest.mark.parametrize("call", ["statistics.mean([])", "np.concatenate([])", "torch.nn.functional.softmax(x, dim=-1)"])
def test_an_exception_inside_a_library_shows_the_learners_line(call):
    problem = run_function(function_from_a_cell(f"def my_f(x):\n    return {call}")).problem
    assert problem.endswith(f"in line 2 of my_f: `return {call}`")


def test_a_call_that_does_not_fit_the_signature_says_so():
    assert "my_f raised TypeError: " in run_function(lambda: X).problem
    assert "takes 0 positional arguments but 1 was given" in run_function(lambda: X).problem


class Rude(Exception):
    """An exception that cannot be shown."""

    def __str__(self):
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit, "SystemExit: (no message)"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (MemoryError(), "MemoryError: (no message)"),
        (AssertionError("first\nsecond"), "AssertionError: first"),
        (StopIteration(), "StopIteration: (no message)"),
        (GeneratorExit(), "GeneratorExit: (no message)"),
        (Rude(), "Rude: (no message)"),
        (ValueError("x" * 999), "ValueError: " + "x" * 200 + " "),
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

    before = np.geterr()
    result = run_function(function)
    np.testing.assert_array_equal(result.arrays[0], np.full((2, 3), np.inf))
    assert np.geterr() == before


# --- answers that are none yet -----------------------------------------------------------------------


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
    results = run(answer, [{}, {}], kind=kind, entry="my_f", symbols=("s_i",))
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


# --- the time limit ----------------------------------------------------------------------------------


def endless(x):
    while True:
        pass


def endless_with_except(x):
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def endless_sleep(x):
    time.sleep(3600)


def swallows_once(x):
    try:
        while True:
            pass
    except:  # noqa: E722
        pass
    while True:
        pass


ENDLESS_ANYWHERE = [endless, endless_with_except, swallows_once]
TOLD = "my_f did not return within 0.2 s: is there a loop that never ends?"


@pytest.mark.parametrize("function", [*ENDLESS_ANYWHERE, endless_sleep])
def test_an_endless_answer_is_stopped(function):
    start = time.monotonic()
    assert run_function(function, time_limit_s=0.2).problem == TOLD
    assert time.monotonic() - start < 3.0


@pytest.mark.parametrize("function", ENDLESS_ANYWHERE)
def test_an_endless_answer_is_stopped_in_a_thread_that_is_not_the_main_one(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(run_function(function, time_limit_s=0.2)), daemon=True)
    thread.start()
    thread.join(timeout=10.0)
    assert not thread.is_alive()
    assert results[0].problem == TOLD


def test_after_a_time_out_the_other_cases_are_not_waited_for():
    calls = []

    def function(x):
        calls.append(len(calls))
        return endless(x)

    results = run(function, [{"x": X}] * 50, kind="write", entry="my_f", time_limit_s=0.2)
    assert [result.problem for result in results] == [TOLD] * 50
    assert calls == [0]


def test_the_limit_is_for_one_case_not_for_all():
    def function(x):
        time.sleep(0.1)
        return x

    assert all(result.arrays for result in run(function, [{"x": X}] * 4, kind="write", entry="my_f", time_limit_s=0.3))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no SIGALRM")
def test_the_alarm_of_others_is_given_back():
    def others(*_):
        raise AssertionError("no alarm was set")

    before = signal.signal(signal.SIGALRM, others)
    try:
        for function in (lambda x: x, endless, write_to):
            run_function(function, time_limit_s=0.05, x=X.copy())
            assert signal.getsignal(signal.SIGALRM) is others
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        time.sleep(0.6)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_no_late_alarm_strikes_a_thread_whose_answer_has_returned():
    outcome = []

    def work():
        with contextlib.suppress(Exception):
            for _ in range(40):  # answers that end just when the alarm is due
                run_function(lambda x: time.sleep(0.01) or x, time_limit_s=0.01)
            for _ in range(20):
                time.sleep(0.002)
            outcome.append("unharmed")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=30.0)
    assert outcome == ["unharmed"]


def test_no_late_alarm_strikes_the_main_thread():
    for _ in range(100):
        result = run_function(lambda x: time.sleep(0.002) or x, time_limit_s=0.002)
        assert (result.arrays is None) == result.timed_out
    time.sleep(0.02)


def test_an_expression_that_takes_too_long_is_stopped():
    huge = sympy.Pow(S_I, sympy.Pow(10, 9, evaluate=False), evaluate=False)
    for _ in range(3):
        huge = sympy.Add(*[sympy.Mul(huge + n, S_J, evaluate=False) for n in range(25)], evaluate=False)
    inputs = [{"s_i": np.array([0.5]), "s_j": np.array([0.5])}]
    (result,) = run(huge, inputs, kind="derive", entry="my_e", symbols=("s_i", "s_j"), time_limit_s=0.05)
    assert result.problem == "my_e could not be evaluated within 0.05 s"


# --- derive ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        S_I * (1 - S_J),
        S_I - S_I * S_J,
        -S_I * (S_J - 1),
        S_I / (1 / (1 - S_J)),
        sympy.factor(S_I - S_I * S_J),
        (S_I**2 - S_I**2 * S_J) / S_I,
    ],
)
def test_equivalent_forms_give_the_same_numbers(expression):
    np.testing.assert_allclose(run_expression(expression).arrays[0], [0.125, 0.45, 0.6], rtol=1e-14)


@pytest.mark.parametrize("assumptions", [{}, {"positive": True}, {"real": True}, {"complex": True}, {"commutative": True}])
def test_a_symbol_of_the_same_name_counts_whatever_it_assumes(assumptions):
    own = sympy.Symbol("s_i", **assumptions)
    np.testing.assert_allclose(run_expression(own + S_I * S_J).arrays[0], [0.375, 0.55, 0.9])


@pytest.mark.parametrize("constant", [2, 2.5, np.float64(2.5), sympy.Integer(2), sympy.Rational(1, 3), sympy.pi, sympy.E, sympy.sqrt(2)])
def test_a_constant_is_spread_over_all_points(constant):
    np.testing.assert_allclose(run_expression(constant).arrays[0], np.full(3, float(constant)), strict=True)


def test_allowed_functions_are_evaluated():
    np.testing.assert_allclose(
        run_expression(sympy.log(S_I) + S_J, functions=("log",)).arrays[0], np.log([0.25, 0.5, 0.75]) + [0.5, 0.1, 0.2]
    )


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (sympy.Derivative(S_I**2, S_I), "Derivative"),
        (S_I * sympy.Derivative(sympy.exp(S_J), S_J), "Derivative"),
        (sympy.Integral(S_I, (S_I, 0, S_J)), "Integral"),
        (sympy.Limit(S_I / S_J, S_J, 0), "Limit"),
        (sympy.Subs(S_I**2, S_I, S_J), "Subs"),
        (sympy.Derivative(sympy.Function("f")(sympy.Symbol("z")), sympy.Symbol("z")), "Derivative"),
    ],
)
def test_restating_the_question_is_no_answer(expression, name):
    assert run_expression(expression).problem == f"my_e holds a {name}: that restates the question; write the result in s_i, s_j"


def test_a_foreign_symbol_is_named():
    assert run_expression(S_I * sympy.Symbol("z_k")).problem == "my_e must use no symbols but s_i, s_j; it holds z_k"


@pytest.mark.parametrize(
    ("expression", "functions", "allowed", "name"),
    [
        (sympy.log(S_I), (), "sums, products and powers", "log"),
        (sympy.exp(S_I), ("log",), "arithmetic and log", "exp"),
        (sympy.KroneckerDelta(0, sympy.Symbol("s_i", integer=True)), (), "sums, products and powers", "KroneckerDelta"),
        (sympy.Sum(S_I, (S_J, 0, 3)), (), "sums, products and powers", "Sum"),
        (sympy.Piecewise((S_I, S_J > 0), (0, True)), (), "sums, products and powers", "Piecewise"),
        (sympy.Function("f")(S_I), (), "sums, products and powers", "f"),
        (S_I * sympy.I, (), "sums, products and powers", "ImaginaryUnit"),
        (sympy.zoo, (), "sums, products and powers", "ComplexInfinity"),
        (sympy.Max(S_I, S_J), (), "sums, products and powers", "Max"),
    ],
)
def test_anything_but_what_the_task_allows_is_named(expression, functions, allowed, name):
    assert run_expression(expression, functions).problem == f"my_e must be made of {allowed}; it holds {name}"


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ("s_i - s_j", "str 's_i - s_j'"),
        (S_I > S_J, "StrictGreaterThan"),
        (sympy.Eq(S_I, S_J), "Equality"),
        (sympy.Matrix([S_I]), "MutableDenseMatrix"),
        (lambda s_i: s_i, "function"),
        (True, "bool True"),
        ([S_I], "list"),
        (np.array([0.5]), "numpy.ndarray"),
        (1j, "complex"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_expression_is_named(answer, got):
    assert run_expression(answer).problem == f"my_e must be a SymPy expression in s_i, s_j; got {got}"


@pytest.mark.parametrize("expression", [sympy.sqrt(-S_I), sympy.Pow(-2, S_I), sympy.sqrt(S_I - S_J), sympy.nan])
def test_a_value_that_is_not_real_is_named(expression):
    assert run_expression(expression).problem == "my_e is not a real number for some values of its symbols"


def test_a_division_by_zero_at_a_point_is_infinite_and_no_crash():
    (array,) = run_expression(1 / (S_I - 0.5)).arrays
    np.testing.assert_array_equal(np.isinf(array), [False, True, False])


# --- predict and figure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, 3.0),
        (0.5, 0.5),
        (np.float16(0.5), 0.5),
        (np.int64(3), 3.0),
        (Fraction(1, 2), 0.5),
        (Decimal("0.5"), 0.5),
        (sympy.Rational(1, 2), 0.5),
        (sympy.log(2), np.log(2)),
        (torch.tensor(0.5), 0.5),
        ((1, 2.5), [1.0, 2.5]),
        ([1, Fraction(1, 2)], [1.0, 0.5]),
        (np.array([1, 2]), [1.0, 2.0]),
        (((1, 2), (3, 4)), [[1.0, 2.0], [3.0, 4.0]]),
        (10**30, 1e30),
    ],
    ids=str,
)
def test_numbers_of_any_kind_are_taken(value, wanted):
    np.testing.assert_array_equal(run_value(value).arrays[0], np.asarray(wanted), strict=True)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("0.5", "str '0.5'"),
        (b"1", "bytes b'1'"),
        (True, "bool True"),
        (np.True_, "numpy.bool" if np.__version__ >= "2" else "numpy.bool_"),
        ([True, False], "list"),
        ((1.0, True, None), "tuple"),
        (["1", "2"], "list"),
        ([0.5, None], "list"),
        ((..., ...), "tuple"),
        ([[1.0], [1.0, 2.0]], "list"),
        (1j, "complex"),
        (np.array([1j]), "numpy.ndarray"),
        (S_I, "Symbol"),
        ({}, "dict"),
        (lambda: 0.5, "function"),
        (torch.tensor(0.5, requires_grad=True), "torch.Tensor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_number_is_named(value, got):
    assert run_value(value).problem == f"my_n must be a number or a tuple of numbers; got {got}"
