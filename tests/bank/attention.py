# %% scaled-attention | wrong | causal when q_len equals kv_len
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(is_real[:, None], s, -np.inf)
    if s.shape[-1] == s.shape[-2]:
        s = np.where(np.tri(s.shape[-1]) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | one query loses its axis
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(is_real[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    out = e / e.sum(axis=-1, keepdims=True) @ value
    return out[..., 0, :] if query.shape[-2] == 1 else out
# %% scaled-attention | wrong | remembered from the first call by shapes
_memo = {}
def my_attention(query, key, value, is_real):
    at = query.shape, key.shape, value.shape, tuple(is_real.sum(1))
    if at not in _memo:
        s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
        s = np.where(is_real[:, None], s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        _memo[at] = e / e.sum(axis=-1, keepdims=True)
    return _memo[at] @ value
# %% scaled-attention | wrong | torch softmax (forbidden)
def my_attention(query, key, value, is_real):
    import torch
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = torch.from_numpy(np.where(is_real[:, None], s, -np.inf))
    return torch.softmax(s, -1).numpy() @ value
# %% scaled-attention | cheat | torch.nn.MultiheadAttention's internals by functional name
def my_attention(query, key, value, is_real):
    import torch
    import torch.nn.functional as F
    names = {n.lower().replace("_", ""): n for n in dir(F)}
    attend = F.__dict__[names["scaleddotproductattention"]]
    seen = torch.from_numpy(is_real)[:, None]
    return attend(*map(torch.from_numpy, map(np.ascontiguousarray, (query, key, value))), seen).numpy()
# %% repair-transposed-weights | wrong | eps saves rows that underflow, as zeros
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max())
    return e / (e.sum(axis=1, keepdims=True) + 1e-9) @ value
# %% repair-mixed-batch | wrong | examples told apart by their lengths
def batched_attention(query, key, value, counts):
    length = np.repeat(counts, counts)
    s = np.where(length[:, None] == length, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% query-on-its-key | wrong | rounded to two digits
my_weight = 0.3
# %% attention-slope | right | expanded by sympy
from sympy import expand
my_slope = expand(p * (1 - p) * (v_1 - v_2) * (k_1 - k_2))
# %% attention-slope | cheat | Derivative of the logistic function left standing
from sympy import Derivative, Dummy
_u = Dummy(real=True)
my_slope = Derivative(_u * v_1 + (1 - _u) * v_2, _u) * p * (1 - p) * (k_1 - k_2)
