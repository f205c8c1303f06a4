"""Where a token stands, in torch: sinusoids to add to it, or a rotation of its queries and keys."""

from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Layout = Literal["halves", "interleaved"]


def sinusoidal_positions(length: int, d_model: int, *, device: torch.device | None = None) -> Float[Tensor, "length d_model"]:
    r"""Return one row of sines and cosines for each position, Eq. sinusoidal-positions, to be added to the token embeddings.

    `d_model`: number of features; where it is odd, the last sine has no cosine.
    `device`: where the result lives.

    Returns `positions`: sine and cosine interleaved, from the fastest pair to the slowest; convert it to the dtype of
    the embeddings.

    Raises ValueError if `length` is negative, or `d_model` below 1.

    Vaswani et al. (2017), section 3.5, arXiv:1706.03762.

    >>> sinusoidal_positions(2, 4).float()
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if length < 0 or d_model < 1:
        raise ValueError(f"length must be 0 or more and d_model 1 or more; got {length} and {d_model}")
    features = torch.arange(d_model, device=device)
    frequencies = 10_000.0 ** (-2.0 * (features // 2).double() / d_model)
    angles = torch.arange(length, device=device)[:, None] * frequencies
    return torch.where(features % 2 == 0, angles.sin(), angles.cos())


def rope(
    x: Float[Tensor, "*#batch len d_k"], positions: Shaped[Tensor, "*#batch len"], theta: float = 10_000.0, layout: Layout = "halves"
) -> Float[Tensor, "*batch len d_k"]:
    r"""Rotate each pair of features by an angle that grows with the position, R_t of Eq. rotations-compose.

    .. math:: \begin{pmatrix} a' \\ b' \end{pmatrix} =
              \begin{pmatrix} \cos t\,\omega_i & -\sin t\,\omega_i \\ \sin t\,\omega_i & \cos t\,\omega_i \end{pmatrix}
              \begin{pmatrix} a \\ b \end{pmatrix}, \qquad \omega_i = \theta^{-2i/d_k}

    `x`: queries or keys, after their projection; d_k is even.
    `positions`: position t of each row; any numbers, in any order. With a head axis in `x`, pass ``positions[..., None,
    :]``.
    `theta`: base of the frequencies.
    `layout`: which features form pair i: i and i + d_k / 2, or 2 i and 2 i + 1.

    Returns `rotated`: same dtype as `x`; angles are computed in float64.

    Raises ValueError if d_k is odd, there is not one position for each row, `theta` is not positive, or `layout` is
    unknown.

    Su et al. (2021), section 3.2.2, Eqs. 14 to 16, arXiv:2104.09864 (interleaved).

    >>> rope(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    tensor([[0.5403, 0.8415]])
    """
    if x.shape[-1] % 2:
        raise ValueError(f"x must have an even number of features, the last axis; got {x.shape[-1]}")
    if positions.ndim < 1 or positions.shape[-1] != x.shape[-2]:
        wanted = f"the axes (..., len) with len = {x.shape[-2]}, one for each row of x"
        raise ValueError(f"positions must have {wanted}; got {tuple(positions.shape)}")
    if theta <= 0.0:
        raise ValueError(f"theta must be positive; got {theta}")
    if layout not in ("halves", "interleaved"):
        raise ValueError(f'layout must be "halves" or "interleaved"; got {layout!r}')
    n_pairs = x.shape[-1] // 2
    frequencies = theta ** (-2.0 * torch.arange(n_pairs, device=x.device).double() / x.shape[-1])
    angles = positions[..., None] * frequencies
    wide = torch.promote_types(x.dtype, torch.float32)
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)

    pair_axis = -2 if layout == "halves" else -1
    first, second = x.to(wide).unflatten(-1, (2, n_pairs) if layout == "halves" else (n_pairs, 2)).unbind(pair_axis)
    rotated = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=pair_axis)
    return rotated.flatten(-2).to(x.dtype)  # (..., 2, n_pairs) or (..., n_pairs, 2), then flatten
