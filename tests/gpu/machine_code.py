"""Compile kernels for Hopper, without a GPU, and count what the machine code holds. Run as a program: Triton must not interpret.

python -m tests.gpu.machine_code forward:128:causal:fp16 ...    prints one line of JSON for each (kernel:width:kind:dtype)

Kinds: full, causal, capped (causal with a softcap), bool and float (with a mask), packed (causal, with starts of sequences), careful
(the second launch of a causal pass), ones and packed_ones (the second launch with a mask or with starts, compiled for strides of 1 where
there are any, as Triton does when it launches).
decode16, decode64: `flash_decode` with so many rows; latent16, latent64: the same for so many latent features and 64 rotated ones.
With forward:128:causal:fp16:86 it is the configuration of a smaller card (86 or 75), compiled for that.
"""

import json
import re
import struct
import subprocess
import sys
import tempfile
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import Any

NAMES = {"torch.uint8": "u8", "torch.float16": "fp16", "torch.bfloat16": "bf16", "torch.float32": "fp32", "torch.int32": "i32"}
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)")


def counts(lines: list[tuple[int, str, str]], usage: str) -> dict[str, Any]:
    """Return registers, bytes of stack, accesses to local memory, products and how they are waited for, and what loops hold.

    An access to local memory is a spilled register. `loops` holds the instructions of each loop over tiles, in the order of the
    code, and `spills` the accesses to local memory among them.
    """
    opcodes = [name for _, name, _ in lines]
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
        "local_accesses": sum(map(is_local, opcodes)),
        "products": sum(name.startswith("HGMMA") for name in opcodes),
        "waits": lonely,
        "exps_in_flight": exps_in_flight,
        "loops": [len(body) for body in loops(lines)],
        "spills": [sum(map(is_local, body)) for body in loops(lines)],
    }


def instructions(sass: str) -> list[tuple[int, str, str]]:
    """Return the place, the name and the rest of each instruction."""
    return [(int(place, 16), name, rest) for place, name, rest in LINE.findall(sass)]


def is_local(opcode: str) -> bool:
    return opcode.startswith(("LDL", "STL"))


def loops(lines: list[tuple[int, str, str]]) -> list[list[str]]:
    """Return the instructions of each innermost loop that multiplies tiles, in the order of the code."""
    places = [place for place, _, _ in lines]
    spans = []
    for index, (place, name, rest) in enumerate(lines):
        target = re.search(r"0x([0-9a-f]+)", rest) if name.startswith("BRA") else None
        if target and int(target[1], 16) < place:
            spans.append((places.index(int(target[1], 16)), index))
    inner = [(a, b) for a, b in spans if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)]
    bodies = [[name for _, name, _ in lines[a : b + 1]] for a, b in sorted(inner)]
    return [body for body in bodies if any("MMA" in name for name in body)]


def compiled(kernel, arguments: list[Any], told: dict[str, Any], capability: int, *, ones: bool) -> tuple[bytes, int]:
    """Compile one kernel for what it is launched with, but for no number except, if `ones`, strides of 1.

    Return it and the shared memory it takes. What is read of no machine code is compiled as far as that is known: `ones` to the first
    form, in which Triton 3.6 forgets them, and a smaller card's to the one that knows the memory.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = {(kernel.arg_names.index(name),): value for name, value in told.items() if name in kernel.arg_names}
    types, aligned = [], []

    def type_of(argument: Any, at: tuple[int, ...]) -> Any:
        if isinstance(argument, tuple):
            inside = [type_of(one, (*at, index)) for index, one in enumerate(argument)]
            return type(argument)(*inside) if hasattr(argument, "_fields") else tuple(inside)
        if argument is None or (ones and isinstance(argument, int) and argument == 1 and len(at) > 1):
            constants[at] = argument
            return "constexpr"
        if isinstance(argument, int | float):
            return "i32" if isinstance(argument, int) else "fp32"
        aligned.append(at)
        return f"*{NAMES[str(argument.dtype)]}"

    types = [type_of(argument, (at,)) for at, argument in enumerate(arguments)]
    signature = dict(zip(kernel.arg_names, types + ["constexpr"] * (len(kernel.arg_names) - len(types)), strict=True))
    source = ASTSource(kernel, signature, constexprs=constants, attrs={at: [["tt.divisibility", 16]] for at in aligned})
    options = {name: value for name, value in told.items() if name.islower()}
    target = GPUTarget("cuda", capability, 32)
    if ones or capability < 90:
        return b"", known_by("ttir" if ones else "llir", source, target, options).get("shared", 0)
    made = triton.compile(source, target=target, options=options)
    return made.asm["cubin"], made.metadata.shared


def known_by(stage: str, source: Any, target: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return what Triton knows of a kernel after a stage; the cache, which is for whole kernels, is left alone."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend, context = make_backend(target), ir.context()
    of_kernel = backend.parse_options({**options, **source.parse_options()})
    for each in (ir, backend):
        each.load_dialects(context)
    code = source.make_ir(target, of_kernel, backend.get_codegen_implementation(of_kernel), backend.get_module_map(), context)
    stages, known = dict[str, Any](), dict(vars(of_kernel))
    backend.add_stages(stages, of_kernel, source.language)
    for name, compiles in stages.items():
        code = compiles(code, known)
        if name == stage:
            break
    return known


def code_of(cubin: bytes) -> bytes:
    """Return the instructions of the one kernel in an ELF file."""
    table, number, of_names = struct.unpack_from("<40xQ12xHH", cubin)
    sections = [struct.unpack_from("<I20xQQ", cubin, table + 64 * index) for index in range(number)]
    names = sections[of_names][1]
    ((at, size),) = [(at, size) for name, at, size in sections if cubin.startswith(b".text.", names + name)]
    return cubin[at : at + size]


def read(cubins: list[bytes]) -> list[dict[str, Any]]:
    """Count what each kernel holds; all are disassembled at once, because the program takes half a second to begin."""
    import triton

    tools, codes, found, at = Path(triton.__file__).parent / "backends/nvidia/bin", [code_of(cubin) for cubin in cubins], [], 0
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(b"".join(codes))
        lines = instructions(printed(tools / "nvdisasm", "--binary", "SM90a", file.name))
        for cubin, code in zip(cubins, codes, strict=True):
            Path(file.name).write_bytes(cubin)
            usage = printed(tools / "cuobjdump", "--dump-resource-usage", file.name)
            found.append(counts(lines[bisect_left(lines, (at,)) : bisect_left(lines, (at + len(code),))], usage))
            at += len(code)
    return found


def printed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def machine_code(name: str, chosen: Any = None) -> tuple[bytes, int]:
    """Compile a kernel that is named as in this file's docstring, with a configuration that is not the course's if given.

    Returns the machine code, and the bytes of shared memory.
    """
    import torch

    from attn_course.gpu import decoding, flash_backward, flash_backward_mask, flash_decode, flash_forward, latent
    from attn_course.gpu.arguments import arguments, rows_of
    from attn_course.gpu.configurations import LARGE, LEAST, MEDIUM, configuration
    from attn_course.gpu.flash_row_terms import Terms

    which, width, kind, dtype, *card = name.split(":")
    capability = int(card[0]) if card else 90
    shared = {90: LARGE, 86: MEDIUM, 75: LEAST}[capability]
    which, rows = which.rstrip("0123456789"), which.lstrip("abcdefghijklmnopqrstuvwxyz_")
    d, is_masked = int(width), kind in ("bool", "float", "ones")
    kept = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    if which == "decode":
        chosen = chosen or decoding.tile_for(int(rows), d, d, kept, masked=is_masked, shared=shared)
    if which == "latent":
        chosen = chosen or latent.tile_for(int(rows), shared)
    chosen = chosen or configuration(which, d, d, kept, masked=is_masked, shared=shared)
    group, rest = {"decode": (8, 0), "latent": (128, 64)}.get(which, (1, 0))
    query, key = (torch.empty(1, heads, 8, d + rest, dtype=kept) for heads in (group, 1))
    mask = torch.empty(1, 1, 8, 8, dtype=torch.bool if kind == "bool" or which == "decode" else kept) if is_masked else None
    high = 0 if kind in ("causal", "capped", "careful", "packed") else None
    starts = torch.empty(3, 2, dtype=torch.int32) if kind.startswith("packed") else None
    softcap = 1.0 if kind == "capped" else None
    call, counts, compiled_for = arguments((query, key, key), (mask, None, None, None, starts, None, high, 1.0, softcap, None))
    matrix, numbers, flags = rows_of(query, starts=starts), torch.empty(1), torch.empty(1, dtype=torch.uint8)
    terms, partial = Terms(matrix, numbers, numbers, numbers), rows_of(numbers.expand(1, 1, 1, 1, 1))
    kernel, before, after = {
        "forward": (flash_forward.flash_forward, [matrix, numbers, numbers, flags], [1]),
        "backward_key_value": (flash_backward.flash_backward_key_value, [terms, matrix, matrix, flags], [1]),
        "backward_query": (flash_backward.flash_backward_query, [terms, matrix, flags], [1]),
        "backward_mask": (flash_backward_mask.flash_backward_mask, [terms, numbers], [1, 1, 1]),
        "decode": (flash_decode.flash_decode, [partial, numbers], [1]),
        "latent": (flash_decode.flash_decode, [partial, numbers], [1]),
    }[which]
    told = {
        "KIND": compiled_for._replace(D_K=d, D_V=d),
        **chosen.launch_options,
        "CAREFUL": kind in ("careful", "ones", "packed_ones"),
        "SUMMED": "none",
        "UNIT": 8,
    }
    return compiled(kernel, [call, *before, *counts, *after], {**told, "REST": rest}, capability, ones=kind.endswith("ones"))


def main(names: list[str]) -> None:
    """Print a line for each name; of strides of 1 and of a smaller card's configuration its shared memory alone."""
    made = {name: machine_code(name) for name in names}
    of_hopper = [name for name in names if made[name][0]]
    for name, found in zip(of_hopper, read([made[name][0] for name in of_hopper]), strict=True):
        print(json.dumps({"name": name, **found}))
    for name in made.keys() - set(of_hopper):
        print(json.dumps({"name": name, "shared_bytes": made[name][1]}))


if __name__ == "__main__":
    main(sys.argv[1:])
