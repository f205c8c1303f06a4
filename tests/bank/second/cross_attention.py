# %% cross-attention | wrong | source asks the target
def my_cross_attention(x, y, w_query, w_key, w_value):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = k @ q.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).T @ v
# %% cross-attention | wrong | values from the target
def my_cross_attention(x, y, w_query, w_key, w_value):
    q, k, v = x @ w_query, y @ w_key, x @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v
# %% cross-attention | wrong | scale from the width of the target
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(x.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value)
# %% cross-attention | wrong | scale from the number of keys
def my_cross_attention(x, y, w_query, w_key, w_value):
    k = y @ w_key
    s = x @ w_query @ k.T / np.sqrt(len(k))
    p = np.exp(s)
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value)
# %% cross-attention | wrong | softmax along the target
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
    p = np.exp(s - s.max(axis=0))
    return p / p.sum(axis=0) @ (y @ w_value)
# %% cross-attention | wrong | scale forgotten
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value)
# %% cross-attention | wrong | causal mask between target and source
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
    p = np.tril(np.exp(s))
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value)
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
# %% cross-attention | wrong | sums of the weights without keepdims
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
    p = np.exp(s)
    return p / p.sum(axis=1) @ (y @ w_value)
# %% cross-attention | wrong | scaled in place in w_query
def my_cross_attention(x, y, w_query, w_key, w_value):
    w_query *= w_query.shape[1] ** -0.5
    p = np.exp(x @ w_query @ (y @ w_key).T)
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value)
# %% cross-attention | wrong | rounded to half precision inside
def my_cross_attention(x, y, w_query, w_key, w_value):
    x, y, w_query, w_key, w_value = (a.astype(np.float16) for a in (x, y, w_query, w_key, w_value))
    s = (x @ w_query @ (y @ w_key).T).astype(np.float64) / np.sqrt(w_key.shape[1])
    p = np.exp(s)
    return p / p.sum(axis=1, keepdims=True) @ (y @ w_value).astype(np.float64)
# %% cross-attention | cheat | torch's attention hidden behind an alias of nn.functional
import torch
from torch.nn import functional as tools
_mix = vars(tools)["scaled_dot_product_attention"]
def my_cross_attention(x, y, w_query, w_key, w_value):
    q, k, v = (torch.tensor(a)[None] for a in (x @ w_query, y @ w_key, y @ w_value))
    return _mix(q, k, v)[0].numpy()
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
# %% cross-attention | right | one einsum for the scores, one for the output
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = np.einsum("ia,ac,bc,jb->ij", x, w_query, w_key, y, optimize=True)
    p = np.exp(s / w_key.shape[1] ** 0.5)
    return np.einsum("ij,jb,bv->iv", p, y, w_value, optimize=True) / np.einsum("ij->i", p)[:, None]
# %% cross-attention | right | loops, math.exp, lists
def my_cross_attention(x, y, w_query, w_key, w_value):
    from math import exp, sqrt
    keys, values = [row @ w_key for row in y], [row @ w_value for row in y]
    out = []
    for row in x:
        q = row @ w_query
        s = [float(q.dot(k)) / sqrt(len(q)) for k in keys]
        e = [exp(a - max(s)) for a in s]
        out.append(sum(a / sum(e) * v for a, v in zip(e, values)))
    return np.array(out)
# %% cross-attention | right | torch with softmax in float32
import torch
def my_cross_attention(x, y, w_query, w_key, w_value):
    x, y, w_query, w_key, w_value = [torch.tensor(a).float() for a in (x, y, w_query, w_key, w_value)]
    s = torch.addmm(torch.zeros(1), x @ w_query, (y @ w_key).t()) / w_key.size(1) ** 0.5
    return torch.softmax(s, dim=-1).matmul(y).matmul(w_value)
# %% cross-attention | right | columns as positions, turned at the end
def my_cross_attention(x, y, w_query, w_key, w_value):
    Q, K, V = w_query.T @ x.T, w_key.T @ y.T, w_value.T @ y.T
    S = K.T @ Q / np.sqrt(len(Q))
    P = np.exp(S - np.logaddexp.reduce(S, axis=0))
    return (V @ P).T

# %% repair-padding-both-sides | wrong | only the keys' lengths repaired
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < source_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
# %% repair-padding-both-sides | wrong | only the queries' lengths repaired
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < target_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
# %% repair-padding-both-sides | wrong | padding filled with -1e9, real scores may be smaller
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -1e9)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
# %% repair-padding-both-sides | wrong | scores multiplied by the mask, padding gets score 0
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = scores * real_keys[:, None, :]
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p @ value * (np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None]
# %% repair-padding-both-sides | wrong | weights zeroed behind the softmax, rows no longer sum to 1
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    p = p * (np.arange(key.shape[1]) < source_lengths[:, None])[:, None, :]
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], p @ value, 0.0)
# %% repair-padding-both-sides | wrong | exp without the maximum, large scores overflow
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    p = np.where(real_keys[:, None, :], np.exp(scores), 0.0)
    p = p / p.sum(axis=-1, keepdims=True)
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], p @ value, 0.0)
# %% repair-padding-both-sides | wrong | maximum taken over padding too, real weights may underflow to 0 / 0
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = p * (np.arange(key.shape[1]) < source_lengths[:, None])[:, None, :]
    p = p / p.sum(axis=-1, keepdims=True)
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], p @ value, 0.0)
# %% repair-padding-both-sides | wrong | one more real row on each side, <= for <
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) <= source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.where((np.arange(query.shape[1]) <= target_lengths[:, None])[:, :, None], p @ value, 0.0)
# %% repair-padding-both-sides | wrong | rows of target padding left as they are
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ value
# %% repair-padding-both-sides | wrong | rows of target padding are NaN
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    with np.errstate(all="ignore"):
        scores = np.where(real_keys[:, None, :] & real_queries[:, :, None], scores, -np.inf)
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return p / p.sum(axis=-1, keepdims=True) @ value
# %% repair-padding-both-sides | wrong | lengths of the first example for the whole batch
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    n, m = int(source_lengths[0]), int(target_lengths[0])
    scores = query @ key[:, :n].swapaxes(1, 2) / np.sqrt(query.shape[2])
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    out = p / p.sum(axis=-1, keepdims=True) @ value[:, :n]
    out[:, m:] = 0.0
    return out
# %% repair-padding-both-sides | wrong | zeroes the padding of value in place
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    value[~real_keys] = 0.0
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], p @ value, 0.0)
# %% repair-padding-both-sides | cheat | torch's attention with attn_mask, composed name
import torch
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    f = getattr(torch._C._nn, "scaled_dot_product" + "_attention")
    real = np.arange(key.shape[1]) < source_lengths[:, None]
    out = f(*(torch.tensor(a) for a in (query, key, value)), attn_mask=torch.tensor(real)[:, None, :]).numpy()
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[:, :, None], out, 0.0)
# %% repair-padding-both-sides | right | each example cut to its real rows
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    out = np.zeros(query.shape[:2] + value.shape[2:])
    for b, (n, m) in enumerate(zip(source_lengths, target_lengths)):
        s = query[b, :m] @ key[b, :n].T / np.sqrt(query.shape[2])
        p = np.exp(s - s.max(axis=1, keepdims=True))
        out[b, :m] = p / p.sum(axis=1, keepdims=True) @ value[b, :n]
    return out
# %% repair-padding-both-sides | right | torch with masked_fill and softmax
import torch
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    q, k, v, n, m = (torch.tensor(a) for a in (query, key, value, source_lengths, target_lengths))
    s = torch.einsum("bic,bjc->bij", q, k) / q.shape[2] ** 0.5
    hidden = torch.arange(k.shape[1])[None, :] >= n[:, None]
    p = s.masked_fill(hidden[:, None], float("-inf")).softmax(dim=2)
    past = torch.arange(q.shape[1])[None, :] >= m[:, None]
    return (p @ v).masked_fill(past[..., None], 0.0)
# %% repair-padding-both-sides | right | bias of zeros and minus infinities added, log-sum-exp
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    steps = lambda a: np.arange(a.shape[1])
    bias = np.array([[0.0 if j < n else -np.inf for j in steps(key)] for n in source_lengths])
    s = query @ np.swapaxes(key, -1, -2) * query.shape[-1] ** -0.5 + bias[:, None]
    p = np.exp(s - np.logaddexp.reduce(s, axis=-1, keepdims=True))
    out = p @ value
    out[np.less_equal.outer(np.asarray(target_lengths), steps(query))] = 0
    return out

# %% loss-over-real-tokens | wrong | mean over all positions, padding counted
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    loss = -(log_p * hot).sum(-1)[real].sum() / target.size
    return loss, real[..., None] * (np.exp(log_p) - hot) / target.size
# %% loss-over-real-tokens | wrong | mean of each example, then mean of the batch
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    n = np.maximum(real.sum(1), 1)
    loss = ((-(log_p * hot).sum(-1) * real).sum(1) / n).mean()
    return loss, real[..., None] * (np.exp(log_p) - hot) / n[:, None, None] / len(target)
# %% loss-over-real-tokens | wrong | gradient not masked
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -(log_p * hot).sum(-1)[real].mean(), (np.exp(log_p) - hot) / real.sum()
# %% loss-over-real-tokens | wrong | no maximum subtracted, exp overflows
def my_loss(logits, target, padding):
    with np.errstate(all="ignore"):
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        real = target != padding
        hot = np.eye(logits.shape[-1])[target]
        loss = -np.log((p * hot).sum(-1))[real].mean()
    return loss, real[..., None] * (p - hot) / real.sum()
# %% loss-over-real-tokens | wrong | log of the softmax, infinite where a probability underflows
def my_loss(logits, target, padding):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    with np.errstate(divide="ignore"):
        loss = -np.log((p * hot).sum(-1))[real].mean()
    return loss, real[..., None] * (p - hot) / real.sum()
# %% loss-over-real-tokens | wrong | log kept finite by 1e-12
def my_loss(logits, target, padding):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -np.log((p * hot).sum(-1) + 1e-12)[real].mean(), real[..., None] * (p - hot) / real.sum()
# %% loss-over-real-tokens | wrong | padding taken for a tail that starts at its first token
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = np.cumprod(target != padding, axis=1).astype(bool)
    hot = np.eye(logits.shape[-1])[target]
    n = max(real.sum(), 1)
    return -(log_p * hot).sum(-1)[real].sum() / n, real[..., None] * (np.exp(log_p) - hot) / n
# %% loss-over-real-tokens | wrong | padding believed to be token 0
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != 0
    hot = np.eye(logits.shape[-1])[target]
    n = max(real.sum(), 1)
    return -(log_p * hot).sum(-1)[real].sum() / n, real[..., None] * (np.exp(log_p) - hot) / n
# %% loss-over-real-tokens | wrong | loss in bits
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -(log_p * hot).sum(-1)[real].mean() / np.log(2), real[..., None] * (np.exp(log_p) - hot) / real.sum()
# %% loss-over-real-tokens | wrong | gradient of the sum, not of the mean
def my_loss(logits, target, padding):
    m = logits.max(-1, keepdims=True)
    log_p = logits - m - np.log(np.exp(logits - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -(log_p * hot).sum(-1)[real].mean(), real[..., None] * (np.exp(log_p) - hot)
# %% loss-over-real-tokens | wrong | padding token forbidden as an answer, its logit left out
def my_loss(logits, target, padding):
    z = logits.copy()
    z[..., padding] = -np.inf
    m = z.max(-1, keepdims=True)
    log_p = z - m - np.log(np.exp(z - m).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    loss = -np.take_along_axis(log_p, target[..., None], -1)[..., 0][real].mean()
    return loss, real[..., None] * (np.exp(log_p) - hot) / real.sum()
# %% loss-over-real-tokens | wrong | shifts the logits in place
def my_loss(logits, target, padding):
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -(log_p * hot).sum(-1)[real].mean(), real[..., None] * (np.exp(log_p) - hot) / real.sum()
# %% loss-over-real-tokens | wrong | one maximum for the whole batch
def my_loss(logits, target, padding):
    z = logits - logits.max()
    with np.errstate(all="ignore"):
        log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    return -np.take_along_axis(log_p, target[..., None], -1)[..., 0][real].mean(), real[..., None] * (np.exp(log_p) - hot) / real.sum()
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
# %% loss-over-real-tokens | right | loop over the real positions
def my_loss(logits, target, padding):
    where = [tuple(i) for i in np.argwhere(target != padding)]
    loss, d_logits = 0.0, np.zeros(logits.shape)
    for i in where:
        u = logits[i]
        log_sum = u.max() + np.log(np.exp(u - u.max()).sum())
        loss += (log_sum - u[target[i]]) / len(where)
        d_logits[i] = np.exp(u - log_sum) / len(where)
        d_logits[i][target[i]] -= 1 / len(where)
    return loss, d_logits
# %% loss-over-real-tokens | right | torch's log_softmax, gather and scatter_add
import torch
def my_loss(logits, target, padding):
    log_p = torch.tensor(logits).log_softmax(-1)
    index = torch.tensor(target).long().unsqueeze(-1)
    share = (index != padding).double()
    share = share / share.sum()
    loss = -(log_p.gather(2, index) * share).sum()
    return loss, (log_p.exp() * share).scatter_add(2, index, -share)
# %% loss-over-real-tokens | right | logaddexp and comparison with a row of token numbers
def my_loss(logits, target, padding):
    normal = np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    hot = target[..., None] == np.arange(logits.shape[-1])
    share = np.where(target == padding, 0.0, 1.0 / np.count_nonzero(target != padding))
    surprise = normal[..., 0] - np.where(hot, logits, 0.0).sum(-1)
    return np.vdot(share, surprise), share[..., None] * (np.exp(logits - normal) - hot)

# %% source-gradient | wrong | way over the values only
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p.T @ d_output @ w_value.T
# %% source-gradient | wrong | way over the keys only
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T
# %% source-gradient | wrong | scale forgotten on the way back
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return d_s.T @ q @ w_key.T + p.T @ d_output @ w_value.T
# %% source-gradient | wrong | softmax's derivative p (1 - p), diagonal only
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_s = p * (1 - p) * (d_output @ v.T)
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T + p.T @ d_output @ w_value.T
# %% source-gradient | wrong | sum of the softmax's gradient along the target
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(0, keepdims=True))
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T + p.T @ d_output @ w_value.T
# %% source-gradient | wrong | key and value gradients exchanged their projections
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_value.T + p.T @ d_output @ w_key.T
# %% source-gradient | wrong | gradient with respect to the target
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return d_s @ k / np.sqrt(q.shape[1]) @ w_query.T
# %% source-gradient | wrong | queries taken from the source as in self-attention
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    own = d_s @ k / np.sqrt(q.shape[1]) @ w_query.T
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T + p.T @ d_output @ w_value.T + own
# %% source-gradient | wrong | forward difference quotient, too few digits
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    def run(y):
        s = x @ w_query @ (y @ w_key).T / np.sqrt(w_key.shape[1])
        p = np.exp(s - s.max(1, keepdims=True))
        return (p / p.sum(1, keepdims=True) @ (y @ w_value) * d_output).sum()
    out = np.zeros_like(y)
    for i in np.ndindex(y.shape):
        step = np.zeros_like(y)
        step[i] = 1e-6
        out[i] = (run(y + step) - run(y)) / 1e-6
    return out
# %% source-gradient | wrong | mean over the target rows
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return (d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T + p.T @ d_output @ w_value.T) / len(x)
# %% source-gradient | wrong | scale from the width of the source
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    r = np.sqrt(y.shape[1])
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / r
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    return d_s.T @ q / r @ w_key.T + p.T @ d_output @ w_value.T
# %% source-gradient | wrong | d_output turned into softmax terms in place
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d_value = p.T @ d_output
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(1, keepdims=True))
    d_output -= d_output.mean()
    return d_s.T @ q / np.sqrt(q.shape[1]) @ w_key.T + d_value @ w_value.T
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
# %% source-gradient | right | row by row with the Jacobian of the softmax
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    root = np.sqrt(w_query.shape[1])
    k, v = y @ w_key, y @ w_value
    total = np.zeros(y.shape)
    for row, g in zip(x, d_output):
        q = row @ w_query
        e = np.exp(k @ q / root)
        p = e / e.sum()
        d_s = (np.diag(p) - np.outer(p, p)) @ (v @ g)
        total += np.outer(d_s, w_key @ q) / root + np.outer(p, w_value @ g)
    return total
# %% source-gradient | right | einsum, with the output in the softmax's sum
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    scale = w_key.shape[1] ** -0.5
    form = np.einsum("ia,ac,bc->ib", x, w_query, w_key) * scale
    p = np.exp(np.einsum("ib,jb->ij", form, y))
    p /= np.einsum("ij->i", p)[:, None]
    back = np.einsum("iv,bv->ib", d_output, w_value)
    centred = y - np.einsum("ij,jb->ib", p, y)[:, None]
    d_s = np.einsum("ij,ib,ijb->ij", p, back, centred)
    return np.einsum("ij,ib->jb", d_s, form) + np.einsum("ij,ib->jb", p, back)
# %% source-gradient | right | torch without a graph, double precision
import torch
@torch.no_grad()
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    x, y, a, b, c, g = (torch.tensor(z) for z in (x, y, w_query, w_key, w_value, d_output))
    q = x @ a / a.shape[1] ** 0.5
    p = torch.softmax(q @ (y @ b).T, dim=1)
    d_p = g @ (y @ c).T
    d_s = p * d_p - p * (p * d_p).sum(dim=1, keepdim=True)
    return torch.cat((d_s.T @ q, p.T @ g), 1) @ torch.cat((b, c), 1).T

# %% context-slope | wrong | weight held fixed
my_context_slope = alpha
# %% context-slope | wrong | value held fixed, way over the weight only
my_context_slope = alpha * (1 - alpha) * k * s * (h_1 - h_2)
# %% context-slope | wrong | derivative by the score, not by h_1
my_context_slope = alpha + alpha * (1 - alpha) * (h_1 - h_2)
# %% context-slope | wrong | h_2 forgotten in the second term
my_context_slope = alpha + alpha * (1 - alpha) * k * s * h_1
# %% context-slope | wrong | difference the wrong way round
my_context_slope = alpha + alpha * (1 - alpha) * k * s * (h_2 - h_1)
# %% context-slope | wrong | slope of alpha taken as alpha alone
my_context_slope = alpha + alpha * k * s * (h_1 - h_2)
# %% context-slope | wrong | sum of the annotations in place of the difference
my_context_slope = alpha * (1 + (1 - alpha) * k * s * (h_1 + h_2))
# %% context-slope | wrong | factor k forgotten
my_context_slope = alpha * (1 + (1 - alpha) * s * (h_1 - h_2))
# %% context-slope | wrong | derivative by h_2
my_context_slope = (1 - alpha) * (1 - alpha * k * s * (h_1 - h_2))
# %% context-slope | cheat | derivative of the context by SymPy's own method
from sympy import Function
_a = Function("a")(h_1)
_c = _a * h_1 + (1 - _a) * h_2
my_context_slope = _c.diff(h_1).subs(_a.diff(h_1), alpha * (1 - alpha) * k * s).subs(_a, alpha)
# %% context-slope | right | two ways named and added
_through_value = alpha
_through_weight = alpha * (1 - alpha) * (s * k) * (h_1 - h_2)
my_context_slope = _through_value + _through_weight
# %% context-slope | right | with the context's distance from h_1
_c = alpha * h_1 + (1 - alpha) * h_2
my_context_slope = alpha * (1 + k * s * (h_1 - _c))
# %% context-slope | right | multiplied out by expand
from sympy import expand
my_context_slope = expand(alpha - k * s * alpha * (alpha - 1) * (h_1 - h_2))

# %% source-cache-flops | wrong | multiply-adds counted once
my_flops = (T_k * d_y * (d_k + d_v), d_x * d_k + T_k * (d_k + d_v), T_k * d_y * (d_k + d_v) + T_q * (d_x * d_k + T_k * (d_k + d_v)))
# %% source-cache-flops | wrong | source projected again at each step in the total
_a = 2 * T_k * d_y * (d_k + d_v)
_b = 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, T_q * (_a + _b))
# %% source-cache-flops | wrong | total of one step only
_a = 2 * T_k * d_y * (d_k + d_v)
_b = 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, _a + _b)
# %% source-cache-flops | wrong | query projection forgotten
_a = 2 * T_k * d_y * (d_k + d_v)
_b = 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, _a + T_q * _b)
# %% source-cache-flops | wrong | source projected from d_x
_a = 2 * T_k * d_x * (d_k + d_v)
_b = 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, _a + T_q * _b)
# %% source-cache-flops | wrong | T_q and T_k exchanged
_a = 2 * T_q * d_y * (d_k + d_v)
_b = 2 * d_x * d_k + 2 * T_q * (d_k + d_v)
my_flops = (_a, _b, _a + T_k * _b)
# %% source-cache-flops | wrong | weighted sum counted with d_k, as if d_v were equal
_a = 2 * T_k * d_y * (d_k + d_v)
_b = 2 * d_x * d_k + 4 * T_k * d_k
my_flops = (_a, _b, _a + T_q * _b)
# %% source-cache-flops | wrong | keys only in the cache
_a = 2 * T_k * d_y * d_k
_b = 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, _a + T_q * _b)
# %% source-cache-flops | wrong | cache grows as in self-attention
_a = 2 * T_k * d_y * (d_k + d_v)
_b = 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (_a, _b, _a + T_q * 2 * d_x * d_k + (d_k + d_v) * T_q * (T_q + 1))
# %% source-cache-flops | right | matrix products counted by a helper
_mm = lambda n, m, r: 2 * n * m * r
_a = _mm(T_k, d_y, d_k) + _mm(T_k, d_y, d_v)
_b = _mm(1, d_x, d_k) + _mm(1, d_k, T_k) + _mm(1, T_k, d_v)
my_flops = _a, _b, sum([_a] + [_b] * T_q)
# %% source-cache-flops | right | the numbers worked out by hand
my_flops = (153600, 4224, 280320)

# %% read-date-alignment | wrong | column 1 of row 1 read
my_reading = (3, 3, 0.18, 0.07 / 0.18)
# %% read-date-alignment | wrong | row with the smallest entry
my_reading = (2, 0, 0.18, 0.07 / 0.18)
# %% read-date-alignment | wrong | weight of token 1 itself, not of the others
my_reading = (2, 3, 0.82, 0.07 / 0.18)
# %% read-date-alignment | wrong | not divided again after hiding
my_reading = (2, 3, 0.18, 0.07)
# %% read-date-alignment | wrong | divided by the hidden weight
my_reading = (2, 3, 0.18, 0.07 / 0.82)
# %% read-date-alignment | wrong | hidden weight shared out equally
my_reading = (2, 3, 0.18, 0.07 + 0.82 / 5)
# %% read-date-alignment | wrong | rows counted from 1
my_reading = (3, 4, 0.18, 0.07 / 0.18)
# %% read-date-alignment | wrong | last answer to one digit
my_reading = (2, 3, 0.18, 0.4)
# %% read-date-alignment | wrong | row 2 taken for the second row
my_reading = (2, 3, 1 - 0.14, 0.12 / (1 - 0.14))
# %% read-date-alignment | wrong | sharpest row for the second
my_reading = (2, 2, 0.18, 0.389)
# %% read-date-alignment | right | three digits
my_reading = (2, 3, 0.18, 0.389)
# %% read-date-alignment | right | a quotient of whole hundredths
my_reading = (2, 3, (7 + 5 + 3 + 2 + 1) / 100, 7 / 18)

# %% greedy-decoding | wrong | the step that chooses the end left out
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        logits = (x + p / p.sum() @ v) @ w_output
        token = logits.argmax()
        if token == end:
            break
        rows.append(logits)
    return np.array(rows).reshape(-1, w_output.shape[1])
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
# %% greedy-decoding | wrong | always as many steps as positions
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        token = rows[-1].argmax()
    return np.array(rows)
# %% greedy-decoding | wrong | start token read at every step
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows = []
    for position in positions:
        x = embeddings[start] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + p / p.sum() @ v) @ w_output)
        if rows[-1].argmax() == end:
            break
    return np.array(rows)
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
# %% greedy-decoding | wrong | residual forgotten
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append(p / p.sum() @ v @ w_output)
        token = rows[-1].argmax()
        if token == end:
            break
    return np.array(rows)
# %% greedy-decoding | wrong | scale forgotten
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        s = k @ (x @ w_query)
        p = np.exp(s - s.max())
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
# %% greedy-decoding | wrong | query, keys and values without the position
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token]
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        rows.append((x + position + p / p.sum() @ v) @ w_output)
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
# %% greedy-decoding | wrong | rows behind the end kept as zeros
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    out, token = np.zeros((len(positions), w_output.shape[1])), start
    for t in range(len(positions)):
        x = embeddings[token] + positions[t]
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        out[t] = (x + p / p.sum() @ v) @ w_output
        token = out[t].argmax()
        if token == end:
            break
    return out
# %% greedy-decoding | wrong | probabilities returned instead of logits
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    k, v = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        p = np.exp(k @ (x @ w_query) / np.sqrt(k.shape[1]))
        logits = (x + p / p.sum() @ v) @ w_output
        e = np.exp(logits - logits.max())
        rows.append(e / e.sum())
        token = logits.argmax()
        if token == end:
            break
    return np.array(rows)
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
# %% greedy-decoding | right | recursion over the steps
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    x = embeddings[start] + positions[0]
    s = y @ w_key @ (x @ w_query) / np.sqrt(w_query.shape[1])
    p = np.exp(s - np.logaddexp.reduce(s))
    row = (x + p @ y @ w_value) @ w_output
    chosen = int(np.argmax(row))
    if chosen == end or len(positions) == 1:
        return row[None]
    rest = my_writer(y, w_query, w_key, w_value, embeddings, positions[1:], w_output, chosen, end)
    return np.concatenate([row[None], rest])
# %% greedy-decoding | right | a generator of rows
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y.dot(w_key), y.dot(w_value)
    def steps():
        token = start
        for place in positions:
            x = embeddings[token] + place
            e = np.exp(keys.dot(x.dot(w_query)) * keys.shape[1] ** -0.5)
            row = (x + e.dot(values) / e.sum()).dot(w_output)
            yield row
            token = row.argmax()
            if token == end:
                return
    return np.vstack(list(steps()))
# %% greedy-decoding | right | torch, all logits of a step from every token made beforehand
import torch
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    y, wq, wk, wv, e, pos, wo = (torch.tensor(a) for a in (y, w_query, w_key, w_value, embeddings, positions, w_output))
    x = e[None] + pos[:, None]
    p = torch.softmax(x @ wq @ (y @ wk).T / wq.shape[1] ** 0.5, dim=-1)
    table = (x + p @ (y @ wv)) @ wo
    path = [int(start)]
    while len(path) <= len(pos):
        path.append(int(table[len(path) - 1, path[-1]].argmax()))
        if path[-1] == end:
            break
    return torch.stack([table[t, token] for t, token in enumerate(path[:-1])])
