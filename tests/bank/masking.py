# %% masked-weights | wrong | adds -inf: NaN and +inf in hidden places survive
def my_masked_weights(scores, mask):
    s = scores + np.where(mask, 0.0, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(top == -np.inf, 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)
# %% masked-weights | wrong | maximum taken over the hidden scores too, so a huge hidden score underflows the row
def my_masked_weights(scores, mask):
    top = np.nan_to_num(scores).max(axis=-1, keepdims=True)
    e = np.where(mask, np.exp(np.where(mask, scores, 0) - top), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)
# %% masked-weights | wrong | empty rows come out uniform instead of zero
def my_masked_weights(scores, mask):
    s = np.where(mask, scores, -1e300)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% masked-weights | wrong | boolean indexing, needs a mask with as many axes as the scores
def my_masked_weights(scores, mask):
    out = np.zeros_like(scores)
    for where in np.ndindex(*scores.shape[:-1]):
        seen = mask[where]
        if seen.any():
            e = np.exp(scores[where][seen] - scores[where][seen].max())
            out[where][seen] = e / e.sum()
    return out
# %% masked-weights | right | np.broadcast_to and a loop over rows that touches visible scores only
def my_masked_weights(scores, mask):
    seen = np.broadcast_to(mask, scores.shape).reshape(-1, scores.shape[-1])
    rows = scores.reshape(-1, scores.shape[-1])
    out = np.zeros(rows.shape)
    for row, visible, target in zip(rows, seen, out):
        if visible.any():
            kept = np.exp(row[visible] - row[visible].max())
            target[visible] = kept / kept.sum()
    return out.reshape(scores.shape)
# %% masked-weights | right | torch softmax of -inf, nan of empty rows put to 0
import torch


def my_masked_weights(scores, mask):
    seen = torch.tensor(np.array(mask), dtype=torch.bool)
    s = torch.where(seen, torch.tensor(np.array(scores)), -torch.inf)
    empty = (~seen.expand(s.shape)).all(dim=-1, keepdim=True)
    return torch.softmax(s, dim=-1).masked_fill(empty, 0.0)
# %% read-mask | wrong | one leak missed (row 0 counted once)
my_reading = (5, 4, 3)
# %% read-mask | wrong | counts the hatched pairs to the right of the diagonal
my_reading = (15, 4, 3)
# %% read-mask | wrong | padding and empty row exchanged
my_reading = (6, 3, 4)
# %% read-mask | wrong | counted from 1
my_reading = (6, 5, 4)
# %% read-mask | right | plain integers
my_reading = (6, 4, 3)
# %% read-mask | right | a float array, leaks added row by row
my_reading = tuple(np.array([2 + 1 + 1 + 0 + 1 + 1 + 0, 4.0, 3.0]))
# %% combined-masks | wrong | window counts the query itself: `<` instead of `<=`
def my_masked_scores(scores, past, window, length):
    at = np.arange(scores.shape[0])[:, None] + past
    j = np.arange(scores.shape[1])
    return np.where((j <= at) & (at - j < window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | ignores `past`, takes kv_len - q_len instead
def my_masked_scores(scores, past, window, length):
    n, m = scores.shape
    at = np.arange(n)[:, None] + (m - n)
    j = np.arange(m)
    return np.where((j <= at) & (j >= at - window) & (j < length), scores, -np.inf)
# %% combined-masks | wrong | writes -inf into the scores it was given
def my_masked_scores(scores, past, window, length):
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if j > i + past or j < i + past - window or j >= length:
                scores[i, j] = -np.inf
    return scores
# %% combined-masks | wrong | slices: a start beyond the end or below zero wraps round
def my_masked_scores(scores, past, window, length):
    out = np.full(scores.shape, -np.inf)
    for i in range(len(scores)):
        first, last = i + past - window, min(i + past + 1, length)
        out[i, first:last] = scores[i, first:last]
    return out
# %% combined-masks | right | one slice a row
def my_masked_scores(scores, past, window, length):
    out = np.full_like(scores, -np.inf)
    for i, row in enumerate(scores):
        first = max(0, i + past - window)
        last = max(0, min(i + past + 1, length))
        out[i, first:last] = row[first:last]
    return out
# %% combined-masks | right | torch tril and triu, band, padding
import torch


def my_masked_scores(scores, past, window, length):
    s = torch.tensor(np.array(scores))
    ones = torch.ones(s.shape, dtype=torch.bool)
    keep = ones.tril(past) & ones.triu(past - window)
    keep &= (torch.arange(s.shape[1]) < length).unsqueeze(0)
    return s.masked_fill(~keep, float("-inf"))
# %% window-counts | wrong | window of 7 tokens in all
my_count = (100 * 7 - 21, 17)
# %% window-counts | wrong | forgets that the first rows are shorter
my_count = (800, 15)
# %% window-counts | wrong | rounds the layers down
my_count = (772, 99 // 7)
# %% window-counts | wrong | 100 / 8, each layer thought to reach eight back
my_count = (772, 13)
# %% window-counts | right | counted by brute force
my_band = np.array([[0 <= i - j <= 7 for j in range(100)] for i in range(100)])
my_reach, my_layers = np.eye(100, dtype=bool), 0
while not my_reach[99, 0]:
    my_reach, my_layers = (my_reach.astype(int) @ my_band) > 0, my_layers + 1
my_count = (int(my_band.sum()), my_layers)
# %% window-counts | right | sums and a negated floor division
my_count = (sum(min(i, 8) for i in range(1, 101)), -(-99 // 7))
# %% large-enough-fill | wrong | epsilon upside down
my_fill = log(r * epsilon / (1 - epsilon))
# %% large-enough-fill | wrong | small epsilon approximation
my_fill = log(r / epsilon)
# %% large-enough-fill | wrong | sign of c
my_fill = log(epsilon) - log(r) - log(1 - epsilon)
# %% large-enough-fill | wrong | an unevaluated Derivative hides the ratio, which the text forbids
from sympy import Derivative

my_fill = log(r) + log(1 - epsilon) - log(epsilon) * Derivative(epsilon, epsilon)
# %% large-enough-fill | right | minus the log of a quotient
my_fill = -log(epsilon / (r - r * epsilon))
# %% large-enough-fill | right | three logarithms
my_fill = log(r) + log(1 - epsilon) - log(epsilon)
# %% repair-cached-causal-mask | wrong | shift right, finite fill -1e9 above scores near -1e12
def cached_attention(query, key, value):
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key), k=len(key) - len(query)) > 0
    scores = np.where(visible, scores, -1e9)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | diagonal moved by kv_len - 1: right for one query only
def cached_attention(query, key, value):
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key), k=len(key) - 1) > 0
    scores = np.where(visible, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value
# %% repair-cached-causal-mask | wrong | maximum taken before the mask: visible terms underflow
def cached_attention(query, key, value):
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key), k=len(key) - len(query)) > 0
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True)) * visible
    total = unnormalised.sum(axis=1, keepdims=True)
    return unnormalised / np.where(total == 0, 1, total) @ value
# %% repair-cached-causal-mask | cheat | torch's own attention under another name
import torch


def cached_attention(query, key, value):
    name = "_".join(["scaled", "dot", "product", "attention"])
    visible = torch.tensor(np.tri(len(query), len(key), k=len(key) - len(query)) > 0)
    q, k, v = (torch.tensor(np.array(a))[None] for a in (query, key, value))
    return getattr(torch.nn.functional, name)(q, k, v, attn_mask=visible)[0].numpy()
# %% repair-cached-causal-mask | right | loop over the queries with a growing prefix of the keys
def cached_attention(query, key, value):
    past = len(key) - len(query)
    rows = []
    for i, q in enumerate(query):
        s = key[: past + i + 1] @ q / np.sqrt(len(q))
        p = np.exp(s - s.max())
        rows.append(p @ value[: past + i + 1] / p.sum())
    return np.array(rows)
# %% repair-cached-causal-mask | right | online softmax over the keys, one key at a time
def cached_attention(query, key, value):
    n, m = len(query), len(key)
    scale = query.shape[1] ** -0.5
    top = np.full((n, 1), -np.inf)
    total = np.zeros((n, 1))
    acc = np.zeros((n, value.shape[1]))
    for j in range(m):
        sees = (np.arange(n) + m - n >= j)[:, None]
        s = (query @ key[j] * scale)[:, None]
        new = np.where(sees, np.maximum(top, s), top)
        safe = np.where(np.isfinite(new), new, 0.0)
        old = np.where(np.isfinite(top), np.exp(np.where(np.isfinite(top), top, 0.0) - safe), 0.0)
        term = np.where(sees, np.exp(np.where(sees, s - safe, -np.inf)), 0.0)
        total = total * old + term
        acc = acc * old + term * value[j]
        top = new
    return acc / total
# %% repair-padded-batch | wrong | keeps -1e9 added: padding of 1e10 still wins
def padded_attention(query, key, value, lengths):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    scores = scores + np.where(real, 0.0, -1e9)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return np.where(lengths[:, None, None] > 0, weights @ value, 0.0)
# %% repair-padded-batch | wrong | empty examples come out as the plain mean of the padded values
def padded_attention(query, key, value, lengths):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1])[None, None, :] < lengths[:, None, None]
    scores = np.where(real, scores, np.finfo(float).min)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
# %% repair-padded-batch | wrong | padding set to zero in key and value: a score of 0 keeps its weight
def padded_attention(query, key, value, lengths):
    real = (np.arange(key.shape[1]) < lengths[:, None])[:, :, None]
    scores = query @ np.where(real, key, 0).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ np.where(real, value, 0)
# %% repair-padded-batch | wrong | hides query rows beyond the length as well
def padded_attention(query, key, value, lengths):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    asks = np.arange(query.shape[1])[:, None] < lengths[:, None, None]
    scores = np.where(real & asks, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = unnormalised.sum(axis=-1, keepdims=True)
    return unnormalised / np.where(total == 0, 1, total) @ value
# %% repair-padded-batch | right | cuts each example to its length, loop
def padded_attention(query, key, value, lengths):
    result = np.zeros(query.shape[:2] + value.shape[2:])
    for b in range(len(query)):
        n = int(lengths[b])
        if n > 0:
            s = np.einsum("id,jd->ij", query[b], key[b, :n]) / query.shape[2] ** 0.5
            p = np.exp(s - s.max(axis=1)[:, None])
            result[b] = p @ value[b, :n] / p.sum(axis=1)[:, None]
    return result
# %% repair-padded-batch | right | torch softmax with masked_fill, where for empty examples
import torch


def padded_attention(query, key, value, lengths):
    q, k, v, n = (torch.tensor(np.array(a)) for a in (query, key, value, lengths))
    hidden = torch.arange(k.shape[1])[None, None, :] >= n[:, None, None]
    s = torch.bmm(q, k.transpose(1, 2)) / q.shape[2] ** 0.5
    p = s.masked_fill(hidden, -torch.inf).softmax(dim=2)
    p = torch.where(n[:, None, None] > 0, p, 0.0)
    return torch.bmm(p, v)
# %% masked-score-gradient | wrong | weight not renormalised
my_score_gradient = w_j * (v_j - z)
# %% masked-score-gradient | wrong | renormalised with the wrong factor: times w_all
my_score_gradient = w_j * w_all * (v_j - z)
# %% masked-score-gradient | wrong | mask after the softmax: the weights of hidden keys count in the derivative
my_score_gradient = w_j * (v_j - w_all * z)
# %% masked-score-gradient | wrong | diagonal of the softmax Jacobian only
my_score_gradient = w_j / w_all * (1 - w_j / w_all) * v_j
# %% masked-score-gradient | right | multiplied out with powers
my_score_gradient = v_j * w_j * w_all**-1 - z * w_j * w_all**-1
# %% masked-score-gradient | right | one fraction, minus sign outside
my_score_gradient = -(z - v_j) / (w_all / w_j)
# %% leak-test | wrong | moves only feature 0
def my_leaks(x, kind):
    base = layer(x, kind)
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j, 0] += 1
        leaks[:, j] = np.abs(layer(moved, kind) - base).max(axis=1) > 1e-6
    return np.triu(leaks, k=1)
# %% leak-test | wrong | writes the step into x itself and takes it back with rounding
def my_leaks(x, kind):
    base = layer(x, kind)
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        x[j] += 1.1
        leaks[:, j] = np.abs(layer(x, kind) - base).max(axis=1) > 1e-6
        x[j] -= 1.1
    return np.triu(leaks, k=1)
# %% leak-test | wrong | sums the changes of the features: they cancel
def my_leaks(x, kind):
    base = layer(x, kind)
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += 1
        leaks[:, j] = (layer(moved, kind) - base).sum(axis=1) > 1e-6
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
# %% leak-test | right | each feature on its own, alternating sign, boolean or
def my_leaks(x, kind):
    n = len(x)
    before = layer(x.copy(), kind)
    found = np.zeros((n, n), dtype=bool)
    for j in range(1, n):
        for f in range(x.shape[1]):
            for step in (-1.0, 1.0):
                moved = np.array(x, dtype=float)
                moved[j, f] += step
                change = np.abs(layer(moved, kind) - before)
                found[:j, j] |= np.any(change[:j] > 1e-6, axis=1)
    return found.astype(float)
# %% leak-test | right | columns by a nested helper, up and down steps of mixed sign, stacked
def my_leaks(x, kind):
    steps = np.array([[1, 1, 1, 1], [-1, 1, -1, 1], [1, -0.9, -1.1, 1], [-1, -1, 1, 1.1]])

    def column(j):
        here = np.arange(len(x))[:, None] == j
        reply = [np.abs(layer(x + here * step, kind) - layer(x, kind)).max(axis=1) for step in steps]
        return np.where(np.max(reply, axis=0) > 1e-6, 1.0, 0.0)

    return np.triu(np.stack([column(j) for j in range(len(x))], axis=1), k=1)
