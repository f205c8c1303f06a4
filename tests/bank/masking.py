# %% masked-weights | wrong | boolean indexing, needs a mask with as many axes as the scores
def my_masked_weights(scores, mask):
    out = np.zeros_like(scores)
    for where in np.ndindex(*scores.shape[:-1]):
        seen = mask[where]
        if seen.any():
            e = np.exp(scores[where][seen] - scores[where][seen].max())
            out[where][seen] = e / e.sum()
    return out
# %% masked-weights | wrong | hidden scores added to -inf: NaN and +inf survive
def my_masked_weights(scores, mask):
    s = scores + np.where(mask, 0.0, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | result has the mask's fewer axes where one empty row is in any example
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape)
    s = np.where(m, scores, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return np.squeeze(e / np.where(t == 0, 1, t))
# %% combined-masks | wrong | slices: a start beyond the end or below zero wraps round
def my_masked_scores(scores, past, window, length):
    out = np.full(scores.shape, -np.inf)
    for i in range(len(scores)):
        first, last = i + past - window, min(i + past + 1, length)
        out[i, first:last] = scores[i, first:last]
    return out
# %% combined-masks | wrong | window on both sides
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((np.abs(at - j) <= window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | window 0 read as no window
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    near = (j >= at - window) if window else True
    return np.where((j <= at) & near & (j < length), scores, -np.inf)
# %% large-enough-fill | wrong | an unevaluated Derivative hides the ratio, which the text forbids
from sympy import Derivative

my_fill = log(r) + log(1 - epsilon) - log(epsilon) * Derivative(epsilon, epsilon)
# %% large-enough-fill | cheat | an unevaluated Derivative
from sympy import Derivative, Dummy
_c = Dummy(real=True)
my_fill = Derivative(_c * log(r * (1 - epsilon) / epsilon), _c)
# %% repair-cached-causal-mask | wrong | fill with the smallest visible score less 30
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key), len(key) - len(query)) > 0, s, s.min(axis=1, keepdims=True) - 3)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | masked when there is more than one query only, and then at the left
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    if len(query) > 1:
        i = np.arange(len(query))[:, None]
        s = np.where(np.arange(len(key)) <= i, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | cheat | torch's attention with a mask
def cached_attention(query, key, value):
    import torch
    import torch.nn.functional as F
    q, k, v = (torch.tensor(a)[None] for a in (query, key, value))
    m = torch.tensor(np.tri(len(query), len(key), len(key) - len(query)) > 0)
    return getattr(F, "scaled_dot_product_" + "attention")(q, k, v, attn_mask=m)[0].numpy()
# %% repair-padded-batch | wrong | queries behind the length hidden too
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < lengths[:, None, None], s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    out = e / np.where(t == 0, 1, t) @ value
    return out * (np.arange(query.shape[1])[:, None] < lengths[:, None, None])
# %% repair-padded-batch | wrong | length of the first example for all
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < lengths[0], s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t) @ value
# %% repair-padded-batch | cheat | torch's attention, empty examples set to 0
def padded_attention(query, key, value, lengths):
    import torch
    import torch.nn.functional as F
    q, k, v = (torch.tensor(a) for a in (query, key, value))
    m = torch.tensor(np.arange(key.shape[1]) < lengths[:, None, None])
    f = F.__dict__["scaled" + "_dot_product_" + "attention"]
    return torch.where(torch.tensor(lengths > 0)[:, None, None], f(q, k, v, attn_mask=m), 0.0).numpy()
# %% masked-score-gradient | cheat | an unevaluated Derivative
from sympy import Derivative
my_score_gradient = Derivative(v_j**2 / 2 - z * v_j, v_j) * w_j / w_all
# %% leak-test | wrong | writes the step into x itself and takes it back with rounding
def my_leaks(x, kind):
    base = layer(x, kind)
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        x[j] += 1.1
        leaks[:, j] = np.abs(layer(x, kind) - base).max(axis=1) > 1e-6
        x[j] -= 1.1
    return np.triu(leaks, k=1)
# %% leak-test | wrong | a table by kind, read off the code: never calls the layer
def my_leaks(x, kind):
    n = len(x)
    above = np.triu(np.ones((n, n)), k=1)
    if kind == 0:
        return np.zeros((n, n))
    if kind == 1:
        return above * np.tri(n, k=1)
    if kind == 6:
        above[:, :-1] = 0
    return above
# %% leak-test | wrong | changes added over features, opposite ones cancel
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = (layer(y, kind) - base).sum(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | cheat | a table by kind, read off the code of the layer
def my_leaks(x, kind):
    n = len(x)
    full = np.triu(np.ones((n, n)), 1)
    if kind == 0:
        return full * 0
    if kind == 1:
        return np.eye(n, k=1)
    if kind == 6:
        return full * (np.arange(n) == n - 1)
    return full
