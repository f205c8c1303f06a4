# %% cross-attention | wrong | scale with d_v, the width of the values
def my_cross_attention(x, y, w_query, w_key, w_value):
    v = y @ w_value
    s = (x @ w_query) @ (y @ w_key).T / np.sqrt(v.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v
# %% cross-attention | wrong | scale with the width d_x of the target
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = (x @ w_query) @ (y @ w_key).T / np.sqrt(x.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ (y @ w_value)
# %% cross-attention | wrong | normalised once for all pairs instead of row by row, then times q_len
def my_cross_attention(x, y, w_query, w_key, w_value):
    s = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])
    e = np.exp(s - s.max())
    return len(x) * (e / e.sum()) @ (y @ w_value)
# %% cross-attention | cheat | torch's own attention fetched by getattr
import torch


def my_cross_attention(x, y, w_query, w_key, w_value):
    f = getattr(torch.nn.functional, "noitnetta_tcudorp_tod_delacs"[::-1])
    q, k, v = (torch.tensor(np.array(a)) for a in (x @ w_query, y @ w_key, y @ w_value))
    return f(q[None], k[None], v[None])[0].numpy()
# %% cross-attention | right | bilinear form first, one query after the other
def my_cross_attention(x, y, w_query, w_key, w_value):
    form = w_query @ w_key.T / w_key.shape[1] ** 0.5
    values = y @ w_value

    def ask(row):
        e = np.exp(y @ (row @ form))
        return e @ values / e.sum()

    return np.stack([ask(row) for row in x])
# %% cross-attention | right | torch float64, softmax of a transposed score matrix along dim 0
import torch


def my_cross_attention(x, y, w_query, w_key, w_value):
    x, y, wq, wk, wv = (torch.tensor(np.array(a)) for a in (x, y, w_query, w_key, w_value))
    s = (y @ wk) @ (x @ wq).T * wq.shape[1] ** -0.5
    return ((y @ wv).T @ torch.softmax(s, dim=0)).T
# %% repair-padding-both-sides | wrong | sides right, but padding scored -1e9 instead of hidden
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -1e9)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
# %% repair-padding-both-sides | wrong | only the mask of the keys repaired
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < source_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
# %% repair-padding-both-sides | wrong | rows of target padding left as they come out
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% repair-padding-both-sides | wrong | target padding hidden in the scores too: its rows are nan
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    scores = np.where(real_keys[:, None, :] & real_queries[:, :, None], scores, -np.inf)
    with np.errstate(invalid="ignore"):
        unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return real_queries[:, :, None] * (weights @ value)
# %% repair-padding-both-sides | right | each example cut to its real rows, copied into zeros
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    out = np.zeros((*query.shape[:2], value.shape[2]))
    for b, (m, n) in enumerate(zip(source_lengths, target_lengths)):
        s = query[b, :n] @ key[b, :m].T / query.shape[2] ** 0.5
        p = np.exp(s - s.max(axis=1, keepdims=True))
        out[b, :n] = p @ value[b, :m] / p.sum(axis=1, keepdims=True)
    return out
# %% repair-padding-both-sides | right | torch: clean the padding first, masked_fill, softmax, multiply
import torch


def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    q, k, v, m, n = (torch.tensor(np.array(a)) for a in (query, key, value, source_lengths, target_lengths))
    source = torch.arange(k.shape[1])[None] < m[:, None]
    target = (torch.arange(q.shape[1])[None] < n[:, None]).unsqueeze(2)
    q = torch.where(target, q, 0.0)
    k, v = torch.where(source[..., None], k, 0.0), torch.where(source[..., None], v, 0.0)
    s = torch.einsum("bid,bjd->bij", q, k) / q.shape[2] ** 0.5
    p = s.masked_fill(~source[:, None], -torch.inf).softmax(-1)
    return torch.einsum("bij,bjd->bid", p, v) * target
# %% loss-over-real-tokens | wrong | shifts the logits in place: the input is changed
def my_loss(logits, target, padding):
    logits -= logits.max(axis=-1, keepdims=True)
    logp = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    real = (target != padding)[..., None]
    hot = np.eye(logits.shape[-1])[target]
    n = real.sum()
    return -(real * hot * logp).sum() / n, real * (np.exp(logp) - hot) / n
# %% loss-over-real-tokens | wrong | mean of the means of the sentences, empty ones skipped
def my_loss(logits, target, padding):
    top = logits.max(axis=-1, keepdims=True)
    logp = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    real = target != padding
    count = real.sum(axis=1)
    weight = real / np.maximum(count, 1)[:, None] / (count > 0).sum()
    hot = np.eye(logits.shape[-1])[target]
    return -(weight[..., None] * hot * logp).sum(), weight[..., None] * (np.exp(logp) - hot)
# %% loss-over-real-tokens | wrong | padding thought to stand at the end: counts the tokens before the first padding
def my_loss(logits, target, padding):
    top = logits.max(axis=-1, keepdims=True)
    logp = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    real = np.cumsum(target == padding, axis=1) == 0
    n = max(real.sum(), 1)
    hot = np.eye(logits.shape[-1])[target]
    return -(real[..., None] * hot * logp).sum() / n, real[..., None] * (np.exp(logp) - hot) / n
# %% loss-over-real-tokens | wrong | log of a softmax with 1e-12 added: bounded when logits are a thousand apart
def my_loss(logits, target, padding):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    real = target != padding
    hot = np.eye(logits.shape[-1])[target]
    n = real.sum()
    return -(np.log(p + 1e-12) * hot).sum(-1)[real].sum() / n, np.where(real[..., None], p - hot, 0) / n
# %% loss-over-real-tokens | right | boolean selection, flat rows, scatter back
def my_loss(logits, target, padding):
    where = np.nonzero(target != padding)
    rows, words = logits[where], target[where]
    n = len(words)
    logp = rows - np.logaddexp.reduce(rows, axis=1)[:, None]
    loss = -np.mean(logp[np.arange(n), words])
    grad = np.exp(logp) / n
    grad[np.arange(n), words] -= 1 / n
    d_logits = np.zeros(logits.shape)
    d_logits[where] = grad
    return loss, d_logits
# %% loss-over-real-tokens | right | torch log_softmax and gather, gradient by hand
import torch


def my_loss(logits, target, padding):
    u, w = torch.tensor(np.array(logits)), torch.tensor(np.array(target)).long()
    real = (w != padding).to(u.dtype)
    logp = torch.log_softmax(u, dim=-1)
    loss = -(logp.gather(-1, w[..., None])[..., 0] * real).sum() / real.sum()
    grad = logp.exp().scatter_add(-1, w[..., None], -torch.ones_like(logp[..., :1]))
    return float(loss), (grad * (real / real.sum())[..., None]).numpy()
# %% source-gradient | wrong | only the way through the values
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    s = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return p.T @ d_output @ w_value.T
# %% source-gradient | wrong | scale forgotten on the way back
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    s = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    d_p = d_output @ v.T
    d_s = p * (d_p - (p * d_p).sum(axis=1, keepdims=True))
    return d_s.T @ q @ w_key.T + p.T @ d_output @ w_value.T
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
# %% source-gradient | wrong | softmax backward without the mean, p (1 - p) d_p
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    q, k, v = x @ w_query, y @ w_key, y @ w_value
    scale = q.shape[1] ** -0.5
    e = np.exp(q @ k.T * scale)
    p = e / e.sum(axis=1, keepdims=True)
    d_s = p * (1 - p) * (d_output @ v.T)
    return d_s.T @ q @ w_key.T * scale + p.T @ d_output @ w_value.T
# %% source-gradient | right | sum over queries of Eq. context-derivative-by-annotation-like slopes, full softmax Jacobian
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    d_k = w_query.shape[1]
    result = np.zeros(y.shape)
    for row, d_z in zip(x, d_output):
        ask = w_key @ (w_query.T @ row) / d_k**0.5
        e = np.exp(y @ ask)
        p = e / e.sum()
        pull = w_value @ d_z
        jacobian = np.diag(p) - np.outer(p, p)
        result += np.outer(p, pull) + np.outer(jacobian @ (y @ pull), ask)
    return result
# %% source-gradient | right | torch without autograd, centring by the output z
import torch


@torch.no_grad()
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    x, y, wq, wk, wv, dz = (torch.tensor(np.array(a)) for a in (x, y, w_query, w_key, w_value, d_output))
    q, v = x @ wq / wq.shape[1] ** 0.5, y @ wv
    p = torch.softmax(q @ (y @ wk).T, dim=1)
    z = p @ v
    d_s = p * (torch.einsum("iv,jv->ij", dz, v) - (dz * z).sum(dim=1, keepdim=True))
    return torch.einsum("ij,ik,yk->jy", d_s, q, wk) + torch.einsum("ij,iv,yv->jy", p, dz, wv)
# %% context-slope | wrong | the weight only
my_context_slope = alpha
# %% context-slope | wrong | only alpha in the second term, without 1 - alpha
my_context_slope = alpha * (1 + k * s * (h_1 - h_2))
# %% context-slope | wrong | sign of h_1 - h_2
my_context_slope = alpha + alpha * (1 - alpha) * k * s * (h_2 - h_1)
# %% context-slope | wrong | factor s forgotten
my_context_slope = alpha * (1 + k * (1 - alpha) * (h_1 - h_2))
# %% context-slope | right | with the context c, as in Eq. context-derivative-by-annotation
my_context = alpha * h_1 + (1 - alpha) * h_2
my_context_slope = alpha * (1 + (h_1 - my_context) * k * s)
# %% context-slope | right | multiplied out
my_context_slope = (alpha + alpha * (1 - alpha) * s * k * (h_1 - h_2)).expand()
# %% source-cache-flops | wrong | multiply-add counted once
my_flops = (76800, 2112, 76800 + 30 * 2112)
# %% source-cache-flops | wrong | projections of the source counted in each step
my_flops = (153600, 4224 + 153600, 153600 + 30 * (4224 + 153600))
# %% source-cache-flops | wrong | query projection forgotten
my_flops = (153600, 3200, 153600 + 30 * 3200)
# %% source-cache-flops | wrong | d_x in place of d_y for the source
my_flops = (2 * 40 * 32 * 40, 4224, 2 * 40 * 32 * 40 + 30 * 4224)
# %% source-cache-flops | right | plain numbers
my_flops = (153600, 4224, 280320)
# %% source-cache-flops | right | helper for a product
my_gemm = lambda n, k, m: 2 * n * k * m
my_source = my_gemm(40, 48, 16) + my_gemm(40, 48, 24)
my_one = my_gemm(1, 32, 16) + my_gemm(1, 16, 40) + my_gemm(1, 40, 24)
my_flops = (my_source, my_one, my_source + sum(my_one for _ in range(30)))
# %% read-date-alignment | wrong | largest weight of row 1 instead of column 1
my_reading = (3, 3, 0.18, 0.07 / 0.18)
# %% read-date-alignment | wrong | row with the smallest single weight
my_reading = (2, 2, 0.18, 0.07 / 0.18)
# %% read-date-alignment | wrong | not renormalised
my_reading = (2, 3, 0.18, 0.07)
# %% read-date-alignment | wrong | divided by the hidden weight
my_reading = (2, 3, 0.18, 0.07 / 0.82)
# %% read-date-alignment | right | expressions
my_reading = (2, 3, 0.07 + 0.05 + 0.03 + 0.02 + 0.01, 0.07 / (1 - 0.82))
# %% read-date-alignment | right | rounded digits
my_reading = (2, 3, 0.18, 0.389)
# %% greedy-decoding | wrong | logits of z only, x forgotten
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        s = keys @ (x @ w_query) / np.sqrt(w_query.shape[1])
        p = np.exp(s - s.max())
        rows.append(p / p.sum() @ values @ w_output)
        token = int(rows[-1].argmax())
        if token == end:
            break
    return np.stack(rows)
# %% greedy-decoding | wrong | stops before the step that chooses `end` is kept
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y @ w_key, y @ w_value
    rows, token = [], start
    for position in positions:
        x = embeddings[token] + position
        s = keys @ (x @ w_query) / np.sqrt(w_query.shape[1])
        p = np.exp(s - s.max())
        logits = (x + p / p.sum() @ values) @ w_output
        token = int(logits.argmax())
        if token == end:
            break
        rows.append(logits)
    return np.array(rows).reshape(len(rows), w_output.shape[1])
# %% greedy-decoding | wrong | `while token != end`: writes nothing if start equals end
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y @ w_key, y @ w_value
    rows, token = [], start
    while token != end and len(rows) < len(positions):
        x = embeddings[token] + positions[len(rows)]
        s = keys @ (x @ w_query) / np.sqrt(w_query.shape[1])
        p = np.exp(s - s.max())
        rows.append((x + p / p.sum() @ values) @ w_output)
        token = int(rows[-1].argmax())
    return np.array(rows).reshape(len(rows), w_output.shape[1])
# %% greedy-decoding | wrong | adds the position into the row of the embeddings in place
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y @ w_key, y @ w_value
    rows, token = [], start
    for t in range(len(positions)):
        x = embeddings[token]
        x += positions[t]
        s = keys @ (x @ w_query) / np.sqrt(w_query.shape[1])
        p = np.exp(s - s.max())
        rows.append((x + p / p.sum() @ values) @ w_output)
        token = int(rows[-1].argmax())
        if token == end:
            break
    return np.stack(rows)
# %% greedy-decoding | right | recursion, one step a call
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    keys, values = y @ w_key / w_key.shape[1] ** 0.5, y @ w_value

    def write(token, t):
        if t == len(positions):
            return []
        x = embeddings[token] + positions[t]
        e = keys @ (x @ w_query)
        p = np.exp(e - e.max())
        logits = (x + p @ values / p.sum()) @ w_output
        chosen = int(np.argmax(logits))
        return [logits] + ([] if chosen == end else write(chosen, t + 1))

    return np.vstack(write(start, 0))
# %% greedy-decoding | right | all tokens tried in advance at every position, then a walk through the table
import torch


def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    y, wq, wk, wv, emb, pos, wo = (torch.tensor(np.array(a)) for a in (y, w_query, w_key, w_value, embeddings, positions, w_output))
    x = pos[:, None, :] + emb[None, :, :]
    p = torch.softmax(x @ wq @ (y @ wk).T / wq.shape[1] ** 0.5, dim=-1)
    table = (x + p @ (y @ wv)) @ wo
    chosen = table.argmax(dim=-1)
    path, token = [], int(start)
    for t in range(len(pos)):
        path.append(token)
        token = int(chosen[t, token])
        if token == int(end):
            break
    return torch.stack([table[t, token] for t, token in enumerate(path)])
