"""The choice of a backend, errors that name the argument, and torch.compile."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attn_course import gpu
from attn_course.gpu import attention, explain, ops, sdpa
from tests.gpu.support import assert_close, interpreted, needs_triton, tensors, torch_options
from tests.reference.support import attention_arrays, refusals, unlike

X = torch.ones(3, 2)
HEADS = torch.ones(4, 3, 2)
BIAS = np.random.default_rng(2).normal(size=(5, 11))


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({}, "sdpa"),
        ({"is_causal": True, "q_offset": 3, "window": (2, 1)}, "sdpa"),
        ({"return_weights": True}, "eager; not sdpa: it returns no weights"),
        ({"return_lse": True}, "eager; not sdpa: it returns no log-sum-exp"),
        ({"softcap": 30.0}, "eager; not sdpa: it has no softcap"),
        ({"scale": -0.5}, "eager; not sdpa: its kernels need a positive scale; got -0.5"),
        ({"mask": torch.zeros(3, 3, dtype=torch.float64)}, "eager; not sdpa: it would round the mask from float64 to float32"),
    ],
)
def test_auto_takes_the_first_backend_that_means_the_same_and_says_why(options, choice):
    assert str(explain(X, X, X, **options)) == choice


def test_another_backend_is_one_entry_more(monkeypatch):
    class Zeros:
        def why_not(self, call):
            return "it knows no mask" if call.mask is not None else None

        def run(self, call):
            return (torch.zeros(*call.batch, call.q_len, call.value.shape[-1], dtype=call.dtype),)

    monkeypatch.setattr(ops, "BACKENDS", {"zeros": Zeros(), **ops.BACKENDS})
    assert not attention(X, X, X).any()
    assert str(explain(X, X, X, mask=torch.ones(3, 3, dtype=torch.bool))) == "sdpa; not zeros: it knows no mask"
    assert attention(X, X, X, mask=torch.ones(3, 3, dtype=torch.bool)).all()


@pytest.fixture
def told(monkeypatch):
    found = {}

    def spy(query, key, value, **keywords):
        found.update(keywords, kv_len=key.shape[-2], heads=(query.shape[1], key.shape[1]))
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, **keywords)

    monkeypatch.setattr(sdpa, "scaled_dot_product_attention", spy)
    return found


@pytest.mark.parametrize(
    ("q_len", "kv_len", "options", "is_causal", "has_mask"),
    [
        (5, 5, {}, False, False),
        (5, 5, {"is_causal": True}, True, False),
        (5, 7, {"is_causal": True}, True, False),  # nobody sees the last two keys
        (7, 5, {"is_causal": True}, False, True),  # kernels disagree on which corners to align
        (5, 7, {"is_causal": True, "q_offset": 2}, False, True),
        (1, 7, {"is_causal": True, "q_offset": 6}, False, False),  # one query behind its cache sees everything
    ],
)
def test_torch_is_told_of_causality_only_where_all_agree_what_it_means(told, q_len, kv_len, options, is_causal, has_mask):
    query, key, value = tensors(*attention_arrays(q_len=q_len, kv_len=kv_len))
    output = attention(query, key, value, **options, backend="sdpa")
    assert (told["is_causal"], told["attn_mask"] is not None) == (is_causal, has_mask)
    assert told["kv_len"] == (q_len if is_causal else kv_len)
    assert_close(output, attention(query, key, value, **options, backend="eager").numpy(), 1e-13)


def test_torch_repeats_shared_heads_itself(told):
    attention(torch.ones(2, 6, 5, 4), torch.ones(2, 3, 7, 4), torch.ones(2, 3, 7, 4), enable_gqa=True, backend="sdpa")
    assert (told["enable_gqa"], told["heads"]) == (True, (6, 3))


class Readers(TorchDispatchMode):
    """Collects the operators that are given the memory of some tensors, without those that only look at it in another shape."""

    def __init__(self, *watched):
        super().__init__()
        self.memory, self.names = {one.untyped_storage().data_ptr() for one in watched}, []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        given = [one for one in tree_leaves((arguments, keywords)) if isinstance(one, torch.Tensor)]
        if not function.is_view and any(one.untyped_storage().data_ptr() in self.memory for one in given):
            self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"is_causal": True}, {"is_causal": True}),
        ({"is_causal": True, "q_offset": 6}, {"attn_mask": torch.ones(5, 11, dtype=torch.bool).tril(6)}),
        ({"mask": torch.arange(11) < torch.full((5, 1), 8)}, {"attn_mask": torch.arange(11) < torch.full((5, 1), 8)}),
    ],
    ids=["nothing hidden", "top left", "bottom right", "mask"],
)
def test_keys_and_values_are_read_as_often_as_by_torch_unless_they_are_guarded(ours, theirs):
    query, key, value = tensors(*attention_arrays())
    names = []
    for function in (
        lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value, **theirs),
        lambda: attention(query, key, value, **ours),
        lambda: attention(query, key, value, **ours, guard_non_finite=True),
    ):
        with Readers(key, value) as readers:
            function()
        names.append(readers.names)
    assert names[1] == names[0]
    assert (len(names[2]) > len(names[0])) == bool(ours)


MALFORMED = """
attention(X, X, X, backend="cuda") -> ValueError: backend must be one of auto, sdpa, eager, triton; got 'cuda'
attention(X, X, X, backend="sdpa", softcap=1.0) -> ValueError: backend 'sdpa' cannot compute this call: it has no softcap
attention(X.int(), X, X) -> TypeError: query must be a Tensor of float16, bfloat16, float32 or float64; got a Tensor of int32
attention(X, X.numpy(), X) -> TypeError: key must be a Tensor of float16, bfloat16, float32 or float64; got ndarray
attention(X, X[0], X) -> ValueError: key must have the axes (..., len, features); got shape (2,)
attention(X, X, X, enable_gqa=True) -> ValueError: query must have the axes (..., heads, len, features); got shape (3, 2)
attention(X, X[:, :1], X) -> ValueError: query and key must share d_k, the last axis; got 2 and 1
attention(X, X, X[:2]) -> ValueError: key and value must share kv_len, the axis before the last; got 3 and 2
attention(HEADS, HEADS[:3], HEADS[:3], enable_gqa=True) -> ValueError: query must have a multiple of the key's heads, axis -3; got 4 and 3
attention(HEADS, HEADS[:2], HEADS, enable_gqa=True) -> ValueError: key and value must share their heads, axis -3; got 2 and 4
attention(HEADS, HEADS[:3], X) -> ValueError: leading axes must broadcast; got query (4,), key (3,), value ()
attention(X, X, X, mask=torch.ones(3, 3).int()) -> TypeError: mask must be a Tensor of bool or float; got a Tensor of int32
attention(X, X, X, mask=torch.ones(2)) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 3, 3); got shape (2,)
attention(X, X, X, mask=torch.tensor(0.0)) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 3, 3); got shape ()
attention(X, X, X, mask=torch.ones(2, 3)) -> ValueError: mask must broadcast to (..., q_len, kv_len) = (..., 3, 3); got shape (2, 3)
attention(HEADS, X, X, mask=torch.ones(3, 1, 1)) -> ValueError: leading axes must broadcast; got query (4,), key (), value (), mask (3,)
attention(HEADS, X, X, q_offset=torch.ones(3).int())
    -> ValueError: leading axes must broadcast; got query (4,), key (), value (), q_offset (3,)
attention(X, X, X, q_offset=1.0) -> TypeError: q_offset must be an integer or a Tensor of integers; got float
attention(X, X, X, q_offset=True) -> TypeError: q_offset must be an integer or a Tensor of integers; got bool
attention(X, X, X, window=3) -> TypeError: window must be a tuple (left, right); got 3
attention(X, X, X, window=(1, 0.5)) -> TypeError: window (right) must be an integer or None; got float 0.5
attention(X, X, X, window=(-1, 0)) -> ValueError: window (left) must be 0 or more; got -1
attention(X, X, X, scale="1") -> TypeError: scale must be a number or None; got str
attention(X, X, X, scale=float("inf")) -> ValueError: scale must be finite; got inf
attention(X[:, :0], X[:, :0], X) -> ValueError: scale must be given when d_k is 0; got None
attention(X, X, X, softcap=0.0) -> ValueError: softcap must be positive and finite; got 0.0
attention(X, X, X, softcap=torch.ones(1)) -> TypeError: softcap must be a number or None; got a Tensor of float32
attention(X, X, X, is_causal=1) -> TypeError: is_causal must be True or False; got int
attention(X, X, X, guard_non_finite=None) -> TypeError: guard_non_finite must be True or False; got NoneType
attention(X, X.to("meta"), X) -> ValueError: key must be on the device of query, cpu; got meta
"""


def test_errors_name_the_argument_what_is_wanted_and_what_came():
    assert unlike(refusals(MALFORMED, globals())) == []


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("auto", {}),
        ("sdpa", {"is_causal": True}),
        ("sdpa", {"mask": BIAS > 0.0}),
        pytest.param("triton", {"mask": BIAS > 0.0}, marks=[needs_triton, interpreted]),
        ("eager", {"window": (3, 0), "q_offset": 6}),
        *((backend, {"is_causal": True, "q_offset": np.array([[1], [4]])}) for backend in ("sdpa", "eager")),
        *((backend, {"mask": np.where(BIAS > 0.0, BIAS, -np.inf), "is_causal": True, "q_offset": -1}) for backend in ("sdpa", "eager")),
    ],
)
def test_a_compiled_call_is_one_graph_with_the_same_output_and_gradients(backend, options):
    torch.compiler.reset()
    keywords = torch_options(options) | {"backend": backend}
    inputs = [part.requires_grad_() for part in tensors(*attention_arrays())]
    compiled = torch.compile(lambda *parts: attention(*parts, **keywords).sin(), backend="aot_eager", fullgraph=True)
    for got, wanted in zip(
        (compiled(*inputs), *torch.autograd.grad(compiled(*inputs).sum(), inputs)),
        (attention(*inputs, **keywords).sin(), *torch.autograd.grad(attention(*inputs, **keywords).sin().sum(), inputs)),
        strict=True,
    ):
        assert_close(got, wanted.detach().numpy(), 1e-13)


def test_one_graph_serves_all_lengths_with_shared_heads_too():
    torch.compiler.reset()
    options = {"is_causal": True, "q_offset": 3, "enable_gqa": True}
    compiled = torch.compile(lambda *parts: attention(*parts, **options), backend="eager", fullgraph=True, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for q_len, kv_len in ((5, 11), (7, 13)):
            query, key, value = tensors(*attention_arrays(q_len=q_len, kv_len=kv_len))
            parts = query.repeat(1, 2, 1, 1), key, value
            assert_close(compiled(*parts), attention(*parts, **options).numpy(), 1e-13)


@pytest.mark.parametrize(("backend", "softcap"), [("auto", None), ("eager", 3.0)])
def test_scale_and_softcap_may_be_arguments_of_what_is_compiled(backend, softcap):
    torch.compiler.reset()
    inputs = tensors(*attention_arrays())

    def call(scale, softcap):
        return attention(*inputs, scale=scale, softcap=softcap, backend=backend)

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for scale in (0.3, 0.2, 0.7):
        assert_close(compiled(scale, softcap), call(scale, softcap).numpy(), 1e-13)


def test_a_vmapped_call_is_the_batched_one():
    query, key, value = tensors(*attention_arrays(batch=(3,)))
    for backend in ("eager", "sdpa"):
        mapped = torch.func.vmap(lambda *parts, backend=backend: attention(*parts, is_causal=True, backend=backend))
        assert_close(mapped(query, key, value), attention(query, key, value, is_causal=True).numpy(), 1e-13)


def test_the_room_is_imported_without_torch_or_triton_and_its_functions_and_the_launcher_without_triton():
    code = "import sys, attn_course.gpu; print('torch' in sys.modules); "
    code += "import attn_course.gpu.ops, attn_course.gpu.flash; print('triton' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_room_lists_its_names_and_refuses_others():
    assert {"attention", "explain"} <= set(dir(gpu))
    with pytest.raises(AttributeError, match=r"^module 'attn_course\.gpu' has no attribute 'slow'$"):
        _ = gpu.slow
