"""Attention over up to four processes equals that of one device, sends what is predicted, and never hangs.

The processes are started once for all cases, and once more to come to grief.
"""

import math
import time

import numpy as np
import pytest
import torch

from attn_course import costs, reference
from attn_course.distributed import DeviceFailed, Wire, device_places, head_parallel_attention, on_devices, ring_attention
from tests.distributed.work import CASES, SILENT_S, come_to_grief, every_check

LIMIT_S = 280  # below that of faulthandler; alone it takes seconds
ROUNDED_ONCE = {torch.float64: (0, 1e-12), torch.float32: (0, 1e-5), torch.bfloat16: (2**-8, 1e-5)}
GRADIENT_BYTES = {torch.float64: 8, torch.float32: 4, torch.bfloat16: 4}


@pytest.fixture(scope="module")
def told():
    return on_devices(4, every_check, timeout_s=LIMIT_S)


def cases(told, **wanted):
    """Yield the cases that have such fields, each with what its processes tell."""
    for case, *parts in zip(CASES, *(each["cases"] for each in told), strict=True):
        if all(getattr(case, name) == value for name, value in wanted.items()):
            yield case, parts[: case.n]


def total(parts, when, what):
    return sum(part[when][what] for part in parts)


def test_output_and_gradients_are_those_of_one_device(told):
    for case, parts in cases(told):
        query, key, value, d_output = (part.double().numpy() for part in case.whole())
        options = {"is_causal": case.is_causal, "scale": 0.3, "enable_gqa": case.heads != case.kv_heads}
        output = reference.attention(query, key, value, **options)
        gradients = reference.attention_backward(query, key, value, d_output, **options)
        home = torch.cat(case.places()).argsort()
        relative, absolute = (0, 0.03) if (case.way, case.dtype) == ("heads", torch.bfloat16) else ROUNDED_ONCE[case.dtype]
        for which, right in enumerate((output, *gradients)):
            got = torch.cat([part["results"][which] for part in parts], dim=-2)[..., home, :]
            assert got.dtype == case.dtype
            close = {"rtol": relative, "atol": absolute * max(1.0, np.abs(right).max())}
            np.testing.assert_allclose(got.double().numpy(), right, **close, err_msg=f"result {which} of {case}")


def test_bytes_sent_are_those_predicted_and_those_that_torch_gets(told):
    for case, parts in cases(told):
        numbers, passed = case.length * (case.d_k + case.d_v), case.n - 1  # of one head's keys and values; devices that they go to
        for when, with_backward in (("forward", False), ("both", True)):
            size = torch.finfo(case.dtype).bits // 8 * (1 + with_backward)
            if case.way == "ring":  # blocks go round, once more in the backward pass, and their gradients come home
                each = passed * case.kv_heads * numbers * (size + with_backward * GRADIENT_BYTES[case.dtype])
            else:  # a number travels unless the device that has its position computes its head
                each = passed * (case.heads + case.kv_heads) * numbers // case.n * size
            assert total(parts, when, "sent") == total(parts, when, "bytes") == 2 * each, case  # two sequences


def test_each_device_computes_at_each_step_the_pairs_that_are_counted(told):
    for case, parts in cases(told, block_q=1):
        held, ranks = [each.tolist() for each in case.places()], range(case.n)
        pairs = [[sum(j <= i for i in held[rank] for j in held[rank - step]) for rank in ranks] for step in ranks]
        np.testing.assert_array_equal(np.transpose([part["step_pairs"] for part in parts]), pairs, err_msg=str(case))


def test_the_flops_are_those_of_the_pairs_computed(told):
    for case, parts in cases(told, way="ring"):
        for part in parts:
            pairs = 2 * case.heads * sum(part["step_pairs"])
            forward = costs.attention_flops(pairs, case.d_k, case.d_v)
            assert part["forward"]["flops"] == forward, case
            assert part["both"]["flops"] - forward == costs.attention_backward_flops(pairs, case.d_k, case.d_v), case


def test_whole_blocks_that_are_hidden_cost_nothing(told):
    """With all its queries at once a device still skips squares: zigzag computes two of four, and of its own block the rest of the mask."""
    ((_, parts),) = cases(told, length=32)
    assert [part["step_pairs"] for part in parts] == [[64, 32, 32, 32]] * 4


def test_a_neighbour_that_says_nothing_is_an_error_within_the_groups_time(told):
    assert "process 0 of 2 lost process 1" in told[0]["silence"]
    assert told[0]["after_s"] >= 0.9 * SILENT_S
    assert told[0]["after_s"] < 60 + SILENT_S
    assert told[2]["stranger"] == "group must hold this process; got one without process 2"


def test_a_process_that_dies_or_raises_is_named_and_so_is_what_the_others_saw(tmp_path):
    started = time.monotonic()
    with pytest.raises(DeviceFailed) as caught:
        on_devices(3, come_to_grief, tmp_path / "raised", timeout_s=LIMIT_S)
    assert time.monotonic() - started < LIMIT_S / 2  # nobody waits for the dead
    first, *lines = str(caught.value).splitlines()
    assert first == "process 1 of 3: ended by SIGKILL"
    assert lines[0].startswith("process 2 of 3: Traceback")
    assert "ValueError: planted" in lines
    assert lines[-1].startswith("process 0 of 3: NeighbourLost: process 0 of 3 lost process")


def test_what_takes_too_long_is_stopped():
    with pytest.raises(DeviceFailed, match=r"^process 0 of 1: stopped, not ready after \d+ s$"):
        on_devices(1, time.sleep, 3600, timeout_s=1)


@pytest.mark.parametrize(
    ("n", "work", "timeout_s", "message"),
    [
        (0, time.sleep, 1.0, r"n_devices must be an integer of 1 or more; got 0"),
        (1, time.sleep, 0.0, r"timeout_s must be positive; got 0\.0"),
        (1, lambda: None, 1.0, r"work must be a function that another process can import, with arguments to pickle; got <function"),
    ],
)
def test_what_cannot_be_started_is_refused(n, work, timeout_s, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        on_devices(n, work, timeout_s=timeout_s)


@pytest.mark.parametrize("order", ["contiguous", "striped", "zigzag"])
@pytest.mark.parametrize(("length", "n"), [(0, 3), (2, 5), (13, 1), (13, 3), (17, 4), (24, 4)])
def test_places_are_those_of_the_reference(length, n, order):
    for got, wanted in zip(device_places(length, n, order), reference.device_places(length, n, order), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)


def x(*shape, dtype=torch.float64):
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize("way", [ring_attention, head_parallel_attention])
@pytest.mark.parametrize(
    ("arrays", "places", "error", "message"),
    [
        ((x(2, 3, 5), x(2, 3, 5), x(2, 3, 5)), [range(3), range(3, 6)], ValueError, "places must list the positions of each of the 1 "),
        ((x(2, 3, 5), x(2, 3, 5), x(2, 3, 5)), [[2, 1, 0]], ValueError, "places must ascend on each process"),
        ((x(2, 4, 5), x(2, 3, 5), x(2, 3, 5)), [range(3)], ValueError, r"query must have the axes \(\.\.\., 3, features\), for the places"),
        ((x(2, 3, 5), x(2, 3, 5, dtype=torch.float32), x(2, 3, 5)), [range(3)], TypeError, r"key must be a Tensor of torch\.float64, as"),
        (([[1.0]], x(1, 1), x(1, 1)), [range(1)], TypeError, "query must be a Tensor of floats; got list"),
    ],
)
def test_parts_that_do_not_fit_are_named(way, arrays, places, error, message):
    with pytest.raises(error, match=f"^{message}"):
        way(*arrays, [torch.tensor(list(held)) for held in places])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ring_attention(x(4, 3, 5), x(2, 3, 5), x(2, 3, 5), [torch.arange(3)]), "query, key and value must agree in their leading"),
        (lambda: ring_attention(x(2, 3, 5), x(2, 3, 4), x(2, 3, 5), [torch.arange(3)]), "query, key and value must agree in their leading"),
        (lambda: ring_attention(x(3, 3, 5), x(2, 3, 5), x(2, 3, 5), [torch.arange(3)], enable_gqa=True), "query must have a multiple of"),
        (lambda: ring_attention(x(3, 0), x(3, 0), x(3, 5), [torch.arange(3)]), "scale must be given when d_k is 0; got None"),
        (
            lambda: ring_attention(x(3, 5), x(3, 5), x(3, 5), [torch.arange(3)], scale=math.inf),
            "scale must be a finite number or None; got inf",
        ),
        (lambda: ring_attention(x(3, 5), x(3, 5), x(3, 5), [torch.arange(3)], block_q=0), "block_q must be an integer of 1 or more; got 0"),
        (lambda: head_parallel_attention(x(3, 5), x(3, 5), x(3, 5), [torch.arange(3)]), "query must have a multiple of 1 heads"),
        (lambda: device_places(3, 2, "random"), "order must be one of contiguous, striped, zigzag; got 'random'"),
        (lambda: device_places(3, 0), "n_devices must be 1 or more; got 0"),
    ],
)
def test_what_cannot_be_used_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_what_is_of_the_wrong_type_is_named():
    with pytest.raises(TypeError, match=r"^length must be an integer; got float 2\.0$"):
        device_places(2.0, 1)
    for way in (ring_attention, head_parallel_attention):
        for flag in ("is_causal", "enable_gqa"):
            with pytest.raises(TypeError, match=f"^{flag} must be True or False; got int$"):
                way(x(2, 3, 5), x(2, 3, 5), x(2, 3, 5), [torch.arange(3)], **{flag: 1})


def test_one_process_alone_sends_nothing_and_has_derivatives():
    query, key, value = (torch.randn(2, 3, width, dtype=torch.float64).requires_grad_() for width in (2, 2, 1))
    wire = Wire()
    assert torch.autograd.gradcheck(
        lambda *parts: ring_attention(*parts, [torch.arange(3)], is_causal=True, wire=wire), (query, key, value)
    )
    assert wire.sent_bytes == 0


def test_autocast_does_not_narrow_the_sums():
    query, key, value = torch.randn(3, 2, 11, 5).unbind()
    places = [torch.arange(11)]
    with torch.autocast("cpu", torch.bfloat16):
        got = ring_attention(query, key, value, places)
    torch.testing.assert_close(got, ring_attention(query, key, value, places), rtol=0, atol=0)


def test_the_comparison_can_fail():
    """Blocks that are merged with equal shares are told from attention by far more than is allowed."""
    query, key, value, _ = (part.numpy() for part in CASES[1].whole())
    halves = [
        reference.attention(query, part, other)
        for part, other in zip(np.split(key[..., :28, :], 2, -2), np.split(value[..., :28, :], 2, -2), strict=True)
    ]
    assert np.abs(np.mean(halves, axis=0) - reference.attention(query, key[..., :28, :], value[..., :28, :])).max() > 0.01
