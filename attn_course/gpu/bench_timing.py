"""Time on the device, without the host: what a call takes once it is queued, and the roofs of the machine.

On a GPU each call waits behind a kernel that empties the level-2 cache and one that spins; when it starts, the host has long
queued all of it. Whether that is so is looked at after every call: if the device got there first, the sample does not count and
the next one waits longer. (Graphs would hide the host as well, but a capture that fails leaves torch's allocator broken before
2.12, and FlexAttention, cuDNN and our kernels may each fail it for reasons of their own; one way for all is also fairer.)
"""

import contextlib
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

FLUSH_BYTES = 256 * 2**20  # several times the level-2 cache of any card
CYCLES_PER_MS = 2_000_000  # at 2 GHz; a card that runs slower spins longer, which is as good
LONGEST_WAIT_MS = 50.0
QUERIED = {
    "driver": "driver_version",
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
}


def timed(function: Callable[[], Any], device: str, *, repeats: int = 50, budget_ms: float = 30.0) -> dict[str, Any]:
    """Return how long a call takes: median, quartiles, how often it was timed, and how often the device waited for the host.

    Three calls come first and do not count. It ends after `repeats` calls, or once at least five took `budget_ms` together.
    `late` counts samples in the result that hold time of the host: 0, or all of them if waiting did not help. `host_ms`: the median of
    what the host needs to queue the call, which is not in the result.
    """
    for _ in range(2):
        function()
    samples = _device_samples_ms(function) if device == "cuda" else _clock_samples_ms(function)
    times: list[float] = []
    host: list[float] = []
    late = 0
    while len(times) < 5 or (len(times) < repeats and sum(times) < budget_ms):
        time_ms, host_ms, was_late = next(samples)
        times.append(time_ms)
        host.append(host_ms)
        late += was_late
    first, median, third = statistics.quantiles(times, n=4, method="inclusive")
    spread = {"quartiles_ms": [first, third], "repeats": len(times), "late": late}
    return {"time_ms": median, **spread, "host_ms": statistics.median(host)}


def _clock_samples_ms(function: Callable[[], Any]) -> Iterator[tuple[float, float, bool]]:
    function()
    while True:
        begun = time.perf_counter()
        function()
        time_ms = 1e3 * (time.perf_counter() - begun)
        yield time_ms, time_ms, False


def _device_samples_ms(function: Callable[[], Any]) -> Iterator[tuple[float, float, bool]]:
    flush = torch.ones(FLUSH_BYTES // 4, device="cuda")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    function()
    wait_ms = 0.1 + 2e3 * (time.perf_counter() - begun)
    while True:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.sum()  # read, not written: no dirty lines are left to be written back while the call is timed
        torch.cuda._sleep(int(min(wait_ms, LONGEST_WAIT_MS) * CYCLES_PER_MS))
        start.record()
        begun = time.perf_counter()
        function()
        host_ms = 1e3 * (time.perf_counter() - begun)
        stop.record()
        late = start.query()  # the device started before the host was done
        torch.cuda.synchronize()
        if late and wait_ms < LONGEST_WAIT_MS:
            wait_ms *= 2
        else:
            yield start.elapsed_time(stop), host_ms, late


def peak_bytes(function: Callable[[], Any], device: str) -> int | None:
    """Return how much memory a call needs at its peak beyond what is in use, its results among it; None on a CPU."""
    if device != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = function()
    torch.cuda.synchronize()
    del kept
    return torch.cuda.max_memory_allocated() - before


def roofs(device: str) -> dict[str, Any]:
    """Return the rates of a large product and of a large copy, and clocks and power while the product runs (None on a CPU)."""
    n, n_numbers = (8192, 2**29) if device == "cuda" else (512, 2**22)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    left, right = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))

    def product() -> torch.Tensor:
        return left @ right

    product_ms = timed(product, device)["time_ms"]
    state = None
    if device == "cuda":
        for _ in range(int(min(900.0, 1500.0 / product_ms))):  # 1.5 s of work, queued
            product()
        state = machine_state()
        torch.cuda.synchronize()
    source = torch.randn(n_numbers, device=device, dtype=dtype)
    target = torch.empty_like(source)
    copied_bytes = 2 * source.numel() * source.element_size()  # read and written
    copy_ms = timed(lambda: target.copy_(source), device)["time_ms"]
    return {"matmul_tflops_per_s": 2 * n**3 / product_ms / 1e9, "copy_gb_per_s": copied_bytes / copy_ms / 1e6, "state": state}


def machine_state() -> dict[str, Any] | None:
    """Return driver, clocks, power and temperature of the GPU in use as nvidia-smi has them; None where it has nothing to say."""
    words = ["nvidia-smi", f"--query-gpu={','.join(QUERIED.values())}", "--format=csv,noheader,nounits"]
    attempts = [words]
    if torch.cuda.is_available():  # nvidia-smi and torch may count GPUs differently
        attempts.insert(0, [*words, f"--id=GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"])
    for attempt in attempts:
        with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
            said = subprocess.run(attempt, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()[0].split(", ")
            return dict(zip(QUERIED, [said[0], *(_number(text) for text in said[1:])], strict=False))
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def device_name(device: str) -> str:
    """Return what is measured, for people."""
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU {platform.machine()}, Triton's interpreter"


def answers(device: str) -> bool:
    """Whether the device still computes; after an illegal access a process has lost its GPU."""
    try:
        return device != "cuda" or float(torch.ones(2, device="cuda").sum()) == 2.0
    except RuntimeError:
        return False
