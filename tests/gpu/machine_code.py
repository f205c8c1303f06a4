"""Compile kernels for Hopper, without a GPU, and count what the machine code holds. Run as a program: Triton must not interpret.

python -m tests.gpu.machine_code forward:128:causal ...    prints one line of JSON for each
"""

import json
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

OPCODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")


def counts(sass: str, usage: str) -> dict[str, int]:
    """Return registers, bytes of stack, accesses to local memory, matrix products, and those that are waited for one by one."""
    opcodes = OPCODE.findall(sass)
    course = [name for name in opcodes if name.startswith(("HGMMA", "WARPGROUP.DEPBAR"))]
    lonely = sum(a.startswith("HGMMA") and b.startswith("WARPGROUP") for a, b in pairwise(course))
    exps_in_flight, in_flight = 0, False
    for name in opcodes:
        if name.startswith(("HGMMA", "WARPGROUP.DEPBAR")):
            in_flight = name.startswith("HGMMA")
        exps_in_flight += in_flight and name.startswith("MUFU.EX2")
    return {
        "registers": int(re.search(r"REG:(\d+)", usage)[1]),
        "stack_bytes": int(re.search(r"STACK:(\d+)", usage)[1]),
        "local_accesses": sum(name.startswith(("LDL", "STL")) for name in opcodes),
        "products": sum(name.startswith("HGMMA") for name in opcodes),
        "waits": lonely,
        "exps_in_flight": exps_in_flight,
    }


def compiled(kernel, constants: dict[str, object], num_warps: int, num_stages: int) -> dict[str, int]:
    """Compile one kernel for sm_90 with float16 tensors, aligned as the launcher's are, and count."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, attributes = {}, {}
    for index, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name.endswith("_strides"):
            signature[name] = ("i32",) * (4 if name == "mask_strides" else 3)
            attributes |= {(index, axis): [["tt.divisibility", 16]] for axis in range(3)}
        elif name.endswith("_ptr"):
            signature[name] = "*fp32" if name in ("lse_ptr", "delta_ptr") else "*fp16"
            attributes[(index,)] = [["tt.divisibility", 16]]
        else:
            signature[name] = "i32"
    source = ASTSource(kernel, signature, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps, "num_stages": num_stages})
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        read = [subprocess.run([tool, option, file.name], capture_output=True, text=True, check=True).stdout
                for option in ("--dump-sass", "--dump-resource-usage")]  # fmt: skip
    return counts(*read)


def main(names: list[str]) -> None:
    """Compile each kernel that is named as KERNEL:D:causal or KERNEL:D:mask."""
    import torch
    import triton.language as tl

    from attn_course.gpu import flash_backward, flash_forward
    from attn_course.gpu.configurations import configuration

    kernels = {
        "forward": flash_forward.flash_forward,
        "backward_key_value": flash_backward.flash_backward_key_value,
        "backward_query": flash_backward.flash_backward_query,
    }
    for name in names:
        which, width, kind = name.split(":")
        d, masked = int(width), kind == "mask"
        chosen = configuration(which, d, d, torch.float16, masked=masked)
        constants = {"D_K": d, "D_V": d, "D_K_PAD": d, "D_V_PAD": d, "GROUP": 1, "SCALE": d**-0.5, "SOFTCAP": None, "ACC": tl.float32,
                     "MASK": "float" if masked else "none", "LEFT": False, "RIGHT": not masked, "offsets_ptr": None, "lengths_ptr": None,
                     "BLOCK_Q": chosen.block_q, "BLOCK_KV": chosen.block_kv, **({} if masked else {"mask_ptr": None})}  # fmt: skip
        print(json.dumps({"name": name, **compiled(kernels[which], constants, chosen.num_warps, chosen.num_stages)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
