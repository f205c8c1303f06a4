"""backend="triton" of `attention`: the kernels behind the one function, run by Triton's interpreter where there is no GPU."""

import numpy as np
import pytest
import torch

from attn_course.gpu import attention, explain
from attn_course.reference import attention as reference_attention

pytest.importorskip("triton", reason="Triton is for Linux on x86_64")

rng = np.random.default_rng(12)
QUERY, KEY, VALUE = rng.normal(size=(2, 6, 11, 5)), rng.normal(size=(2, 3, 17, 5)), rng.normal(size=(2, 3, 17, 7))
MASK = rng.random(size=(2, 1, 11, 17)) < 0.6
MASK[0, 0, 3] = False
CALLS = [
    {"is_causal": True, "q_offset": 6},
    {"mask": MASK},
    {"mask": rng.normal(size=(11, 17)), "softcap": 2.0},
    {"window": (3, 2), "scale": 0.3},
]


@pytest.mark.parametrize("options", CALLS, ids="-".join)
def test_means_what_the_reference_means(options):
    wanted = reference_attention(QUERY, KEY, VALUE, **options, enable_gqa=True, return_lse=True)
    options = {name: torch.from_numpy(option) if isinstance(option, np.ndarray) else option for name, option in options.items()}
    tensors = [torch.from_numpy(array).float() for array in (QUERY, KEY, VALUE)]
    got = attention(*tensors, **options, enable_gqa=True, return_lse=True, backend="triton")
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-6)


def test_weights_are_refused_with_the_reason():
    x = torch.ones(3, 2)
    with pytest.raises(ValueError, match="backend 'triton' cannot compute this call: it never has the weights as a whole"):
        attention(x, x, x, return_weights=True, backend="triton")


def test_auto_leaves_it_alone_until_its_speed_has_been_measured():
    x = torch.ones(3, 2)
    assert explain(x, x, x).backend == "sdpa"
    assert explain(x, x, x, softcap=1.0).backend == "eager"


def test_it_works_under_the_compiler():
    x = torch.from_numpy(QUERY).float()
    torch.compiler.reset()
    compiled = torch.compile(lambda x: attention(x, x, x, is_causal=True, backend="triton"), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), attention(x, x, x, is_causal=True), rtol=2e-5, atol=2e-6)
