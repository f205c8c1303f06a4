"""`import attn_course` is quick and pulls in nothing heavy; so does the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 0.3  # of CPU, the least of a few runs: other programs' time does not count
HEAVY = ("torch", "triton", "matplotlib", "sympy", "numpy", "IPython", "jupyter_client", "nbformat", "nbval", "pytest")

PROBE = """
import json, sys, time
start = time.process_time()
import {module}
print(json.dumps([time.process_time() - start, sorted(set(sys.modules) & set({heavy!r}))]))
"""


def import_cost(module: str, *, runs: int = 3, cwd: Path | None = None) -> tuple[float, list[str]]:
    """Return the least CPU time of importing a module in a new process, and the heavy packages that came with it."""
    times_s, loaded = [], set()
    for _ in range(runs):
        command = [sys.executable, "-c", PROBE.format(module=module, heavy=HEAVY)]
        out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stdout
        seconds, heavy = json.loads(out)
        times_s.append(seconds)
        loaded |= set(heavy)
    return min(times_s), sorted(loaded)


@pytest.mark.parametrize("module", ["attn_course", "attn_course.cli"])
def test_importing_is_quick_and_light(module):
    least_s, heavy = import_cost(module)
    assert heavy == []
    assert least_s < LIMIT_S


def test_a_slow_or_heavy_import_is_noticed(tmp_path):
    (tmp_path / "slow_toy.py").write_text("import time\nbegun = time.process_time()\nwhile time.process_time() - begun < 0.5: pass\n")
    (tmp_path / "heavy_toy.py").write_text("import numpy\n")
    assert import_cost("slow_toy", runs=1, cwd=tmp_path)[0] > LIMIT_S
    assert "numpy" in import_cost("heavy_toy", runs=1, cwd=tmp_path)[1]


def test_the_names_of_the_package_lead_home():
    import attn_course
    from attn_course import equations, figures, tasks

    assert attn_course.check is tasks.check
    assert attn_course.verify is equations.verify
    assert attn_course.figures is figures
    assert set(attn_course.__all__) <= set(dir(attn_course))


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    import attn_course

    with pytest.raises(AttributeError, match="module 'attn_course' has no attribute 'tsaks'"):
        _ = attn_course.tsaks
