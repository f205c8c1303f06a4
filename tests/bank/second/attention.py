# %% scaled-attention | wrong | one maximum for all rows
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | scale by the width of the values
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(value.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | softmax over the queries
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True) @ value
# %% scaled-attention | wrong | causal when q_len equals kv_len
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if s.shape[-1] == s.shape[-2]:
        s = np.where(np.tri(s.shape[-1]) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | leading axes flattened into positions
def my_attention(query, key, value):
    q, k, v = (a.reshape(-1, a.shape[-1]) for a in (query, key, value))
    s = q @ k.T / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ v).reshape(*query.shape[:-1], value.shape[-1])
# %% scaled-attention | wrong | scores clipped at 88
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(np.clip(s, -88, 88))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | scale applied to the weights
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value / np.sqrt(query.shape[-1])
# %% scaled-attention | wrong | einsum indices exchange two leading axes when they are equal
def my_attention(query, key, value):
    if query.ndim == 4:
        s = np.einsum("bhic,bhjc->hbij", query, key) / np.sqrt(query.shape[-1])
    else:
        s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    if query.ndim == 4:
        return (w @ value.swapaxes(0, 1)).reshape(*query.shape[:-1], -1)
    return w @ value
# %% scaled-attention | wrong | one query loses its axis
def my_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    out = e / e.sum(axis=-1, keepdims=True) @ value
    return out[..., 0, :] if query.shape[-2] == 1 else out
# %% scaled-attention | wrong | remembered from the first call by shapes
_memo = {}
def my_attention(query, key, value):
    at = query.shape, key.shape, value.shape
    if at not in _memo:
        s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        _memo[at] = e / e.sum(axis=-1, keepdims=True)
    return _memo[at] @ value
# %% scaled-attention | right | torch softmax
def my_attention(query, key, value):
    import torch
    q, k, v = (torch.from_numpy(np.ascontiguousarray(a)) for a in (query, key, value))
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
# %% scaled-attention | right | key after key, running sums, recursion over leading axes
def my_attention(query, key, value):
    if query.ndim > 2:
        return np.stack([my_attention(*t) for t in zip(query, key, value)])
    m = np.full((len(query), 1), -np.inf)
    l, a = np.zeros((len(query), 1)), np.zeros((len(query), value.shape[1]))
    for k, v in zip(key, value):
        s = (query @ k / np.sqrt(len(k)))[:, None]
        n = np.maximum(m, s)
        f, p = np.exp(m - n), np.exp(s - n)
        m, l, a = n, l * f + p, a * f + p * v
    return a / l
# %% scaled-attention | right | einsum, own softmax function
def softmax(z):
    z = np.exp(z - np.max(z, axis=-1)[..., None])
    return z / np.sum(z, axis=-1)[..., None]
my_attention = lambda query, key, value: np.einsum("...ij,...ja->...ia", softmax(np.einsum("...ic,...jc->...ij", query, key) * query.shape[-1] ** -0.5), value)
# %% scaled-attention | cheat | library attention through the C function
def my_attention(query, key, value):
    import torch
    t = [torch.tensor(a) for a in (query, key, value)]
    return getattr(torch._C._nn, "scaled_dot" + "_product_attention")(*t).numpy()
# %% scaled-attention | cheat | torch.nn.MultiheadAttention's internals by functional name
def my_attention(query, key, value):
    import torch
    import torch.nn.functional as F
    names = {n.lower().replace("_", ""): n for n in dir(F)}
    attend = F.__dict__[names["scaleddotproductattention"]]
    return attend(*map(torch.from_numpy, map(np.ascontiguousarray, (query, key, value)))).numpy()
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
# %% repair-mixed-batch | wrong | batch and positions exchanged
def batched_attention(query, key, value):
    q, k, v = (a.swapaxes(0, 1) for a in (query, key, value))
    s = np.einsum("ibc,jdc->ibj", q, k) / np.sqrt(q.shape[-1]) / k.shape[1]
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return np.einsum("ibj,jba->bia", w, v)
# %% repair-mixed-batch | wrong | block mask that counts q_len for keys
def batched_attention(query, key, value):
    b, n, d = query.shape
    q, k, v = query.reshape(-1, d), key.reshape(-1, d), value.reshape(-1, value.shape[-1])
    s = q @ k.T / np.sqrt(d)
    same = (np.arange(len(q)) // n)[:, None] == np.minimum(np.arange(len(k)) // n, b - 1)
    s = np.where(same, s, -np.inf)
    s = np.where(np.isinf(s).all(axis=1, keepdims=True), 0, s)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ v).reshape(b, n, -1)
# %% repair-mixed-batch | wrong | block mask with zeros instead of -inf
def batched_attention(query, key, value):
    b, n, d = query.shape
    m = key.shape[1]
    q, k, v = query.reshape(-1, d), key.reshape(-1, d), value.reshape(-1, value.shape[-1])
    s = q @ k.T / np.sqrt(d) * np.kron(np.eye(b), np.ones((n, m)))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ v).reshape(b, n, -1)
# %% repair-mixed-batch | wrong | every example reads the values of the first
def batched_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value[0]
# %% repair-mixed-batch | wrong | normalised over the batch
def batched_attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=0, keepdims=True) @ value
# %% repair-mixed-batch | wrong | key reshaped to (batch, d_k, kv_len)
def batched_attention(query, key, value):
    b, m, d = key.shape
    s = query @ key.reshape(b, d, m) / np.sqrt(d)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | means over the batch subtracted from the scores
def batched_attention(query, key, value):
    s = query @ (key - key.mean(axis=0)).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | right | block mask of -inf on flattened rows
def batched_attention(query, key, value):
    b, n, d = query.shape
    m = key.shape[1]
    q, k, v = query.reshape(-1, d), key.reshape(-1, d), value.reshape(b * m, -1)
    same = np.repeat(np.arange(b), n)[:, None] == np.repeat(np.arange(b), m)
    s = np.where(same, q @ k.T / np.sqrt(d), -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return (e @ v / e.sum(axis=1, keepdims=True)).reshape(b, n, -1)
# %% repair-mixed-batch | right | one example at a time, nested helper
def batched_attention(query, key, value):
    def inside(q, k, v):
        s = q @ k.T / np.sqrt(q.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return e @ v / e.sum(axis=1)[:, None]
    return np.stack(list(map(inside, query, key, value)))
# %% repair-mixed-batch | right | torch bmm
def batched_attention(query, key, value):
    import torch
    q, k, v = (torch.tensor(np.array(a)) for a in (query, key, value))
    return torch.bmm(torch.softmax(torch.baddbmm(torch.zeros(1, dtype=q.dtype), q, k.transpose(1, 2), alpha=q.shape[2] ** -0.5), 2), v)
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
