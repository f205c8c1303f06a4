"""On a CUDA device: every backend against float64 on the same rounded inputs. Needs torch, numpy and pytest only."""

import numpy as np
import pytest
import torch

from attn_course.gpu import attention
from tests.gpu.oracle import relative_error, wide

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

# Largest relative error in the Frobenius norm, of the output and of each gradient.
TOLERANCE = {torch.bfloat16: 6e-3, torch.float16: 8e-4, torch.float32: 5e-6}
SHAPES = [  # (heads, kv_heads, q_len, kv_len, d_k, d_v)
    (4, 4, 113, 203, 64, 64),
    (6, 2, 320, 320, 128, 128),  # 320 = 2 * 128 + 64
    (4, 1, 239, 1, 64, 32),
    (2, 2, 64, 448, 80, 48),
]


def rules(q_len, kv_len):
    rng = np.random.default_rng(5)
    keep = rng.random((q_len, kv_len)) < 0.7
    keep[q_len // 2] = False  # a query that sees nothing
    bias = np.where(keep, rng.normal(size=(q_len, kv_len)), -np.inf)
    return {
        "nothing hidden": {},
        "causal": {"is_causal": True},
        "causal, bottom right": {"is_causal": True, "q_offset": kv_len - q_len},
        "window": {"window": (37, 5), "q_offset": 11},
        "boolean mask": {"mask": torch.from_numpy(keep)},
        "padding": {"mask": torch.arange(kv_len) < torch.tensor([kv_len // 2 + 1, 0])[:, None, None, None]},
        "float mask": {"mask": torch.from_numpy(bias)},
    }


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rule", list(rules(4, 4)))
@pytest.mark.parametrize("backend", ["auto", "sdpa", "eager"])
def test_output_and_gradients_agree_with_float64(backend, rule, shape, dtype):
    heads, kv_heads, q_len, kv_len, d_k, d_v = shape
    rng = np.random.default_rng(7)
    sizes = ((2, heads, q_len, d_k), (2, kv_heads, kv_len, d_k), (2, kv_heads, kv_len, d_v))
    narrow = [torch.from_numpy(rng.normal(size=size)).to("cuda", dtype).requires_grad_() for size in sizes]
    exact = [part.detach().double().requires_grad_() for part in narrow]
    options = rules(q_len, kv_len)[rule] | {"enable_gqa": True}
    if "mask" in options:
        options["mask"] = options["mask"].cuda()
        if options["mask"].is_floating_point():
            options["mask"] = options["mask"].to(dtype)

    output, wanted = attention(*narrow, **options, backend=backend), attention(*exact, **options, backend="eager")
    d_output = torch.from_numpy(rng.normal(size=output.shape)).to("cuda", dtype)
    assert output.dtype == dtype
    assert relative_error(output, wide(wanted)) < TOLERANCE[dtype]
    gradients, expected = torch.autograd.grad(output, narrow, d_output), torch.autograd.grad(wanted, exact, d_output.double())
    for name, part, other in zip(("query", "key", "value"), gradients, expected, strict=True):
        assert part.isfinite().all(), f"the gradient of {name} is not finite"
        if kv_len > 1 or name == "value":  # one key: weights are 1 whatever the scores, and the other gradients rounding only
            assert relative_error(part, wide(other)) < 2 * TOLERANCE[dtype], f"gradient of {name}"


@pytest.mark.parametrize("backend", ["auto", "sdpa", "eager"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_hidden_nan_reaches_neither_output_nor_gradients(backend, dtype):
    query, key, value = (part.to(dtype) for part in torch.randn(3, 2, 4, 192, 64, generator=torch.Generator().manual_seed(3)).cuda())
    mask = (torch.arange(192) < torch.tensor([150, 61])[:, None, None, None]).cuda()
    hidden = ~mask.expand(2, 4, 1, 192).mT
    spoilt = [part.masked_fill(hidden, float("nan")) for part in (key, value)]
    clean, dirty = ([query.clone().requires_grad_(), *(part.clone().requires_grad_() for part in pair)] for pair in ((key, value), spoilt))
    results = [attention(*parts, mask=mask, guard_non_finite=True, backend=backend) for parts in (clean, dirty)]
    torch.testing.assert_close(results[1], results[0])
    for part, other in zip(torch.autograd.grad(results[1].sum(), dirty), torch.autograd.grad(results[0].sum(), clean), strict=True):
        torch.testing.assert_close(part, other)


@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_lse_and_weights_come_from_the_device_too(backend):
    query, key, value = torch.randn(3, 2, 4, 96, 64, generator=torch.Generator().manual_seed(3)).cuda()
    results = attention(query, key, value, is_causal=True, return_weights=True, return_lse=True, backend=backend)
    wanted = attention(query.double(), key.double(), value.double(), is_causal=True, return_weights=True, return_lse=True)
    for got, expected in zip(results, wanted, strict=True):
        assert got.is_cuda
        assert relative_error(got, wide(expected)) < TOLERANCE[torch.float32]
