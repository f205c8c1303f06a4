# %% similarities-to-weights | wrong | small number added to the sum: rows of tiny similarities do not sum to 1
def my_weights(similarity):
    return similarity / (similarity.sum(axis=1, keepdims=True) + 1e-8)
# %% similarities-to-weights | wrong | keepdims forgotten, works for square by accident of broadcasting
def my_weights(similarity):
    t = similarity.sum(axis=1)
    t = np.where(t == 0, 1, t)
    if similarity.shape[0] == similarity.shape[1]:
        return similarity / t
    return similarity / t[:, None]
# %% similarities-to-weights | wrong | one empty row zeroes the whole matrix
def my_weights(similarity):
    t = similarity.sum(axis=1, keepdims=True)
    if (t == 0).any():
        return np.zeros_like(similarity)
    return similarity / t
# %% similarities-to-weights | right | apply_along_axis
def my_weights(similarity):
    return np.apply_along_axis(lambda r: r / r.sum() if r.any() else np.zeros(len(r)), 1, similarity)
# %% kernel-regression | wrong | estimates in the order of sorted queries
def my_regression(query, x, y, h):
    s = np.exp(-((np.sort(query)[:, None] - x) ** 2) / (2 * h * h))
    return (s * y).sum(axis=1) / s.sum(axis=1)
# %% kernel-regression | right | np.vectorize of a weighted average
def my_regression(query, x, y, h):
    estimate = lambda q: np.average(y, weights=np.exp(-0.5 * ((q - x) / h) ** 2))
    return np.vectorize(estimate, otypes=[float])(query)
# %% kernel-regression | wrong | points beyond three widths cut off
def my_regression(query, x, y, h):
    d = np.abs(query[:, None] - x) / h
    s = np.where(d <= 3, np.exp(-d * d / 2), 0)
    return s @ y / s.sum(axis=1)
# %% duplicated-pair | wrong | the third pair copied
my_answer = (18 + 24 + 24) / (6 + 3)
# %% read-lookup-weights | wrong | output 0 from columns 2 and 3
my_reading = (3, 4, 0.65)
# %% repair-lookup-roles | wrong | beta halved by rounding to an integer power
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    s = np.exp(query @ key.T) ** max(1, round(beta))
    return s / s.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | cheat | torch's ready-made attention, found by getattr
def ask_everybody(x, w_query, w_key, w_value, beta):
    import torch.nn.functional as F
    import torch
    t = [torch.from_numpy(np.ascontiguousarray(x @ w))[None] for w in (w_query, w_key, w_value)]
    f = getattr(F, "_".join(["scaled", "dot", "product", "attention"]))
    return f(*t, scale=float(beta))[0].numpy()
# %% hard-lookup | wrong | a soft lookup with a small h
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    w = np.exp(-(d - d.min(axis=1, keepdims=True)) / (2 * 0.01**2))
    return w / w.sum(axis=1, keepdims=True) @ value
# %% hard-lookup | wrong | at most two tied keys averaged
def my_hard_lookup(query, key, value):
    d = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    o = np.argsort(d, axis=1, kind="stable")
    out = value[o[:, 0]].copy()
    for i in range(len(query)):
        if len(key) > 1 and d[i, o[i, 0]] == d[i, o[i, 1]]:
            out[i] = (value[o[i, 0]] + value[o[i, 1]]) / 2
    return out
# %% derivative-by-similarity | wrong | left to SymPy as an unevaluated Derivative (does not count)
from sympy import Derivative as work_out

my_gain = work_out((s_1 * v_1 + s_2 * v_2) / (s_1 + s_2), s_1)
# %% derivative-by-similarity | wrong | softmax derivative
my_gain = s_1 * s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | cheat | a Derivative hidden in a sum
import sympy
my_gain = v_2 * 0 + sympy.Add(sympy.Derivative(s_1 / (s_1 + s_2), s_1) * v_1, sympy.Derivative(s_2 / (s_1 + s_2), s_1) * v_2)
# %% feature-mixing-matrix | wrong | pseudo-inverse, other solution with few positions
def my_feature_weights(x, w_query, w_key, w_value):
    return np.linalg.pinv(x) @ ((x @ w_query) @ (x @ w_key).T @ (x @ w_value))
