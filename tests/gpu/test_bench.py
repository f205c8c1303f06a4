"""The benchmark: what it counts, how it compares, and that it runs without a GPU."""

import math

import pytest
import torch

from attn_course.gpu.bench import Case, bench, cases, measure, median_ms, providers, ratios


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


def test_a_step_of_decoding_is_measured_forward_only_and_in_bytes():
    lines = measure(Case(1, 4, 2, 8, 4, False, q_len=1), "cpu", torch.float32)
    assert {line["direction"] for line in lines} == {"decode"}
    assert [line["provider"] for line in lines if "error" in line] == []
    for line in lines:
        moved = Case(1, 4, 2, 8, 4, False, q_len=1).least_bytes(4)
        assert line["gb_per_s"] == pytest.approx(moved / line["time_ms"] / 1e6)


def test_every_size_of_the_matrix_has_as_many_tokens_and_features():
    matrix = [case for case in cases("cuda") if case.heads == case.kv_heads and case.left is None and case.q_len is None and case.d < 256]
    assert len(matrix) == 24
    assert {(case.batch * case.length, case.heads * case.d) for case in matrix} == {(16384, 2048)}


def test_ratios_are_geometric_means_over_what_both_measured():
    def line(length, provider, rate):
        rates = {"error": "refused"} if rate is None else {"tflops_per_s": rate}
        return {**Case(1, 1, 1, length, 8, True).__dict__, "direction": "forward", "provider": provider, **rates}

    lines = [line(1, "ours", 8.0), line(1, "b", 2.0), line(2, "ours", 3.0), line(2, "b", 3.0), line(3, "ours", 9.0), line(3, "b", None)]
    assert ratios(lines) == {"forward": {"b": pytest.approx(2.0)}}


def test_the_median_is_that_of_the_timed_calls():
    calls = []
    assert median_ms(lambda: calls.append(0), "cpu", repeats=5) < 5.0
    assert len(calls) == 8
    assert math.isfinite(median_ms(lambda: torch.zeros(3), "cpu", budget_ms=0.0))


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU it takes minutes")
def test_on_a_cpu_it_says_what_it_is_and_measures(monkeypatch):
    monkeypatch.setattr("attn_course.gpu.bench.cases", lambda device: [Case(1, 1, 1, 8, 4, True)])
    said = []
    report = bench(said.append)
    assert said[0].startswith("no GPU: a small matrix on the CPU")
    assert {line["provider"] for line in report["measurements"]} >= {"sdpa", "eager"}
    assert all(line["time_ms"] > 0 for line in report["measurements"])
    assert {"device", "date", "versions", "matmul_tflops_per_s"} <= report.keys()


def test_a_provider_that_fails_is_reported_not_hidden(monkeypatch):
    def refuse(query, key, value):
        raise RuntimeError("no kernel\nmore")

    monkeypatch.setattr("attn_course.gpu.bench.providers", lambda case, query: {"broken": refuse})
    lines = measure(Case(1, 1, 1, 4, 2, False), "cpu", torch.float32)
    assert [line["error"] for line in lines] == ["no kernel", "no kernel"]


def test_the_providers_agree():
    case = Case(1, 2, 2, 8, 4, True)
    tensors = [torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    results = {name: attention(*tensors) for name, attention in providers(case, tensors[0]).items()}
    assert len(results) >= 2
    for result in results.values():
        torch.testing.assert_close(result, results["eager"])
