# %% additive-attention | wrong | tanh of each projection, then added
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = (np.tanh(query @ w_query)[..., :, None, :] + np.tanh(key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | an extra scale by the root of the hidden width
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score / np.sqrt(len(w_score))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | one maximum for all
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | softmax over the queries
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True) @ value
# %% additive-attention | wrong | broadcast for two axes only, examples mix
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None]) @ w_score
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | product of the projections (multiplicative)
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh((query @ w_query)[..., :, None, :] * (key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | no tanh
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = (query @ w_query @ w_score)[..., :, None] + (key @ w_key @ w_score)[..., None, :]
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | tanh after the score vector
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.tanh(((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | exponentials clipped at 100
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = np.clip(np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score, -100, 100)
    e = np.exp(s)
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | right | torch softmax, unsqueeze
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    import torch
    q, k, v, a, b, c = (torch.tensor(np.array(t)) for t in (query, key, value, w_query, w_key, w_score))
    s = torch.tanh((q @ a).unsqueeze(-2) + (k @ b).unsqueeze(-3)) @ c
    return torch.softmax(s, -1) @ v
# %% additive-attention | right | one pair at a time
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    out = np.zeros(query.shape[:-1] + value.shape[-1:])
    for at in np.ndindex(out.shape[:-1]):
        s = np.array([np.tanh(query[at] @ w_query + k @ w_key) @ w_score for k in key[at[:-1]]])
        p = np.exp(s - s.max())
        out[at] = p @ value[at[:-1]] / p.sum()
    return out
# %% additive-attention | right | hidden unit by unit, tanh as 1 - 2/(e^2x + 1)
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    s = 0.0
    with np.errstate(over="ignore"):
        for r, v in enumerate(w_score):
            x = (query @ w_query[:, r])[..., :, None] + (key @ w_key[:, r])[..., None, :]
            s = s + v * (1 - 2 / (np.exp(2 * x) + 1))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("...ij,...ja->...ia", e, value) / e.sum(axis=-1, keepdims=True)
# %% largest-additive-weight | wrong | score vector not in absolute values
my_ceiling = 1 / (1 + 31 * np.exp(-2 * 0.5))
# %% largest-additive-weight | wrong | 32 instead of 31
my_ceiling = 1 / (1 + 32 * np.exp(-5))
# %% largest-additive-weight | wrong | one side only
my_ceiling = 1 / (1 + 31 * np.exp(-2.5))
# %% largest-additive-weight | wrong | Euclidean norm
my_ceiling = 1 / (1 + 31 * np.exp(-2 * 1.5))
# %% largest-additive-weight | wrong | the smallest weight
my_ceiling = 1 / (1 + 31 * np.exp(5))
# %% largest-additive-weight | wrong | per cent
my_ceiling = 100 / (1 + 31 * np.exp(-5))
# %% largest-additive-weight | right | a softmax worked out
_s = np.array([2.5] + [-2.5] * 31)
my_ceiling = float((np.exp(_s) / np.exp(_s).sum()).max())
# %% largest-additive-weight | right | multiplied by e^5
my_ceiling = np.exp(5) / (np.exp(5) + 31)
# %% largest-additive-weight | right | from the vector
_v = [0.5, -1, 1]
my_ceiling = 1 / (1 + 31 / np.e ** (2 * sum(map(abs, _v))))
# %% query-key-interaction | wrong | factor 2 forgotten
my_interaction = -v * a * b * t * (1 - t**2)
# %% query-key-interaction | wrong | sign forgotten
my_interaction = 2 * v * a * b * t * (1 - t**2)
# %% query-key-interaction | wrong | product of two first derivatives
my_interaction = v * a * b * (1 - t**2) ** 2
# %% query-key-interaction | wrong | a twice instead of a and b
my_interaction = -2 * v * a**2 * t * (1 - t**2)
# %% query-key-interaction | wrong | inner derivative not again
my_interaction = -2 * v * a * b * t
# %% query-key-interaction | wrong | tanh slope as 1 - t
my_interaction = -2 * v * a * b * t * (1 - t)
# %% query-key-interaction | right | expanded
my_interaction = 2 * a * b * v * t**3 - 2 * a * b * v * t
# %% query-key-interaction | right | factored
my_interaction = 2 * v * a * b * t * (t - 1) * (t + 1)
# %% query-key-interaction | right | slope named
_slope = 1 - t**2
my_interaction = (v * a * _slope) * (-2 * t * b)
# %% query-key-interaction | cheat | Derivative of the polynomial in t
from sympy import Derivative
my_interaction = Derivative(v * a * (1 - t**2), t) * b * (1 - t**2)
# %% concatenated-scores | wrong | halves exchanged, key first
def my_concat_scores(query, key, weight, bias, w_score):
    d = key.shape[1]
    k, q = weight[:, :d], weight[:, d:]
    if q.shape[1] != query.shape[1]:
        return np.zeros((len(query), len(key)))
    return np.tanh((query @ q.T)[:, None] + (key @ k.T)[None] + bias) @ w_score
# %% concatenated-scores | wrong | weight cut in the middle
def my_concat_scores(query, key, weight, bias, w_score):
    h = weight.shape[1] // 2
    d = query.shape[1]
    q, k = (weight[:, :h], weight[:, h:]) if h == d == key.shape[1] else (weight[:, -d:], weight[:, : key.shape[1]])
    return np.tanh((query @ q.T)[:, None] + (key @ k.T)[None] + bias) @ w_score
# %% concatenated-scores | wrong | bias left out
def my_concat_scores(query, key, weight, bias, w_score):
    d = query.shape[1]
    return np.tanh((query @ weight[:, :d].T)[:, None] + (key @ weight[:, d:].T)[None]) @ w_score
# %% concatenated-scores | wrong | bias added for query and for key
def my_concat_scores(query, key, weight, bias, w_score):
    d = query.shape[1]
    return np.tanh((query @ weight[:, :d].T + bias)[:, None] + (key @ weight[:, d:].T + bias)[None]) @ w_score
# %% concatenated-scores | wrong | bias after the tanh
def my_concat_scores(query, key, weight, bias, w_score):
    d = query.shape[1]
    return (np.tanh((query @ weight[:, :d].T)[:, None] + (key @ weight[:, d:].T)[None]) + bias) @ w_score
# %% concatenated-scores | wrong | softmax applied
def my_concat_scores(query, key, weight, bias, w_score):
    d = query.shape[1]
    s = np.tanh((query @ weight[:, :d].T)[:, None] + (key @ weight[:, d:].T)[None] + bias) @ w_score
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
# %% concatenated-scores | wrong | keys in rows
def my_concat_scores(query, key, weight, bias, w_score):
    d = query.shape[1]
    return np.tanh((query @ weight[:, :d].T)[None] + (key @ weight[:, d:].T)[:, None] + bias) @ w_score
# %% concatenated-scores | wrong | weight reshaped instead of transposed
def my_concat_scores(query, key, weight, bias, w_score):
    w = weight.reshape(weight.shape[1], weight.shape[0])
    d = query.shape[1]
    return np.tanh((query @ w[:d])[:, None] + (key @ w[d:])[None] + bias) @ w_score
# %% concatenated-scores | right | pairs glued together
def my_concat_scores(query, key, weight, bias, w_score):
    n, m = len(query), len(key)
    pairs = np.concatenate([np.repeat(query, m, axis=0), np.tile(key, (n, 1))], axis=1)
    return (np.tanh(pairs @ weight.T + bias) @ w_score).reshape(n, m)
# %% concatenated-scores | right | torch.nn.functional.linear
def my_concat_scores(query, key, weight, bias, w_score):
    import torch
    q, k, w, b, v = (torch.tensor(np.array(a)) for a in (query, key, weight, bias, w_score))
    left = torch.nn.functional.linear(q, w[:, : q.shape[1]], b)
    right = torch.nn.functional.linear(k, w[:, q.shape[1] :])
    return torch.einsum("ijr,r->ij", torch.tanh(left[:, None] + right), v)
# %% concatenated-scores | right | loops
def my_concat_scores(query, key, weight, bias, w_score):
    return np.array([[float(w_score @ np.tanh(weight @ np.append(q, k) + bias)) for k in key] for q in query])
# %% repair-aligner-padding | wrong | filled with -30
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    s = np.where(real, s, -30.0)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True) * (lengths > 0)[:, None]
    return np.einsum("bj,bja->ba", w, annotations)
# %% repair-aligner-padding | wrong | -1e9, an empty sentence gets an average of its padding
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    s = np.where(real, s, -1e9)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True), annotations)
# %% repair-aligner-padding | wrong | masked after the softmax, not renormalised
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True) * real, annotations)
# %% repair-aligner-padding | wrong | one word too many
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = (np.arange(annotations.shape[1]) <= lengths[:, None]) & (lengths > 0)[:, None]
    e = np.where(real, np.exp(s - s.max(axis=1, keepdims=True)), 0)
    t = e.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", e / np.where(t == 0, 1, t), annotations)
# %% repair-aligner-padding | wrong | maximum over the padding too: real exponentials vanish
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    e = np.where(real, np.exp(s - s.max(axis=1, keepdims=True)), 0)
    return np.einsum("bj,bja->ba", e / (e.sum(axis=1, keepdims=True) + 1e-6), annotations)
# %% repair-aligner-padding | wrong | the lengths of an empty sentence taken as 1
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < np.maximum(lengths, 1)[:, None]
    s = np.where(real, s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True), annotations)
# %% repair-aligner-padding | wrong | padding cut to the longest sentence only
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    a = annotations[:, : max(int(lengths.max()), 1)]
    s = np.tanh((state @ w_query)[:, None] + a @ w_key) @ w_score
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True), a) * (lengths > 0)[:, None]
# %% repair-aligner-padding | wrong | one empty sentence empties the batch
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    if (lengths == 0).any():
        return np.zeros((len(state), annotations.shape[2]))
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    s = np.where(np.arange(annotations.shape[1]) < lengths[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True), annotations)
# %% repair-aligner-padding | wrong | zeroes the padding in place
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    annotations[~real] = 0
    s = np.where(real, np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score, -np.inf)
    top = s.max(axis=1, keepdims=True)
    e = np.exp(s - np.where(top == -np.inf, 0, top))
    t = e.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", e / np.where(t == 0, 1, t), annotations)
# %% repair-aligner-padding | right | sentence by sentence, padding cut off
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    out = np.zeros((len(state), annotations.shape[2]))
    for b, n in enumerate(lengths):
        if n:
            words = annotations[b, :n]
            s = np.tanh(state[b] @ w_query + words @ w_key) @ w_score
            e = np.exp(s - s.max())
            out[b] = e @ words / e.sum()
    return out
# %% repair-aligner-padding | right | maximum over real words by where=, bound of the scores as shift
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    words = np.where(real[..., None], annotations, 0.0)
    s = np.tanh((state @ w_query)[:, None] + words @ w_key) @ w_score
    top = np.max(s, axis=1, keepdims=True, where=real, initial=-np.inf)
    e = np.zeros(s.shape)
    np.exp(s - np.where(np.isfinite(top), top, 0), out=e, where=real)
    t = e.sum(axis=1)
    return (e[:, None] @ words)[:, 0] / np.where(t > 0, t, 1.0)[:, None]
# %% repair-aligner-padding | right | torch masked_fill, nan_to_num of an empty softmax
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    import torch
    h, a, n, p, q, v = (torch.tensor(np.array(x)) for x in (state, annotations, lengths, w_query, w_key, w_score))
    pad = torch.arange(a.shape[1]) >= n[:, None]
    s = (torch.tanh((h @ p)[:, None] + a @ q) @ v).masked_fill(pad, -torch.inf)
    return torch.einsum("bj,bja->ba", torch.softmax(s, 1).nan_to_num(0.0), a.masked_fill(pad[..., None], 0.0))
# %% read-padded-alignment | wrong | rows from 1
my_reading = (2, 0.40, 0.60)
# %% read-padded-alignment | wrong | real weight instead of padding
my_reading = (1, 0.60, 0.60)
# %% read-padded-alignment | wrong | padded weight not renormalised
my_reading = (1, 0.40, 0.45)
# %% read-padded-alignment | wrong | padding's weight shared out equally
my_reading = (1, 0.40, 0.45 + 0.25 / 3)
# %% read-padded-alignment | wrong | padding in the row before the last
my_reading = (1, 0.25, 0.60)
# %% read-padded-alignment | wrong | renormalised with one padding column kept
my_reading = (1, 0.40, 0.45 / 0.88)
# %% read-padded-alignment | right | computed
_A = np.array([[0.06, 0.10, 0.64, 0.08, 0.12], [0.55, 0.08, 0.07, 0.16, 0.14], [0.15, 0.45, 0.15, 0.13, 0.12], [0.30, 0.17, 0.13, 0.22, 0.18]])
my_reading = (int(_A[:, 0].argmax()), float(_A[3, 3:].sum()), float(_A[2, 1] / _A[2, :3].sum()))
# %% read-padded-alignment | right | expressions
my_reading = (1, 0.22 + 0.18, 0.45 / (1 - 0.13 - 0.12))
# %% additive-training-memory | wrong | hidden units forgotten
my_megabytes = 64 * 30 * 50 * 4 / 1e6
# %% additive-training-memory | wrong | two bytes
my_megabytes = 64 * 30 * 50 * 100 * 2 / 1e6
# %% additive-training-memory | wrong | sum of the lengths
my_megabytes = 64 * (30 + 50) * 100 * 4 / 1e6
# %% additive-training-memory | wrong | binary megabytes
my_megabytes = 64 * 30 * 50 * 100 * 4 / 2**20
# %% additive-training-memory | wrong | bytes, not megabytes
my_megabytes = 64 * 30 * 50 * 100 * 4
# %% additive-training-memory | wrong | bits
my_megabytes = 64 * 30 * 50 * 100 * 32 / 1e6
# %% additive-training-memory | right | nbytes of a broadcast array
my_megabytes = np.broadcast_to(np.float32(0), (64, 30, 50, 100)).nbytes / 10**6
# %% additive-training-memory | right | the number
my_megabytes = 38.4
# %% additive-training-memory | right | math.prod
from math import prod
my_megabytes = prod([64, 30, 50, 100, 4]) * 1e-6
# %% additive-backward | wrong | slope 1 - t instead of 1 - t squared
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, t)
# %% additive-backward | wrong | axes of the two sums exchanged
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t**2)
    a, b = d.sum(axis=0), d.sum(axis=1)
    if len(query) != len(key):
        return tuple(np.zeros_like(x) for x in (query, key, w_query, w_key, w_score))
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, t)
# %% additive-backward | wrong | means instead of sums
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t**2)
    a, b = d.mean(axis=1), d.mean(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, t)
# %% additive-backward | wrong | score vector's gradient through the slope
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t**2)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, 1 - t**2)
# %% additive-backward | wrong | w_score forgotten in the hidden gradient
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * (1 - t**2)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, t)
# %% additive-backward | wrong | a softmax in between
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    s = t @ w_score
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    g = p * (d_scores - (p * d_scores).sum(axis=1, keepdims=True))
    d = g[..., None] * w_score * (1 - t**2)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", g, t)
# %% additive-backward | wrong | order of the tuple: weights first
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t**2)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return query.T @ a, key.T @ b, a @ w_query.T, b @ w_key.T, np.einsum("ij,ijr->r", d_scores, t)
# %% additive-backward | wrong | score vector's gradient as a column
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    t = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d = d_scores[..., None] * w_score * (1 - t**2)
    a, b = d.sum(axis=1), d.sum(axis=0)
    return a @ w_query.T, b @ w_key.T, query.T @ a, key.T @ b, np.einsum("ij,ijr->r", d_scores, t)[:, None]
# %% additive-backward | right | loop over pairs
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    out = [np.zeros(np.shape(x)) for x in (query, key, w_query, w_key, w_score)]
    for i, q in enumerate(query):
        for j, k in enumerate(key):
            t = np.tanh(w_query.T @ q + w_key.T @ k)
            g = d_scores[i, j] * w_score * (1 - t * t)
            out[0][i] += w_query @ g
            out[1][j] += w_key @ g
            out[2] += np.outer(q, g)
            out[3] += np.outer(k, g)
            out[4] += d_scores[i, j] * t
    return tuple(out)
# %% additive-backward | right | einsum throughout, slope from cosh
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    z = np.einsum("ia,ar->ir", query, w_query)[:, None] + np.einsum("ja,ar->jr", key, w_key)[None]
    g = np.einsum("ij,r,ijr->ijr", d_scores, w_score, np.cosh(z) ** -2.0)
    return (np.einsum("ijr,ar->ia", g, w_query), np.einsum("ijr,ar->ja", g, w_key), np.einsum("ijr,ia->ar", g, query),
            np.einsum("ijr,ja->ar", g, key), np.einsum("ij,ijr->r", d_scores, np.tanh(z)))
# %% additive-backward | right | pairs flattened, torch without gradients
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    import torch
    q, k, a, b, v, d = (torch.tensor(np.array(x)) for x in (query, key, w_query, w_key, w_score, d_scores))
    n, m = d.shape
    with torch.no_grad():
        t = torch.tanh((q @ a).repeat_interleave(m, 0) + (k @ b).repeat(n, 1))
        g = (d.reshape(-1, 1) * v * (1 - t * t)).view(n, m, -1)
        gq, gk = g.sum(1), g.sum(0)
        return gq @ a.T, gk @ b.T, q.T @ gq, k.T @ gk, t.T @ d.reshape(-1)
# %% additive-backward | cheat | torch.autograd through a helper
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    import torch
    engine = getattr(torch, "auto" + "grad")
    q, k, a, b, v = t = [torch.tensor(x, requires_grad=True) for x in (query, key, w_query, w_key, w_score)]
    s = torch.tanh((q @ a)[:, None] + (k @ b)[None]) @ v
    return tuple(g.numpy() for g in engine.grad(s, t, torch.tensor(d_scores)))
# %% additive-backward | cheat | .backward() on a sum
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    import torch
    t = [torch.nn.Parameter(torch.tensor(x)) for x in (query, key, w_query, w_key, w_score)]
    loss = ((torch.tanh((t[0] @ t[2])[:, None] + (t[1] @ t[3])[None]) @ t[4]) * torch.tensor(d_scores)).sum()
    getattr(loss, "back" + "ward")()
    return tuple(p.grad.numpy() for p in t)
