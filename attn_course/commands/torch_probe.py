"""What PyTorch and Triton can do here, found out in a process of its own: a broken build may not end `attn-course doctor`."""

import json
import platform
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def probe() -> dict[str, Any]:
    """Multiply two small matrices on each device there is.

    Returns plain data: `torch` (version), `product_is_right`, `cuda` (what torch was built for, None for a CPU build), `gpus` (a
    list of name, memory_bytes, product_is_right), `triton` (version or None).
    """
    import torch

    found: dict[str, Any] = {"torch": str(torch.__version__), "product_is_right": _multiplies(torch, "cpu"), "cuda": torch.version.cuda}
    found["gpus"] = [
        {
            "name": torch.cuda.get_device_name(index),
            "memory_bytes": torch.cuda.get_device_properties(index).total_memory,
            "product_is_right": _multiplies(torch, f"cuda:{index}"),
        }
        for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    ]
    found["triton"] = _triton_version()
    return found


def _multiplies(torch: Any, device: str) -> bool:
    """Return whether a product of small whole numbers is exact on the device."""
    left = torch.arange(35.0, device=device).reshape(5, 7)
    right = torch.arange(21.0, device=device).reshape(7, 3)
    row, column = [float(k) for k in range(7)], [float(3 * k) for k in range(7)]
    expected = sum(a * b for a, b in zip(row, column, strict=True))
    return float((left @ right)[0, 0]) == expected


def _triton_version() -> str | None:
    """Return the version of Triton, None if it is not installed for this platform."""
    if platform.system() != "Linux" or find_spec("triton") is None:
        return None
    return str(import_module("triton").__version__)


if __name__ == "__main__":
    json.dump(probe(), sys.stdout)
