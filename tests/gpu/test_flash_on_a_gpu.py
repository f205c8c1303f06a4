"""On a CUDA device: the kernels against the float64 reference at odd sizes, the same bits in every run, and no element unwritten."""

import numpy as np
import pytest
import torch

from attn_course.gpu import attention, attention_varlen, flash_operators, latent_decode
from attn_course.gpu.flash import flash_attention
from tests.gpu.oracle import GATES, errors, relative_error, wide

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CAUSAL, WINDOW = {"is_causal": True}, {"window": (65, 40)}
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
CORE = [  # lengths, heads, widths, dtype, options
    *(((320, 448), (2, 2), (d, d), BF16, options) for d in (64, 128) for options in ({}, CAUSAL, WINDOW)),
    *((lengths, (2, 2), (64, 64), BF16, CAUSAL) for lengths in ((1, 1), (113, 203), (1023, 1024), (799, 3))),
    *(((113, 203), (2, 2), (d, d), BF16, CAUSAL) for d in (8, 80, 96, 192, 256)),
    *(((320, 200), (4, kv_heads), (128, 128), BF16, CAUSAL) for kv_heads in (2, 1)),
    *(((113, 203), (2, 2), (d, d), dtype, CAUSAL) for d in (64, 128) for dtype in (FP16, FP32)),
    *(((q_len, 5003), (8, kv_heads), (128, 128), BF16, CAUSAL) for q_len, kv_heads in ((1, 8), (1, 1), (3, 2))),
]
ODD = [(1, 1), (64, 128), (239, 1), (799, 3), (113, 203), (108, 256), (1023, 1024), (1024, 1023), (320, 320)]


def inputs(q_len, kv_len, heads, kv_heads, d_k, d_v, dtype):
    shapes = [(2, heads, q_len, d_k), (2, kv_heads, kv_len, d_k), (2, kv_heads, kv_len, d_v)]
    rng = np.random.default_rng(q_len + kv_len)
    return tuple(torch.from_numpy(rng.normal(size=shape)).to("cuda", dtype) for shape in shapes)


def check(lengths, heads, widths, dtype, options):
    options = {**options, "enable_gqa": True, **({"q_offset": max(lengths[1] - lengths[0], 0)} if options else {})}
    assert max(errors(inputs(*lengths, *heads, *widths, dtype), options)) < GATES[dtype] * (4 if dtype == FP32 else 1)


@pytest.mark.core
@pytest.mark.parametrize(("lengths", "heads", "widths", "dtype", "options"), CORE, ids=str)
def test_what_everything_else_rests_on(lengths, heads, widths, dtype, options):
    check(lengths, heads, widths, dtype, options)


@pytest.mark.parametrize("dtype", [BF16, FP16, FP32])
@pytest.mark.parametrize("lengths", ODD)
@pytest.mark.parametrize("options", [{}, CAUSAL, WINDOW], ids=["full", "causal", "window"])
def test_odd_lengths(lengths, dtype, options):
    check(lengths, (2, 2), (64, 64), dtype, options)


@pytest.mark.parametrize(
    "widths", [(16, 16), (32, 64), (40, 24), (72, 72), (80, 80), (33, 88), (96, 128), (104, 120), (128, 128), (192, 128), (256, 256)]
)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_widths_and_shared_heads(widths, heads):
    check((320, 200), heads, widths, BF16, CAUSAL)


def errors_behind_a_cache(q_len, kv_len, heads, widths, dtype):
    offsets = torch.tensor([[kv_len - q_len], [kv_len // 3]]).cuda()
    return errors(inputs(q_len, kv_len, *heads, *widths, dtype), {"enable_gqa": True, "is_causal": True, "q_offset": offsets})


@pytest.mark.parametrize("lengths", [(1, 1), (1, 203), (1, 20_011), (3, 4099), (8, 1024)])
@pytest.mark.parametrize("heads", [(8, 8), (8, 1)])
def test_few_queries_for_many_keys(heads, lengths):
    assert max(errors_behind_a_cache(*lengths, heads, (128, 128), BF16)) < GATES[BF16]


@pytest.mark.parametrize("dtype", [BF16, FP16, FP32])
@pytest.mark.parametrize("widths", [(64, 64), (40, 72), (256, 192)])
def test_few_queries_of_any_width_and_dtype(widths, dtype):
    assert max(errors_behind_a_cache(2, 5003, (8, 2), widths, dtype)) < GATES[dtype] * (4 if dtype == FP32 else 1)


@pytest.mark.core
@pytest.mark.parametrize("q_len", [1, 6])
def test_few_queries_with_a_mask_whose_hidden_keys_are_nan(q_len):
    query, key, value = inputs(q_len, 5003, 8, 2, 64, 64, BF16)
    mask = (torch.arange(5003) % 7 > 0) & (torch.arange(5003) < torch.tensor([5000, 61])[:, None, None, None])
    mask = mask.expand(2, 8, q_len, 5003).cuda()
    clean = flash_attention(query, key, value, mask=mask, enable_gqa=True)
    spoilt = [part.masked_fill(~mask[:, :2, :1].mT, torch.nan) for part in (key, value)]
    assert torch.equal(flash_attention(query, *spoilt, mask=mask, enable_gqa=True), clean)
    assert max(errors((query, key, value), {"mask": mask, "enable_gqa": True})) < GATES[BF16]


@pytest.mark.core
@pytest.mark.parametrize(("heads", "q_len", "kv_len"), [(16, 1, 4099), (128, 1, 333), (16, 2, 20_011)])
def test_a_step_of_absorbed_latent_attention(heads, q_len, kv_len):
    query, latents = (torch.randn(2, *shape, 576, device="cuda", dtype=BF16) for shape in ((heads, q_len), (kv_len,)))
    options = {"scale": 192**-0.5, "is_causal": True, "q_offset": kv_len - q_len}
    shared = latents[:, None].double()
    wanted = attention(query.double(), shared, shared[..., :512], enable_gqa=True, return_lse=True, backend="eager", **options)
    for one, other in zip(latent_decode(query, latents, 512, **options), wanted, strict=True):
        assert relative_error(one, wide(other)) < GATES[BF16]


@pytest.mark.core
def test_packed_sequences_see_themselves_alone():
    lengths = [100, 1, 0, 513, 64]
    options = {"is_causal": True, "enable_gqa": True}
    leaves = [torch.randn(sum(lengths), heads, 64, device="cuda", dtype=BF16).requires_grad_() for heads in (4, 2, 2)]
    doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
    cu = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    found = attention_varlen(*leaves, cu, cu, max_seqlen_q=513, max_seqlen_k=513, **options)
    parts = zip(*(part.split(lengths) for part in doubles), strict=True)
    alone = [attention(*(one.transpose(0, 1) for one in part), backend="eager", **options).transpose(0, 1) for part in parts]
    wanted, upstream = torch.cat(alone), torch.randn_like(found)
    gradients = [torch.autograd.grad(out, of, upstream.to(out)) for out, of in ((found, leaves), (wanted, doubles))]
    for one, other in zip((found, *gradients[0]), (wanted, *gradients[1]), strict=True):
        assert relative_error(one, wide(other)) < GATES[BF16]


@pytest.mark.parametrize("dtype", [torch.bool, FP32])
def test_masks_and_softcap(dtype):
    mask = torch.randn(4, 113, 203, generator=torch.Generator().manual_seed(2))
    mask = (mask > -0.5 if dtype == torch.bool else mask).cuda()
    assert max(errors(inputs(113, 203, 4, 4, 64, 64, FP16), {"mask": mask, "softcap": 3.0})) < 2 * GATES[FP16]


@pytest.mark.parametrize("d", [64, 128, 256])
def test_a_row_whose_mask_is_the_lowest_number_throughout_takes_the_mean(d):
    mask = torch.zeros(113, 203)
    mask[20:90] = torch.finfo(FP32).min
    assert max(errors(inputs(113, 203, 2, 2, d, d, BF16), {"mask": mask.cuda()})) < GATES[BF16]


def test_offsets_and_windows_beyond_32_bits():
    far = 2**40
    options = {"window": (far, 3), "q_offset": torch.tensor([[far, 5], [0, 90]]).cuda()}
    assert max(errors(inputs(113, 203, 2, 2, 64, 64, BF16), options)) < GATES[BF16]


def test_results_lie_in_memory_as_the_inputs_do():
    leaves = [torch.randn(2, 100, 4, 64, device="cuda", dtype=BF16).transpose(1, 2).requires_grad_() for _ in range(3)]
    output = flash_attention(*leaves, is_causal=True)
    gradients = torch.autograd.grad(output, leaves, torch.ones_like(output))
    assert {tensor.stride() for tensor in (output, *gradients)} == {leaves[0].stride()}


def test_under_autocast_inputs_are_cast_as_for_the_function_of_torch():
    query, key, value = inputs(113, 203, 2, 2, 64, 64, FP32)
    with torch.autocast("cuda", dtype=BF16):
        output = attention(query, key, value, backend="triton")
        theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    assert output.dtype == theirs.dtype == BF16
    torch.testing.assert_close(output, attention(query.bfloat16(), key.bfloat16(), value.bfloat16(), backend="triton"))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_kernels_run_where_their_tensors_are():
    first = inputs(113, 203, 2, 2, 64, 64, BF16)
    second = [tensor.to("cuda:1") for tensor in first]
    assert torch.equal(flash_attention(*second).cpu(), flash_attention(*first).cpu())


@pytest.mark.core
@pytest.mark.parametrize("d", [64, 128])
def test_twenty_backward_passes_give_the_same_bits_over_poisoned_memory(d):
    leaves = [tensor.requires_grad_() for tensor in inputs(1024, 1024, 8, 2, d, d, BF16)]
    first = None
    for _ in range(20):
        poison = [torch.full_like(leaf, torch.nan) for leaf in (*leaves, leaves[0])]
        del poison  # the allocator hands this memory out again
        output = flash_attention(*leaves, enable_gqa=True, is_causal=True)
        found = [output, *torch.autograd.grad(output.float().square().sum(), leaves)]
        first = first or found
        assert all(torch.equal(*pair) for pair in zip(found, first, strict=True))
        assert all(tensor.isfinite().all() for tensor in found)


# ---- as torch calls them


def test_compiled_it_gives_the_same_gradients():
    leaves = [tensor.requires_grad_() for tensor in inputs(113, 203, 4, 2, 64, 64, BF16)]

    def loss(query, key, value):
        output, lse = flash_attention(query, key, value, is_causal=True, q_offset=90, enable_gqa=True, return_lse=True)
        return output.float().square().sum() + lse.sum()

    wanted = torch.autograd.grad(loss(*leaves), leaves)
    found = torch.autograd.grad(torch.compile(loss, fullgraph=True)(*leaves), leaves)
    for one, other in zip(found, wanted, strict=True):  # not the same bits: what lies between the two operators is compiled too
        assert relative_error(one, wide(other)) < GATES[BF16]


def test_opcheck_finds_nothing_in_the_operators():
    tensors = inputs(113, 203, 4, 2, 64, 64, FP16)
    rest = (None, None, None, None, None, -2, 90, 0.125, 3.0, None)
    results = flash_operators.flash_forward(*tensors, *rest)
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(flash_operators.flash_forward, (*tensors, *rest), test_utils=checks)
    backward = (torch.ones_like(results[0]), None, *results, *tensors, *rest, [True, True, False])
    torch.library.opcheck(flash_operators.flash_backward, backward, test_utils=checks)


@pytest.mark.parametrize("lengths", [(2**24 + 200, 64), (64, 2**24 + 200), (1, 2**24 + 200)])
def test_more_elements_than_32_bits_count(lengths):
    if torch.cuda.mem_get_info()[0] < 40e9:
        pytest.skip("needs 40 GB of free memory")
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, length, 128, device="cuda", dtype=BF16).requires_grad_() for length in (*lengths, lengths[1]))
    last = [(part[..., -length:, :].detach().requires_grad_()) for part, length in zip((query, key, value), (200, 200, 200), strict=True)]
    windowed = {"window": (100, 0), "q_offset": lengths[1] - lengths[0]}
    outputs = []
    for leaves, q_offset in (((query, key, value), lengths[1] - lengths[0]), (last, last[1].shape[2] - last[0].shape[2])):
        output = flash_attention(*leaves, **{**windowed, "q_offset": q_offset})[..., -50:, :]
        outputs.append([output, *(grad[..., -50:, :] for grad in torch.autograd.grad(output.float().square().sum(), leaves))])
    for one, other in zip(*outputs, strict=True):
        assert relative_error(one, wide(other)) < GATES[BF16]
