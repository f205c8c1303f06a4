# %% self-attention | wrong | query and key exchanged
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_key) @ (x @ w_query).swapaxes(-1, -2) / np.sqrt(w_query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | wrong | scale by d_model
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(x.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | wrong | one maximum for the whole batch
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max())
    return e / (e.sum(axis=-1, keepdims=True) + 1e-12) @ (x @ w_value)
# %% self-attention | wrong | sentences joined into one
def my_self_attention(x, w_query, w_key, w_value):
    t = x.reshape(-1, x.shape[-1])
    s = (t @ w_query) @ (t @ w_key).T / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ (t @ w_value)).reshape(*x.shape[:-1], -1)
# %% self-attention | wrong | a residual added when the widths allow it
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    z = e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
    return z + x if z.shape == x.shape else z
# %% self-attention | wrong | diagonal hidden, a token alone sees itself
def my_self_attention(x, w_query, w_key, w_value):
    s = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    if s.shape[-1] > 1:
        s = np.where(np.eye(s.shape[-1]) > 0, -np.inf, s)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | wrong | scale in the projections twice
def my_self_attention(x, w_query, w_key, w_value):
    c = np.sqrt(w_query.shape[-1])
    s = (x @ (w_query / c)) @ (x @ (w_key / c)).swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | wrong | one leading axis only: several are averaged into blocks by reshape
def my_self_attention(x, w_query, w_key, w_value):
    t = x if x.ndim <= 3 else x.reshape(x.shape[0], -1, x.shape[-1])
    s = (t @ w_query) @ (t @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) @ (t @ w_value)).reshape(*x.shape[:-1], -1)
# %% self-attention | wrong | scores clipped at 500
def my_self_attention(x, w_query, w_key, w_value):
    s = np.clip((x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(w_key.shape[-1]), -500, 500)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | right | absorbed form, torch softmax
def my_self_attention(x, w_query, w_key, w_value):
    import torch
    x, a, b, c = (torch.tensor(np.array(m)) for m in (x, w_query, w_key, w_value))
    s = x @ (a @ b.T) @ x.mT / a.shape[1] ** 0.5
    return s.softmax(dim=-1) @ x @ c
# %% self-attention | right | token by token
def my_self_attention(x, w_query, w_key, w_value):
    out = np.zeros(x.shape[:-1] + w_value.shape[1:])
    for at in np.ndindex(x.shape[:-2]):
        sentence = x[at]
        for i, token in enumerate(sentence):
            s = [np.dot(token @ w_query, other @ w_key) / w_key.shape[1] ** 0.5 for other in sentence]
            e = np.exp(np.array(s) - max(s))
            out[at + (i,)] = sum(w * (other @ w_value) for w, other in zip(e / e.sum(), sentence))
    return out
# %% self-attention | right | one class, einsum
class _Head:
    def __init__(self, *w):
        self.q, self.k, self.v = w
    def __call__(self, x):
        s = np.einsum("...ia,ac,bc,...jb->...ij", x, self.q, self.k, x) / np.sqrt(self.k.shape[1])
        p = np.exp(s - s.max(-1)[..., None])
        return np.einsum("...ij,...jb,bd->...id", p / p.sum(-1)[..., None], x, self.v)
my_self_attention = lambda x, *w: _Head(*w)(x)
# %% self-attention | cheat | torch's attention under its C name
def my_self_attention(x, w_query, w_key, w_value):
    import torch
    t = [torch.tensor(x @ w) for w in (w_query, w_key, w_value)]
    f = torch._C._nn.__dict__["_".join(("scaled", "dot", "product", "attention"))]
    return f(*t).numpy()
# %% self-attention | cheat | F.multi_head_attention_forward with one head by eval
def my_self_attention(x, w_query, w_key, w_value):
    import torch
    q, k, v = (torch.tensor(x @ w) for w in (w_query, w_key, w_value))
    return eval("torch.nn.functional.scaled_dot_product" + "_attention(q, k, v)", {"torch": torch, "q": q, "k": k, "v": v}).numpy()
# %% features-for-self-weight | wrong | root not squared
my_features = log((n - 1) * p / (1 - p))
# %% features-for-self-weight | wrong | n in place of n - 1
my_features = log(n * p / (1 - p)) ** 2
# %% features-for-self-weight | wrong | odds turned round
my_features = log((n - 1) * (1 - p) / p) ** 2
# %% features-for-self-weight | wrong | logarithm of the square
my_features = log(((n - 1) * p / (1 - p)) ** 2)
# %% features-for-self-weight | wrong | doubled instead of squared
my_features = 2 * log((n - 1) * p / (1 - p))
# %% features-for-self-weight | wrong | without the number of tokens
my_features = log(p / (1 - p)) ** 2
# %% features-for-self-weight | right | difference of logarithms
my_features = (log(p) + log(n - 1) - log(1 - p)) ** 2
# %% features-for-self-weight | right | squared as a product, odds inverted
my_features = log((1 - p) / (p * (n - 1))) * log((1 - p) / (p * (n - 1)))
# %% features-for-self-weight | right | 1/p - 1
my_features = (log(n - 1) - log(1 / p - 1)) ** 2
# %% read-balance-of-weights | wrong | looked along the rows
my_reading = (0, 0.10 / 0.04, 0.16)
# %% read-balance-of-weights | wrong | ratio turned round
my_reading = (2, 0.4, 0.16)
# %% read-balance-of-weights | wrong | output 3 read down the column
my_reading = (2, 2.5, 0.20)
# %% read-balance-of-weights | wrong | ratio of the diagonal
my_reading = (2, 0.79 / 0.48, 0.16)
# %% read-balance-of-weights | wrong | largest diagonal taken for the collector
my_reading = (3, 2.5, 0.16)
# %% read-balance-of-weights | right | computed
_P = np.array([[0.48, 0.08, 0.34, 0.10], [0.16, 0.39, 0.40, 0.05], [0.17, 0.10, 0.53, 0.20], [0.04, 0.01, 0.16, 0.79]])
my_reading = (int(_P.sum(axis=0).argmax()), float(_P[0, 3] / _P[3, 0]), float(_P[3, 2]))
# %% read-balance-of-weights | right | fractions
my_reading = (2, 5 / 2, 16 / 100)
# %% repair-residual-stack | wrong | layers read the state, the residual is the first input
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state = x + e / e.sum(axis=1, keepdims=True) @ state
    return state
# %% repair-residual-stack | wrong | values from the first input
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state = state + e / e.sum(axis=1, keepdims=True) @ x
    return state
# %% repair-residual-stack | wrong | state replaced, no residual
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state = e / e.sum(axis=1, keepdims=True) @ state
    return state
# %% repair-residual-stack | wrong | += into the input
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state += e / e.sum(axis=1, keepdims=True) @ state
    return state
# %% repair-residual-stack | wrong | all layers read the first state, their outputs summed
def stacked(x, w_query, w_key):
    total = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (x @ a) @ (x @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        total = total + e / e.sum(axis=1, keepdims=True) @ x
    return total
# %% repair-residual-stack | wrong | the last layer without its residual
def stacked(x, w_query, w_key):
    state = x
    for n, (a, b) in enumerate(zip(w_query, w_key, strict=True)):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        z = e / e.sum(axis=1, keepdims=True) @ state
        state = z + (state if n + 1 < len(w_query) else 0)
    return state
# %% repair-residual-stack | wrong | layers from last to first
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query[::-1], w_key[::-1], strict=True):
        s = (state @ a) @ (state @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state = state + e / e.sum(axis=1, keepdims=True) @ state
    return state
# %% repair-residual-stack | wrong | keys from the input, queries from the state
def stacked(x, w_query, w_key):
    state = x
    for a, b in zip(w_query, w_key, strict=True):
        s = (state @ a) @ (x @ b).T / np.sqrt(a.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        state = state + e / e.sum(axis=1, keepdims=True) @ state
    return state
# %% repair-residual-stack | right | recursion
def stacked(x, w_query, w_key):
    if len(w_query) == 0:
        return x + 0.0
    s = (x @ w_query[0]) @ (x @ w_key[0]).T / np.sqrt(w_query[0].shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return stacked(x + e / e.sum(axis=1, keepdims=True) @ x, w_query[1:], w_key[1:])
# %% repair-residual-stack | right | functools.reduce, identity plus weights
def stacked(x, w_query, w_key):
    from functools import reduce
    def layer(state, maps):
        s = state @ (maps[0] @ maps[1].T) @ state.T / maps[0].shape[1] ** 0.5
        e = np.exp(s - s.max(axis=1)[:, None])
        return (np.eye(len(state)) + e / e.sum(axis=1)[:, None]) @ state
    return reduce(layer, zip(w_query, w_key), np.array(x))
# %% repair-residual-stack | right | torch, a list of states
def stacked(x, w_query, w_key):
    import torch
    states = [torch.tensor(np.array(x))]
    for a, b in zip(w_query, w_key):
        t = states[-1]
        a, b = torch.tensor(np.array(a)), torch.tensor(np.array(b))
        states.append(torch.addmm(t, torch.softmax((t @ a) @ (t @ b).T / a.shape[-1] ** 0.5, -1), t))
    return states[-1]
# %% rotary-positions | wrong | halves paired instead of neighbours
def my_rope(x, positions):
    h = x.shape[1] // 2
    a = positions[:, None] * 10000.0 ** (-2 * np.arange(h) / x.shape[1])
    f, s = x[:, :h], x[:, h:]
    return np.hstack([f * np.cos(a) - s * np.sin(a), f * np.sin(a) + s * np.cos(a)])
# %% rotary-positions | wrong | turned the other way
def my_rope(x, positions):
    a = positions[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    out = np.empty_like(x)
    out[:, 0::2] = x[:, 0::2] * np.cos(a) + x[:, 1::2] * np.sin(a)
    out[:, 1::2] = -x[:, 0::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return out
# %% rotary-positions | wrong | row numbers instead of the positions given
def my_rope(x, positions):
    a = np.arange(len(x))[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    out = np.empty_like(x)
    out[:, 0::2] = x[:, 0::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    out[:, 1::2] = x[:, 0::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return out
# %% rotary-positions | wrong | exponent m/d_k, half of what it should be
def my_rope(x, positions):
    a = positions[:, None] * 10000.0 ** (-np.arange(x.shape[1] // 2) / x.shape[1])
    out = np.empty_like(x)
    out[:, 0::2] = x[:, 0::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    out[:, 1::2] = x[:, 0::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return out
# %% rotary-positions | wrong | frequencies counted from m = 1
def my_rope(x, positions):
    a = positions[:, None] * 10000.0 ** (-2 * np.arange(1, x.shape[1] // 2 + 1) / x.shape[1])
    out = np.empty_like(x)
    out[:, 0::2] = x[:, 0::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    out[:, 1::2] = x[:, 0::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return out
# %% rotary-positions | wrong | second feature computed from the first one already turned
def my_rope(x, positions):
    a = positions[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    out = x.copy()
    out[:, 0::2] = out[:, 0::2] * np.cos(a) - out[:, 1::2] * np.sin(a)
    out[:, 1::2] = out[:, 0::2] * np.sin(a) + out[:, 1::2] * np.cos(a)
    return out
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
# %% rotary-positions | wrong | turned neighbours written back as two halves
def my_rope(x, positions):
    a = positions[:, None] * 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    f, s = x[:, 0::2], x[:, 1::2]
    return np.hstack([f * np.cos(a) - s * np.sin(a), f * np.sin(a) + s * np.cos(a)])
# %% rotary-positions | wrong | integer powers: all frequencies but the first are 0
def my_rope(x, positions):
    m = np.arange(x.shape[1] // 2)
    a = positions[:, None] * 10000.0 ** (-(2 * m // x.shape[1] + (m > 0) * 2))
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * a)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
# %% rotary-positions | wrong | angles in float16
def my_rope(x, positions):
    w = 10000.0 ** (-2 * np.arange(x.shape[1] // 2) / x.shape[1])
    a = (positions[:, None] * w).astype(np.float16).astype(float)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * a)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
# %% rotary-positions | right | complex numbers
def my_rope(x, positions):
    d = x.shape[1]
    w = np.exp(-np.log(10000.0) * np.arange(0, d, 2) / d)
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(positions, w))
    out = np.empty(x.shape)
    out[:, ::2], out[:, 1::2] = z.real, z.imag
    return out
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
# %% rotary-positions | right | rotate_half style, torch
def my_rope(x, positions):
    import torch
    x = torch.tensor(np.array(x))
    w = 10000.0 ** (-torch.arange(0, x.shape[1], 2, dtype=torch.float64) / x.shape[1])
    a = torch.outer(torch.tensor(np.array(positions)).double(), w).repeat_interleave(2, dim=1)
    turned = torch.stack([-x[:, 1::2], x[:, 0::2]], dim=2).flatten(1)
    return x * a.cos() + turned * a.sin()
# %% projection-gradients | wrong | d_x from the query alone
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_query @ w_query.T
# %% projection-gradients | wrong | d_x as the mean of the three
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, (d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T) / 3
# %% projection-gradients | wrong | key and query gradients swapped in d_x
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_query @ w_key.T + d_key @ w_query.T + d_value @ w_value.T
# %% projection-gradients | wrong | weight gradients averaged over tokens
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    n = len(x)
    return x.T @ d_query / n, x.T @ d_key / n, x.T @ d_value / n, d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
# %% projection-gradients | wrong | d_x first in the tuple
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    return d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T, x.T @ d_query, x.T @ d_key, x.T @ d_value
# %% projection-gradients | wrong | d_key added to d_query in place
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    out = x.T @ d_query, x.T @ d_key, x.T @ d_value
    d_query += 0.0
    d_query[:] = d_query + d_key
    return *out, (d_query - d_key) @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
# %% projection-gradients | wrong | transposed weight gradients reshaped to fit
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    def g(d):
        return (d.T @ x).reshape(x.shape[1], d.shape[1])
    return g(d_query), g(d_key), g(d_value), d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
# %% projection-gradients | wrong | value path forgotten where d_v differs from d_k
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    d_x = d_query @ w_query.T + d_key @ w_key.T
    if w_value.shape == w_key.shape:
        d_x = d_x + d_value @ w_value.T
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_x
# %% projection-gradients | right | one wide matrix
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    w, d = np.hstack([w_query, w_key, w_value]), np.hstack([d_query, d_key, d_value])
    k = w_query.shape[1]
    return *np.split(x.T @ d, [k, 2 * k], axis=1), d @ w.T
# %% projection-gradients | right | sums of outer products
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    pairs = [(w_query, d_query), (w_key, d_key), (w_value, d_value)]
    weights = [sum(np.outer(a, b) for a, b in zip(x, d)) for _, d in pairs]
    d_x = np.array([sum(w @ d[t] for w, d in pairs) for t in range(len(x))])
    return tuple(weights) + (d_x,)
# %% projection-gradients | right | a Linear class with a backward method, torch
class _Linear:
    def __init__(self, x, w):
        self.x, self.w = x, w
    def backward(self, d):
        import torch
        x, w, d = (torch.tensor(np.array(a)) for a in (self.x, self.w, d))
        return torch.einsum("ta,tc->ac", x, d), torch.einsum("tc,ac->ta", d, w)
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    (a, p), (b, q), (c, r) = (_Linear(x, w).backward(d) for w, d in ((w_query, d_query), (w_key, d_key), (w_value, d_value)))
    return a, b, c, p + q + r
# %% projection-gradients | cheat | torch backward through the three maps
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    import torch
    t = [torch.tensor(a, requires_grad=True) for a in (w_query, w_key, w_value, x)]
    torch.autograd.backward([t[3] @ w for w in t[:3]], [torch.tensor(a) for a in (d_query, d_key, d_value)])
    return tuple(a.grad.numpy() for a in t)
# %% projection-gradients | cheat | vector-Jacobian product through getattr
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    import torch
    f = getattr(torch.autograd.functional, "v" + "jp")
    t = tuple(torch.tensor(a) for a in (w_query, w_key, w_value, x))
    d = tuple(torch.tensor(a) for a in (d_query, d_key, d_value))
    return tuple(g.numpy() for g in f(lambda a, b, c, x: (x @ a, x @ b, x @ c), t, d)[1])
# %% attention-and-rnn-counts | wrong | a multiply-add as one
my_counts = (3 * 80 * 64**2 + 2 * 80**2 * 64, 2 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | five products as the depth
my_counts = (6 * 80 * 64**2 + 4 * 80**2 * 64, 4 * 80 * 64**2, 5, 80)
# %% attention-and-rnn-counts | wrong | RNN with one matrix
my_counts = (6 * 80 * 64**2 + 4 * 80**2 * 64, 2 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | an output projection counted
my_counts = (8 * 80 * 64**2 + 4 * 80**2 * 64, 4 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | T and d exchanged in the quadratic part
my_counts = (6 * 80 * 64**2 + 4 * 80 * 64**2, 4 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | depth of the RNN one short
my_counts = (6 * 80 * 64**2 + 4 * 80**2 * 64, 4 * 80 * 64**2, 3, 79)
# %% attention-and-rnn-counts | wrong | depth of the RNN twice
my_counts = (6 * 80 * 64**2 + 4 * 80**2 * 64, 4 * 80 * 64**2, 3, 160)
# %% attention-and-rnn-counts | right | products counted by a helper
def _p(a, b, c):
    return 2 * a * b * c
_T, _d = 80, 64
my_counts = (3 * _p(_T, _d, _d) + _p(_T, _d, _T) + _p(_T, _T, _d), sum(2 * _p(1, _d, _d) for _ in range(_T)), 3, _T)
# %% attention-and-rnn-counts | right | plain numbers
my_counts = (3604480, 1310720, 3, 80)
# %% attention-between-features | wrong | individuals as tokens
def my_feature_weights(table):
    z = (table - table.mean(axis=0)) / table.std(axis=0)
    s = z @ z.T / np.sqrt(z.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | sample deviation, divides by m - 1
def my_feature_weights(table):
    z = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | divided by the root of the number of features
def my_feature_weights(table):
    z = (table - table.mean(axis=0)) / table.std(axis=0)
    s = z.T @ z / np.sqrt(z.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | correlations, divided by m
def my_feature_weights(table):
    s = np.atleast_2d(np.corrcoef(table.T))
    e = np.exp(s)
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | standardised along the rows
def my_feature_weights(table):
    z = (table - table.mean(axis=1, keepdims=True)) / (table.std(axis=1, keepdims=True) + 1e-9)
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | mean and deviation of the whole table
def my_feature_weights(table):
    z = (table - table.mean()) / table.std()
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | scaled to mean square 1 before it is centred
def my_feature_weights(table):
    z = table / np.sqrt((table**2).mean(axis=0))
    z = z - z.mean(axis=0)
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | eps of 1e-4 beside a tiny deviation
def my_feature_weights(table):
    z = (table - table.mean(axis=0)) / (table.std(axis=0) + 1e-4)
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | the diagonal hidden unless alone
def my_feature_weights(table):
    z = (table - table.mean(axis=0)) / table.std(axis=0)
    s = z.T @ z / np.sqrt(len(z))
    if len(s) > 1:
        np.fill_diagonal(s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | centres the table in place
def my_feature_weights(table):
    table -= table.mean(axis=0)
    z = table / table.std(axis=0)
    s = z.T @ z / np.sqrt(len(z))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | right | correlations times the root of m
def my_feature_weights(table):
    m, n = table.shape
    r = np.atleast_2d(np.corrcoef(table, rowvar=False))
    e = np.exp(np.sqrt(m) * (r - r.max(axis=1, keepdims=True)))
    return e / e.sum(axis=1, keepdims=True)
# %% attention-between-features | right | torch
def my_feature_weights(table):
    import torch
    t = torch.tensor(np.array(table)).T
    t = t - t.mean(dim=1, keepdim=True)
    t = t / t.square().mean(dim=1, keepdim=True).sqrt()
    return torch.softmax(t @ t.T / t.shape[1] ** 0.5, dim=1)
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
