# %% split-heads | wrong | reshaped straight to the wanted shape, positions mixed
def my_split(x, n_heads):
    *lead, length, width = x.shape
    return x.reshape(*lead, n_heads, length, width // n_heads)
# %% split-heads | wrong | columns dealt out like cards, head h gets every n_heads-th one
def my_split(x, n_heads):
    x = x.reshape(*x.shape[:-1], -1, n_heads)
    return np.moveaxis(x, -1, -3)
# %% split-heads | wrong | head axis first of all, in front of the leading axes
def my_split(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=0)
# %% split-heads | wrong | axes counted from the left, right for one leading axis only
def my_split(x, n_heads):
    cut = x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)
    return cut.swapaxes(1, 2) if cut.ndim > 3 else cut.swapaxes(0, 1)
# %% split-heads | wrong | one head returned as it is, without a head axis
def my_split(x, n_heads):
    if n_heads == 1:
        return x.copy()
    return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-2, -3)
# %% split-heads | wrong | leading axes flattened into one
def my_split(x, n_heads):
    length, width = x.shape[-2:]
    cut = x.reshape(-1, length, n_heads, width // n_heads).transpose(0, 2, 1, 3)
    return cut[0] if x.ndim == 2 else cut
# %% split-heads | wrong | cuts the input itself by setting its shape
def my_split(x, n_heads):
    x.shape = x.shape[:-1] + (n_heads, x.shape[-1] // n_heads)
    return x.swapaxes(-2, -3)
# %% split-heads | wrong | forgets to move the head axis in front of the positions
def my_split(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)
# %% split-heads | wrong | cuts the columns into blocks of n_heads, not into n_heads blocks
def my_split(x, n_heads):
    return x.reshape(*x.shape[:-1], x.shape[-1] // n_heads, n_heads).swapaxes(-2, -3)
# %% split-heads | wrong | needs a leading axis, two dimensions fail
def my_split(x, n_heads):
    batch, length, width = x.shape[-3], x.shape[-2], x.shape[-1]
    return x.reshape(*x.shape[:-3], batch, length, n_heads, width // n_heads).swapaxes(-2, -3)
# %% split-heads | wrong | squeezed, so axes of length 1 are lost
def my_split(x, n_heads):
    return np.squeeze(x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-2, -3))
# %% split-heads | wrong | features and positions exchanged, as for a transposed key
def my_split(x, n_heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], n_heads, -1), -3, -1)
# %% split-heads | right | columns picked by a table of indices
def my_split(x, n_heads):
    width = x.shape[-1] // n_heads
    table = [[h * width + c for c in range(width)] for h in range(n_heads)]
    return np.moveaxis(x[..., np.array(table)], -2, -3)
# %% split-heads | right | slices stacked on a new third axis from the end
def my_split(x, n_heads):
    w = x.shape[-1] // n_heads
    return np.stack([x[..., h * w:(h + 1) * w] for h in range(n_heads)], axis=-3)
# %% split-heads | right | torch, unflatten
import torch
def my_split(x, n_heads):
    return torch.tensor(x).unflatten(-1, (n_heads, -1)).transpose(-3, -2)
# %% split-heads | right | recursion over the leading axes
def my_split(x, n_heads):
    if x.ndim > 2:
        return np.array([my_split(part, n_heads) for part in x])
    return np.array(np.hsplit(x, n_heads))
# %% split-heads | right | einsum with blocks of the identity matrix
def my_split(x, n_heads):
    width = x.shape[-1]
    blocks = np.eye(width).reshape(width, n_heads, width // n_heads)
    return np.einsum("...tc,chk->...htk", x, blocks)

# %% multi-head-attention | wrong | scale from the width of all heads together
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    cut = lambda a: a.reshape(len(x), n_heads, -1).swapaxes(0, 1)
    q, k, v = cut(x @ w_query), cut(x @ w_key), cut(x @ w_value)
    s = q @ k.swapaxes(1, 2) / np.sqrt(w_query.shape[1])
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return (p @ v).swapaxes(0, 1).reshape(len(x), -1) @ w_output
# %% multi-head-attention | wrong | heads put together by a reshape alone
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    cut = lambda a: a.reshape(len(x), n_heads, -1).swapaxes(0, 1)
    q, k, v = cut(x @ w_query), cut(x @ w_key), cut(x @ w_value)
    s = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return (p @ v).reshape(len(x), -1) @ w_output
# %% multi-head-attention | wrong | takes d / H for the width of a head
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    d_k = x.shape[1] // n_heads
    out = []
    for h in range(n_heads):
        c = slice(h * d_k, (h + 1) * d_k)
        q, k, v = x @ w_query[:, c], x @ w_key[:, c], x @ w_value[:, c]
        p = np.exp(q @ k.T / np.sqrt(d_k))
        out.append(p / p.sum(1, keepdims=True) @ v)
    return np.hstack(out) @ w_output
# %% multi-head-attention | wrong | values split with the width of the keys
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    d_k = w_query.shape[1] // n_heads
    result = np.zeros_like(x)
    for h in range(n_heads):
        c = slice(h * d_k, (h + 1) * d_k)
        q, k = x @ w_query[:, c], x @ w_key[:, c]
        p = np.exp(q @ k.T / np.sqrt(d_k))
        p = p / p.sum(1, keepdims=True)
        result = result + p @ (x @ w_value)[:, c] @ w_output[c]
    return result
# %% multi-head-attention | wrong | softmax over the queries
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    T = x.shape[0]
    q = (x @ w_query).reshape(T, n_heads, -1)
    k = (x @ w_key).reshape(T, n_heads, -1)
    v = (x @ w_value).reshape(T, n_heads, -1)
    s = np.einsum("ihc,jhc->hij", q, k) / np.sqrt(q.shape[2])
    p = np.exp(s)
    p = p / p.sum(axis=1, keepdims=True)
    return np.einsum("hij,jhc->ihc", p, v).reshape(T, -1) @ w_output
# %% multi-head-attention | wrong | softmax over the heads
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    T = x.shape[0]
    q = (x @ w_query).reshape(T, n_heads, -1)
    k = (x @ w_key).reshape(T, n_heads, -1)
    v = (x @ w_value).reshape(T, n_heads, -1)
    p = np.exp(np.einsum("ihc,jhc->hij", q, k) / np.sqrt(q.shape[2]))
    p = p / p.sum(axis=0)
    return np.einsum("hij,jhc->ihc", p, v).reshape(T, -1) @ w_output
# %% multi-head-attention | wrong | causal mask that nobody asked for
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    out = []
    for wq, wk, wv in zip(*(np.split(w, n_heads, axis=1) for w in (w_query, w_key, w_value))):
        s = (x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1])
        p = np.tril(np.exp(s))
        out.append(p / p.sum(1, keepdims=True) @ (x @ wv))
    return np.hstack(out) @ w_output
# %% multi-head-attention | wrong | squeezed, so one position loses its axis
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    out = []
    for wq, wk, wv in zip(*(np.split(w, n_heads, axis=1) for w in (w_query, w_key, w_value))):
        p = np.exp((x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1]))
        out.append(p / p.sum(1, keepdims=True) @ (x @ wv))
    return np.squeeze(np.hstack(out) @ w_output)
# %% multi-head-attention | wrong | scale multiplied into w_query in place
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    w_query /= np.sqrt(w_query.shape[1] // n_heads)
    out = []
    for wq, wk, wv in zip(*(np.split(w, n_heads, axis=1) for w in (w_query, w_key, w_value))):
        p = np.exp((x @ wq) @ (x @ wk).T)
        out.append(p / p.sum(1, keepdims=True) @ (x @ wv))
    return np.hstack(out) @ w_output
# %% multi-head-attention | wrong | interleaved columns for the heads, w_output as if blocks
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    out = []
    for h in range(n_heads):
        q, k, v = x @ w_query[:, h::n_heads], x @ w_key[:, h::n_heads], x @ w_value[:, h::n_heads]
        p = np.exp(q @ k.T / np.sqrt(q.shape[1]))
        out.append(p / p.sum(1, keepdims=True) @ v)
    return np.hstack(out) @ w_output
# %% multi-head-attention | wrong | adds the residual x
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    total = x
    for wq, wk, wv, wo in zip(np.split(w_query, n_heads, 1), np.split(w_key, n_heads, 1), np.split(w_value, n_heads, 1), np.split(w_output, n_heads, 0)):
        p = np.exp((x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1]))
        total = total + p / p.sum(1, keepdims=True) @ (x @ wv) @ wo
    return total
# %% multi-head-attention | wrong | half precision inside
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    x, w_query, w_key, w_value, w_output = (a.astype(np.float16) for a in (x, w_query, w_key, w_value, w_output))
    total = 0
    for wq, wk, wv, wo in zip(np.split(w_query, n_heads, 1), np.split(w_key, n_heads, 1), np.split(w_value, n_heads, 1), np.split(w_output, n_heads, 0)):
        p = np.exp((x @ wq) @ (x @ wk).T / np.float16(np.sqrt(wq.shape[1])))
        total = total + p / p.sum(1, keepdims=True) @ (x @ wv) @ wo
    return total.astype(np.float64)
# %% multi-head-attention | wrong | mean over the heads instead of their sum
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    parts = []
    for wq, wk, wv, wo in zip(np.split(w_query, n_heads, 1), np.split(w_key, n_heads, 1), np.split(w_value, n_heads, 1), np.split(w_output, n_heads, 0)):
        p = np.exp((x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1]))
        parts.append(p / p.sum(1, keepdims=True) @ (x @ wv) @ wo)
    return np.mean(parts, axis=0)
# %% multi-head-attention | wrong | one attention for all heads, scores added up
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    s = (x @ w_query) @ (x @ w_key).T / np.sqrt(w_query.shape[1] / n_heads)
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p @ (x @ w_value) @ w_output
# %% multi-head-attention | cheat | library's attention fetched by a composed name
import torch
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    attend = getattr(torch.nn.functional, "_".join(["scaled", "dot", "product", "attention"]))
    x, *ws = [torch.tensor(a) for a in (x, w_query, w_key, w_value, w_output)]
    q, k, v = [(x @ w).reshape(len(x), n_heads, -1).transpose(0, 1) for w in ws[:3]]
    return (attend(q, k, v).transpose(0, 1).reshape(len(x), -1) @ ws[3]).numpy()
# %% multi-head-attention | wrong | a thread for each head
from concurrent.futures import ThreadPoolExecutor
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    def head(h):
        dk, dv = w_query.shape[1] // n_heads, w_value.shape[1] // n_heads
        q, k = x @ w_query[:, h * dk:(h + 1) * dk], x @ w_key[:, h * dk:(h + 1) * dk]
        p = np.exp(q @ k.T / np.sqrt(dk))
        return p / p.sum(1, keepdims=True) @ (x @ w_value[:, h * dv:(h + 1) * dv])
    with ThreadPoolExecutor() as pool:
        return np.hstack(list(pool.map(head, range(n_heads)))) @ w_output
# %% multi-head-attention | cheat | torch's aten operator for attention
import torch
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    x, wq, wk, wv, wo = map(torch.from_numpy, (x, w_query, w_key, w_value, w_output))
    q, k, v = [(x @ w).view(1, len(x), n_heads, -1).transpose(1, 2) for w in (wq, wk, wv)]
    z = torch.ops.aten.scaled_dot_product_attention(q, k, v)
    return z[0].transpose(0, 1).reshape(len(x), -1) @ wo
# %% multi-head-attention | right | pure loops over positions, heads and features
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    import math
    T, d = x.shape
    dk, dv = w_query.shape[1] // n_heads, w_value.shape[1] // n_heads
    q, k, v = x @ w_query, x @ w_key, x @ w_value
    out = np.zeros((T, d))
    for i in range(T):
        for h in range(n_heads):
            s = [sum(q[i, h * dk + c] * k[j, h * dk + c] for c in range(dk)) / math.sqrt(dk) for j in range(T)]
            e = [math.exp(a - max(s)) for a in s]
            for j in range(T):
                for c in range(dv):
                    out[i] += e[j] / sum(e) * v[j, h * dv + c] * w_output[h * dv + c]
    return out
# %% multi-head-attention | right | one einsum after the other
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    d = len(w_query)
    wq, wk, wv = (w.reshape(d, n_heads, -1) for w in (w_query, w_key, w_value))
    wo = w_output.reshape(n_heads, -1, d)
    s = np.einsum("ia,ahc,jb,bhc->hij", x, wq, x, wk, optimize=True) * wq.shape[2] ** -0.5
    p = np.exp(s)
    return np.einsum("hij,hi,jb,bhc,hcd->id", p, 1 / p.sum(2), x, wv, wo, optimize=True)
# %% multi-head-attention | right | torch in float32 with its softmax
import torch
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    x, *w = (torch.tensor(a, dtype=torch.float32) for a in (x, w_query, w_key, w_value, w_output))
    q, k, v = (torch.stack((x @ m).chunk(n_heads, dim=1)) for m in w[:3])
    p = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return torch.cat(list(p @ v), dim=1) @ w[3]
# %% multi-head-attention | right | recursion: first head plus the rest of the heads
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    if n_heads == 0:
        return np.zeros_like(x)
    dk, dv = w_query.shape[1] // n_heads, w_value.shape[1] // n_heads
    p = np.exp(x @ w_query[:, :dk] @ (x @ w_key[:, :dk]).T / np.sqrt(dk))
    first = p / p.sum(1)[:, None] @ x @ w_value[:, :dv] @ w_output[:dv]
    return first + my_multi_head(x, w_query[:, dk:], w_key[:, dk:], w_value[:, dv:], w_output[dv:], n_heads - 1)
# %% multi-head-attention | right | a class with __call__, torch's softmax on NumPy scores
import torch
class _Layer:
    def __call__(self, x, w_query, w_key, w_value, w_output, n_heads):
        self.n = n_heads
        z = [self.head(x, *ws) for ws in zip(self.cut(w_query), self.cut(w_key), self.cut(w_value))]
        return np.concatenate(z, axis=1).dot(w_output)
    def cut(self, w):
        return np.hsplit(w, self.n)
    def head(self, x, a, b, c):
        form = a @ b.T / np.sqrt(a.shape[1])
        return torch.softmax(torch.tensor(x @ form @ x.T), dim=1).numpy() @ x @ c
my_multi_head = _Layer()

# %% decoding-step-flops | wrong | a multiply-add counted once
my_step_flops = 2 * d * h * w + 2 * d * r * w + 2 * h * t * w
# %% decoding-step-flops | wrong | scores and sums counted for the key heads only
my_step_flops = 4 * d * h * w + 4 * d * r * w + 4 * r * t * w
# %% decoding-step-flops | wrong | keys and values projected for all query heads
my_step_flops = 8 * d * h * w + 4 * h * t * w
# %% decoding-step-flops | wrong | the new token counted again behind the cache
my_step_flops = 4 * d * w * (h + r) + 4 * h * (t + 1) * w
# %% decoding-step-flops | wrong | output projection forgotten
my_step_flops = 2 * d * h * w + 4 * d * r * w + 4 * h * t * w
# %% decoding-step-flops | wrong | keys and values of all t tokens made anew
my_step_flops = 4 * d * h * w + 4 * t * d * r * w + 4 * h * t * w
# %% decoding-step-flops | wrong | whole prefill, t queries
my_step_flops = t * (4 * d * h * w + 4 * d * r * w + 4 * h * t * w)
# %% decoding-step-flops | wrong | scores only, sums of values forgotten
my_step_flops = 4 * d * w * (h + r) + 2 * h * t * w
# %% decoding-step-flops | wrong | copied from Eq. multi-head-flops with one token, d = h w assumed
my_step_flops = 8 * d**2 + 4 * t * d
# %% decoding-step-flops | wrong | keys of the cache only, without the new one
my_step_flops = 4 * d * w * (h + r) + 4 * h * (t - 1) * w
# %% decoding-step-flops | cheat | derivative of an antiderivative written by hand
my_step_flops = (2 * w * (h + r) * d**2 + 4 * h * t * w * d).diff(d)
# %% decoding-step-flops | right | factored
my_step_flops = 4 * w * (d * (h + r) + h * t)
# %% decoding-step-flops | right | each product counted by a small helper
def _product(rows, inner, columns):
    return 2 * rows * inner * columns
my_step_flops = sum([
    _product(1, d, h * w), _product(1, d, r * w), _product(1, d, r * w), _product(1, h * w, d),
    h * _product(1, w, t), h * _product(1, t, w),
])
# %% decoding-step-flops | right | quotient that cancels, from sympy's expand
from sympy import expand
my_step_flops = expand(4 * w * h * d * (d * (1 + r / h) + t)) / d

# %% cache-capacity-in-tokens | wrong | query heads instead of key heads
my_tokens = M * 2**30 / (2 * L * H * d_h * 2)
# %% cache-capacity-in-tokens | wrong | a GiB taken for 10**9 bytes
my_tokens = M * 10**9 / (2 * L * G * d_h * 2)
# %% cache-capacity-in-tokens | wrong | keys only, values forgotten
my_tokens = M * 2**30 / (L * G * d_h * 2)
# %% cache-capacity-in-tokens | wrong | 16 bits taken for 16 bytes
my_tokens = M * 2**30 / (2 * L * G * d_h * 16)
# %% cache-capacity-in-tokens | wrong | layers forgotten
my_tokens = M * 2**30 // (2 * G * d_h * 2)
# %% cache-capacity-in-tokens | wrong | 32-bit numbers
my_tokens = M * 2**30 // (2 * L * G * d_h * 4)
# %% cache-capacity-in-tokens | wrong | bytes of one token instead of tokens
my_tokens = 2 * L * G * d_h * 2
# %% cache-capacity-in-tokens | wrong | 2 ^ 30 typed as in other programs
my_tokens = M * (2 ^ 30) / (2 * L * G * d_h * 2)
# %% cache-capacity-in-tokens | right | whole tokens, rounded down
import math
my_tokens = math.floor(M * 1024**3 / (4 * L * G * d_h))
# %% cache-capacity-in-tokens | right | shifts of integers
my_tokens = (M << 30) // (L * G * d_h << 2)
# %% cache-capacity-in-tokens | right | as a NumPy number from a product of factors
my_tokens = np.float64(M) * 2**30 / np.prod([2, 2, L, G, d_h])

# %% repair-grouped-heads | wrong | heads repaired, scale not
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(n_heads * d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | scale repaired, heads not
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.tile(key, (group, 1, 1)), np.tile(value, (group, 1, 1))
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | keys repeated, values still tiled
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.tile(value, (group, 1, 1))
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | queries cut as (group, R), so head h uses key head h mod R
def grouped_attention(query, key, value):
    n_heads, q_len, d_k = query.shape
    q = query.reshape(n_heads // len(key), len(key), q_len, d_k)
    s = q @ key.swapaxes(1, 2) / np.sqrt(d_k)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True) @ value).reshape(n_heads, q_len, -1)
# %% repair-grouped-heads | wrong | scale from the width of the values
def grouped_attention(query, key, value):
    n_heads = query.shape[0]
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(values.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | scale from the heads of the group
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(group * d_k)
    p = np.exp(scores)
    return p / p.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | repeat along the wrong axis first, then cut by reshape
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys = np.repeat(key, group, axis=1).reshape(n_heads, key.shape[1], d_k)
    values = np.repeat(value, group, axis=1).reshape(n_heads, key.shape[1], -1)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    p = np.exp(scores)
    return p / p.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | every head uses key head 0, as with one shared head
def grouped_attention(query, key, value):
    s = query @ key[0].T / np.sqrt(query.shape[-1])
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ value[0]
# %% repair-grouped-heads | wrong | group size used for the number of the key head, h // R
def grouped_attention(query, key, value):
    out = []
    for h in range(len(query)):
        r = min(h // len(key), len(key) - 1)
        p = np.exp(query[h] @ key[r].T / np.sqrt(query.shape[2]))
        out.append(p / p.sum(axis=1, keepdims=True) @ value[r])
    return np.stack(out)
# %% repair-grouped-heads | wrong | writes the scaled queries back into the input
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    query *= d_k ** -0.5
    scores = query @ keys.swapaxes(1, 2)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | squeezed at the end
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True) @ values).squeeze()
# %% repair-grouped-heads | cheat | torch's attention with enable_gqa
import torch
from torch.nn import functional as _f
def grouped_attention(query, key, value):
    q, k, v = (torch.from_numpy(a)[None] for a in (query, key, value))
    return _f.scaled_dot_product_attention(q, k, v, enable_gqa=True)[0].numpy()
# %% repair-grouped-heads | right | queries cut into groups, keys broadcast
def grouped_attention(query, key, value):
    n_heads, q_len, d_k = query.shape
    q = query.reshape(len(key), n_heads // len(key), q_len, d_k)
    s = np.einsum("rgqc,rkc->rgqk", q, key) / d_k**0.5
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    z = np.einsum("rgqk,rkv->rgqv", p, value) / p.sum(axis=-1)[..., None]
    return z.reshape(n_heads, q_len, value.shape[2])
# %% repair-grouped-heads | right | loop over the query heads
def grouped_attention(query, key, value):
    n_heads, n_keys = len(query), len(key)
    result = np.empty(query.shape[:2] + value.shape[2:])
    for h in range(n_heads):
        r = h * n_keys // n_heads
        s = query[h] @ key[r].T / np.sqrt(query.shape[2])
        p = np.exp(s - s.max(axis=1, keepdims=True))
        result[h] = p / p.sum(axis=1, keepdims=True) @ value[r]
    return result
# %% repair-grouped-heads | right | keys and values fetched by a list of numbers, torch's softmax
import torch
def grouped_attention(query, key, value):
    who = torch.arange(len(key)).repeat_interleave(len(query) // len(key))
    query, key, value = (torch.tensor(a) for a in (query, key, value))
    s = torch.bmm(query, key[who].transpose(1, 2)) / query.shape[-1] ** 0.5
    return torch.bmm(torch.softmax(s, dim=2), value[who])

# %% repair-torch-layer | wrong | only the output projection turned
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    packed = (x @ in_proj_weight.T).reshape(length, n_heads, 3, d_model // n_heads)
    query, key, value = packed.transpose(2, 1, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(length, d_model) @ out_proj_weight.T
# %% repair-torch-layer | wrong | only the unpacking repaired
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    packed = (x @ in_proj_weight.T).reshape(length, 3, n_heads, d_model // n_heads)
    query, key, value = packed.transpose(1, 2, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(length, d_model) @ out_proj_weight
# %% repair-torch-layer | wrong | keys and queries exchanged
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    w_k, w_q, w_v, w_o = np.split(stacked, 4)
    q, k, v = ((x @ w.T).reshape(length, n_heads, -1).swapaxes(0, 1) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    p = np.exp(s)
    heads = p / p.sum(axis=-1, keepdims=True) @ v
    return heads.swapaxes(0, 1).reshape(length, d_model) @ w_o.T
# %% repair-torch-layer | wrong | no matrix transposed, as with x @ w
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    w_q, w_k, w_v, w_o = np.split(stacked, 4)
    q, k, v = ((x @ w).reshape(length, n_heads, -1).swapaxes(0, 1) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    p = np.exp(s)
    heads = p / p.sum(axis=-1, keepdims=True) @ v
    return heads.swapaxes(0, 1).reshape(length, d_model) @ w_o
# %% repair-torch-layer | wrong | scale from d_model
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    w_q, w_k, w_v, w_o = np.split(stacked, 4)
    q, k, v = ((x @ w.T).reshape(length, n_heads, -1).swapaxes(0, 1) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(1, 2) / np.sqrt(d_model)
    p = np.exp(s)
    heads = p / p.sum(axis=-1, keepdims=True) @ v
    return heads.swapaxes(0, 1).reshape(length, d_model) @ w_o.T
# %% repair-torch-layer | wrong | heads take every n_heads-th column
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    w_q, w_k, w_v, w_o = np.split(stacked, 4)
    q, k, v = ((x @ w.T).reshape(length, -1, n_heads).transpose(2, 0, 1) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    p = np.exp(s)
    heads = p / p.sum(axis=-1, keepdims=True) @ v
    return heads.transpose(1, 2, 0).reshape(length, d_model) @ w_o.T
# %% repair-torch-layer | wrong | heads merged without moving the axis
def torch_layer(x, stacked, n_heads):
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    query, key, value = (x @ in_proj_weight.T).reshape(length, 3, n_heads, -1).transpose(1, 2, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.reshape(length, d_model) @ out_proj_weight.T
# %% repair-torch-layer | wrong | weights turned in place by transposing the blocks of the input
def torch_layer(x, stacked, n_heads):
    length, d = x.shape
    for i in range(4):
        stacked[i * d:(i + 1) * d] = stacked[i * d:(i + 1) * d].T.copy()
    w_q, w_k, w_v, w_o = np.split(stacked, 4)
    q, k, v = ((x @ w).reshape(length, n_heads, -1).swapaxes(0, 1) for w in (w_q, w_k, w_v))
    p = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(d // n_heads))
    return (p / p.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1).reshape(length, d) @ w_o.T
# %% repair-torch-layer | wrong | the module itself loaded with the weights
import torch
def torch_layer(x, stacked, n_heads):
    d = x.shape[1]
    layer = torch.nn.MultiheadAttention(d, n_heads, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.tensor(stacked[:3 * d]))
        layer.out_proj.weight.copy_(torch.tensor(stacked[3 * d:]))
        t = torch.tensor(x)
        return layer(t, t, t)[0].numpy()
# %% repair-torch-layer | wrong | first unpacked by x @ w of the whole stack cut in columns
def torch_layer(x, stacked, n_heads):
    length, d = x.shape
    w_q, w_k, w_v, w_o = np.split(stacked.reshape(d, 4 * d), 4, axis=1)
    q, k, v = ((x @ w).reshape(length, n_heads, -1).swapaxes(0, 1) for w in (w_q, w_k, w_v))
    p = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(d // n_heads))
    return (p / p.sum(axis=-1, keepdims=True) @ v).swapaxes(0, 1).reshape(length, d) @ w_o
# %% repair-torch-layer | cheat | the functional form of the module, under another name
from torch.nn.functional import multi_head_attention_forward as _go
import torch
def torch_layer(x, stacked, n_heads):
    d = x.shape[1]
    t, w = torch.tensor(x), torch.tensor(stacked)
    out, _ = _go(t, t, t, d, n_heads, w[:3 * d], None, None, None, False, 0.0, w[3 * d:], None, training=False, need_weights=False)
    return out.numpy()
# %% repair-torch-layer | right | rows of the weights cut first, loop over heads, sum of parts
def torch_layer(x, stacked, n_heads):
    d = x.shape[1]
    c = d // n_heads
    out = np.zeros_like(x)
    for h in range(n_heads):
        rows = np.arange(h * c, (h + 1) * c)
        q, k, v = (x @ stacked[rows + part * d].T for part in range(3))
        p = np.exp(q @ k.T / np.sqrt(c))
        out += p / p.sum(axis=1, keepdims=True) @ v @ stacked[3 * d:].T[rows]
    return out
# %% repair-torch-layer | right | einsum on a stack of shape (4, heads, width, d)
def torch_layer(x, stacked, n_heads):
    d = x.shape[1]
    w = stacked.reshape(4, n_heads, d // n_heads, d)
    q, k, v = np.einsum("td,nhcd->nhtc", x, w[:3])
    s = np.einsum("hic,hjc->hij", q, k) * (n_heads / d) ** 0.5
    p = np.exp(s - s.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    z = np.einsum("hij,hjc->ihc", p, v).reshape(len(x), d)
    return np.einsum("tc,dc->td", z, stacked[3 * d:])
# %% repair-torch-layer | right | torch's linear and softmax
import torch
import torch.nn.functional as F
def torch_layer(x, stacked, n_heads):
    x, w = torch.as_tensor(x), torch.as_tensor(stacked)
    d = x.shape[1]
    q, k, v = (part.unflatten(1, (n_heads, d // n_heads)).transpose(0, 1) for part in F.linear(x, w[:3 * d]).chunk(3, 1))
    z = F.softmax(q @ k.mT * (d // n_heads) ** -0.5, dim=-1) @ v
    return F.linear(z.transpose(0, 1).flatten(1), w[3 * d:])

# %% output-projection-backward | wrong | gradient of the heads left side by side
def my_merge_backward(heads, w_output, d_output):
    merged = heads.swapaxes(0, 1).reshape(heads.shape[1], -1)
    return d_output @ w_output.T, merged.T @ d_output
# %% output-projection-backward | wrong | split by a reshape alone
def my_merge_backward(heads, w_output, d_output):
    merged = heads.swapaxes(0, 1).reshape(heads.shape[1], -1)
    return (d_output @ w_output.T).reshape(heads.shape), merged.T @ d_output
# %% output-projection-backward | wrong | merged by a reshape alone
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return d_heads, heads.reshape(T, H * d_v).T @ d_output
# %% output-projection-backward | wrong | gradients in the other order
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return heads.swapaxes(0, 1).reshape(T, -1).T @ d_output, d_heads
# %% output-projection-backward | wrong | gradient of the weights averaged over positions
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return d_heads, heads.swapaxes(0, 1).reshape(T, -1).T @ d_output / T
# %% output-projection-backward | wrong | gradient of the weights transposed
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return d_heads, d_output.T @ heads.swapaxes(0, 1).reshape(T, -1)
# %% output-projection-backward | wrong | columns dealt out in turn
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = np.moveaxis((d_output @ w_output.T).reshape(T, d_v, H), 2, 0)
    return d_heads, heads.transpose(1, 2, 0).reshape(T, -1).T @ d_output
# %% output-projection-backward | wrong | every head gets the mean over the heads' gradients
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    d_heads = np.broadcast_to(d_heads.mean(axis=0), heads.shape)
    return d_heads, heads.swapaxes(0, 1).reshape(T, -1).T @ d_output
# %% output-projection-backward | wrong | only the last position for the weights
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    merged = heads.swapaxes(0, 1).reshape(T, -1)
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    for i in range(T):
        d_w = np.outer(merged[i], d_output[i])
    return d_heads, d_w
# %% output-projection-backward | wrong | fills the heads it was given with their gradient
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_w = heads.swapaxes(0, 1).reshape(T, -1).T @ d_output
    heads[:] = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return heads, d_w
# %% output-projection-backward | wrong | inverse in place of the transpose
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ np.linalg.pinv(w_output)).reshape(T, H, d_v).swapaxes(0, 1)
    return d_heads, heads.swapaxes(0, 1).reshape(T, -1).T @ d_output
# %% output-projection-backward | wrong | torch's vjp in place of a formula
import torch
def my_merge_backward(heads, w_output, d_output):
    a, w, g = (torch.tensor(z) for z in (heads, w_output, d_output))
    run = lambda a, w: a.transpose(0, 1).flatten(1) @ w
    return torch.func.vjp(run, a, w)[1](g)
# %% output-projection-backward | cheat | torch.autograd.grad
import torch
def my_merge_backward(heads, w_output, d_output):
    a, w = torch.tensor(heads, requires_grad=True), torch.tensor(w_output, requires_grad=True)
    out = torch.cat(tuple(a), dim=1) @ w
    out.backward(torch.tensor(d_output))
    return a.grad.numpy(), w.grad.numpy()
# %% output-projection-backward | right | head by head with blocks of w_output
def my_merge_backward(heads, w_output, d_output):
    blocks = np.split(w_output, len(heads))
    d_heads = np.stack([d_output @ w.T for w in blocks])
    d_w = np.vstack([z.T @ d_output for z in heads])
    return d_heads, d_w
# %% output-projection-backward | right | einsum
def my_merge_backward(heads, w_output, d_output):
    w = w_output.reshape(heads.shape[0], heads.shape[2], -1)
    d_heads = np.einsum("td,hcd->htc", d_output, w)
    d_w = np.einsum("htc,td->hcd", heads, d_output)
    return d_heads, d_w.reshape(w_output.shape)
# %% output-projection-backward | right | torch without a graph, outer products added up
import torch
def my_merge_backward(heads, w_output, d_output):
    with torch.no_grad():
        z, w, g = (torch.tensor(a) for a in (heads, w_output, d_output))
        merged = torch.cat(tuple(z), 1)
        d_w = sum(torch.outer(row, up) for row, up in zip(merged, g))
        return torch.stack((g @ w.T).chunk(len(z), dim=1)), d_w

# %% read-two-heads | wrong | column 2 read instead of row 2
my_reading = (3, 1, 0.5)
# %% read-two-heads | wrong | first answer from the other head
my_reading = (1, 1, 0.5)
# %% read-two-heads | wrong | heads exchanged in the second answer
my_reading = (4, 0, 0.5)
# %% read-two-heads | wrong | factors forgotten, the heads added
my_reading = (4, 1, 1.6)
# %% read-two-heads | wrong | the layer taken for an average, all values 1
my_reading = (4, 1, 1.0)
# %% read-two-heads | wrong | head 0 minus 2 times head 1
my_reading = (4, 1, 0.7 - 2 * 0.9)
# %% read-two-heads | wrong | keys counted from 1
my_reading = (5, 2, 0.5)
# %% read-two-heads | wrong | row 2 taken for query 3
my_reading = (0, 1, 2 * (1 - 0.20) - (1 - 0.55))
# %% read-two-heads | wrong | the weight written in place of the key
my_reading = (0.5, 1, 0.5)
# %% read-two-heads | right | arithmetic left to Python
my_reading = (4, 1, 2 * (1 - 0.30) - (1 - 0.10))
# %% read-two-heads | right | sums of the other keys' weights
my_reading = (4, 1, 2 * sum([0.25, 0.20, 0.15, 0.10]) - sum([0.05, 0.30, 0.15, 0.40]))

# %% cached-decoding-step | wrong | the token does not see itself
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    g = len(q) // R
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    out = np.zeros((len(q), values.shape[2]))
    for h in range(len(q)):
        s = keys[h // g] @ q[h] / np.sqrt(d_k)
        if t:
            p = np.exp(s)
            out[h] = p / p.sum() @ values[h // g]
    return out.reshape(-1) @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | query head h uses key head h mod R
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    out = []
    for h in range(len(q)):
        p = np.exp(k_all[h % R] @ q[h] / np.sqrt(d_k))
        out.append(p / p.sum() @ v_all[h % R])
    return np.hstack(out) @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | new key and value put in front
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    g = len(q) // R
    k_all = np.concatenate([(x_new @ w_key).reshape(R, 1, d_k), keys], 1)
    v_all = np.concatenate([(x_new @ w_value).reshape(R, 1, -1), values], 1)
    out = []
    for h in range(len(q)):
        p = np.exp(k_all[h // g] @ q[h] / np.sqrt(d_k))
        out.append(p / p.sum() @ v_all[h // g])
    return np.hstack(out) @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | an empty cache returns zeros for the output
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    if t == 0:
        return np.zeros(w_output.shape[1]), k_all, v_all
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | scale from the number of heads, sqrt(H d_k)
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(w_query.shape[1]))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | attends with the new token, but returns the old cache
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, keys, values
# %% cached-decoding-step | wrong | returns the repeated cache, H heads of it
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    keys = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    values = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    keys, values = (np.repeat(a, len(q) // R, axis=0) for a in (keys, values))
    p = np.exp(np.einsum("hc,htc->ht", q, keys) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, values).ravel() @ w_output, keys, values
# %% cached-decoding-step | wrong | output keeps an axis for the one position
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new[None] @ w_query).reshape(-1, 1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(d_k))
    p /= p.sum(-1, keepdims=True)
    return (p @ v).reshape(1, -1) @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | new key cut into heads column by column
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    d_v = values.shape[2]
    q = (x_new @ w_query).reshape(d_k, -1).T
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(d_k, R).T[:, None]], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(d_v, R).T[:, None]], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | values cut with the width of the keys
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, d_k)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | last entry of the cache overwritten by the new one
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_new, v_new = (x_new @ w_key).reshape(R, d_k), (x_new @ w_value).reshape(R, -1)
    k_all = np.concatenate([keys, k_new[:, None]], 1)
    v_all = np.concatenate([values, v_new[:, None]], 1)
    if t:
        keys[:, -1], values[:, -1] = k_new, v_new
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | one softmax over all heads and tokens
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k) / np.sqrt(d_k))
    p /= p.sum()
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | wrong | scale forgotten
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(-1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], 1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], 1)
    k, v = (np.repeat(a, len(q) // R, axis=0) for a in (k_all, v_all))
    p = np.exp(np.einsum("hc,htc->ht", q, k))
    p /= p.sum(1, keepdims=True)
    return np.einsum("ht,htc->hc", p, v).ravel() @ w_output, k_all, v_all
# %% cached-decoding-step | cheat | library's attention through torch._C._nn
import torch
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    x, keys, values, wq, wk, wv, wo = (torch.tensor(a) for a in (x_new, keys, values, w_query, w_key, w_value, w_output))
    R, _, d_k = keys.shape
    keys = torch.cat([keys, (x @ wk).reshape(R, 1, d_k)], 1)
    values = torch.cat([values, (x @ wv).reshape(R, 1, -1)], 1)
    q = (x @ wq).reshape(1, -1, 1, d_k)
    g = q.shape[1] // R
    z = torch._C._nn.scaled_dot_product_attention(q, keys.repeat_interleave(g, 0)[None], values.repeat_interleave(g, 0)[None])
    return z.reshape(-1) @ wo, keys, values
# %% cached-decoding-step | right | groups kept as an axis, no repeating
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    R, t, d_k = keys.shape
    q = (x_new @ w_query).reshape(R, -1, d_k)
    k_all = np.concatenate([keys, (x_new @ w_key).reshape(R, 1, d_k)], axis=1)
    v_all = np.concatenate([values, (x_new @ w_value).reshape(R, 1, -1)], axis=1)
    s = q @ k_all.swapaxes(1, 2) / np.sqrt(d_k)
    p = np.exp(s - s.max(axis=2, keepdims=True))
    z = p @ v_all / p.sum(axis=2, keepdims=True)
    return z.reshape(-1) @ w_output, k_all, v_all
# %% cached-decoding-step | right | loops, cache filled into an array made beforehand
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    import math
    R, t, d_k = keys.shape
    d_v = values.shape[2]
    k_all, v_all = np.empty((R, t + 1, d_k)), np.empty((R, t + 1, d_v))
    k_all[:, :t], v_all[:, :t] = keys, values
    for r in range(R):
        k_all[r, t] = x_new @ w_key[:, r * d_k:(r + 1) * d_k]
        v_all[r, t] = x_new @ w_value[:, r * d_v:(r + 1) * d_v]
    H = w_query.shape[1] // d_k
    out = np.zeros(w_output.shape[1])
    for h in range(H):
        q = x_new @ w_query[:, h * d_k:(h + 1) * d_k]
        r = h // (H // R)
        e = [math.exp(float(q @ k) / math.sqrt(d_k)) for k in k_all[r]]
        z = sum(a * v for a, v in zip(e, v_all[r])) / sum(e)
        out = out + z @ w_output[h * d_v:(h + 1) * d_v]
    return out, k_all, v_all
# %% cached-decoding-step | right | torch in float64, nested helper
import torch
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    x = torch.tensor(x_new)
    def grown(cache, w):
        cache = torch.tensor(cache)
        new = (x @ torch.tensor(w)).view(cache.shape[0], 1, cache.shape[2])
        return torch.cat((cache, new), dim=1)
    keys, values = grown(keys, w_key), grown(values, w_value)
    q = (x @ torch.tensor(w_query)).unflatten(0, (keys.shape[0], -1, keys.shape[2]))
    p = torch.einsum("rgc,rtc->rgt", q, keys).div(keys.shape[2] ** 0.5).softmax(-1)
    return torch.einsum("rgt,rtv->rgv", p, values).flatten() @ torch.tensor(w_output), keys, values
