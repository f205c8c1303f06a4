"""What is compiled before the bench times it on a GPU, and which configurations are tried beside those that are built."""

from dataclasses import asdict

import pytest
import torch

from attn_course.gpu import bench_cases, decoding
from attn_course.gpu.bench import calls
from attn_course.gpu.bench_cases import OURS, Case, attention
from attn_course.gpu.bench_log import Log, source_hash
from attn_course.gpu.configurations import Configuration, configuration
from tests.gpu import card_tuning

pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="for Triton's interpreter; on a GPU the script itself is run")

# ---- what is compiled before it is timed


KERNELS = {
    "flash_forward": ["flash_forward"],
    "flash_backward": ["flash_backward_key_value", "flash_backward_query"],
    "flash_row_terms": ["flash_row_terms"],
    "flash_decode": ["flash_decode", "flash_merge"],
}


class Launches:
    """In the place of a kernel: what Triton would compile for each launch."""

    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    def __getitem__(self, grid):
        return self

    def __call__(self, *arguments, **constants):
        self.seen.add((self.name, *map(self.special, arguments), *map(str, constants.items())))

    def special(self, argument, *, in_tuple=False):
        """What is compiled for an argument: ints outside of tuples are counts, which no kernel is compiled for."""
        if isinstance(argument, torch.Tensor):
            return argument.dtype, argument.data_ptr() % 16 == 0
        if isinstance(argument, tuple):
            return tuple(self.special(one, in_tuple=True) for one in argument)
        if isinstance(argument, int) and in_tuple:
            return argument == 1, argument % 16 == 0, argument < 2**31
        return argument if argument is None else type(argument)


def test_warm_compiles_what_the_bench_launches_and_nothing_else(monkeypatch):
    seen = set()
    for module, names in KERNELS.items():
        for name in names:
            monkeypatch.setattr(f"attn_course.gpu.{module}.{name}", Launches(name, seen))
    monkeypatch.setattr(decoding, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(torch, "randn", lambda size, device, dtype, generator: torch.empty(size, dtype=dtype))  # whatever is in them

    def launched(sizes):
        seen.clear()
        for case in sizes:
            for direction in case.directions:
                tensors = case.tensors("cpu", torch.float32)
                calls(attention(OURS, case, tensors[0].device), tensors, direction)[0]()
        return set(seen)

    sizes = bench_cases.cases("cuda")
    asked = []
    monkeypatch.setattr(card_tuning, "_try", lambda log, device, key, tiles, direction, time, wanted: asked.append((direction, key)))
    for share in range(3):
        card_tuning.warm_share(Log(None, {}), sizes, "cuda", share, 3)
    warmed = [Case(**{name: value for name, value in key.items() if name != "warm"}) for _, key in asked]
    assert len(warmed) < len(sizes)
    assert launched(warmed) == launched(sizes)


# ---- tuning


def rated(log, case, direction, ours, best, **more):
    for provider, rate in (("ours", ours), ("sdpa-cudnn", best), ("sdpa-flash", best / 2)):
        key = {**asdict(case), "provider": provider, "direction": direction, "source": source_hash() if provider == "ours" else None}
        log.finish({**key, "tiles": None, **more}, {"tflops_per_s": rate})


def test_the_worst_cells_get_candidates_and_the_worst_of_all_gets_more_at_another_length():
    log = Log(None, {})
    rated(log, Case(1, 16, 16, 16384, 128, True), "forward", 200.0, 400.0)
    rated(log, Case(4, 32, 32, 4096, 64, False), "forward", 300.0, 400.0)
    rated(log, Case(16, 32, 32, 1024, 64, False), "backward", 100.0, 300.0)
    rated(log, Case(4, 32, 8, 4096, 128, True), "forward", 1.0, 400.0)  # no cell of the target
    rated(log, Case(8, 16, 16, 2048, 128, True), "forward", 1.0, 400.0, tiles={"forward 128": [64, 64, 4, 3]})  # another configuration
    worst = card_tuning.jobs(log, "worst", "cuda")
    assert [(kernel, case.d, case.length) for kernel, _, case in worst] == [
        *[("backward_key_value", 64, 1024)] * 6,
        *[("backward_query", 64, 1024)] * 6,
        *[("forward", 128, 16384)] * 12,
    ]
    assert worst[0][1] == configuration("backward_key_value", 64, 64, torch.bfloat16)
    wide = card_tuning.jobs(log, "wide", "cuda")
    assert len({(kernel, tile) for kernel, tile, _ in wide}) > 24
    assert {(kernel, case) for kernel, _, case in wide} == {
        (kernel, Case(4, 32, 32, 4096, 64, is_causal)) for kernel in card_tuning.KERNELS["backward"] for is_causal in (True, False)
    }
    assert card_tuning.jobs(Log(None, {}), "worst", "cuda") == []


@pytest.mark.parametrize("kernel", ["forward", "backward_key_value", "backward_query"])
def test_a_candidate_reaches_the_launch_of_its_kernel_only_and_is_not_timed_if_it_does_not_compile(kernel, monkeypatch):
    case, impossible = Case(1, 1, 1, 24, 64, True), Configuration(16, 24, 1, 1)  # a tile has powers of two as sides
    small = Configuration(16, 16, 1, 1)
    monkeypatch.setattr(card_tuning, "jobs", lambda log, step, device: [(kernel, impossible, case), (kernel, small, case)])
    log = Log(None, {})
    card_tuning.compile_share(log, "worst", "cpu", 0, 1)
    assert [line["tile"] for line in log.results] == [list(impossible), list(small)]
    assert "power of 2" in log.results[0]["error"]
    assert "error" not in log.results[1]
    card_tuning.time_all(log, "worst", "cpu")
    assert [(line["tune"], line["tile"]) for line in log.results[2:]] == [("worst", list(small))]
    monkeypatch.setattr(card_tuning, "relative_error", lambda found, wanted: float("nan"))
    assert card_tuning._run("cpu", "forward", None, case, []) == {"error": "wrong result: relative error nan"}


def test_the_best_is_named_by_its_gain_and_the_wide_look_has_the_last_word():
    log = Log(None, {})
    built, other, third = [(128, 64, 8, 3, None), (64, 64, 4, 3, 168), (64, 64, 4, 2, None)]

    def time(step, times):
        for length, of_tiles in times.items():
            for tile, time_ms in zip((built, other, third), of_tiles, strict=False):
                key = {"tune": step, "kernel": "forward", "tile": list(tile), **asdict(Case(1, 1, 1, length, 64, True))}
                log.finish({**key, "source": source_hash()}, {"time_ms": time_ms})

    time("worst", {1024: (4.0, 2.0), 4096: (8.0, 8.0, 1.0)})  # the third is not through
    assert card_tuning.summary(log, "worst") == [
        "forward d 64: 128x64, 8 warps, 3 stages as built, 64x64, 4 warps, 3 stages, 168 registers is 1.414 times as fast"
    ]
    assert card_tuning.best(log) == {"forward 64": list(other)}
    time("wide", {4096: (1.0, 2.0, 3.0)})
    assert card_tuning.best(log) == {}
