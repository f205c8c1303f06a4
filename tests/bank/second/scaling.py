# %% uncentred-score-variance | wrong | means crossed with their own variance
my_expression = d_k * (v_q * v_k + m_q**2 * v_q + m_k**2 * v_k)
# %% uncentred-score-variance | wrong | second moment, squared mean not taken off
my_expression = d_k * (v_q + m_q**2) * (v_k + m_k**2)
# %% uncentred-score-variance | wrong | means not squared
my_expression = d_k * (v_q * v_k + m_q * v_k + m_k * v_q)
# %% uncentred-score-variance | wrong | centred entries only
my_expression = d_k * v_q * v_k
# %% uncentred-score-variance | wrong | d_k squared on the mean terms
my_expression = d_k * v_q * v_k + d_k**2 * (m_q**2 * v_k + m_k**2 * v_q)
# %% uncentred-score-variance | wrong | variances taken for deviations
my_expression = d_k * (v_q**2 * v_k**2 + m_q**2 * v_k**2 + m_k**2 * v_q**2)
# %% uncentred-score-variance | wrong | divided by d_k, as for a scaled score
my_expression = v_q * v_k + m_q**2 * v_k + m_k**2 * v_q
# %% uncentred-score-variance | right | second moments minus squared mean
my_expression = d_k * ((v_q + m_q**2) * (v_k + m_k**2) - m_q**2 * m_k**2)
# %% uncentred-score-variance | right | sum of three
my_expression = sum(d_k * a * b for a, b in [(v_q, v_k), (m_q**2, v_k), (v_q, m_k**2)])
# %% uncentred-score-variance | right | bracketed by v_k
my_expression = d_k * v_k * (v_q + m_q * m_q) + d_k * v_q * m_k * m_k
# %% cosine-scores | wrong | eps of 1e-6 added to the lengths
def my_cosine_scores(query, key):
    q = query / (np.linalg.norm(query, axis=-1, keepdims=True) + 1e-6)
    k = key / (np.linalg.norm(key, axis=-1, keepdims=True) + 1e-6)
    return q @ k.swapaxes(-1, -2)
# %% cosine-scores | wrong | lengths below 1e-6 taken for 0
def my_cosine_scores(query, key):
    def unit(x):
        n = np.linalg.norm(x, axis=-1, keepdims=True)
        return np.where(n < 1e-6, 0, x / np.where(n < 1e-6, 1, n))
    return unit(query) @ unit(key).swapaxes(-1, -2)
# %% cosine-scores | wrong | NaN for zero rows replaced by 1
def my_cosine_scores(query, key):
    nq, nk = np.linalg.norm(query, axis=-1, keepdims=True), np.linalg.norm(key, axis=-1)[..., None, :]
    with np.errstate(all="ignore"):
        return np.nan_to_num(query @ key.swapaxes(-1, -2) / (nq * nk), nan=1.0)
# %% cosine-scores | wrong | norm of the whole matrix
def my_cosine_scores(query, key):
    n = np.linalg.norm(query) * np.linalg.norm(key)
    return query @ key.swapaxes(-1, -2) / (n if n else 1)
# %% cosine-scores | wrong | norms along the positions
def my_cosine_scores(query, key):
    def unit(x):
        n = np.linalg.norm(x, axis=-2, keepdims=True)
        return x / np.where(n == 0, 1, n)
    return unit(query) @ unit(key).swapaxes(-1, -2)
# %% cosine-scores | wrong | divided by the squared lengths of the keys only
def my_cosine_scores(query, key):
    n = (key**2).sum(axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.where(n == 0, 1, n)
# %% cosine-scores | wrong | maximum of the product of lengths and 1e-8
def my_cosine_scores(query, key):
    n = np.sqrt((query**2).sum(-1))[..., :, None] * np.sqrt((key**2).sum(-1))[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.maximum(n, 1e-8)
# %% cosine-scores | wrong | float32 squares: tiny lengths lose their digits or vanish
def my_cosine_scores(query, key):
    q, k = query.astype(np.float16), key.astype(np.float16)
    n = np.linalg.norm(q.astype(float), axis=-1)[..., :, None] * np.linalg.norm(k.astype(float), axis=-1)[..., None, :]
    return q.astype(float) @ k.astype(float).swapaxes(-1, -2) / np.where(n == 0, 1, n)
# %% cosine-scores | wrong | absolute values (angles between lines)
def my_cosine_scores(query, key):
    n = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return np.abs(query @ key.swapaxes(-1, -2)) / np.where(n == 0, 1, n)
# %% cosine-scores | wrong | normalises the inputs in place
def my_cosine_scores(query, key):
    for x in (query, key):
        n = np.linalg.norm(x, axis=-1, keepdims=True)
        x /= np.where(n == 0, 1, n)
    return query @ key.swapaxes(-1, -2)
# %% cosine-scores | right | unit vectors with np.divide where
def my_cosine_scores(query, key):
    def unit(x):
        n = np.linalg.norm(x, axis=-1, keepdims=True)
        return np.divide(x, n, out=np.zeros(x.shape), where=n != 0)
    return np.einsum("...ia,...ja->...ij", unit(query), unit(key))
# %% cosine-scores | right | loops with math.hypot
def my_cosine_scores(query, key):
    from math import hypot
    out = np.zeros(query.shape[:-1] + (key.shape[-2],))
    for at in np.ndindex(out.shape):
        q, k = query[at[:-1]], key[at[:-2] + at[-1:]]
        a, b = hypot(*q.tolist()), hypot(*k.tolist())
        if a > 0 and b > 0:
            out[at] = sum((x / a) * (y / b) for x, y in zip(q, k))
    return out
# %% cosine-scores | right | rescaled by the largest entry first, torch
def my_cosine_scores(query, key):
    import torch
    def direction(x):
        t = torch.tensor(np.array(x))
        top = t.abs().amax(-1, keepdim=True)
        t = t / torch.where(top == 0, torch.ones_like(top), top)
        n = (t * t).sum(-1, keepdim=True).sqrt()
        return t / torch.where(n == 0, torch.ones_like(n), n)
    return direction(query) @ direction(key).transpose(-1, -2)
# %% cosine-scores | cheat | torch's cosine_similarity, inputs scaled up
def my_cosine_scores(query, key):
    import torch
    f = getattr(torch, "cosine_" + "similarity")
    q, k = (torch.tensor(a) for a in (query, key))
    q, k = (a / a.abs().amax(-1, keepdim=True).clamp_min(1e-200) for a in (q, k))
    return f(q[..., :, None, :], k[..., None, :, :], dim=-1).numpy()
# %% cosine-scores | cheat | the CosineSimilarity module with eps of 0
def my_cosine_scores(query, key):
    from torch import nn, tensor
    m = nn.CosineSimilarity(dim=-1, eps=1e-300)
    return np.nan_to_num(m(tensor(query).unsqueeze(-2), tensor(key).unsqueeze(-3)).numpy())
# %% repair-head-weights | wrong | scale by d_model
def head_weights(query, key):
    h, _, d = query.shape
    s = query @ key.swapaxes(-1, -2) / np.sqrt(h * d)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | one maximum per head
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=(-1, -2), keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | scale after the exponential
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True)) / np.sqrt(query.shape[-1])
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | maximum of the unscaled scores subtracted from the scaled
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2)
    e = np.exp(s / np.sqrt(query.shape[-1]) - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | normalised over queries
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True)
# %% repair-head-weights | wrong | normalised over the heads
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)
# %% repair-head-weights | wrong | divided by d_k
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2) / query.shape[-1]
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | scores clipped to 50 instead of shifted
def head_weights(query, key):
    s = np.clip(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]), -50, 50)
    e = np.exp(s)
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | averaged over the heads and repeated
def head_weights(query, key):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return np.broadcast_to(w.mean(axis=0), w.shape).copy()
# %% repair-head-weights | right | head by head, query scaled
def head_weights(query, key):
    def one(q, k):
        s = (q / np.sqrt(q.shape[1])) @ k.T
        e = np.exp((s.T - s.max(axis=1)).T)
        return np.diag(1 / e.sum(axis=1)) @ e
    return np.array([one(q, k) for q, k in zip(query, key)])
# %% repair-head-weights | right | log weights, torch without its softmax
def head_weights(query, key):
    import torch
    q, k = torch.tensor(np.array(query)), torch.tensor(np.array(key))
    s = torch.einsum("hia,hja->hij", q, k) / q.size(-1) ** 0.5
    s = s - s.max(dim=-1, keepdim=True).values
    return torch.exp(s - s.exp().sum(-1, keepdim=True).log())
# %% repair-head-weights | right | float32 at the end only, hyperplane of pairs
def head_weights(query, key):
    s = (query[:, :, None] * key[:, None]).sum(3) * query.shape[2] ** -0.5
    with np.errstate(over="ignore"):
        return 1 / np.exp(s[:, :, None, :] - s[:, :, :, None]).sum(3)
# %% repair-head-weights | cheat | torch's attention with the identity as values
def head_weights(query, key):
    import torch
    import torch.nn.functional as F
    q, k = torch.tensor(query), torch.tensor(key)
    f = [getattr(F, n) for n in dir(F) if n.startswith("scaled_dot")][0]
    return f(q, k, torch.eye(k.shape[1], dtype=q.dtype).expand(len(k), -1, -1)).numpy()
# %% repair-head-weights | cheat | torch.nn.Softmax as a module
def head_weights(query, key):
    import torch
    layer = vars(torch.nn)["Soft" + "max"](dim=2)
    return layer(torch.tensor(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2]))).numpy()
