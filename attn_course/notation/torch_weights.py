"""The weights of torch's nn.MultiheadAttention, which computes x W^T with query, key and value packed, and those of the course."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attn_course.notation.checks import require_floats, require_matrix, require_shape

ROLES = ("query", "key", "value")
SEPARATE = {role: f"{role[0]}_proj_weight" for role in ROLES}
KNOWN = ("in_proj_weight", *SEPARATE.values(), "in_proj_bias", "out_proj.weight", "out_proj.bias")
OURS = (*(f"w_{role}" for role in (*ROLES, "output")), *(f"b_{role}" for role in (*ROLES, "output")))


def from_torch_weights(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    r"""Return the keywords of multi-head attention for the weights of torch's nn.MultiheadAttention.

    .. math:: y = x W^\top + b \;\text{ there}, \qquad y = x W + b \;\text{ here}

    Parameters
    ----------
    state : mapping of str to ndarray of float
        The module's state_dict as arrays: in_proj_weight (3 E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim) and
        v_proj_weight (E, vdim) where kdim or vdim differ from E = embed_dim; out_proj.weight (E, E); and, for a module with
        biases, in_proj_bias (3 E) and out_proj.bias (E).

    Returns
    -------
    weights : dict of str to ndarray
        With w_query (E, E), w_key (kdim, E), w_value (vdim, E), w_output (E, E), and, if there are biases, b_query, b_key, b_value and
        b_output (E).

    Raises
    ------
    TypeError
        If an entry is not a floating ndarray.
    ValueError
        If an entry is missing, unknown or of the wrong shape; bias_k and bias_v, a key and a value that belong to no token, have no
        counterpart.

    Notes
    -----
    Heads are blocks of columns here and of rows there, in the same order.

    Examples
    --------
    >>> state = {"in_proj_weight": np.array([[1.0], [2.0], [3.0]]), "out_proj.weight": np.array([[4.0]])}
    >>> {name: array.item() for name, array in from_torch_weights(state).items()}
    {'w_query': 1.0, 'w_key': 2.0, 'w_value': 3.0, 'w_output': 4.0}
    """
    _require_known("state", state, KNOWN)
    output = require_matrix("state['out_proj.weight']", _entry(state, "out_proj.weight"))
    embed_dim = output.shape[0]
    require_shape("state['out_proj.weight']", output, (embed_dim, embed_dim), "(embed_dim, embed_dim)")
    if ("in_proj_weight" in state) == any(name in state for name in SEPARATE.values()):
        raise ValueError(f"state must hold either in_proj_weight or {', '.join(SEPARATE.values())}; got {', '.join(state)}")
    if "in_proj_weight" in state:
        packed = require_matrix("state['in_proj_weight']", state["in_proj_weight"])
        require_shape("state['in_proj_weight']", packed, (3 * embed_dim, embed_dim), "(3 embed_dim, embed_dim)")
        parts = dict(zip(ROLES, np.split(packed, 3), strict=True))
    else:
        parts = {role: require_matrix(f"state['{name}']", _entry(state, name)) for role, name in SEPARATE.items()}
        for role, part in parts.items():
            wanted = (embed_dim, embed_dim if role == "query" else part.shape[1])
            require_shape(f"state['{SEPARATE[role]}']", part, wanted, f"(embed_dim, features of the {role})")
    weights = {f"w_{role}": part.T.copy() for role, part in {**parts, "output": output}.items()}
    return weights | _biases_from_torch(state, embed_dim)


def to_torch_weights(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    r"""Return the state_dict of torch's nn.MultiheadAttention for weights of the course; undoes `from_torch_weights`.

    Parameters
    ----------
    weights : mapping of str to ndarray of float
        Holds w_query (E, E), w_key (kdim, E), w_value (vdim, E), w_output (E, E); with b_query, b_key, b_value, b_output (E), all or none.

    Returns
    -------
    state : dict of str to ndarray
        Packed into in_proj_weight if kdim = vdim = E, else in three parts, as the module keeps them.

    Raises
    ------
    TypeError
        If an entry is not a floating ndarray.
    ValueError
        If an entry is missing or unknown, or of a shape the module cannot have: all its heads together have as
        many features as its output.

    Examples
    --------
    >>> weights = {name: np.array([[1.0]]) for name in ("w_query", "w_key", "w_value", "w_output")}
    >>> {name: array.shape for name, array in to_torch_weights(weights).items()}
    {'in_proj_weight': (3, 1), 'out_proj.weight': (1, 1)}
    """
    _require_known("weights", weights, OURS)
    parts = {role: require_matrix(f"weights['w_{role}']", _entry(weights, f"w_{role}", "weights")) for role in (*ROLES, "output")}
    embed_dim = parts["query"].shape[0]
    for role, part in parts.items():
        rows = part.shape[0] if role in ("key", "value") else embed_dim
        require_shape(f"weights['w_{role}']", part, (rows, embed_dim), f"with as many columns as w_query has rows, {embed_dim}")
    inputs = {role: parts[role].T for role in ROLES}
    if all(part.shape == (embed_dim, embed_dim) for part in inputs.values()):
        state = {"in_proj_weight": np.concatenate(list(inputs.values()))}
    else:
        state = {SEPARATE[role]: part.copy() for role, part in inputs.items()}
    state["out_proj.weight"] = parts["output"].T.copy()
    biases = [name for name in OURS if name.startswith("b_") and name in weights]
    if biases and len(biases) != 4:
        raise ValueError(f"weights must hold all four biases or none; got {', '.join(biases)}")
    if biases:
        for name in biases:
            require_floats(f"weights['{name}']", weights[name], 1, "(embed_dim,)")
            require_shape(f"weights['{name}']", weights[name], (embed_dim,), "(embed_dim,)")
        state["in_proj_bias"] = np.concatenate([weights[f"b_{role}"] for role in ROLES])
        state["out_proj.bias"] = weights["b_output"].copy()
    return state


def _biases_from_torch(state: Mapping[str, np.ndarray], embed_dim: int) -> dict[str, np.ndarray]:
    if ("in_proj_bias" in state) != ("out_proj.bias" in state):
        raise ValueError(f"state must hold both in_proj_bias and out_proj.bias or neither; got {', '.join(state)}")
    if "in_proj_bias" not in state:
        return {}
    for name, length in (("in_proj_bias", 3 * embed_dim), ("out_proj.bias", embed_dim)):
        require_floats(f"state['{name}']", state[name], 1, f"({length},)")
        require_shape(f"state['{name}']", state[name], (length,), "one for each output feature")
    parts = dict(zip(ROLES, np.split(state["in_proj_bias"], 3), strict=True))
    return {f"b_{role}": part.copy() for role, part in {**parts, "output": state["out_proj.bias"]}.items()}


def _require_known(name: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a mapping of names to arrays; got {type(given).__name__}")
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(f"{name} may hold {', '.join(known)}; got {', '.join(map(repr, unknown))}")


def _entry(given: Mapping[str, np.ndarray], key: str, name: str = "state") -> np.ndarray:
    if key not in given:
        raise ValueError(f"{name} must hold {key}; got {', '.join(given) or 'nothing'}")
    return given[key]
