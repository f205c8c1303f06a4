"""Attention over a sequence that is spread over devices, which are the entries of a list here."""

import numpy as np
from jaxtyping import Float, Int

from attn_course.reference.arrays import checked_floats, narrowed, require_axes, require_flags, require_integer
from attn_course.reference.attention import attention
from attn_course.reference.tiling import merge_partial_attention

ORDERS = ("contiguous", "striped", "zigzag")


def device_places(length: int, n_devices: int, order: str = "zigzag") -> list[Int[np.ndarray, " held"]]:
    """Return the positions that each device holds, in ascending order.

    Under a causal mask the order decides how long devices wait: Eqs. contiguous-causal-time, striped-causal-time and zigzag-causal-pairs.

    `length`: of the whole sequence; need not be a multiple of anything.
    `order`: "contiguous", one run of positions for each device; "striped", every n-th position; "zigzag", of 2 n runs the r-th from the
    front and the r-th from the back.

    Raises TypeError or ValueError if a number is no integer of 0 or more (devices: 1 or more), or the order is unknown.

    Brandon et al. (2023), "Striped attention", arXiv:2311.09431.

    >>> device_places(8, 2)
    [array([0, 1, 6, 7]), array([2, 3, 4, 5])]
    """
    every = np.arange(require_integer("length", length, 0))
    n = require_integer("n_devices", n_devices, 1)
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}; got {order!r}")
    if order == "striped":
        return [every[rank::n] for rank in range(n)]
    if order == "contiguous":
        return np.array_split(every, n)
    runs = np.array_split(every, 2 * n)
    return [np.concatenate([runs[rank], runs[-1 - rank]]) for rank in range(n)]


def ring_attention(
    query: Float[np.ndarray, "*#batch len d_k"],
    key: Float[np.ndarray, "*#batch_key len d_k"],
    value: Float[np.ndarray, "*#batch_key len d_v"],
    *,
    n_devices: int,
    order: str = "zigzag",
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Float[np.ndarray, "*batch len d_v"]:
    r"""Return what `attention` returns: each device keeps its queries, and blocks of keys and values go around.

    .. math:: z' = z + \frac{z_c - z}{1 + e^{L - L_c}}, \qquad L' = \ln(e^L + e^{L_c})

    After each step a device merges what its queries found in the block that it holds, Eq. ring-update, and hands that block to the next
    device; after n - 1 of these it has seen all. `order`: that of `device_places`, which the result does not depend on.
    `is_causal`, `scale`, `enable_gqa`: those of `attention`.

    Raises TypeError or ValueError as `attention` and `device_places` do, and ValueError if query and key differ in their length.

    Liu et al. (2023), arXiv:2310.01889.

    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> bool(np.allclose(ring_attention(x, x, x, n_devices=2, is_causal=True), attention(x, x, x, is_causal=True)))
    True
    """
    require_flags(is_causal=is_causal)
    wide = checked_floats(query=query, key=key, value=value)
    require_axes(2, "(..., len, features)", query=query, key=key, value=value)
    lengths = [part.shape[-2] for part in (query, key, value)]
    if len({*lengths}) > 1:
        raise ValueError(f"query, key and value must be of one length; got {lengths}")
    places = device_places(query.shape[-2], n_devices, order)
    passing = [(held, *(part[..., held, :] for part in wide[1:])) for held in places]
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for step in range(n_devices):
        for rank, held in enumerate(places):
            others, keys, values = passing[rank]
            mask = others <= held[:, None] if is_causal else None
            part = attention(wide[0][..., held, :], keys, values, mask=mask, scale=scale, enable_gqa=enable_gqa, return_lse=True)
            if step == 0:
                found.append(part)
            else:
                outputs, lses = zip(found[rank], part, strict=True)
                found[rank] = merge_partial_attention(outputs, lses)
        passing = [passing[-1], *passing[:-1]]
    home = np.argsort(np.concatenate(places))
    return narrowed(np.concatenate([output for output, _ in found], axis=-2)[..., home, :], np.result_type(query, key, value))
