# %% similarities-to-weights | wrong | columns sum to 1
def my_weights(similarity):
    t = similarity.sum(axis=0, keepdims=True)
    return similarity / np.where(t == 0, 1, t)
# %% similarities-to-weights | wrong | eps in the denominator, tiny rows shrink
def my_weights(similarity):
    return similarity / (similarity.sum(axis=1, keepdims=True) + 1e-4)
# %% similarities-to-weights | wrong | uniform weights for an empty row
def my_weights(similarity):
    t = similarity.sum(axis=1, keepdims=True)
    return np.where(t > 0, similarity / np.where(t > 0, t, 1), 1 / similarity.shape[1])
# %% similarities-to-weights | wrong | a softmax, equal rows only for equal scores
def my_weights(similarity):
    e = np.exp(similarity) * (similarity.sum(axis=1, keepdims=True) > 0)
    t = e.sum(axis=1, keepdims=True)
    return e / np.where(t == 0, 1, t)
# %% similarities-to-weights | wrong | keepdims forgotten, works for square by accident of broadcasting
def my_weights(similarity):
    t = similarity.sum(axis=1)
    t = np.where(t == 0, 1, t)
    if similarity.shape[0] == similarity.shape[1]:
        return similarity / t
    return similarity / t[:, None]
# %% similarities-to-weights | wrong | rows of zeros are zeroed by nan_to_num, after dividing by the mean
def my_weights(similarity):
    return np.nan_to_num(similarity / similarity.mean(axis=1, keepdims=True))
# %% similarities-to-weights | wrong | one empty row zeroes the whole matrix
def my_weights(similarity):
    t = similarity.sum(axis=1, keepdims=True)
    if (t == 0).any():
        return np.zeros_like(similarity)
    return similarity / t
# %% similarities-to-weights | wrong | divides the input in place
def my_weights(similarity):
    t = similarity.sum(axis=1, keepdims=True)
    similarity /= np.where(t == 0, 1, t)
    return similarity
# %% similarities-to-weights | right | np.divide with where
def my_weights(similarity):
    t = similarity @ np.ones((similarity.shape[1], 1))
    return np.divide(similarity, t, out=np.zeros(similarity.shape), where=t > 0)
# %% similarities-to-weights | right | a generator of rows
def my_weights(similarity):
    def rows():
        for r in similarity.tolist():
            total = sum(r)
            yield [x / total if total else 0.0 for x in r]
    return np.array(list(rows()), dtype=float).reshape(similarity.shape)
# %% similarities-to-weights | right | apply_along_axis
def my_weights(similarity):
    return np.apply_along_axis(lambda r: r / r.sum() if r.any() else np.zeros(len(r)), 1, similarity)
# %% kernel-regression | wrong | h instead of h squared
def my_regression(query, x, y, h):
    s = np.exp(-((query[:, None] - x) ** 2) / (2 * h))
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | the 2 is missing
def my_regression(query, x, y, h):
    s = np.exp(-(((query[:, None] - x) / h) ** 2))
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | leaves out a point at which a query stands
def my_regression(query, x, y, h):
    d = query[:, None] - x
    s = np.exp(-(d**2) / (2 * h * h)) * (d != 0)
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | normalised over the queries
def my_regression(query, x, y, h):
    s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))
    return (s / s.sum(axis=0)) @ y
# %% kernel-regression | wrong | density normalisation instead of the sum of weights
def my_regression(query, x, y, h):
    s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2)) / (h * np.sqrt(2 * np.pi))
    return s @ y / len(x)
# %% kernel-regression | wrong | eps of 1e-6 beside tiny similarities
def my_regression(query, x, y, h):
    s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))
    return s @ y / (s.sum(axis=1) + 1e-6)
# %% kernel-regression | wrong | sorts x but not y
def my_regression(query, x, y, h):
    s = np.exp(-((query[:, None] - np.sort(x)) ** 2) / (2 * h**2))
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | points beyond three widths cut off
def my_regression(query, x, y, h):
    d = np.abs(query[:, None] - x) / h
    s = np.where(d <= 3, np.exp(-d * d / 2), 0)
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | absolute distance, Laplace kernel
def my_regression(query, x, y, h):
    s = np.exp(-np.abs(query[:, None] - x) / h)
    return s @ y / s.sum(axis=1)
# %% kernel-regression | right | a loop with np.average
def my_regression(query, x, y, h):
    return np.array([np.average(y, weights=np.exp(-0.5 * ((q - x) / h) ** 2)) for q in query])
# %% kernel-regression | right | softmax of negative squared distances in torch
def my_regression(query, x, y, h):
    import torch
    q, x, y = (torch.tensor(np.asarray(a)) for a in (query, x, y))
    return torch.softmax(-0.5 * torch.cdist(q[:, None], x[:, None], compute_mode="donot_use_mm_for_euclid_dist").div(h).square(), 1) @ y
# %% kernel-regression | right | np.vectorize over the queries
def my_regression(query, x, y, h):
    from math import exp
    def one(q):
        top = bottom = 0.0
        for a, b in zip(x, y):
            w = exp(-((q - a) ** 2) / (2 * h * h))
            top, bottom = top + w * b, bottom + w
        return top / bottom
    return np.vectorize(one, otypes=[float])(query)
# %% duplicated-pair | wrong | nothing changes
my_answer = 42 / 6
# %% duplicated-pair | wrong | the copy added above only
my_answer = 60 / 6
# %% duplicated-pair | wrong | the third pair copied
my_answer = (18 + 24 + 24) / (6 + 3)
# %% duplicated-pair | wrong | softmax of the similarities
_e = np.exp([1, 2, 3, 2])
my_answer = float(_e @ [0, 9, 8, 9] / _e.sum())
# %% duplicated-pair | wrong | plain mean of the four values
my_answer = (0 + 9 + 8 + 9) / 4
# %% duplicated-pair | right | np.average
my_answer = np.average([0, 9, 8, 9], weights=[1, 2, 3, 2])
# %% duplicated-pair | right | by hand, an expression
my_answer = (42 + 2 * 9) / (6 + 2)
# %% duplicated-pair | right | the copy as a doubled similarity
my_answer = float(np.dot(np.array([1, 4, 3]) / 8, [0, 9, 8]))
# %% read-lookup-weights | wrong | outputs counted in columns
my_reading = (5, 4, 0.8)
# %% read-lookup-weights | wrong | largest single weight instead of column sum
my_reading = (3, 3, 0.8)
# %% read-lookup-weights | wrong | pairs counted from 1
my_reading = (3, 5, 0.8)
# %% read-lookup-weights | wrong | output 0 from columns 2 and 3
my_reading = (3, 4, 0.65)
# %% read-lookup-weights | wrong | values of 1 averaged
my_reading = (3, 4, 0.4)
# %% read-lookup-weights | right | computed from the matrix
_P = np.array([[0.10, 0.05, 0.05, 0.60, 0.20], [0.25, 0.10, 0.10, 0.15, 0.40], [0.05, 0.30, 0.30, 0.05, 0.30]])
my_reading = (len(_P), int(_P.sum(axis=0).argmax()), float(_P[0] @ [0, 0, 0, 1, 1]))
# %% read-lookup-weights | right | sums written out
my_reading = (3, 4, 0.60 + 0.20)
# %% repair-lookup-roles | wrong | normalised over the queries
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(beta * query @ key.T)
    return s / s.sum(axis=0, keepdims=True) @ value
# %% repair-lookup-roles | wrong | roles still exchanged, axis repaired
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(beta * (key @ query.T))
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | wrong | beta after the softmax
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(query @ key.T)
    return (s / s.sum(axis=1, keepdims=True)) ** beta @ value
# %% repair-lookup-roles | wrong | beta as a temperature
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(query @ key.T / beta)
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | wrong | an extra 1/sqrt(d_k)
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(beta * query @ key.T / np.sqrt(key.shape[1]))
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | wrong | a token does not ask itself
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(beta * query @ key.T)
    if len(x) > 1:
        np.fill_diagonal(s, 0)
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | wrong | beta halved by rounding to an integer power
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(query @ key.T) ** max(1, round(beta))
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | right | turned weights at the end
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(key @ query.T) ** beta
    weights = similarity / similarity.sum(axis=0, keepdims=True)
    return weights.T @ value
# %% repair-lookup-roles | right | torch softmax over one absorbed form
def ask_everybody(x, w_query, w_key, w_value, beta):
    import torch
    x, a, b, c = (torch.from_numpy(np.ascontiguousarray(m)) for m in (x, w_query, w_key, w_value))
    return torch.softmax(beta * (x @ (a @ b.T) @ x.T), dim=-1) @ x @ c
# %% repair-lookup-roles | right | one token after the other
def ask_everybody(x, w_query, w_key, w_value, beta):
    def one(q):
        w = np.array([np.exp(beta * np.dot(q, k)) for k in x @ w_key])
        return np.einsum("j,ja->a", w, x @ w_value) / w.sum()
    return np.stack([one(q) for q in x @ w_query])
# %% repair-lookup-roles | cheat | torch's ready-made attention, found by getattr
def ask_everybody(x, w_query, w_key, w_value, beta):
    import torch.nn.functional as F
    import torch
    t = [torch.from_numpy(np.ascontiguousarray(x @ w))[None] for w in (w_query, w_key, w_value)]
    f = getattr(F, "_".join(["scaled", "dot", "product", "attention"]))
    return f(*t, scale=float(beta))[0].numpy()
# %% hard-lookup | wrong | argmin, ties go to the first
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    return value[d.argmin(axis=1)]
# %% hard-lookup | wrong | ties summed, not averaged
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    return (d == d.min(axis=1, keepdims=True)).astype(float) @ value
# %% hard-lookup | wrong | np.isclose takes near misses for ties
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    n = np.isclose(d, d.min(axis=1, keepdims=True), rtol=1e-4, atol=1e-6).astype(float)
    return n / n.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | largest dot product instead of nearest
def my_hard_lookup(query, key, value):
    s = query @ key.T
    n = (s == s.max(axis=1, keepdims=True)).astype(float)
    return n / n.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | a soft lookup with a small h
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    w = np.exp(-(d - d.min(axis=1, keepdims=True)) / (2 * 0.01**2))
    return w / w.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | minimum over the whole table
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    n = (d == d.min()).astype(float)
    c = n.sum(axis=1, keepdims=True)
    return n / np.where(c == 0, 1, c) @ value
# %% hard-lookup | wrong | city-block distance
def my_hard_lookup(query, key, value):
    d = np.abs(query[:, None] - key[None]).sum(axis=-1)
    n = (d == d.min(axis=1, keepdims=True)).astype(float)
    return n / n.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | distances rounded to 5 digits
def my_hard_lookup(query, key, value):
    d = np.round(((query[:, None] - key[None]) ** 2).sum(axis=-1), 5)
    n = (d == d.min(axis=1, keepdims=True)).astype(float)
    return n / n.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | at most two tied keys averaged
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    o = np.argsort(d, axis=1, kind="stable")
    out = value[o[:, 0]].copy()
    for i in range(len(query)):
        if len(key) > 1 and d[i, o[i, 0]] == d[i, o[i, 1]]:
            out[i] = (value[o[i, 0]] + value[o[i, 1]]) / 2
    return out
# %% hard-lookup | right | loop with a list of winners
def my_hard_lookup(query, key, value):
    out = []
    for q in query:
        d = [sum((a - b) ** 2 for a, b in zip(q.tolist(), k.tolist())) for k in key]
        best = min(d)
        out.append(value[[j for j, e in enumerate(d) if e == best]].mean(axis=0))
    return np.array(out)
# %% hard-lookup | right | exact zero differences through a softmax of -inf
def my_hard_lookup(query, key, value):
    import torch
    d = torch.tensor(np.square(query[:, None, :] - key).sum(-1))
    s = torch.where(d <= d.amin(1, keepdim=True), 0.0, -torch.inf).double()
    return torch.softmax(s, dim=1) @ torch.tensor(value)
# %% hard-lookup | right | running best, a class with __call__
class _Lookup:
    def __call__(self, query, key, value):
        best = np.full(len(query), np.inf)
        total, count = np.zeros((len(query), value.shape[1])), np.zeros((len(query), 1))
        for k, v in zip(key, value):
            d = ((query - k) ** 2).sum(axis=1)
            better, equal = (d < best)[:, None], (d == best)[:, None]
            total = np.where(better, v, total + np.where(equal, v, 0))
            count = np.where(better, 1, count + equal)
            best = np.minimum(best, d)
        return total / count
my_hard_lookup = _Lookup()
# %% derivative-by-similarity | wrong | other sign
my_gain = s_2 * (v_2 - v_1) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | wrong | s_1 in front
my_gain = s_1 * (v_1 - v_2) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | wrong | denominator not squared
my_gain = s_2 * (v_1 - v_2) / (s_1 + s_2)
# %% derivative-by-similarity | wrong | softmax derivative
my_gain = s_1 * s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | wrong | second term of the quotient rule forgotten
my_gain = v_1 / (s_1 + s_2)
# %% derivative-by-similarity | wrong | absolute value of the difference
my_gain = s_2 * ((v_1 - v_2) ** 2) ** (s_1 / s_1 / 2) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | right | quotient rule left unsimplified
my_gain = v_1 / (s_1 + s_2) - (s_1 * v_1 + s_2 * v_2) * (s_1 + s_2) ** -2
# %% derivative-by-similarity | right | weights times difference from the answer
_a = s_1 / (s_1 + s_2)
my_gain = _a / s_1 * (v_1 - (_a * v_1 + (1 - _a) * v_2))
# %% derivative-by-similarity | right | expanded fractions
my_gain = (s_2 * v_1 - s_2 * v_2) / (s_1**2 + 2 * s_1 * s_2 + s_2**2)
# %% derivative-by-similarity | cheat | an unevaluated Derivative
from sympy import Derivative
my_gain = Derivative((s_1 * v_1 + s_2 * v_2) / (s_1 + s_2), s_1)
# %% derivative-by-similarity | cheat | a Derivative hidden in a sum
import sympy
my_gain = v_2 * 0 + sympy.Add(sympy.Derivative(s_1 / (s_1 + s_2), s_1) * v_1, sympy.Derivative(s_2 / (s_1 + s_2), s_1) * v_2)
# %% feature-mixing-matrix | wrong | x x^T order, mixes positions then solved
def my_feature_weights(x, w_query, w_key, w_value):
    z = (x @ w_query) @ (x @ w_key).T @ (x @ w_value)
    return np.linalg.lstsq(x, z, rcond=None)[0]
# %% feature-mixing-matrix | wrong | pseudo-inverse, other solution with few positions
def my_feature_weights(x, w_query, w_key, w_value):
    return np.linalg.pinv(x) @ ((x @ w_query) @ (x @ w_key).T @ (x @ w_value))
# %% feature-mixing-matrix | wrong | query and key exchanged
def my_feature_weights(x, w_query, w_key, w_value):
    return w_key @ w_query.T @ x.T @ x @ w_value
# %% feature-mixing-matrix | wrong | divided by the number of positions
def my_feature_weights(x, w_query, w_key, w_value):
    return w_query @ w_key.T @ np.cov(x.T, bias=True).reshape(x.shape[1], -1) @ w_value * len(x)
# %% feature-mixing-matrix | wrong | scaled by sqrt(d_k)
def my_feature_weights(x, w_query, w_key, w_value):
    return w_query @ (x @ w_key).T @ (x @ w_value) / np.sqrt(w_key.shape[1])
# %% feature-mixing-matrix | wrong | the answer Z instead of W(X)
def my_feature_weights(x, w_query, w_key, w_value):
    return (x @ w_query) @ (x @ w_key).T @ (x @ w_value)
# %% feature-mixing-matrix | wrong | Gram factor left out
def my_feature_weights(x, w_query, w_key, w_value):
    return w_query @ w_key.T @ w_value
# %% feature-mixing-matrix | right | bracketed from the right
def my_feature_weights(x, w_query, w_key, w_value):
    return w_query @ ((x @ w_key).T @ (x @ w_value))
# %% feature-mixing-matrix | right | one einsum
def my_feature_weights(x, w_query, w_key, w_value):
    return np.einsum("ac,bc,ib,id,de->ae", w_query, w_key, x, x, w_value, optimize=True)
# %% feature-mixing-matrix | right | sum of outer products over positions, reduce
def my_feature_weights(x, w_query, w_key, w_value):
    from functools import reduce
    state = sum((np.outer(r @ w_key, r @ w_value) for r in x), np.zeros((w_key.shape[1], w_value.shape[1])))
    return reduce(np.dot, [w_query, state])
