"""The kernels compiled for Hopper: loops in registers, and matrix products that run while exponentials are taken.

This needs no GPU. Triton keeps what it compiled in its cache, so a second run is quick.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from attn_course.gpu.configurations import LEAST, MEDIUM
from tests.gpu.machine_code import counts, instructions

pytestmark = pytest.mark.xdist_group("machine code")
needs_compiler = pytest.mark.skipif(
    find_spec("triton") is None or platform.machine() != "x86_64", reason="Triton's compiler for NVIDIA is not to be had here"
)
NEWER = find_spec("triton") is not None and version("triton") >= "3.7"
KERNELS = ["forward", "backward_key_value", "backward_query"]
NAMES = [
    *[f"{kernel}:{d}:{kind}:bf16" for kernel in KERNELS for d in (64, 128, 256) for kind in ("causal", "float")],
    *[f"backward_mask:{d}:float:bf16" for d in (128, 256)],
    *[f"{kernel}:128:packed:bf16" for kernel in KERNELS],
    "forward:88:causal:fp16",  # a row of 88 features does not begin at a multiple of 16
    *[f"decode16:{kind}:bf16" for kind in ("64:full", "128:full", "128:bool")],
    "decode64:128:causal:bf16",
    *[f"latent{rows}:512:full:bf16" for rows in (16, 64)],
]
SMALLER = [  # cards and their tiles that fill the memory most
    *[f"{kernel}:256:causal:fp16:86" for kernel in KERNELS],
    "backward_key_value:128:causal:fp16:75",
]
ONES = [f"{kernel}:8:ones:fp16" for kernel in (*KERNELS, "backward_mask", "decode16")]
ONES += [f"{kernel}:8:packed_ones:fp16" for kernel in (*KERNELS, "decode16")]
# Registers that are spilled once in a program, outside of the loops; and the one kernel whose loop over the edges spills: at 256
# features two sums of 64 x 256 numbers and two blocks fill the registers, and smaller blocks spill as well (docs/gpu_notes.md).
SPILLS_OUTSIDE = {"backward_query:256:causal:bf16": 34, "backward_query:256:float:bf16": 4, "forward:256:float:bf16": 22,
                  "decode64:128:causal:bf16": 2}  # fmt: skip
SPILLS_IN_LOOPS = {
    "backward_key_value:256:causal:bf16": [0, 75],
    "backward_key_value:256:float:bf16": [75 if NEWER else 95],
    "latent64:512:full:bf16": [2],  # acc alone takes 128 registers of a thread
}
INSTRUCTIONS = {  # of a whole tile and of one at an edge; in decoding there is no difference
    "forward:64:causal:bf16": (300, 470),
    **dict.fromkeys(["forward:128:causal:bf16", "forward:128:packed:bf16"], (350, 540)),
    "backward_key_value:64:causal:bf16": (325 if NEWER else 405, 660),
    **dict.fromkeys([f"backward_key_value:128:{kind}:bf16" for kind in ("causal", "packed")], (260 if NEWER else 290, 415)),
    "backward_query:64:causal:bf16": (265, 425),
    **dict.fromkeys(["backward_query:128:causal:bf16", "backward_query:128:packed:bf16"], (310, 510)),
    "decode16:64:full:bf16": (285,),
    "decode16:128:full:bf16": (395,),
    "latent16:512:full:bf16": (400,),
}


@pytest.fixture(scope="module")
def everything(root):
    """What was counted, by name; compiled in a process of its own, where Triton does not interpret."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.gpu.machine_code", *NAMES, *SMALLER, *ONES]
    made = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, made.stderr
    lines = [json.loads(line) for line in made.stdout.splitlines()]
    return {line["name"]: line for line in lines}


@pytest.fixture(scope="module")
def found(everything):
    return {name: everything[name] for name in NAMES}


@needs_compiler
def test_no_loop_over_tiles_spills(found):
    """Only the last loop of decoding may, which is entered where NaN was met."""
    usual = {name: line["spills"][: 1 if name.startswith(("decode", "latent")) else None] for name, line in found.items()}
    allowed = {name: SPILLS_IN_LOOPS.get(name, [0] * len(spills)) for name, spills in usual.items()}
    assert {name: spills for name, spills in usual.items() if any(a > b for a, b in zip(spills, allowed[name], strict=True))} == {}


@needs_compiler
def test_next_to_nothing_is_spilled_outside_of_loops(found):
    outside = {name: line["local_accesses"] - sum(line["spills"]) for name, line in found.items() if name not in SPILLS_IN_LOOPS}
    assert {name: accesses for name, accesses in outside.items() if accesses > SPILLS_OUTSIDE.get(name, 0)} == {}


@needs_compiler
def test_the_matrix_units_are_used_and_not_waited_for_one_product_at_a_time(found):
    large = {
        name: line for name, line in found.items() if not name.startswith(("decode16", "latent16"))
    }  # whose products have 16 rows, not 64
    assert {name: line for name, line in large.items() if line["products"] < 2 * line["waits"] or not line["products"]} == {}
    assert [len(line["loops"]) for name, line in found.items() if name not in large] == [2] * 4


@needs_compiler
def test_the_forward_pass_takes_exponentials_while_products_are_in_flight(found):
    in_flight = {name: line["exps_in_flight"] for name, line in found.items() if name.startswith("forward") and "causal" in name}
    assert {name: exponentials for name, exponentials in in_flight.items() if exponentials < 8} == {}


@needs_compiler
def test_a_tile_takes_no_more_instructions_than_it_did(found):
    taken = {name: tuple(found[name]["loops"][: len(most)]) for name, most in INSTRUCTIONS.items()}
    assert {name: pair for name, pair in taken.items() if any(a > b for a, b in zip(pair, INSTRUCTIONS[name], strict=True))} == {}


@needs_compiler
def test_strides_of_1_inside_a_tuple_are_not_forgotten(everything):
    """Triton 3.6 does forget them behind a return and in a loop, and then compiles nothing."""
    assert set(ONES) <= everything.keys()


@needs_compiler
def test_on_a_smaller_card_each_tile_fits_the_shared_memory(everything):
    limits = {"86": MEDIUM, "75": LEAST}
    assert {name: everything[name] for name in SMALLER if everything[name]["shared_bytes"] > limits[name[-2:]]} == {}


def sass(*opcodes: str) -> list[tuple[int, str, str]]:
    return instructions("\n".join(f"        /*{16 * n:04x}*/    @P0  {name} R0, R1 ;" for n, name in enumerate(opcodes)))


def test_what_is_looked_for_is_seen():
    usage = "Function f: REG:255 STACK:16 SHARED:0 LOCAL:0"
    line = counts(sass("HGMMA.64x64x16", "WARPGROUP.DEPBAR.LE", "HGMMA", "WARPGROUP.DEPBAR.LE", "MUFU.EX2", "LDL.64", "STL"), usage)
    assert line == {
        "registers": 255, "stack_bytes": 16, "local_accesses": 2, "products": 2, "waits": 2, "exps_in_flight": 0, "loops": [], "spills": [],
    }  # fmt: skip
    line = counts(sass("HGMMA", "HGMMA", "HGMMA", "MUFU.EX2", "MUFU.EX2", "WARPGROUP.DEPBAR.LE"), usage)
    assert (line["products"], line["waits"], line["exps_in_flight"]) == (3, 1, 2)


def test_loops_over_tiles_are_found_and_so_is_what_they_spill():
    usage = "Function f: REG:255 STACK:16 SHARED:0 LOCAL:0"
    code = sass("STL", "HGMMA", "LDL", "BRA 0x10", "FADD", "BRA 0x40", "HGMMA", "BRA 0x60", "BRA 0x50", "BRA 0x1000")
    line = counts(code, usage)  # a loop without a product is not one over tiles; of two nested ones the inner counts
    assert (line["loops"], line["spills"], line["local_accesses"]) == ([3, 2], [1, 0], 2)


@needs_compiler
def test_what_changes_from_call_to_call_is_compiled_once(root):
    program = """
from attn_course.gpu.flash_backward import flash_backward_key_value, flash_backward_query
from attn_course.gpu.flash_backward_mask import flash_backward_mask
from attn_course.gpu.flash_decode import flash_decode
from attn_course.gpu.flash_forward import flash_forward
for kernel in (flash_forward, flash_decode, flash_backward_key_value, flash_backward_query, flash_backward_mask):
    print(*(p.name for p in kernel.params if p.is_constexpr or not p.do_not_specialize))
"""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(root)}
    made = subprocess.run([sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    others = {"call", "terms", "output", "d_keys", "d_values", "d_queries", "partial", "KIND", "BLOCK_Q", "BLOCK_KV", "CAREFUL"}
    others |= {"SUMMED", "UNIT", "REST"}
    names = [{name for name in line.split() if not name.endswith("_ptr")} for line in made.stdout.splitlines()]
    assert [found - others for found in names] == [set()] * 5
