"""The benchmark: what it counts, that it is right about who is right, and what one failure costs."""

import functools
import math

import pytest
import torch
from torch.nn.attention import flex_attention

from attn_course.gpu import bench, bench_cases
from attn_course.gpu.bench import measure
from attn_course.gpu.bench_cases import Case, attention, cases, expected, known_providers, relative_error, takes
from attn_course.gpu.bench_log import Log
from attn_course.gpu.bench_report import means, relative_rates, report, row, table
from tests.gpu.support import interpreted, needs_triton

SMALL = Case(1, 2, 2, 8, 4, True)


def test_flops_are_those_of_the_pairs_that_may_attend():
    assert Case(2, 3, 3, 4, 5, False).flops("forward") == 2 * 3 * 2 * 4 * 4 * 10
    assert Case(1, 1, 1, 4, 5, True).flops("forward") == 2 * 10 * 10
    assert Case(1, 1, 1, 4, 5, True).flops("backward") == 2.5 * 2 * 10 * 10
    assert Case(1, 1, 1, 4, 5, True, left=1).flops("forward") == 2 * 7 * 10


def test_a_step_of_decoding_counts_the_bytes_of_its_past():
    case = Case(2, 6, 3, 5, 4, False, q_len=1)
    assert case.flops("decode") == 2 * 6 * 2 * 5 * 8
    query_and_output, past = 2 * 2 * 6 * 1 * 4, 2 * 2 * 3 * 5 * 4
    assert case.least_bytes(2) == 2 * (query_and_output + past)


def test_every_cell_of_the_target_has_as_many_tokens_and_features():
    matrix = [case for case in cases("cuda") if case.is_target]
    assert len(matrix) == 24
    assert {(case.batch * case.length, case.heads * case.d) for case in matrix} == {(16384, 2048)}
    assert {case.name.split("length")[1] for case in cases("cuda") if not case.is_target} == {
        *("  4096 heads 32/8", " 16384 heads 16/16 window 1024", "  4096 heads 8/8"),
        *("  8192 heads 32/8 queries 1 batch 16", " 65536 heads 32/8 queries 1 batch 1"),
        *("  8192 heads 32/8 queries 4 batch 16", " 16384 heads 32/8 queries 256 batch 1", "  1920 heads 16/16 packed 16 from 128"),
    }


def loops(case, query, key, value):
    """The output in float64, one query at a time."""
    query, key, value = (tensor.detach().double() for tensor in (query, key, value))
    output = torch.zeros_like(query)
    for batch, head, row_ in torch.cartesian_prod(*map(torch.arange, query.shape[:3])).tolist():
        first = 0 if case.left is None else max(0, row_ - case.left)
        seen = slice(first, row_ + 1 if case.is_causal else case.length)
        shared = head // (case.heads // case.kv_heads)
        weights = (key[batch, shared, seen] @ query[batch, head, row_] / math.sqrt(case.d)).softmax(0)
        output[batch, head, row_] = weights @ value[batch, shared, seen]
    return output


@pytest.mark.parametrize("at_once", [1, 2**28])
@pytest.mark.parametrize(
    "case", [SMALL, Case(2, 6, 3, 7, 4, True), Case(1, 2, 2, 11, 4, True, left=3), Case(2, 4, 2, 7, 4, False, q_len=1)], ids=str
)
def test_what_is_expected_is_attention_by_loops(case, at_once, monkeypatch):
    monkeypatch.setattr(bench_cases, "SCORES_AT_ONCE", at_once)
    tensors = case.tensors("cpu", torch.float32)
    found = expected(case, tensors, with_gradients=case.q_len is None)
    torch.testing.assert_close(found[0], loops(case, *tensors[:3]).float())
    if case.q_len is None:
        query, key, value = tensors[:3]
        shared = [part.repeat_interleave(case.heads // case.kv_heads, 1) for part in (key, value)]
        hidden = case.hidden(query.device)
        bias = None if hidden is None else torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
        output = torch.nn.functional.scaled_dot_product_attention(query, *shared, attn_mask=bias)
        for gradient, right in zip(found[1:], torch.autograd.grad(output, tensors[:3], tensors[3]), strict=True):
            torch.testing.assert_close(gradient, right)


def test_the_error_of_a_result_is_relative_and_never_hides_a_nan():
    right = [torch.tensor([3.0, 4.0]), torch.tensor([1.0])]
    assert relative_error([torch.tensor([3.0, 5.0]), torch.tensor([1.0])], right) == pytest.approx(1 / 5)
    assert relative_error([torch.tensor([3.0, 4.0]), torch.tensor([1.5])], right) == pytest.approx(1 / 2)
    assert math.isnan(relative_error([torch.tensor([3.0, 4.0]), torch.tensor([torch.nan])], right))


# ---- FlexAttention


@pytest.fixture
def compiled(monkeypatch):
    """FlexAttention through dynamo, with its code for the CPU, counted: one entry for each graph that is compiled."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=keep))
    yield graphs
    torch._dynamo.reset()


def test_flex_is_compiled_for_each_of_more_sizes_than_dynamo_keeps(compiled):
    lengths = range(16, 32, 4)
    for length in lengths:
        case = Case(1, 1, 1, length, 8, True)
        tensors = case.tensors("cpu", torch.float32)
        with torch.no_grad(), torch._dynamo.config.patch(recompile_limit=2):
            output = attention("flex", case, torch.device("cpu"))(*(tensor.detach() for tensor in tensors[:3]))
        assert relative_error([output], expected(case, tensors, with_gradients=False)) < 1e-5
    assert len(compiled) == len(lengths)


def test_flex_that_is_not_compiled_raises_and_is_never_computed_unfused(compiled, monkeypatch):
    monkeypatch.setattr(flex_attention, "flex_attention_hop", lambda *args, **kwargs: pytest.fail("the unfused form ran"))
    call = attention("flex", SMALL, torch.device("cpu"))
    with torch.compiler.set_stance("force_eager"), torch.no_grad(), pytest.raises(RuntimeError, match="was not compiled"):
        call(*(tensor.detach() for tensor in SMALL.tensors("cpu", torch.float32)[:3]))
    assert compiled == []


# ---- measuring a case


@pytest.fixture
def with_providers(monkeypatch):
    """Measure SMALL (or another case) with made-up providers, in the given order; return the lines and what is shown."""

    def run(functions, *, case=SMALL, log=None):
        monkeypatch.setattr(bench, "attention", lambda name, case, device: functions[name])
        log, said = log or Log(None, {}), []
        measure(case, [(name, direction) for name in functions for direction in case.directions], "cpu", log, 100.0, said.append)
        return log.results, said

    return run


def right(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=query.shape == key.shape)


class OutOfResources(Exception):  # as Triton's: no RuntimeError
    """out of resource: shared memory"""


def refusing(error):
    def call(query, key, value):
        raise error

    return call


@pytest.mark.parametrize(
    "error",
    [RuntimeError("no kernel\nmore"), OutOfResources("shared memory"), torch.OutOfMemoryError("2 GiB"), AssertionError(), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
def test_a_provider_that_raises_costs_one_line_and_the_others_are_measured(error, with_providers):
    lines, said = with_providers({"first": right, "broken": refusing(error), "last": right})
    assert [(line["provider"], line["direction"]) for line in lines] == [
        *(("first", "forward"), ("first", "backward"), ("broken", "forward"), ("last", "forward"), ("last", "backward"))
    ]
    (failed,) = [line for line in lines if "error" in line]
    assert failed["error"].startswith(f"{type(error).__name__}: {str(error).split(chr(10))[0]}")
    assert "\n" not in failed["error"]
    assert len([text for text in said if "broken:" in text]) == 1


def test_an_expectation_that_does_not_fit_the_memory_costs_lines_and_not_the_run(with_providers, monkeypatch):
    def too_large(*_, **options):
        raise torch.OutOfMemoryError("2 GiB")

    monkeypatch.setattr(bench, "expected", too_large)
    lines, _ = with_providers({"first": right, "last": right})
    assert [line["error"] for line in lines] == ["OutOfMemoryError: 2 GiB"] * 2


def test_a_wrong_result_is_marked_and_has_no_rate(with_providers):
    functions = {
        "ours": lambda query, key, value: right(query, key, value) * 1.001,
        "sdpa": right,
        "nan": lambda query, key, value: right(query, key, value) * torch.nan,
        "gradients": lambda query, key, value: right(query, key, value.detach() + 0.999 * (value - value.detach())),
    }
    lines, said = with_providers(functions)
    found = {(line["provider"], line["direction"]): line for line in lines}
    assert {name for name, line in found.items() if "error" in line} == {
        *(("ours", "forward"), ("ours", "backward"), ("nan", "forward"), ("nan", "backward"), ("gradients", "backward"))
    }
    assert found["ours", "forward"]["error"] == "wrong result: relative error 0.001, at most 0.0001 is right"
    assert found["ours", "forward"]["relative_error"] == pytest.approx(1e-3, rel=0.01)
    assert found["nan", "forward"]["relative_error"] is None
    assert not any("tflops_per_s" in line for line in lines if "error" in line)
    assert relative_rates(lines) == {}
    assert any("ours failed  sdpa" in text for text in said)


def test_a_step_of_decoding_is_measured_forward_only_and_in_bytes(with_providers):
    case = Case(1, 2, 2, 8, 4, False, q_len=1)
    ((line,), _) = with_providers({"first": right}, case=case)
    assert line["direction"] == "decode"
    assert line["gb_per_s"] == pytest.approx(case.least_bytes(4) / line["time_ms"] / 1e6)
    assert line["percent_of_copy"] == pytest.approx(line["gb_per_s"])  # of 100 GB/s
    assert row(case, "decode", [line]).endswith("%)")


@needs_triton
@interpreted
def test_packed_sequences_are_measured_as_what_they_hold():
    case = Case(3, 2, 2, 9, 4, True, shortest=1)
    assert case.lengths == [1, 5, 9]
    assert case.flops("backward") == sum(Case(1, 2, 2, length, 4, True).flops("backward") for length in case.lengths)
    log = Log(None, {})
    measure(case, [("ours", "forward"), ("ours", "backward")], "cpu", log, 100.0, lambda text: None)
    assert [line.get("error") for line in log.results] == [None, None]
    tensors = case.tensors("cpu", torch.float32)
    last = [tensor[6:].transpose(0, 1)[None] for tensor in tensors]
    output = torch.nn.functional.scaled_dot_product_attention(*last[:3], is_causal=True)
    torch.testing.assert_close(expected(case, tensors, with_gradients=False)[0][6:], output[0].transpose(0, 1))


def test_a_gpu_that_was_lost_stops_the_run_after_the_line_of_who_lost_it(with_providers, monkeypatch):
    monkeypatch.setattr(bench, "answers", lambda device: False)
    log = Log(None, {})
    with pytest.raises(bench.DeviceLostError, match="broken spoilt the GPU"):
        with_providers({"broken": refusing(RuntimeError("illegal memory access")), "last": right}, log=log)
    assert [line["provider"] for line in log.results] == ["broken"]


def test_each_provider_is_asked_for_what_it_is_made_for():
    asked = {case.name: [name for name in known_providers("cuda") if takes(name, case)] for case in cases("cuda")}
    everyone = ["ours", "sdpa-flash", "sdpa-cudnn", "sdpa-efficient", "flex", "eager"]
    assert asked["d  64 full   length   512 heads 32/32"] == everyone
    assert asked["d  64 full   length 16384 heads 32/32"] == everyone[:-1]
    assert asked["d 128 causal length 16384 heads 16/16 window 1024"] == ["ours", "flex"]
    assert asked["d 128 causal length  4096 heads 32/8"] == ["ours", "sdpa-flash", "sdpa-cudnn", "flex"]
    assert asked["d 128 causal length  1920 heads 16/16 packed 16 from 128"] == ["ours", "sdpa-flash"]


# ---- the report


def line(case, provider, rate, direction="forward"):
    rates = {"error": "refused"} if rate is None else {"tflops_per_s": rate, "time_ms": 1.0, "late": 0}
    return {**case.__dict__, "direction": direction, "provider": provider, "source": "this" if provider == "ours" else None, **rates}


def test_means_are_geometric_and_over_the_cells_of_the_target_only():
    short, long, extra = Case(1, 2, 2, 512, 64, True), Case(1, 2, 2, 1024, 64, True), Case(1, 4, 2, 512, 64, True)
    lines = [line(short, "ours", 8.0), line(short, "b", 2.0), line(short, "c", 16.0)]
    lines += [line(long, "ours", 3.0), line(long, "b", 3.0), line(long, "c", None), line(long, "ours", 5.0, "backward")]
    lines += [line(extra, "ours", 9.0), line(extra, "b", 1.0)]
    found = means(lines)
    assert found == {
        "forward": {
            "b": {"geometric_mean": pytest.approx(2.0), "least": 1.0, "cells": 2},
            "c": {"geometric_mean": pytest.approx(0.5), "least": 0.5, "cells": 1},
            "best": {"geometric_mean": pytest.approx(math.sqrt(0.5)), "least": 0.5, "cells": 2},
        }
    }
    roofs = [
        {"roofs": when, "matmul_tflops_per_s": rate, "copy_gb_per_s": 2.0, "state": {"driver": "580.1"}, "time": "2031-01-02T03:04"}
        for when, rate in (("before", 700.0), ("after", 690.0))
    ]
    beside = [{**one, "tiles": {"forward 64": [64, 64, 4, 3]}, "time": "2031-01-03"} for one in (*roofs, *lines[:2])]
    old = {**lines[0], "source": "an older one", "tflops_per_s": 900.0}
    results = [*roofs, old, {"test": "a gate"}, *lines, *beside]
    whole = report({"device": "GPU", "versions": {}}, results, "this")
    assert whole == report({"device": "GPU", "versions": {}}, results, None)  # the last source there is
    assert whole["date"] == "2031-01-02"
    assert whole["measurements"] == lines
    assert report({"device": "GPU", "versions": {}}, results, "this", beside[0]["tiles"])["measurements"] == beside[2:]
    assert whole["driver"] == "580.1"
    assert whole["our_rate_over"] == found
    assert whole["extras"] == [{"case": extra.name, "direction": "forward", "our_rate_over": {"b": 9.0, "best": 9.0}}]
    assert table(whole) == [
        "d  64 causal length  1024 heads 2/2      backward ours 5",
        "d  64 causal length   512 heads 2/2      forward  ours 8  b 2  c 16",
        "d  64 causal length   512 heads 4/2      forward  ours 9  b 1",
        "d  64 causal length  1024 heads 2/2      forward  ours 3  b 3  c failed",
        "product of large matrices, before and after: 700 and 690 TFLOP/s",
        "forward: our rate over b 2.00 (least 1.00 of 2), c 0.50 (least 0.50 of 1), best 0.71 (least 0.50 of 2)",
        "d  64 causal length   512 heads 4/2 forward: our rate over b 9.00, best 9.00",
    ]
