# %% masked-weights | wrong | fill of -1e9, empty rows become uniform
def my_masked_weights(scores, mask):
    s = np.where(mask, scores, -1e9)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% masked-weights | wrong | fill of -1e4 times the mask afterwards, maximum clamped at 0
def my_masked_weights(scores, mask):
    s = np.where(mask, scores, -np.inf)
    e = np.exp(s - np.maximum(s.max(axis=-1, keepdims=True), 0))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | hidden scores added to -inf: NaN and +inf survive
def my_masked_weights(scores, mask):
    s = scores + np.where(mask, 0.0, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | masked after the softmax and renormalised
def my_masked_weights(scores, mask):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | one maximum for the whole array
def my_masked_weights(scores, mask):
    s = np.where(mask, scores, -np.inf)
    top = s.max()
    e = np.exp(s - (top if np.isfinite(top) else 0))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | NaN rows repaired with nan_to_num over everything, uniform left
def my_masked_weights(scores, mask):
    s = np.where(mask, scores, -np.inf)
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return np.nan_to_num(e / e.sum(axis=-1, keepdims=True), nan=1.0 / scores.shape[-1])
# %% masked-weights | wrong | the mask turned round
def my_masked_weights(scores, mask):
    s = np.where(mask, -np.inf, scores)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | wrong | weight left on the diagonal of an empty row
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape).copy()
    m[..., 0] |= ~m.any(axis=-1)
    s = np.where(m, scores, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% masked-weights | wrong | eps of 1e-6 in the sum, after a shift by the maximum of all scores in the row
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape)
    clean = np.where(np.isfinite(scores), scores, 0.0)
    e = np.where(m, np.exp(clean - clean.max(axis=-1, keepdims=True)), 0)
    return e / (e.sum(axis=-1, keepdims=True) + 1e-6)
# %% masked-weights | wrong | result has the mask's fewer axes where one empty row is in any example
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape)
    s = np.where(m, scores, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return np.squeeze(e / np.where(t == 0, 1, t))
# %% masked-weights | wrong | writes -inf into the scores
def my_masked_weights(scores, mask):
    scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% masked-weights | right | softmax of the visible scores, row by row
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape)
    out = np.zeros(scores.shape)
    for at in np.ndindex(scores.shape[:-1]):
        seen = np.flatnonzero(m[at])
        if seen.size:
            s = scores[at][seen]
            e = np.exp(s - s.max())
            out[at][seen] = e / e.sum()
    return out
# %% masked-weights | right | torch softmax, then nan_to_num of empty rows
def my_masked_weights(scores, mask):
    import torch
    s = torch.tensor(np.where(mask, scores, -np.inf))
    empty = torch.isneginf(s).all(-1, keepdim=True)
    return torch.where(empty, torch.zeros_like(s), torch.softmax(s.masked_fill(empty, 0.0), -1))
# %% masked-weights | right | reductions with where=
def my_masked_weights(scores, mask):
    m = np.broadcast_to(mask, scores.shape)
    top = np.max(scores, axis=-1, keepdims=True, where=m, initial=-np.inf)
    e = np.zeros(scores.shape)
    np.subtract(scores, top, out=e, where=m)
    np.exp(e, out=e, where=m)
    return np.divide(e, e.sum(axis=-1, keepdims=True), out=np.zeros_like(e), where=m)
# %% read-mask | wrong | leaks counted with the diagonal's neighbours on the left
my_reading = (5, 4, 3)
# %% read-mask | wrong | padding and empty query exchanged
my_reading = (6, 3, 4)
# %% read-mask | wrong | counted from 1
my_reading = (6, 5, 4)
# %% read-mask | wrong | rows that leak counted, not pairs, with row 0 twice left out
my_reading = (4, 4, 3)
# %% read-mask | wrong | every hidden pair above the diagonal
my_reading = (15, 4, 3)
# %% read-mask | right | computed from the visible pairs
_seen = {0: [0, 2, 5], 1: [0, 1, 3], 2: [0, 1, 2, 6], 3: [], 4: [0, 1, 2, 3, 5], 5: [0, 1, 2, 3, 5, 6], 6: [0, 1, 2, 3, 5, 6]}
_leaks = sum(k > q for q, keys in _seen.items() for k in keys)
my_reading = (_leaks, (set(range(7)) - set().union(*_seen.values())).pop(), min(_seen, key=lambda q: len(_seen[q])))
# %% read-mask | right | leaks added up row by row
my_reading = (2 + 1 + 1 + 0 + 1 + 1 + 0, 4, 3)
# %% combined-masks | wrong | window one too short
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j <= at) & (at - j < max(window, 1)) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | past forgotten in the window
def my_masked_scores(scores, past, window, length):
    i, j = np.arange(scores.shape[0])[:, None], np.arange(scores.shape[1])
    return np.where((j <= i + past) & (i - j <= window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | past taken from the shape
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + scores.shape[1] - scores.shape[0], np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | window on both sides
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((np.abs(at - j) <= window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | any instead of all
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j <= at) & ((j >= at - window) | (j < length)), scores, -np.inf)
# %% combined-masks | wrong | padding hides queries
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (at < length), scores, -np.inf)
# %% combined-masks | wrong | padding one too few
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (j <= length), scores, -np.inf)
# %% combined-masks | wrong | large negative number instead of minus infinity
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (j < length), scores, np.finfo(float).min)
# %% combined-masks | wrong | rows all hidden left unmasked
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    seen = (j <= at) & (j >= at - window) & (j < length)
    return np.where(seen | ~seen.any(axis=1, keepdims=True), scores, -np.inf)
# %% combined-masks | wrong | own position always visible, even in the padding
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    return np.where((j == at) | ((j <= at) & (j >= at - window) & (j < length)), scores, -np.inf)
# %% combined-masks | wrong | window 0 read as no window
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    near = (j >= at - window) if window else True
    return np.where((j <= at) & near & (j < length), scores, -np.inf)
# %% combined-masks | wrong | in place
def my_masked_scores(scores, past, window, length):
    at, j = np.arange(scores.shape[0])[:, None] + past, np.arange(scores.shape[1])
    scores[~((j <= at) & (j >= at - window) & (j < length))] = -np.inf
    return scores
# %% combined-masks | right | two loops
def my_masked_scores(scores, past, window, length):
    out = np.full(scores.shape, -np.inf)
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if 0 <= i + past - j <= window and j < length:
                out[i, j] = scores[i, j]
    return out
# %% combined-masks | right | slices
def my_masked_scores(scores, past, window, length):
    out = np.full(scores.shape, float("-inf"))
    for i, row in enumerate(scores):
        first, stop = max(0, i + past - window), max(0, min(i + past + 1, length))
        out[i, first:stop] = row[first:stop]
    return out
# %% combined-masks | right | two triangles
def my_masked_scores(scores, past, window, length):
    n, m = scores.shape
    band = np.tri(n, m, past) - np.tri(n, m, past - window - 1)
    band[:, max(length, 0):] = 0
    return np.where(band == 1, scores, -np.inf)
# %% window-counts | wrong | window counts the token itself
my_count = (100 * 7 - 21, 15)
# %% window-counts | wrong | first rows taken as full
my_count = (800, 15)
# %% window-counts | wrong | reach of eight
my_count = (772, 13)
# %% window-counts | wrong | 100 positions to bridge, rounded down
my_count = (772, 14)
# %% window-counts | wrong | both sides of the window
my_count = (100 * 15 - 2 * 28, 15)
# %% window-counts | right | counted
my_count = (sum(min(i, 7) + 1 for i in range(100)), -(-99 // 7))
# %% window-counts | right | a reach that grows layer by layer
_layers, _reach = 0, 99
while _reach > 0:
    _layers, _reach = _layers + 1, _reach - 7
my_count = (int((np.tri(100) - np.tri(100, k=-8)).sum()), _layers)
# %% large-enough-fill | wrong | one minus epsilon forgotten
my_fill = log(r / epsilon)
# %% large-enough-fill | wrong | sign
my_fill = log(epsilon / (r * (1 - epsilon)))
# %% large-enough-fill | wrong | r on the wrong side
my_fill = log((1 - epsilon) / (epsilon * r))
# %% large-enough-fill | wrong | without r
my_fill = log((1 - epsilon) / epsilon)
# %% large-enough-fill | wrong | plus instead of minus
my_fill = log(r * (1 + epsilon) / epsilon)
# %% large-enough-fill | wrong | logarithm of the first factor only
my_fill = log(r) * (1 - epsilon) / epsilon
# %% large-enough-fill | right | sum of logarithms
my_fill = log(r) + log(1 - epsilon) - log(epsilon)
# %% large-enough-fill | right | 1/epsilon - 1
my_fill = log(r * (1 / epsilon - 1))
# %% large-enough-fill | right | minus a logarithm
my_fill = -log(epsilon / (r - r * epsilon))
# %% large-enough-fill | cheat | an unevaluated Derivative
from sympy import Derivative, Dummy
_c = Dummy(real=True)
my_fill = Derivative(_c * log(r * (1 - epsilon) / epsilon), _c)
# %% repair-cached-causal-mask | wrong | triangle at the left end
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key)) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | fill of -1e9
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key), len(key) - len(query)) > 0, s, -1e9)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | fill with the smallest visible score less 30
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key), len(key) - len(query)) > 0, s, s.min(axis=1, keepdims=True) - 3)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | a query does not see itself, unless it is the first
def cached_attention(query, key, value):
    off = len(key) - len(query)
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key), off - 1 if off else 0) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | one key too many
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    s = np.where(np.tri(len(query), len(key), len(key) - len(query) + 1) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | maximum before the mask, hidden scores can make a row vanish
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True)) * np.tri(len(query), len(key), len(key) - len(query))
    t = e.sum(axis=1, keepdims=True)
    return e / np.where(t == 0, 1, t) @ value
# %% repair-cached-causal-mask | wrong | masked when there is more than one query only, and then at the left
def cached_attention(query, key, value):
    s = query @ key.T / np.sqrt(query.shape[1])
    if len(query) > 1:
        i = np.arange(len(query))[:, None]
        s = np.where(np.arange(len(key)) <= i, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | scores clipped, rows near -1e12 become uniform
def cached_attention(query, key, value):
    s = np.clip(query @ key.T / np.sqrt(query.shape[1]), -1e6, 1e6)
    s = np.where(np.tri(len(query), len(key), len(key) - len(query)) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | right | slices of the visible keys
def cached_attention(query, key, value):
    past = len(key) - len(query)
    out = []
    for i, q in enumerate(query):
        s = key[: past + i + 1] @ q / np.sqrt(len(q))
        e = np.exp(s - s.max())
        out.append(e @ value[: past + i + 1] / e.sum())
    return np.array(out)
# %% repair-cached-causal-mask | right | torch softmax and tril
def cached_attention(query, key, value):
    import torch
    q, k, v = (torch.tensor(np.array(a)) for a in (query, key, value))
    hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(len(k) - len(q) + 1)
    return (q @ k.T / q.shape[1] ** 0.5).masked_fill(hidden, -torch.inf).softmax(1) @ v
# %% repair-cached-causal-mask | right | mirrored indices from the newest end
def cached_attention(query, key, value):
    back_q, back_k = np.arange(len(query))[::-1, None], np.arange(len(key))[::-1]
    s = np.where(back_k >= back_q, query @ key.T * query.shape[1] ** -0.5, -np.inf)
    p = np.exp(s - np.max(s, axis=1)[:, None])
    return np.einsum("ij,ja->ia", p, value) / np.einsum("ij->i", p)[:, None]
# %% repair-cached-causal-mask | cheat | torch's attention with a mask
def cached_attention(query, key, value):
    import torch
    import torch.nn.functional as F
    q, k, v = (torch.tensor(a)[None] for a in (query, key, value))
    m = torch.tensor(np.tri(len(query), len(key), len(key) - len(query)) > 0)
    return getattr(F, "scaled_dot_product_" + "attention")(q, k, v, attn_mask=m)[0].numpy()
# %% repair-padded-batch | wrong | finite fill: real keys near -1000 are fine, huge padding is not
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    s = s + np.where(real, 0.0, -1e9)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value * (lengths > 0)[:, None, None]
# %% repair-padded-batch | wrong | -1000 as fill
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    s = np.where(real, s, -1000.0)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value * (lengths > 0)[:, None, None]
# %% repair-padded-batch | wrong | NaN for a length of 0
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < lengths[:, None, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-padded-batch | wrong | mean of the values for a length of 0
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < lengths[:, None, None], s, -np.inf)
    s = np.where((lengths == 0)[:, None, None], 0.0, s)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
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
# %% repair-padded-batch | wrong | keys zeroed: padding keeps a score of 0
def padded_attention(query, key, value, lengths):
    real = np.arange(key.shape[1]) < lengths[:, None]
    k, v = key * real[..., None], value * real[..., None]
    s = query @ k.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v
# %% repair-padded-batch | wrong | maximum clamped at 0, rows near -1000 underflow to 0
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < lengths[:, None, None], s, -np.inf)
    e = np.exp(s - np.maximum(s.max(axis=-1, keepdims=True), 0))
    t = e.sum(axis=-1, keepdims=True)
    return e / np.where(t == 0, 1, t) @ value
# %% repair-padded-batch | wrong | first key always seen
def padded_attention(query, key, value, lengths):
    s = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    s = np.where(np.arange(key.shape[1]) < np.maximum(lengths, 1)[:, None, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% repair-padded-batch | right | example by example, padding cut off
def padded_attention(query, key, value, lengths):
    out = np.zeros(query.shape[:2] + value.shape[2:])
    for b, n in enumerate(lengths.tolist()):
        if n > 0:
            s = query[b] @ key[b, :n].T / np.sqrt(query.shape[2])
            e = np.exp(s - s.max(axis=1, keepdims=True))
            out[b] = e @ value[b, :n] / e.sum(axis=1, keepdims=True)
    return out
# %% repair-padded-batch | right | torch, masked_fill and where
def padded_attention(query, key, value, lengths):
    import torch
    q, k, v, n = (torch.tensor(np.array(a)) for a in (query, key, value, lengths))
    pad = torch.arange(k.shape[1])[None, None] >= n[:, None, None]
    s = (q @ k.mT / q.shape[2] ** 0.5).masked_fill(pad, -torch.inf)
    p = torch.softmax(s, -1)
    p = torch.where(pad, torch.zeros_like(p), p)
    return p @ v.masked_fill(pad.mT, 0.0)
# %% repair-padded-batch | right | a zero column that only empty sequences feel
def padded_attention(query, key, value, lengths):
    real = np.arange(key.shape[1]) < lengths[:, None]
    k, v = np.where(real[..., None], key, 0.0), np.where(real[..., None], value, 0.0)
    s = np.einsum("bic,bjc->bij", query, k) / np.sqrt(query.shape[2])
    top = np.max(s, axis=2, keepdims=True, where=real[:, None], initial=-np.inf)
    e = np.where(real[:, None], np.exp(np.where(real[:, None], s - np.where(np.isneginf(top), 0, top), -np.inf)), 0.0)
    return e @ v / np.maximum(e.sum(axis=2, keepdims=True), (lengths == 0)[:, None, None])
# %% repair-padded-batch | cheat | torch's attention, empty examples set to 0
def padded_attention(query, key, value, lengths):
    import torch
    import torch.nn.functional as F
    q, k, v = (torch.tensor(a) for a in (query, key, value))
    m = torch.tensor(np.arange(key.shape[1]) < lengths[:, None, None])
    f = F.__dict__["scaled" + "_dot_product_" + "attention"]
    return torch.where(torch.tensor(lengths > 0)[:, None, None], f(q, k, v, attn_mask=m), 0.0).numpy()
# %% masked-score-gradient | wrong | weight without renormalising
my_score_gradient = w_j * (v_j - z)
# %% masked-score-gradient | wrong | multiplied by w_all
my_score_gradient = w_j * w_all * (v_j - z)
# %% masked-score-gradient | wrong | other sign
my_score_gradient = w_j / w_all * (z - v_j)
# %% masked-score-gradient | wrong | mixture not subtracted
my_score_gradient = w_j / w_all * v_j
# %% masked-score-gradient | wrong | renormalised twice
my_score_gradient = w_j / w_all**2 * (v_j - z)
# %% masked-score-gradient | wrong | mixture weighted too
my_score_gradient = w_j / w_all * v_j - w_j * z
# %% masked-score-gradient | wrong | hidden share in place of visible
my_score_gradient = w_j / (1 - w_all) * (v_j - z)
# %% masked-score-gradient | right | one fraction
my_score_gradient = (w_j * v_j - w_j * z) / w_all
# %% masked-score-gradient | right | powers
my_score_gradient = -(w_all**-1) * w_j * z + w_all**-1 * w_j * v_j
# %% masked-score-gradient | right | weight under the mask named
_p = w_j / w_all
my_score_gradient = _p * v_j - _p * z
# %% masked-score-gradient | cheat | an unevaluated Derivative
from sympy import Derivative
my_score_gradient = Derivative(v_j**2 / 2 - z * v_j, v_j) * w_j / w_all
# %% leak-test | wrong | moves the first feature only
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j, 0] += 1
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | rows and columns exchanged
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | diagonal counted
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out)
# %% leak-test | wrong | a tiny step
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1e-7
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | changes added over features, opposite ones cancel
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = (layer(y, kind) - base).sum(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | moves the neighbour only
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(1, len(x)):
        y = x.copy()
        y[j] += 1
        out[j - 1, j] = np.abs(layer(y, kind) - base)[j - 1].max() > 1e-6
    return out
# %% leak-test | wrong | moves accumulate from token to token, all compared with the first output
def my_leaks(x, kind):
    base, out, y = layer(x, kind), np.zeros((len(x), len(x))), x.copy()
    for j in reversed(range(len(x))):
        y[j] += 1
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | size of the change, not 1
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1)
    return np.triu(out, 1) * (np.triu(out, 1) > 1e-6)
# %% leak-test | wrong | the third output feature never compared
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = np.abs(layer(y, kind) - base)[:, :2].max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | booleans
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        y = x.copy()
        y[j] += 1
        out[:, j] = np.abs(layer(y, kind) - base).max(axis=1) > 1e-6
    return np.triu(out, 1)
# %% leak-test | wrong | the input is moved, not put back
def my_leaks(x, kind):
    base, out = layer(x, kind), np.zeros((len(x), len(x)))
    for j in range(len(x)):
        old = x[j].copy()
        x[j] = old + 1
        out[:, j] = np.abs(layer(x, kind) - base).max(axis=1) > 1e-6
        x[j] = old - 0.0 if j else old + 1e-9
    return np.triu(out, 1)
# %% leak-test | right | token by token, only earlier rows compared
def my_leaks(x, kind):
    n = len(x)
    base = layer(x.copy(), kind)
    leaks = np.zeros((n, n))
    for j in range(1, n):
        moved = np.array(x, copy=True)
        moved[j] = moved[j] - 1.0
        change = np.abs(layer(moved, kind) - base)
        for i in range(j):
            leaks[i, j] = 1.0 if change[i].max() > 1e-6 else 0.0
    return leaks
# %% leak-test | right | step as an outer product, stacked columns
def my_leaks(x, kind):
    base = layer(x, kind)
    step = np.array([1.0, 0.9, -1.0, 1.1])
    columns = [np.any(np.abs(layer(x + np.outer(e, step), kind) - base) > 1e-6, axis=1) for e in np.eye(len(x))]
    return np.triu(np.column_stack(columns).astype(np.float64), k=1)
# %% leak-test | right | torch at the end, np.add.at
def my_leaks(x, kind):
    import torch
    def moved(j):
        y = x.copy()
        np.add.at(y, j, 1.05)
        return layer(y, kind)
    d = torch.tensor(np.stack([moved(j) for j in range(len(x))], axis=1) - layer(x, kind)[:, None])
    return (d.abs().amax(-1) > 1e-6).double().triu(1)
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
