"""What the two sides of a warm process agree on: names, what is imported, and which environment variables must be the same."""

import sys
from collections.abc import Iterable, Mapping

SOCKET_VARIABLE = "ATTN_COURSE_WARM_KERNELS"  # the path of the socket; without it kernels are plain
OFF = "off"
PROVISIONER = "attn-course-warm"
PROVISIONER_CLASS = "attn_course.grading.warm_kernels.provisioner:WarmProvisioner"

# What a plain kernel imports while it starts, or with its first cell.
KERNEL_IMPORTS = (
    *("ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.debugger", "tornado.platform.asyncio", "sqlite3", "psutil"),
    *("IPython.core.completerlib", "IPython.core.debugger", "IPython.core.oinspect", "IPython.extensions.storemagic"),
)

# What notebooks import. Not matplotlib.pyplot: it looks for IPython when it is imported.
IMPORTS = (
    *("numpy", "numpy.f2py", "numpy.fft", "numpy.polynomial", "numpy.rec", "numpy.char", "numpy.strings", "numpy.testing"),
    *("torch", "torch.nn", "torch.testing", "torch.fx.experimental.symbolic_shapes", "jaxtyping", "importlib.resources.readers"),
    *("sympy", "sympy.tensor.tensor", "sympy.codegen.ast", "sympy.physics.units.systems.si"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.style", "matplotlib.patheffects", "contourpy"),
)

# Of the course, what is the same in every environment (Triton's kernels are not). A kernel forgets it if a file has changed since.
COURSE_IMPORTS = ("attn_course.reference", "attn_course.tasks", "attn_course.figures", "attn_course.equations")

# Read when Python or a library starts, so they cannot be changed in a fork. MPLBACKEND can be.
_FIXED = ("HOME", "LANG", "LANGUAGE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_FIXED_PREFIXES = (
    *("PYTHON", "LD_", "DYLD_", "LC_", "GLIBC_", "MALLOC_"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "NUMEXPR_"),
    *("NPY_", "NUMPY_", "TORCH", "PYTORCH_", "ATEN_", "CUDA", "SYMPY_", "JAXTYPING_", "MPL", "MATPLOTLIB"),
)
_FREE = ("MPLBACKEND", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")  # `forked` applies them

PLAIN = "attn-course: starting plain kernels, which is slower: "
_told: set[str] = set()


def tell_once(reason: str) -> None:
    """Say on stderr, once for each reason, why kernels are plain."""
    if reason not in _told:
        _told.add(reason)
        print(PLAIN + reason, file=sys.stderr)


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return the variables that must be the same in a warm process and in a kernel forked from it, and are not."""
    return sorted(name for name in {*ours, *theirs} if _is_fixed(name) and ours.get(name) != theirs.get(name))


def _is_fixed(name: str) -> bool:
    return name not in _FREE and (name in _FIXED or name.startswith(_FIXED_PREFIXES))


def shadows(modules: Iterable[str], files: Iterable[str]) -> list[str]:
    """Return those of the imported modules that a plain kernel would have found among these files instead."""
    stems = {name.partition(".")[0] for name in files if "." not in name or name.endswith((".py", ".pyc", ".so"))}
    return sorted(stems.intersection(modules))
