"""What a function may return, and that its inputs stay as they were."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch

from attn_course.tasks import run
from attn_course.tasks.run import changed_input
from tests.tasks.runs import WRITTEN, X, run_function


@pytest.mark.parametrize(
    "returned",
    [
        X,
        X.astype(np.float32),
        X.astype(np.longdouble),
        X[:, ::2],
        X.astype(">f8"),
        np.float32(1.5),
        1.5,
        np.array(1.5),
        np.empty((0, 3)),
        torch.tensor(X),
        torch.tensor(X, dtype=torch.float32, requires_grad=True),
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


def test_a_list_of_results_is_taken_as_a_tuple_and_marked_as_a_list():
    result = run_function(lambda x: [x, torch.tensor(2.0)])
    assert (result.problem, [array.shape for array in result.arrays]) == (None, [(2, 3), ()])
    assert result.listed == "my_f must return a NumPy array or a torch tensor; got list (several results are a tuple)"
    assert run_function(lambda x: (x, x)).listed == ""


def test_arrays_are_copies_that_later_changes_do_not_reach():
    for kept in (np.zeros(3), torch.zeros(3)):
        (array,) = run_function(lambda x, kept=kept: kept).arrays
        kept[:] = 7.0
        np.testing.assert_array_equal(array, 0.0)


WRONG_DTYPES = [
    (np.array([1, 2]), "an array of int64"),
    (np.array([1.0], dtype=object), "an array of object"),
    (np.array([1j]), "an array of complex128"),
    (np.array([1.0], dtype=np.float16), "an array of float16"),
    (np.array(["1.0"]), "an array of str96"),
    (np.int64(1), "an array of int64"),
    (torch.tensor([1, 2]), "a torch tensor of int64"),
    (torch.tensor([1.0], dtype=torch.bfloat16), "a torch tensor of bfloat16"),
]
WRONG_TYPES = [
    (None, "NoneType (is there a return statement?)"),
    ([], "list (several results are a tuple)"),
    (["0.5", 1.0], "list (several results are a tuple)"),
    ("0.5", "str '0.5'"),
    (True, "bool True"),
    (10**400, "int 1" + 59 * "0"),
    (Fraction(1, 2), "fractions.Fraction"),
]


@pytest.mark.parametrize(("returned", "got"), WRONG_DTYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_other_dtypes_are_named(returned, got):
    assert run_function(lambda x: returned).problem == f"my_f must return float32 or float64 numbers; got {got}"


@pytest.mark.parametrize(("returned", "got"), WRONG_TYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_other_types_are_named(returned, got):
    assert run_function(lambda x: returned).problem == f"my_f must return a NumPy array or a torch tensor; got {got}"


def test_a_whole_number_is_a_number():
    assert run_function(lambda x: 3).arrays == (np.float64(3.0),)


def test_a_wrong_item_of_a_tuple_is_named_by_its_place():
    wanted = "item 1 of the tuple from my_f must be"
    assert run_function(lambda x: (x, None)).problem.startswith(f"{wanted} a NumPy array or a torch tensor; got NoneType")
    assert run_function(lambda x: (x, x.astype(int))).problem == f"{wanted} float32 or float64 numbers; got an array of int64"


def test_a_generator_or_an_empty_tuple_is_no_array():
    def generator(x):
        yield x

    assert run_function(generator).problem.endswith("got generator")
    assert run_function(lambda x: ()).arrays == ()


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
        lambda blocks: blocks.reverse() or blocks[0],
        lambda blocks: blocks.__setitem__(0, None) or X,
    ],
)
def test_a_list_of_arrays_must_stay_the_same_inside_and_out(function):
    blocks = [np.arange(3.0), np.arange(5.0) + 1.0]
    assert run_function(function, blocks=blocks).changed == "blocks"
    assert [block.tolist() for block in blocks] == [[0, 1, 2], [1, 2, 3, 4, 5]]


def test_an_entry_more_in_a_dictionary_and_an_input_that_is_gone_are_changes():
    assert run_function(lambda state: state.update(more=X) or X, state={"x": X}).changed == "state"
    assert changed_input({"x": X, "y": X}, {"x": X}) == "y"


def test_reading_is_no_change_even_where_nan_and_infinity_stand():
    inputs = {"x": np.array([np.nan, np.inf, -0.0]), "fill": float("nan"), "axis": -1, "blocks": [np.array([np.nan])]}
    result = run_function(lambda x, fill, axis, blocks: x + fill, **inputs)
    assert (result.problem, result.changed) == (None, None)


def test_every_case_gets_fresh_inputs():
    results = run(sort_in_place, [{"x": np.array([3.0, 1.0])}] * 2, WRITTEN)
    assert [result.changed for result in results] == ["x", "x"]
