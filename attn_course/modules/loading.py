"""Weights of other libraries, turned into the state of a `MultiHeadAttention`: matrices to be used as x @ w, heads side by side."""

from torch import Tensor, nn


def torch_weights(module: nn.MultiheadAttention) -> dict[str, Tensor]:
    """Return the weights of torch's module under the names of the course.

    `module`: with one matrix for queries, keys and values (`in_proj_weight`), or with three (where kdim or vdim is
    given).

    Returns `state`: w_query, w_key, w_value, w_output, and the biases if the module has them; copies.

    Raises ValueError if the module does what the layer cannot: `add_bias_kv`, `add_zero_attn`, dropout in training, or
    keys and values of two widths.

    Torch multiplies by W^T, so each of its matrices is transposed here, Eq. attention-of-one-head. Its masks are the
    other way round: True in `attn_mask` and `key_padding_mask` means hide, True in a mask of the course means may
    attend. Pass ``mask=~theirs``.
    """
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError("module must have neither add_bias_kv nor add_zero_attn; got one of them")
    if module.kdim != module.vdim:
        raise ValueError(f"module must take keys and values from one input of one width; got kdim {module.kdim} and vdim {module.vdim}")
    if module.training and module.dropout:
        raise ValueError(f"module must be in eval mode, because the layer has no dropout; got dropout {module.dropout} in training mode")
    theirs = module.state_dict()
    if "in_proj_weight" in theirs:
        matrices = list(theirs["in_proj_weight"].chunk(3))  # (3 d_model, d_model): queries above keys above values
    else:
        matrices = [theirs[f"{letter}_proj_weight"] for letter in "qkv"]
    matrices.append(theirs["out_proj.weight"])
    roles = ("query", "key", "value", "output")
    state = {f"w_{role}": matrix.T.clone() for role, matrix in zip(roles, matrices, strict=True)}
    if "in_proj_bias" in theirs:
        biases = [*theirs["in_proj_bias"].chunk(3), theirs["out_proj.bias"]]
        state |= {f"b_{role}": bias.clone() for role, bias in zip(roles, biases, strict=True)}
    return state


def packed_weights(packed: Tensor, bias: Tensor | None, widths: tuple[int, int, int]) -> dict[str, Tensor]:
    """Cut a packed projection [w_query | w_key | w_value] into its three blocks of columns.

    `packed` (d_in, sum of widths): to be used as x @ packed: c_attn of GPT-2, a Conv1D, as it is; the weight of an
    nn.Linear transposed.

    Returns `state`: w_query, w_key, w_value, and their biases if there is one; copies.

    Raises ValueError if the columns are not the sum of the widths.
    """
    roles = ("query", "key", "value")
    state: dict[str, Tensor] = {}
    for prefix, tensor in {"w": packed, "b": bias}.items():
        if tensor is None:
            continue
        if tensor.shape[-1] != sum(widths):
            name = "packed" if prefix == "w" else "bias"
            raise ValueError(f"{name} must have {' + '.join(map(str, widths))} columns for query, key and value; got {tensor.shape[-1]}")
        state |= {f"{prefix}_{role}": part.detach().clone() for role, part in zip(roles, tensor.split(widths, dim=-1), strict=True)}
    return state
