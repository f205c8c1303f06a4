"""What the tests of this room share: arrays as tensors, gradients of a call, and how results are compared."""

import os
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from attn_course.gpu import attention
from attn_course.gpu.call import validate
from attn_course.gpu.ops import BACKENDS
from tests.reference.support import assert_same

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is for Linux on x86_64")
interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="for Triton's interpreter; a GPU has its own tests")


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def bool_mask(*shape):
    """A mask whose row 1 hides everything."""
    mask = normal(*shape, seed=9) > -0.3
    mask[..., 1, :] = False
    return mask


def tensors(*arrays):
    return [torch.from_numpy(np.array(array)) for array in arrays]


def torch_options(options):
    return {name: torch.from_numpy(np.array(one)) if isinstance(one, np.ndarray) else one for name, one in options.items()}


def supports(backend, arrays, options):
    return BACKENDS[backend].why_not(validate(*tensors(*arrays), **torch_options(options))) is None


def gradients(arrays, options, d_output, *, d_lse=None, with_mask=False, backend="eager"):
    """Gradients of the call by autograd, as arrays: query, key, value, and the mask if asked for."""
    parts, keywords = [part.requires_grad_() for part in tensors(*arrays)], torch_options(options)
    if with_mask:
        parts.append(keywords["mask"].requires_grad_())
    results = attention(*parts[:3], **keywords, return_lse=d_lse is not None, backend=backend)
    outputs, upstream = (results, (d_output, d_lse)) if d_lse is not None else ((results,), (d_output,))
    return [part.numpy() for part in torch.autograd.grad(outputs, parts, tensors(*upstream))]


def assert_close(got, wanted, tolerance=1e-10):
    """Assert that a tensor or an array of float64 is what is wanted, up to `tolerance` of the largest value (at least 1)."""
    assert_same(got.detach().numpy() if isinstance(got, torch.Tensor) else got, wanted, tolerance)
