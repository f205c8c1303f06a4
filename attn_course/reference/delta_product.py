"""Several corrections of the state for each position: products of reflections, which a single correction cannot make."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, require_axes
from attn_course.reference.delta import delta_rule_attention


def delta_product_attention(
    query: Float[np.ndarray, "*#batch len d_k"],
    key: Float[np.ndarray, "*#batch_key len n_steps d_k"],
    value: Float[np.ndarray, "*#batch_key len n_steps d_v"],
    beta: Float[np.ndarray, "*#batch_key len n_steps 1"],
    *,
    scale: float = 1.0,
    log_decay: Float[np.ndarray, "*#batch_key len d_decay"] | None = None,
    form: Literal["recurrent", "chunked"] = "recurrent",
    chunk: int = 64,
    initial_state: Float[np.ndarray, "*#batch_state d_k d_v"] | None = None,
    return_state: bool = False,
) -> Any:
    r"""Let the state decay once, correct it with each of the keys of a position in turn, then read it with the query.

    Eq. two-steps-a-token, for any number of steps. It is `delta_rule_attention` on a sequence n_steps times as long, in which only
    the first step of a position decays, and only what is read after its last step is kept.

    `beta`: from 0 to 2, as a rule. With unit keys a step of 2 is a reflection, and two of them are a rotation,
    Eq. two-reflections-rotate.
    `scale`: factor on the output.
    `log_decay`: the exponents, at most 0, of what each position forgets before its first step; None keeps everything.
    `form`: step by step, or chunk by chunk: the same result.
    `chunk`: steps in a chunk, not positions.
    `initial_state`: S before the first position; zero if left out.
    `return_state`: also return the state after the last position.

    Returns `output` (*batch, len, d_v); `state` (*batch, d_k, d_v): only with `return_state`.

    Raises TypeError if an array is not floating; ValueError if shapes do not fit, or as `delta_rule_attention` does.

    Siems et al. (2025), arXiv:2502.10297; with a decay, "gated DeltaProduct". They write the transpose of S.

    >>> turn = np.array([[[1.0, 0.0], [0.6, 0.8]]])  # two mirrors: what they turn, they turn by twice the angle between them
    >>> nothing, twice, start = np.zeros((1, 2, 1)), np.full((1, 2, 1), 2.0), np.array([[1.0], [0.0]])
    >>> delta_product_attention(np.eye(2)[:1], turn, nothing, twice, initial_state=start, return_state=True)[1].ravel().round(2)
    array([-0.28,  0.96])
    """
    length, steps = _checked(query, key, value, beta, log_decay)
    decays = None
    if log_decay is not None:
        decays = np.zeros((*log_decay.shape[:-2], length * steps, log_decay.shape[-1]), log_decay.dtype)
        decays[..., ::steps, :] = log_decay
    flat = (array.reshape(*array.shape[:-3], length * steps, array.shape[-1]) for array in (key, value, beta))
    options: Any = {"scale": scale, "form": form, "chunk": chunk, "initial_state": initial_state, "return_state": return_state}
    result = delta_rule_attention(np.repeat(query, steps, axis=-2), *flat, log_decay=decays, **options)
    output = result[0] if return_state else result
    last = output[..., steps - 1 :: steps, :].copy()
    return (last, result[1]) if return_state else last


def _checked(query: np.ndarray, key: np.ndarray, value: np.ndarray, beta: np.ndarray, log_decay: np.ndarray | None) -> tuple[int, int]:
    """Return len and n_steps, or raise the error that names the wrong argument."""
    given = {} if log_decay is None else {"log_decay": log_decay}
    checked_floats(query=query, key=key, value=value, beta=beta, **given)
    require_axes(2, "(..., len, features)", query=query, **given)
    require_axes(3, "(..., len, n_steps, features)", key=key, value=value, beta=beta)
    length, steps = key.shape[-3:-1]
    if steps == 0:
        raise ValueError("key must have at least one step, the axis before the last; got 0")
    for name, array in {"value": value, "beta": beta}.items():
        if array.shape[-3:-1] != (length, steps):
            raise ValueError(f"{name} and key must share len and n_steps; got {array.shape[-3:-1]} and {(length, steps)}")
    for name, array in {"query": query, **given}.items():
        if array.shape[-2] != length:
            raise ValueError(f"{name} and key must share len; got {array.shape[-2]} and {length}")
    return length, steps
