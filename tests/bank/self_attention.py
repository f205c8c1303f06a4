# %% self-attention | wrong | one maximum for the whole batch
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max())
    return e / (e.sum(axis=-1, keepdims=True) + 1e-12) @ (x @ w_value)
# %% self-attention | wrong | a residual added when the widths allow it
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    z = e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
    return z + x if z.shape == x.shape else z
# %% self-attention | wrong | one leading axis only: several are averaged into blocks by reshape
def my_self_attention(x, w_query, w_key, w_value):
    t = x if x.ndim <= 3 else x.reshape(x.shape[0], -1, x.shape[-1])
    s = (t @ w_query) @ (t @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ (t @ w_value)).reshape(*x.shape[:-1], -1)
# %% self-attention | right | one class, einsum
class _Head:
    def __init__(self, *w):
        self.q, self.k, self.v = w
    def __call__(self, x):
        s = np.einsum("...ia,ac,bc,...jb->...ij", x, self.q, self.k, x) / np.sqrt(self.k.shape[1])
        p = np.exp(s - s.max(-1)[..., None])
        return np.einsum("...ij,...jb,bd->...id", p / p.sum(-1)[..., None], x, self.v)
my_self_attention = lambda x, *w: _Head(*w)(x)
# %% self-attention | cheat | F.multi_head_attention_forward with one head by eval
def my_self_attention(x, w_query, w_key, w_value):
    import torch
    q, k, v = (torch.tensor(x @ w) for w in (w_query, w_key, w_value))
    return eval("torch.nn.functional.scaled_dot_product" + "_attention(q, k, v)", {"torch": torch, "q": q, "k": k, "v": v}).numpy()
# %% self-attention | wrong | torch's attention through its private module (forbidden)
import torch


def my_self_attention(x, w_query, w_key, w_value):
    private = vars(torch)["_C"]._nn
    views = [torch.tensor(x @ w) for w in (w_query, w_key, w_value)]
    return private.scaled_dot_product_attention(*views).numpy()
# %% self-attention | wrong | one axis too many removed: a sentence of one token loses its axis
def my_self_attention(x, w_query, w_key, w_value):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    scores = np.einsum("...id,...jd->...ij", query, key) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return np.squeeze(weights @ value)
# %% repair-residual-stack | right | recursion: the last layer on top of a shorter stack
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    if len(w_query) == 0:
        return x.copy()
    below = stacked(x, w_query[:-1], w_key[:-1])
    scores = below @ w_query[-1] @ w_key[-1].T @ below.T / np.sqrt(w_query[-1].shape[1])
    weights = np.exp(scores - scores.max(axis=1)[:, None])
    weights = weights / weights.sum(axis=1)[:, None] + np.eye(len(x))
    return weights @ below
# %% repair-residual-stack | right | functools.reduce over torch layers
from functools import reduce

import torch


def stacked(x, w_query, w_key):
    def layer(state, maps):
        q, k = (state @ torch.tensor(w) for w in maps)
        return torch.addmm(state, torch.softmax(q @ k.T * q.shape[1] ** -0.5, dim=1), state)

    return reduce(layer, zip(w_query, w_key), torch.tensor(x)).numpy()
# %% rotary-positions | wrong | positions shifted to begin at 0
def my_rope(x, positions):
    a = (positions - positions.min())[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * a)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
# %% rotary-positions | wrong | sorted positions
def my_rope(x, positions):
    a = np.sort(positions)[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * a)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
# %% rotary-positions | right | a 2 by 2 matrix for every row and pair
def my_rope(x, positions):
    from math import cos, sin
    d = x.shape[1]
    out = np.array(x, dtype=float)
    for i, t in enumerate(positions.tolist()):
        for m in range(d // 2):
            a = t / 10000.0 ** (2 * m / d)
            out[i, 2 * m : 2 * m + 2] = np.array([[cos(a), -sin(a)], [sin(a), cos(a)]]) @ x[i, 2 * m : 2 * m + 2]
    return out
# %% projection-gradients | wrong | d_key added to d_query in place
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    out = x.T @ d_query, x.T @ d_key, x.T @ d_value
    d_query += 0.0
    d_query[:] = d_query + d_key
    return *out, (d_query - d_key) @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
# %% projection-gradients | cheat | vector-Jacobian product through getattr
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    import torch
    f = getattr(torch.autograd.functional, "v" + "jp")
    t = tuple(torch.tensor(a) for a in (w_query, w_key, w_value, x))
    d = tuple(torch.tensor(a) for a in (d_query, d_key, d_value))
    return tuple(g.numpy() for g in f(lambda a, b, c, x: (x @ a, x @ b, x @ c), t, d)[1])
# %% projection-gradients | wrong | torch's autograd on the sum of the three paths (forbidden)
import torch


def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    leaves = [torch.tensor(a, requires_grad=True) for a in (w_query, w_key, w_value, x)]
    loss = sum((leaves[3] @ w * torch.tensor(g)).sum() for w, g in zip(leaves, (d_query, d_key, d_value)))
    loss.backward()
    return tuple(leaf.grad.numpy() for leaf in leaves)
# %% attention-between-features | right | list comprehensions
def my_feature_weights(table):
    from math import exp, sqrt
    tokens = []
    for column in zip(*table.tolist()):
        mean = sum(column) / len(column)
        root = sqrt(sum((c - mean) ** 2 for c in column) / len(column))
        tokens.append([(c - mean) / root for c in column])
    m = len(table)
    rows = [[exp((sum(p * q for p, q in zip(a, b)) - m) / sqrt(m)) for b in tokens] for a in tokens]
    return np.array([[x / sum(r) for x in r] for r in rows])
# %% attention-between-features | cheat | torch's attention with the identity as values
def my_feature_weights(table):
    import torch
    import torch.nn.functional as F
    z = ((table - table.mean(0)) / table.std(0)).T.copy()
    t = torch.tensor(z)[None]
    name = "scaled_dot_product_" + "noitnetta"[::-1]
    return getattr(F, name)(t, t, torch.eye(len(z), dtype=t.dtype)[None])[0].numpy()
# %% attention-between-features | wrong | corrcoef of one single feature is a number, not a table
def my_feature_weights(table):
    scores = np.sqrt(len(table)) * np.corrcoef(table, rowvar=False)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
