"""Times of the benchmark, on a made-up GPU whose host and device have clocks of their own."""

import subprocess
import types

import pytest
import torch

from attn_course.gpu import bench_timing
from attn_course.gpu.bench_timing import FLUSH_BYTES, machine_state, peak_bytes, timed


class Machine:
    """A host that queues and a device that works the queue off; times in ms."""

    def __init__(self, *, launch_ms=0.01, read_gb_per_ms=4.0):
        self.host = self.device = 0.0
        self.launch_ms, self.read_gb_per_ms = launch_ms, read_gb_per_ms
        self.done = []

    def queue(self, kernel_ms, name="kernel"):
        self.host += self.launch_ms
        self.device = max(self.device, self.host) + kernel_ms
        self.done.append(name)

    def synchronize(self):
        self.host = max(self.host, self.device)


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            machine.queue(0.0, "event")
            self.at = machine.device

        def query(self):
            return self.at <= machine.host

        def elapsed_time(self, other):
            return other.at - self.at

    class Flush:
        def sum(self):
            machine.queue(FLUSH_BYTES / 1e9 / machine.read_gb_per_ms, "flush")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", machine.synchronize)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: machine.queue(cycles / bench_timing.CYCLES_PER_MS, "wait"))
    monkeypatch.setattr(torch, "ones", lambda n, device: Flush())
    monkeypatch.setattr(bench_timing, "time", types.SimpleNamespace(perf_counter=lambda: machine.host / 1e3))
    return machine


@pytest.mark.parametrize("host_ms", [0.02, 0.4, 3.0])
def test_the_host_is_not_in_the_time_of_a_call(machine, host_ms):
    def call():
        machine.host += host_ms
        for _ in range(3):
            machine.queue(0.05)

    found = timed(call, "cuda", repeats=7)
    assert found["time_ms"] == pytest.approx(0.15)
    assert found["quartiles_ms"] == pytest.approx([0.15, 0.15])
    assert found["host_ms"] == pytest.approx(host_ms + 3 * machine.launch_ms)
    assert (found["repeats"], found["late"]) == (7, 0)


def test_the_cache_is_read_empty_and_the_device_waits_before_every_call(machine):
    timed(lambda: machine.queue(1.0, "call"), "cuda", repeats=5)
    assert "".join(name[0] for name in machine.done) == "ccc" + "fwece" * 5


def test_a_call_that_the_device_was_early_for_is_timed_again_behind_a_longer_wait(machine):
    host = iter([0.1, 0.1, 0.1, 9.0, 9.0, 9.0, 9.0])

    def call():
        machine.host += next(host, 0.1)
        machine.queue(0.05)

    found = timed(call, "cuda", repeats=5)
    assert found["time_ms"] == pytest.approx(0.05)
    assert found["late"] == 0


def test_a_call_that_waits_for_the_device_itself_is_marked(machine):
    def call():
        machine.queue(0.05)
        machine.synchronize()
        machine.host += 2.0
        machine.queue(0.05)

    found = timed(call, "cuda", repeats=5)
    assert found["late"] == found["repeats"] == 5
    assert found["time_ms"] > 2.0


def test_it_ends_after_its_budget_but_not_before_five_calls(machine):
    assert timed(lambda: machine.queue(60.0), "cuda", budget_ms=100.0)["repeats"] == 5
    assert timed(lambda: machine.queue(6.0), "cuda", budget_ms=100.0)["repeats"] == 17
    assert timed(lambda: machine.queue(0.001), "cuda", repeats=20)["repeats"] == 20


def test_the_median_and_quartiles_are_those_of_the_timed_calls(machine):
    kernels = iter([9.0, 9.0, 9.0, 1.0, 4.0, 2.0, 5.0, 3.0])
    found = timed(lambda: machine.queue(next(kernels)), "cuda", repeats=5)
    assert found["time_ms"] == pytest.approx(3.0)
    assert found["quartiles_ms"] == pytest.approx([2.0, 4.0])


def test_peak_memory_is_what_a_call_needs_beyond_what_is_in_use(monkeypatch):
    state = {"in use": 70, "peak": 900}

    def call():
        state["peak"] = 70 + 25

    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: state.update(peak=state["in use"]))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: state["in use"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: state["peak"])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert peak_bytes(call, "cuda") == 25


# ---- what nvidia-smi says


NAMES = ["driver", "sm_clock_mhz", "memory_clock_mhz", "power_w", "power_limit_w", "temperature_c"]


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("580.1, 1980, 3201, 512.25, 700.00, 41\n", ["580.1", 1980.0, 3201.0, 512.25, 700.0, 41.0]),
        ("580.1, 345, 3201, [N/A], [N/A], 41\n", ["580.1", 345.0, 3201.0, None, None, 41.0]),
        ("", None),
    ],
)
def test_clocks_and_power_are_those_nvidia_smi_has(said, numbers, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: types.SimpleNamespace(stdout=said))
    assert machine_state() == (numbers and dict(zip(NAMES, numbers, strict=True)))


def test_the_gpu_that_torch_uses_is_asked_for_and_where_that_is_refused_any(monkeypatch):
    asked = []

    def run(words, **options):
        asked.append(words[-1])
        if len(asked) == 1:
            raise subprocess.CalledProcessError(6, words)
        return types.SimpleNamespace(stdout="580.1, 1980, 3201, 512, 700, 41\n")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: types.SimpleNamespace(uuid=f"ffc7-{index}"))
    monkeypatch.setattr(subprocess, "run", run)
    assert machine_state()["sm_clock_mhz"] == 1980
    assert asked == ["--id=GPU-ffc7-1", "--format=csv,noheader,nounits"]


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.CalledProcessError(9, "nvidia-smi"), subprocess.TimeoutExpired("x", 1)])
def test_without_nvidia_smi_nothing_is_said(error, monkeypatch):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(subprocess, "run", fail)
    assert machine_state() is None
