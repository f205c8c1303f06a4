"""The two operators of torch: what opcheck asks of them, torch.compile, gradients that are the same to the bit, and a missing Triton."""

import os
import subprocess
import sys

import pytest
import torch

from attn_course.gpu import flash
from attn_course.gpu.flash import flash_attention
from tests.gpu.support import interpreted, needs_triton

STARTS = torch.tensor([[9, 11], [0, 0], [2, 9], [9, 11]], dtype=torch.int32)  # two packed sequences, see `tiles.sequence_of`


def four_axes(requires_grad=True, batch=2):
    generator = torch.Generator().manual_seed(3)
    shapes = [(batch, 2, 9, 5), (batch, 1, 11, 5), (batch, 1, 11, 3), (1, 2, 1, 11)]
    return [torch.randn(shape, generator=generator).requires_grad_(requires_grad) for shape in shapes]


class TestInterpreted:
    pytestmark = [needs_triton, interpreted]  # noqa: RUF012 -- pytest wants a list

    @pytest.mark.parametrize("kind", ["plain", "bias", "packed"])
    def test_opcheck_finds_nothing_in_the_forward_operator(self, kind):
        from attn_course.gpu.flash_operators import flash_forward

        *tensors, bias = four_axes(batch=1 if kind == "packed" else 2)
        starts, longest = (STARTS, [7, 9]) if kind == "packed" else (None, None)
        bias = bias if kind == "bias" else None
        arguments = (*tensors, bias, None, None, None, starts, -2, 0, 0.4, 3.0, longest)
        torch.library.opcheck(flash_forward, arguments, test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))

    @pytest.mark.parametrize("is_packed", [False, True])
    def test_opcheck_finds_nothing_in_the_backward_operator(self, is_packed):
        from attn_course.gpu.flash_operators import flash_backward, flash_forward

        *tensors, bias = four_axes(requires_grad=False, batch=1 if is_packed else 2)
        bias, starts, longest = (None, STARTS, [7, 9]) if is_packed else (bias, None, None)
        inputs = (*tensors, bias, None, None, None, starts, -2, 0, 0.4, 3.0, longest)
        results = flash_forward(*inputs)
        arguments = (torch.ones_like(results[0]), None, *results, *inputs, [True, True, not is_packed])
        torch.library.opcheck(flash_backward, arguments, test_utils=("test_schema", "test_faketensor"))

    def test_compiled_it_gives_the_same_gradients(self):
        query, key, value, bias = four_axes()

        def loss(query, key, value, bias):
            output, lse = flash_attention(query, key, value, mask=bias, is_causal=True, q_offset=2, return_lse=True)
            return output.square().sum() + lse.sum()

        compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
        wanted = torch.autograd.grad(loss(query, key, value, bias), (query, key, value, bias))
        found = torch.autograd.grad(compiled(query, key, value, bias), (query, key, value, bias))
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)

    @pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # what torch.func.jvp itself calls
    @pytest.mark.parametrize("place", range(4))
    def test_a_forward_mode_derivative_is_refused(self, place):
        tensors = four_axes(requires_grad=False)

        def of_one(one):
            query, key, value, mask = (*tensors[:place], one, *tensors[place + 1 :])
            return flash_attention(query, key, value, mask=mask, enable_gqa=True)

        with pytest.raises(ValueError, match="it has no forward-mode derivative"):
            torch.func.jvp(of_one, (tensors[place],), (torch.ones_like(tensors[place]),))

    def test_only_the_gradient_of_the_lse_may_be_asked_for(self):
        query, key, value, _ = four_axes()
        lse = flash_attention(query, key, value, return_lse=True)[1]
        (d_query,) = torch.autograd.grad(lse.sum(), query)
        scores = (query @ key.mT) / 5**0.5
        (wanted,) = torch.autograd.grad(scores.logsumexp(-1).sum(), query)
        torch.testing.assert_close(d_query, wanted)


def run(program: str, **environment: str) -> str:
    made = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="needs no GPU")
def test_without_gpu_and_interpreter_it_says_so():
    program = "import torch; from attn_course.gpu.flash import unsupported; x = torch.ones(3, 2); print(unsupported(x, x, x))"
    assert run(program, TRITON_INTERPRET="0").startswith("needs a CUDA device, or TRITON_INTERPRET=1 before Triton is imported; got")


@needs_triton
@interpreted
@pytest.mark.parametrize(
    ("kilobytes", "width", "dtype", "reason"),
    [
        (48, 64, torch.float16, "needs 64 kB of shared memory"),
        (64, 64, torch.bfloat16, "takes float16 and float32 on such a GPU"),
        (64, 129, torch.float16, "takes 1 to 128 features; got d_k = 129"),
        (64, 128, torch.float16, None),
        (99, 256, torch.bfloat16, None),
    ],
)
def test_what_a_smaller_card_cannot_take_it_names(kilobytes, width, dtype, reason, monkeypatch):
    monkeypatch.setattr(flash, "shared_bytes", lambda device: 1024 * kilobytes)
    x = torch.ones(3, width, dtype=dtype)
    said = flash.unsupported(x, x, x)
    assert said is None if reason is None else said.startswith(reason)


def test_without_triton_it_says_so(monkeypatch):
    monkeypatch.setattr(flash, "find_spec", lambda name: None)
    x = torch.ones(3, 2)
    assert flash.unsupported(x, x, x).startswith("needs Triton, which is not installed")
    with pytest.raises(ValueError, match="flash_attention cannot compute this call: it needs Triton"):
        flash_attention(x, x, x)
