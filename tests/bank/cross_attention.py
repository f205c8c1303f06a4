# %% cross-attention | wrong | normalised once for all pairs instead of row by row, then times q_len
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])
    e = np.exp(s - s.max())
    return len(x) * (e / e.sum()) @ (y @ w_value)
# %% cross-attention | wrong | sequences padded to one length, zeros counted as keys
def my_cross_attention(x, y, w_query, w_key, w_value):
    n = max(len(x), len(y))
    q = np.zeros((n, w_query.shape[1])); q[:len(x)] = x @ w_query
    k = np.zeros((n, w_key.shape[1])); k[:len(y)] = y @ w_key
    v = np.zeros((n, w_value.shape[1])); v[:len(y)] = y @ w_value
    p = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return (p / p.sum(axis=1, keepdims=True) @ v)[:len(x)]
# %% cross-attention | wrong | squeezed, a single query loses its axis
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return np.squeeze(p / p.sum(axis=1, keepdims=True) @ (y @ w_value))
# %% cross-attention | wrong | target rows shared out to two threads
import threading
def my_cross_attention(x, y, w_query, w_key, w_value):
    out = np.zeros((len(x), w_value.shape[1]))
    k, v = y @ w_key, y @ w_value
    def part(rows):
        p = np.exp(x[rows] @ w_query @ k.T / np.sqrt(k.shape[1]))
        out[rows] = p / p.sum(axis=1, keepdims=True) @ v
    jobs = [threading.Thread(target=part, args=(slice(i, None, 2),)) for i in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    return out
# %% cross-attention | cheat | nn.MultiheadAttention with kdim and vdim
import torch
def my_cross_attention(x, y, w_query, w_key, w_value):
    q, k, v = (torch.tensor(a) for a in (x @ w_query, y @ w_key, y @ w_value))
    d, d_v = q.shape[1], v.shape[1]
    layer = torch.nn.MultiheadAttention(d, 1, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(d, dtype=torch.float64).repeat(3, 1))
        _, p = layer(q[None], k[None], k[None], need_weights=True)
    return (p[0] @ v).numpy()
# %% cross-attention | right | torch with softmax in float32
import torch
def my_cross_attention(x, y, w_query, w_key, w_value):
    x, y, w_query, w_key, w_value = [torch.tensor(a).float() for a in (x, y, w_query, w_key, w_value)]
    s = torch.addmm(torch.zeros(1), x @ w_query, (y @ w_key).t()) / w_key.size(1) ** 0.5
    return torch.softmax(s, dim=-1).matmul(y).matmul(w_value)
# %% repair-padding-both-sides | cheat | torch's attention with attn_mask, composed name
import torch
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    f = getattr(torch._C._nn, "scaled_dot_product" + "_attention")
    real = np.arange(key.shape[1]) < source_lengths[:, None]
    out = f(*(torch.tensor(a) for a in (query, key, value)), attn_mask=torch.tensor(real)[:, None, :]).numpy()
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], out, 0.0)
# %% loss-over-real-tokens | wrong | gradient from torch's functional jacobian
import torch
def my_loss(logits, target, padding):
    real = torch.tensor(target) != padding
    pick = lambda z: -z.log_softmax(-1).gather(-1, torch.tensor(target)[..., None])[..., 0][real].mean()
    z = torch.tensor(logits)
    return pick(z).item(), torch.autograd.functional.jacobian(pick, z).numpy()
# %% loss-over-real-tokens | cheat | torch's nll_loss with ignore_index, after its log_softmax
import torch
def my_loss(logits, target, padding):
    log_p = torch.tensor(logits).log_softmax(-1)
    loss = torch.nn.functional.nll_loss(log_p.flatten(0, 1), torch.tensor(target).flatten().long(), ignore_index=padding)
    real = target != padding
    d = np.exp(log_p.numpy()) - np.eye(logits.shape[-1])[target]
    return float(loss), d * real[..., None] / real.sum()
# %% source-gradient | wrong | central differences, which the text forbids
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    def value_of(source):
        s = (x @ w_query) @ (source @ w_key).T / np.sqrt(w_query.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True) @ (source @ w_value) * d_output).sum()

    out = np.zeros(y.shape)
    for place in np.ndindex(*y.shape):
        tiny = np.zeros(y.shape)
        tiny[place] = 1e-5
        out[place] = (value_of(y + tiny) - value_of(y - tiny)) / 2e-5
    return out
# %% source-gradient | wrong | forward-mode automatic differentiation
import torch
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    x, w_query, w_key, w_value, g = (torch.tensor(a) for a in (x, w_query, w_key, w_value, d_output))
    def run(y):
        p = (x @ w_query @ (y @ w_key).T / w_key.shape[1] ** 0.5).softmax(1)
        return (p @ y @ w_value * g).sum()
    return torch.func.jacfwd(run)(torch.tensor(y)).numpy()
# %% source-gradient | cheat | torch.func.grad under a short name
from torch.func import grad as slope
import torch
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    x, y, a, b, c, g = map(torch.tensor, (x, y, w_query, w_key, w_value, d_output))
    loss = lambda y: (torch.softmax(x @ a @ (y @ b).T / a.shape[1] ** 0.5, 1) @ (y @ c) * g).sum()
    return slope(loss)(y).numpy()
# %% context-slope | cheat | derivative of the context by SymPy's own method
from sympy import Function
_a = Function("a")(h_1)
_c = _a * h_1 + (1 - _a) * h_2
my_context_slope = _c.diff(h_1).subs(_a.diff(h_1), alpha * (1 - alpha) * k * s).subs(_a, alpha)
# %% read-date-alignment | wrong | last answer to one digit
my_reading = (2, 3, 0.18, 0.4)
# %% greedy-decoding | wrong | stops before the first step if start equals end
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token, t = [], start, 0
    while token != end and t < len(positions):
        x = embeddings[token] + positions[t]
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token, t = rows[-1].argmax(), t + 1
    return np.array(rows).reshape(-1, w_output.shape[1])
# %% greedy-decoding | wrong | position 0 at every step
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for _ in positions:
        x = embeddings[token] + positions[0]
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.array(rows)
# %% greedy-decoding | wrong | scale from d_x
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(len(x)))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.array(rows)
# %% greedy-decoding | wrong | positions added to the embeddings in place
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token]
        x += position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.array(rows)
# %% greedy-decoding | wrong | squeezed, a single step loses its axis
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.squeeze(np.array(rows))
# %% greedy-decoding | wrong | last position never used
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for t in range(max(1, len(positions) - 1)):
        x = embeddings[token] + positions[t]
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.array(rows)
# %% greedy-decoding | cheat | torch's attention for the single query
import torch
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    from torch.nn.functional import scaled_dot_product_attention as ask
    k, v = (torch.tensor(y @ w)[None] for w in (w_key, w_value))
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        z = ask(torch.tensor(x @ w_query)[None, None], k, v)[0, 0].numpy()
        rows.append((x + z) @ w_output)
        token = int(rows[-1].argmax())
        if token == end:
            break
    return np.stack(rows)
