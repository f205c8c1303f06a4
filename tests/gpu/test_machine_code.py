"""The kernels compiled for Hopper: everything in registers, and matrix products that run while exponentials are taken.

This needs no GPU. Triton keeps what it compiled in its cache, so a second run is quick.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.util import find_spec

import pytest

from attn_course.gpu.configurations import LEAN
from tests.gpu.machine_code import counts

needs_compiler = pytest.mark.skipif(
    find_spec("triton") is None or platform.machine() != "x86_64", reason="Triton's compiler for NVIDIA is not to be had here"
)


@pytest.fixture(scope="module")
def found(root):
    """What was counted, by kernel, width and mask; compiled in a process of its own, where Triton does not interpret."""
    names = {(kernel, d, masked): f"{kernel}:{d}:{'mask' if masked else 'causal'}" for kernel, d, masked in LEAN}
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.gpu.machine_code", *names.values()]
    made = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, made.stderr
    lines = [json.loads(line) for line in made.stdout.splitlines()]
    return dict(zip(names, lines, strict=True))


@needs_compiler
@pytest.mark.xdist_group("machine code")
def test_nothing_spills(found):
    assert {name: line for name, line in found.items() if line["stack_bytes"] or line["local_accesses"]} == {}


@needs_compiler
@pytest.mark.xdist_group("machine code")
def test_the_matrix_units_are_used_and_not_waited_for_one_product_at_a_time(found):
    assert {name: line for name, line in found.items() if line["products"] < 2 * line["waits"]} == {}


@needs_compiler
@pytest.mark.xdist_group("machine code")
def test_the_forward_pass_takes_exponentials_while_products_are_in_flight(found):
    assert all(line["exps_in_flight"] >= 8 for (kernel, _, masked), line in found.items() if kernel == "forward" and not masked)


def sass(*opcodes: str) -> str:
    return "\n".join(f"        /*{16 * n:04x}*/    @P0  {name} R0, R1 ;" for n, name in enumerate(opcodes))


def test_what_is_looked_for_is_seen():
    usage = "Function f: REG:255 STACK:16 SHARED:0 LOCAL:0"
    line = counts(sass("HGMMA.64x64x16", "WARPGROUP.DEPBAR.LE", "HGMMA", "WARPGROUP.DEPBAR.LE", "MUFU.EX2", "LDL.64", "STL"), usage)
    assert line == {"registers": 255, "stack_bytes": 16, "local_accesses": 2, "products": 2, "waits": 2, "exps_in_flight": 0}
    line = counts(sass("HGMMA", "HGMMA", "HGMMA", "MUFU.EX2", "MUFU.EX2", "WARPGROUP.DEPBAR.LE"), usage)
    assert (line["products"], line["waits"], line["exps_in_flight"]) == (3, 1, 2)
