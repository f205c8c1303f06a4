# %% additive-attention | wrong | shifts by the bound sum |v| of Eq. additive-score-bound instead of the maximum: rows near -1000 are 0/0
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    scores = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(scores - np.abs(w_score).sum())
    with np.errstate(invalid="ignore"):
        return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | one maximum for the whole array: rows near -1000 underflow to 0/0
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    scores = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score
    e = np.exp(scores - scores.max())
    return e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300) @ value
# %% additive-attention | wrong | no shift, scores clipped to +-500 so that exp does not overflow
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    q = query @ w_query
    k = key @ w_key
    scores = np.einsum("...ijr,r->...ij", np.tanh(q[..., :, None, :] + k[..., None, :, :]), w_score)
    e = np.exp(np.clip(scores, -500, 500))
    return e / e.sum(axis=-1, keepdims=True) @ value
# %% additive-attention | wrong | broadcasts with [:, None] and [None]: right only for one or no leading axis of its own choice
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    def one(q, k, v):
        scores = np.tanh((q @ w_query)[:, None] + (k @ w_key)[None]) @ w_score
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    if query.ndim == 2:
        return one(query, key, value)
    return np.stack([one(query[b], key[b], value[b]) for b in range(len(query))])
# %% additive-attention | right | loops over np.ndindex, queries and keys, running sums
import math


def my_additive_attention(query, key, value, w_query, w_key, w_score):
    lead, (q_len, kv_len) = query.shape[:-2], (query.shape[-2], key.shape[-2])
    out = np.zeros((*lead, q_len, value.shape[-1]))
    for where in np.ndindex(*lead):
        for i in range(q_len):
            row = []
            for j in range(kv_len):
                hidden = np.tanh(query[where][i] @ w_query + key[where][j] @ w_key)
                row.append(float(np.dot(hidden, w_score)))
            top = max(row)
            total = math.fsum(math.exp(s - top) for s in row)
            for j in range(kv_len):
                out[where + (i,)] += math.exp(row[j] - top) / total * value[where][j]
    return out
# %% additive-attention | right | torch, one hidden unit at a time, tensor as result
import torch


def my_additive_attention(query, key, value, w_query, w_key, w_score):
    query, key, value, w_query, w_key, w_score = (torch.tensor(np.array(a)) for a in (query, key, value, w_query, w_key, w_score))
    q, k = query @ w_query, key @ w_key
    scores = q.new_zeros(*q.shape[:-1], k.shape[-2])
    for r in range(w_score.shape[0]):
        scores = scores + w_score[r] * torch.tanh(q[..., r].unsqueeze(-1) + k[..., r].unsqueeze(-2))
    return torch.softmax(scores, dim=-1) @ value
# %% largest-additive-weight | wrong | e^-2.5 instead of e^-5: scores taken to lie between 0 and the bound
my_ceiling = 1 / (1 + 31 * np.exp(-2.5))
# %% largest-additive-weight | wrong | 32 other keys instead of 31
my_ceiling = 1 / (1 + 32 * np.exp(-5))
# %% largest-additive-weight | wrong | plain sum of v (0.5) instead of the sum of absolute values
my_ceiling = 1 / (1 + 31 * np.exp(-2 * (0.5 - 1 + 1)))
# %% largest-additive-weight | wrong | Euclidean norm of v
my_ceiling = 1 / (1 + 31 * np.exp(-2 * np.linalg.norm([0.5, -1, 1])))
# %% largest-additive-weight | right | three digits
my_ceiling = 0.827
# %% largest-additive-weight | right | maximum of a softmax with one key at the top
my_v = np.array([0.5, -1, 1])
my_scores = np.full(32, -np.abs(my_v).sum())
my_scores[0] *= -1
my_ceiling = (np.exp(my_scores) / np.exp(my_scores).sum()).max()
# %% query-key-interaction | wrong | forgets the chain rule factor 1 - t^2 of the second derivative
my_interaction = -2 * v * a * b * t
# %% query-key-interaction | wrong | sign lost
my_interaction = 2 * v * a * b * t * (1 - t**2)
# %% query-key-interaction | wrong | product of the two first derivatives
my_interaction = v * a * (1 - t**2) * v * b * (1 - t**2)
# %% query-key-interaction | wrong | unevaluated Derivative, which the text forbids
from sympy import Derivative

my_interaction = v * a * b * (1 - t**2) * Derivative(1 - t**2, t)
# %% query-key-interaction | right | multiplied out
my_interaction = 2 * a * b * v * t**3 - 2 * a * b * v * t
# %% query-key-interaction | right | built up by a helper, factors (1 - t)(1 + t)
def my_slope(inner):
    return (1 - t) * (1 + t) * inner


my_interaction = v * a * (-t * my_slope(b) - my_slope(b) * t)
# %% concatenated-scores | wrong | key first in the concatenation
def my_concat_scores(query, key, weight, bias, w_score):
    d_k = key.shape[1]
    k = key @ weight[:, :d_k].T
    q = query @ weight[:, d_k:].T
    return np.tanh(q[:, None] + k[None] + bias) @ w_score
# %% concatenated-scores | wrong | weight cut in the middle instead of at d_q
def my_concat_scores(query, key, weight, bias, w_score):
    w_query, w_key = np.array_split(weight.T, 2, axis=0)
    if w_query.shape[0] != query.shape[1]:
        w_query, w_key = weight.T[: query.shape[1]], weight.T[: key.shape[1]]
    return np.tanh((query @ w_query)[:, None] + (key @ w_key)[None] + bias) @ w_score
# %% concatenated-scores | wrong | bias counted twice, once in each projection
def my_concat_scores(query, key, weight, bias, w_score):
    d_q = query.shape[1]
    q = query @ weight[:, :d_q].T + bias
    k = key @ weight[:, d_q:].T + bias
    return np.tanh(q[:, None] + k) @ w_score
# %% concatenated-scores | wrong | rows are keys
def my_concat_scores(query, key, weight, bias, w_score):
    d_q = query.shape[1]
    q = query @ weight[:, :d_q].T
    k = key @ weight[:, d_q:].T
    return np.tanh(k[:, None] + q[None] + bias) @ w_score
# %% concatenated-scores | right | really glues each pair, list comprehension
def my_concat_scores(query, key, weight, bias, w_score):
    return np.array([[w_score @ np.tanh(weight @ np.concatenate([q, k]) + bias) for k in key] for q in query])
# %% concatenated-scores | right | torch.nn.functional.linear on the expanded pairs
import torch


def my_concat_scores(query, key, weight, bias, w_score):
    query, key, weight, bias, w_score = (torch.tensor(np.array(x)) for x in (query, key, weight, bias, w_score))
    n, m = len(query), len(key)
    pairs = torch.cat([query.repeat_interleave(m, 0), key.repeat(n, 1)], dim=1)
    return torch.mv(torch.tanh(torch.nn.functional.linear(pairs, weight, bias)), w_score).reshape(n, m).numpy()
# %% repair-aligner-padding | wrong | zeroes the padding of the input in place, else right
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    annotations[~real] = 0.0
    scores = np.where(real, np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    unnormalised = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", unnormalised / np.where(total == 0, 1, total), annotations)
# %% repair-aligner-padding | wrong | padding set 10 below the lowest score: a small weight that large padding shows, empty sentences zeroed
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    scores = np.where(real, scores, scores.min() - 10)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", weights, annotations) * (lengths > 0)[:, None]
# %% repair-aligner-padding | wrong | softmax over everything, padding weights set to 0 afterwards, not renormalised
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("bj,bja->ba", weights * real, annotations)
# %% repair-aligner-padding | wrong | off by one: the first padding row still counts
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = (np.arange(annotations.shape[1]) <= lengths[:, None]) & (lengths[:, None] > 0)
    scores = np.where(real, scores, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    unnormalised = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = unnormalised.sum(axis=1, keepdims=True)
    weights = unnormalised / np.where(total == 0, 1, total)
    return np.einsum("bj,bja->ba", weights, annotations)
# %% repair-aligner-padding | right | loop over sentences that cuts the padding off
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    result = np.zeros((annotations.shape[0], annotations.shape[2]))
    for b, n in enumerate(lengths):
        if n == 0:
            continue
        words = annotations[b, :n]
        e = np.tanh(state[b] @ w_query + words @ w_key) @ w_score
        p = np.exp(e - np.max(e))
        result[b] = p @ words / p.sum()
    return result
# %% repair-aligner-padding | right | one pass: numerators times the boolean mask, shift by the bound sum |v| replaced by the real maximum
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    real = np.arange(annotations.shape[1])[None, :] < np.asarray(lengths)[:, None]
    clean = np.where(real[..., None], annotations, 0.0)
    scores = np.tanh((state @ w_query)[:, None] + clean @ w_key) @ w_score
    top = np.max(scores, axis=1, keepdims=True, initial=-np.inf, where=real)
    terms = np.zeros_like(scores)
    np.exp(scores - np.where(real.any(axis=1, keepdims=True), top, 0), out=terms, where=real)
    total = terms.sum(axis=1)
    total[total == 0] = 1
    return (terms[:, None, :] @ clean)[:, 0] / total[:, None]
# %% read-padded-alignment | wrong | column and row confused: largest weight of row 0 for the first number
my_reading = (2, 0.40, 0.6)
# %% read-padded-alignment | wrong | only the last padding column in b
my_reading = (1, 0.18, 0.6)
# %% read-padded-alignment | wrong | weight not renormalised in c
my_reading = (1, 0.40, 0.45)
# %% read-padded-alignment | wrong | padding's share spread evenly over the three words
my_reading = (1, 0.40, 0.45 + 0.25 / 3)
# %% read-padded-alignment | right | expressions
my_reading = (1, 0.22 + 0.18, 0.45 / (0.15 + 0.45 + 0.15))
# %% read-padded-alignment | right | computed from the typed matrix
my_table = np.array([[6, 10, 64, 8, 12], [55, 8, 7, 16, 14], [15, 45, 15, 13, 12], [30, 17, 13, 22, 18]]) / 100
my_reading = (int(my_table[:, 0].argmax()), float(my_table[3, 3:].sum()), float(my_table[2, 1] / my_table[2, :3].sum()))
# %% additive-training-memory | wrong | hidden axis forgotten: the scores only
my_megabytes = 64 * 30 * 50 * 4 / 1e6
# %% additive-training-memory | wrong | float64
my_megabytes = 64 * 30 * 50 * 100 * 8 / 1e6
# %% additive-training-memory | wrong | sum of lengths instead of pairs
my_megabytes = 64 * (30 + 50) * 100 * 4 / 1e6
# %% additive-training-memory | wrong | mebibytes
my_megabytes = 64 * 30 * 50 * 100 * 4 / 2**20
# %% additive-training-memory | right | the number
my_megabytes = 38.4
# %% additive-training-memory | right | size of a dtype and np.prod
my_megabytes = np.prod([64, 30, 50, 100]) * np.dtype("float32").itemsize * 1e-6
# %% additive-backward | wrong | 1 - t instead of 1 - t^2
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    hidden = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d_before = d_scores[..., None] * w_score * (1 - hidden)
    d_q, d_k = d_before.sum(axis=1), d_before.sum(axis=0)
    return d_q @ w_query.T, d_k @ w_key.T, query.T @ d_q, key.T @ d_k, np.einsum("ij,ijr->r", d_scores, hidden)
# %% additive-backward | wrong | mean over the pairs instead of the sum
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    hidden = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d_before = d_scores[..., None] * w_score * (1 - hidden**2)
    d_q, d_k = d_before.mean(axis=1), d_before.mean(axis=0)
    return d_q @ w_query.T, d_k @ w_key.T, query.T @ d_q, key.T @ d_k, np.einsum("ij,ijr->r", d_scores, hidden)
# %% additive-backward | cheat | torch autograd in disguise, which the text forbids
import importlib


def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    tc = importlib.import_module("to" + "rch")
    leaves = [tc.tensor(np.array(x), requires_grad=True) for x in (query, key, w_query, w_key, w_score)]
    q, k, wq, wk, ws = leaves
    scores = tc.tanh((q @ wq)[:, None] + (k @ wk)[None]) @ ws
    getattr(scores, "back" + "ward")(tc.tensor(np.array(d_scores)))
    return tuple(x.grad.numpy() for x in leaves)
# %% additive-backward | wrong | d_w_score ignores d_scores: sums the hidden layer only; order of the tuple else right
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    hidden = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d_before = d_scores[..., None] * w_score * (1 - hidden**2)
    d_q, d_k = d_before.sum(axis=1), d_before.sum(axis=0)
    return d_q @ w_query.T, d_k @ w_key.T, query.T @ d_q, key.T @ d_k, hidden.sum(axis=(0, 1)) * d_scores.mean()
# %% additive-backward | right | loop over the pairs, accumulating outer products
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    grads = [np.zeros(np.shape(p)) for p in (query, key, w_query, w_key, w_score)]
    for i, j in np.ndindex(*d_scores.shape):
        t = np.tanh(query[i] @ w_query + key[j] @ w_key)
        g = d_scores[i, j] * w_score * (1 - t) * (1 + t)
        grads[0][i] += w_query @ g
        grads[1][j] += w_key @ g
        grads[2] += np.outer(query[i], g)
        grads[3] += np.outer(key[j], g)
        grads[4] += d_scores[i, j] * t
    return tuple(grads)
# %% additive-backward | right | torch without gradients, five einsums, sech^2
import torch


def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    with torch.no_grad():
        q, k, wq, wk, ws, ds = (torch.tensor(np.array(x)) for x in (query, key, w_query, w_key, w_score, d_scores))
        z = (q @ wq).unsqueeze(1) + (k @ wk).unsqueeze(0)
        inner = torch.einsum("ij,r,ijr->ijr", ds, ws, 1 / torch.cosh(z).square())
        return (
            torch.einsum("ijr,ar->ia", inner, wq),
            torch.einsum("ijr,br->jb", inner, wk),
            torch.einsum("ijr,ia->ar", inner, q),
            torch.einsum("ijr,jb->br", inner, k),
            torch.einsum("ij,ijr->r", ds, torch.tanh(z)),
        )
