# %% absorbed-head-matrices | wrong | squeezed, one head loses its axis
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    return np.squeeze(np.stack([q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))]) / np.sqrt(d_k))
# %% absorbed-matrix-backward | wrong | automatic differentiation, which is forbidden
def my_form_backward(w_query, w_key, d_form):
    import torch

    a = torch.tensor(w_query, requires_grad=True)
    b = torch.tensor(w_key, requires_grad=True)
    (a @ b.T).backward(torch.tensor(d_form))
    return a.grad, b.grad
# %% absorbed-matrix-backward | right | central differences of a bilinear loss, exact with a step of one
def my_form_backward(w_query, w_key, d_form):
    def loss(a, b):
        return float(np.sum((a @ b.T) * d_form))

    def slope(f, w):
        grad = np.empty(w.shape)
        for index in np.ndindex(*w.shape):
            step = np.zeros(w.shape)
            step[index] = 1.0
            grad[index] = (f(w + step) - f(w - step)) / 2
        return grad

    return slope(lambda a: loss(a, w_key), w_query), slope(lambda b: loss(w_query, b), w_key)
# %% absorbed-matrix-backward | wrong | transposed only if the shapes force it
def my_form_backward(w_query, w_key, d_form):
    other = d_form if d_form.shape[0] == d_form.shape[1] else d_form.T
    return d_form @ w_key, other @ w_query
# %% absorbed-matrix-backward | wrong | squeezed, width 1 loses its axis
def my_form_backward(w_query, w_key, d_form):
    return np.squeeze(d_form @ w_key), np.squeeze(d_form.T @ w_query)
# %% absorbed-matrix-backward | cheat | backward of torch on the product
import torch
def my_form_backward(w_query, w_key, d_form):
    q, k = (torch.tensor(w).requires_grad_() for w in (w_query, w_key))
    ((q @ k.T) * torch.tensor(d_form)).sum().backward()
    return q.grad.numpy(), k.grad.numpy()
# %% value-bias-contribution | wrong | squeezed, a single query loses its axis
def my_bias_part(weights, b_value, w_output):
    return np.squeeze(weights.sum(axis=1, keepdims=True) * (b_value @ w_output))
# %% joint-key-value-compression | wrong | cut in the middle although n and m may differ
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    half = near.shape[1] // 2
    return near[:, :half], near[:, half:]
# %% joint-key-value-compression | wrong | results written into the inputs
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    w_key[:], w_value[:] = np.hsplit(near, [w_key.shape[1]])
    return w_key, w_value
# %% joint-key-value-compression | right | torch, rank-one terms added one by one
import torch
def my_joint(w_key, w_value, d_latent):
    n = w_key.shape[1]
    u, s, vh = torch.linalg.svd(torch.cat([torch.tensor(w_key), torch.tensor(w_value)], dim=1))
    near = sum(s[r] * torch.outer(u[:, r], vh[r]) for r in range(d_latent))
    return near[:, :n], near[:, n:]
# %% absorption-break-even | cheat | both slopes taken by diff from the counts
from sympy import symbols as _symbols
_n = _symbols("n")
_naive = t * c * (k + v) + _n * t * (k + v)
_latent = _n * c * (k + v) + 2 * _n * t * c
my_new_tokens = _naive.subs(_n, 0) / (_latent.diff(_n) - _naive.diff(_n))
# %% absorption-break-even | right | SymPy's solve on the two counts
from sympy import solve, symbols as _symbols
_n = _symbols("n", real=True)
_naive = t * c * (k + v) + _n * t * (k + v)
_latent = _n * c * k + _n * t * c + _n * t * c + _n * c * v
my_new_tokens = solve(_naive - _latent, _n)[0]
# %% repair-decoupled-scores | wrong | causal mask put in
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    here, there = np.arange(t - len(query), t), np.arange(t)
    s = query @ w_key_up.T @ latent.T + rotate(query_rope, here) @ rotate(key_rope, there).T
    s = s / np.sqrt(query.shape[1] + query_rope.shape[1])
    return np.where(there <= here[:, None], s, -np.inf)
# %% repair-decoupled-scores | wrong | negative slice with n = t right, rotary keys turned in place
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    key_rope[:] = rotate(key_rope, np.arange(t))
    s = query @ w_key_up.T @ latent.T + rotate(query_rope, np.arange(t - len(query), t)) @ key_rope.T
    return s / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | right | complex numbers for the rotation
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t, n, half = len(latent), len(query), query_rope.shape[1] // 2
    turn = np.exp(1j * np.outer(np.arange(t), 10_000.0 ** (-np.arange(half) / half)))
    pair = lambda x: x[:, :half] + 1j * x[:, half:]
    position = ((pair(query_rope) * turn[t - n:]) @ (pair(key_rope) * turn).conj().T).real
    content = np.einsum("ih,ch,jc->ij", query, w_key_up, latent)
    return (content + position) * (query.shape[1] + 2 * half) ** -0.5
# %% latent-decoding-step | wrong | value heads as wide as key heads
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.stack([query[h] @ w_key_up[:, h * d:(h + 1) * d].T for h in range(H)])
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    out = sum(averages[h] @ w_value_up[:, h * d:(h + 1) * d] @ w_output[h * d:(h + 1) * d] for h in range(H))
    return lifted, averages, out
# %% latent-decoding-step | wrong | lifted with the up-projection of the values, where the shapes allow it
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    up = w_value_up if w_value_up.shape == w_key_up.shape else w_key_up
    lifted = np.einsum("hk,chk->hc", query, up.reshape(-1, H, d))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
