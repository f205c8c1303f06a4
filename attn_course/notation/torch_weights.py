"""Weights of the course as torch's nn.MultiheadAttention wants them: it computes x W^T, with query, key and value packed."""

from collections.abc import Mapping

import numpy as np

from attn_course.notation.checks import require_array

ROLES = ("query", "key", "value")
NAMES = tuple(f"{letter}_{role}" for letter in "wb" for role in (*ROLES, "output"))


def to_torch_weights(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    r"""Return the state_dict of torch's nn.MultiheadAttention for weights of the course.

    .. math:: y = x W + b \;\text{ here}, \qquad y = x W^\top + b \;\text{ there}

    `weights` holds w_query (E, E), w_key (kdim, E), w_value (vdim, E), w_output (E, E), and b_query, b_key, b_value, b_output
    (E,), all or none: heads are blocks of columns here and of rows there. The state is packed into in_proj_weight (3 E, E)
    if kdim = vdim = E, else in three parts, as the module keeps them. The other way: `MultiHeadAttention.from_torch` in modules.

    Raises TypeError for what is no mapping, or an entry that is no floating ndarray; ValueError for an entry that is missing,
    unknown, or of a shape the module cannot have: all its heads together have as many features as its output.

    >>> weights = {name: np.array([[1.0]]) for name in ("w_query", "w_key", "w_value", "w_output")}
    >>> {name: array.shape for name, array in to_torch_weights(weights).items()}
    {'in_proj_weight': (3, 1), 'out_proj.weight': (1, 1)}
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must be a mapping of names to arrays; got {type(weights).__name__}")
    if unknown := [name for name in weights if name not in NAMES]:
        raise ValueError(f"weights may hold {', '.join(NAMES)}; got {', '.join(map(repr, unknown))}")
    if missing := [name for name in NAMES[:4] if name not in weights]:
        raise ValueError(f"weights must hold {missing[0]}; got {', '.join(weights) or 'nothing'}")
    biases = [name for name in NAMES[4:] if name in weights]
    if len(biases) not in (0, 4):
        raise ValueError(f"weights must hold all four biases or none; got {', '.join(biases)}")
    for name, array in weights.items():
        if not np.issubdtype(require_array(f"weights['{name}']", array, 1, "(rows, columns)").dtype, np.floating):
            raise TypeError(f"weights['{name}'] must be an ndarray of floats; got {array.dtype} ndarray")
    embed_dim = weights["w_query"].shape[0]
    for name, array in weights.items():
        wanted: tuple[int, ...] = (embed_dim,)
        if name.startswith("w_"):
            wanted = (array.shape[0] if name in ("w_key", "w_value") else embed_dim, embed_dim)
        if array.shape != wanted:
            raise ValueError(f"weights['{name}'] must have shape {wanted}, w_query having {embed_dim} rows; got {array.shape}")
    parts = {role: weights[f"w_{role}"].T.copy() for role in ROLES}
    if all(part.shape == (embed_dim, embed_dim) for part in parts.values()):
        state = {"in_proj_weight": np.concatenate(list(parts.values()))}
    else:
        state = {f"{role[0]}_proj_weight": part for role, part in parts.items()}
    state["out_proj.weight"] = weights["w_output"].T.copy()
    if biases:
        state["in_proj_bias"] = np.concatenate([weights[f"b_{role}"] for role in ROLES])
        state["out_proj.bias"] = weights["b_output"].copy()
    return state
