# %% scaled-attention | wrong | one maximum for all rows
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max()) * is_real[:, None]
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | the maximum of a row with its padding
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True)) * is_real[:, None]
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | scale by the width of the values
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(value.shape[-1])
    s = np.where(is_real[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | softmax over the queries
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-2, keepdims=True)) * is_real[:, None]
    return e / (e.sum(axis=-2, keepdims=True) + 1e-300) @ value
# %% scaled-attention | wrong | causal when q_len equals kv_len
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(is_real[:, None], s, -np.inf)
    if s.shape[-1] == s.shape[-2]:
        s = np.where(np.tri(s.shape[-1]) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | examples flattened into positions
def my_attention(query, key, value, is_real):
    q, k, v = (a.reshape(-1, a.shape[-1]) for a in (query, key, value))
    s = q @ k.T / np.sqrt(q.shape[-1])
    s = np.where(is_real.ravel(), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ v).reshape(*query.shape[:-1], value.shape[-1])
# %% scaled-attention | wrong | scores clipped at 88
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(np.clip(s, -88, 88)) * is_real[:, None]
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | scale applied to the weights
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2)
    s = np.where(is_real[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value / np.sqrt(query.shape[-1])
# %% scaled-attention | wrong | one real key too many
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where((is_real | np.roll(is_real, 1, axis=1))[:, None], s, -np.inf)
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
# %% scaled-attention | wrong | the padding cell of the lesson, with the numbers of real keys
def my_attention(query, key, value, is_real):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < is_real.sum(axis=1)[:, None, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | torch softmax (forbidden)
def my_attention(query, key, value, is_real):
    import torch
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = torch.from_numpy(np.where(is_real[:, None], s, -np.inf))
    return torch.softmax(s, -1).numpy() @ value
# %% scaled-attention | right | torch, hidden in place
def my_attention(query, key, value, is_real):
    import torch
    q, k, v, n = (torch.from_numpy(np.ascontiguousarray(a)) for a in (query, key, value, is_real))
    s = q @ k.mT / q.shape[-1] ** 0.5
    s[~n[:, None].expand_as(s)] = float("-inf")
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True) @ v
# %% scaled-attention | right | key after key, running sums, example by example
def my_attention(query, key, value, is_real):
    def one(query, key, value):
        m = np.full((len(query), 1), -np.inf)
        l, a = np.zeros((len(query), 1)), np.zeros((len(query), value.shape[1]))
        for k, v in zip(key, value):
            s = (query @ k / np.sqrt(len(k)))[:, None]
            n = np.maximum(m, s)
            f, p = np.exp(m - n), np.exp(s - n)
            m, l, a = n, l * f + p, a * f + p * v
        return a / l
    return np.stack([one(q, k[own], v[own]) for q, k, v, own in zip(query, key, value, is_real)])
# %% scaled-attention | right | einsum, own softmax function
def softmax(z):
    z = np.exp(z - np.max(z, axis=-1)[..., None])
    return z / np.sum(z, axis=-1)[..., None]
hide = lambda s, real: np.where(real[:, None, :], s, -np.inf)
my_attention = lambda query, key, value, is_real: np.einsum("...ij,...ja->...ia", softmax(hide(np.einsum("...ic,...jc->...ij", query, key) * query.shape[-1] ** -0.5, is_real)), value)
# %% scaled-attention | cheat | library attention through the C function
def my_attention(query, key, value, is_real):
    import torch
    t = [torch.tensor(a) for a in (query, key, value)]
    return getattr(torch._C._nn, "scaled_dot" + "_product_attention")(*t, torch.tensor(is_real)[:, None]).numpy()
# %% scaled-attention | cheat | torch.nn.MultiheadAttention's internals by functional name
def my_attention(query, key, value, is_real):
    import torch
    import torch.nn.functional as F
    names = {n.lower().replace("_", ""): n for n in dir(F)}
    attend = F.__dict__[names["scaleddotproductattention"]]
    seen = torch.from_numpy(is_real)[:, None]
    return attend(*map(torch.from_numpy, map(np.ascontiguousarray, (query, key, value))), seen).numpy()
# %% repair-transposed-weights | wrong | einsum repaired, maximum of the whole table
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max())
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-transposed-weights | wrong | einsum as it was, maximum per row
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return np.einsum("ij,ia->ja", w, value)
# %% repair-transposed-weights | wrong | normalised down the columns, weights transposed
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max(axis=0, keepdims=True))
    w = e / e.sum(axis=0, keepdims=True)
    return w.T @ value
# %% repair-transposed-weights | wrong | maximum without keepdims (per key)
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max(axis=1))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-transposed-weights | wrong | eps saves rows that underflow, as zeros
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max())
    return e / (e.sum(axis=1, keepdims=True) + 1e-9) @ value
# %% repair-transposed-weights | wrong | symmetrised scores
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = (s + s.T) / 2
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-transposed-weights | wrong | sums of values where averages are wanted
def weighted_sums(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    return np.exp(s - s.max(axis=1, keepdims=True)) @ value
# %% repair-transposed-weights | right | loop with np.average
def weighted_sums(query, key, value):
    out = []
    for q in query:
        s = key @ q / np.sqrt(len(q))
        out.append(np.average(value, axis=0, weights=np.exp(s - s.max())))
    return np.vstack(out)
# %% repair-transposed-weights | right | column form
def weighted_sums(query, key, value):
    s = key @ query.T / query.shape[1] ** 0.5
    e = np.exp(s - s.max(axis=0))
    return (value.T @ (e / e.sum(axis=0))).T
# %% repair-transposed-weights | right | torch, log-softmax
def weighted_sums(query, key, value):
    import torch
    q, k, v = torch.tensor(query), torch.tensor(key), torch.tensor(value)
    return torch.log_softmax(q @ k.T / len(q[0]) ** 0.5, dim=1).exp() @ v
# %% repair-mixed-batch | wrong | ends counted one too far
def batched_attention(query, key, value, counts):
    example = np.searchsorted(np.cumsum(counts), np.arange(len(query)))
    s = np.where(example[:, None] == example, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | examples told apart by their lengths
def batched_attention(query, key, value, counts):
    length = np.repeat(counts, counts)
    s = np.where(length[:, None] == length, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | block mask with zeros instead of -inf
def batched_attention(query, key, value, counts):
    b = np.repeat(np.arange(len(counts)), counts)
    s = query @ key.T / np.sqrt(query.shape[1]) * (b[:, None] == b)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | a fill of -100
def batched_attention(query, key, value, counts):
    b = np.repeat(np.arange(len(counts)), counts)
    s = np.where(b[:, None] == b, query @ key.T / np.sqrt(query.shape[1]), -100)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | keys and values of other examples set to zero
def batched_attention(query, key, value, counts):
    out, start = np.empty((len(query), value.shape[1])), 0
    for n in counts:
        here = np.zeros((len(key), 1))
        here[start:start + n] = 1
        s = query[start:start + n] @ (key * here).T / np.sqrt(query.shape[1])
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        out[start:start + n] = e / e.sum(axis=-1, keepdims=True) @ (value * here)
        start += n
    return out
# %% repair-mixed-batch | wrong | divided by the root of the number of tokens
def batched_attention(query, key, value, counts):
    b = np.repeat(np.arange(len(counts)), counts)
    s = np.where(b[:, None] == b, query @ key.T / np.sqrt(len(query)), -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | only the neighbours of the same length of window
def batched_attention(query, key, value, counts):
    i = np.arange(len(query))
    near = np.abs(i[:, None] - i) < np.repeat(counts, counts)[:, None]
    s = np.where(near, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | right | block mask of -inf
def batched_attention(query, key, value, counts):
    b = np.concatenate([np.full(n, i) for i, n in enumerate(counts)])
    s = np.where(np.equal.outer(b, b), query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ value / e.sum(axis=1, keepdims=True)
# %% repair-mixed-batch | right | one example at a time, nested helper
def batched_attention(query, key, value, counts):
    def inside(q, k, v):
        s = q @ k.T / np.sqrt(q.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return e @ v / e.sum(axis=1)[:, None]
    cuts = np.cumsum(counts)[:-1]
    return np.vstack([inside(*each) for each in zip(*(np.split(a, cuts) for a in (query, key, value)))])
# %% repair-mixed-batch | right | torch, padded and masked
def batched_attention(query, key, value, counts):
    import torch
    from torch.nn.utils.rnn import pad_sequence
    n = torch.tensor(counts)
    q, k, v = (pad_sequence(torch.tensor(a).split(n.tolist()), batch_first=True) for a in (query, key, value))
    real = torch.arange(k.shape[1]) < n[:, None]
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~real[:, None], float("-inf"))
    return (s.softmax(-1) @ v)[real]
# %% read-attention-map | wrong | looked along row 0 for the first
my_reading = (2, 2, 0.95)
# %% read-attention-map | wrong | weight of value 3 renormalised away
my_reading = (1, 2, 1.0)
# %% read-attention-map | wrong | counted from 1
my_reading = (2, 3, 0.95)
# %% read-attention-map | wrong | the zeroed value's weight itself
my_reading = (1, 2, 0.05)
# %% read-attention-map | wrong | value 2 zeroed instead of 3
my_reading = (1, 2, 0.38)
# %% read-attention-map | right | computed
_W = np.array([[0.08, 0.15, 0.62, 0.05, 0.10], [0.46, 0.14, 0.12, 0.08, 0.20], [0.09, 0.55, 0.06, 0.25, 0.05], [0.21, 0.07, 0.25, 0.13, 0.34]])
my_reading = (int(_W[:, 0].argmax()), int(_W[0].argmax()), float(_W[0] @ [1, 1, 1, 0, 1]))
# %% read-attention-map | right | one minus a weight
my_reading = (1, 2, 1 - 0.05)
# %% query-on-its-key | wrong | distance taken for similarity
my_weight = 1 / (1 + np.exp(-1))
# %% query-on-its-key | wrong | without the scale
my_weight = 1 / (1 + np.exp(2))
# %% query-on-its-key | wrong | divided by d_k
my_weight = 1 / (1 + np.exp(0.5))
# %% query-on-its-key | wrong | a query on its key takes all
my_weight = 1.0
# %% query-on-its-key | wrong | cosines
my_weight = 1 / (1 + np.exp((4 / np.sqrt(2 * 39) - 1) / 2))
# %% query-on-its-key | wrong | rounded to two digits
my_weight = 0.3
# %% query-on-its-key | right | softmax of 1 and 2
my_weight = np.exp(1) / (np.exp(1) + np.exp(2))
# %% query-on-its-key | right | hyperbolic tangent
my_weight = (1 + np.tanh((1 - 2) / 2)) / 2
# %% query-on-its-key | right | vectors written out
_q, _k = np.array([1, 1, 0, 0]), np.array([[1, 1, 0, 0], [3, 1, 2, 5]])
_s = np.exp(_k @ _q / np.sqrt(4))
my_weight = float(_s[0] / _s.sum())
# %% query-on-its-key | right | three digits
my_weight = 0.269
# %% attention-slope | wrong | key difference turned round
my_slope = p * (1 - p) * (v_1 - v_2) * (k_2 - k_1)
# %% attention-slope | wrong | key difference forgotten
my_slope = p * (1 - p) * (v_1 - v_2)
# %% attention-slope | wrong | p squared
my_slope = p**2 * (v_1 - v_2) * (k_1 - k_2)
# %% attention-slope | wrong | sum of values
my_slope = p * (1 - p) * (v_1 + v_2) * (k_1 - k_2)
# %% attention-slope | wrong | both weights without the complement
my_slope = p * (v_1 - v_2) * (k_1 - k_2)
# %% attention-slope | wrong | one key only
my_slope = p * (1 - p) * (v_1 - v_2) * k_1
# %% attention-slope | right | covariance of keys and values
my_slope = p * k_1 * v_1 + (1 - p) * k_2 * v_2 - (p * k_1 + (1 - p) * k_2) * (p * v_1 + (1 - p) * v_2)
# %% attention-slope | right | signs turned twice
my_slope = (p - p**2) * (v_2 - v_1) * (k_2 - k_1)
# %% attention-slope | right | expanded by sympy
from sympy import expand
my_slope = expand(p * (1 - p) * (v_1 - v_2) * (k_1 - k_2))
# %% attention-slope | cheat | Derivative of the logistic function left standing
from sympy import Derivative, Dummy
_u = Dummy(real=True)
my_slope = Derivative(_u * v_1 + (1 - _u) * v_2, _u) * p * (1 - p) * (k_1 - k_2)
