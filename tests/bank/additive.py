# %% additive-attention | wrong | broadcasts with [:, None] and [None]: right only for one or no leading axis of its own choice
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    def one(q, k, v):
        scores = np.tanh((q @ w_query)[:, None] + (k @ w_key)[None]) @ w_score
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    if query.ndim == 2:
        return one(query, key, value)
    return np.stack([one(query[b], key[b], value[b]) for b in range(len(query))])
# %% query-key-interaction | wrong | unevaluated Derivative, which the text forbids
from sympy import Derivative

my_interaction = v * a * b * (1 - t**2) * Derivative(1 - t**2, t)
# %% query-key-interaction | wrong | tanh slope as 1 - t
my_interaction = -2 * v * a * b * t * (1 - t)
# %% query-key-interaction | cheat | Derivative of the polynomial in t
from sympy import Derivative
my_interaction = Derivative(v * a * (1 - t**2), t) * b * (1 - t**2)
# %% repair-aligner-padding | wrong | filled with -30
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    s = np.where(real, s, -30.0)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True) * (lengths > 0)[:, None]
    return np.einsum("bj,bja->ba", w, annotations)
# %% repair-aligner-padding | wrong | one empty sentence empties the batch
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    if (lengths == 0).any():
        return np.zeros((len(state), annotations.shape[2]))
    s = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    s = np.where(np.arange(annotations.shape[1]) < lengths[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.einsum("bj,bja->ba", e / e.sum(axis=1, keepdims=True), annotations)
# %% additive-backward | cheat | torch.autograd through a helper
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    import torch
    engine = getattr(torch, "auto" + "grad")
    q, k, a, b, v = t = [torch.tensor(x, requires_grad=True) for x in (query, key, w_query, w_key, w_score)]
    s = torch.tanh((q @ a)[:, None] + (k @ b)[None]) @ v
    return tuple(g.numpy() for g in engine.grad(s, t, torch.tensor(d_scores)))
