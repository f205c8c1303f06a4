"""What the kernels are compared with: the NumPy reference in float64 on the same rounded inputs."""

from typing import Any

import numpy as np
import torch

from attn_course import gpu
from attn_course.reference import attention, attention_backward

GATES = {torch.bfloat16: 4e-3, torch.float16: 5e-4, torch.float32: 1e-6, torch.float64: 1e-13}  # relative Frobenius errors


def wide(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()


def relative_error(found: torch.Tensor, wanted: np.ndarray) -> float:
    """Return |found - wanted| / |wanted| in the Frobenius norm; infinity where NaN or shapes differ."""
    if found.shape != wanted.shape:
        return float("inf")
    difference = np.linalg.norm(wide(found) - wanted)
    error = float(difference / max(np.linalg.norm(wanted), 1e-300)) if difference else 0.0
    return error if np.isfinite(error) else float("inf")


def expected(inputs: tuple[torch.Tensor, ...], d_output: torch.Tensor, d_lse: torch.Tensor, options: dict[str, Any]) -> list[np.ndarray]:
    """Return output, lse (0 for a row that sees nothing) and all gradients, from the reference."""
    arrays = [wide(tensor) for tensor in inputs]
    options = {name: wide(option) if isinstance(option, torch.Tensor) else option for name, option in options.items()}
    output, lse = attention(*arrays, return_lse=True, **options)
    seen = np.isfinite(lse)
    has_bias = options.get("mask") is not None and options["mask"].dtype != bool
    gradients = attention_backward(*arrays, wide(d_output), d_lse=np.where(seen, wide(d_lse), 0.0), return_d_mask=has_bias, **options)
    return [output, np.where(seen, lse, 0.0), *gradients]


def errors(inputs: tuple[torch.Tensor, ...], options: dict[str, Any]) -> list[float]:
    """Return the relative errors of output, lse, d_query, d_key, d_value and, with a float mask, d_mask."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    mask = options.get("mask")
    if mask is not None and mask.dtype != torch.bool:
        leaves.append(mask.detach().clone().requires_grad_())
        mask = leaves[-1]
    output, lse = gpu.attention(*leaves[:3], return_lse=True, backend="triton", **{**options, "mask": mask})
    lse = lse.where(lse.isfinite(), 0.0)
    generator = torch.Generator().manual_seed(1)
    upstream = [torch.randn(result.shape, generator=generator).to(result) for result in (output, lse)]
    torch.autograd.backward([output, lse], upstream)
    found = [output, lse, *(leaf.grad for leaf in leaves)]
    return [relative_error(*pair) for pair in zip(found, expected(inputs, *upstream, options), strict=True)]
