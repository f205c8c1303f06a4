"""What the kernels are compared with: the NumPy reference in float64 on the same rounded inputs."""

from typing import Any

import numpy as np
import torch

from attn_course.reference import attention, attention_backward

GATES = {torch.bfloat16: 4e-3, torch.float16: 5e-4, torch.float32: 1e-6, torch.float64: 1e-13}  # relative Frobenius errors


def wide(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor as float64 (masks of bool stay)."""
    tensor = tensor.detach().cpu()
    return tensor.numpy() if tensor.dtype == torch.bool else tensor.double().numpy()


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
    numpy_options = {name: option.numpy() if isinstance(option, torch.Tensor) else option for name, option in options.items()}
    mask = options.get("mask")
    if mask is not None:
        numpy_options["mask"] = wide(mask)
    output, lse = attention(*arrays, return_lse=True, **numpy_options)
    seen = np.isfinite(lse)
    has_bias = mask is not None and mask.dtype != torch.bool
    gradients = attention_backward(*arrays, wide(d_output), d_lse=np.where(seen, wide(d_lse), 0.0), return_d_mask=has_bias, **numpy_options)
    return [output, np.where(seen, lse, 0.0), *gradients]


def computed(inputs: tuple[torch.Tensor, ...], d_output: torch.Tensor, d_lse: torch.Tensor, options: dict[str, Any]) -> list[torch.Tensor]:
    """Return the same from the kernels."""
    from attn_course.gpu.flash import flash_attention

    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    mask = options.get("mask")
    if mask is not None and mask.dtype != torch.bool:
        leaves.append(mask.detach().clone().requires_grad_())
        options = {**options, "mask": leaves[-1]}
    output, lse = flash_attention(*leaves[:3], return_lse=True, **options)
    lse = lse.where(lse.isfinite(), 0.0)
    torch.autograd.backward([output, lse], [d_output, d_lse])
    return [output, lse, *(leaf.grad for leaf in leaves)]


def errors(inputs: tuple[torch.Tensor, ...], options: dict[str, Any]) -> list[float]:
    """Return the relative errors of output, lse, d_query, d_key, d_value and, with a float mask, d_mask."""
    query, _, value = inputs
    shape = expected_shape(inputs, options)
    generator = torch.Generator().manual_seed(1)
    d_output = torch.randn(*shape, value.shape[-1], generator=generator).to(query)
    d_lse = torch.randn(shape, generator=generator).to(query.device, torch.float64 if query.dtype == torch.float64 else torch.float32)
    found = computed(inputs, d_output, d_lse, options)
    return [relative_error(*pair) for pair in zip(found, expected(inputs, d_output, d_lse, options), strict=True)]


def expected_shape(inputs: tuple[torch.Tensor, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of the log-sum-exp, as the reference sees it."""
    small = [np.zeros(tensor.shape) for tensor in inputs]
    tables = {
        name: np.zeros(option.shape, int) for name, option in options.items() if name == "q_offset" and isinstance(option, torch.Tensor)
    }
    mask = {"mask": np.zeros(options["mask"].shape)} if options.get("mask") is not None else {}
    gqa = {"enable_gqa": True} if options.get("enable_gqa") else {}
    return attention(*small, return_lse=True, is_causal=bool(tables), **tables, **mask, **gqa)[1].shape
