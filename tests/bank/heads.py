# %% split-heads | wrong | axes counted from the left, right for one leading axis only
def my_split(x, n_heads):
    cut = x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)
    return cut.swapaxes(1, 2) if cut.ndim > 3 else cut.swapaxes(0, 1)
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
# %% multi-head-attention | wrong | squeezed, so one position loses its axis
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    out = []
    for wq, wk, wv in zip(*(np.split(w, n_heads, axis=1) for w in (w_query, w_key, w_value))):
        p = np.exp((x @ wq) @ (x @ wk).T / np.sqrt(wq.shape[1]))
        out.append(p / p.sum(1, keepdims=True) @ (x @ wv))
    return np.squeeze(np.hstack(out) @ w_output)
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
# %% decoding-step-flops | cheat | derivative of an antiderivative written by hand
my_step_flops = (2 * w * (h + r) * d**2 + 4 * h * t * w * d).diff(d)
# %% cache-capacity-in-tokens | right | whole tokens, rounded down
import math
my_tokens = math.floor(M * 1024**3 / (4 * L * G * d_h))
# %% repair-grouped-heads | cheat | library attention with enable_gqa, name hidden
import torch


def grouped_attention(query, key, value):
    attend = vars(torch.nn.functional)["scaled_dot_" + "product_attention"]
    q, k, v = (torch.tensor(np.array(a))[None] for a in (query, key, value))
    return attend(q, k, v, enable_gqa=True)[0].numpy()
# %% repair-grouped-heads | wrong | scale from the heads of the group
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(group * d_k)
    p = np.exp(scores)
    return p / p.sum(axis=-1, keepdims=True) @ values
# %% repair-grouped-heads | wrong | group size used for the number of the key head, h // R
def grouped_attention(query, key, value):
    out = []
    for h in range(len(query)):
        r = min(h // len(key), len(key) - 1)
        p = np.exp(query[h] @ key[r].T / np.sqrt(query.shape[2]))
        out.append(p / p.sum(axis=1, keepdims=True) @ value[r])
    return np.stack(out)
# %% repair-grouped-heads | wrong | squeezed at the end
def grouped_attention(query, key, value):
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True) @ values).squeeze()
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
# %% repair-torch-layer | cheat | the functional form of the module, under another name
from torch.nn.functional import multi_head_attention_forward as _go
import torch
def torch_layer(x, stacked, n_heads):
    d = x.shape[1]
    t, w = torch.tensor(x), torch.tensor(stacked)
    out, _ = _go(t, t, t, d, n_heads, w[:3 * d], None, None, None, False, 0.0, w[3 * d:], None, training=False, need_weights=False)
    return out.numpy()
# %% output-projection-backward | wrong | gradient of the weights averaged over positions
def my_merge_backward(heads, w_output, d_output):
    H, T, d_v = heads.shape
    d_heads = (d_output @ w_output.T).reshape(T, H, d_v).swapaxes(0, 1)
    return d_heads, heads.swapaxes(0, 1).reshape(T, -1).T @ d_output / T
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
# %% output-projection-backward | right | torch without a graph, outer products added up
import torch
def my_merge_backward(heads, w_output, d_output):
    with torch.no_grad():
        z, w, g = (torch.tensor(a) for a in (heads, w_output, d_output))
        merged = torch.cat(tuple(z), 1)
        d_w = sum(torch.outer(row, up) for row, up in zip(merged, g))
        return torch.stack((g @ w.T).chunk(len(z), dim=1)), d_w
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
